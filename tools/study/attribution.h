#pragma once
// Why goodput is not 100 %: what each cause of loss takes, alone, last, and as its fair share of all of them.
// README.md, "What explain prints", has the definitions.

#include <optional>
#include <string>
#include <vector>

#include "sim/shapley.h"
#include "tools/study/trials.h"

namespace railyard {

struct CauseOfLoss {
    LossCause cause;
    // Gains of goodput, paired by replica. Not set: Ctrl-C came first.
    std::optional<Summary> share;
    double sampling_error =
        0;  // standard error of the share over sampled orders; 0 when all were counted
    std::optional<Summary> alone;  // without this cause, the others as they are
    std::optional<Summary> last;   // without this cause, when all others are gone already
};

struct Attribution {
    std::vector<CauseOfLoss> causes;  // largest share first
    Summary goodput;                  // as it is
    std::optional<Summary> ideal;     // without all of them
    std::vector<double> residue;      // the ledger of that, by category
    std::size_t arms = 0;             // that were to be run
    std::size_t arms_done = 0;
    std::vector<std::pair<LossCauses, Ending>>
        unfinished;  // arms that are stuck, or ran into a limit

    bool complete() const { return arms_done == arms; }
};

// `options.metrics` is not used. `order_pairs` 0: all subsets of the causes; else only those that so many
// pairs of random orders need. Throws Interrupted when not even the scenario itself was run.
Attribution attribute_loss(const TrialOptions& options, const ScenarioChanges& changes,
                           const Scenario& scenario, std::int64_t order_pairs);

// "failures, stragglers"; "nothing".
std::string names_of_causes(const LossCauses& causes);
// What is left in a category when all causes are gone.
std::string_view residue_doc(Category category);

}  // namespace railyard
