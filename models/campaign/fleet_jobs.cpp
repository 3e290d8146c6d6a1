// The jobs of a replica: those of the trace, and those that are drawn.

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "models/campaign/fleet.h"

namespace railyard {

namespace {

class JobDraw {
  public:
    JobDraw(const JobSource& source, const std::string& name, std::uint64_t seed,
            std::uint64_t replica)
        : source_(source), stream_(seed, replica, "jobs/" + name) {
        for (const JobSource::Size& size : source.sizes) shares_ += size.share;
        const double ratio = seconds(source.mean) / seconds(source.median);
        sigma_ = ratio > 1 ? std::sqrt(2 * portable_log(ratio)) : 0;
    }

    // What each job needs is drawn in any case, so that changing one thing moves no other.
    FleetJob next() {
        FleetJob job = source_.like;
        const Duration gap = stream_.interarrival(source_.rate);
        const double which = stream_.uniform() * shares_;
        const double spread = stream_.normal();
        if (source_.rate.per_second > 0) at_ += std::min(gap, time_max);
        job.submit += at_;
        job.gpus = size_at(which);
        job.work = sigma_ > 0 ? from_seconds(lognormal(seconds(source_.mean), sigma_, spread))
                              : source_.mean;
        if (source_.limit_factor > 0) {
            job.limit = from_seconds(seconds(job.work) * source_.limit_factor);
        }
        return job;
    }

  private:
    std::int64_t size_at(double which) const {
        for (const JobSource::Size& size : source_.sizes) {
            if (which < size.share) return size.gpus;
            which -= size.share;
        }
        return source_.sizes.back().gpus;
    }

    const JobSource& source_;
    RandomStream stream_;
    double shares_ = 0;
    double sigma_ = 0;
    Duration at_{};
};

}  // namespace

void need_one_job(const Scenario& scenario, const char* verb) {
    if (!scenario.fleet) return;
    throw ScenarioError(
        fmt::format("{}: {} is about one job, and this scenario has many", scenario.file, verb),
        "railyard run takes it; a scenario with [job] has one");
}

FleetJobs draw_jobs(const FleetScenario& fleet, std::uint64_t seed, std::uint64_t replica,
                    Duration until) {
    FleetJobs out{fleet.trace};
    for (const JobSource& source : fleet.sources) {
        JobDraw draw(source, fleet.spec.kinds[source.like.kind].name, seed, replica);
        for (std::int64_t i = 0; i < source.count; ++i) {
            FleetJob job = draw.next();
            if (job.submit.time_since_epoch() > until) break;
            out.jobs.push_back(job);
        }
    }
    std::stable_sort(out.jobs.begin(), out.jobs.end(),
                     [](const FleetJob& a, const FleetJob& b) { return a.submit < b.submit; });
    std::int64_t id = 0;
    for (FleetJob& job : out.jobs) {
        job.id = ++id;
        if (job.gpus_per_pod == 0) {
            job.gpus_per_pod = fleet.spec.gpus_of_pool_node(fleet.spec.pool(job));
        }
        job.gpus_per_pod = std::min(job.gpus_per_pod, job.gpus);
    }
    return out;
}

}  // namespace railyard
