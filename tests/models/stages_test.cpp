// Stages and pauses of a job: which steps belong to which, and what becomes of the campaign.

#include <doctest/doctest.h>
#include <fmt/format.h>

#include "models/campaign/campaign.h"
#include "tests/scenario_text.h"

using namespace railyard;
using std::chrono::hours;

namespace {

StageSpec stage(std::vector<std::int64_t> levels, std::optional<Duration> until = {}) {
    StageSpec out;
    for (const std::int64_t steps : levels) {
        StageLevel level;
        level.steps = steps;
        level.tokens = 10;
        level.step.compute = std::chrono::seconds(1);
        out.levels.push_back(level);
    }
    if (until) out.until = Instant(*until);
    return out;
}

const char* const plain = R"(
[run]
replicas = 1
[cluster]
nodes = 4
[storage]
server_write_bandwidth = "100 GB/s"
[job]
model = "llama2_7b"
[job.parallel]
tensor = 4
global_batch = 64
sequence_length = 2048
[job.checkpoint]
mode = "sync"
interval = "500 steps"
[job.recovery]
replacement = "1 min"
restart = "2 min"
restore = "1 min"
[failures]
profile = "none"
)";

struct Ran {
    Scenario scenario;
    ReplicaResult result;
    double metric(const char* name) const {
        const auto found = std::ranges::find(result.metrics, name, &Metric::name);
        REQUIRE(found != result.metrics.end());
        return found->value;
    }
    Duration booked(Category category) const {
        const GpuNanoseconds each = result.ledger.booked(category) / scenario.gpus();
        return Duration(static_cast<std::int64_t>(each));
    }
    std::int64_t count(std::string_view kind) const {
        return std::ranges::count_if(result.log,
                                     [&](const CampaignEvent& e) { return e.kind == kind; });
    }
};

Ran run(const std::string& text, const char* duration = nullptr) {
    ScenarioChanges changes;
    if (duration != nullptr) changes.settings = {fmt::format("run.duration={}", duration)};
    Scenario s = load_scenario(text, "stages", changes);
    ReplicaResult r = run_replica(s, 0, true);
    return {std::move(s), std::move(r)};
}

}  // namespace

TEST_CASE("a stage that ends at a date goes over into one without an end") {
    StepSchedule schedule({stage({endless}, hours(1)), stage({endless})});
    CHECK_FALSE(schedule.finished(1));
    schedule.look_at_date(100, Instant(hours(1)));
    CHECK(schedule.stage_at(99) == 0);
    CHECK(schedule.stage_at(100) == 1);

    const std::string last = "\n[[job.stage]]\nname = \"last\"\n";
    const Ran dated = run(std::string(plain) + "[[job.stage]]\nuntil = \"1 day\"" + last, "3 day");
    const Ran whole = run(plain, "3 day");
    CHECK(dated.count("stage") == 1);
    CHECK(whole.result.simulated == hours(72));
    CHECK(dated.result.simulated == hours(72));
    CHECK(dated.result.job.steps_kept == whole.result.job.steps_kept);
}

TEST_CASE("each step belongs to one level of one stage, in order") {
    const StepSchedule schedule({stage({3, 0, 2}), stage({5})});
    CHECK(schedule.stage_at(0) == 0);
    CHECK(schedule.steps_left(0) == 3);
    CHECK(schedule.steps_left(3) == 2);
    CHECK(schedule.stage_at(4) == 0);
    CHECK(schedule.stage_at(5) == 1);
    CHECK_FALSE(schedule.finished(9));
    CHECK(schedule.finished(10));
    const auto done = schedule.done(7);
    CHECK(done[0].steps == 5);
    CHECK(done[1].steps == 2);
    CHECK(done[1].tokens == 20);
    CHECK(done[0].time == std::chrono::seconds(5));
}

TEST_CASE("a date ends a stage where the job is, and going back moves its end") {
    StepSchedule schedule({stage({endless}, hours(1)), stage({4})});
    schedule.look_at_date(100, Instant(hours(1)) - Duration(1));
    CHECK(schedule.stage_at(100) == 0);
    schedule.look_at_date(100, Instant(hours(1)));
    CHECK(schedule.stage_at(99) == 0);
    CHECK(schedule.stage_at(100) == 1);
    CHECK(schedule.finished(104));
    schedule.back_to(60);
    CHECK(schedule.stage_at(60) == 1);
    CHECK(schedule.finished(64));
}

