#pragma once
// What feeds and cools the nodes of many jobs: a breaker sees the sum of those behind it, a loop their mean.

#include <map>
#include <optional>
#include <vector>

#include "models/campaign/feeds.h"
#include "models/campaign/world.h"

namespace railyard {

// Listens to many jobs on nodes of one kind, and strikes the nodes.
class WorldFeeds : public WorldListener {
  public:
    // References must outlive it. All calls go on to `next`.
    WorldFeeds(const Scenario& scenario, const WorldJobs& jobs, std::uint64_t replica,
               WorldListener& next);
    void begins(CampaignEngine& engine, Renewals::Target& nodes) override;
    void started(JobIndex job, Instant now, const Allocation& gpus) override;
    void stopped(JobIndex job, Instant now) override;
    void promised(JobIndex job, Instant now, Instant start) override;
    FeedCounts counts() const;

  private:
    const NodeDraw& draw_of(JobIndex job) const;
    double nodes_of(JobIndex job, const NodeShare& share) const;
    void renew_loads(const Allocation& gpus);
    Breaker::Load load_of(std::size_t watched) const;
    Watts gpu_mean(std::int64_t loop) const;

    const Scenario& s_;
    const WorldSpec& spec_;
    const WorldJobs& jobs_;
    std::uint64_t replica_;
    WorldListener& next_;
    std::optional<Breakers> breakers_;
    std::optional<PumpWatch> pumps_;
    std::map<JobIndex, Allocation> running_;
    std::vector<std::optional<std::size_t>> breaker_of_node_;  // those that are watched
    std::vector<std::map<JobIndex, double>> behind_;           // by these: nodes, or parts of them
    std::vector<std::int64_t> loop_of_node_;
};

}  // namespace railyard
