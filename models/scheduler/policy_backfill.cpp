// Conservative backfill as Slurm's sched/backfill does it: every job that is looked at gets a
// reservation, in queue order, and a later one may start now only where it is in nobody's way.
//
// When something happens, jobs start from the head of the queue while they fit. The look at all the
// others is dear and comes at multiples of an interval: it plans over a profile of what will be free, by
// expected ends that are rounded up to a resolution, up to a window ahead and a depth into the queue.

#include <algorithm>
#include <set>

#include "models/scheduler/policy.h"

namespace railyard {

namespace {

// What will be free, from each instant to the next slot's; the last one lasts for ever.
class FreeProfile {
  public:
    FreeProfile(Duration now, const Placement& free) { slots_.push_back({now, free.clone()}); }

    // Slots are in order; `at` is not before the last one.
    void release(Duration at, const Allocation& allocation) {
        if (at > slots_.back().begin) slots_.push_back({at, slots_.back().free->clone()});
        slots_.back().free->release(allocation);
    }

    struct Plan {
        Duration start{};
        Allocation allocation;
    };
    // The earliest start up to `latest` of so many GPUs for so long; nothing when there is none.
    std::optional<Plan> plan(std::int64_t gpus, Duration length, Duration latest) const;
    void take(const Plan& plan, Duration end);

  private:
    struct Slot {
        Duration begin{};
        std::unique_ptr<Placement> free;
        bool planned = false;  // a plan starts here: not all that was free before still is
    };

    std::vector<Slot> slots_;
};

std::optional<FreeProfile::Plan> FreeProfile::plan(std::int64_t gpus, Duration length,
                                                   Duration latest) const {
    for (auto first = slots_.begin(); first != slots_.end() && first->begin <= latest;) {
        const auto after =
            std::ranges::lower_bound(slots_, first->begin + length, {}, &Slot::begin);
        const auto end = std::max(first + 1, after);
        // No start before the last slot that has too few, on whatever nodes, can do.
        const auto short_of =
            std::find_if(std::reverse_iterator(end), std::reverse_iterator(first),
                         [gpus](const Slot& slot) { return slot.free->largest() < gpus; });
        if (short_of != std::reverse_iterator(first)) {
            first = short_of.base();
            continue;
        }
        const std::unique_ptr<Placement> all_along = first->free->clone();
        for (auto slot = first + 1; slot != end; ++slot) {
            if (slot->planned) all_along->limit_to(*slot->free);
        }
        if (all_along->largest() >= gpus) return Plan{first->begin, all_along->place(gpus)};
        ++first;
    }
    return std::nullopt;
}

void FreeProfile::take(const Plan& plan, Duration end) {
    const auto after = std::ranges::upper_bound(slots_, end, {}, &Slot::begin);
    const Slot& last = *std::prev(after);
    if (last.begin < end) slots_.insert(after, {end, last.free->clone()});
    for (Slot& slot : slots_) {
        if (slot.begin >= plan.start && slot.begin < end) slot.free->take(plan.allocation);
        if (slot.begin == plan.start) slot.planned = true;
    }
}

class Backfill : public QueuePolicy {
  public:
    explicit Backfill(ClusterState& cluster)
        : cluster_(cluster), rules_(cluster.rules().backfill), jobs_(cluster.by_rank()) {}

    void submit(std::size_t job) override {
        waiting_.insert(cluster_.rank(job));
        changed_ = true;
    }
    void ended(std::size_t job) override {
        running_.erase({planned_end(job), job});
        changed_ = true;
    }
    void schedule() override {
        while (!waiting_.empty() && cluster_.fits(first())) {
            const std::size_t job = first();
            start(job, cluster_.take(job));
        }
        if (changed_ && cluster_.now() % rules_.interval == Duration::zero()) look_at_all();
    }
    std::size_t first() const override {
        return waiting_.empty() ? no_job : jobs_[*waiting_.begin()];
    }
    std::optional<Duration> wake() const override {
        if (waiting_.empty() || !changed_) return std::nullopt;
        return cluster_.now() - cluster_.now() % rules_.interval + rules_.interval;
    }

  private:
    // When a running job is planned to end.
    Duration planned_end(std::size_t job) const {
        return rounded_up(cluster_.started(job) + cluster_.expected(job));
    }
    Duration rounded_up(Duration at) const {
        return (at + rules_.resolution - Duration(1)) / rules_.resolution * rules_.resolution;
    }
    void start(std::size_t job, Allocation allocation) {
        waiting_.erase(cluster_.rank(job));
        cluster_.start(job, std::move(allocation));
        running_.insert({planned_end(job), job});
    }
    FreeProfile profile() const;
    void look_at_all();

    ClusterState& cluster_;
    const BackfillRules& rules_;
    const std::vector<std::uint32_t>& jobs_;              // of this virtual cluster, by rank
    std::set<std::size_t> waiting_;                       // ranks
    std::set<std::pair<Duration, std::size_t>> running_;  // jobs by planned end
    bool changed_ = false;                                // since all were looked at
};

FreeProfile Backfill::profile() const {
    FreeProfile out(cluster_.now(), cluster_.placement());
    // Who has outlived what was expected is expected to end soon.
    const Duration soon = rounded_up(cluster_.now() + Duration(1));
    for (const auto& [end, job] : running_) {
        if (end > cluster_.now() + rules_.window) break;  // nothing that is planned starts so late
        out.release(std::max(end, soon), cluster_.allocation(job));
    }
    return out;
}

void Backfill::look_at_all() {
    changed_ = false;
    if (waiting_.empty()) return;
    FreeProfile free = profile();
    const Duration now = cluster_.now();
    std::int64_t tested = 0;
    for (auto next = waiting_.begin(); next != waiting_.end() && tested < rules_.depth; ++tested) {
        const std::size_t rank = *next++;
        const std::size_t job = jobs_[rank];
        const Duration length = cluster_.expected(job);
        const auto plan = free.plan(cluster_.job(job).gpus, length, now + rules_.window);
        if (!plan) continue;
        free.take(*plan, std::max(rounded_up(plan->start + length), plan->start + Duration(1)));
        if (plan->start == now) {
            cluster_.take(plan->allocation);
            start(job, plan->allocation);
        } else if (tested == 0) {
            cluster_.promise(job, plan->start);
        }
    }
}

}  // namespace

std::unique_ptr<QueuePolicy> make_backfill(ClusterState& cluster) {
    return std::make_unique<Backfill>(cluster);
}

}  // namespace railyard
