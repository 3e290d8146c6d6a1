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
    double tokens_per_day_most = 0;             // 0: not known
    std::optional<double> cost_per_1e12_least;  // USD
    double cost_per_year_least = 0;             // USD, with nothing used
    std::size_t draws = 0;                      // of the network's luck
};

// Reads designs of one scenario; from any thread.
class DesignReader {
  public:
    DesignReader(std::string text, std::string file, bool search_plans,
                 std::shared_ptr<WindowCache> windows);

    // `settings` without a plan's; one is found where plans are searched, once for all designs on which the
    // same job runs on the same nodes.
    DesignFacts read(std::vector<std::string> settings);
    // With a plan already. What fails and how often the job saves changes none of the facts: they are read
    // once for all designs that differ in that alone, and what is wrong with one of these shows when it is
    // run.
    DesignFacts facts_of(std::vector<std::string> settings);
    Scenario scenario(const std::vector<std::string>& settings) const;

    std::int64_t plans_tried() const { return plans_tried_; }

  private:
    struct Planned {
        std::string problem;
        std::vector<std::string> settings;
        std::int64_t tried = 0;
    };
    std::string plan_key(const std::vector<std::string>& settings) const;
    std::string facts_key(const std::vector<std::string>& settings) const;
    DesignFacts read_facts(const std::vector<std::string>& settings) const;
    Planned plan_of(const std::vector<std::string>& settings) const;

    std::string text_;
    std::string file_;
    bool search_plans_;
    std::shared_ptr<WindowCache> windows_;
    std::mutex mutex_;  // of what is below
    std::map<std::string, std::shared_ptr<Planned>> plans_;
    std::map<std::string, DesignFacts> facts_;
    std::int64_t plans_tried_ = 0;
};

// The keys of [job.parallel] that searching a plan decides, as settings.
std::vector<std::string> settings_of_plan(const ParallelPlan& plan);
// Whether the search decides this key.
bool decided_by_plan(const std::string& key);

}  // namespace railyard
