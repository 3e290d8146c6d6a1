#pragma once
// At what value of a key two designs are worth the same. README.md, "What breakeven prints", has the method.

#include <functional>
#include <optional>
#include <vector>

#include "sim/comparison.h"
#include "tools/study/key_range.h"

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

}  // namespace railyard
