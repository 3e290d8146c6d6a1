#include "tools/study/design_regret.h"

#include <algorithm>
#include <cmath>

#include "sim/rng.h"
#include "sim/statistics.h"

namespace railyard {

namespace {

// Worlds in which all designs have a value.
std::vector<std::size_t> whole_worlds(const Worlds& w) {
    std::vector<std::size_t> out;
    if (w.values.empty()) return out;
    for (std::size_t i = 0; i < w.values[0].size(); ++i) {
        if (std::ranges::all_of(w.values, [&](const auto& v) { return std::isfinite(v[i]); })) {
            out.push_back(i);
        }
    }
    return out;
}

std::size_t best_in(const Worlds& w, std::size_t world, Better better) {
    std::size_t best = 0;
    for (std::size_t d = 1; d < w.values.size(); ++d) {
        if (better_than(w.values[d][world], w.values[best][world], better)) best = d;
    }
    return best;
}

// The line of y over x at each x, or y's mean where x does not vary.
std::vector<double> fitted(const std::vector<double>& x, const std::vector<double>& y) {
    const double mean_x = summarise(x).mean;
    const double mean_y = summarise(y).mean;
    double xx = 0;
    double xy = 0;
    for (std::size_t i = 0; i < x.size(); ++i) {
        xx += (x[i] - mean_x) * (x[i] - mean_x);
        xy += (x[i] - mean_x) * (y[i] - mean_y);
    }
    const double slope = xx > 0 ? xy / xx : 0;
    std::vector<double> out;
    for (const double at : x) out.push_back(mean_y + slope * (at - mean_x));
    return out;
}

// What knowing x in each world is worth, of designs with these values there.
double worth_of(const std::vector<double>& x, const std::vector<std::vector<double>>& values,
                Better better) {
    const auto better_of_two = [&](double a, double b) {
        return better_than(a, b, better) ? a : b;
    };
    double unknowing = summarise(values[0]).mean;
    std::vector<double> best = fitted(x, values[0]);
    for (const std::vector<double>& design : values) {
        unknowing = better_of_two(unknowing, summarise(design).mean);
        const std::vector<double> line = fitted(x, design);
        for (std::size_t j = 0; j < best.size(); ++j) best[j] = better_of_two(best[j], line[j]);
    }
    return std::abs(summarise(best).mean - unknowing);
}

}  // namespace

std::vector<std::vector<double>> regret_table(const Worlds& w, Better better) {
    const std::size_t designs = w.values.size();
    std::vector<std::vector<double>> out(designs, std::vector<double>(designs, 0.0));
    const std::vector<std::size_t> worlds = whole_worlds(w);
    for (const std::size_t world : worlds) {
        const std::size_t best = best_in(w, world, better);
        for (std::size_t d = 0; d < designs; ++d) {
            out[d][best] += std::abs(w.values[d][world] - w.values[best][world]) /
                            static_cast<double>(worlds.size());
        }
    }
    return out;
}

std::vector<Regret> regrets(const Worlds& w, Better better) {
    std::vector<Regret> out(w.values.size());
    const std::vector<std::size_t> worlds = whole_worlds(w);
    if (worlds.empty()) return out;
    for (std::size_t d = 0; d < out.size(); ++d) {
        std::vector<double> all;
        double best_in_all = 0;
        for (const std::size_t world : worlds) {
            const std::size_t best = best_in(w, world, better);
            all.push_back(std::abs(w.values[d][world] - w.values[best][world]));
            if (best == d) ++best_in_all;
        }
        constexpr double high = 0.95;
        out[d].mean = summarise(all).mean;
        std::ranges::sort(all);
        out[d].high = sorted_quantile(all, high);
        out[d].best_share = best_in_all / static_cast<double>(worlds.size());
    }
    return out;
}

std::vector<InputWorth> worth_of_inputs(const Worlds& w, Better better) {
    std::vector<InputWorth> out;
    std::vector<std::size_t> worlds = whole_worlds(w);
    if (worlds.size() < 3) return out;
    const auto in_these = [&](const std::vector<std::vector<double>>& all) {
        std::vector<std::vector<double>> some;
        for (const std::vector<double>& each : all) {
            some.emplace_back();
            for (const std::size_t world : worlds) some.back().push_back(each[world]);
        }
        return some;
    };
    const std::vector<std::vector<double>> values = in_these(w.values);
    const std::vector<std::vector<double>> shares = in_these(w.shares);
    for (std::size_t i = 0; i < shares.size(); ++i) {
        out.push_back({w.inputs[i], worth_of(shares[i], values, better)});
    }
    // The same where the worlds are shuffled, so that no input has to do with any value.
    constexpr int shuffles = 200;
    RandomStream random(1, 0, "worth of inputs");
    std::vector<double> by_chance;
    for (int k = 0; k < shuffles; ++k) {
        random.shuffle(worlds);
        double most = 0;
        for (const std::vector<double>& x : in_these(w.shares)) {
            most = std::max(most, worth_of(x, values, better));
        }
        by_chance.push_back(most);
    }
    std::ranges::sort(by_chance);
    const double chance = sorted_quantile(by_chance, 0.95);
    std::erase_if(out, [&](const InputWorth& input) { return input.worth <= chance; });
    std::ranges::stable_sort(out, [](const auto& a, const auto& b) { return a.worth > b.worth; });
    return out;
}

}  // namespace railyard
