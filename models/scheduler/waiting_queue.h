#pragma once
// A queue of jobs that wait as a whole: the highest priority first, then the oldest.
//
// Jobs that ask for the same get the same answer as long as nothing changes. So they are kept by what they
// ask for, and a long queue costs what its different requests cost.

#include <map>
#include <optional>
#include <set>
#include <tuple>

#include "models/scheduler/world_scheduler.h"

namespace railyard {

struct WaitingJob {
    std::int64_t priority = 0;
    Instant since{};
    JobIndex job = no_world_job;
    bool operator<(const WaitingJob& other) const {
        return std::tuple(-priority, since, job) <
               std::tuple(-other.priority, other.since, other.job);
    }
};

class WaitingQueue {
  public:
    struct Request {
        std::uint32_t partition = 0;
        std::uint32_t kind = 0;
        std::uint32_t qos = 0;
        std::int64_t gpus = 0;
        std::int64_t gpus_per_pod = 0;
        auto operator<=>(const Request&) const = default;
    };
    struct Alike {
        std::set<WaitingJob> jobs{};
        std::uint64_t refused_in =
            0;  // the last round in which one of them was: the scheduler's number
    };

    void add(const WorldJob& job, const WaitingJob& waiting) {
        alike_[request(job)].jobs.insert(waiting);
    }
    // False if it isn't here.
    bool remove(const WorldJob& job, const WaitingJob& waiting) {
        const auto found = alike_.find(request(job));
        if (found == alike_.end() || found->second.jobs.erase(waiting) == 0) return false;
        if (found->second.jobs.empty()) alike_.erase(found);
        return true;
    }
    // The first that wants GPUs of a partition and may(job) have them: its answer is that of all alike.
    template <class May>
    const WaitingJob* first(std::uint32_t partition, May may) const {
        const WaitingJob* best = nullptr;
        for (const auto& [request, alike] : alike_) {
            const WaitingJob& each = *alike.jobs.begin();
            if (request.partition != partition || (best != nullptr && !(each < *best))) continue;
            if (may(each.job)) best = &each;
        }
        return best;
    }
    const std::map<Request, Alike>& alike() const { return alike_; }

    // A walk through the queue. What comes before `from` has had its turn; requests that were refused in this
    // round are left out.
    const WaitingJob* next(const std::optional<WaitingJob>& from, std::uint64_t round) const {
        const WaitingJob* best = nullptr;
        for (const auto& [request, alike] : alike_) {
            if (alike.refused_in == round) continue;
            const auto at = from ? alike.jobs.lower_bound(*from) : alike.jobs.begin();
            if (at != alike.jobs.end() && (best == nullptr || *at < *best)) best = &*at;
        }
        return best;
    }
    void refuse(const WorldJob& job, std::uint64_t round) {
        alike_.at(request(job)).refused_in = round;
    }
    // Where the walk goes on after this one.
    static WaitingJob after(const WaitingJob& job) {
        return {job.priority, job.since, job.job + 1};
    }

  private:
    static Request request(const WorldJob& job) {
        return {job.partition, job.kind, job.qos, job.gpus, job.gpus_per_pod};
    }

    std::map<Request, Alike> alike_;
};

// The first of several queues that wants GPUs of a partition and may have them.
template <class May>
JobIndex first_waiting(const std::vector<WaitingQueue>& queues, std::uint32_t partition, May may) {
    const WaitingJob* best = nullptr;
    for (const WaitingQueue& queue : queues) {
        const WaitingJob* first = queue.first(partition, may);
        if (first != nullptr && (best == nullptr || *first < *best)) best = first;
    }
    return best == nullptr ? no_world_job : best->job;
}

}  // namespace railyard
