#include "models/scheduler/stream_report.h"

#include <algorithm>

#include "sim/statistics.h"

namespace railyard {

namespace {

// Sums of nanoseconds over millions of jobs and years outgrow 64 bits.
using Sum = __int128;

double mean_seconds(Sum sum, std::size_t count) {
    return real(sum) / real(count) * 1e-9;
}

class Collector {
  public:
    void add(const StreamJob& job, const JobRun& outcome);
    void add(const VirtualCluster& cluster, const ClusterUse& use) {
        gpus_ += cluster.gpus();
        use_.busy += use.busy;
        use_.fragmented += use.fragmented;
        use_.node_busy += use.node_busy;
    }
    StreamStatistics statistics();

  private:
    Duration percentile(double p) const { return waits_[place_after(p, waits_.size())]; }

    StreamStatistics out_;
    std::vector<Duration> waits_;
    Sum waited_ = 0;
    Sum ran_ = 0;
    double slowdown_ = 0;
    std::int64_t at_once_ = 0;
    std::int64_t gpus_ = 0;
    ClusterUse use_;
};

void Collector::add(const StreamJob& job, const JobRun& outcome) {
    out_.begin = std::min(out_.begin.value_or(job.submit), job.submit);
    if (outcome.refused) {
        ++out_.refused;
        return;
    }
    const Duration wait = outcome.start - job.submit;
    const Duration run = outcome.end - outcome.start;
    waits_.push_back(wait);
    waited_ += wait.count();
    ran_ += run.count();
    at_once_ += wait == Duration::zero();
    slowdown_ += std::max(1.0, seconds(wait + run) / seconds(std::max(run, slowdown_tau)));
    out_.end = std::max(out_.end.value_or(outcome.end), outcome.end);
}

StreamStatistics Collector::statistics() {
    out_.jobs = static_cast<std::int64_t>(waits_.size());
    if (waits_.empty()) return out_;
    std::ranges::sort(waits_);
    const std::size_t n = waits_.size();
    out_.mean_wait_s = mean_seconds(waited_, n);
    out_.mean_jct_s = mean_seconds(waited_ + ran_, n);
    out_.mean_runtime_s = mean_seconds(ran_, n);
    out_.mean_slowdown = slowdown_ / real(n);
    out_.wait_p50 = percentile(0.5);
    out_.wait_p90 = percentile(0.9);
    out_.wait_p99 = percentile(0.99);
    out_.wait_max = waits_.back();
    out_.zero_wait = real(at_once_) / real(n);
    const double span = real((*out_.end - *out_.begin).count());
    if (span <= 0) return out_;
    const double gpu_time = real(gpus_) * span;
    out_.utilisation = real(use_.busy) / gpu_time;
    out_.fragmentation = real(use_.fragmented) / gpu_time;
    out_.occupancy = real(use_.node_busy) / gpu_time;
    return out_;
}

}  // namespace

StreamStatistics stream_statistics(const std::vector<StreamJob>& jobs,
                                   const std::vector<VirtualCluster>& clusters,
                                   const StreamSchedule& schedule) {
    Collector all;
    for (std::size_t i = 0; i < jobs.size(); ++i) all.add(jobs[i], schedule.jobs[i]);
    for (std::size_t c = 0; c < clusters.size(); ++c) all.add(clusters[c], schedule.use[c]);
    return all.statistics();
}

std::vector<StreamStatistics> cluster_statistics(const std::vector<StreamJob>& jobs,
                                                 const std::vector<VirtualCluster>& clusters,
                                                 const StreamSchedule& schedule) {
    std::vector<Collector> each(clusters.size());
    for (std::size_t i = 0; i < jobs.size(); ++i)
        each[jobs[i].cluster].add(jobs[i], schedule.jobs[i]);
    std::vector<StreamStatistics> out;
    for (std::size_t c = 0; c < clusters.size(); ++c) {
        each[c].add(clusters[c], schedule.use[c]);
        out.push_back(each[c].statistics());
    }
    return out;
}

}  // namespace railyard
