#pragma once
// The estimates that a verdict hangs on: the difference between two designs with each estimate that
// either of them read at both ends of its range, on the same random numbers. README.md, "Does a verdict
// survive", says more.

#include <optional>
#include <string>
#include <vector>

#include "sim/comparison.h"
#include "tools/study/trials.h"
#include "tools/study/uncertain_input.h"

namespace railyard {

struct JudgedDesign {
    std::string name;
    std::string text;  // of its scenario
    std::string file;
    ScenarioChanges changes;
    double scale = 1;  // its metrics are judged times this
};

// How the two were judged: by a metric, and what its difference was found to be, the second's less the
// first's.
struct Judgement {
    std::string metric;
    Better better = Better::higher;
    double difference = 0;
    bool decided = true;  // false: the verdict is open as it is
};

// What becomes of that difference.
struct EstimateEnds {
    UncertainInput input;
    std::optional<double> low;  // none: that end makes no possible design
    std::optional<double> high;
    // Enough replicas have been looked at to tell the two designs apart at this end.
    bool low_told = true;
    bool high_told = true;
    double swing(double as_is) const;
    // The other design is better at one of the ends.
    bool turns(double as_is) const;
    // It seems to be, by a mean of which luck leaves the sign open.
    bool may_turn(double as_is) const;
};

struct VerdictEstimates {
    Judgement judged;
    std::vector<EstimateEnds> moving;  // largest swing first; those without effect are left out
    std::size_t read = 0;              // by either design
    bool default_ranges = false;       // some of them have no range of their own
    bool interrupted = false;

    std::vector<std::string> turning() const;  // names
    bool survives() const { return turning().empty(); }
    std::size_t may_turn() const;  // how many of those that do not turn it
};

// What is uncertain in a scenario: its estimates, and its prices where money is judged.
std::vector<UncertainInput> uncertain_inputs(const Scenario& scenario, const std::string& metric);

// `like` has threads, replicas at most and what cancels. A few replicas tell which ends move the difference,
// on the same random numbers; where one seems to turn it, all of them say whether it does.
VerdictEstimates verdict_estimates(const TrialOptions& like, const JudgedDesign& first,
                                   const JudgedDesign& second, const Judgement& judged);
// What one design's own metric changes by at either end of each estimate.
VerdictEstimates answer_estimates(const TrialOptions& like, const JudgedDesign& design,
                                  const std::string& metric);

// What a run's answer hangs on: for each estimate that was read, what changes with it at either end of its
// range, on the same random numbers. Largest swing of goodput first; those without effect are left out.
struct EstimateEffect {
    struct Change {
        double goodput = 0;  // difference
        double speed = 0;    // relative change of kept steps per time; of many jobs of utilisation
    };
    Estimate estimate;
    std::optional<Change> low;  // none: that end makes no possible design
    std::optional<Change> high;
    double swing() const;
};
std::vector<EstimateEffect> rank_estimates(const TrialOptions& like, const JudgedDesign& design);

}  // namespace railyard
