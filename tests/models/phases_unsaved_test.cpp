// What jobs have done and not saved on the day of a phase: it can be lost afterwards, as in one run of both.

#include "sim/rng.h"
#include "tests/models/phase_runs.h"
#include "tests/scenario_text.h"

using namespace railyard;
using std::chrono_literals::operator""h;
using std::chrono_literals::operator""s;

namespace {

constexpr int days = 20;

// Each kind has two nodes of its own, whose job nobody else can get in the way of. Its work is 12 days.
std::string text(const std::vector<std::string>& kinds, const std::string& strikes,
                 const std::string& more, const std::string& run) {
    std::string out = fmt::format(R"([cluster]
node = "dgx_h100"
nodes = {}
[scheduler]
[[failures.cause]]
name = "crash"
rate_per_node = "0 /day"
remedy = "restart"
detection = "10 min"
{}{})",
                                  2 * kinds.size(), strikes, more);
    for (std::size_t i = 0; i < kinds.size(); ++i) {
        out +=
            fmt::format("[[partition]]\nname = \"p{0}\"\nfirst_node = {1}\nnodes = 2\n", i, 2 * i);
    }
    for (std::size_t i = 0; i < kinds.size(); ++i) {
        out += fmt::format(
            "[[jobs.kind]]\nname = \"k{0}\"\ncount = 1\nnodes = 2\nwork = \"12 day\"\npartition = "
            "\"p{0}\"\n{1}",
            i, kinds[i]);
    }
    return out + fmt::format("[run]\nduration = \"{} day\"\n{}", days, run);
}

std::string strike(double hour, std::size_t node) {
    return fmt::format("[[inject]]\nat = \"{} s\"\ncause = \"crash\"\nnode = {}\n",
                       static_cast<std::int64_t>(hour * 3600), node);
}

// So many on each pair of nodes, not in the hour before the days at which phases begin.
std::string strikes(std::uint64_t seed, std::size_t kinds, int each) {
    RandomStream stream(seed, 0, "strikes");
    std::string out;
    for (std::size_t kind = 0; kind < kinds; ++kind) {
        for (int i = 0; i < each; ++i) {
            double hour = stream.uniform() * days * 24;
            for (const double begin : {72.0, 240.0}) {
                if (hour > begin - 1 && hour <= begin) hour -= 1;
            }
            out += strike(hour, 2 * kind);
        }
    }
    return out;
}

// Without checkpoints; with them; with stalls, of steps that the day cuts off; with a long start.
const std::vector<std::string> fixed = {
    "restart = \"90 min\"\n",
    "checkpoint_interval = \"7 h\"\nrestart = \"20 min\"\nrestore = \"10 min\"\n",
    "checkpoint_interval = \"5 h\"\ncheckpoint_stall = \"1 h\"\nrestart = \"1 h\"\n",
    "checkpoint_interval = \"5 h\"\ncheckpoint_stall = \"7 min\"\nstep.time = \"7 s\"\nrestart = "
    "\"3 min\"\n",
    "step.time = \"70 min\"\nrestart = \"11 min\"\n",
    "checkpoint_interval = \"9 h\"\ncheckpoint_stall = \"8 h\"\nstep.time = \"31 h\"\n"};

double lost(const WorldRunResult& r) {
    return r.ledger.fraction(Category::lost_work);
}

}  // namespace

TEST_CASE("two phases of one cluster do what one run of both does, whatever fails and when") {
    for (std::uint64_t seed = 1; seed <= 12; ++seed) {
        INFO("seed " << seed);
        const std::string failures = strikes(seed, fixed.size(), static_cast<int>(seed % 4) * 2);
        const auto run = [&](const std::string& of) {
            return run_all(load_phases_of(text(fixed, failures, "", of)));
        };
        const WorldRunResult once = run("");
        check_same(run(phases({"2026-06-11"})), once);
        check_same(run(phases({"2026-06-04", "2026-06-11"})), once);
        check_same(run(phases({"2026-06-10", "2026-06-11", "2026-06-12"})), once);
    }
}

