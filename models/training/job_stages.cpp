#include "models/training/job_stages.h"

#include <utility>

namespace railyard {

namespace {

// A job without stages is one that never ends.
std::vector<StageSpec> stages_of(const JobSpec& spec) {
    if (!spec.stages.empty()) return spec.stages;
    StageLevel all;
    all.step = spec.step;
    all.slowed = spec.slowed;
    StageSpec stage;
    stage.nodes = spec.nodes;
    stage.levels = {all};
    return {stage};
}

}  // namespace

JobStages::JobStages(const JobSpec& spec)
    : spec_(spec), schedule_(stages_of(spec)), pauses_(spec.pauses), walls_(schedule_.stages()) {}

void JobStages::begin(Instant now, std::int64_t steps) {
    since_ = now;
    began_with_ = steps;
    schedule_.look_at_date(steps, now);
    pauses_.begin_after(steps);
    stage_ = schedule_.stage_at(steps);
}

std::vector<Instant> JobStages::dates_after(Instant now) const {
    std::vector<Instant> out;
    const auto at = [&](const std::optional<Instant>& date) {
        if (date && *date > now) out.push_back(*date);
    };
    for (std::size_t i = 0; i < schedule_.stages(); ++i) at(schedule_.stage(i).until);
    for (const PauseSpec& pause : spec_.pauses) at(pause.at);
    return out;
}

std::int64_t JobStages::checkpoint_steps() const {
    const std::int64_t own = stage().checkpoint_steps;
    return own > 0 ? own : spec_.checkpoint.interval_steps;
}

void JobStages::back_to(std::int64_t steps) {
    schedule_.back_to(steps);
    pauses_.back_to(steps);
}

bool JobStages::look(std::int64_t steps, Instant now) {
    schedule_.look_at_date(steps, now);
    if (stop_) return false;
    bool entered = false;
    const std::size_t next = schedule_.stage_at(steps);
    if (next != stage_) {
        // Back behind its beginning, a job undoes what a stage has changed.
        const StageSpec& changed = schedule_.stage(std::max(next, stage_));
        if (changed.restarts) stop_ = next > stage_ ? changed.stop : Duration{};
        entered = !changed.restarts;
        if (entered) enter(next, now);
    }
    const std::optional<std::size_t> pause = pauses_.due(steps, now);
    if (pause && spec_.pauses[*pause].restart) {
        stop_ = std::max(stop_.value_or(Duration{}), spec_.pauses[*pause].duration);
        stops_for_ = pause;
    }
    return entered;
}

void JobStages::enter(std::size_t stage, Instant now) {
    walls_[stage_] += now - since_;
    since_ = now;
    stage_ = stage;
}

JobStages::Stop JobStages::begin_stop(std::int64_t steps, Instant now) {
    if (std::exchange(maintenance_, false)) return {"maintenance", spec_.maintenance.duration};
    Stop out{"planned_stop", *stop_};
    if (stops_for_) {
        began(*stops_for_, steps);
        out.pause = spec_.pauses[*stops_for_].name;
        out.goes_on = spec_.pauses[*stops_for_].goes_on;
    }
    forget_stop();
    const std::size_t next = schedule_.stage_at(steps);
    out.enters_stage = next != stage_;
    if (out.enters_stage) enter(next, now);
    return out;
}

void JobStages::forget_stop() {
    stop_.reset();
    stops_for_.reset();
}

const PauseSpec* JobStages::begin_pause(std::int64_t steps, Instant now) {
    const std::optional<std::size_t> pause = pauses_.due(steps, now);
    if (!pause) return nullptr;
    began(*pause, steps);
    return &spec_.pauses[*pause];
}

void JobStages::began(std::size_t pause, std::int64_t steps) {
    pauses_.began(pause, steps);
    if (!spec_.pauses[pause].goes_on) ++pauses_begun_;
}

std::vector<StageOutcome> JobStages::outcome(std::int64_t steps, std::int64_t safe,
                                             Instant now) const {
    if (spec_.stages.empty()) return {};
    const std::vector<StepSchedule::Done> all = schedule_.done(steps);
    const std::vector<StepSchedule::Done> before = schedule_.done(began_with_);
    const std::vector<StepSchedule::Done> lasting = schedule_.done(safe);
    std::vector<StageOutcome> out;
    for (std::size_t i = 0; i < all.size(); ++i) {
        StepSchedule::Done kept = all[i];
        kept.steps -= before[i].steps;
        kept.tokens -= before[i].tokens;
        kept.model_flops -= before[i].model_flops;
        kept.time -= before[i].time;
        out.push_back({kept, lasting[i].steps, walls_[i]});
    }
    out[stage_].wall += now - since_;
    return out;
}

}  // namespace railyard