TEST_CASE("pauses of each so many steps come again when the steps are done again, others once") {
    const std::vector<PauseSpec> specs = {{.name = "each", .every_steps = 10},
                                          {.name = "one", .at_step = 15}};
    Pauses pauses(specs);
    CHECK_FALSE(pauses.due(0, {}));
    CHECK(pauses.steps_until_next(12) == 3);
    CHECK(pauses.steps_until_next(15) == 5);
    REQUIRE(pauses.due(10, {}) == 0);
    pauses.began(0, 10);
    CHECK_FALSE(pauses.due(10, {}));
    REQUIRE(pauses.due(15, {}) == 1);
    pauses.began(1, 15);
    pauses.back_to(7);
    CHECK(pauses.due(10, {}) == 0);
    CHECK_FALSE(pauses.due(15, {}));
}

TEST_CASE("one stage of the job's own plan is the job without stages") {
    const Ran without = run(plain, "5 day");
    const Ran with = run(std::string(plain) + "[[job.stage]]\nsteps = 100000000\n", "5 day");
    CHECK(with.result.outcome == without.result.outcome);
    CHECK(with.metric("mfu") == doctest::Approx(without.metric("mfu")));
    CHECK(with.metric("tokens") == doctest::Approx(without.metric("tokens")));
    CHECK(with.metric("ettr") == doctest::Approx(without.metric("ettr")));
    CHECK(with.metric("step_time") == doctest::Approx(without.metric("step_time")));
}

TEST_CASE("a ramp has as many levels as increments, and each its share of the tokens") {
    const Ran ran = run(std::string(plain) + R"(
[[job.stage]]
tokens = 1e9
batch_from = 16
batch_increment = 16
[[job.stage]]
tokens = 2e9
)");
    const auto& levels = ran.scenario.job.stages[0].levels;
    REQUIRE(levels.size() == 3);
    for (std::size_t i = 0; i < levels.size(); ++i) {
        CHECK(levels[i].batch == static_cast<std::int64_t>(16 * (i + 1)));
        const double tokens = static_cast<double>(levels[i].steps * levels[i].tokens);
        CHECK(tokens == doctest::Approx(1e9 / 3).epsilon(1e-3));
    }
    CHECK(levels[0].step.duration() < levels[2].step.duration());
    // The batch alone is another: nothing stops.
    CHECK(ran.result.job.planned_interruptions == 0);
    CHECK(ran.result.job.finished);
    CHECK(ran.metric("tokens") >= 3e9);
    CHECK(ran.metric("tokens") < 3.001e9);
    CHECK(ran.metric("stage_1_tokens") == doctest::Approx(1e9).epsilon(1e-3));
}

TEST_CASE("a stage on fewer nodes leaves the others as spares, and its GPUs count in MFU") {
    const Ran ran = run(std::string(plain) + R"(
[[job.stage]]
nodes = 2
steps = 1000
[[job.stage]]
steps = 1000
stop = "30 min"
)");
    CHECK(ran.result.job.finished);
    CHECK(ran.result.job.planned_interruptions == 1);
    const double first = seconds(ran.scenario.job.stages[0].levels[0].step.duration());
    const double second = seconds(ran.scenario.job.stages[1].levels[0].step.duration());
    CHECK(first > 1.8 * second);
    // Two of four nodes, for the first stage and the stop.
    const double spare = seconds(ran.booked(Category::spare));
    CHECK(spare == doctest::Approx(ran.metric("stage_1_wall_time") / 2 + 900).epsilon(1e-3));
    CHECK(seconds(ran.booked(Category::planned_maintenance)) == doctest::Approx(900));
    // Both stages compute alike on twice the GPUs.
    CHECK(ran.metric("stage_1_mfu_step") ==
          doctest::Approx(ran.metric("stage_2_mfu_step")).epsilon(0.05));
    CHECK(ran.metric("mfu_step") < ran.metric("stage_1_mfu_step") * 1.05);
    CHECK(ran.metric("mfu") < ran.metric("mfu_step"));
}

