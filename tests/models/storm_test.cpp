// Pause storms in a campaign: what the window sees is what the ledger books.

#include <doctest/doctest.h>

#include "models/campaign/campaign.h"
#include "tests/models/small_world.h"
#include "tests/scenario_text.h"

using namespace railyard;

namespace {

const char* base = R"(
[run]
duration = "20 day"
replicas = 4
[cluster]
node = "dgx_h100"
nodes = 10
[fabric.compute]
kind = "roce"
topology = "fat_tree"
leaf = "sn5600_spectrum4"
nodes_per_leaf = 2
[fabric.compute.watchdog]
detection = "100 ms"
restoration = "100 ms"
[fabric.compute.transport]
timeout = 14
[job]
nodes = 8
[job.step]
time = "7 s"
[job.checkpoint]
mode = "none"
[[failures.storm]]
rate_per_job = "1 /day"
duration = "300 ms"
[[window.traffic]]
kind = "all_to_all"
bytes = "256 KiB"
)";

Scenario with(std::vector<std::string> settings) {
    static const auto windows = std::make_shared<WindowCache>();
    ScenarioChanges changes;
    changes.windows = windows;
    changes.settings = std::move(settings);
    return load_scenario(base, "storms", changes);
}

}  // namespace

TEST_CASE("each transient storm costs the job its stall, and nothing else") {
    const Scenario s = with({});
    REQUIRE(s.causes.size() == 1);
    const Storm& storm = *s.causes[0].storm;
    CHECK_FALSE(storm.fatal);
    // No sooner than the NIC lets go, and no later than a timeout after the watchdog does.
    CHECK(storm.stall > std::chrono::milliseconds(299));
    CHECK(storm.stall < std::chrono::milliseconds(300 + 200 + 2 * 68));
    const ReplicaResult r = run_replica(s, 0, false);
    CHECK(r.job.storms > 10);
    CHECK(r.job.interruptions[0] == 0);
    CHECK(r.job.storm_stall == r.job.storms * storm.stall);
    CHECK(booked_s(s, r, Category::storm_stall) ==
          doctest::Approx(static_cast<double>(r.job.storms) * seconds(storm.stall)));
    CHECK(r.ledger.booked(Category::lost_work) == 0);
}

TEST_CASE("without a watchdog a transient storm costs its own length: nothing is lost") {
    const Scenario s = with({"fabric.compute.watchdog={action=\"none\"}"});
    CHECK(seconds(s.causes[0].storm->stall) == doctest::Approx(0.3).epsilon(0.01));
}

TEST_CASE("a NIC that pauses for ever ends the job by timeout, sooner with fewer retries") {
    std::vector<std::string> for_ever = {"failures.storm=[{rate_per_job=\"1 /day\"}]"};
    const auto stall = [&](int retries) {
        std::vector<std::string> settings = for_ever;
        settings.push_back("fabric.compute.transport.retries=" + std::to_string(retries));
        const Scenario s = with(settings);
        CHECK(s.causes[0].storm->fatal);
        return seconds(s.causes[0].storm->stall);
    };
    const double rto = 4.096e-6 * (1 << 14);
    CHECK(stall(7) == doctest::Approx(8 * rto).epsilon(0.05));
    CHECK(stall(3) == doctest::Approx(4 * rto).epsilon(0.05));
    const Scenario s = with(for_ever);
    const ReplicaResult r = run_replica(s, 0, false);
    CHECK(r.job.interruptions[0] == r.job.storms);
    CHECK(r.ledger.booked(Category::lost_work) > 0);
}

