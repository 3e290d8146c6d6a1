#include "models/scheduler/slurm_plan.h"

#include <algorithm>
#include <array>
#include <bit>
#include <iterator>
#include <utility>

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

void leave_windows_out(const WorldSpec& spec, Instant from, Duration length, NodeSet& nodes) {
    for (const Reservation& r : spec.reservations) {
        if (!overlaps(r, from, length)) continue;
        for (std::int64_t i = 0; i < r.nodes; ++i) {
            nodes.remove(static_cast<NodeIndex>(r.first_node + i));
        }
    }
}

Instant planned_end(const WorldSpec& spec, Instant from, Duration length) {
    const Duration resolution = spec.slurm.backfill.resolution;
    const Duration end = (from + length).time_since_epoch();
    return Instant(resolution * ceil_div(end.count(), resolution.count()));
}

SlurmPlan::Memory::Memory(const WorldView& world)
    : levels_(world.cluster()), of_device_(world.cluster().devices()) {
    const WorldCluster& cluster = world.cluster();
    for (std::uint32_t p = 0; p < world.spec().pools(); ++p) {
        const std::size_t device = cluster.device_of(p);
        pools_.push_back({device, &cluster.members(p), counts_});
        of_device_[device].push_back(pools_.back());
        counts_ += static_cast<std::size_t>(cluster.device_max(device)) + 1;
    }
}

SlurmPlan::SlurmPlan(const WorldView& world, const Ends& ends, Memory& memory)
    : world_(world), spec_(world.spec()), ends_(ends), memory_(memory), next_end_(ends.begin()) {
    const WorldCluster& cluster = world.cluster();
    Slot now{world.now(), FreeLevels(cluster, memory.levels_), {}};
    for (std::uint32_t p = 0; p < memory.pools_.size(); ++p) {
        for (std::int64_t g = 0; g <= cluster.device_max(memory.pools_[p].device); ++g) {
            now.count.push_back(static_cast<std::int32_t>(cluster.nodes_with(p, g)));
        }
    }
    slots_.reserve(memory.slots_.size() + 1);
    slots_.push_back(std::move(now));
    for (const Reservation& r : world.spec().reservations) {  // a start may wait for a window's end
        const Instant end = next_end(r, world.now());
        if (end > world.now()) end_later(end, {});
    }
}

SlurmPlan::~SlurmPlan() {
    std::move(slots_.begin(), slots_.end(), std::back_inserter(memory_.slots_));
}

SlurmPlan::Slot SlurmPlan::copy_of(const Slot& slot) {
    if (memory_.slots_.empty()) return slot;
    Slot out = std::move(memory_.slots_.back());
    memory_.slots_.pop_back();
    out = slot;
    return out;
}

std::size_t SlurmPlan::device_of(JobIndex job) const {
    return memory_.pools_[spec_.pool(world_.job(job))].device;
}

// Nodes that are up count, even with no GPU free.
SlurmPlan::Nodes SlurmPlan::up_nodes(const Allocation& allocation, std::size_t device) {
    const std::uint64_t* up = slots_.front().free.at_least(0, 0);
    std::vector<NodesOfWord>& out = up_nodes_;
    out.clear();
    for (const NodeRun& run : allocation.runs()) {
        each_word(run, [&](std::size_t word, std::uint64_t nodes) {
            if ((nodes &= up[word]) == 0) return;
            if (out.empty() || out.back().word != word || out.back().gpus != run.gpus) {
                out.push_back({word, 0, run.gpus, device});
            }
            out.back().nodes |= nodes;
        });
    }
    return out;
}

bool SlurmPlan::extend() {
    const bool any_planned = !planned_ends_.empty();
    const bool any_end = next_end_ != ends_.end();
    if (!any_planned && !any_end) return false;
    Instant at = any_end ? next_end_->first : planned_ends_.top().at;
    if (any_planned) at = std::min(at, planned_ends_.top().at);
    // What should have ended by now is expected to any time.
    at = std::max(at, world_.now() + spec_.slurm.backfill.resolution);
    RY_CHECK(at > slots_.back().begin);
    Slot slot = copy_of(slots_.back());
    slot.begin = at;
    slot.lost = 0;
    for (; next_end_ != ends_.end() && next_end_->first <= at; ++next_end_) {
        const JobIndex job = next_end_->second;
        if (std::find(taken_.begin(), taken_.end(), job) != taken_.end()) continue;
        give_back(slot, up_nodes(world_.status(job).held, device_of(job)));
    }
    for (; !planned_ends_.empty() && planned_ends_.top().at <= at; planned_ends_.pop()) {
        const PlannedEnd& end = planned_ends_.top();
        give_back(slot, Nodes(planned_nodes_).subspan(end.first, end.count));
    }
    slots_.push_back(std::move(slot));
    return true;
}

void SlurmPlan::end_later(Instant at, Nodes nodes) {
    planned_ends_.push({at, planned_nodes_.size(), nodes.size()});
    planned_nodes_.insert(planned_nodes_.end(), nodes.begin(), nodes.end());
}

