#include "tools/study/deciding_metric.h"

#include <algorithm>
#include <cmath>

namespace railyard {

namespace {

using Designs = std::span<const WorkBasis>;

// The same in all of them, but for the last digits.
bool alike(Designs designs, double WorkBasis::*value) {
    constexpr double rounding = 1e-9;
    const double first = designs[0].*value;
    return std::ranges::all_of(designs, [&](const WorkBasis& w) {
        return std::abs(w.*value - first) <= rounding * std::abs(first);
    });
}

bool same_gpus(Designs designs) {
    return std::ranges::all_of(designs, [&](const WorkBasis& w) {
        return w.gpus == designs[0].gpus && w.gpu_cap == designs[0].gpu_cap;
    });
}

bool as_many_gpus(Designs designs) {
    return std::ranges::all_of(
        designs, [&](const WorkBasis& w) { return w.gpu_count == designs[0].gpu_count; });
}

// Why goodput of these designs cannot be compared; empty: it can.
std::string why_goodput_misleads(Designs designs) {
    if (!same_gpus(designs)) return "the designs differ in their GPUs or their clocks";
    if (!as_many_gpus(designs)) return "the designs differ in how many GPUs they have";
    if (!alike(designs, &WorkBasis::computing)) {
        return "the same training takes the designs' GPUs more or less computing";
    }
    return "";
}

DecidingMetric of_one_job(Designs designs) {
    const std::string misleads = why_goodput_misleads(designs);
    if (misleads.empty()) {
        return {"goodput", Better::higher,
                "the same GPUs at the same clocks, so a point of goodput is the same work in all "
                "designs"};
    }
    const std::string share = misleads + ", and goodput is a share of each one's own GPU time";
    const bool tokens = std::ranges::all_of(designs, &WorkBasis::tokens);
    const bool priced = std::ranges::all_of(designs, &WorkBasis::priced);
    if (tokens && priced) return {"cost_per_1e12_tokens", Better::lower, share};
    return {tokens ? "tokens_per_day" : "steps_per_day", Better::higher, share};
}

// Jobs whose steps are modelled take their time on the design's own nodes and network.
bool jobs_take_other_times(Designs designs) {
    return std::ranges::any_of(designs, &WorkBasis::modelled) &&
           (!same_gpus(designs) || !alike(designs, &WorkBasis::alone));
}

DecidingMetric of_many_jobs(Designs designs) {
    if (std::ranges::any_of(designs, [](const WorkBasis& w) { return w.load >= 1; })) {
        const std::string full = "the jobs have more to do than the campaign has time for";
        if (std::ranges::all_of(designs, &WorkBasis::counted))
            return {"work_per_day", Better::higher, full + ", and what it does in a day decides"};
        if (same_gpus(designs) && as_many_gpus(designs)) {
            return {"goodput", Better::higher,
                    full + "; on the same GPUs at the same clocks goodput is what it gets done"};
        }
    }
    const std::string load =
        "the load that is offered sets the goodput of many jobs, and what they wait is the "
        "design's";
    if (jobs_take_other_times(designs)) {
        return {"jct_mean", Better::lower,
                load + "; their steps take another time on other GPUs or clocks"};
    }
    return {"bounded_slowdown_mean", Better::lower, load};
}

}  // namespace

DecidingMetric deciding_metric(Designs designs) {
    return designs[0].many_jobs ? of_many_jobs(designs) : of_one_job(designs);
}

DecidingMetric deciding_cost(Designs designs) {
    const bool tokens = std::ranges::all_of(designs, &WorkBasis::tokens);
    return {tokens ? "cost_per_1e12_tokens" : "cost_per_goodput_gpu_hour", Better::lower,
            tokens ? "tokens are the same work in all designs"
                   : "how many tokens a step has is not known"};
}

}  // namespace railyard
