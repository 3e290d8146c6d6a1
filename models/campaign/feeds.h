#pragma once
// What feeds and cools nodes, on the campaign's clock: breakers that trip under the job's swing, and loops
// that lose their pump. Either takes all nodes behind it at one instant.

#include <functional>
#include <map>

#include "models/campaign/power.h"
#include "models/scheduler/scheduler.h"

namespace railyard {

// How many nodes of the job stand behind each breaker now.
using JobNodesBehind = std::function<std::vector<std::int64_t>()>;

// A load that does not change.
PowerProfile steady(Watts power);

// All breakers that could ever trip. Between two changes of its load a breaker's warmth is a closed form, so
// a trip is one event, after however many steps.
class Breakers : public CampaignEngine::Component {
  public:
    // Each with `spec.nodes` of the nodes behind it; `highest` is the most that one of them draws. `target`
    // is struck with the number of the breaker in `slot`. References must outlive this.
    Breakers(CampaignEngine& engine, Renewals::Target& target, std::size_t cause,
             const BreakerSpec& spec, std::int64_t nodes, const PowerProfile& highest,
             std::uint64_t seed, std::uint64_t replica);

    std::size_t count() const { return watched_.size(); }
    std::int64_t number(std::size_t watched) const { return watched_[watched].number; }
    std::int64_t nodes(std::size_t watched) const { return watched_[watched].nodes; }
    Breaker::Load load(std::size_t watched, const PowerProfile& profile) const {
        return watched_[watched].breaker.load(profile);
    }
    // From now on. After a trip it carries nothing until it is given a load again.
    void set_load(std::size_t watched, Breaker::Load load);
    void handle(std::uint32_t watched) override;
    std::int64_t trips() const { return trips_; }

  private:
    struct Watched {
        std::int64_t number = 0;
        std::int64_t nodes = 0;
        Breaker breaker;
        Breaker::Load load{};
        Instant since{};  // it carries that
        EventId trip{};
    };

    CampaignEngine& engine_;
    Renewals::Target& target_;
    std::size_t cause_;
    CampaignEngine::ComponentId id_;
    std::vector<Watched> watched_;
    std::int64_t trips_ = 0;
};

// The breakers of one job.
class BreakerWatch : public PhaseWatcher {
  public:
    BreakerWatch(CampaignEngine& engine, Renewals::Target& target, std::size_t cause,
                 const PowerSpec& power, std::int64_t nodes, JobNodesBehind job_nodes,
                 std::uint64_t seed, std::uint64_t replica);
    void phase_changed(JobPhase now) override;
    const Breakers& breakers() const { return breakers_; }

  private:
    const Breaker::Load& load_of(std::size_t watched, JobPhase phase, std::int64_t in_job);

    const PowerSpec& power_;
    JobNodesBehind job_nodes_;
    Breakers breakers_;
    using Key = std::pair<JobPhase, std::int64_t>;  // with so many nodes in the job
    std::vector<std::map<Key, Breaker::Load>> loads_;
};

// What a node draws in a phase of its job.
PowerProfile node_load(const PowerSpec& power, JobPhase phase);

// Stands between the pumps' failures and what they take: a loop rides through, or its nodes are off a while
// later.
class PumpWatch : public CampaignEngine::Component, public Renewals::Target {
  public:
    using GpuMean = std::function<Watts(std::int64_t loop)>;  // what its GPUs draw now, each
    PumpWatch(CampaignEngine& engine, Renewals::Target& target, const PowerSpec& power,
              GpuMean gpu_mean, std::uint64_t seed, std::uint64_t replica);
    void start();  // the losses at random and those at known times

    void failed(const Strike& strike) override;
    void handle(std::uint32_t loop) override;
    std::int64_t losses() const { return losses_; }
    std::int64_t ridden_through() const { return ridden_through_; }

  private:
    CampaignEngine& engine_;
    Renewals::Target& target_;
    const PowerSpec& power_;
    CampaignEngine::ComponentId id_;
    Renewals pumps_;
    std::map<std::uint32_t, Strike> warming_;  // by loop: its flow is lost, its nodes still run
    GpuMean gpu_mean_;
    std::int64_t losses_ = 0;
    std::int64_t ridden_through_ = 0;
};

FeedCounts count_feeds(const Breakers* breakers, const PumpWatch* pumps);

// Both, as the scenario has them.
class Feeds : public PhaseWatcher {
  public:
    Feeds(CampaignEngine& engine, NodePool& nodes, const PowerSpec& power,
          const NodePool::Spec& cluster, std::uint64_t seed, std::uint64_t replica);
    void start();
    void phase_changed(JobPhase now) override;
    FeedCounts counts() const;

  private:
    std::optional<BreakerWatch> breakers_;
    std::optional<PumpWatch> pumps_;
    bool running_ = false;
};

}  // namespace railyard
