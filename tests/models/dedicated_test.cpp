// A job and a kind of jobs are written in the same words, and mean the same by them.

#include <doctest/doctest.h>

#include "models/campaign/campaign.h"
#include "tests/scenario_text.h"

using namespace railyard;

namespace {

const std::string cluster = cluster_text(3, "4 day") + R"(
[storage]
system = "vast"
servers = 4
[failures]
random = false
[[failures.cause]]
name = "gone"
rate_per_node = "1 /year"
remedy = "reset"
detection = "10 min"
reset_time = "2 h"
[[inject]]
at = "31 h"
cause = "gone"
node = 1
)";

// Its tables are those of a kind, or of the job.
std::string job(const std::string& opening, const std::string& path) {
    std::string text = R"(
nodes = 2
length = "60 h"
model = "llama2_7b"
[@.parallel]
tensor = 8
[@.checkpoint]
interval = "1 h"
[@.recovery]
policy = "requeue"
replacement = "0 s"
restart = "5 min"
)";
    for (std::size_t at = text.find('@'); at != std::string::npos; at = text.find('@', at)) {
        text.replace(at, 1, path);
    }
    return opening + text;
}
const std::string as_kind = "[[jobs.kind]]\nname = \"train\"";

std::string without_replacement(std::string text) {
    const std::string line = "replacement = \"0 s\"\n";
    return text.erase(text.find(line), line.size());
}

ReplicaResult run(const std::string& text, const char* name) {
    return run_replica(load_scenario(text, name), 0, false);
}

}  // namespace

TEST_CASE("the one job is the same with a scheduler that is dedicated to it, as a job or a kind") {
    const ReplicaResult one = run(cluster + job("[job]", "job"), "one");
    const std::string dedicated = cluster + "[scheduler]\nkind = \"dedicated\"\n";
    CHECK(one.job.finished);
    CHECK(run(dedicated + job("[job]", "job"), "a job").outcome == one.outcome);
    const ReplicaResult kind = run(dedicated + job(as_kind, "jobs.kind"), "a kind");
    CHECK(kind.outcome == one.outcome);
    CHECK(kind.trajectory == one.trajectory);
}

TEST_CASE("a scenario without a title has the name of its one kind of jobs") {
    const std::string dedicated = cluster + "[scheduler]\nkind = \"dedicated\"\n";
    CHECK(load_scenario(dedicated + job(as_kind, "jobs.kind"), "file").title == "train");
    CHECK(load_scenario("title = \"t\"\n" + dedicated + job(as_kind, "jobs.kind"), "file").title ==
          "t");
    CHECK(load_scenario(cluster + job("[job]", "job"), "file").title == "file");
}

TEST_CASE("a job under Slurm saves, loses, comes back and works as one that has the cluster") {
    const ReplicaResult one = run(cluster + job("[job]", "job"), "one");
    const ReplicaResult many =
        run(without_replacement(cluster + "[scheduler]\n" + job(as_kind, "jobs.kind")), "many");
    REQUIRE(one.job.interruptions[0] == 1);
    REQUIRE(many.job.interruptions[0] == 1);
    const auto hours = [](const ReplicaResult& r, Category category) {
        return static_cast<double>(r.ledger.booked(category)) / 3.6e12;
    };
    for (const Category category : {Category::productive, Category::exposed_communication,
                                    Category::detection, Category::restore}) {
        CAPTURE(category_name(category));
        CHECK(hours(one, category) > 0);
        CHECK(hours(many, category) == doctest::Approx(hours(one, category)).epsilon(1e-6));
    }
    // Slurm's job launches first, at the start too; the other's state has just been restored.
    CHECK(hours(many, Category::restart) ==
          doctest::Approx(2 * hours(one, Category::restart)).epsilon(1e-6));
    // The failure finds it as much earlier in its work, and both lose what they had not saved.
    const double launch = 16 * 5.0 / 60;
    CHECK(hours(one, Category::lost_work) - hours(many, Category::lost_work) ==
          doctest::Approx(launch).epsilon(0.01));
    CHECK(hours(many, Category::checkpoint_stall) ==
          doctest::Approx(hours(one, Category::checkpoint_stall)).epsilon(1e-6));
}

TEST_CASE("a job under Slurm waits for the data on its drives as one that has the cluster") {
    const std::string data = R"(
[@.data]
demand = "custom"
source = "local"
sample_size = "100 MB"
batch = 64
)";
    const auto with = [&](std::string text, const std::string& path) {
        return text + "[" + path + data.substr(data.find('.'));
    };
    const ReplicaResult one = run(with(cluster + job("[job]", "job"), "job"), "one");
    const ReplicaResult many =
        run(with(without_replacement(cluster + "[scheduler]\n" + job(as_kind, "jobs.kind")),
                 "jobs.kind"),
            "many");
    const auto waits = [](const ReplicaResult& r) {
        return static_cast<double>(r.ledger.booked(Category::data_wait)) /
               static_cast<double>(r.ledger.booked(Category::productive));
    };
    CHECK(waits(one) > 0.01);
    CHECK(waits(many) == doctest::Approx(waits(one)).epsilon(1e-6));
}

TEST_CASE("a measured step and an interval in steps are the same under Slurm and alone") {
    const std::string measured = R"(
nodes = 2
length = "50 h"
step.time = "7 s"
[@.checkpoint]
size = "2 TB"
interval = "300 steps"
[@.recovery]
policy = "requeue"
restart = "5 min"
)";
    const auto under = [&](const std::string& opening, const std::string& path) {
        std::string text = measured;
        for (std::size_t at = text.find('@'); at != std::string::npos; at = text.find('@', at)) {
            text.replace(at, 1, path);
        }
        return cluster + opening + text;
    };
    const ReplicaResult one = run(under("[job]", "job") + "replacement = \"0 s\"\n", "one");
    const ReplicaResult many = run(under("[scheduler]\n" + as_kind, "jobs.kind"), "many");
    for (const Category category :
         {Category::productive, Category::checkpoint_stall, Category::restore}) {
        CAPTURE(category_name(category));
        CHECK(one.ledger.booked(category) > 0);
        CHECK(static_cast<double>(many.ledger.booked(category)) ==
              doctest::Approx(static_cast<double>(one.ledger.booked(category))).epsilon(1e-6));
    }
}

TEST_CASE("what only one job can says under which scheduler it can") {
    const std::string jobs = cluster_text(4, "1 day") +
                             "[scheduler]\nkind = \"fifo\"\n[[jobs.kind]]\nname = \"a\"\n"
                             "nodes = 4\nlength = \"1 h\"\n";
    for (const char* key : {"stage", "pause"}) {
        const std::string text =
            refused(jobs + fmt::format("[[jobs.kind.{}]]\nname = \"b\"\n", key));
        CAPTURE(text);
        CHECK(text.find(fmt::format("jobs.kind[0].{}: is not modelled of many jobs, under fifo",
                                    key)) != std::string::npos);
        CHECK(text.find("scheduler.kind = \"dedicated\"") != std::string::npos);
        CHECK(text.find("unknown key") == std::string::npos);
    }
}
