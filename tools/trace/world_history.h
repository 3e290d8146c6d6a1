#pragma once
// One replica of many jobs, told from its log: when each ran, and counts over time.

#include <map>

#include "models/campaign/campaign.h"

namespace railyard {

// A job from a start to its end, to its return to the queue, or to where the replica ends.
struct JobStint {
    const WorldJob* job;
    Instant from;
    Instant until;
    Duration waited;
    std::int64_t first_node;
    std::string how;
    std::int64_t parts;  // of GPUs, that it holds

    double part_seconds() const { return static_cast<double>(parts) * seconds(until - from); }
};

class WorldHistory {
  public:
    // `result` has its log. Draws the replica's jobs again. The scenario must outlive it.
    WorldHistory(const Scenario& scenario, const ReplicaResult& result);

    struct Counts {
        std::int64_t running = 0;
        std::int64_t waiting = 0;
        std::int64_t parts = 0;  // of GPUs, that jobs hold
    };
    double gpus(std::int64_t parts) const {
        return static_cast<double>(parts) / static_cast<double>(spec_.parts_per_gpu());
    }
    std::size_t jobs() const { return jobs_.jobs.size(); }
    const std::map<Instant, Counts>& changes() const { return changes_; }
    const std::vector<JobStint>& stints() const { return stints_; }

  private:
    struct State {
        const WorldJob* job = nullptr;
        Instant since{};  // it waits, or runs
        bool runs = false;
        Duration waited{};
        std::int64_t first_node = -1;
    };
    void follow(State& state, const CampaignEvent& event);
    void close(State& state, Instant until, const std::string& how);
    std::int64_t parts_of(const WorldJob& job) const { return job.gpus * spec_.parts_of(job); }

    const WorldSpec& spec_;
    WorldJobs jobs_;
    std::map<Instant, Counts> changes_;
    std::vector<JobStint> stints_;
};

}  // namespace railyard