// A job that saves nothing and fails ten minutes after the second phase has begun.
const char* const saves_nothing = "restart = \"90 min\"\n";
constexpr Duration start = 5400s;
constexpr Duration noticed = 600s;
constexpr Duration unsaved = 240h + 600s - start;

TEST_CASE("what nobody has saved on the day of a phase is lost with the next failure") {
    const std::string fails = strike(240 + 1.0 / 6, 0);
    const Scenario s = load_phases_of(text({saves_nothing}, fails, "", phases({"2026-06-11"})));
    const WorldRunResult r = run_all(s);
    // Ten days without the start, and ten minutes of the phase.
    CHECK(lost(r) == doctest::Approx((240 + 1.0 / 6 - 1.5) / 480));
    CHECK(r.outcome.runs[0].kept_steps < (20 - 10) * Duration(24h).count());
    CHECK(r.outcome.runs[0].kept_steps <=
          s.world->spec.steps_of(draw_jobs(*s.world, 1, 0, s.duration).jobs[0]));
    CHECK(r.outcome.runs[0].lost_steps == unsaved.count());

    // The whole campaign says the same; its first phase what was known on the day.
    const ReplicaResult whole = run_replica(s, 0, false);
    CHECK(whole.ledger.booked(Category::lost_work) == r.ledger.booked(Category::lost_work));
    CHECK(whole.ledger.booked(Category::productive) == r.ledger.booked(Category::productive));
    const auto value = [&](std::string_view name) {
        const auto found = std::ranges::find(whole.metrics, name, &Metric::name);
        REQUIRE(found != whole.metrics.end());
        return found->value;
    };
    CHECK(value("goodput") == doctest::Approx(whole.ledger.fraction(Category::productive)));
    CHECK(value("phase_1_goodput") == doctest::Approx(1 - 1.5 / 240));
    const ReplicaResult once =
        run_replica(load_phases_of(text({saves_nothing}, fails, "", "")), 0, false);
    for (std::size_t c = 0; c < category_count; ++c) {
        INFO(c);
        CHECK(joules(whole.energy.nodes[c]) == doctest::Approx(joules(once.energy.nodes[c])));
    }
}

TEST_CASE("a phase with more nodes or slower work does not save anything either") {
    const std::string fails = strike(240 + 1.0 / 6, 0);
    for (const char* set : {"cluster.nodes = 4", "power.gpu_cap = \"500 W\""}) {
        INFO(std::string(set));
        const std::string grown = phases({"2026-06-11"}) + fmt::format("set = {{ {} }}\n", set);
        const WorldRunResult r = run_all(load_phases_of(text({saves_nothing}, fails, "", grown)));
        CHECK(r.ledger.booked(Category::lost_work) == GpuNanoseconds{16} * unsaved.count());
        CHECK(r.outcome.runs[0].kept > Duration{});
        CHECK(r.outcome.runs[0].kept == r.outcome.runs[0].held - unsaved - 2 * start - noticed);
    }
}

TEST_CASE("a store keeps over the day of a phase what is in it, and no more") {
    const std::string store = R"([storage]
system = "lustre"
)";
    // Hourly, and a save takes less than a second of it: what is lost is told to within that.
    for (const std::string kind :
         {"checkpoint_interval = \"7 h\"\ncheckpoint_size = \"5 GB\"\n",
          "checkpoint = { interval = \"7 h\", size = \"5 GB\" }\n",
          "checkpoint = { interval = \"360 steps\", size = \"5 GB\", mode = "
          "\"async\" }\nstep.time = \"70 s\"\n"}) {
        INFO(kind);
        for (const double hour : {240.2, 241.9, 243.0, 245.4, 251.3}) {
            INFO(hour);
            const auto run = [&](const std::string& of) {
                return run_all(load_phases_of(text({kind}, strike(hour, 0), store, of)));
            };
            const WorldRunResult once = run("");
            const WorldRunResult twice = run(phases({"2026-06-11"}));
            const double hours_lost = lost(once) * 480;
            CHECK(hours_lost > 0);
            // What a start reads back in a phase is not known there.
            CHECK(std::abs(lost(twice) * 480 - hours_lost) < 0.05);
            CHECK(std::abs(seconds(twice.outcome.runs[0].end - once.outcome.runs[0].end)) < 120);
            CHECK(twice.outcome.runs[0].kept_steps == once.outcome.runs[0].kept_steps);
        }
    }
}