TEST_CASE("a pause costs its time, and with a restart the way back too") {
    const std::string two = "[[job.stage]]\nsteps = 2500\n";
    const Ran none = run(plain + two);
    const Ran evaluated =
        run(plain + two + "[[job.pause]]\nevery = \"1000 steps\"\nduration = \"10 min\"\n");
    CHECK(evaluated.result.job.pauses == 2);
    CHECK(evaluated.result.simulated - none.result.simulated == std::chrono::minutes(20));
    const Ran stopped =
        run(plain + two +
            "[[job.pause]]\nat = \"1200 steps\"\nduration = \"10 min\"\nrestart = true\n");
    CHECK(stopped.result.job.planned_interruptions == 1);
    CHECK(stopped.result.job.steps_lost == 0);
    // It saves once more, then stands still, starts and reads its state.
    const Duration more = stopped.result.simulated - none.result.simulated;
    CHECK(more >= std::chrono::minutes(13));
    CHECK(more < std::chrono::minutes(16));
}

TEST_CASE("a pause at a date comes once, at the end of the step under way") {
    const Ran ran = run(std::string(plain) + R"(
[[job.pause]]
name = "outage"
at = "20 h"
duration = "3 h"
)",
                        "2 day");
    CHECK(ran.count("pause") == 1);
    const auto at = std::ranges::find(ran.result.log, std::string("outage"), &CampaignEvent::cause);
    REQUIRE(at != ran.result.log.end());
    const Duration late = at->at - Instant(hours(20));
    CHECK(late >= Duration{});
    CHECK(late < ran.scenario.job.step.duration() + ran.scenario.job.checkpoint.stall_alone);
    CHECK(seconds(ran.booked(Category::planned_maintenance)) == doctest::Approx(3 * 3600));
}

TEST_CASE("a failure in a stage takes what is not saved, and the stage goes on") {
    const Ran ran = run(std::string(plain) + R"(
[[failures.cause]]
name = "crash"
mtbf_job = "20 min"
remedy = "replace"
reset_time = "1 h"
detection = "5 min"
[[job.stage]]
nodes = 2
steps = 3000
[[job.stage]]
steps = 3000
[[job.pause]]
every = "700 steps"
duration = "1 min"
)");
    CHECK(ran.result.job.finished);
    CHECK(ran.result.job.steps_lost > 0);
    CHECK(ran.metric("stage_1_steps") == 3000);
    CHECK(ran.metric("stage_2_steps") == 3000);
    CHECK(ran.result.ledger.total() ==
          GpuNanoseconds{ran.scenario.gpus()} * ran.result.simulated.count());
}

TEST_CASE("slow parts slow the steps of every stage") {
    const std::string slow = R"(
[[failures.cause]]
name = "slow"
mtbf_job = "30000 day"
slows = "gpu"
speed = 0.5
detection = "1 day"
remedy = "replace"
[[inject]]
at = "1 min"
cause = "slow"
)";
    const std::string stages =
        "[[job.stage]]\nsteps = 300\nbatch_from = 32\n[[job.stage]]\nsteps = 300\n";
    const Ran sound = run(plain + stages);
    const Ran held = run(plain + slow + stages);
    CHECK(held.result.simulated > sound.result.simulated);
    CHECK(held.result.ledger.booked(Category::degraded) > 0);
}

TEST_CASE("stages that can't be are refused, with what would help") {
    const auto stages = [](const char* text) { return refused(std::string(plain) + text); };
    CHECK(stages("[[job.stage]]\nname = \"a\"\n[[job.stage]]\nsteps = 1\n").find("never begins") !=
          std::string::npos);
    CHECK(stages("[[job.stage]]\nuntil = \"5 day\"\n[[job.stage]]\nuntil = \"4 day\"\n")
              .find("stages follow each other") != std::string::npos);
    CHECK(stages("[[job.stage]]\nnodes = 5\nsteps = 1\n").find("the job has 4") !=
          std::string::npos);
    CHECK(stages("[[job.stage]]\nsteps = 1\nparallel = { tensor = 3 }\n").find("job.stage[0]") !=
          std::string::npos);
    CHECK(stages("[[job.stage]]\nsteps = 1\nparallel = { tensr = 2 }\n").find("tensor") !=
          std::string::npos);
    CHECK(stages("[[job.stage]]\ntokens = 1e9\nbatch_from = 16\nbatch_increment = 10\n")
              .find("increments") != std::string::npos);
    CHECK(stages("[[job.stage]]\ntokens = 1e9\nsteps = 5\n").find("one length") !=
          std::string::npos);
}
