// EASY backfill (Lifka 1995): the first job that does not fit gets a reservation at the instant when
// enough GPUs will be free; any other may start if it fits now and either ends by then or takes GPUs
// that the reservation leaves over.

#include <algorithm>
#include <set>

#include "models/scheduler/policy.h"
#include "models/scheduler/waiting_tree.h"
#include "sim/check.h"

namespace railyard {

namespace {

class Easy : public QueuePolicy {
  public:
    explicit Easy(ClusterState& cluster)
        : cluster_(cluster), jobs_(cluster.by_rank()), waiting_(jobs_.size()) {}

    void submit(std::size_t job) override {
        waiting_.add(cluster_.rank(job), {cluster_.job(job).gpus, cluster_.expected(job)});
    }
    void ended(std::size_t job) override {
        const auto end = running_.find({expected_end(job), job});
        RY_CHECK(end != running_.end());
        // Sooner than was thought: what has been planned need not be the best any more.
        if (end->first > cluster_.now()) reserved_for_ = no_job;
        running_.erase(end);
    }
    void schedule() override {
        std::size_t rank = waiting_.first();
        while (rank != no_rank && cluster_.fits(jobs_[rank])) {
            start(rank, cluster_.take(jobs_[rank]));
            rank = waiting_.first();
        }
        if (rank == no_rank || cluster_.placement().largest() == 0) return;
        const bool overdue = reserved_at_ < cluster_.now();  // somebody has outlived the estimate
        if (reserved_for_ != jobs_[rank] || overdue) reserve(jobs_[rank]);
        backfill(rank + 1);
    }
    std::size_t first() const override {
        const std::size_t rank = waiting_.first();
        return rank == no_rank ? no_job : jobs_[rank];
    }

  private:
    using ExpectedEnd = std::pair<Duration, std::size_t>;  // of a job

    Duration expected_end(std::size_t job) const {
        return cluster_.started(job) + cluster_.expected(job);
    }
    void start(std::size_t rank, Allocation allocation);
    void reserve(std::size_t job);
    void backfill(std::size_t rank);

    ClusterState& cluster_;
    const std::vector<std::uint32_t>& jobs_;  // of this virtual cluster, by rank
    WaitingTree waiting_;
    std::set<ExpectedEnd> running_;

    // The reservation: who, when, and what is free from then on.
    std::size_t reserved_for_ = no_job;
    Duration reserved_at_{};
    std::unique_ptr<Placement> left_over_;
};

void Easy::start(std::size_t rank, Allocation allocation) {
    const std::size_t job = jobs_[rank];
    waiting_.remove(rank);
    cluster_.start(job, std::move(allocation));
    running_.insert({expected_end(job), job});
}

// Lets the running jobs end, in the order in which that is expected, until the job fits.
void Easy::reserve(std::size_t job) {
    left_over_ = cluster_.placement().clone();
    const std::int64_t gpus = cluster_.job(job).gpus;
    auto next = running_.begin();
    while (left_over_->largest() < gpus) {
        RY_CHECK(next != running_.end());
        reserved_at_ = std::max(cluster_.now(), next->first);
        for (; next != running_.end() && next->first <= reserved_at_; ++next) {
            left_over_->release(cluster_.allocation(next->second));
        }
    }
    left_over_->place(gpus);
    reserved_for_ = job;
    cluster_.promise(job, reserved_at_);
}

void Easy::backfill(std::size_t rank) {
    const Duration time = reserved_at_ - cluster_.now();
    for (;;) {
        const std::int64_t fits = cluster_.placement().largest();
        rank = waiting_.next(rank, {fits, time, left_over_->largest()});
        if (rank == no_rank) return;
        const bool ends_before = cluster_.expected(jobs_[rank]) <= time;
        Allocation allocation = cluster_.take(jobs_[rank]);
        if (ends_before) {
            start(rank, std::move(allocation));
        } else if (left_over_->holds(allocation)) {
            left_over_->take(allocation);
            start(rank, std::move(allocation));
        } else {
            cluster_.give_back(allocation);
        }
        ++rank;
    }
}

}  // namespace

std::unique_ptr<QueuePolicy> make_easy(ClusterState& cluster) {
    return std::make_unique<Easy>(cluster);
}

}  // namespace railyard
