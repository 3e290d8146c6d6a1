// The jobs of a replica: those of the trace, and those that are drawn.

#include "models/scheduler/job_source.h"

#include <algorithm>
#include <cmath>

#include "sim/cancel.h"

namespace railyard {

namespace {

class JobMaker {
  public:
    JobMaker(const JobSource& source, const std::string& name, std::uint64_t seed,
             std::uint64_t replica)
        : source_(source), stream_(seed, replica, "jobs/" + name) {
        for (const JobSource::Size& size : source.sizes) shares_ += size.share;
        const double ratio = seconds(source.mean) / seconds(source.median);
        sigma_ = ratio > 1 ? std::sqrt(2 * portable_log(ratio)) : 0;
    }

    // What each job needs is drawn in any case, so that changing one thing moves no other.
    WorldJob next() {
        WorldJob job = source_.like;
        const Duration gap = stream_.interarrival(source_.rate);
        const double which = stream_.uniform() * shares_;
        const double spread = stream_.normal();
        if (source_.rate.per_second > 0) at_ += std::min(gap, time_max);
        job.submit += at_;
        const JobSource::Size& size = size_at(which);
        job.gpus = size.gpus;
        job.work = work_of(size, spread);
        if (source_.limit_factor > 0) {
            job.limit = from_seconds(seconds(job.work) * source_.limit_factor);
        }
        return job;
    }

  private:
    const JobSource::Size& size_at(double which) const {
        for (const JobSource::Size& size : source_.sizes) {
            if (which < size.share) return size;
            which -= size.share;
        }
        return source_.sizes.back();
    }
    Duration work_of(const JobSource::Size& size, double spread) const {
        if (size.median > Duration{}) {
            const double work = seconds(size.median) * portable_exp(source_.sigma * spread);
            return std::clamp(from_seconds(work), Duration(1), source_.longest);
        }
        if (sigma_ == 0) return source_.mean;
        return std::max(Duration(1),
                        from_seconds(lognormal(seconds(source_.mean), sigma_, spread)));
    }

    const JobSource& source_;
    RandomStream stream_;
    double shares_ = 0;
    double sigma_ = 0;
    Duration at_{};
};

}  // namespace

bool drawn_at_random(const JobSource& source) {
    const auto varies = [&](const JobSource::Size& size) {
        return size.median > Duration{} && source.sigma > 0;
    };
    return source.rate.per_second > 0 || source.sizes.size() > 1 || source.mean > source.median ||
           std::ranges::any_of(source.sizes, varies);
}

PublishedStream read_published_stream(Catalogue& c, const std::string& name) {
    const char* kind = "job_stream";
    PublishedStream out;
    out.gpus_mean = c.number(kind, name, "gpus_mean");
    out.gpus_median = c.integer(kind, name, "gpus_median");
    out.gpus_max = c.integer(kind, name, "gpus_max");
    out.smallest_share = c.number(kind, "all", "smallest_share");
    out.time_mean = seconds(c.time(kind, name, "time_mean"));
    out.time_median = seconds(c.time(kind, name, "time_median"));
    out.time_max = seconds(c.time(kind, name, "time_max"));
    out.gpu_time_mean = c.number(kind, name, "gpu_time") / c.number(kind, name, "jobs");
    return out;
}

void follow(const StreamShape& shape, JobSource& source) {
    source.sizes.clear();
    for (const StreamShape::Size& size : shape.sizes) {
        source.sizes.push_back({size.gpus, size.share, from_seconds(size.time_median)});
    }
    source.sigma = shape.sigma;
    source.longest = from_seconds(shape.time_max);
}

WorldJobs draw_jobs(const WorldSpec& spec, std::span<const JobSource> sources,
                    const std::vector<WorldJob>& trace, std::uint64_t seed, std::uint64_t replica,
                    Duration until, SourcesSoFar* so_far) {
    WorldJobs out{trace};
    SourcesSoFar all;
    SourcesSoFar& part = so_far != nullptr ? *so_far : all;
    part.sent.resize(sources.size());
    for (std::size_t s = 0; s < sources.size(); ++s) {
        const JobSource& source = sources[s];
        JobMaker draw(source, spec.kinds[source.like.kind].name, seed, replica);
        while (part.sent[s] < source.count) {
            WorldJob job = draw.next();
            const Duration submit = job.submit.time_since_epoch();
            if (submit > until) break;
            heed_cancel();
            if (submit < part.since && source.rate.per_second > 0) continue;
            if (submit < part.since) break;  // they all have come
            ++part.sent[s];
            out.jobs.push_back(job);
        }
    }
    std::ranges::stable_sort(
        out.jobs, [](const WorldJob& a, const WorldJob& b) { return a.submit < b.submit; });
    std::int64_t id = 0;
    for (WorldJob& job : out.jobs) {
        job.id = ++id;
        if (job.gpus_per_pod == 0) job.gpus_per_pod = spec.gpus_of_pool_node(spec.pool(job));
        job.gpus_per_pod = std::min(job.gpus_per_pod, job.gpus);
    }
    return out;
}

}  // namespace railyard
