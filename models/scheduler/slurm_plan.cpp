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
    NodeSet nodes(cluster.nodes().size());
    for (std::int64_t g = cluster.gpus_per_node_max(); g >= 0; --g) {
        for (std::size_t w = 0; w < nodes.words(); ++w) {
            nodes.word(w) |= cluster.with_free(g).word(w);
        }
        now.at_least.push_back(nodes);
    }
    std::reverse(now.at_least.begin(), now.at_least.end());
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
    Slot slot{at, slots_.back().at_least, slots_.back().count};
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
    const std::int64_t most = fleet_.cluster().node(node).gpus;
    std::int64_t before = 0;
    while (before < most && slot.at_least[static_cast<std::size_t>(before) + 1].has(node)) ++before;
    const std::int64_t after = before + gpus;
    RY_CHECK(after >= 0 && after <= most);
    for (std::int64_t g = before + 1; g <= after; ++g) {
        slot.at_least[static_cast<std::size_t>(g)].add(node);
    }
    for (std::int64_t g = after + 1; g <= before; ++g) {
        slot.at_least[static_cast<std::size_t>(g)].remove(node);
    }
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

// Nodes with so much free in each of these slots.
NodeSet SlurmPlan::free_all_along(std::int64_t gpus, std::size_t first, std::size_t end) const {
    const auto level = static_cast<std::size_t>(gpus);
    NodeSet out = slots_[first].at_least[level];
    for (std::size_t s = first + 1; s < end; ++s) {
        if (slots_[s].planned) out.keep(slots_[s].at_least[level]);
    }
    return out;
}

bool SlurmPlan::fits(const FleetJob& job, Duration length, std::size_t first, std::size_t end,
                     Start& start) const {
    const std::int64_t full = job.gpus / job.gpus_per_pod;
    const std::int64_t rest = job.gpus % job.gpus_per_pod;
    const auto find = [&](std::int64_t gpus) {
        NodeSet nodes = free_all_along(gpus, first, end);
        nodes.keep(fleet_.cluster().members(fleet_.spec().pool(job)));
        leave_windows_out(start.at, length, nodes);
        return nodes;
    };
    start.pods = find(job.gpus_per_pod);
    if (count_of(start.pods) < full) return false;
    if (rest == 0) return true;
    start.rest = find(rest);
    return count_of(start.rest) > full;
}

void SlurmPlan::leave_windows_out(Instant from, Duration length, NodeSet& nodes) const {
    for (const Reservation& r : fleet_.spec().reservations) {
        if (!overlaps(r, from, length)) continue;
        for (std::int64_t i = 0; i < r.nodes; ++i) {
            nodes.remove(static_cast<NodeIndex>(r.first_node + i));
        }
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
        if (fits(job, length, first, end, start) && suits(start)) return start;
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
