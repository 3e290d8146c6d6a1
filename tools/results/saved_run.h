#pragma once
// A run on its way into the database, for as long as that works: an answer that took hours is not thrown away
// because a disk is full.

#include "tools/results/results_db.h"

namespace railyard {

class SavedRun {
  public:
    // An empty path saves nothing. Throws ScenarioError when the file can't be written.
    SavedRun(const std::string& path, const RunSpec& run);

    // A point of the run, before any replica is added: 0, then 1 ... It keeps the scenario.
    void add_point(const Scenario& scenario, const std::string& toml,
                   const std::vector<std::string>& settings, const std::string& label);
    void add(std::size_t point, const ReplicaResult& replica);  // as they finish, in order of index
    void finish_point(std::size_t point, const CampaignResult& result);
    // What else belongs to the run, by its number.
    void write(const std::function<void(ResultsDb&, std::int64_t run)>& also);
    // A digest is of a run of one point.
    void finish(const std::string& status, const CampaignResult* one);
    bool failed() const { return failed_; }

  private:
    struct Point {
        const Scenario& scenario;
        std::int64_t id = 0;
    };
    void attempt(const std::function<void()>& write);

    std::unique_ptr<ResultsDb> db_;
    std::int64_t run_ = 0;
    std::vector<Point> points_;
    bool failed_ = false;
};

}  // namespace railyard
