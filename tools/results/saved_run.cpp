#include "tools/results/saved_run.h"

#include <fmt/format.h>

#include "tools/program/program.h"

namespace railyard {

SavedRun::SavedRun(const std::string& path, const RunSpec& run) {
    if (path.empty()) return;
    db_ = std::make_unique<ResultsDb>(path);
    run_ = db_->begin_run(run);
    db_->commit();
}

void SavedRun::add_point(const Scenario& scenario, const std::string& toml,
                         const std::vector<std::string>& settings, const std::string& label) {
    attempt([&] {
        const PointKey key =
            PointKeys(result_version()).of(document_with(toml, scenario.file, settings));
        const std::int64_t id =
            db_->point({scenario.file, toml, settings, key, scenario.title, result_version()});
        db_->attach(run_, std::ssize(points_), id, label);
        db_->commit();
        points_.push_back({scenario, id});
    });
}

void SavedRun::add(std::size_t point, const ReplicaResult& replica) {
    attempt([&] {
        const auto& [scenario, id] = points_[point];
        const StoredReplica record = record_of(replica);
        if (record.index == 0) db_->describe_point(id, scenario, record);
        db_->add(id, record, texts_of(record));
        if (!replica.log.empty()) db_->add_events(id, replica.index, replica.log);
        db_->commit_when_due();
    });
}

void SavedRun::finish_point(std::size_t point, const CampaignResult& result) {
    if (result.replicas == 0) return;
    attempt([&] {
        const auto& [scenario, id] = points_[point];
        db_->finish_point(id, scenario.causes, with_prices(result, scenario),
                          result.cancelled ? "open" : ending_name(result.ending()));
        db_->commit();
    });
}

void SavedRun::write(const std::function<void(ResultsDb&, std::int64_t run)>& also) {
    attempt([&] { also(*db_, run_); });
}

void SavedRun::finish(const std::string& status, const CampaignResult* one) {
    attempt([&] {
        db_->finish_run(run_, status, one ? one->digest : "", one ? one->trajectory : "");
        if (one) db_->add_times(run_, one->cpu_s, std::nullopt);
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