TEST_CASE("what stands still for longer than the collectives' watchdog waits ends the job") {
    const auto storm = [](const char* timeout, const char* storm_keys) {
        const Scenario s =
            with({std::string("fabric.compute.transport.timeout=") + timeout,
                  "fabric.compute.watchdog={action=\"none\"}",
                  std::string("failures.storm=[{rate_per_job=\"1 /day\"") + storm_keys + "}]"});
        return *s.causes[0].storm;
    };
    // Eight timeouts of 68.7 s and of 137 s.
    CHECK(storm("24", "").fatal);
    CHECK(seconds(storm("24", "").stall) == doctest::Approx(8 * 68.7).epsilon(0.05));
    CHECK(storm("25", "").fatal);
    CHECK(storm("25", "").stall == std::chrono::seconds(600));
    // A storm that passes before any connection gives up.
    CHECK_FALSE(storm("25", ",duration=\"500 s\"").fatal);
    CHECK(storm("25", ",duration=\"700 s\"").fatal);
    CHECK(storm("25", ",duration=\"700 s\"").stall == std::chrono::seconds(600));
}

TEST_CASE(
    "a storm whose window loses packets of a lossless class is refused, unless that is allowed") {
    const std::vector<std::string> bare = {"fabric.compute.pfc.headroom=1 kB",
                                           "fabric.compute.buffer.alpha=0.002",
                                           "fabric.compute.congestion.control=none"};
    CHECK_THROWS_WITH_AS(with(bare), doctest::Contains("of a lossless class"), ScenarioError);
    std::vector<std::string> allowed = bare;
    allowed.push_back("window.allow_loss=true");
    CHECK_NOTHROW(with(allowed));
}

TEST_CASE("who has no watchdog must find the NIC before the job can start again") {
    const auto detection = [&](const char* watchdog) {
        return with({"failures.storm=[{rate_per_job=\"1 /day\",found_after=\"20 min\"}]",
                     std::string("fabric.compute.watchdog=") + watchdog})
            .causes[0]
            .detection;
    };
    CHECK(detection("{action=\"none\"}") == std::chrono::minutes(20));
    CHECK(detection("{profile=\"sonic\"}") == Duration{});
}

TEST_CASE("who finds a storm that ends the job waits no longer than it lasts") {
    const auto found = [&](const char* duration) {
        const Scenario s =
            with({std::string(
                      R"(failures.storm=[{rate_per_job="1 /day",found_after="20 min",duration=")") +
                      duration + "\"}]",
                  R"(fabric.compute.watchdog={action="none"})"});
        REQUIRE(s.causes[0].storm->fatal);
        return s.causes[0].detection + s.causes[0].storm->stall;
    };
    CHECK(found("10 min") == std::chrono::minutes(10));  // its end, a little after the job's
    CHECK(found("1 h") == found("10 days"));
    CHECK(found("1 h") > std::chrono::minutes(20));
}

TEST_CASE("a NIC that pauses for ever ends the job however early its flows end beside others") {
    // By hash some rings take several times as long as others, whose NICs then have nothing left to take.
    for (int node = 0; node < 8; ++node) {
        for (int nic = 0; nic < 8; nic += 3) {
            const std::string name = "node-" + std::to_string(node) + ".nic-" + std::to_string(nic);
            CAPTURE(name);
            const Scenario s = with(
                {"window.traffic=[{kind=\"ring\",bytes=\"4 MiB\"}]", "fabric.compute.queue_pairs=1",
                 "failures.storm=[{rate_per_job=\"1 /day\",nic=\"" + name + "\"}]"});
            CHECK(s.causes[0].storm->fatal);
        }
    }
}

TEST_CASE("a storm of a NIC that nothing waits for is a warning, and holds up nothing") {
    const auto warns = [](const char* kind) {
        const Scenario s = with({"failures.storm=[{rate_per_job=\"1 /day\",nic=\"node-1.nic-0\"}]",
                                 "window.traffic=[{kind=\"incast\",senders=8,bytes=\"16 MiB\"}]",
                                 std::string("fabric.compute={kind=\"") + kind + "\"}"});
        CHECK(s.causes[0].storm->fatal == s.warnings.empty());
        return !s.warnings.empty();
    };
    CHECK(warns("roce"));
    // It sends, and must take credits' acknowledgements.
    CHECK_FALSE(warns("infiniband"));
}

