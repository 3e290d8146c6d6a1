#pragma once
// What a schedule was like for those who waited, and for those who had bought the GPUs.

#include <limits>
#include <optional>
#include <vector>

#include "models/scheduler/job_stream.h"

namespace railyard {

// Figures of the jobs that started. Without any, or in no time at all, they are NaN or none.
// Percentile p is the
// value at place int(p n) of n sorted ones.
struct StreamStatistics {
    std::int64_t jobs = 0;
    std::int64_t refused = 0;
    static constexpr double none = std::numeric_limits<double>::quiet_NaN();
    double mean_wait_s = none;
    double mean_jct_s = none;  // from submission to end
    double mean_runtime_s = none;
    // Mean of max(1, JCT / max(runtime, tau)), with tau = 10 s (Feitelson et al. 1997).
    double mean_slowdown = none;
    std::optional<Duration> wait_p50{};
    std::optional<Duration> wait_p90{};
    std::optional<Duration> wait_p99{};
    std::optional<Duration> wait_max{};
    double zero_wait = none;          // share of the jobs that started at once
    std::optional<Duration> begin{};  // first submission
    std::optional<Duration> end{};    // last end
    // Shares of GPU time from `begin` to `end`: in jobs, free in vain, of nodes that have a job.
    double utilisation = none;
    double fragmentation = none;
    double occupancy = none;

    double makespan_s() const { return begin && end ? seconds(*end - *begin) : none; }
};

constexpr Duration slowdown_tau = std::chrono::seconds(10);

// All virtual clusters together.
StreamStatistics stream_statistics(const std::vector<StreamJob>& jobs,
                                   const std::vector<VirtualCluster>& clusters,
                                   const StreamSchedule& schedule);
// Each by itself.
std::vector<StreamStatistics> cluster_statistics(const std::vector<StreamJob>& jobs,
                                                 const std::vector<VirtualCluster>& clusters,
                                                 const StreamSchedule& schedule);

}  // namespace railyard
