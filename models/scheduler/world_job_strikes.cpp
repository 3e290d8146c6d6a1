#include "models/scheduler/world_job_strikes.h"

#include <fmt/format.h>

#include <algorithm>

#include "sim/check.h"

namespace railyard {

bool WorldJobStrikes::any(const std::vector<FailureCause>& causes) {
    return std::ranges::any_of(
        causes, [](const FailureCause& cause) { return cause.rate_per_job.per_second > 0; });
}

WorldJobStrikes::WorldJobStrikes(CampaignEngine& engine, const WorldView& world,
                                 const std::vector<FailureCause>& causes,
                                 FailureSource::Target& target, std::uint64_t seed,
                                 std::uint64_t replica)
    : engine_(engine),
      world_(world),
      causes_(causes),
      target_(target),
      seed_(seed),
      replica_(replica),
      id_(engine.add(*this, "failure/jobs")) {
    for (const FailureCause& cause : causes) ordinary_.per_second += cause.rate_per_job.per_second;
}

// A stream of its own for each run: what one job meets moves no other. A rate has no memory, so each run
// begins anew.
void WorldJobStrikes::started(JobIndex job) {
    const WorldJob& it = world_.job(job);
    const std::string name = fmt::format("failure/job/{}/{}/{}", world_.spec().kinds[it.kind].name,
                                         it.id, runs_before_[job]++);
    Run& run = runs_.insert_or_assign(job, Run{{seed_, replica_, name}}).first->second;
    schedule(job, run);
}

void WorldJobStrikes::stopped(JobIndex job) {
    const auto run = runs_.extract(job);
    if (!run.empty()) engine_.cancel(run.mapped().next);
}

// At the rate that a job of lemons alone would have: a node that is none takes its share of the strikes.
void WorldJobStrikes::schedule(JobIndex job, Run& run) {
    const Rate worst{ordinary_.per_second * world_.spec().lemons.rate_multiplier};
    const Duration gap = run.stream.interarrival(worst);
    run.next = {};
    if (gap > Instant::max() - engine_.now()) return;  // after the end of the clock
    run.next = engine_.schedule_cancellable(engine_.now() + gap, id_, job);
}

std::size_t WorldJobStrikes::draw_cause(RandomStream& stream) const {
    double which = stream.uniform() * ordinary_.per_second;
    std::size_t last = 0;
    for (std::size_t i = 0; i < causes_.size(); ++i) {
        const double rate = causes_[i].rate_per_job.per_second;
        if (rate <= 0) continue;
        if (which < rate) return i;
        which -= rate;
        last = i;
    }
    return last;  // rounding
}

void WorldJobStrikes::handle(std::uint32_t job) {
    Run& run = runs_.at(job);
    const Allocation& held = world_.status(job).held;
    RY_CHECK(!held.empty());
    Strike strike;
    strike.cause = draw_cause(run.stream);
    strike.job = job;
    strike.slot = held[run.stream.below(held.size())].node;
    strike.draw_consequences(run.stream);
    strike.draw_diagnosis(run.stream);
    schedule(job, run);  // of what the strike stops nothing is left
    target_.strike(strike);
}

}  // namespace railyard
