#pragma once
// What is known of a design before anything of it is simulated: what it costs to buy, draws and needs of the
// floor, its parallel plan, and the most that it can train if nothing ever fails.

#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "models/campaign/campaign.h"

namespace railyard {

struct DesignFacts {
    std::string problem;                // why there is no such design; then nothing else is set
    std::vector<std::string> settings;  // all of them, those of its plan included
    double capital = 0;                 // USD, at typical prices; 0 without [cost]
    double power = 0;                   // W: what nodes and switches are rated for, times PUE
    double racks = 0;
    std::int64_t gpus = 0;
    double tokens_per_day_most = 0;  // if nothing ever fails; 0: not known
    double utilisation = 1;          // share of its days that it is in use
    double cost_per_year_least = 0;  // USD, while nothing runs
    std::size_t draws = 0;           // of the network's luck
    // In the mean over replicas, with the failures and saves that every replica has.
    double tokens_per_day_mean_most = 0;
    std::optional<double> cost_per_1e12_mean_least;  // USD
};

// Reads designs of one scenario; from any thread.
class DesignReader {
  public:
    DesignReader(const std::string& text, const std::string& file,
                 std::shared_ptr<WindowCache> windows);

    // `settings` without a plan's: one is found, on an ideal network once for all designs on which the same
    // job runs on the same nodes, or `on_flows`.
    DesignFacts read_planned(std::vector<std::string> settings, bool on_flows);
    // The settings of the fastest plan of a changed scenario, found on an ideal network. None: there is none.
    std::optional<std::vector<std::string>> replanned(ScenarioChanges changes) const;
    // With a plan already. Designs that differ in how often they save alone are read once: what is wrong with
    // one of these shows when it is run.
    DesignFacts facts_of(std::vector<std::string> settings);
    Document document(const std::vector<std::string>& settings) const;
    Scenario scenario(const std::vector<std::string>& settings) const;

    std::int64_t plans_tried() const { return plans_tried_; }

  private:
    struct Planned {
        std::string problem;
        std::vector<std::string> settings;
        std::int64_t tried = 0;
    };
    // What all designs share that differ only in how often they save.
    struct Shared {
        DesignFacts facts;
        std::optional<KeptBound> kept;
        double running_cost = 0;  // USD, more for each token that is kept
        bool priced = false;
    };
    Shared read_shared(const std::vector<std::string>& settings) const;
    Planned plan_of(Document design, ScenarioChanges changes, bool on_flows) const;

    Document base_;
    std::shared_ptr<WindowCache> windows_;
    std::mutex mutex_;  // of what is below
    std::map<std::string, std::shared_ptr<Planned>> plans_;
    std::map<std::string, std::shared_ptr<const Shared>> shared_;
    std::int64_t plans_tried_ = 0;
};

// The keys of [job.parallel] that searching a plan decides, as settings.
std::vector<std::string> settings_of_plan(const ParallelPlan& plan);
// Whether the search decides this key.
bool decided_by_plan(const std::string& key);

}  // namespace railyard
