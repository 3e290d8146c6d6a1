#pragma once
// A run on its way into the database, for as long as that works: an answer that took hours is not thrown away
// because a disk is full.

#include "tools/results/results_db.h"

namespace railyard {

class SavedRun {
  public:
    // An empty path saves nothing.
    SavedRun(const std::string& path, const Scenario& scenario, const std::string& toml,
             const std::vector<std::string>& settings);

    void add(const ReplicaResult& replica);  // as they finish, in order of index
    void finish(const CampaignResult& result);
    bool failed() const { return failed_; }

  private:
    void attempt(const std::function<void()>& write);

    std::unique_ptr<ResultsDb> db_;
    const Scenario& scenario_;
    std::int64_t run_ = 0;
    std::int64_t point_ = 0;
    PointTally tally_;
    bool failed_ = false;
};

}  // namespace railyard