TEST_CASE("who only asks whether a file is right runs no packet window") {
    int heard = 0;
    ScenarioChanges changes;
    changes.windows = std::make_shared<WindowCache>(
        WindowObserver{nullptr, [&](std::int64_t, std::int64_t) { ++heard; }});
    const auto load = [&](std::vector<std::string> settings) {
        changes.settings = std::move(settings);
        return load_scenario(base, "storms", changes);
    };
    load({});
    CHECK(heard > 0);  // a window is heard
    heard = 0;
    changes.run_windows = false;
    const double before = process_cpu_seconds();
    // Each would take minutes: a terabyte in packets, and a step's collectives.
    CHECK(load({"window.traffic=[{kind=\"all_to_all\",bytes=\"16 GiB\"}]"}).warnings.empty());
    load({"run.fidelity=packet", "job={model=\"llama3_70b\",nodes=8,checkpoint.mode=\"none\"}",
          "job.parallel={tensor=8,pipeline=4,global_batch=256}"});
    CHECK(heard == 0);
    CHECK(process_cpu_seconds() - before < 1);
    // What is wrong without a window is said.
    CHECK_THROWS_WITH_AS(load({"failures.storm=[{rate_per_job=\"1 /day\",nic=\"node-99.nic-0\"}]"}),
                         doctest::Contains("has no NIC"), ScenarioError);
    CHECK_THROWS_WITH_AS(load({"fabric.compute.fault=[{from=\"node-1.nic-0\",to=\"leaf-0\"}]"}),
                         doctest::Contains("no path is left"), ScenarioError);
    const Scenario idle = load({"failures.storm=[{rate_per_job=\"1 /day\",nic=\"node-1.nic-0\"}]",
                                "window.traffic=[{kind=\"incast\",senders=8,bytes=\"16 MiB\"}]"});
    CHECK(idle.warnings.size() == 1);
    CHECK(heard == 0);
}

TEST_CASE("storms move no other failure") {
    const char* others = "failures.profile=meta_rsc1";
    const ReplicaResult calm = run_replica(with({others, "failures.storm=[]"}), 0, true);
    const ReplicaResult stormy = run_replica(with({others}), 0, true);
    std::vector<Instant> calm_at;
    std::vector<Instant> stormy_at;
    for (const CampaignEvent& e : calm.log) {
        if (std::string_view(e.kind) == "interruption") calm_at.push_back(e.at);
    }
    for (const CampaignEvent& e : stormy.log) {
        if (std::string_view(e.kind) == "interruption") stormy_at.push_back(e.at);
    }
    CHECK(calm_at == stormy_at);
}

namespace {

// Storms that hold up a job which does nothing else than train; and one with these settings beside, which
// has its store on the network that storms, or not. All three meet the same storms.
struct HeldUp {
    explicit HeldUp(std::vector<std::string> settings) {
        training = run_replica(with({}), 0, false).job;
        settings.emplace_back("storage.servers=1");
        apart = run_replica(with(settings), 0, false).job;
        settings.emplace_back("storage.network=\"compute\"");
        const Scenario s = with(settings);
        stall = s.causes.back().storm->stall;
        shared = run_replica(s, 0, false).job;
    }
    JobOutcome training, apart, shared;
    Duration stall{};
};

}  // namespace

TEST_CASE("a storm on the network of the store holds up a write as it holds up training") {
    // A third of the time goes into writes.
    const HeldUp jobs({"job.checkpoint.mode=\"sync\"", "job.checkpoint.size=\"4 TB\"",
                       "storage.server_write_bandwidth=\"4 GB/s\""});
    CHECK(jobs.apart.storms < jobs.training.storms);
    CHECK(jobs.shared.storms == jobs.training.storms);
    CHECK(jobs.shared.storm_stall == jobs.shared.storms * jobs.stall);
    CHECK(jobs.shared.checkpoint.made_safe == jobs.apart.checkpoint.made_safe);
}