TEST_CASE(
    "a corruption that is found after the day of a phase goes back no further than what was "
    "saved") {
    const std::string silent = R"([[failures.cause]]
name = "sdc"
rate_per_node = "0 /day"
silent = true
detection = "3 h"
remedy = "restart"
[[inject]]
at = "14430 min"
cause = "sdc"
node = 0
)";
    for (const std::string& kind : fixed) {
        INFO(kind);
        const auto run = [&](const std::string& of) {
            return run_all(load_phases_of(text({kind}, "", silent, of)));
        };
        check_same(run(phases({"2026-06-11"})), run(""));
    }
    const std::string stored =
        "checkpoint = { interval = \"30 min\", size = \"500 GB\", tier = [{ place = \"storage\", "
        "keep = "
        "24 }] }\n";
    const std::string more = "[storage]\nsystem = \"lustre\"\n" + silent;
    const WorldRunResult once = run_all(load_phases_of(text({stored}, "", more, "")));
    const WorldRunResult twice =
        run_all(load_phases_of(text({stored}, "", more, phases({"2026-06-11"}))));
    CHECK(twice.outcome.corruptions_found == 1);
    CHECK(lost(twice) == doctest::Approx(lost(once)).epsilon(0.01));
    CHECK(lost(twice) * 480 > 3);
}

TEST_CASE("a time limit counts on over the day of a phase") {
    const std::string kind =
        "limit = \"11 day\"\ncheckpoint_interval = \"5 h\"\nstep.time = \"70 min\"\n";
    const WorldRunResult twice =
        run_all(load_phases_of(text({kind}, "", "", phases({"2026-06-11"}))));
    check_same(twice, run_all(load_phases_of(text({kind}, "", "", ""))));
    CHECK(twice.outcome.runs[0].how == JobEnd::timeout);
    CHECK(twice.outcome.runs[0].end == Instant(11 * 24h));
}

TEST_CASE("a job that is suspended on the day of a phase keeps what it has, and has not saved it") {
    const auto run = [](double strike_hour, const std::string& of) {
        const std::string failure = fmt::format(
            "[[failures.cause]]\nname = \"crash\"\nrate_per_node = \"0 /day\"\n"
            "remedy = \"restart\"\n{}",
            strike(strike_hour, 0));
        return run_all(load_phases_of(fmt::format(R"([cluster]
node = "dgx_h100"
nodes = 1
[scheduler]
{}{}
[[jobs.kind]]
name = "low"
count = 1
nodes = 1
work = "12 day"
qos = "low"
[[jobs.kind]]
name = "high"
count = 1
nodes = 1
work = "2 day"
qos = "high"
at = "9 day"
[run]
duration = "20 day"
{})",
                                                  qos_that_suspends, failure, of)));
    };
    const WorldRunResult once = run(19 * 24, "");
    const WorldRunResult twice = run(19 * 24, phases({"2026-06-11"}));
    CHECK(once.outcome.preemptions == 1);
    check_ledgers(twice, once);
    CHECK(twice.outcome.runs[0].end == once.outcome.runs[0].end);
    // It starts anew in the phase: it is not known there on which nodes it stood.
    CHECK(twice.outcome.runs[0].starts == once.outcome.runs[0].starts + 1);
    const WorldRunResult lost_once = run(12 * 24, "");
    const WorldRunResult lost_twice = run(12 * 24, phases({"2026-06-11"}));
    check_ledgers(lost_twice, lost_once);
    CHECK(lost(lost_once) == doctest::Approx(0.5));
}
