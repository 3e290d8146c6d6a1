#pragma once
// A virtual cluster while its jobs run: what a policy sees of it, and its books.

#include <vector>

#include "models/scheduler/job_stream.h"
#include "sim/event_queue.h"

namespace railyard {

constexpr std::size_t no_job = SIZE_MAX;

class ClusterState {
  public:
    // What all virtual clusters of a stream share.
    struct Stream {
        const std::vector<StreamJob>& jobs;
        const StreamRules& rules;
        StreamListener* listener;
        StreamSchedule schedule{};
        std::vector<Allocation> allocations{};  // by job, empty unless it runs
        std::vector<std::uint32_t> ranks{};     // by job: its place in `by_rank`
        // By virtual cluster: its jobs in the order of submission; of those at one instant, by id and
        // then as they are listed.
        std::vector<std::vector<std::uint32_t>> by_rank{};
        EventQueue<std::uint32_t> ends{};  // jobs
        Duration now{};
    };

    // An empty one.
    ClusterState(Stream& stream, std::uint32_t index, std::unique_ptr<Placement> placement)
        : stream_(stream),
          index_(index),
          placement_(std::move(placement)),
          gpus_(placement_->free_gpus()) {}

    const StreamJob& job(std::size_t index) const { return stream_.jobs[index]; }
    std::uint32_t index() const { return index_; }
    std::size_t rank(std::size_t index) const { return stream_.ranks[index]; }
    const std::vector<std::uint32_t>& by_rank() const { return stream_.by_rank[index_]; }
    const Allocation& allocation(std::size_t index) const { return stream_.allocations[index]; }
    Duration started(std::size_t index) const { return stream_.schedule.jobs[index].start; }
    const StreamRules& rules() const { return stream_.rules; }
    Duration now() const { return stream_.now; }
    // What is taken for a job's duration before it has ended.
    Duration expected(std::size_t index) const;
    const Placement& placement() const { return *placement_; }
    bool fits(std::size_t index) const { return job(index).gpus <= placement_->largest(); }

    // Takes the GPUs that the placement chooses. Needs fits(job).
    Allocation take(std::size_t job) { return placement_->place(this->job(job).gpus); }
    void take(const Allocation& allocation) { placement_->take(allocation); }  // these, free ones
    void give_back(const Allocation& allocation) { placement_->release(allocation); }
    // On GPUs that were taken.
    void start(std::size_t job, Allocation allocation);
    void start(std::size_t job) { start(job, take(job)); }
    void end(std::size_t job);
    void promise(std::size_t job, Duration start) const;

    // Books what was used since the last call. `first` is who waits first, or no_job.
    void book(std::size_t first);

  private:
    Stream& stream_;
    std::uint32_t index_;
    std::unique_ptr<Placement> placement_;
    std::int64_t gpus_;
    Duration booked_until_{};
};

}  // namespace railyard
