// A results database with some bytes changed: what a report makes of it is refused with a ScenarioError, or
// read. The input is a list of changes, each a place (four bytes) and a byte.

#include <cstring>

#include "models/campaign/campaign.h"
#include "sim/config.h"
#include "tests/fuzz/fuzzer.h"
#include "tools/report/results.h"
#include "tools/results/results_db.h"

namespace {

using namespace railyard;

constexpr const char* scenario = R"(
title = "a database"
[run]
duration = "2 day"
replicas = 3
[cluster]
nodes = 4
[job]
step.time = "1 s"
checkpoint = { mode = "sync", size = "10 GB", interval = "1 h" }
[[failures.cause]]
name = "any"
mtbf_job = "6 h"
remedy = "restart"
detection = "1 min"
)";

std::string good_database(const ScratchFile& file) {
    const Scenario s = load_scenario(scenario, "fuzz.toml");
    {
        ResultsDb db(file.path());
        RunSpec run;
        run.kind = "run";
        run.file = s.file;
        run.title = s.title;
        const std::int64_t id = db.begin_run(run);
        const std::int64_t point = db.point({s.file, scenario, {}, {"key", 1}, s.title, "fuzz"});
        db.attach(id, 0, point, "label");
        ReplicaTally tally(s);
        for (std::int64_t i = 0; i < s.replicas; ++i) {
            const StoredReplica record = record_of(run_replica(s, i, false));
            if (i == 0) db.describe_point(point, s, record);
            db.add(point, record, texts_of(record));
            tally.add(figures_of(record));
        }
        db.finish_point(point, s.causes, tally.take(), "complete");
        db.finish_run(id, "complete", "", "");
        db.commit();
    }
    return read_file(file.path());
}

}  // namespace

void try_bytes(std::string_view changes) {
    static const ScratchFile file("results.sqlite");
    static const std::string good = good_database(file);
    std::string bytes = good;
    constexpr std::size_t change = 5;
    for (std::size_t at = 0; at + change <= changes.size(); at += change) {
        std::uint32_t place = 0;
        std::memcpy(&place, changes.data() + at, sizeof place);
        bytes[place % bytes.size()] = changes[at + sizeof place];
    }
    refused_or_read([&] {
        const auto db = open_results(file.holding(bytes));
        report_results(*db, 4, 1'000'000);
        db->query("SELECT point FROM points", [](const Row&) {});
    });
}
