// Saving and losing, against closed forms.

#include <doctest/doctest.h>
#include <fmt/format.h>

#include <cmath>
#include <optional>
#include <string_view>

#include "models/campaign/campaign.h"
#include "tests/scenario_text.h"
#include "tests/table.h"

using namespace railyard;

namespace {

// A failure-free job of `step` steps on two nodes, whose checkpoints take exactly 700 s.
std::string saving(const std::string& interval, const std::string& clock,
                   const std::string& duration) {
    return fmt::format(R"(
[run]
replicas = 1
duration = "{}"
[cluster]
nodes = 2
[storage]
server_write_bandwidth = "4 GB/s"
[job.step]
time = "2.5 s"
[job.checkpoint]
size = "2.8 TB"
interval = "{}"
clock = "{}"
)",
                       duration, interval, clock);
}

// The oracle's case: failures with mean time M hit work, checkpoint and recovery; a failure costs a
// downtime D without failures, then a recovery R. One segment of work is one step, so that the step's end
// is where the oracle's checkpoint begins.
std::string renewal(const TableRow& row, double segment_s, const std::string& run_end,
                    const std::string& job_end, int replicas) {
    return fmt::format(R"(
[run]
replicas = {}
{}
[cluster]
nodes = 1
[storage]
server_write_bandwidth = "1 GB/s"
[job]
{}
[job.step]
time = "{:.6f} s"
[job.checkpoint]
size = "{} GB"
interval = "1 step"
[job.recovery]
restart = "0 s"
restore = "{} s"
[[failures.cause]]
name = "any"
mtbf_job = "{} s"
detection = "{} s"
)",
                       replicas, run_end, job_end, segment_s, row.at("C_s"), row.at("R_s"),
                       row.at("M_s"), row.at("D_s"));
}

GpuNanoseconds productive(const ReplicaResult& r) {
    return r.ledger.booked(Category::productive);
}

}  // namespace

