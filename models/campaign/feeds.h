#pragma once
// What feeds and cools nodes, on the campaign's clock: breakers that trip under the swing of jobs, and loops
// that lose their pump. Either takes all nodes behind it at one instant.

#include <functional>
#include <map>
#include <optional>
#include <set>
#include <utility>
#include <vector>

#include "models/campaign/power.h"
#include "models/scheduler/scheduler.h"

namespace railyard {

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
    std::vector<Strike> injected_;
    std::map<std::uint32_t, Strike> warming_;  // by loop: its flow is lost, its nodes still run
    GpuMean gpu_mean_;
    std::int64_t losses_ = 0;
    std::int64_t ridden_through_ = 0;
};

// What a job draws: each of its nodes over a step, and one of its GPUs in the mean. The step outlives it.
struct JobDraw {
    const PowerProfile* node = nullptr;
    Watts gpu_mean;
};

// The breakers and loops of a cluster's nodes, as the scenario has them: a breaker sees the sum of the jobs
// behind it, a loop the mean of its GPUs.
class Feeds {
  public:
    // The nodes are alike, each with so many parts that jobs hold; `highest` is the most that one draws.
    // References must outlive it.
    Feeds(CampaignEngine& engine, Renewals::Target& target, const PowerSpec& power,
          const FailureDomains& loops, std::int64_t nodes, std::int64_t parts_per_node,
          const PowerProfile& highest, std::uint64_t seed, std::uint64_t replica);
    // From now on the job draws that, on these and on no others: GPUs of so many parts each.
    void set(JobIndex job, const JobDraw& draw, const Allocation& gpus, std::int64_t parts);
    void leave(JobIndex job);
    FeedCounts counts() const;

  private:
    using Touched = std::set<std::size_t>;  // breakers that are watched
    struct Running {
        JobDraw draw;
        Allocation gpus;
        std::int64_t parts = 0;
        Touched breakers{};  // in front of these
    };
    double nodes_of(const Running& job, const NodeShare& share) const;
    Touched take_out(JobIndex job);
    void renew(const Touched& touched);
    Breaker::Load load_of(std::size_t watched);
    Watts gpu_mean(std::int64_t loop) const;

    const PowerSpec& power_;
    const FailureDomains& loops_;
    double parts_per_node_;
    std::optional<Breakers> breakers_;
    std::optional<PumpWatch> pumps_;
    std::map<JobIndex, Running> running_;
    std::vector<std::optional<std::size_t>> breaker_of_node_;  // those that are watched
    std::vector<std::map<JobIndex, double>> behind_;           // by these: nodes, or parts of them
    using Alone = std::pair<const PowerProfile*, double>;      // one job, with so many nodes
    std::vector<std::map<Alone, Breaker::Load>> alone_;        // likewise: what it does to them
    std::vector<std::int64_t> loop_of_node_;
};

}  // namespace railyard
