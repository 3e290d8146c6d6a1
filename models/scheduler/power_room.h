#pragma once
// What a site's power budget leaves for jobs: each takes its highest draw as long as it holds GPUs.

#include <optional>
#include <string>
#include <vector>

#include "models/scheduler/world_spec.h"

namespace railyard {

class PowerRoom {
  public:
    // References must outlive it.
    PowerRoom(const WorldSpec& spec, const std::vector<WorldJob>& jobs)
        : spec_(spec), jobs_(jobs), has_(spec.power ? jobs.size() : 0) {}

    // Why the idle cluster could not even carry it alone; nothing when it could.
    std::optional<std::string> never(JobIndex job) const;
    // True of a job that has its power already.
    bool fits(JobIndex job) const;
    void take(JobIndex job);
    void give_back(JobIndex job);  // if it has any

  private:
    std::int64_t need(JobIndex job) const;

    const WorldSpec& spec_;
    const std::vector<WorldJob>& jobs_;
    std::vector<bool> has_;
    std::int64_t taken_ = 0;  // mW
};

}  // namespace railyard
