// Jobs that save to stores and tiers, or read from a store: a run goes from stage to stage, as its parts say.

#include <algorithm>
#include <utility>

#include "models/scheduler/world_simulation.h"
#include "sim/integers.h"

namespace railyard {

namespace {

constexpr Duration open_ended = Duration::max() / 4;  // the stores say when

}  // namespace

void WorldSimulation::begin_stage(JobIndex index, Stage stage, const RunPlan& plan,
                                  Duration already) {
    Job& j = jobs_[index];
    j.stage = stage;
    j.run = plan;
    j.run.step = j.step.duration();
    j.run_since = now() - already;
    parts_of(index)->run(stage == Stage::working && !plan.stands_still, stage != Stage::setting_up);
    expect_end(index);
}

// The run is over: what its parts do from now on changes no step of it.
void WorldSimulation::leave_stage(JobIndex index) {
    WorldParts::Parts* parts = parts_of(index);
    if (parts == nullptr) return;
    jobs_[index].stage = Stage::setting_up;
    parts->checkpointer.wait_for(Saver::Waits::nothing);
    parts->run(false, false);
}

// What is done in it; the next stage begins.
void WorldSimulation::book_stage(JobIndex index) {
    engine_.cancel(jobs_[index].event);
    book_run(index, Unsaved::held_in_memory);
    jobs_[index].run_since = now();
}

void WorldSimulation::end_stage(JobIndex index) {
    book_stage(index);
    if (jobs_[index].stage == Stage::working) return after_steps(index);
    WorldParts::Parts& parts = *parts_of(index);
    const bool has_state = std::exchange(parts.suspended, false);
    if (has_state) return begin_work(index);
    const bool has_saved = parts.checkpointer.newest().number != 0;
    // One that ran before the campaign began has read it.
    const bool goes_on = job(index).goes_on && outcome_.runs[index].starts == 1;
    const bool reads = parts.spec().read_at_start.bytes > Bytes{} && !goes_on;
    if (!has_saved && !reads) return begin_interval(index);
    begin_stage(index, Stage::restoring, {.restore = open_ended});
    parts.checkpointer.restore(has_saved);
    begin_transfer(index);
}

// ---- steps ----

// Its state is in GPU memory and saved: as if it had saved just now.
void WorldSimulation::begin_interval(JobIndex index) {
    WorldParts::Parts& parts = *parts_of(index);
    parts.checkpointer.was_read(jobs_[index].work.done());
    if (parts.feed) parts.feed->resume_at(jobs_[index].work.done());
    begin_work(index);
}

std::int64_t WorldSimulation::steps_to_save(JobIndex index) const {
    const Job& j = jobs_[index];
    const Saver& saver = parts_of(index)->checkpointer;
    if (!saver.saves()) return std::max<std::int64_t>(1, j.work.left());
    const std::int64_t every = saver.spec().interval_wall > Duration{} ? 0 : j.save_every;
    const std::int64_t done = jobs_[index].work.done();
    return saver.due(done, every) ? 0 : saver.steps_until_due(done, every, j.step.duration());
}

// To the next save, or to the end.
void WorldSimulation::begin_work(JobIndex index) {
    Job& j = jobs_[index];
    if (j.slow_node != no_node && j.work.left() > 0) return part_with_slow_node(index);
    std::optional<DataFeed>& feed = parts_of(index)->feed;
    if (feed) {
        feed->change(DataFeed::Use::steps);
        feed->look_at_epoch(jobs_[index].work.done());
    }
    if (feed && !feed->ready()) {
        set_step(index);
        return begin_stage(index, Stage::first_batch, {.first_batch = open_ended});
    }
    if (feed) feed->look_at_caches(jobs_[index].work.done());
    set_step(index);
    RunPlan plan;
    plan.steps = std::min(j.work.left(), steps_to_save(index));
    if (feed) plan.steps = std::min(plan.steps, feed->steps_ahead(jobs_[index].work.done()));
    plan.ends_safe = plan.steps == j.work.left();
    j.rerouted = false;
    if (j.cut_off) stand_still(index, plan);
    begin_stage(index, Stage::working, plan);
    send_from(index, now());
}

// All that are done are whole.
void WorldSimulation::after_steps(JobIndex index) {
    if (auto& feed = parts_of(index)->feed) feed->look_at_epoch(jobs_[index].work.done());
    const bool saves = steps_to_save(index) == 0 || jobs_[index].slow_node != no_node;
    const bool unsaved = parts_of(index)->checkpointer.unsaved(jobs_[index].work.done()) > 0;
    saves&& unsaved&& jobs_[index].work.left() > 0 ? begin_save(index) : begin_work(index);
}

// What is left of the step under way takes as long as things are now.
void WorldSimulation::pace_of_parts_changed(JobIndex index) {
    Job& j = jobs_[index];
    send_uploads(index);
    if (j.status.phase != WorldPhase::running || j.stage != Stage::working) return;
    if (j.run.stands_still) return;
    book_free();
    const Duration partial = j.run.after(now() - j.run_since).partial;
    engine_.cancel(j.event);
    book_run_until(index, now() - partial, Unsaved::held_in_memory);
    j.run_since = now();
    j.pace_changes_at = Instant::max();  // it is looked at again after this step
    partial == Duration{} ? after_steps(index) : resume_step(index, partial);
}

void WorldSimulation::resume_step(JobIndex index, Duration partial) {
    Job& j = jobs_[index];
    WorldParts::Parts& parts = *parts_of(index);
    // On the links of steps its own upload costs this step what it has by now.
    const bool on_links = spec().kinds[job(index).kind].uploads_on_links;
    const Duration penalty = on_links ? j.step.upload : parts.spec().upload_step_penalty;
    j.step.data_wait -= parts.wait;
    const bool slowed = parts.checkpointer.uploading();
    if (std::exchange(parts.slowed, slowed) != slowed) {
        upload_changes(j.step, partial, slowed, penalty);
    }
    // A step that has waited long enough, as things are now, is over.
    parts.wait = std::max(parts.extra_wait(j.step.data_wait), partial - j.step.duration());
    j.step.data_wait += parts.wait;
    begin_stage(index, Stage::working, {.steps = 1, .ends_safe = j.work.left() == 1}, partial);
}

void WorldSimulation::first_batch_there(JobIndex index) {
    const Job& j = jobs_[index];
    if (j.status.phase != WorldPhase::running || j.stage != Stage::first_batch) return;
    book_free();
    book_stage(index);
    begin_work(index);
}

// ---- saves and restores ----

void WorldSimulation::begin_save(JobIndex index) {
    WorldParts::Parts& parts = *parts_of(index);
    begin_stage(index, Stage::saving, {.last_stall = open_ended});
    if (parts.checkpointer.save(jobs_[index].work.done(), jobs_[index].slow_node != no_node)) {
        begin_transfer(index);
    }
}

void WorldSimulation::stall_over(JobIndex index) {
    book_free();
    book_stage(index);
    if (transfer_of(index) != nullptr) leave_links(index);
    keep_what_lasts(index);
    begin_work(index);
}

void WorldSimulation::restored(JobIndex index) {
    book_free();
    book_stage(index);
    if (transfer_of(index) != nullptr) leave_links(index);
    begin_interval(index);
}

// What runs, or is suspended, has its state in GPU memory. What reads it back reads what is left.
void WorldSimulation::copies_lost(JobIndex index) {
    Job& j = jobs_[index];
    const bool running = j.status.phase == WorldPhase::running;
    const bool reads = running && j.stage == Stage::restoring;
    const bool starts = running && j.stage == Stage::setting_up && !parts_of(index)->suspended;
    const bool in_memory = running ? !reads && !starts : j.status.phase == WorldPhase::suspended;
    const bool done = j.status.phase == WorldPhase::completing && !j.next.waits;
    if (in_memory || done) return;
    book_free();
    if (reads && transfer_of(index) != nullptr) leave_links(index);
    if (reads) book_stage(index);
    const std::int64_t before = j.work.left();
    lose_unsaved(index, {});
    record("data_lost", index, "storage", no_node, j.work.left() - before);
    if (reads) end_stage(index);
}

// What is in a store stays there.
void WorldSimulation::keep_what_lasts(JobIndex index) {
    if (!goes_back_far_) jobs_[index].work.keep_until(parts_of(index)->checkpointer.stored_steps());
}

void WorldSimulation::moved_on(JobIndex index) {
    book_free();
    keep_what_lasts(index);
    Saver& saver = parts_of(index)->checkpointer;
    const Saver::Waits come = saver.come();
    if (come == Saver::Waits::buffer) {
        saver.begin_stall(jobs_[index].work.done(), jobs_[index].slow_node != no_node);
        begin_transfer(index);
    } else if (come == Saver::Waits::upload) {
        book_stage(index);
        part_with_slow_node(index);
    }
}

// It leaves when its state is where nothing takes it away.
void WorldSimulation::part_with_slow_node(JobIndex index) {
    WorldParts::Parts& parts = *parts_of(index);
    if (!parts.checkpointer.idle()) {
        begin_stage(index, Stage::saving, {.last_stall = open_ended});
        parts.checkpointer.wait_for(Saver::Waits::upload);
    } else if (parts.checkpointer.lasting_steps() < jobs_[index].work.done()) {
        begin_save(index);
    } else {
        left_slow_node(index);
    }
}

// Over the network of the steps, what it waits for is on their links while it lasts.
const TransferSpec* WorldSimulation::transfer_of(JobIndex index) const {
    if (!spec().kinds[job(index).kind].transfer_traffic) return nullptr;
    const Stage stage = jobs_[index].stage;
    if (stage != Stage::saving && stage != Stage::restoring) return nullptr;
    return parts_of(index)->waits_for(stage == Stage::saving);
}

void WorldSimulation::begin_transfer(JobIndex index) {
    const TransferSpec* transfer = transfer_of(index);
    if (transfer == nullptr) return;
    leave_links(index);
    if (transfer_joins(index, index, *transfer)) links_change_soon();
}

// What the links leave it, from now on.
void WorldSimulation::change_transfer(JobIndex index) {
    const TransferSpec* transfer = transfer_of(index);
    if (transfer == nullptr) return;
    Checkpointer& checkpointer = parts_of(index)->checkpointer;
    const StoreSupply& supply = spec().stores[transfer->store].supply;
    const double longer_s = links_.longer_s(index);
    if (longer_s == 0) return checkpointer.limit(transfer->cap, transfer->cap_wall);
    const Bandwidth most = transfer->direction == Direction::write ? supply.write : supply.read;
    checkpointer.limit(beside_others(std::min(transfer->cap, most), longer_s), Wall::network);
}

}  // namespace railyard
