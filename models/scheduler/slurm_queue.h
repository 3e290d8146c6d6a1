#pragma once
// Who waits under Slurm, in order: tier of the partition, then priority, then submission.

#include <vector>

#include "models/scheduler/slurm_priority.h"

namespace railyard {

class SlurmQueue {
  public:
    SlurmQueue(const WorldView& world, SlurmPriorities& priorities);

    void add(JobIndex job);
    void remove(JobIndex job);  // by whatever it has left for
    std::int64_t waiting(std::uint32_t partition) const { return waiting_[partition]; }
    bool empty() const { return alive_ == 0; }

    // Brings the order up to date. Then at(0), at(1) ... are in order; those that have left are no_world_job.
    void sort();
    std::size_t size() const { return entries_.size(); }
    JobIndex at(std::size_t place) const { return entries_[place].job; }
    std::size_t begin() const { return begin_; }  // none before is left

  private:
    struct Entry {
        std::int64_t tier = 0;
        std::int64_t priority = 0;
        Instant submitted{};
        JobIndex job = no_world_job;  // whether it has left or not, it keeps its place by `order`
        JobIndex order = no_world_job;
    };
    static bool before(const Entry& a, const Entry& b);
    Entry entry(JobIndex job) const;
    void drop_the_gone();

    const WorldView& world_;
    SlurmPriorities& priorities_;
    std::vector<Entry> entries_;
    std::vector<std::int64_t> priority_;  // by job, as it stands in entries_
    std::vector<std::int64_t> waiting_;   // by partition
    std::size_t begin_ = 0;
    std::size_t alive_ = 0;
    Instant sorted_as_of_{};
};

}  // namespace railyard
