// A site's power budget: it throttles all GPUs, or holds back jobs, under every scheduler.

#include <doctest/doctest.h>
#include <fmt/format.h>

#include <algorithm>

#include "models/campaign/campaign.h"
#include "tests/scenario_text.h"

using namespace railyard;
using std::chrono_literals::operator""h;

namespace {

// Eight jobs that come together, and nodes for all of them.
const std::string eight_jobs = cluster_text(8, "10 day") + R"(
[[jobs.kind]]
name = "train"
count = 8
gpus = 8
work = "10 h"
limit = "5 day"
)";

const char* const one_job = R"(
[run]
replicas = 1
duration = "2 day"
failures = false
[cluster]
nodes = 8
[job]
nodes = 7
step.time = "10 s"
checkpoint.mode = "none"
)";

std::string under(const std::string& scheduler) {
    return fmt::format("{}\n[scheduler]\nkind = \"{}\"\n", eight_jobs, scheduler);
}

std::vector<std::string> budget(double watts, const char* over) {
    return {fmt::format("power.budget={:.9g} kW", watts * 1e-3),
            fmt::format("power.over_budget={}", over)};
}

// At the meter, when so many of the nodes compute.
double draw(const Scenario& s, double computing) {
    const NodePower& node = s.power.node;
    return s.power.cooling.pue *
           (computing * node.at(Activity::compute).value +
            (static_cast<double>(s.nodes.nodes) - computing) * node.at(Activity::idle).value +
            s.power.network.value + s.power.storage.value);
}

Instant last_end(const Scenario& s) {
    const WorldJobs jobs = draw_jobs(*s.world, s.seed, 0, s.duration);
    const WorldRunResult r = run_world(
        {.spec = s.world->spec, .jobs = jobs, .causes = s.causes, .end = Instant(s.duration)});
    Instant last{};
    for (const WorldJobRun& job : r.outcome.runs) {
        CHECK(job.over);
        CHECK(job.how == JobEnd::completed);
        last = std::max(last, job.end);
    }
    return last;
}

}  // namespace

TEST_CASE("a power budget holds back jobs: as many run as it carries, under every scheduler") {
    for (const WorldSchedulerKind& kind : world_scheduler_kinds()) {
        CAPTURE(kind.name);
        const std::string text = under(kind.name);
        const Scenario free = scenario(text);
        // Three of eight jobs run at once: they take three turns of ten hours.
        const double most = draw(free, 3.5);
        const Scenario held = scenario(text, budget(most, "hold"));
        const ReplicaResult r = run_replica(held, 0, false);
        CHECK(metric(r, "power_peak") <= most);
        CHECK(metric(r, "power_peak") == doctest::Approx(draw(free, 3)).epsilon(1e-6));
        CHECK(last_end(held) >= Instant(30h));
        CHECK(last_end(held) < Instant(31h));
        // The work is the same, and so is what it draws; GPUs without power count as idle.
        const ReplicaResult alone = run_replica(free, 0, false);
        CHECK(drawn(r, Category::productive) == drawn(alone, Category::productive));
        CHECK(r.ledger.booked(Category::productive) == alone.ledger.booked(Category::productive));
        CHECK(r.ledger.total() == alone.ledger.total());
        CHECK(r.ledger.booked(Category::fragmentation) == 0);
    }
}

TEST_CASE("a power budget throttles all GPUs to what it carries, under every scheduler") {
    for (const WorldSchedulerKind& kind : world_scheduler_kinds()) {
        CAPTURE(kind.name);
        const std::string text = under(kind.name);
        const Scenario free = scenario(text);
        const double most = 0.85 * draw(free, 8);
        const Scenario held = scenario(text, budget(most, "throttle"));
        const ReplicaResult r = run_replica(held, 0, false);
        const double speed = held.power.budget_speed;
        CHECK(speed < 0.97);
        CHECK(speed > 0.8);
        CHECK(metric(r, "power_peak") == doctest::Approx(most).epsilon(1e-6));
        const auto productive = static_cast<double>(r.ledger.booked(Category::productive));
        const auto throttled = static_cast<double>(r.ledger.booked(Category::throttled));
        CHECK(productive == doctest::Approx(64 * 36e12).epsilon(1e-6));
        CHECK(throttled == doctest::Approx(productive * (1 / speed - 1)).epsilon(1e-5));
        // Energy: the whole of the time at the throttled draw.
        const double gpu = held.power.node.gpu.compute_power_at(speed).value;
        const double joules_drawn =
            joules(drawn(r, Category::productive) + drawn(r, Category::throttled));
        CHECK(joules_drawn ==
              doctest::Approx((productive + throttled) * 1e-9 / 8 * held.power.node.at(gpu).value)
                  .epsilon(1e-6));
    }
}

