#pragma once
// Many variants of one scenario, each run on the same random numbers.

#include <atomic>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "models/campaign/campaign.h"
#include "sim/comparison.h"
#include "tools/results/work_basis.h"

namespace railyard {

struct TrialOptions {
    std::string text;  // of the scenario, TOML
    std::string file;  // what messages call it
    std::vector<std::string> metrics;
    std::int64_t replicas = 0;  // at most; 0: as many as the scenario says
    bool prices = false;        // of scenarios with [cost], what prices leave open too
    bool steps = false;         // what the modelled step is made of too
    bool lacking = false;       // a metric that a variant lacks has no values, and is no error
    unsigned threads = 1;
    const std::atomic<bool>* cancelled = nullptr;
    // As trials finish, from any thread, one call at a time.
    std::function<void(std::int64_t done, std::int64_t total)> progress;
};

// What a modelled step is made of.
struct TrialStep {
    StepError error;  // how far such steps are from published ones
    double model_flops = 0;
    double causal_flops = 0;  // without the masked half of attention, as some tables count
    std::vector<std::pair<std::string, double>> parts{};  // of the critical path, in seconds
    double memory_capacity = 0;                           // of a GPU, in bytes
};

struct Trial {
    std::string problem;  // why there is no such design; then nothing but `problems` is set
    std::vector<Diagnostic> problems{};       // what is wrong with its scenario
    std::vector<std::vector<double>> values;  // by metric, then replica, ready to be paired
    std::vector<double> ledger;               // mean fraction by category
    std::vector<MemoryUse> memory;            // of a GPU, with a model
    std::vector<std::pair<std::string, double>> interruptions;  // by cause, mean over replicas
    std::optional<TrialStep> step;  // when it was asked for, with a model
    LossCauses causes;              // that are in it
    WorkBasis work;
    std::optional<CostStudy> cost;  // when it was asked for
    std::size_t draws = 0;          // of the network's luck, that its replicas share
    Ending ending = Ending::complete;
    std::uint64_t fingerprint = 0;  // of all metrics and the ledger: equal when nothing differs

    bool possible() const { return problem.empty(); }
    Summary summary(std::size_t metric) const {
        return summarise(values[metric], dealt_over(values[metric].size(), draws));
    }
};

// Two trials in pairs, in a metric by its number, which `name`s it: money at the same prices.
PairedComparison compare_trials(const Trial& a, const Trial& b, std::size_t metric,
                                const std::string& name);
// The same of the values alone: money at its typical prices.
PairedComparison compare_values(const Trial& a, const Trial& b, std::size_t metric, Better better);

// The change from before to after, in a metric by its number.
Summary summarise_change(const Trial& after, const Trial& before, std::size_t metric);

// In the order of `variants`; empty where Ctrl-C came first. Throws ScenarioError when a metric is none.
std::vector<std::optional<Trial>> run_trials(const TrialOptions& options,
                                             const std::vector<ScenarioChanges>& variants);

// The means of `options.metrics` with the numbers scaled so, over the same changes; empty where there is no
// such design. Fewer than asked for after Ctrl-C.
std::vector<std::vector<double>> means_with(const TrialOptions& options,
                                            const ScenarioChanges& changes,
                                            const std::vector<Perturbations>& variants);

// The range of one job's step over the draws of the network's luck, in seconds.
DrawRange range_of_steps(const Scenario& scenario);

// Whether a scenario's job can take a first step; if not, standard error has why and the program ends with
// exit_stuck.
bool takes_first_step(const Scenario& scenario);
// The same, after the scenario's warnings.
bool can_start(const Scenario& scenario);

// Says on standard error which budgets cut a scenario's numbers off, and returns the exit code for it.
int complain_of_limits(const std::vector<LimitReached>& limits);

// A campaign of a given length that came to its end with jobs that wait for ever.
struct Deadlock {
    std::string design;  // empty: the only one
    std::int64_t replica = 0;
    std::string report;
};
// Says so on standard error of each, as far as a person reads.
void warn_of_deadlocks(const std::vector<Deadlock>& deadlocks);

// The scenario must be able to start: a campaign of one replica is run for them.
// Throws ScenarioError with the nearest name when it has no metric of this name.
Metric find_metric(const Scenario& scenario, const std::string& name);

}  // namespace railyard
