#pragma once
// At what value of a key two designs are worth the same. README.md, "What breakeven prints", has the method.

#include <functional>
#include <optional>
#include <vector>

#include "tools/study/verdict_estimates.h"

namespace railyard {

// The difference of two designs, b - a, with the key at x.
struct DifferenceAt {
    double x = 0;
    PairedComparison pairs;
};

struct Crossing {
    double x =
        0;  // where the mean difference changes its sign; of whole numbers, the first on the other side
    double before = 0;  // the last value that was tried on the near side
    // Where the difference's interval of 95 % reaches zero on either side: between them the verdict is open,
    // also across another crossing that it can't tell from this one. Not set when it does not reach zero.
    std::optional<double> low;
    std::optional<double> high;
    Verdict below = Verdict::undecided;  // which is better on the near side, by the mean
};

struct BreakevenResult {
    std::vector<DifferenceAt> scan;  // the range's ends and what is between, ascending
    std::vector<Crossing> crossings;
    std::size_t evaluations = 0;  // values of the key
    bool interrupted = false;     // these are those that were found until then
};

// `difference` is asked for values within the range, each once; an empty answer ends the search with what
// there is (Ctrl-C).
using DifferenceFunction = std::function<std::optional<PairedComparison>(double x)>;
BreakevenResult find_breakeven(const KeyRange& range, std::size_t scan_points, Better better,
                               const DifferenceFunction& difference);

// A design, and whether the key is set in it.
struct KeyedDesign {
    TrialOptions trials;
    ScenarioChanges changes;
    bool has_key = true;
};
struct BreakevenDesigns {
    KeyRange range;
    std::string metric;  // empty: choose_metric says
    std::string why{};   // this metric; empty: somebody has named it
    KeyedDesign a{};
    KeyedDesign b{};
};

// The design with the key at x. Throws ScenarioError, which says at what value of the key.
Scenario load_at(const BreakevenDesigns& designs, const KeyedDesign& design, double x);
// `at_ends`: a at both ends of the range, then b. Throws ScenarioError when they can't be paired, or have no
// such metric.
void choose_metric(BreakevenDesigns& designs, const std::vector<Scenario>& at_ends);
// `tried` is called after each value.
BreakevenResult find_breakeven(const BreakevenDesigns& designs, std::size_t scan_points,
                               const std::function<void()>& tried);

// The estimates that the verdicts at either end of the key's range hang on.
struct EstimatesAtEnds {
    VerdictEstimates low;
    VerdictEstimates high;

    // The better design at one end is the worse at the other.
    bool crosses() const { return (low.judged.difference > 0) != (high.judged.difference > 0); }
    // Estimates at an end of which the better design is the same at both ends of the range where it was not,
    // or is not where it was: the crossing leaves the range, or comes into it.
    std::vector<std::string> turning() const;
};
EstimatesAtEnds estimates_at_ends(const BreakevenDesigns& designs, const BreakevenResult& result);

}  // namespace railyard
