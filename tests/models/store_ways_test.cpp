// Saves, restores and reads of data over a network of which something is broken, by hand.

#include <doctest/doctest.h>
#include <fmt/format.h>

#include <algorithm>

#include "models/campaign/campaign.h"
#include "tests/scenario_text.h"

using namespace railyard;

namespace {

// Four nodes on each of two leaves with 9 up links, three to each of three spines; servers on leaves of
// their own that take whatever comes.
const std::string base = R"(
[run]
duration = "1 day"
fidelity = "flow"
[cluster]
node = "dgx_h100"
nodes = 8
[fabric.compute]
topology = "fat_tree"
nodes_per_leaf = 4
oversubscription = 4
routing = "spray"
[failures]
random = false
[storage]
system = "generic"
network = "compute"
servers = 64
nics_per_server = 8
server_read_bandwidth = "10 TB/s"
server_write_bandwidth = "10 TB/s"
)";
constexpr double cable = 50e9 * 0.97;  // bytes/s of a NIC or an up link, what protocols leave

std::string full_bisection() {
    std::string out = base;
    return out.replace(out.find("oversubscription = 4"), 20, "oversubscription = 1");
}

const std::string saves = "interval = \"1 h\"\nsize = \"100 TB\"\nserialization = \"1 TB/s\"\n";
constexpr double saved = 100e12;

std::string job(const std::string& more = "") {
    return "[job]\nnodes = 4\nstep.time = \"1 s\"\n" + more + "[job.checkpoint]\n" + saves;
}
std::string kind(const std::string& name) {
    return "[[jobs.kind]]\nname = \"" + name +
           "\"\nnodes = 4\nlength = \"30 h\"\nstep.time = \"1 s\"\n[jobs.kind.checkpoint]\n" +
           saves;
}

std::string outage(const std::string& what, const std::string& at, const std::string& lasts = "") {
    return "[[inject]]\n" + what + "\nat = \"" + at + "\"\n" +
           (lasts.empty() ? "" : "duration = \"" + lasts + "\"\n");
}
std::string part(const std::string& name) {
    return "part = \"" + name + "\"";
}
const std::string servers_leaf = part("leaf-5");
std::string all_nics_of(int node, const std::string& at, const std::string& lasts = "") {
    std::string out;
    for (int nic = 0; nic < 8; ++nic) {
        out += outage(part(fmt::format("node-{}.nic-{}", node, nic)), at, lasts);
    }
    return out;
}

ReplicaResult run(const std::string& text) {
    return run_replica(load_scenario(text, "store ways"), 0, true);
}

double stall(const ReplicaResult& r) {
    return metric(r, "checkpoint_time_to_stall_end");
}

// By the four nodes that the job has.
double booked_s(const ReplicaResult& r, Category category) {
    return r.ledger.fraction(category) * 2 * seconds(r.simulated);
}

std::int64_t times_cut_off(const ReplicaResult& r) {
    return std::ranges::count_if(
        r.log, [](const CampaignEvent& e) { return std::string(e.kind) == "no_path"; });
}

std::string two_hours(std::string text) {
    return text.replace(text.find("1 day"), 5, "2 h");
}

}  // namespace

TEST_CASE("a save takes its bytes over what is left of the links that were its wall") {
    const ReplicaResult sound = run(base + job());
    CHECK(stall(sound) == doctest::Approx(saved / (9 * cable)).epsilon(1e-4));
    const std::string one = outage(part("spine-0"), "0 s");
    CHECK(stall(run(base + job() + one)) == doctest::Approx(saved / (6 * cable)).epsilon(1e-4));
    const std::string two = one + outage(part("spine-1"), "0 s");
    const ReplicaResult third = run(base + job() + two);
    CHECK(stall(third) == doctest::Approx(3 * stall(sound)).epsilon(1e-4));
    CHECK(metric(third, "checkpoint_stall_network") ==
          doctest::Approx(stall(third) * metric(third, "checkpoints")).epsilon(0.02));
    // One of nine; who sprays evenly waits for one at half its rate, and would be better off without it.
    const std::string cable_of_leaf = "from = \"leaf-0\"\nto = \"spine-0\"";
    CHECK(stall(run(base + job() + outage(cable_of_leaf, "0 s"))) ==
          doctest::Approx(saved / (8 * cable)).epsilon(1e-4));
    CHECK(stall(run(base + job() + outage(cable_of_leaf + "\nspeed = 0.5", "0 s"))) ==
          doctest::Approx(2 * stall(sound)).epsilon(1e-4));
}

TEST_CASE("packets that choose their ways have what is left of every spine and cable") {
    std::string text = base;
    text.replace(text.find("\"spray\""), 7, "\"adaptive\"");
    CHECK(stall(run(text + job())) == doctest::Approx(saved / (9 * cable)).epsilon(1e-4));
    for (const char* spine : {"spine-0", "spine-1", "spine-2"}) {
        CAPTURE(spine);
        CHECK(stall(run(text + job() + outage(part(spine), "0 s"))) ==
              doctest::Approx(saved / (6 * cable)).epsilon(1e-4));
        const std::string half =
            fmt::format("from = \"leaf-0\"\nto = \"{}\"\nspeed = 0.5", spine);
        CHECK(stall(run(text + job() + outage(half, "0 s"))) ==
              doctest::Approx(saved / (8.5 * cable)).epsilon(1e-4));
    }
}

