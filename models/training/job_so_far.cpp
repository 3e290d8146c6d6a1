// A job that goes on in another campaign.

#include <algorithm>

#include "models/training/job.h"
#include "sim/integers.h"

namespace railyard {

std::int64_t StepsAtRisk::count() const {
    std::int64_t sum = 0;
    for (const auto& each : done) sum += each.steps;
    return sum;
}

std::int64_t StepsAtRisk::replica_steps_missing() const {
    std::int64_t sum = 0;
    for (const auto& each : done) sum += each.steps * each.by.replicas_missing;
    return sum;
}

JobSpec job_after(JobSpec job, const JobSoFar& so_far) {
    job.at_risk = so_far.at_risk;
    if (job.target_steps > 0) {
        job.target_steps = std::max<std::int64_t>(1, job.target_steps - so_far.steps_to_target);
    }
    for (std::size_t i = 0; i < so_far.by_stage.size() && i < job.stages.size(); ++i) {
        std::int64_t done = so_far.by_stage[i];
        for (StageLevel& level : job.stages[i].levels) {
            if (level.steps >= endless) break;
            const std::int64_t part = std::min(done, level.steps);
            level.steps -= part;
            done -= part;
        }
    }
    for (std::size_t i = 0; i < job.pauses.size(); ++i) {
        PauseSpec& pause = job.pauses[i];
        pause.steps_before = so_far.steps;
        pause.over = i < so_far.had_pause.size() && so_far.had_pause[i];
        if (pause.at_step > 0) {
            pause.at_step = std::max<std::int64_t>(1, pause.at_step - so_far.steps);
        }
    }
    if (so_far.pause_left > Duration{}) {
        PauseSpec rest;
        rest.name = "the pause under way";
        rest.at = Instant{};
        rest.duration = so_far.pause_left;
        rest.restart = so_far.pause_restarts;
        rest.goes_on = true;
        job.pauses.push_back(rest);
    }
    return job;
}

void add_to(JobSoFar& so_far, const JobSpec& job, const JobOutcome& outcome) {
    const std::int64_t safe = outcome.steps_kept + job.at_risk.count() - outcome.at_risk.count();
    const std::int64_t missing = outcome.replica_steps_missing +
                                 job.at_risk.replica_steps_missing() -
                                 outcome.at_risk.replica_steps_missing();
    so_far.steps += safe;
    so_far.steps_to_target += safe - ceil_div(missing, job.replicas);
    so_far.at_risk = outcome.at_risk;
    so_far.by_stage.resize(outcome.stages.size());
    for (std::size_t i = 0; i < outcome.stages.size(); ++i) {
        so_far.by_stage[i] += outcome.stages[i].safe;
    }
    so_far.had_pause.resize(outcome.had_pause.size());
    for (std::size_t i = 0; i < outcome.had_pause.size(); ++i) {
        so_far.had_pause[i] = so_far.had_pause[i] || outcome.had_pause[i];
    }
    so_far.pause_left = outcome.pause_left;
    so_far.pause_restarts = outcome.pause_restarts;
}

}  // namespace railyard
