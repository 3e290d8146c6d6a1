// What is kept for those who look at one replica or one window: it changes nothing, and it adds up.

#include <doctest/doctest.h>

#include <cmath>
#include <map>

#include "tests/models/windows.h"

using namespace railyard;

namespace {

const char* failing = R"(
[run]
duration = "20 day"
[cluster]
nodes = 36
[storage]
servers = 2
server_write_bandwidth = "10 GB/s"
[job]
nodes = 32
[job.step]
time = "3 s"
[job.checkpoint]
mode = "sync"
size = "2 TB"
interval = "2 h"
[failures]
profile = "meta_rsc1"
rate_scale = 20
[maintenance]
every = "3 day"
duration = "1 h"
)";

double bits_per_second_x_ns(const std::vector<StoreRates>& rates, Instant end) {
    double moved = 0;
    for (std::size_t i = 0; i < rates.size(); ++i) {
        const Instant until = i + 1 < rates.size() ? rates[i + 1].at : end;
        moved += static_cast<double>(rates[i].write.bits_per_second()) *
                 static_cast<double>((until - rates[i].at).count());
    }
    return moved;
}

}  // namespace

// Recorded, every save is an event in the queue; else the job passes over those that nothing disturbs.
TEST_CASE("a replica that is recorded is the same replica") {
    const std::vector<std::vector<std::string>> variants = {
        {},
        {"job.checkpoint.clock=wall"},
        {"job.checkpoint.interval=30 s"},
        {"job.checkpoint.tier=[{place=\"storage\",keep=1}]", "job.checkpoint.interval=10 min"},
        {"run.events_max=1000", "job.checkpoint.interval=10 min"},
        {"job.length=3 day", "job.checkpoint.interval=10 min"},
        {"job.recovery.recompute=false", "job.checkpoint.interval=10 min"},
        {"run.failures=false"}};
    for (const auto& settings : variants) {
        CAPTURE(settings.empty() ? "as it is" : settings[0]);
        ScenarioChanges changes;
        changes.settings = settings;
        const Scenario s = load_scenario(failing, "failing", changes);
        const ReplicaResult plain = run_replica(s, 3, false);
        ReplicaTrace trace;
        const ReplicaResult recorded = run_replica(s, 3, true, &trace);
        CHECK(recorded.outcome == plain.outcome);
        CHECK(recorded.trajectory == plain.trajectory);
        CHECK(recorded.events == plain.events);
        CHECK(recorded.ending == plain.ending);
        REQUIRE(recorded.metrics.size() == plain.metrics.size());
        for (std::size_t i = 0; i < plain.metrics.size(); ++i) {
            const double was = plain.metrics[i].value;
            const double is = recorded.metrics[i].value;
            CAPTURE(plain.metrics[i].name);
            CHECK((was == is || (std::isnan(was) && std::isnan(is))));
        }
    }
}

TEST_CASE("recorded phases cover the replica's time, and the ledger books what they say") {
    const Scenario s = load_scenario(failing, "failing");
    ReplicaTrace trace;
    const ReplicaResult r = run_replica(s, 0, true, &trace);
    REQUIRE(trace.phases.size() > 100);
    CHECK(trace.phases.front().at == Instant{});
    CHECK(trace.phases.back().at == Instant(r.simulated));
    CHECK(trace.phases.back().phase == JobPhase::done);
    std::map<JobPhase, Duration> spent;
    for (std::size_t i = 0; i + 1 < trace.phases.size(); ++i) {
        REQUIRE(trace.phases[i].at <= trace.phases[i + 1].at);
        spent[trace.phases[i].phase] += trace.phases[i + 1].at - trace.phases[i].at;
    }
    // Nobody leaves the job before it is drained, so all of its GPUs wait for detection.
    CHECK(r.ledger.booked(Category::detection) ==
          GpuNanoseconds{s.job.gpus()} * spent[JobPhase::detection].count());
    CHECK(r.ledger.booked(Category::restart) ==
          GpuNanoseconds{s.job.gpus()} * spent[JobPhase::restart].count());
    CHECK(r.ledger.booked(Category::planned_maintenance) ==
          GpuNanoseconds{s.job.gpus()} * spent[JobPhase::maintenance].count());
}

TEST_CASE("recorded rates of a store add up to what was written to it") {
    const Scenario s = load_scenario(failing, "failing");
    ReplicaTrace trace;
    const ReplicaResult r = run_replica(s, 0, true, &trace);
    double written = 0;
    for (const TierBytes& tier : r.job.checkpoint.tiers) {
        written += static_cast<double>(tier.written.count());
    }
    REQUIRE(written > 1e14);
    const double moved = bits_per_second_x_ns(trace.store_rates, Instant(r.simulated)) / 8e9;
    CHECK(moved == doctest::Approx(written).epsilon(1e-6));
}

TEST_CASE("recorded absences are the nodes that repair is booked for") {
    const Scenario s = load_scenario(failing, "failing");
    ReplicaTrace trace;
    const ReplicaResult r = run_replica(s, 0, true, &trace);
    REQUIRE(trace.absences.size() > 3);
    GpuNanoseconds away = 0;
    for (const NodeAbsence& a : trace.absences) {
        away += GpuNanoseconds{s.node.gpus} *
                (std::min(a.until, Instant(r.simulated)) - a.from).count();
    }
    CHECK(away == r.ledger.booked(Category::repair));
}

TEST_CASE("a window that is recorded is the same window, and its pauses add up") {
    ScenarioChanges changes;
    changes.packets = true;
    const Scenario s = load_scenario_file(RAILYARD_ROOT "/tests/determinism/window.toml", changes);
    const NetworkWindow w = packet_windows(s)[0];
    const WindowResult plain = run_to_its_end(s, w);
    WindowRecord record;
    const WindowResult r = run_to_its_end(s, w, &record);
    CHECK(r.digest == plain.digest);
    std::map<LinkId, std::int64_t> pauses;
    std::map<LinkId, std::int64_t> queues;
    for (const PauseEdge& edge : record.pauses) pauses[edge.link] += edge.waits;
    for (const QueueSample& sample : record.queues) {
        queues[sample.link] = std::max(queues[sample.link], sample.bytes);
    }
    REQUIRE(!pauses.empty());
    REQUIRE(!queues.empty());
    for (const WindowLink& link : r.links) {
        CHECK(pauses[link.link] == link.pauses);
        CHECK(queues[link.link] <= link.queue_bytes_max * 2);  // all classes against the fullest
    }
}
