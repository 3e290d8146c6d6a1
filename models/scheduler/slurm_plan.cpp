#include "models/scheduler/slurm_plan.h"

#include <algorithm>
#include <bit>
#include <iterator>

#include "sim/check.h"
#include "sim/integers.h"

namespace railyard {

namespace {

std::int64_t count_of(const NodeSet& nodes) {
    std::int64_t count = 0;
    for (std::size_t w = 0; w < nodes.words(); ++w) count += std::popcount(nodes.word(w));
    return count;
}

std::uint64_t bit_of(const NodesOfWord& nodes) {
    return std::uint64_t{1} << (nodes.word % 64);
}

}  // namespace

Instant next_end(const Reservation& r, Instant at) {
    Instant end = r.start + r.length;
    if (r.every > Duration{} && at >= end) end += r.every * ((at - end) / r.every + 1);
    return end;
}

bool overlaps(const Reservation& r, Instant from, Duration length) {
    const Instant end = next_end(r, from);
    return end > from && end - r.length < from + length;
}

void leave_out(const Reservation& r, NodeSet& nodes) {
    for (std::int64_t i = 0; i < r.nodes; ++i) {
        nodes.remove(static_cast<NodeIndex>(r.first_node + i));
    }
}

void leave_windows_out(const WorldSpec& spec, Instant from, Duration length, NodeSet& nodes) {
    for (const Reservation& r : spec.reservations) {
        if (overlaps(r, from, length)) leave_out(r, nodes);
    }
}

Instant planned_end(const WorldSpec& spec, Instant from, Duration length) {
    const Duration resolution = spec.slurm.backfill.resolution;
    const Duration end = (from + length).time_since_epoch();
    return Instant(resolution * ceil_div(end.count(), resolution.count()));
}

SlurmPlan::SlurmPlan(const WorldView& world, const Ends& ends)
    : world_(world),
      spec_(world.spec()),
      ends_(ends),
      levels_(world.cluster()),
      of_device_(world.cluster().devices()) {
    const WorldCluster& cluster = world.cluster();
    std::size_t counts = 0;
    for (std::uint32_t p = 0; p < spec_.pools(); ++p) {
        const std::size_t device = cluster.device_of(p);
        pools_.push_back({device, &cluster.members(p), counts});
        of_device_[device].push_back(pools_.back());
        counts += static_cast<std::size_t>(cluster.device_max(device)) + 1;
    }
}

void SlurmPlan::renew() {
    std::move(slots_.begin(), slots_.end(), std::back_inserter(spare_));
    slots_.clear();
    planned_ends_.clear();
    planned_nodes_.clear();
    started_.clear();
    asked_.clear();
    known_to_fit_ = no_world_job;
    next_end_ = ends_.begin();
    const WorldCluster& cluster = world_.cluster();
    Slot now = spare_slot();
    now.begin = world_.now();
    now.free = FreeLevels(cluster, levels_);
    now.count.clear();
    for (std::uint32_t p = 0; p < pools_.size(); ++p) {
        for (std::int64_t g = 0; g <= cluster.device_max(pools_[p].device); ++g) {
            now.count.push_back(static_cast<std::int32_t>(cluster.nodes_with(p, g)));
        }
    }
    slots_.push_back(std::move(now));
    for (const Reservation& r : spec_.reservations) {  // a start may wait for a window's end
        const Instant end = next_end(r, world_.now());
        if (end > world_.now()) end_later(end, {});
    }
}

SlurmPlan::Slot SlurmPlan::spare_slot() {
    if (spare_.empty()) return {{}, FreeLevels(levels_), {}};
    Slot out = std::move(spare_.back());
    spare_.pop_back();
    return out;
}

std::size_t SlurmPlan::device_of(JobIndex job) const {
    return of_device_.size() == 1 ? 0 : pools_[spec_.pool(world_.job(job))].device;
}

SlurmPlan::Nodes SlurmPlan::up_nodes(const Allocation& allocation, std::size_t device) {
    slots_.front().free.up_nodes(allocation, device, up_nodes_);
    return up_nodes_;
}

bool SlurmPlan::extend() {
    const bool any_planned = !planned_ends_.empty();
    const bool any_end = next_end_ != ends_.end();
    if (!any_planned && !any_end) return false;
    Instant at = any_end ? next_end_->first : planned_ends_.front().at;
    if (any_planned) at = std::min(at, planned_ends_.front().at);
    // What should have ended by now is expected to any time.
    at = std::max(at, planned_end(spec_, world_.now(), Duration(1)));
    RY_CHECK(at > slots_.back().begin);
    Slot slot = spare_slot();
    slot = slots_.back();
    slot.begin = at;
    slot.gained = 0;
    for (; next_end_ != ends_.end() && next_end_->first <= at; ++next_end_) {
        const JobIndex job = next_end_->second;
        if (std::ranges::find(started_, job) != started_.end()) continue;
        give_back(slot, up_nodes(world_.status(job).held, device_of(job)));
    }
    while (!planned_ends_.empty() && planned_ends_.front().at <= at) {
        std::pop_heap(planned_ends_.begin(), planned_ends_.end());
        const PlannedEnd& end = planned_ends_.back();
        give_back(slot, Nodes(planned_nodes_).subspan(end.first, end.count));
        planned_ends_.pop_back();
    }
    slots_.push_back(std::move(slot));
    return true;
}

void SlurmPlan::end_later(Instant at, Nodes nodes) {
    planned_ends_.push_back({at, planned_nodes_.size(), nodes.size()});
    std::push_heap(planned_ends_.begin(), planned_ends_.end());
    planned_nodes_.insert(planned_nodes_.end(), nodes.begin(), nodes.end());
}

void SlurmPlan::give_back(Slot& slot, Nodes nodes) const {
    for (const NodesOfWord& n : nodes) {
        slot.gained |= bit_of(n);
        slot.free.give_back(n, [&](std::int64_t first, std::int64_t last, std::uint64_t gain) {
            count(slot, n, first, last, gain, 1);
        });
    }
}

void SlurmPlan::take(Slot& slot, Nodes nodes) const {
    for (const NodesOfWord& n : nodes) {
        slot.free.take(n, [&](std::int64_t first, std::int64_t last, std::uint64_t loss) {
            count(slot, n, first, last, loss, -1);
        });
    }
}

// Nodes of a word that have now, or have no longer, at least so many free.
inline void SlurmPlan::count(Slot& slot, const NodesOfWord& where, std::int64_t first,
                             std::int64_t last, std::uint64_t nodes, std::int32_t sign) const {
    for (const Pool& pool : of_device_[where.device]) {
        const std::int32_t change = sign * std::popcount(nodes & pool.members->word(where.word));
        std::int32_t* counts = &slot.count[pool.counts];
        for (std::int64_t g = first; g <= last; ++g) counts[g] += change;
    }
}

// Wherever these nodes are, and whether they stay free or not.
bool SlurmPlan::enough(const Asked& what, const Slot& slot) const {
    const std::int32_t* count = &slot.count[pools_[what.pool].counts];
    return count[what.gpus_per_pod] >= what.full_pods &&
           (what.rest == 0 || count[what.rest] > what.full_pods);
}

// Nodes of a pool with so much free in each of these slots, if there are at least so many; else the last
// slot from which on there are not. From the end back, only where more came free is there less before.
bool SlurmPlan::free_all_along(std::uint32_t pool, std::int64_t gpus, std::int64_t least,
                               std::size_t first, std::size_t end, NodeSet& nodes,
                               std::size_t& short_of) const {
    const Pool& of = pools_[pool];
    const std::size_t words = of.members->words();
    std::int64_t left = slots_[end - 1].count[of.counts + static_cast<std::size_t>(gpus)];
    short_of = end - 1;
    if (left < least) return false;
    const std::uint64_t* free = slots_[end - 1].free.at_least(gpus, of.device);
    if (nodes.words() == 0) nodes = *of.members;
    for (std::size_t w = 0; w < words; ++w) nodes.word(w) = of.members->word(w) & free[w];
    for (std::size_t s = end - 1; left >= least; short_of = --s) {
        if (s == first) return true;
        free = slots_[s - 1].free.at_least(gpus, of.device);
        for (std::uint64_t gained = slots_[s].gained; gained != 0; gained &= gained - 1) {
            for (auto w = static_cast<std::size_t>(std::countr_zero(gained)); w < words; w += 64) {
                left -= std::popcount(nodes.word(w) & ~free[w]);
                nodes.word(w) &= free[w];
            }
        }
    }
    return false;
}

// Whether it can start with this slot; else no slot up to short_of does.
bool SlurmPlan::fits(const Asked& what, std::size_t first, Start& start,
                     std::size_t& short_of) const {
    start.at = slots_[first].begin;
    start.until = planned_end(spec_, start.at, what.length);
    start.first = first;
    start.end = slot_from(start.until);
    const auto find = [&](std::int64_t gpus, std::int64_t least, NodeSet& nodes) {
        if (!free_all_along(what.pool, gpus, least, first, start.end, nodes, short_of))
            return false;
        leave_windows_out(spec_, start.at, what.length, nodes);
        short_of = first;
        return count_of(nodes) >= least;
    };
    if (!find(what.gpus_per_pod, what.full_pods, start.pods)) return false;
    if (what.rest == 0) {
        start.rest = NodeSet();
        return true;
    }
    return find(what.rest, what.full_pods + 1, start.rest);
}

bool SlurmPlan::Asked::no_less_than(const Asked& other) const {
    if (other.pool != pool || other.length > length) return false;
    if (other.gpus_per_pod > gpus_per_pod || other.full_pods > full_pods) return false;
    return other.rest <= rest || other.full_pods < full_pods;
}

Instant SlurmPlan::not_before(const Asked& now) const {
    for (const Asked& then : asked_) {
        if (now.no_less_than(then)) return then.at;
    }
    return {};
}

// What it implies is not kept.
void SlurmPlan::remember(const Asked& asked) {
    std::erase_if(
        asked_, [&](const Asked& then) { return then.at <= asked.at && then.no_less_than(asked); });
    const auto after =
        std::ranges::find_if(asked_, [&](const Asked& then) { return then.at <= asked.at; });
    asked_.insert(after, asked);
}

SlurmPlan::Asked SlurmPlan::asked_for(JobIndex index, Duration length) const {
    const WorldJob& job = world_.job(index);
    return {spec_.pool(job), job.gpus_per_pod, job.gpus / job.gpus_per_pod,
            job.gpus % job.gpus_per_pod, length};
}

bool SlurmPlan::enough(const Asked& what, const Start& start) {
    return count_of(start.pods) >= what.full_pods &&
           (what.rest == 0 || count_of(start.rest) > what.full_pods);
}

bool SlurmPlan::may_start_now(JobIndex index, Duration length) {
    const Asked what = asked_for(index, length);
    if (not_before(what) > world_.now()) return false;
    if (known_to_fit_ == index && enough(what, fitting_)) return true;
    known_to_fit_ = no_world_job;
    std::size_t short_of = 0;
    if (!fits(what, 0, fitting_, short_of)) return false;
    known_to_fit_ = index;
    return true;
}

const SlurmPlan::Start* SlurmPlan::earliest(JobIndex index, Duration length, Instant latest,
                                            const Suits& suits) {
    Asked asked = asked_for(index, length);
    const Instant not_before = this->not_before(asked);
    bool all_suit = true;
    for (std::size_t first = slot_from(not_before);; ++first) {
        if (first == slots_.size() && !extend()) break;
        if (slots_[first].begin > latest) break;
        if (slots_[first].begin < not_before || !enough(asked, slots_[first])) continue;
        std::size_t short_of = 0;
        if (!fits(asked, first, tried_, short_of)) {
            first = short_of;
            continue;
        }
        if (suits(tried_)) {
            asked.at = tried_.at;
            // One that starts as early as it may says nothing that was not known.
            if (all_suit && asked.at > not_before) remember(asked);
            return &tried_;
        }
        all_suit = false;
    }
    asked.at = Instant::max();
    if (all_suit && asked.at > not_before) remember(asked);
    return nullptr;
}

void SlurmPlan::take(JobIndex job, const Allocation& allocation, const Start& start) {
    take(job, up_nodes(allocation, device_of(job)), start);
}

void SlurmPlan::take_first(JobIndex index, const Start& start) {
    const WorldJob& job = world_.job(index);
    const std::size_t device = device_of(index);
    const std::int64_t rest = job.gpus % job.gpus_per_pod;
    up_nodes_.clear();
    std::int64_t left = job.gpus / job.gpus_per_pod;
    NodesOfWord last{0, 0, rest, device};  // the first node that has no full pod
    for (std::size_t w = 0; left > 0 || (rest > 0 && last.nodes == 0); ++w) {
        NodesOfWord full{w, 0, job.gpus_per_pod, device};
        for (std::uint64_t free = left > 0 ? start.pods.word(w) : 0; free != 0 && left > 0;
             --left) {
            full.nodes |= free & -free;
            free &= free - 1;
        }
        if (full.nodes != 0) up_nodes_.push_back(full);
        if (rest == 0 || last.nodes != 0) continue;
        const std::uint64_t free = start.rest.word(w) & ~full.nodes;
        last.word = w;
        last.nodes = free & -free;
    }
    if (rest > 0) up_nodes_.push_back(last);
    take(index, up_nodes_, start);
}

void SlurmPlan::take(JobIndex job, Nodes nodes, const Start& start) {
    RY_CHECK(start.until > start.at);
    if (start.at == world_.now()) started_.push_back(job);
    if (start.at < fitting_.until) {
        for (const NodesOfWord& n : nodes) {
            if (fitting_.pods.words() > 0) fitting_.pods.word(n.word) &= ~n.nodes;
            if (fitting_.rest.words() > 0) fitting_.rest.word(n.word) &= ~n.nodes;
        }
    }
    if (start.until <= slots_.back().begin) {
        const std::size_t after = start.end;
        if (slots_[after].begin != start.until) {
            Slot split = spare_slot();
            split = slots_[after - 1];
            split.begin = start.until;
            split.gained = 0;
            slots_.insert(slots_.begin() + after, std::move(split));
        }
        for (const NodesOfWord& n : nodes) slots_[after].gained |= bit_of(n);
    } else {
        end_later(start.until, nodes);
    }
    for (std::size_t s = start.first; s < start.end; ++s) take(slots_[s], nodes);
}

// The first that does not begin before that.
std::size_t SlurmPlan::slot_from(Instant at) const {
    const auto slot = std::ranges::lower_bound(slots_, at, {}, &Slot::begin);
    return static_cast<std::size_t>(slot - slots_.begin());
}

}  // namespace railyard
