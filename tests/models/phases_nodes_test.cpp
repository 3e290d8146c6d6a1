// Which nodes running jobs have on the day of a phase: theirs, as long as these are there.

#include <algorithm>

#include "models/scheduler/world_scheduler.h"
#include "tests/models/phase_runs.h"

using namespace railyard;
using std::chrono_literals::operator""h;
using std::chrono_literals::operator""s;

namespace {

// Four nodes, of which the first two are a partition's. On them c runs for 10 h, then b for 60 h; a has the
// other two from 1 h to 81 h.
std::string in_front(const std::string& scheduler, const std::string& more,
                     const std::string& run) {
    return fmt::format(R"([cluster]
node = "dgx_h100"
nodes = 4
[scheduler]
kind = "{}"
{}
[[partition]]
name = "all"
nodes = 4
[[partition]]
name = "front"
nodes = 2
[[jobs.kind]]
name = "c"
count = 1
gpus = 16
work = "10 h"
partition = "front"
[[jobs.kind]]
name = "a"
count = 1
gpus = 16
work = "80 h"
at = "1 h"
partition = "all"
[[jobs.kind]]
name = "b"
count = 1
gpus = 16
work = "60 h"
at = "2 h"
partition = "front"
[run]
duration = "5 day"
{})",
                       scheduler, more, run);
}

const std::string crashes = R"([[failures.cause]]
name = "crash"
rate_per_node = "0 /day"
remedy = "restart"
)";

// Two jobs of four nodes each, one after the other.
std::string pair_of_jobs(const std::string& kind, const std::string& phase) {
    return R"([cluster]
node = "dgx_h100"
nodes = 8
[scheduler]
kind = "fifo"
[[jobs.kind]]
name = "a"
count = 2
nodes = 4
work = "40 h"
)" + kind + "[run]\nduration = \"5 day\"\n" +
           phases({"2026-06-02"}) + phase;
}

const std::string saves_rarely =
    "step.time = \"10 s\"\ncheckpoint_interval = \"10 h\"\ncheckpoint_stall = \"100 s\"\n"
    "restart = \"5 min\"\nrestore = \"3 min\"\n";
constexpr GpuNanoseconds gpus = 32;

}  // namespace

TEST_CASE("running jobs stay on their nodes over the day of a phase, under every scheduler") {
    for (const WorldSchedulerKind& scheduler : world_scheduler_kinds()) {
        INFO(scheduler.name);
        const WorldRunResult once = run_all(load_phases_of(in_front(scheduler.name, "", "")));
        std::vector<ReplicaTrace> traces;
        const WorldRunResult twice =
            run_all(load_phases_of(in_front(scheduler.name, "", phases({"2026-06-02"}))), &traces);
        check_same(twice, once);
        CHECK(twice.outcome.runs[2].end < Instant(70h + 1s));
        for (const JobHold& hold : traces[1].holds) {
            const auto before = std::ranges::find_if(traces[0].holds, [&](const JobHold& other) {
                return other.job == hold.job && other.until == Instant(24h);
            });
            REQUIRE(before != traces[0].holds.end());
            CHECK(hold.gpus.runs() == before->gpus.runs());
        }
    }
}

TEST_CASE("what fails in a phase fails those that are on its node, and they wait as others do") {
    for (const WorldSchedulerKind& scheduler : world_scheduler_kinds()) {
        INFO(scheduler.name);
        const std::string strikes =
            crashes + "[[inject]]\nat = \"30 h\"\ncause = \"crash\"\nnode = 1\n";
        const auto run = [&](const std::string& of) {
            return run_all(load_phases_of(in_front(scheduler.name, strikes, of)));
        };
        const WorldRunResult once = run("");
        CHECK(once.outcome.runs[2].interruptions == 1);
        check_same(run(phases({"2026-06-02"})), once);
        check_same(run(phases({"2026-06-02", "2026-06-03"})), once);
    }
}

