#include "models/scheduler/slurm_queue.h"

#include <algorithm>

#include "sim/check.h"

namespace railyard {

SlurmQueue::SlurmQueue(const WorldView& world, SlurmPriorities& priorities)
    : world_(world), priorities_(priorities), waiting_(world.spec().partitions.size()) {}

bool SlurmQueue::before(const Entry& a, const Entry& b) {
    if (a.tier != b.tier) return a.tier > b.tier;
    if (a.priority != b.priority) return a.priority > b.priority;
    if (a.submitted != b.submitted) return a.submitted < b.submitted;
    return a.order < b.order;
}

SlurmQueue::Entry SlurmQueue::entry(JobIndex job) const {
    return {world_.spec().partitions[world_.job(job).partition].tier, priority_[job],
            world_.status(job).submitted, job, job};
}

void SlurmQueue::drop_the_gone() {
    std::erase_if(entries_, [](const Entry& e) { return e.job == no_world_job; });
    begin_ = 0;
}

void SlurmQueue::sort() {
    const Instant as_of = priorities_.as_of(world_.now());
    if (as_of == sorted_as_of_) return;
    sorted_as_of_ = as_of;
    if (!priorities_.change()) return;
    priorities_.refresh(world_.now());
    drop_the_gone();
    for (Entry& e : entries_) {
        e.priority = priority_[e.job] = priorities_.priority(e.job, world_.now());
    }
    // Those who wait grow older together, and mostly keep their order.
    if (std::is_sorted(entries_.begin(), entries_.end(), before)) return;
    std::ranges::sort(entries_, before);
}

void SlurmQueue::add(JobIndex job) {
    sort();
    if (entries_.size() > 64 && entries_.size() > 2 * alive_) drop_the_gone();
    if (priority_.size() <= job) priority_.resize(job + std::size_t{1});
    priority_[job] = priorities_.priority(job, world_.now());
    const Entry e = entry(job);
    const auto at = std::upper_bound(entries_.begin(), entries_.end(), e, before);
    begin_ = std::min(begin_, static_cast<std::size_t>(at - entries_.begin()));
    entries_.insert(at, e);
    ++waiting_[world_.job(job).partition];
    ++alive_;
}

void SlurmQueue::remove(JobIndex job) {
    const Entry e = entry(job);
    auto at = std::lower_bound(entries_.begin(), entries_.end(), e, before);
    while (at != entries_.end() && at->job == no_world_job && at->order == job)
        ++at;  // it left before
    RY_CHECK(at != entries_.end() && at->job == job);
    at->job = no_world_job;
    --waiting_[world_.job(job).partition];
    --alive_;
    while (begin_ < entries_.size() && entries_[begin_].job == no_world_job) ++begin_;
}

}  // namespace railyard
