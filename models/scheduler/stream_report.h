#pragma once
// What a schedule was like for those who waited, and for those who had bought the GPUs.

#include <vector>

#include "models/scheduler/job_stream.h"

namespace railyard {

// Of the jobs that started. A percentile p is the value at place int(p n) of n sorted ones.
struct StreamStatistics {
    std::int64_t jobs = 0;
    std::int64_t refused = 0;
    double mean_wait_s = 0;
    double mean_jct_s = 0;  // from submission to end
    double mean_runtime_s = 0;
    // Of max(1, JCT / max(runtime, tau)), with tau = 10 s (Feitelson et al. 1997).
    double mean_slowdown = 0;
    Duration wait_p50{};
    Duration wait_p90{};
    Duration wait_p99{};
    Duration wait_max{};
    double zero_wait = 0;  // share of the jobs that started at once
    Duration begin{};      // first submission
    Duration end{};        // last end
    // Shares of GPU time, and of node time, from `begin` to `end`.
    double utilisation = 0;
    double fragmentation = 0;
    double occupancy = 0;

    double makespan_s() const { return seconds(end - begin); }
};

constexpr Duration slowdown_tau = std::chrono::seconds(10);

// Of all virtual clusters together.
StreamStatistics stream_statistics(const std::vector<StreamJob>& jobs,
                                   const std::vector<VirtualCluster>& clusters,
                                   const StreamSchedule& schedule);
// Of each.
std::vector<StreamStatistics> cluster_statistics(const std::vector<StreamJob>& jobs,
                                                 const std::vector<VirtualCluster>& clusters,
                                                 const StreamSchedule& schedule);

}  // namespace railyard
