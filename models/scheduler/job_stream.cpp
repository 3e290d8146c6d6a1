#include "models/scheduler/job_stream.h"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>
#include <tuple>

#include "models/scheduler/policy.h"
#include "sim/cancel.h"
#include "sim/check.h"
#include "sim/text.h"

namespace railyard {

namespace {

template <class Kind>
const Kind& kind_named(const std::vector<Kind>& kinds, const std::string& name) {
    const Kind* found = find_named(kinds, name);
    RY_CHECK(found != nullptr);
    return *found;
}

// A virtual cluster with its queue.
struct Partition {
    ClusterState state;
    std::unique_ptr<QueuePolicy> policy;
    std::int64_t submitted = 0;  // running and waiting
    bool touched = false;        // something has happened in it at this instant
    Duration wake{-1};           // the last that was asked for
};

class JobStream {
  public:
    JobStream(const std::vector<StreamJob>& jobs, const std::vector<VirtualCluster>& clusters,
              const StreamRules& rules, StreamListener* listener);
    StreamSchedule run();

  private:
    void rank();
    bool next_instant(Duration& at);
    void end_jobs();
    void submit_jobs();
    void submit(std::size_t job);
    Partition& touch(std::uint32_t cluster);
    void wake();
    void start_jobs();

    ClusterState::Stream stream_;
    std::vector<std::unique_ptr<Partition>> partitions_;
    std::vector<std::uint32_t> order_;  // of submission
    std::size_t submitted_ = 0;         // of `order_`
    std::vector<Partition*> touched_;
    EventQueue<std::uint32_t> wakes_;  // virtual clusters
};

JobStream::JobStream(const std::vector<StreamJob>& jobs,
                     const std::vector<VirtualCluster>& clusters, const StreamRules& rules,
                     StreamListener* listener)
    : stream_{jobs, rules, listener} {
    stream_.by_rank.resize(clusters.size());
    rank();
    stream_.schedule.jobs.resize(jobs.size());
    stream_.schedule.use.resize(clusters.size());
    stream_.allocations.resize(jobs.size());
    const PlacementKind& placement = kind_named(placement_kinds(), rules.placement);
    const PolicyKind& policy = kind_named(policy_kinds(), rules.policy);
    for (const VirtualCluster& c : clusters) {
        RY_CHECK(c.nodes > 0 && c.gpus_per_node > 0);
        const auto index = static_cast<std::uint32_t>(partitions_.size());
        partitions_.push_back(std::make_unique<Partition>(
            Partition{{stream_, index, placement.make(c.nodes, c.gpus_per_node)}, nullptr}));
        partitions_.back()->policy = policy.make(partitions_.back()->state);
    }
}

void JobStream::rank() {
    const std::vector<StreamJob>& jobs = stream_.jobs;
    order_.resize(jobs.size());
    std::iota(order_.begin(), order_.end(), 0U);
    std::ranges::sort(order_, [&](std::uint32_t a, std::uint32_t b) {
        return std::tie(jobs[a].submit, jobs[a].id, a) < std::tie(jobs[b].submit, jobs[b].id, b);
    });
    stream_.ranks.resize(jobs.size());
    for (const std::uint32_t job : order_) {
        std::vector<std::uint32_t>& cluster = stream_.by_rank[jobs[job].cluster];
        stream_.ranks[job] = static_cast<std::uint32_t>(cluster.size());
        cluster.push_back(job);
    }
}

StreamSchedule JobStream::run() {
    while (next_instant(stream_.now)) {
        heed_cancel();
        end_jobs();
        submit_jobs();
        wake();
        start_jobs();
    }
    return std::move(stream_.schedule);
}

bool JobStream::next_instant(Duration& at) {
    std::int64_t end = INT64_MAX;
    std::int64_t wake = INT64_MAX;
    const bool any_end = stream_.ends.next_time(end);
    const bool any_wake = wakes_.next_time(wake);
    const bool any_submission = submitted_ < order_.size();
    at = Duration(std::min(end, wake));
    if (any_submission) at = std::min(at, stream_.jobs[order_[submitted_]].submit);
    return any_end || any_wake || any_submission;
}

Partition& JobStream::touch(std::uint32_t cluster) {
    Partition& p = *partitions_[cluster];
    if (!p.touched) {
        p.touched = true;
        touched_.push_back(&p);
        p.state.book(p.policy->first());
    }
    return p;
}

void JobStream::end_jobs() {
    std::int64_t time = 0;
    while (stream_.ends.next_time(time) && time == stream_.now.count()) {
        decltype(stream_.ends)::Event event{};
        stream_.ends.pop(event);
        Partition& p = touch(stream_.jobs[event.payload].cluster);
        p.policy->ended(event.payload);
        p.state.end(event.payload);
        --p.submitted;
    }
}

void JobStream::submit_jobs() {
    while (submitted_ < order_.size() && stream_.jobs[order_[submitted_]].submit == stream_.now) {
        submit(order_[submitted_++]);
    }
}

void JobStream::submit(std::size_t job) {
    Partition& p = touch(stream_.jobs[job].cluster);
    std::optional<std::string> why = p.state.placement().never(stream_.jobs[job].gpus);
    const std::int64_t most = stream_.rules.submitted_max;
    if (!why && most > 0 && p.submitted >= most) {
        why = fmt::format("{} jobs are submitted already", most);
    }
    if (why) {
        stream_.schedule.jobs[job].refused = true;
        stream_.schedule.refused.push_back({job, std::move(*why)});
        return;
    }
    ++p.submitted;
    p.policy->submit(job);
}

void JobStream::wake() {
    std::int64_t time = 0;
    while (wakes_.next_time(time) && time == stream_.now.count()) {
        decltype(wakes_)::Event event{};
        wakes_.pop(event);
        touch(event.payload);
    }
}

void JobStream::start_jobs() {
    for (Partition* p : touched_) {
        p->policy->schedule();
        p->touched = false;
        const std::optional<Duration> wake = p->policy->wake();
        if (!wake || *wake == p->wake) continue;
        p->wake = *wake;
        wakes_.push(wake->count(), p->state.index());
    }
    touched_.clear();
}

}  // namespace

StreamSchedule run_job_stream(const std::vector<StreamJob>& jobs,
                              const std::vector<VirtualCluster>& clusters, const StreamRules& rules,
                              StreamListener* listener) {
    return JobStream(jobs, clusters, rules, listener).run();
}

}  // namespace railyard