TEST_CASE("more power is never slower, and more than enough changes nothing") {
    for (const WorldSchedulerKind& kind : world_scheduler_kinds()) {
        for (const char* over : {"hold", "throttle"}) {
            CAPTURE(kind.name);
            CAPTURE(over);
            const std::string text = under(kind.name);
            const Scenario free = scenario(text);
            const bool hold = std::string_view(over) == "hold";
            Instant before = Instant::max();
            for (double computing = hold ? 1 : 6.5; computing <= 8; computing += 0.5) {
                const double most = draw(free, computing) * (1 + 1e-5);
                const Scenario held = scenario(text, budget(most, over));
                const Instant end = last_end(held);
                CHECK(end <= before);
                before = end;
                CHECK(metric(run_replica(held, 0, false), "power_peak") <= most * (1 + 1e-6));
            }
            CHECK(before == last_end(free));
            const Scenario ample = scenario(text, budget(1.01 * draw(free, 8), over));
            CHECK(run_replica(ample, 0, false).trajectory ==
                  run_replica(free, 0, false).trajectory);
        }
    }
}

TEST_CASE("one job keeps to a power budget at lower clocks, its spares idle") {
    const Scenario free = scenario(one_job);
    const double most = 0.9 * draw(free, 7);
    const Scenario held = scenario(one_job, budget(most, "throttle"));
    const ReplicaResult r = run_replica(held, 0, false);
    CHECK(metric(r, "power_peak") == doctest::Approx(most).epsilon(1e-6));
    CHECK(seconds(held.job.step.throttled) ==
          doctest::Approx(10 * (1 / held.power.budget_speed - 1)).epsilon(1e-6));
    const Scenario ample = scenario(one_job, budget(1.01 * draw(free, 7), "throttle"));
    CHECK(run_replica(ample, 0, false).trajectory == run_replica(free, 0, false).trajectory);
}

TEST_CASE("under a budget jobs of a kind save as often as the one job does") {
    const std::string plan = R"(model = "llama2_13b"
nodes = 7
parallel = { tensor = 4, global_batch = 448 }
checkpoint = { interval = "1 h" }
)";
    const std::string cluster = R"([run]
duration = "5 day"
failures = false
[cluster]
nodes = 7
[storage]
servers = 1
server_write_bandwidth = "10 GB/s"
server_read_bandwidth = "10 GB/s"
[power]
budget = "65 kW"
)";
    const ReplicaResult one = run_replica(scenario(cluster + "[job]\n" + plan), 0, false);
    const ReplicaResult kind = run_replica(
        scenario(cluster + "[scheduler]\n[[jobs.kind]]\nname = \"a\"\nsteps = 1000000\n" + plan), 0,
        false);
    REQUIRE(metric(one, "power_budget_clock") < 0.95);
    CHECK(kind.ledger.fraction(Category::checkpoint_stall) ==
          doctest::Approx(one.ledger.fraction(Category::checkpoint_stall)).epsilon(0.01));
}

TEST_CASE("a job that the power budget could never carry is refused, and says what it draws") {
    const std::string text = under("slurm");
    const Scenario free = scenario(text);
    const Scenario held = scenario(text, budget(draw(free, 0.5), "hold"));
    const ReplicaResult r = run_replica(held, 0, false);
    REQUIRE(r.refused.size() == 8);
    CHECK(r.refused[0].reason.find("the power budget leaves") != std::string::npos);
}

TEST_CASE("a power budget below the idle power of the cluster is an error with the number") {
    for (const char* over : {"hold", "throttle"}) {
        const std::string why = refused(under("slurm"), budget(5000, over));
        CHECK(why.find("below the idle power of the cluster") != std::string::npos);
    }
    const Scenario free = scenario(under("slurm"));
    CHECK(refused(under("slurm"), budget(draw(free, 2), "throttle")).find("at the least") !=
          std::string::npos);
    CHECK(refused(one_job, budget(draw(free, 7), "hold")).find("there is one") !=
          std::string::npos);
    CHECK(refused(one_job, {"power.over_budget=throttle"}).find("power.budget") !=
          std::string::npos);
}

TEST_CASE("a budget that throttling does not reach names the cap of the GPUs that does") {
    const Scenario least = scenario(one_job, {"power.gpu_cap=420 W"});
    const double most = 1.001 * draw(least, 7);
    const std::string why = refused(one_job, budget(most, "throttle"));
    const std::size_t at = why.find("power.gpu_cap = \"");
    REQUIRE(at != std::string::npos);
    const std::string cap = why.substr(at + 17, 5);
    std::vector<std::string> settings = budget(most, "throttle");
    settings.push_back("power.gpu_cap=" + cap);
    CHECK(metric(run_replica(scenario(one_job, settings), 0, false), "power_peak") <= most);
    CHECK(refused(one_job, budget(0.99 * draw(least, 7), "throttle")).find("gpu_cap") ==
          std::string::npos);
}
