// The parts of a training job, each by itself.

#include <doctest/doctest.h>

#include "models/training/training.h"

using namespace railyard;

namespace {

using std::chrono_literals::operator""s;

StepTime step_of(Duration compute) {
    StepTime step;
    step.compute = compute;
    return step;
}

double gpu_seconds(const Ledger& ledger, Category category) {
    return static_cast<double>(ledger.booked(category)) * 1e-9;
}

}  // namespace

TEST_CASE("a book of steps books each once: as what it was when kept, or as lost") {
    Ledger ledger;
    StepBook book(ledger);
    book.add(3, {2, 1, 4s}, step_of(10s));
    CHECK(book.replica_steps_missing() == 3);
    CHECK(book.back_to(2) == 10s);
    CHECK(gpu_seconds(ledger, Category::lost_work) == 20);
    book.keep(1);
    CHECK(gpu_seconds(ledger, Category::productive) == 20);
    CHECK(book.done() == 2);
    CHECK(book.counts().steps_kept == 1);
    CHECK(book.counts().steps_lost == 1);
    CHECK(book.counts().slow_time == 4s);
    book.keep(book.done());
    book.cut_off(step_of(10s), 2, 5s);
    CHECK(gpu_seconds(ledger, Category::productive) == 50);
    CHECK(book.counts().stepping == 25s);
}

TEST_CASE("steps that run know at any time how many are whole, and begin with what was done") {
    RunningSteps running;
    running.plan(step_of(10s), false, {});
    CHECK(running.begin(Instant(100s), 3, 4s, {}, {}) == Instant(126s));
    CHECK(running.whole(Instant(120s)) == 2);
    CHECK(running.into_next(Instant(120s)) == 4s);
    // Who has waited for data for long enough, as things are now, goes on at once.
    CHECK(running.begin(Instant(200s), 1, 12s, {}, 1s) == Instant(200s));
}

TEST_CASE("phases are booked on the GPUs that they had, and recovery counts after a failure only") {
    Ledger ledger;
    std::vector<PhaseStart> log;
    JobPhases phases(ledger, nullptr);
    phases.log(log);
    phases.enter(JobPhase::running, Instant(0s), 8);
    phases.enter(JobPhase::maintenance, Instant(10s), 8);
    phases.enter(JobPhase::restart, Instant(20s), 8);
    CHECK(phases.processes_run());
    phases.enter(JobPhase::running, Instant(25s), 8);
    CHECK(phases.times().restart == Duration{});
    phases.enter(JobPhase::detection, Instant(30s), 8);
    CHECK_FALSE(phases.processes_run());
    phases.enter(JobPhase::requeue_wait, Instant(32s), 8);
    phases.book(Instant(33s), 4);
    phases.enter(JobPhase::restart, Instant(35s), 8);
    phases.end(Instant(42s), 8);
    CHECK(phases.times().detection == 2s);
    CHECK(phases.times().requeue_wait == 3s);
    CHECK(phases.times().restart == 7s);
    CHECK(gpu_seconds(ledger, Category::requeue_wait) == 4 + 16);
    CHECK(gpu_seconds(ledger, Category::restart) == 40 + 56);
    CHECK(gpu_seconds(ledger, Category::productive) == 0);  // steps are booked by their parts
    CHECK(log.size() == 8);
    CHECK(log.back().phase == JobPhase::done);
}

TEST_CASE("a job stops for its maintenance first, then for the stage that needs a restart") {
    JobSpec spec;
    spec.nodes = 4;
    spec.maintenance.duration = 60s;
    for (const std::int64_t nodes : {4, 2}) {
        StageSpec& stage = spec.stages.emplace_back();
        stage.nodes = nodes;
        stage.restarts = nodes == 2;
        stage.stop = 30s;
        stage.levels.push_back({.steps = 5, .step = step_of(1s)});
    }
    JobStages stages(spec);
    stages.begin(Instant(0s), 0);
    CHECK(stages.steps_ahead(2) == 3);
    CHECK_FALSE(stages.look(5, Instant(5s)));
    stages.maintenance_due();
    CHECK(stages.begin_stop(5, Instant(5s)).lasts == 60s);
    CHECK(stages.stop_planned());
    CHECK(stages.stage().nodes == 4);  // until the stop for the next stage begins
    const JobStages::Stop stop = stages.begin_stop(5, Instant(65s));
    CHECK(stop.lasts == 30s);
    CHECK(stop.enters_stage);
    CHECK(stages.stage().nodes == 2);
    CHECK_FALSE(stages.stop_planned());
    CHECK(stages.finished(10));
    const std::vector<StageOutcome> outcome = stages.outcome(10, 7, Instant(100s));
    CHECK(outcome[0].wall == 65s);
    CHECK(outcome[1].wall == 35s);
    CHECK(outcome[1].kept.steps == 5);
    CHECK(outcome[1].safe == 2);
}
