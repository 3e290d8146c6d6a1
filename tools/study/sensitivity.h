#pragma once
// Which inputs decide a result: one at a time, by Morris's screening, and by their part of the variance.
// README.md, "What sensitivity prints", has the definitions.

#include <algorithm>
#include <cmath>
#include <optional>
#include <string>
#include <vector>

#include "sim/morris.h"
#include "tools/study/first_order.h"
#include "tools/study/key_range.h"
#include "tools/study/trials.h"
#include "tools/study/uncertain_input.h"

namespace railyard {

// The mean of the metric at either end of an input's range, less that of the scenario as it is.
struct TornadoBar {
    UncertainInput input;
    std::optional<double> low;  // none: there is no such design
    std::optional<double> high;
    double swing() const { return std::abs(high.value_or(0) - low.value_or(0)); }
    double largest() const {
        return std::max(std::abs(low.value_or(0)), std::abs(high.value_or(0)));
    }
};

// What a scenario, which `changes` make of the text, and it at the ends of the ranges are judged by. A key
// that there is not is an error, a value that makes no design a gap.
std::vector<WorkBasis> designs_at_ends(const TrialOptions& trials, const ScenarioChanges& changes,
                                       const Scenario& scenario,
                                       const std::vector<KeyRange>& ranges);
// The keys with a range and, with `estimates`, what else is uncertain of the metric. Throws ScenarioError
// when that is nothing.
std::vector<UncertainInput> what_is_uncertain(const Scenario& scenario, const std::string& metric,
                                              const std::vector<KeyRange>& ranges, bool estimates);

struct SensitivityOptions {
    std::string metric;
    std::int64_t trajectories = 0;
    std::int64_t samples = 0;
};

struct Sensitivity {
    Summary base;
    std::vector<TornadoBar> bars;  // largest swing first; those that decide nothing come last
    // The first so many: what is less than a thousandth of the largest decides nothing. The rest below is
    // about these, in this order.
    std::size_t deciding = 0;
    std::vector<ElementaryEffects> effects;  // empty when it was not asked for or interrupted
    std::optional<FirstOrderFit> fit;
    std::size_t samples_possible = 0;
    std::size_t runs = 0;
    bool interrupted = false;
};

// Throws Interrupted when not even the scenario itself was run.
Sensitivity find_sensitivity(const TrialOptions& trials, const ScenarioChanges& changes,
                             std::uint64_t seed, const std::vector<UncertainInput>& inputs,
                             const SensitivityOptions& options);

}  // namespace railyard
