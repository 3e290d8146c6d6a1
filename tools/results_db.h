#pragma once
// Results as an SQLite database that others open: sqlite3, pandas, DuckDB. Units are in column
// names. The schema is in results_db.cpp; its version is in the table `meta`.

#include <memory>
#include <string>

#include "models/campaign/campaign.h"

namespace railyard {

class ResultsDb {
  public:
    // Opens or creates `path` for this process alone and begins a run. Throws ScenarioError when
    // that isn't possible: not writable, not ours, another schema version, another writer.
    ResultsDb(const std::string& path, const Scenario& scenario, const std::string& scenario_text,
              const std::string& settings, const std::string& version);
    ~ResultsDb();

    // Adds a finished replica. It is safe on disk at once when replicas take more than 20 ms each, and
    // otherwise with those that follow within half a second.
    void add(const ReplicaResult& replica);
    // The run's own row: digest, CPU time, whether it was whole. Commits everything.
    void finish(const CampaignResult& result);

  private:
    class Connection;
    std::unique_ptr<Connection> db_;
    const Scenario& scenario_;
    std::int64_t run_ = 0;
    double began_ = 0;
    double committed_ = 0;
    std::int64_t added_ = 0;
};

}  // namespace railyard
