#include "tools/study/deciding_metric.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <functional>

namespace railyard {

namespace {

using Designs = std::vector<const Scenario*>;

bool all_of(const Designs& designs, const std::function<bool(const Scenario&)>& holds) {
    return std::all_of(designs.begin(), designs.end(),
                       [&](const Scenario* s) { return holds(*s); });
}

// The same in all of them, but for the last digits.
bool alike(const Designs& designs, const std::function<double(const Scenario&)>& value) {
    constexpr double rounding = 1e-9;
    const double first = value(*designs[0]);
    return all_of(designs, [&](const Scenario& s) {
        return std::abs(value(s) - first) <= rounding * std::abs(first);
    });
}

// Computing GPU time in one step, and for one token where a step has so many.
double computing(const Scenario& s) {
    const double gpu_seconds = seconds(s.job.step.compute) * static_cast<double>(s.job.gpus());
    return s.tokens_per_step > 0 ? gpu_seconds / static_cast<double>(s.tokens_per_step)
                                 : gpu_seconds;
}

std::vector<std::string> gpus_of(const Scenario& s) {
    std::vector<std::string> out;
    if (!s.fleet) return {s.node.gpu.id};
    for (const Node& node : s.fleet->nodes) out.push_back(node.gpu.id);
    return out;
}

bool same_gpu(const Scenario& a, const Scenario& b) {
    return gpus_of(a) == gpus_of(b) && a.power.node.gpu.cap == b.power.node.gpu.cap;
}

// What a point of goodput means something else for; empty: nothing.
std::string why_goodput_misleads(const Designs& designs) {
    if (!all_of(designs, [&](const Scenario& s) { return same_gpu(s, *designs[0]); })) {
        return "the designs differ in their GPUs or their clocks";
    }
    if (!alike(designs, [](const Scenario& s) { return static_cast<double>(s.gpus()); })) {
        return "the designs differ in how many GPUs they have";
    }
    if (!alike(designs, computing)) {
        return "the same training takes the designs' GPUs more or less computing";
    }
    return "";
}

DecidingMetric of_one_job(const Designs& designs) {
    const std::string misleads = why_goodput_misleads(designs);
    if (misleads.empty()) {
        return {"goodput", Better::higher,
                "the same GPUs at the same clocks, so a point of goodput is the same work in all "
                "designs"};
    }
    const std::string share = misleads + ", and goodput is a share of each one's own GPU time";
    const bool tokens = all_of(designs, [](const Scenario& s) { return s.tokens_per_step > 0; });
    const bool priced = all_of(designs, [](const Scenario& s) { return s.cost.has_value(); });
    if (tokens && priced) return {"cost_per_1e12_tokens", Better::lower, share};
    return {tokens ? "tokens_per_day" : "steps_per_day", Better::higher, share};
}

// Jobs whose steps are modelled take their time on the design's own nodes.
bool jobs_take_other_times(const Designs& designs) {
    const bool modelled = !all_of(designs, [](const Scenario& s) {
        return std::none_of(s.fleet->models.begin(), s.fleet->models.end(),
                            [](const auto& model) { return model != nullptr; });
    });
    return modelled &&
           !all_of(designs, [&](const Scenario& s) { return same_gpu(s, *designs[0]); });
}

DecidingMetric of_many_jobs(const Designs& designs) {
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

DecidingMetric deciding_metric(const std::vector<const Scenario*>& designs) {
    return designs[0]->fleet ? of_many_jobs(designs) : of_one_job(designs);
}

}  // namespace railyard
