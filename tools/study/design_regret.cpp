#include "tools/study/design_regret.h"

#include <algorithm>
#include <cmath>

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
    const std::vector<std::size_t> worlds = whole_worlds(w);
    if (worlds.size() < 3) return out;
    const auto whole = [&](const std::vector<double>& all) {
        std::vector<double> values;
        for (const std::size_t world : worlds) values.push_back(all[world]);
        return values;
    };
    const auto better_of_two = [&](double a, double b) {
        return better_than(a, b, better) ? a : b;
    };
    double unknowing = summarise(whole(w.values[0])).mean;
    for (const auto& values : w.values) {
        unknowing = better_of_two(unknowing, summarise(whole(values)).mean);
    }
    for (std::size_t i = 0; i < w.inputs.size(); ++i) {
        const std::vector<double> x = whole(w.shares[i]);
        std::vector<double> best = fitted(x, whole(w.values[0]));
        for (const auto& values : w.values) {
            const std::vector<double> line = fitted(x, whole(values));
            for (std::size_t j = 0; j < best.size(); ++j) best[j] = better_of_two(best[j], line[j]);
        }
        const double worth = std::abs(summarise(best).mean - unknowing);
        constexpr double nothing = 1e-9;
        if (worth > nothing * std::abs(unknowing)) out.push_back({w.inputs[i], worth});
    }
    std::ranges::stable_sort(out, [](const auto& a, const auto& b) { return a.worth > b.worth; });
    return out;
}

}  // namespace railyard