TEST_CASE("a save whose nodes' NICs are its wall takes twice as long with one at half its rate") {
    const ReplicaResult sound = run(full_bisection() + job());
    CHECK(stall(sound) == doctest::Approx(saved / (32 * cable)).epsilon(1e-4));
    const std::string half = part("node-0.nic-0") + "\nspeed = 0.5";
    CHECK(stall(run(full_bisection() + job() + outage(half, "0 s"))) ==
          doctest::Approx(2 * stall(sound)).epsilon(1e-4));
    // Its neighbour sends for both.
    CHECK(stall(run(full_bisection() + job() + outage(part("node-0.nic-0"), "0 s"))) ==
          doctest::Approx(2 * stall(sound)).epsilon(1e-4));
}

TEST_CASE("nothing changes where the wall is elsewhere or nothing meets the part") {
    std::string slow = base;
    const std::string key = "server_write_bandwidth = \"10 TB/s\"";
    slow.replace(slow.find(key), key.size(), "server_write_bandwidth = \"2 GB/s\"");
    CHECK(run(slow + job() + outage(part("spine-0"), "0 s")).outcome == run(slow + job()).outcome);
    for (const std::string name : {"leaf-1", "node-5.nic-0"}) {
        CHECK(run(base + job() + outage(part(name), "0 s")).outcome == run(base + job()).outcome);
    }
}

TEST_CASE("a save under way goes on at what is left, and at its own rate once that is mended") {
    // It begins after 3,600 steps of a second. Spine 0 is out for 100 s of it: a third is left undone.
    const double sound = saved / (9 * cable);
    for (const bool many : {false, true}) {
        CAPTURE(many);
        const std::string text = two_hours(base) + (many ? "[scheduler]\n" + kind("a") : job());
        const ReplicaResult r = run(text + outage(part("spine-0"), "3650 s", "100 s"));
        CHECK(booked_s(r, Category::checkpoint_stall) ==
              doctest::Approx(sound + 100.0 / 3).epsilon(1e-4));
    }
}

TEST_CASE("where no way is left saves stand still, and end as much later") {
    const double sound = saved / (9 * cable);
    const std::string out = outage(servers_leaf, "3650 s", "30 min");
    for (const std::string& jobs : {job(), "[scheduler]\n" + kind("a")}) {
        const ReplicaResult r = run(two_hours(base) + jobs + out);
        CHECK(booked_s(r, Category::checkpoint_stall) ==
              doctest::Approx(sound + 1800).epsilon(1e-5));
        const auto said = [](const CampaignEvent& e) {
            return std::string(e.kind) == "no_path" && e.cause.find("leaf-5") != std::string::npos;
        };
        CHECK(std::ranges::count_if(r.log, said) == 1);
    }
}

TEST_CASE("a job whose steps are computed goes on where only its store is out of reach") {
    std::string text = two_hours(base) + job();
    text.replace(text.find("step.time = \"1 s\""), 17,
                 "model = \"llama2_13b\"\nparallel = { tensor = 8, global_batch = 64, zero = 3 }");
    const ReplicaResult sound = run(text);
    const ReplicaResult r = run(text + outage(servers_leaf, "10 min", "40 min"));
    CHECK(r.outcome == sound.outcome);
    const ReplicaResult late = run(text + outage(servers_leaf, "50 min", "40 min"));
    CHECK(late.ledger.fraction(Category::storm_stall) == 0);
    CHECK(booked_s(late, Category::checkpoint_stall) >
          booked_s(sound, Category::checkpoint_stall) + 1500);
}

TEST_CASE("what is never mended is in the stuck report of jobs that save or come back") {
    std::string endless = base;
    endless.replace(endless.find("duration = \"1 day\""), 18, "");
    const ReplicaResult one =
        run(endless + job("length = \"2 h\"\n") + outage(servers_leaf, "1 h"));
    CHECK(one.ending == Ending::stuck);
    CHECK(one.stuck_report.find("to the store over the compute network: leaf-5 is out") !=
          std::string::npos);
    const ReplicaResult many =
        run(endless + "[scheduler]\n" + kind("a") + outage(servers_leaf, "1 h"));
    CHECK(many.ending == Ending::stuck);
    CHECK(many.stuck_report.find("to the store over the compute network: leaf-5 is out") !=
          std::string::npos);
}

