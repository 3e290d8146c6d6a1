#include "tools/results/saved_run.h"

#include <fmt/format.h>

#include "tools/program/program.h"

namespace railyard {

SavedRun::SavedRun(const std::string& path, const Scenario& scenario, const std::string& toml,
                   const std::vector<std::string>& settings)
    : scenario_(scenario), tally_(scenario, scenario.replicas) {
    if (path.empty()) return;
    db_ = std::make_unique<ResultsDb>(path);
    RunSpec run;
    run.kind = "run";
    run.file = scenario.file;
    run.title = scenario.title;
    run.version = result_version();
    run.seed = scenario.seed;
    run.replicas_wanted = scenario.replicas;
    run_ = db_->begin_run(run);
    const PointKey key =
        PointKeys(result_version()).of(document_with(toml, scenario.file, settings));
    point_ = db_->point({scenario.file, toml, settings, key, scenario.title, result_version()});
    db_->attach(run_, 0, point_, "");
    db_->commit();
}

void SavedRun::add(const ReplicaResult& replica) {
    attempt([&] {
        const StoredReplica record = record_of(replica);
        if (tally_.replicas() == 0) db_->describe_point(point_, scenario_, record);
        tally_.add(record);
        db_->add(point_, record, texts_of(record));
        if (!replica.log.empty()) db_->add_events(point_, replica.index, replica.log);
        db_->commit_when_due();
    });
}

void SavedRun::finish(const CampaignResult& result) {
    attempt([&] {
        const std::string ending = ending_name(result.ending());
        if (tally_.replicas() > 0) {
            db_->finish_point(point_, scenario_.causes, tally_.summary(),
                              result.cancelled ? "open" : ending);
        }
        db_->finish_run(run_, result.cancelled ? "interrupted" : ending, result.digest,
                        result.trajectory);
        db_->add_times(run_, result.cpu_s, std::nullopt);
        db_->commit();
    });
}

void SavedRun::attempt(const std::function<void()>& write) {
    if (!db_ || failed_) return;
    try {
        write();
    } catch (const ScenarioError& error) {
        failed_ = true;
        fmt::print(stderr, "{}\n    the run goes on without it\n", error.what());
    }
}

}  // namespace railyard
