#include "models/scheduler/slurm_plan.h"

#include <algorithm>

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

}  // namespace

bool overlaps(const Reservation& r, Instant from, Duration length) {
    const Instant end = next_end(r, from);
    return end > from && end - r.length < from + length;
}

SlurmPlan::SlurmPlan(const Fleet& fleet, const Ends& ends)
    : fleet_(fleet), ends_(ends), next_end_(ends.begin()) {
    Slot now{fleet.now(), {}};
    for (const FleetNode& node : fleet.cluster().nodes()) {
        now.free.push_back(node.state == NodeState::up ? static_cast<std::uint8_t>(node.free) : 0);
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
    Slot slot{at, slots_.back().free};
    const std::vector<FleetNode>& nodes = fleet_.cluster().nodes();
    const auto give_back = [&](const Allocation& allocation) {
        for (const NodeShare& share : allocation) {
            if (nodes[share.node].state != NodeState::up) continue;
            slot.free[share.node] = static_cast<std::uint8_t>(slot.free[share.node] + share.gpus);
        }
    };
    for (; next_end_ != ends_.end() && next_end_->first <= at; ++next_end_) {
        give_back(fleet_.status(next_end_->second).held);
    }
    while (!planned_ends_.empty() && planned_ends_.begin()->first <= at) {
        give_back(planned_ends_.begin()->second);
        planned_ends_.erase(planned_ends_.begin());
    }
    slots_.push_back(std::move(slot));
    return true;
}

bool SlurmPlan::fits(const FleetJob& job, const std::vector<std::uint8_t>& free,
                     Start& start) const {
    const NodeSet& members = fleet_.cluster().members(job.partition);
    const std::int64_t full = job.gpus / job.gpus_per_pod;
    const std::int64_t rest = job.gpus % job.gpus_per_pod;
    const auto enough = [&](std::int64_t gpus, std::int64_t wanted) {
        std::int64_t count = 0;
        for (std::size_t node = 0; node < free.size(); ++node) count += free[node] >= gpus ? 1 : 0;
        return count >= wanted;
    };
    if (!enough(job.gpus_per_pod, full) || (rest > 0 && !enough(rest, full + 1))) return false;
    start.pods = start.rest = NodeSet(free.size());
    std::int64_t pods = 0;
    std::int64_t pods_or_rest = 0;
    for (NodeIndex node = 0; node < free.size(); ++node) {
        if (!members.has(node)) continue;
        if (free[node] >= job.gpus_per_pod) {
            start.pods.add(node);
            ++pods;
        }
        if (rest > 0 && free[node] >= rest) {
            start.rest.add(node);
            ++pods_or_rest;
        }
    }
    return pods >= full && (rest == 0 || pods_or_rest > full);
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
        if (start.at > latest) return std::nullopt;
        if (!fits(job, slots_[first].free, start)) continue;
        all_along_ = slots_[first].free;
        for (std::size_t s = first + 1; s < slots_.size() && slots_[s].begin < start.at + length;
             ++s) {
            if (!slots_[s].planned) continue;
            for (std::size_t node = 0; node < all_along_.size(); ++node) {
                all_along_[node] = std::min(all_along_[node], slots_[s].free[node]);
            }
        }
        leave_windows_out(start.at, length, all_along_);
        if (fits(job, all_along_, start) && suits(start)) return start;
    }
}

void SlurmPlan::take(const Allocation& allocation, Instant from, Instant until) {
    RY_CHECK(until > from);
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
        for (const NodeShare& share : allocation) {
            RY_CHECK(slot.free[share.node] >= share.gpus);
            slot.free[share.node] = static_cast<std::uint8_t>(slot.free[share.node] - share.gpus);
        }
    }
}

}  // namespace railyard