TEST_CASE("of many jobs only those whose routes meet the part save more slowly") {
    const std::string two = base + "[scheduler]\n" + kind("a") + kind("b");
    const auto of = [](const ReplicaResult& r, const char* name) {
        return metric(r, std::string("checkpoint_stall_kind_") + name);
    };
    const ReplicaResult sound = run(two);
    const ReplicaResult r = run(two + outage("from = \"leaf-1\"\nto = \"spine-0\"", "0 s"));
    CHECK(of(r, "a") == of(sound, "a"));
    CHECK(of(r, "b") == doctest::Approx(of(sound, "b") * 9 / 8).epsilon(0.01));
}

TEST_CASE("uploads behind the steps and restores go over what is left too") {
    const std::string out = outage(part("spine-0"), "0 s") + outage(part("spine-1"), "0 s");
    const std::string behind =
        "[job]\nnodes = 4\nstep.time = \"1 s\"\n[job.checkpoint]\ninterval = \"1 h\"\n"
        "size = \"4 TB\"\nserialization = \"1 TB/s\"\nmode = \"async\"\n";
    CHECK(metric(run(base + behind + out), "checkpoint_upload_network") /
              metric(run(base + behind), "checkpoint_upload_network") ==
          doctest::Approx(3).epsilon(0.02));
    const std::string failure = "[[inject]]\ncause = \"nic\"\nnode = 1\nat = \"2 h\"\n";
    CHECK(metric(run(base + job() + failure), "restore_network") ==
          doctest::Approx(saved / (9 * cable)).epsilon(1e-4));
    CHECK(metric(run(base + job() + failure + out), "restore_network") ==
          doctest::Approx(saved / (3 * cable)).epsilon(1e-4));
}

TEST_CASE("steps wait for data that what is left brings too late") {
    // 288 GB each second; two spines bring 291.
    const std::string reads =
        "[job]\nnodes = 4\nstep.time = \"1 s\"\ncheckpoint.mode = \"none\"\n[job.data]\n"
        "sample_size = \"1 GB\"\nbatch = 9\nprefetch = 2\nworkers = 1000\n";
    const ReplicaResult sound = run(base + reads);
    const std::string one = outage(part("spine-0"), "0 s");
    CHECK(run(base + reads + one).outcome == sound.outcome);
    const ReplicaResult two = run(base + reads + one + outage(part("spine-1"), "0 s", "6 h"));
    const double late_s = 6 * 3600 * (1 - 3 * cable / 288e9);
    CHECK(booked_s(two, Category::data_wait) == doctest::Approx(late_s).epsilon(1e-3));
    const ReplicaResult none = run(base + reads + outage(servers_leaf, "1 h", "6 h"));
    CHECK(booked_s(none, Category::data_wait) == doctest::Approx(6 * 3600).epsilon(1e-3));
}

TEST_CASE("a save goes on where only those who don't write are out of reach") {
    const std::string one_writes = "layout = \"consolidated\"\n";
    const std::string failure = "[[inject]]\ncause = \"nic\"\nnode = 1\nat = \"2 h\"\n";
    const std::string out = all_nics_of(3, "0 s");
    for (const bool many : {false, true}) {
        CAPTURE(many);
        const std::string jobs = (many ? "[scheduler]\n" + kind("a") : job()) + one_writes;
        const ReplicaResult sound = run(two_hours(base) + jobs);
        const ReplicaResult r = run(two_hours(base) + jobs + out);
        CHECK(booked_s(sound, Category::checkpoint_stall) > 0);
        CHECK(booked_s(r, Category::checkpoint_stall) ==
              booked_s(sound, Category::checkpoint_stall));
        CHECK(times_cut_off(r) == 0);
        CHECK(times_cut_off(run(base + jobs + failure + out)) == 1);
    }
}

TEST_CASE("who shares links with an upload that has no way left any more has them alone at once") {
    std::string text = base;
    text.replace(text.find("oversubscription = 4"), 20, "oversubscription = 32");
    const auto kind_of_two = [](const char* name, const char* checkpoint) {
        return fmt::format(
            "[[jobs.kind]]\nname = \"{}\"\nnodes = 2\nlength = \"30 h\"\nstep.time = \"1 s\"\n"
            "[jobs.kind.checkpoint]\nserialization = \"1 TB/s\"\n{}\n",
            name, checkpoint);
    };
    // One up link. Uploads follow upon each other beside the save, and take half of it for 100 s.
    const std::string jobs =
        "[scheduler]\n" +
        kind_of_two("a", "interval = \"10 s\"\nsize = \"1 TB\"\nmode = \"async\"") +
        kind_of_two("b", "interval = \"1 h\"\nsize = \"20 TB\"");
    const ReplicaResult beside = run(two_hours(text) + jobs);
    const ReplicaResult r = run(two_hours(text) + jobs + all_nics_of(0, "3700 s"));
    const auto stall_s = [](const ReplicaResult& of) {
        return metric(of, "checkpoint_stall_kind_b") * seconds(of.simulated);
    };
    const double alone = 20e12 / cable;
    CHECK(stall_s(beside) == doctest::Approx(2 * alone).epsilon(0.05));
    CHECK(stall_s(r) == doctest::Approx(alone + 50).epsilon(0.02));
}