TEST_CASE(
    "an interval of training time tau with a stall C leaves tau / (tau + C), to the nanosecond") {
    // 41 cycles of 3,600 s + 700 s.
    const Scenario s = scenario(saving("1 h", "training", "176300 s"));
    const ReplicaResult r = run_replica(s, 0, false);
    CHECK(r.job.checkpoint.made_safe == 41);
    CHECK(productive(r) == GpuNanoseconds{s.gpus()} * 41 * 3600 * 1'000'000'000);
    CHECK(r.ledger.booked(Category::checkpoint_stall) ==
          GpuNanoseconds{s.gpus()} * 41 * 700 * 1'000'000'000);
}

TEST_CASE("an interval tau from start to start leaves 1 - C / tau, to the nanosecond") {
    const Scenario s = scenario(saving("1 h", "wall", "30 day"));
    const ReplicaResult r = run_replica(s, 0, false);
    CHECK(r.job.checkpoint.made_safe == 720);
    CHECK(r.ledger.booked(Category::checkpoint_stall) ==
          GpuNanoseconds{s.gpus()} * 720 * 700 * 1'000'000'000);
    CHECK(r.metrics[0].name == "goodput");
    CHECK(r.metrics[0].value == 1 - 700.0 / 3600);
}

TEST_CASE("a campaign cut off anywhere still books every nanosecond") {
    for (const char* duration : {"1 s", "2999 s", "3700 s", "12345.678901234 s", "0.000000001 s"}) {
        CAPTURE(duration);
        for (const char* mode : {"sync", "async", "none"}) {
            const Scenario s = scenario(saving("1 h", "wall", duration),
                                        {fmt::format("job.checkpoint.mode={}", mode)});
            const ReplicaResult r = run_replica(s, 0, false);
            CHECK(r.ledger.total() == GpuNanoseconds{s.gpus()} * s.duration.count());
        }
    }
}

TEST_CASE("an asynchronous checkpoint stalls for its snapshot alone") {
    const Scenario s =
        scenario(saving("1 h", "training", "100 h"),
                 {"job.checkpoint.mode=async", "job.checkpoint.upload_slowdown=0.0"});
    CHECK(s.checkpoint_upload == std::chrono::seconds(700));
    CHECK(s.job.checkpoint.stall_alone < std::chrono::seconds(10));
    const ReplicaResult r = run_replica(s, 0, false);
    const Duration cycle = std::chrono::hours(1) + s.job.checkpoint.stall_alone;
    const std::int64_t cycles = std::chrono::hours(100) / cycle;
    CHECK(r.ledger.booked(Category::checkpoint_stall) ==
          GpuNanoseconds{s.gpus()} * cycles * s.job.checkpoint.stall_alone.count());
}

TEST_CASE("back-pressure leaves one checkpoint every max(tau + s, U, (s + U) / b)") {
    // tau of work, a snapshot s into one of b buffers, an upload U. A snapshot begins when its work is done
    // and the buffer of the b-th before it is free; an upload when its snapshot is there and the one before
    // is out. The stall is what this leaves of the time beside work, snapshot by snapshot.
    constexpr int cycles = 50;
    for (const int minutes : {5, 11, 60}) {
        for (const int buffers : {1, 2, 3}) {
            CAPTURE(minutes);
            CAPTURE(buffers);
            const Scenario s =
                scenario(saving(fmt::format("{} min", minutes), "training", "1000 h"),
                         {"cluster.nodes=8", "job.checkpoint.mode=async",
                          "job.checkpoint.upload_slowdown=0.0",
                          fmt::format("job.checkpoint.buffers={}", buffers),
                          fmt::format("job.length={} min", minutes * (cycles + 1))});
            const Duration tau = std::chrono::minutes(minutes);
            const Duration snapshot = s.job.checkpoint.stall_alone;
            const Duration upload = s.checkpoint_upload;
            REQUIRE(upload == std::chrono::seconds(700));
            std::vector<Duration> out(cycles + 1);
            Duration now{};
            Duration stalled{};
            for (int k = 1; k <= cycles; ++k) {
                const Duration due = now + tau;
                now = std::max(due, k > buffers ? out[static_cast<std::size_t>(k - buffers)]
                                                : Duration{}) +
                      snapshot;
                stalled += now - due;
                out[static_cast<std::size_t>(k)] =
                    std::max(now, out[static_cast<std::size_t>(k - 1)]) + upload;
            }
            const ReplicaResult r = run_replica(s, 0, true);
            CHECK(r.simulated == now + tau);
            CHECK(r.job.checkpoint.stall.total() == stalled);
            CHECK(r.job.checkpoint.stall[Wall::snapshot] == cycles * snapshot);
            CHECK(r.ledger.booked(Category::checkpoint_stall) ==
                  GpuNanoseconds{s.gpus()} * stalled.count());
            std::vector<Instant> safe;
            for (const CampaignEvent& e : r.log) {
                if (std::string_view(e.kind) == "checkpoint_safe") safe.push_back(e.at);
            }
            REQUIRE(safe.size() > 10);
            const Duration period =
                std::max({tau + snapshot, upload, (snapshot + upload) / buffers});
            CHECK(safe.back() - safe[safe.size() - 2] == period);
        }
    }
}

TEST_CASE(
    "an upload slower than the interval holds the job back: tau of work every snapshot + upload") {
    // Upload of 700 s, interval of 300 s: each cycle is snapshot + upload, with 300 s of work in
    // it.
    const Scenario s =
        scenario(saving("5 min", "training", "1000 h"),
                 {"job.checkpoint.mode=async", "job.checkpoint.upload_slowdown=0.0"});
    const ReplicaResult r = run_replica(s, 0, false);
    const double cycle = 700 + seconds(s.job.checkpoint.stall_alone);
    CHECK(r.metrics[0].value == doctest::Approx(300 / cycle).epsilon(2 * cycle / 3.6e6));
}

TEST_CASE("an upload slows the steps beside it, and that is booked to the checkpoint") {
    const Scenario s =
        scenario(saving("1 h", "training", "1000 h"),
                 {"job.checkpoint.mode=async", "job.checkpoint.upload_slowdown=0.1"});
    const ReplicaResult r = run_replica(s, 0, false);
    // In each cycle, 700 s run at 1/1.1 of the speed.
    const double lost = 700 - 700 / 1.1 + seconds(s.job.checkpoint.stall_alone);
    CHECK(r.ledger.fraction(Category::checkpoint_stall) ==
          doctest::Approx(lost / (3600 + lost)).epsilon(0.005));
}

TEST_CASE(
    "expected time under exponential failures is the renewal formula's, in every row of the "
    "table") {
    // One segment of work is one step, so that the step's end is where the oracle's checkpoint
    // begins.
    constexpr int segments = 2000;
    const std::vector<TableRow> rows = read_oracle("70_oracle_checkpoint_restart.csv");
    REQUIRE(rows.size() >= 18);
    for (const TableRow& row : rows) {
        const auto number = [&](const char* column) { return std::stod(row.at(column)); };
        const std::string length =
            fmt::format("length = \"{:.6f} s\"", number("W_opt_s") * segments);
        const std::string text = renewal(row, number("W_opt_s"), "", length, 400);
        CAPTURE(row.at("M_s"));
        CAPTURE(row.at("C_s"));
        CAPTURE(row.at("D_s"));
        CampaignOptions options;
        options.threads = 2;
        const CampaignResult result = run_campaign(scenario(text), options);
        const Summary wall = result.metric("wall_time").summary;
        const double expected =
            segments * number("e_segment_at_opt_s") - number("C_s");  // the last is not saved
        // Simultaneously for all rows: each row's share of the 5 %.
        const double quantile = student_t_quantile(1 - 0.025 / static_cast<double>(rows.size()),
                                                   static_cast<double>(wall.count - 1));
        const double half = quantile * wall.deviation / std::sqrt(static_cast<double>(wall.count));
        CHECK(std::abs(wall.mean - expected) < half);
        CHECK(half < 0.02 * expected);  // and the interval says something
    }
}

TEST_CASE("the best interval on a grid brackets Young, Daly and the exact optimum") {
    for (const TableRow& row : read_oracle("70_oracle_checkpoint_restart.csv")) {
        if (row.at("C_s") != "60") continue;
        CAPTURE(row.at("M_s"));
        const double optimum = std::stod(row.at("W_opt_s"));
        std::vector<double> factors = {0.25, 0.5, 1, 2, 4};
        std::vector<double> goodput;
        for (const double factor : factors) {
            const std::string duration =
                fmt::format("duration = \"{} s\"", 1000 * std::stod(row.at("M_s")));
            const std::string text = renewal(row, optimum * factor, duration, "", 20);
            goodput.push_back(run_campaign(scenario(text), {}).metric("goodput").summary.mean);
        }
        const std::size_t best = static_cast<std::size_t>(
            std::max_element(goodput.begin(), goodput.end()) - goodput.begin());
        REQUIRE(best > 0);
        REQUIRE(best + 1 < factors.size());
        for (const char* rule : {"W_young_s", "W_daly_s", "W_opt_s"}) {
            CHECK(factors[best - 1] * optimum < std::stod(row.at(rule)));
            CHECK(factors[best + 1] * optimum > std::stod(row.at(rule)));
        }
    }
}

TEST_CASE(
    "no job keeps more in the mean than its bound, and one with nothing else keeps nearly that") {
    for (const std::string interval : {"10 min", "1 h", "6 h"}) {
        for (const char* mode : {"sync", "async"}) {
            for (const int spares : {0, 8}) {
                const Scenario s = scenario(fmt::format(R"(
[run]
replicas = 200
duration = "60 day"
[cluster]
node = "dgx_h100"
nodes = {}
[storage]
system = "weka"
[job]
nodes = 64
[job.step]
time = "20 s"
[job.checkpoint]
size = "8 TB"
mode = "{}"
interval = "{}"
[job.recovery]
restart = "5 min"
[[failures.cause]]
name = "node"
mtbf_job = "12 h"
remedy = "replace"
repair_time = "1 day"
detection = "1 min"
)",
                                                        64 + spares, mode, interval));
                const std::optional<KeptBound> bound = kept_bound(s);
                REQUIRE(bound);
                const double most = bound->share(s.job.checkpoint.interval_steps);
                const CampaignResult ran = run_campaign(s, {});
                const Summary kept = ran.metric("ettr").summary;
                CAPTURE(interval);
                CAPTURE(mode);
                CAPTURE(spares);
                CHECK(kept.mean < most);
                // What is left is the wait for a spare, the read and the last cycle's end.
                if (spares > 0 && std::string_view(mode) == "sync") CHECK(kept.mean > 0.98 * most);
                if (spares == 0) CHECK(kept.mean < 0.7 * most);
            }
        }
    }
}

TEST_CASE("a job that saves because it is about to stop has no bound but its steps") {
    const char* text = R"(
[run]
duration = "60 day"
[cluster]
nodes = 2
[job.step]
time = "20 s"
[job.checkpoint]
size = "1 TB"
)";
    CHECK(kept_bound(scenario(text)));
    CHECK(!kept_bound(scenario(text, {"maintenance.every=7 day", "maintenance.duration=1 h"})));
    CHECK(!kept_bound(scenario(text, {"job.checkpoint.clock=wall"})));
    CHECK(!kept_bound(scenario(text, {"job.length=10 day"})));
}
