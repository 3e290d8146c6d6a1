#pragma once
// The answer to a question: the best few designs in many worlds, what each would be regretted by, and what
// would change the decision.

#include "tools/study/design_regret.h"
#include "tools/study/design_search.h"
#include "tools/study/verdict_estimates.h"

namespace railyard {

// A line of a design's cost that is another one's in part only.
struct CostStep {
    std::string what;
    double usd = 0;  // a year, at typical prices: the next design's less this one's
};

// Why the next design costs what it does, for the same tokens.
struct NextDesign {
    std::vector<CostStep> lines;  // largest first
    double cost_per_year = 0;     // the next design's less this one's
    double work = 0;              // the next one's work a year over this one's
    PairedComparison pairs;       // of the objective's figure, the next one's less this one's
    // The next one is as good, in the mean no worse: this one leads as the cheaper.
    bool by_price = false;
};

struct AnsweredDesign {
    std::size_t design = 0;  // of the search
    Interval half;           // of its figure: luck, estimates, prices and the models' error
    Interval nine_tenths;
    double model_error = 0;  // half of the width that the last alone makes, relative
    Regret regret;
    std::optional<NextDesign> next;  // none: it is the last
};

// An estimate or a price whose other end makes another design the best.
struct Turning {
    std::string input;
    std::string value;  // as it is; empty: a price
    std::string low;    // the ends that were tried
    std::string high;
    std::optional<std::string> breakeven;  // where the two best are worth the same
    bool price = false;
};

struct DesignAnswer {
    std::vector<AnsweredDesign> designs;      // best first
    std::vector<std::vector<double>> regret;  // as regret_table
    std::vector<InputWorth> worth;
    std::vector<Turning> turning;
    double luck_share =
        0;  // of worlds that differ from the usual in luck alone in which the second wins
    std::size_t worlds = 0;  // that all designs are possible in
    std::size_t inputs = 0;  // drawn
    bool interrupted = false;
};

// What a search that came to its end answers.
DesignAnswer answer_question(const DesignQuestion& question, const DesignSearch& search,
                             const SearchOptions& options);

// What is a price, and is known once somebody has a quote.
bool is_price(const std::string& input);

}  // namespace railyard
