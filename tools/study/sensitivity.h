#pragma once
// Which inputs decide a result: one at a time, by Morris's screening, and by their part of the variance.
// README.md, "What sensitivity prints", has the definitions.

#include <algorithm>
#include <cmath>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "sim/first_order.h"
#include "sim/morris.h"
#include "tools/study/key_range.h"
#include "tools/study/trials.h"

namespace railyard {

// What is not known exactly: an estimate of the catalogue or the scenario, scaled within its range, or a key
// with a range.
class UncertainInput {
  public:
    explicit UncertainInput(Estimate estimate) : what_(std::move(estimate)) {}
    explicit UncertainInput(KeyRange range) : what_(std::move(range)) {}

    std::string name() const;
    std::string value() const;           // as it is; empty for a key with a range
    std::string at(double share) const;  // "x 0.7", "12 min"
    bool range_given() const;
    // Sets it to a share, 0 to 1, of the way from its low end to its high one.
    void set(ScenarioChanges& changes, double share) const;
    // It is there as it is: nothing to set.
    bool as_it_is(double share) const;
    double share_as_it_is() const;  // of an estimate, or the middle

  private:
    std::variant<Estimate, KeyRange> what_;
};

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
