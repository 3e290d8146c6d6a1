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

// All breakers that could ever trip under the job's step. Between two changes of what the job does their
// warmth is a closed form, so a trip is one event, after however many steps.
class BreakerWatch : public CampaignEngine::Component, public PhaseWatcher {
  public:
    // `target` is struck with the number of the breaker in `slot`. References must outlive the watch.
    BreakerWatch(CampaignEngine& engine, Renewals::Target& target, std::size_t cause,
                 const PowerSpec& power, std::int64_t nodes, JobNodesBehind job_nodes,
                 std::uint64_t seed, std::uint64_t replica);

    void phase_changed(JobPhase now) override;
    void handle(std::uint32_t watched) override;
    std::int64_t trips() const { return trips_; }

  private:
    struct Watched {
        std::int64_t number = 0;
        std::int64_t nodes = 0;
        Breaker breaker;
        const Breaker::Load* load = nullptr;  // none: its nodes are off
        std::map<std::pair<JobPhase, std::int64_t>, Breaker::Load> loads;  // by nodes in the job
    };
    const Breaker::Load& load_of(Watched& watched, JobPhase phase, std::int64_t in_job) const;
    void carry();
    void look_ahead();

    CampaignEngine& engine_;
    Renewals::Target& target_;
    std::size_t cause_;
    const PowerSpec& power_;
    JobNodesBehind job_nodes_;
    CampaignEngine::ComponentId id_;
    std::vector<Watched> watched_;
    Instant carried_until_{};
    EventId next_;
    std::int64_t trips_ = 0;
};

// What a node draws in a phase of its job.
PowerProfile node_load(const PowerSpec& power, JobPhase phase);

// Stands between the pumps' failures and what they take: a loop rides through, or its nodes are off a while
// later.
class PumpWatch : public CampaignEngine::Component, public PhaseWatcher, public Renewals::Target {
  public:
    PumpWatch(CampaignEngine& engine, Renewals::Target& target, const PowerSpec& power,
              std::uint64_t seed, std::uint64_t replica);
    void start();  // the losses at random and those at known times

    void phase_changed(JobPhase now) override { running_ = now == JobPhase::running; }
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
    bool running_ = false;
    std::int64_t losses_ = 0;
    std::int64_t ridden_through_ = 0;
};

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
};

}  // namespace railyard
