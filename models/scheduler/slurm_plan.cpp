#include "models/scheduler/slurm_plan.h"

#include <algorithm>
#include <bit>

#include "sim/check.h"

namespace railyard {

namespace {

// The end of the window that is open at that instant, or else of the next one, or of the last.
Instant next_end(const Reservation& r, Instant at) {
    Instant end = r.start + r.length;
    if (r.every > Duration{} && at >= end) {
        end += r.every * ((at - end) / r.every + 1);
    }
    return end;
}

// The members with so many free.
NodeSet with_at_least(const std::vector<std::uint8_t>& free, std::int64_t gpus,
                      const NodeSet& members) {
    NodeSet out(free.size());
    const auto least = static_cast<std::uint8_t>(gpus);
    for (std::size_t w = 0; w < out.words(); ++w) {
        const std::size_t nodes = std::min<std::size_t>(64, free.size() - w * 64);
        std::uint64_t word = 0;
        for (std::size_t i = 0; i < nodes; ++i) {
            word |= std::uint64_t{free[w * 64 + i] >= least} << i;
        }
        out.word(w) = word & members.word(w);
    }
    return out;
}

std::int64_t count_of(const NodeSet& nodes) {
    std::int64_t count = 0;
    for (std::size_t w = 0; w < nodes.words(); ++w) count += std::popcount(nodes.word(w));
    return count;
}

}  // namespace

bool overlaps(const Reservation& r, Instant from, Duration length) {
    const Instant end = next_end(r, from);
    return end > from && end - r.length < from + length;
}

SlurmPlan::SlurmPlan(const Fleet& fleet, const Ends& ends)
    : fleet_(fleet), ends_(ends), next_end_(ends.begin()) {
    Slot now;
    now.begin = fleet.now();
    const FleetCluster& cluster = fleet.cluster();
    for (const FleetNode& node : cluster.nodes()) {
        now.free.push_back(node.state == NodeState::up ? static_cast<std::uint8_t>(node.free) : 0);
    }
    for (std::uint32_t p = 0; p < fleet.spec().pools(); ++p) {
        for (std::int64_t g = 0; g <= cluster.gpus_per_node_max(); ++g) {
            now.count.push_back(static_cast<std::int32_t>(cluster.nodes_with(p, g)));
        }
    }
    slots_.push_back(std::move(now));
    for (const Reservation& r : fleet.spec().reservations) {  // a start may wait for a window's end
        const Instant end = next_end(r, fleet.now());
        if (end > fleet.now()) planned_ends_.emplace(end, Allocation());
    }
}

bool SlurmPlan::extend() {
    const bool any_planned = !planned_ends_.empty();
    const bool any_end = next_end_ != ends_.end();
    if (!any_planned && !any_end) return false;
    Instant at = any_end ? next_end_->first : planned_ends_.begin()->first;
    if (any_planned) at = std::min(at, planned_ends_.begin()->first);
    // What should have ended by now is expected to any time.
    at = std::max(at, fleet_.now() + fleet_.spec().slurm.backfill.resolution);
    RY_CHECK(at > slots_.back().begin);
    Slot slot{at, slots_.back().free, slots_.back().count};
    const std::vector<FleetNode>& nodes = fleet_.cluster().nodes();
    const auto give_back = [&](const Allocation& allocation) {
        for (const NodeShare& share : allocation) {
            if (nodes[share.node].state != NodeState::up) continue;
            change(slot, share.node, share.gpus);
        }
    };
    for (; next_end_ != ends_.end() && next_end_->first <= at; ++next_end_) {
        const JobIndex job = next_end_->second;
        if (std::find(taken_.begin(), taken_.end(), job) != taken_.end()) continue;
        give_back(fleet_.status(job).held);
    }
    while (!planned_ends_.empty() && planned_ends_.begin()->first <= at) {
        give_back(planned_ends_.begin()->second);
        planned_ends_.erase(planned_ends_.begin());
    }
    slots_.push_back(std::move(slot));
    return true;
}

void SlurmPlan::change(Slot& slot, NodeIndex node, std::int64_t gpus) const {
    const std::int64_t before = slot.free[node];
    const std::int64_t after = before + gpus;
    RY_CHECK(after >= 0 && after <= fleet_.cluster().node(node).gpus);
    slot.free[node] = static_cast<std::uint8_t>(after);
    const std::int64_t per_pool = fleet_.cluster().gpus_per_node_max() + 1;
    for (const std::uint32_t p : fleet_.cluster().pools_of(node)) {
        std::int32_t* count = &slot.count[static_cast<std::size_t>(p * per_pool)];
        for (std::int64_t g = before + 1; g <= after; ++g) ++count[g];
        for (std::int64_t g = after + 1; g <= before; ++g) --count[g];
    }
}

// Wherever these nodes are, and whether they stay free or not.
bool SlurmPlan::enough(const FleetJob& job, const Slot& slot) const {
    const std::int64_t per_pool = fleet_.cluster().gpus_per_node_max() + 1;
    const std::int32_t* count =
        &slot.count[static_cast<std::size_t>(fleet_.spec().pool(job) * per_pool)];
    const std::int64_t full = job.gpus / job.gpus_per_pod;
    const std::int64_t rest = job.gpus % job.gpus_per_pod;
    return count[job.gpus_per_pod] >= full && (rest == 0 || count[rest] > full);
}

bool SlurmPlan::fits(const FleetJob& job, const std::vector<std::uint8_t>& free,
                     Start& start) const {
    const NodeSet& members = fleet_.cluster().members(fleet_.spec().pool(job));
    const std::int64_t full = job.gpus / job.gpus_per_pod;
    const std::int64_t rest = job.gpus % job.gpus_per_pod;
    start.pods = with_at_least(free, job.gpus_per_pod, members);
    if (rest > 0) start.rest = with_at_least(free, rest, members);
    return count_of(start.pods) >= full && (rest == 0 || count_of(start.rest) > full);
}

void SlurmPlan::leave_windows_out(Instant from, Duration length,
                                  std::vector<std::uint8_t>& free) const {
    for (const Reservation& r : fleet_.spec().reservations) {
        if (!overlaps(r, from, length)) continue;
        std::fill_n(free.begin() + r.first_node, r.nodes, std::uint8_t{0});
    }
}

std::optional<SlurmPlan::Start> SlurmPlan::earliest(JobIndex index, Duration length, Instant latest,
                                                    const Suits& suits) {
    const FleetJob& job = fleet_.job(index);
    Start start;
    for (std::size_t first = 0;; ++first) {
        if (first == slots_.size() && !extend()) return std::nullopt;
        start.at = slots_[first].begin;
        const Duration resolution = fleet_.spec().slurm.backfill.resolution;
        const Duration end_at = (start.at + length).time_since_epoch();
        start.until = Instant((end_at + resolution - Duration(1)) / resolution * resolution);
        if (start.at > latest) return std::nullopt;
        if (!enough(job, slots_[first])) continue;
        std::size_t end = first + 1;
        std::size_t short_of = first;
        for (; end < slots_.size() && slots_[end].begin < start.until; ++end) {
            if (slots_[end].planned && !enough(job, slots_[end])) short_of = end;
        }
        if (short_of > first) {  // no start before that can do
            first = short_of;
            continue;
        }
        all_along_ = slots_[first].free;
        for (std::size_t s = first + 1; s < end; ++s) {
            if (!slots_[s].planned) continue;
            for (std::size_t node = 0; node < all_along_.size(); ++node) {
                all_along_[node] = std::min(all_along_[node], slots_[s].free[node]);
            }
        }
        leave_windows_out(start.at, length, all_along_);
        if (fits(job, all_along_, start) && suits(start)) return start;
    }
}

void SlurmPlan::take(JobIndex job, const Allocation& allocation, const Start& start) {
    const Instant from = start.at;
    const Instant until = start.until;
    RY_CHECK(until > from);
    taken_.push_back(job);
    if (until <= slots_.back().begin) {
        const auto after =
            std::lower_bound(slots_.begin(), slots_.end(), until,
                             [](const Slot& slot, Instant at) { return slot.begin < at; });
        if (after->begin != until) {
            Slot split = *std::prev(after);
            split.begin = until;
            split.planned = false;
            slots_.insert(after, std::move(split));
        }
    } else {
        planned_ends_.emplace(until, allocation);
    }
    for (Slot& slot : slots_) {
        if (slot.begin < from || slot.begin >= until) continue;
        if (slot.begin == from) slot.planned = true;
        for (const NodeShare& share : allocation) change(slot, share.node, -share.gpus);
    }
}

}  // namespace railyard
