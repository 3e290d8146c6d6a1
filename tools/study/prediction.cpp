#include "tools/study/prediction.h"

#include <algorithm>
#include <cmath>

#include "sim/sampling.h"

namespace railyard {

namespace {

constexpr double low_tail = 0.05;
constexpr double high_tail = 0.95;
constexpr double low_quarter = 0.25;
constexpr double high_quarter = 0.75;

// How far each of these is from `from`, as the logarithm of the ratio, in order. What comes to nothing counts
// like the rest: it is as good as nothing of `from`.
std::vector<double> sorted_logs(const std::vector<double>& values, double from) {
    constexpr double nothing = 1e-12;
    std::vector<double> out;
    for (const double v : values) {
        if (v >= 0 && from > 0 && std::isfinite(v)) {
            out.push_back(std::log(std::max(v / from, nothing)));
        }
    }
    std::ranges::sort(out);
    return out;
}

double mean_of(const std::vector<double>& values) {
    double sum = 0;
    for (const double v : values) sum += v / static_cast<double>(values.size());
    return sum;
}

double at(const std::vector<double>& logs, double share) {
    return logs.size() < 2 ? 0 : sorted_quantile(logs, share);
}

// The drawn estimate that goes with the answer most closely; none: the answer goes with no one of them.
std::size_t closest(const UnitPoints& points, const std::vector<double>& answers) {
    constexpr double worth_naming = 0.1;  // of the variance
    std::size_t best = SIZE_MAX;
    double most = worth_naming;
    const double middle = mean_of(answers);
    for (std::size_t axis = 0; axis < points.front().size(); ++axis) {
        double xy = 0;
        double xx = 0;
        double yy = 0;
        for (std::size_t i = 0; i < points.size(); ++i) {
            const double x = points[i][axis] - 0.5;
            const double y = answers[i] - middle;
            xy += x * y;
            xx += x * x;
            yy += y * y;
        }
        const double explained = xx > 0 && yy > 0 ? xy * xy / (xx * yy) : 0;
        if (explained > most) {
            most = explained;
            best = axis;
        }
    }
    return best;
}

// Estimates drawn together, and what each question's answer was.
struct Drawn {
    std::vector<Estimate> estimates;
    UnitPoints points;                         // of the possible designs
    std::vector<double> as_is;                 // by question
    std::vector<std::vector<double>> answers;  // by question, then point

    std::vector<double> logs(std::size_t question) const {
        return answers.empty() ? std::vector<double>{}
                               : sorted_logs(answers[question], as_is[question]);
    }
};

// Below its value as often as above, evenly on each side: the value is what is held likely.
double drawn_factor(const Estimate& e, double share) {
    const double middle = std::clamp(1.0, e.low_factor, e.high_factor);
    return share < 0.5 ? std::lerp(e.low_factor, middle, 2 * share)
                       : std::lerp(middle, e.high_factor, 2 * share - 1);
}

Drawn draw(const std::vector<Estimate>& estimates, std::size_t draws, std::uint64_t seed,
           const Answers& answers) {
    Drawn out;
    for (const Estimate& each : estimates) {
        const bool fitted = each.source.starts_with("fitted");
        if (!fitted && each.low_factor < each.high_factor) out.estimates.push_back(each);
    }
    if (out.estimates.empty() || draws == 0) return out;
    const UnitPoints points =
        latin_hypercube(static_cast<std::int64_t>(draws), out.estimates.size(), seed);
    std::vector<Perturbations> variants(1);
    for (const std::vector<double>& point : points) {
        Perturbations& variant = variants.emplace_back();
        for (std::size_t i = 0; i < point.size(); ++i) {
            const Estimate& e = out.estimates[i];
            variant.push_back({e.path, drawn_factor(e, point[i])});
        }
    }
    const std::vector<std::vector<double>> found = answers(variants);
    if (found.empty() || found.front().empty()) return out;
    out.as_is = found.front();
    out.answers.resize(out.as_is.size());
    for (std::size_t i = 1; i < found.size(); ++i) {
        if (found[i].empty()) continue;
        out.points.push_back(points[i - 1]);
        for (std::size_t q = 0; q < out.answers.size(); ++q) out.answers[q].push_back(found[i][q]);
    }
    return out;
}

Predicted put_together(const Question& question, const std::vector<double>& by_estimates,
                       const UnitPoints& all, double most) {
    const std::vector<double> by_luck = sorted_logs(question.luck, mean_of(question.luck));
    const auto quantile_of = [&](Doubt doubt, double share) {
        switch (doubt) {
            case Doubt::luck:
                return at(by_luck, share);
            case Doubt::estimates:
                return at(by_estimates, share);
            case Doubt::model:
                return off_by(question.error, share);
        }
        return 0.0;
    };
    std::vector<double> sums;
    for (const std::vector<double>& point : all) {
        double sum = 0;
        for (std::size_t d = 0; d < doubts; ++d)
            sum += quantile_of(static_cast<Doubt>(d), point[d]);
        sums.push_back(sum);
    }
    std::ranges::sort(sums);
    const auto value_at = [&](double log) {
        return std::min(most, question.value * std::exp(log));
    };
    const auto between = [&](double low, double high) {
        return Interval{value_at(sorted_quantile(sums, low)),
                        value_at(sorted_quantile(sums, high))};
    };
    Predicted out;
    out.name = question.name;
    out.value = question.value;
    out.half = between(low_quarter, high_quarter);
    out.nine_tenths = between(low_tail, high_tail);
    for (std::size_t d = 0; d < doubts; ++d) {
        const auto doubt = static_cast<Doubt>(d);
        out.width[d] = std::expm1(quantile_of(doubt, high_tail)) / 2 -
                       std::expm1(quantile_of(doubt, low_tail)) / 2;
        if (out.width[d] > out.width[static_cast<std::size_t>(out.widest)]) out.widest = doubt;
    }
    return out;
}

}  // namespace

double off_by(const ModelError& error, double share) {
    const double half = std::log1p(error.half);
    const double nine_tenths = std::log1p(error.nine_tenths);
    const double outside = std::abs(2 * share - 1);  // this share of all errors are smaller
    const double size =
        outside <= 0.5 ? half * outside / 0.5 : half + (nine_tenths - half) * (outside - 0.5) / 0.4;
    return share < 0.5 ? -size : size;
}

Prediction predict(const std::vector<Question>& questions, const std::vector<Estimate>& estimates,
                   std::size_t draws, std::uint64_t seed, const Answers& answers) {
    constexpr std::int64_t sums = 4096;
    const Drawn drawn = draw(estimates, draws, seed, answers);
    const UnitPoints all = latin_hypercube(sums, doubts, seed);
    Prediction out;
    out.estimates = drawn.estimates.size();
    out.tried = drawn.estimates.empty() ? 0 : draws;
    out.draws = drawn.points.size();
    for (std::size_t q = 0; q < questions.size(); ++q) {
        const Question& question = questions[q];
        // A step that is given may be faster than its GPUs: the answer itself is then the bound.
        constexpr double no_bound = 1e300;
        const double bound = question.share ? std::max(1.0, question.value) : no_bound;
        Predicted each = put_together(question, drawn.logs(q), all, bound);
        if (each.widest == Doubt::model) each.measure = question.measure;
        if (each.widest == Doubt::estimates && !drawn.points.empty()) {
            const std::size_t most = closest(drawn.points, drawn.answers[q]);
            if (most != SIZE_MAX) each.measure = drawn.estimates[most].path;
        }
        out.answers.push_back(std::move(each));
    }
    return out;
}

}  // namespace railyard