void SlurmPlan::give_back(Slot& slot, Nodes nodes) const {
    for (const NodesOfWord& n : nodes) {
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
    for (const Pool& pool : memory_.of_device_[where.device]) {
        const std::int32_t change = sign * std::popcount(nodes & pool.members->word(where.word));
        std::int32_t* counts = &slot.count[pool.counts];
        for (std::int64_t g = first; g <= last; ++g) counts[g] += change;
    }
}

// Wherever these nodes are, and whether they stay free or not.
bool SlurmPlan::enough(const Asked& what, const Slot& slot) const {
    const std::int32_t* count = &slot.count[memory_.pools_[what.pool].counts];
    return count[what.gpus_per_pod] >= what.full_pods &&
           (what.rest == 0 || count[what.rest] > what.full_pods);
}

// Nodes of a pool with so much free in each of these slots, if there are at least so many; else the last
// slot from which on there are not.
bool SlurmPlan::free_all_along(std::uint32_t pool, std::int64_t gpus, std::int64_t least,
                               std::size_t first, std::size_t end, NodeSet& nodes,
                               std::size_t& short_of) {
    const Pool& of = memory_.pools_[pool];
    const std::size_t words = of.members->words();
    const auto keep = [&](const Slot& slot, std::size_t from, std::size_t step) {
        const std::uint64_t* free = slot.free.at_least(gpus, of.device);
        for (std::size_t w = from; w < words; w += step) nodes.word(w) &= free[w];
    };
    nodes = *of.members;
    keep(slots_[first], 0, 1);
    for (std::size_t s = first + 1; s < end; ++s) {
        for (std::uint64_t lost = slots_[s].lost; lost != 0; lost &= lost - 1) {
            keep(slots_[s], static_cast<std::size_t>(std::countr_zero(lost)), 64);
        }
    }
    if (count_of(nodes) >= least) return true;
    short_of = last_that_is_short(of, gpus, least, first, end, nodes);
    return false;
}

// From the end back, some slots at a time: only those among which it is are looked at one by one.
std::size_t SlurmPlan::last_that_is_short(const Pool& of, std::int64_t gpus, std::int64_t least,
                                          std::size_t first, std::size_t end, NodeSet& nodes) {
    constexpr std::size_t most = 8;
    std::array<const std::uint64_t*, most> free{};
    std::array<std::size_t, most> which{};
    nodes = *of.members;
    for (std::size_t s = end;;) {
        std::size_t some = 0;
        for (; some < most && s > first; ++some) {
            do {
                --s;
            } while (s > first && slots_[s].lost == 0);
            which[some] = s;
            free[some] = slots_[s].free.at_least(gpus, of.device);
        }
        RY_CHECK(some > 0);
        along_ = nodes;
        for (std::size_t w = 0; w < nodes.words(); ++w) {
            std::uint64_t all = nodes.word(w);
            for (std::size_t i = 0; i < some; ++i) all &= free[i][w];
            along_.word(w) = all;
        }
        if (count_of(along_) >= least) {
            std::swap(nodes, along_);
            continue;
        }
        for (std::size_t i = 0;; ++i) {
            for (std::size_t w = 0; w < nodes.words(); ++w) nodes.word(w) &= free[i][w];
            if (count_of(nodes) < least) return which[i];
        }
    }
}

bool SlurmPlan::fits(const Asked& what, std::size_t first, std::size_t end, Start& start,
                     std::size_t& short_of) {
    const auto find = [&](std::int64_t gpus, std::int64_t least, NodeSet& nodes) {
        if (!free_all_along(what.pool, gpus, least, first, end, nodes, short_of)) return false;
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

// The start of a slot as a job's; short_of: the last slot in its time in which there is not enough.
void SlurmPlan::start_at(const Asked& what, std::size_t first, Start& start, std::size_t& end,
                         std::size_t& short_of) const {
    start.at = slots_[first].begin;
    start.until = planned_end(spec_, start.at, what.length);
    end = slot_from(start.until);
    short_of = no_slot;
    for (std::size_t s = end; s-- > first;) {
        if ((s > first && slots_[s].lost == 0) || enough(what, slots_[s])) continue;
        short_of = s;
        return;
    }
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
    std::size_t end = 0;
    std::size_t short_of = no_slot;
    start_at(what, 0, fitting_, end, short_of);
    if (short_of != no_slot || !fits(what, 0, end, fitting_, short_of)) return false;
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
        std::size_t end = 0;
        std::size_t short_of = no_slot;
        start_at(asked, first, tried_, end, short_of);
        if (short_of != no_slot || !fits(asked, first, end, tried_, short_of)) {
            first = short_of;  // no start up to there can do
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
    taken_.push_back(job);
    if (start.at < fitting_.until) {
        for (const NodesOfWord& n : nodes) {
            if (fitting_.pods.words() > 0) fitting_.pods.word(n.word) &= ~n.nodes;
            if (fitting_.rest.words() > 0) fitting_.rest.word(n.word) &= ~n.nodes;
        }
    }
    if (start.until <= slots_.back().begin) {
        const std::size_t after = slot_from(start.until);
        if (slots_[after].begin != start.until) {
            Slot split = copy_of(slots_[after - 1]);
            split.begin = start.until;
            split.lost = 0;
            slots_.insert(slots_.begin() + static_cast<std::ptrdiff_t>(after), std::move(split));
        }
    } else {
        end_later(start.until, nodes);
    }
    for (std::size_t s = slot_from(start.at); s < slots_.size() && slots_[s].begin < start.until;
         ++s) {
        if (slots_[s].begin == start.at) {
            for (const NodesOfWord& n : nodes) slots_[s].lost |= std::uint64_t{1} << (n.word % 64);
        }
        take(slots_[s], nodes);
    }
}

// The first that does not begin before that.
std::size_t SlurmPlan::slot_from(Instant at) const {
    const auto slot = std::lower_bound(slots_.begin(), slots_.end(), at,
                                       [](const Slot& s, Instant from) { return s.begin < from; });
    return static_cast<std::size_t>(slot - slots_.begin());
}

}  // namespace railyard