TEST_CASE("a storm on the network of the store holds up the upload that a snapshot waits for") {
    // An upload takes twice as long as the training before it.
    const HeldUp jobs({"job.checkpoint.mode=\"async\"", "job.checkpoint.size=\"4 TB\"",
                       "job.checkpoint.interval=\"8 min\"", "job.checkpoint.upload_slowdown=0.0",
                       "storage.server_write_bandwidth=\"4 GB/s\""});
    CHECK(jobs.apart.storms < jobs.training.storms);
    CHECK(jobs.shared.storms == jobs.training.storms);
    CHECK(jobs.shared.storm_stall == jobs.shared.storms * jobs.stall);
}

TEST_CASE("a storm on the network of the store holds up a restore") {
    const HeldUp jobs({"failures.cause=[{name=\"other\",mtbf_job=\"12 h\",detection=\"0 s\"}]",
                       "job.recovery={restart=\"0 s\",restore=\"8 h\"}"});
    CHECK(jobs.apart.storms < jobs.training.storms);
    CHECK(jobs.shared.storms == jobs.training.storms);
    CHECK(jobs.shared.storm_stall == jobs.shared.storms * jobs.stall);
}

namespace {

// Under Slurm: ten nodes, with a storm that holds a job up for so long.
struct Stormy : SmallWorld {
    explicit Stormy(Duration stall, bool fatal = false) : SmallWorld(10, 1) {
        causes[0].storm = Storm{.stall = stall, .fatal = fatal};
        spec.kinds[0].given_step = std::chrono::seconds(7);
        spec.kinds[0].checkpoint_interval = std::chrono::seconds(70);
        spec.kinds[0].checkpoint_stall = std::chrono::seconds(10);
    }
};

double job_s(const WorldRunResult& r, Category category) {
    return node_hours(r, category) * 3600;
}

}  // namespace

TEST_CASE("of many jobs a storm holds up those on its node, and nothing of them is lost") {
    using std::chrono_literals::operator""h;
    using std::chrono_literals::operator""s;
    Stormy f(3s);
    f.submit(8, 700s);
    f.submit(8, 700s);
    f.inject(100s, 0);            // in a step
    f.inject(Duration(101s), 0);  // it stands still already
    f.inject(Duration(152s), 0);  // before 153 s, in the step that ends then, on the first job
    f.inject(Duration(75s), 1);   // while the second job saves: nothing of it is on the links
    f.inject(Duration(30s), 5);   // nobody is there
    const WorldRunResult r = f.run(10h);
    CHECK(r.outcome.storms == 2);
    CHECK(r.outcome.strikes_on_idle == 1);
    CHECK(seconds(r.outcome.runs[0].end.time_since_epoch()) == 700 + 9 * 10 + 2 * 3);
    CHECK(seconds(r.outcome.runs[1].end.time_since_epoch()) == 700 + 9 * 10);
    CHECK(job_s(r, Category::storm_stall) == doctest::Approx(6));
    CHECK(job_s(r, Category::productive) == doctest::Approx(1400));
    CHECK(r.ledger.booked(Category::lost_work) == 0);
}

TEST_CASE("of many jobs a storm reaches those that send over a link of one on its node") {
    using std::chrono_literals::operator""h;
    using std::chrono_literals::operator""s;
    Stormy f(3s);
    f.spec.kinds[0].traffic = [](const std::vector<NodeIndex>& nodes, const NetworkNow&) {
        auto out = std::make_shared<StepTraffic>();
        out->step_s = 7;
        TrafficPart part;
        part.busy_s = 1;
        part.loads.flow_bytes_per_s = 1e9;
        part.loads.links = {{nodes[0] < 2 ? LinkId{0} : LinkId{1}, 1, 50e9}};  // never full
        for (const double slowdown : traffic_slowdowns()) part.longer_s.push_back(slowdown - 1);
        out->parts = {part};
        return out;
    };
    for (int i = 0; i < 3; ++i) f.submit(8, 700s);  // on nodes 0, 1 and 2
    f.inject(100s, 0);
    const WorldRunResult r = f.run(10h);
    CHECK(r.outcome.storms == 1);
    CHECK(job_s(r, Category::storm_stall) == doctest::Approx(6));
    CHECK(r.outcome.runs[1].end - r.outcome.runs[2].end == Duration(3s));
}