TEST_CASE("backfill counts the time that jobs have run before the day of a phase") {
    // `first` leaves at 50 h, for `whole`: `long` must not start on the other node before that.
    for (const std::string scheduler : {"easy", "slurm"}) {
        INFO(scheduler);
        const auto run = [&](const std::string& of) {
            return run_all(load_phases_of(fmt::format(R"([cluster]
node = "dgx_h100"
nodes = 2
[scheduler]
kind = "{}"
[[jobs.kind]]
name = "first"
count = 1
gpus = 8
work = "50 h"
limit = "50 h"
[[jobs.kind]]
name = "whole"
count = 1
gpus = 16
work = "10 h"
limit = "10 h"
at = "1 h"
[[jobs.kind]]
name = "long"
count = 1
gpus = 8
work = "40 h"
limit = "40 h"
at = "30 h"
[run]
duration = "5 day"
{})",
                                                      scheduler, of)));
        };
        const WorldRunResult once = run("");
        CHECK(once.outcome.runs[1].end < Instant(61h));
        const WorldRunResult twice = run(phases({"2026-06-02"}));
        for (std::size_t i = 0; i < 3; ++i) {
            CHECK(twice.outcome.runs[i].first_start == once.outcome.runs[i].first_start);
            CHECK(twice.outcome.runs[i].end == once.outcome.runs[i].end);
        }
    }
}

TEST_CASE("slices stay where they are on their GPU") {
    const MigSpec as_they_come;
    MigGpus gpus(1, as_they_come);
    gpus.take(1, 7, MigPlace{0, 4});
    CHECK(gpus.place_of(7)->start == 4);
    gpus.take(1, 8, MigPlace{0, 4});  // somebody is there
    CHECK(gpus.place_of(8)->start != 4);
    CHECK(!gpus.place_of(9));
}

TEST_CASE("nodes of a group that stays keep their jobs when a group before it gets smaller") {
    const auto run = [](const std::string& phase) {
        return run_all(load_phases_of(R"([cluster]
nodes = 4
[[node_group]]
name = "old"
node = "dgx_a100"
nodes = 2
[[node_group]]
name = "new"
node = "dgx_h100"
nodes = 2
[scheduler]
kind = "fifo"
[[partition]]
name = "all"
nodes = 4
[[jobs.kind]]
name = "a"
count = 2
gpus = 16
work = "40 h"
[run]
duration = "5 day"
)" + phases({"2026-06-02"}) + phase));
    };
    const WorldRunResult r =
        run("set = { cluster.nodes = 3, node_group.0.nodes = 1, partition.0.nodes = 3 }\n");
    CHECK(r.outcome.runs[1].end == Instant(40h));
    CHECK(r.outcome.runs[1].starts == 1);
    CHECK(r.outcome.runs[0].lost_steps == Duration(24h).count());
}

TEST_CASE("a job whose nodes are gone loses what it has not saved and starts again") {
    const WorldRunResult r =
        run_all(load_phases_of(pair_of_jobs(saves_rarely, "set = { cluster.nodes = 4 }\n")));
    const Duration lost = 86400s - 300s - 2 * 36100s;
    CHECK(r.ledger.booked(Category::lost_work) == gpus * lost.count());
    CHECK(r.outcome.runs[0].starts == 1);
    CHECK(r.outcome.runs[0].end == Instant(40h + 300s + 3 * 100s));
    // It has the nodes of the first once that is done.
    const WorldJobRun& displaced = r.outcome.runs[1];
    CHECK(displaced.starts == 2);
    CHECK(displaced.interruptions == 0);
    CHECK(displaced.end == r.outcome.runs[0].end + 300s + 180s + 20h + 100s);
    CHECK(r.ledger.booked(Category::restore) == gpus * Duration(180s).count());
    CHECK(displaced.kept == Duration(40h));
}

TEST_CASE("nobody starts a job again whose nodes are gone if its kind is not requeued") {
    const WorldRunResult r = run_all(load_phases_of(
        pair_of_jobs(saves_rarely + "requeue = false\n", "set = { cluster.nodes = 4 }\n")));
    CHECK(r.outcome.runs[1].over);
    CHECK(r.outcome.runs[1].how == JobEnd::cancelled);
    CHECK(r.outcome.runs[1].end == Instant(24h));
    CHECK(r.outcome.runs[0].how == JobEnd::completed);
    CHECK(r.outcome.ended == 2);
}

TEST_CASE("other nodes in the place of a job's are not its own") {
    const WorldRunResult r = run_all(
        load_phases_of(pair_of_jobs(saves_rarely, "set = { cluster.node = \"dgx_b200\" }\n")));
    for (const WorldJobRun& job : r.outcome.runs) {
        CHECK(job.starts == 2);
        CHECK(job.lost_steps > 0);
    }
}
