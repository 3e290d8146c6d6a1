// Jobs that save to stores and tiers, or read from a store: a run goes from stage to stage, as its parts say.

#include <algorithm>
#include <utility>

#include "models/scheduler/world_runs.h"

namespace railyard {

void WorldRuns::begin_stage(JobIndex index, RunStage stage, const RunPlan& plan, Duration already) {
    LiveJob& j = jobs_[index];
    j.stage = stage;
    j.run = plan;
    j.run.step = j.step.duration();
    j.run_since = clock_.now() - already;
    jobs_[index].parts->run(stage == RunStage::working && !plan.stands_still,
                            stage != RunStage::setting_up);
    expect_end(index);
}

// What is done in it; the next stage begins.
void WorldRuns::book_stage(JobIndex index) {
    LiveJob& j = jobs_[index];
    clock_.engine.cancel(j.event);
    books_.book_until(index, clock_.now(), Unsaved::held_in_memory);
    j.run_since = clock_.now();
    j.pace_changes_at = Instant::max();  // the next stage begins at the pace of now
}

void WorldRuns::end_stage(JobIndex index) {
    book_stage(index);
    if (jobs_[index].stage == RunStage::working) return after_steps(index);
    WorldParts::Parts& parts = *jobs_[index].parts;
    if (std::exchange(parts.suspended, false)) return begin_work(index);  // it has its state
    const bool has_saved = parts.checkpointer.newest().number != 0;
    // One that ran before the campaign began has read it.
    const bool goes_on = jobs_[index].goes_on && outcome_.runs[index].starts == 1;
    const bool reads = parts.spec().read_at_start.bytes > Bytes{} && !goes_on;
    if (!has_saved && !reads) return begin_interval(index);
    begin_stage(index, RunStage::restoring, {.restore = RunPlan::open_ended});
    parts.checkpointer.restore(has_saved);
    links_.begin_transfer(index);
}

// ---- steps ----

// Its state is in GPU memory and saved: as if it had saved just now.
void WorldRuns::begin_interval(JobIndex index) {
    jobs_[index].begin_interval();
    if (auto& feed = jobs_[index].parts->feed) feed->resume_at(jobs_[index].work.done());
    begin_work(index);
}

// To the next save, or to the end.
void WorldRuns::begin_work(JobIndex index) {
    LiveJob& j = jobs_[index];
    if (j.leaves() && j.work.left() > 0) return leave_when_saved(index);
    std::optional<DataFeed>& feed = jobs_[index].parts->feed;
    if (feed) {
        feed->change(DataFeed::Use::steps);
        feed->look_at_epoch(jobs_[index].work.done());
    }
    if (feed && !feed->ready()) {
        links_.set_step(index);
        return begin_stage(index, RunStage::first_batch, {.first_batch = RunPlan::open_ended});
    }
    if (feed) feed->look_at_caches(jobs_[index].work.done());
    links_.set_step(index);
    RunPlan plan;
    plan.steps = std::min(j.work.left(), jobs_[index].steps_to_save());
    if (feed) plan.steps = std::min(plan.steps, feed->steps_ahead(jobs_[index].work.done()));
    plan.ends_safe = plan.steps == j.work.left();
    j.rerouted = false;
    if (j.cut_off) stand_still(index, plan);
    const Duration held = j.cut_off ? Duration{} : j.work.take_held();
    held > Duration{} ? resume_step(index, held) : begin_stage(index, RunStage::working, plan);
    links_.send_from(index, clock_.now());
}

// All that are done are whole.
void WorldRuns::after_steps(JobIndex index) {
    if (auto& feed = jobs_[index].parts->feed) feed->look_at_epoch(jobs_[index].work.done());
    const bool saves = jobs_[index].steps_to_save() == 0 || jobs_[index].leaves();
    const bool unsaved = jobs_[index].parts->checkpointer.unsaved(jobs_[index].work.done()) > 0;
    saves&& unsaved&& jobs_[index].work.left() > 0 ? begin_save(index) : begin_work(index);
}

// What is left of the step under way takes as long as things are now.
void WorldRuns::pace_of_parts_changed(JobIndex index) {
    LiveJob& j = jobs_[index];
    links_.uploads_changed(index);
    if (!j.runs() || j.stage != RunStage::working) return;
    if (j.run.stands_still) return;
    owner_.book_free();
    const Duration partial = j.run.after(clock_.now() - j.run_since).partial;
    clock_.engine.cancel(j.event);
    books_.book_until(index, clock_.now() - partial, Unsaved::held_in_memory);
    j.run_since = clock_.now();
    j.pace_changes_at = Instant::max();  // it is looked at again after this step
    partial == Duration{} ? after_steps(index) : resume_step(index, partial);
}

void WorldRuns::resume_step(JobIndex index, Duration partial) {
    LiveJob& j = jobs_[index];
    WorldParts::Parts& parts = *jobs_[index].parts;
    j.step.data_wait -= parts.wait;
    const bool slowed = parts.checkpointer.uploading();
    // On the links of steps its own upload has cost this step what it has by now.
    const bool all_of_it = j.kind.uploads_on_links && !slowed;
    const Duration penalty = all_of_it ? j.step.upload : parts.spec().upload_step_penalty;
    if (std::exchange(parts.slowed, slowed) != slowed) {
        upload_changes(j.step, partial, slowed, penalty);
    }
    // A step that has waited long enough, as things are now, is over.
    parts.wait = std::max(parts.extra_wait(), partial - j.step.duration());
    j.step.data_wait += parts.wait;
    begin_stage(index, RunStage::working, {.steps = 1, .ends_safe = j.work.left() == 1}, partial);
}

void WorldRuns::first_batch_there(JobIndex index) {
    if (!jobs_[index].runs() || jobs_[index].stage != RunStage::first_batch) return;
    owner_.book_free();
    book_stage(index);
    begin_work(index);
}

// ---- saves and restores ----

void WorldRuns::begin_save(JobIndex index) {
    WorldParts::Parts& parts = *jobs_[index].parts;
    begin_stage(index, RunStage::saving, {.last_stall = RunPlan::open_ended});
    if (parts.checkpointer.save(jobs_[index].work.done(), jobs_[index].leaves())) {
        links_.begin_transfer(index);
    }
}

void WorldRuns::stall_over(JobIndex index) {
    owner_.book_free();
    book_stage(index);
    links_.end_transfer(index);
    books_.keep_what_lasts(index);
    begin_work(index);
}

void WorldRuns::restored(JobIndex index) {
    owner_.book_free();
    book_stage(index);
    links_.end_transfer(index);
    begin_interval(index);
}

// What runs, or is suspended, has its state in GPU memory. What reads it back reads what is left.
void WorldRuns::copies_lost(JobIndex index) {
    LiveJob& j = jobs_[index];
    const bool running = j.runs();
    const bool reads = running && j.stage == RunStage::restoring;
    const bool starts =
        running && j.stage == RunStage::setting_up && !jobs_[index].parts->suspended;
    const bool suspended = j.status.phase == WorldPhase::suspended && j.parts->suspended;
    const bool in_memory = running ? !reads && !starts : suspended;
    const bool done = j.status.phase == WorldPhase::completing && !j.next.waits;
    if (in_memory || done) return;
    owner_.book_free();
    if (reads) links_.end_transfer(index);
    if (reads) book_stage(index);
    const std::int64_t before = j.work.left();
    j.lose_unsaved({});
    run_.record(clock_.now(), "data_lost", index, "storage", no_node, j.work.left() - before);
    if (reads) end_stage(index);
}

void WorldRuns::moved_on(JobIndex index) {
    owner_.book_free();
    books_.keep_what_lasts(index);
    Saver& saver = jobs_[index].parts->checkpointer;
    const Saver::Waits come = saver.come();
    if (come == Saver::Waits::buffer) {
        saver.begin_stall(jobs_[index].work.done(), jobs_[index].leaves());
        links_.begin_transfer(index);
    } else if (come == Saver::Waits::upload) {
        book_stage(index);
        leave_when_saved(index);
    }
}

// It leaves when its state is where nothing takes it away.
void WorldRuns::leave_when_saved(JobIndex index) {
    WorldParts::Parts& parts = *jobs_[index].parts;
    if (!parts.checkpointer.idle()) {
        begin_stage(index, RunStage::saving, {.last_stall = RunPlan::open_ended});
        parts.checkpointer.wait_for(Saver::Waits::upload);
    } else if (parts.checkpointer.lasting_steps() < jobs_[index].work.done()) {
        begin_save(index);
    } else {
        left(index);
    }
}

}  // namespace railyard