TEST_CASE("of many jobs a storm that their connections give up in takes its node") {
    using std::chrono_literals::operator""h;
    using std::chrono_literals::operator""s;
    Stormy f(3s, true);
    f.causes[0].detection = 20s;
    f.submit(8, 700s);
    f.inject(100s, 0);  // the second step after the first save, at 80 s
    const WorldRunResult r = f.run(10h);
    CHECK(r.outcome.storms == 1);
    CHECK(r.outcome.interruptions[0] == 1);
    CHECK(job_s(r, Category::storm_stall) == doctest::Approx(3));
    CHECK(job_s(r, Category::detection) == doctest::Approx(20));
    CHECK(job_s(r, Category::lost_work) == doctest::Approx(20));
    CHECK(job_s(r, Category::repair) == doctest::Approx(3600));  // a reset takes an hour
    CHECK(job_s(r, Category::productive) == doctest::Approx(700));
}

TEST_CASE("a storm whose job is stopped meanwhile loses what was done of the step, once") {
    using std::chrono_literals::operator""h;
    using std::chrono_literals::operator""s;
    Stormy f(50s);
    f.submit(8, 700s, {}, 120s);
    f.inject(100s, 0);
    f.spec.kinds[0].resubmit = true;
    const WorldRunResult r = f.run(Duration(120s));
    CHECK(job_s(r, Category::storm_stall) == doctest::Approx(20));
    CHECK(job_s(r, Category::lost_work) == doctest::Approx(20));
    CHECK(job_s(r, Category::productive) == doctest::Approx(70));
}

TEST_CASE("one job is held up alike by storms, written as a [job] or as the only one of a kind") {
    std::string storm = "duration = '300 ms'\n";
    bool fatal = false;
    SUBCASE("that pass") {}
    SUBCASE("that end it") {
        storm = "found_after = '10 min'\n";
        fatal = true;
    }
    const auto ledger = [&](const std::string& head, const std::string& name) {
        const std::string text =
            "run = { duration = '20 day', replicas = 1 }\n"
            "cluster = { node = 'dgx_h100', nodes = 8 }\n"
            "storage.system = 'vast'\n"
            "[fabric.compute]\nkind = 'roce'\ntopology = 'fat_tree'\n"
            "leaf = 'sn5600_spectrum4'\nnodes_per_leaf = 2\n"
            "watchdog = { detection = '100 ms', restoration = '100 ms' }\n"
            "transport.timeout = 14\n" +
            head + "nodes = 8\nlength = '1000 day'\nstep.time = '7 s'\n[" + name +
            ".checkpoint]\nsize = '1 TB'\ninterval = '1 h'\n"
            "[[failures.storm]]\nrate_per_node = '1 /day'\n" +
            storm + "[[window.traffic]]\nkind = 'all_to_all'\nbytes = '256 KiB'\n";
        const Scenario s = load_scenario(text, "either way", {});
        return run_replica(s, 0, false).ledger;
    };
    const Ledger one = ledger("[job]\n", "job");
    const Ledger many = ledger("[scheduler]\n[[jobs.kind]]\nname = 'one'\n", "jobs.kind");
    CHECK(one.booked(Category::storm_stall) > 0);
    const auto booked = [](const Ledger& of, Category category) {
        return static_cast<double>(of.booked(category));
    };
    if (fatal) {  // what follows an end is the scheduler's
        CHECK(booked(many, Category::storm_stall) ==
              doctest::Approx(booked(one, Category::storm_stall)).epsilon(0.1));
        return;
    }
    for (const Category same :
         {Category::storm_stall, Category::productive, Category::checkpoint_stall}) {
        CHECK(booked(one, same) == booked(many, same));
    }
}
