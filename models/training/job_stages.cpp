// Stages and pauses of a job: what comes between two steps because the scenario says so.

#include <algorithm>
#include <utility>

#include "models/training/job.h"
#include "sim/integers.h"

namespace railyard {

JobSpec job_after(JobSpec job, const JobSoFar& so_far) {
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
    so_far.steps += outcome.steps_kept;
    so_far.steps_to_target +=
        outcome.steps_kept - ceil_div(outcome.replica_steps_missing, job.replicas);
    so_far.by_stage.resize(outcome.stages.size());
    for (std::size_t i = 0; i < outcome.stages.size(); ++i) {
        so_far.by_stage[i] += outcome.stages[i].kept.steps;
    }
    so_far.had_pause.resize(outcome.had_pause.size());
    for (std::size_t i = 0; i < outcome.had_pause.size(); ++i) {
        so_far.had_pause[i] = so_far.had_pause[i] || outcome.had_pause[i];
    }
    so_far.pause_left = outcome.pause_left;
    so_far.pause_restarts = outcome.pause_restarts;
}

void TrainingJob::schedule_dates() {
    const auto at = [&](const std::optional<Instant>& date) {
        if (date && *date > engine_.now()) engine_.schedule(*date, id_, date_due);
    };
    for (std::size_t i = 0; i < schedule_.stages(); ++i) at(schedule_.stage(i).until);
    for (const PauseSpec& pause : spec_.pauses) at(pause.at);
}

std::int64_t TrainingJob::checkpoint_steps() const {
    const std::int64_t own = schedule_.stage(stage_).checkpoint_steps;
    return own > 0 ? own : spec_.checkpoint.interval_steps;
}

// What the next step needs: its stage, which may take a stop, and a stop that is due.
void TrainingJob::look_at_schedule() {
    schedule_.look_at_date(done(), engine_.now());
    if (planned_stop_) return;
    const std::size_t next = schedule_.stage_at(done());
    if (next != stage_) {
        // Back behind its beginning, a job undoes what a stage has changed.
        const StageSpec& changed = schedule_.stage(std::max(next, stage_));
        if (changed.restarts) planned_stop_ = next > stage_ ? changed.stop : Duration{};
        if (!changed.restarts) enter_stage(next);
    }
    const std::optional<std::size_t> pause = pauses_.due(done(), engine_.now());
    if (pause && spec_.pauses[*pause].restart) {
        planned_stop_ = std::max(planned_stop_.value_or(Duration{}), spec_.pauses[*pause].duration);
        pause_to_stop_ = pause;
    }
}

void TrainingJob::enter_stage(std::size_t stage) {
    if (staged()) outcome_.stages[stage_].wall += engine_.now() - stage_since_;
    stage_since_ = engine_.now();
    stage_ = stage;
    if (staged()) record("stage", schedule_.stage(stage).name, -1, done());
}

void TrainingJob::begin_pause(std::size_t pause) {
    pauses_.began(pause, done());
    if (!spec_.pauses[pause].goes_on) ++outcome_.pauses;
    record("pause", spec_.pauses[pause].name, -1, done());
    enter(JobPhase::pause);
    end_phase_after(spec_.pauses[pause].duration, phase_end);
}

// What is saved is on the store by now. The nodes stay until the stop is over.
void TrainingJob::begin_planned_stop() {
    const Duration lasts = *std::exchange(planned_stop_, std::nullopt);
    if (pause_to_stop_) {
        pauses_.began(*pause_to_stop_, done());
        if (!spec_.pauses[*pause_to_stop_].goes_on) {
            ++outcome_.pauses;
        } else {
            --outcome_.planned_interruptions;
        }
    }
    record("planned_stop", pause_to_stop_ ? spec_.pauses[*pause_to_stop_].name : std::string(), -1,
           done());
    pause_to_stop_.reset();
    const std::size_t next = schedule_.stage_at(done());
    if (next != stage_) enter_stage(next);
    stop_for(lasts);
}

// Those that the stage has no use for, as spares.
void TrainingJob::return_nodes() {
    for (std::int64_t slot = spec_.nodes; slot-- > wanted_nodes();) {
        if (pool_.node_in(slot) < 0) continue;
        pool_.release(slot);
        left(slot);
        state_leaves(slot);
    }
}

void TrainingJob::end_stages(Duration partial) {
    if (!staged()) return;
    outcome_.stepping += partial;
    outcome_.stages[stage_].wall += engine_.now() - stage_since_;
    const std::vector<StepSchedule::Done> done = schedule_.done(book_.done());
    for (std::size_t i = 0; i < done.size(); ++i) outcome_.stages[i].kept = done[i];
}

}  // namespace railyard
