#pragma once
// Failures that come as often as jobs run, whatever their size: at a rate for each running job
// (FailureCause::rate_per_job), on a node of it.

#include <map>
#include <vector>

#include "models/failure/failure.h"
#include "models/scheduler/world_scheduler.h"

namespace railyard {

class WorldJobStrikes : public CampaignEngine::Component {
  public:
    // Struck nodes go to `target`, which takes a strike as hard as the node deserves. References must outlive
    // it.
    WorldJobStrikes(CampaignEngine& engine, const WorldView& world,
                    const std::vector<FailureCause>& causes, FailureSource::Target& target,
                    std::uint64_t seed, std::uint64_t replica);
    static bool any(const std::vector<FailureCause>& causes);

    void started(JobIndex job);  // a run of it
    void stopped(JobIndex job);
    void handle(std::uint32_t job) override;

  private:
    struct Run {
        RandomStream stream;
        EventId next{};
    };
    void schedule(JobIndex job, Run& run);
    std::size_t draw_cause(RandomStream& stream) const;

    CampaignEngine& engine_;
    const WorldView& world_;
    const std::vector<FailureCause>& causes_;
    FailureSource::Target& target_;
    std::uint64_t seed_;
    std::uint64_t replica_;
    CampaignEngine::ComponentId id_;
    Rate ordinary_;  // of all causes, for a job without lemons
    std::map<JobIndex, Run> runs_;
    std::map<JobIndex, std::uint64_t> runs_before_;
};

}  // namespace railyard
