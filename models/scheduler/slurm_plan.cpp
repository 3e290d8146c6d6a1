#include "models/scheduler/slurm_plan.h"

#include <algorithm>
#include <bit>

#include "sim/check.h"
#include "sim/integers.h"

namespace railyard {

namespace {

std::int64_t count_of(const NodeSet& nodes) {
    std::int64_t count = 0;
    for (std::size_t w = 0; w < nodes.words(); ++w) count += std::popcount(nodes.word(w));
    return count;
}

}  // namespace

Instant next_end(const Reservation& r, Instant at) {
    Instant end = r.start + r.length;
    if (r.every > Duration{} && at >= end) {
        end += r.every * ((at - end) / r.every + 1);
    }
    return end;
}

bool overlaps(const Reservation& r, Instant from, Duration length) {
    const Instant end = next_end(r, from);
    return end > from && end - r.length < from + length;
}

void leave_windows_out(const FleetSpec& spec, Instant from, Duration length, NodeSet& nodes) {
    for (const Reservation& r : spec.reservations) {
        if (!overlaps(r, from, length)) continue;
        for (std::int64_t i = 0; i < r.nodes; ++i) {
            nodes.remove(static_cast<NodeIndex>(r.first_node + i));
        }
    }
}

Instant planned_end(const FleetSpec& spec, Instant from, Duration length) {
    const Duration resolution = spec.slurm.backfill.resolution;
    const Duration end = (from + length).time_since_epoch();
    return Instant(resolution * ceil_div(end.count(), resolution.count()));
}

SlurmPlan::SlurmPlan(const Fleet& fleet, const Ends& ends)
    : fleet_(fleet),
      ends_(ends),
      levels_(static_cast<std::size_t>(fleet.cluster().gpus_per_node_max()) + 1),
      next_end_(ends.begin()) {
    const FleetCluster& cluster = fleet.cluster();
    Slot now{fleet.now(), FreeLevels(cluster), {}};
    for (std::uint32_t p = 0; p < fleet.spec().pools(); ++p) {
        members_.push_back(&cluster.members(p));
        for (std::size_t g = 0; g < levels_; ++g) {
            const std::int64_t nodes = cluster.nodes_with(p, static_cast<std::int64_t>(g));
            now.count.push_back(static_cast<std::int32_t>(nodes));
        }
    }
    slots_.push_back(std::move(now));
    for (const Reservation& r : fleet.spec().reservations) {  // a start may wait for a window's end
        const Instant end = next_end(r, fleet.now());
        if (end > fleet.now()) planned_ends_.emplace(end, Nodes());
    }
}

// Of nodes that are up.
SlurmPlan::Nodes SlurmPlan::up_nodes(const Allocation& allocation) const {
    Nodes out;
    for (const NodeShare& share : allocation) {
        if (fleet_.cluster().node(share.node).state != NodeState::up) continue;
        const std::size_t word = share.node / 64;
        if (out.empty() || out.back().word != word || out.back().gpus != share.gpus) {
            out.push_back({word, 0, share.gpus});
        }
        out.back().nodes |= std::uint64_t{1} << (share.node % 64);
    }
    return out;
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
    Slot slot = slots_.back();
    slot.begin = at;
    slot.planned = false;
    for (; next_end_ != ends_.end() && next_end_->first <= at; ++next_end_) {
        const JobIndex job = next_end_->second;
        if (std::find(taken_.begin(), taken_.end(), job) != taken_.end()) continue;
        give_back(slot, up_nodes(fleet_.status(job).held));
    }
    while (!planned_ends_.empty() && planned_ends_.begin()->first <= at) {
        give_back(slot, planned_ends_.begin()->second);
        planned_ends_.erase(planned_ends_.begin());
    }
    slots_.push_back(std::move(slot));
    return true;
}

void SlurmPlan::give_back(Slot& slot, const Nodes& nodes) const {
    for (const NodesOfWord& n : nodes) {
        slot.free.give_back(
            n, [&](std::int64_t gpus, std::uint64_t gain) { count(slot, n.word, gpus, gain, 1); });
    }
}

void SlurmPlan::take(Slot& slot, const Nodes& nodes) const {
    for (const NodesOfWord& n : nodes) {
        slot.free.take(
            n, [&](std::int64_t gpus, std::uint64_t loss) { count(slot, n.word, gpus, loss, -1); });
    }
}

void SlurmPlan::count(Slot& slot, std::size_t word, std::int64_t gpus, std::uint64_t nodes,
                      std::int32_t sign) const {
    for (std::size_t p = 0; p < members_.size(); ++p) {
        const int members = std::popcount(nodes & members_[p]->word(word));
        slot.count[p * levels_ + static_cast<std::size_t>(gpus)] += sign * members;
    }
}

// Wherever these nodes are, and whether they stay free or not.
bool SlurmPlan::enough(const Asked& what, const Slot& slot) const {
    const std::int32_t* count = &slot.count[what.pool * levels_];
    return count[what.gpus_per_pod] >= what.full_pods &&
           (what.rest == 0 || count[what.rest] > what.full_pods);
}

// Nodes of a pool with so much free in each of these slots, if there are at least so many; else the last
// slot from which on there are not.
bool SlurmPlan::free_all_along(std::uint32_t pool, std::int64_t gpus, std::int64_t least,
                               std::size_t first, std::size_t end, NodeSet& nodes,
                               std::size_t& short_of) const {
    nodes = fleet_.cluster().members(pool);
    for (std::size_t s = end; s-- > first;) {
        if (s > first && !slots_[s].planned) continue;
        const std::uint64_t* free = slots_[s].free.at_least(gpus);
        for (std::size_t w = 0; w < nodes.words(); ++w) nodes.word(w) &= free[w];
        if (count_of(nodes) >= least) continue;
        short_of = s;
        return false;
    }
    return true;
}

bool SlurmPlan::fits(const Asked& what, std::size_t first, std::size_t end, Start& start,
                     std::size_t& short_of) const {
    const auto find = [&](std::int64_t gpus, std::int64_t least, NodeSet& nodes) {
        if (!free_all_along(what.pool, gpus, least, first, end, nodes, short_of)) return false;
        leave_windows_out(fleet_.spec(), start.at, what.length, nodes);
        short_of = first;
        return count_of(nodes) >= least;
    };
    if (!find(what.gpus_per_pod, what.full_pods, start.pods)) return false;
    return what.rest == 0 || find(what.rest, what.full_pods + 1, start.rest);
}

Instant SlurmPlan::not_before(const Asked& now) const {
    Instant out{};
    for (const Asked& then : asked_) {
        if (then.at <= out || then.pool != now.pool || then.length > now.length) continue;
        if (then.gpus_per_pod > now.gpus_per_pod || then.full_pods > now.full_pods) continue;
        if (then.rest > now.rest && then.full_pods == now.full_pods) continue;
        out = then.at;
    }
    return out;
}

SlurmPlan::Asked SlurmPlan::asked_for(JobIndex index, Duration length) const {
    const FleetJob& job = fleet_.job(index);
    return {fleet_.spec().pool(job), job.gpus_per_pod, job.gpus / job.gpus_per_pod,
            job.gpus % job.gpus_per_pod, length};
}

// The start of a slot as a job's; short_of: the last slot in its time in which there is not enough.
SlurmPlan::Start SlurmPlan::start_at(const Asked& what, std::size_t first, std::size_t& end,
                                     std::size_t& short_of) const {
    Start start;
    start.at = slots_[first].begin;
    start.until = planned_end(fleet_.spec(), start.at, what.length);
    short_of = no_slot;
    if (!enough(what, slots_[first])) short_of = first;
    for (end = first + 1; end < slots_.size() && slots_[end].begin < start.until; ++end) {
        if (slots_[end].planned && !enough(what, slots_[end])) short_of = end;
    }
    return start;
}

bool SlurmPlan::may_start_now(JobIndex index, Duration length) const {
    const Asked what = asked_for(index, length);
    if (not_before(what) > fleet_.now()) return false;
    std::size_t end = 0;
    std::size_t short_of = no_slot;
    Start start = start_at(what, 0, end, short_of);
    return short_of == no_slot && fits(what, 0, end, start, short_of);
}

std::optional<SlurmPlan::Start> SlurmPlan::earliest(JobIndex index, Duration length, Instant latest,
                                                    const Suits& suits) {
    Asked asked = asked_for(index, length);
    const Instant not_before = this->not_before(asked);
    bool all_suit = true;
    auto first = static_cast<std::size_t>(slot_from(not_before) - slots_.begin());
    for (;; ++first) {
        if (first == slots_.size() && !extend()) break;
        if (slots_[first].begin > latest) break;
        if (slots_[first].begin < not_before || !enough(asked, slots_[first])) continue;
        std::size_t end = 0;
        std::size_t short_of = no_slot;
        Start start = start_at(asked, first, end, short_of);
        if (short_of != no_slot || !fits(asked, first, end, start, short_of)) {
            first = short_of;  // no start up to there can do
            continue;
        }
        if (suits(start)) {
            asked.at = start.at;
            if (all_suit) asked_.push_back(asked);
            return start;
        }
        all_suit = false;
    }
    asked.at = Instant::max();
    if (all_suit) asked_.push_back(asked);
    return std::nullopt;
}

void SlurmPlan::take(JobIndex job, const Allocation& allocation, const Start& start) {
    RY_CHECK(start.until > start.at);
    taken_.push_back(job);
    const Nodes nodes = up_nodes(allocation);
    if (start.until <= slots_.back().begin) {
        const auto after = slot_from(start.until);
        if (after->begin != start.until) {
            Slot split = *std::prev(after);
            split.begin = start.until;
            split.planned = false;
            slots_.insert(after, std::move(split));
        }
    } else {
        planned_ends_.emplace(start.until, nodes);
    }
    for (auto slot = slot_from(start.at); slot != slots_.end() && slot->begin < start.until;
         ++slot) {
        if (slot->begin == start.at) slot->planned = true;
        take(*slot, nodes);
    }
}

// The first that does not begin before that.
std::vector<SlurmPlan::Slot>::iterator SlurmPlan::slot_from(Instant at) {
    return std::lower_bound(slots_.begin(), slots_.end(), at,
                            [](const Slot& slot, Instant until) { return slot.begin < until; });
}

}  // namespace railyard
