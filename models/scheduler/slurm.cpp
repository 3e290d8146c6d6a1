// Slurm: jobs wait in one queue by priority; each partition starts from its head until one does not fit, and
// backfill starts those behind it that are in nobody's way. All GPUs of a job or none.

#include <fmt/format.h>

#include <algorithm>
#include <functional>

#include "models/scheduler/pod_placement.h"
#include "models/scheduler/slurm_placement.h"
#include "models/scheduler/slurm_plan.h"
#include "models/scheduler/slurm_preemption.h"
#include "models/scheduler/slurm_queue.h"
#include "models/scheduler/whole_jobs.h"

namespace railyard {

namespace {

class Slurm : public WholeJobs {
  public:
    explicit Slurm(WorldView& world)
        : WholeJobs(world),
          placement_(world.cluster(), spec_.topology),
          priorities_(world),
          queue_(world, priorities_),
          preemption_(world),
          plan_(world, ends_),
          qos_gpus_(spec_.qos.size()),
          time_tells_(next_window_end()),
          first_(world.spec().partitions.size()) {}

    std::optional<std::string> never(JobIndex job) const override;
    void submitted(JobIndex job) override;
    void goes_on(JobIndex job, const Allocation& gpus) override;
    void released(JobIndex job) override;
    void node_changed(NodeIndex) override { something_came_free(); }
    void schedule() override;
    JobIndex first(std::uint32_t partition) const override;

  private:
    void changed() { firsts_known_ = false; }
    // Then, or when time alone lets somebody start, may backfill find a start that it did not find before.
    void something_came_free() {
        plan_stale_ = true;
        changed();
    }
    NodeSet allowed_nodes(JobIndex job) const;
    void leave_to_suspended(JobIndex job, NodeSet& nodes) const;
    bool within_limits(JobIndex job) const;
    bool switches_do(JobIndex job, const Allocation& allocation);
    Instant next_window_end() const;
    std::optional<std::string> never_between_windows(JobIndex job) const;
    bool try_now(JobIndex job, const NodeSet* spoken_for = nullptr);
    bool make_room(JobIndex job);
    void start(JobIndex job, const Allocation& allocation, Duration ran = {});
    void runs(JobIndex job, Duration limit);  // from now on
    bool resume_suspended();
    // A look at the queue once others may displace it.
    void wake_when_displaceable(JobIndex job);
    void main_pass(std::int64_t depth);
    bool may_fit(const WorldJob& job) const;
    void backfill();
    std::vector<std::size_t> candidates() const;
    void wake_later();

    SlurmPlacement placement_;
    SlurmPriorities priorities_;
    SlurmQueue queue_;
    SlurmPreemption preemption_;
    SlurmPlan::Ends ends_;  // of those that hold GPUs
    SlurmPlan plan_;
    std::vector<Instant> end_;  // of each of them, as it stands there
    struct Suspended {
        JobIndex job = no_world_job;
        Duration left{};  // of its time limit
    };
    std::vector<Suspended> suspended_;    // in the order in which they were
    std::vector<std::int64_t> qos_gpus_;  // of running and suspended jobs
    bool plan_stale_ = false;             // something has happened since backfill last looked
    Instant time_tells_;  // a window ends, or somebody's patience: the next of these
    bool depth_reached_ = false;
    Instant woken_for_{};
    mutable std::vector<JobIndex> first_;  // of each partition
    mutable bool firsts_known_ = false;
    mutable FittingShapes fitting_;
};

// ---- what it is told ----

std::optional<std::string> Slurm::never(JobIndex index) const {
    if (auto why = never_fits(world_, index, fitting_, true)) return why;
    const WorldJob& job = world_.job(index);
    const SlurmQos& qos = spec_.qos[job.qos];
    if (qos.gpus_max > 0 && job.gpus > qos.gpus_max) {
        return fmt::format("wants {} GPUs; all jobs of QOS {} together get {} at most", job.gpus,
                           qos.name, qos.gpus_max);
    }
    if (!placement_.possible(job)) {
        return fmt::format("wants {} nodes on as few blocks as they fill; there are none so large",
                           job.pods());
    }
    return never_between_windows(index);
}

// Windows that come again leave their nodes for so long at most to one job.
std::optional<std::string> Slurm::never_between_windows(JobIndex index) const {
    const WorldJob& job = world_.job(index);
    if (job.goes_on || job.carried) return std::nullopt;  // it has had some of its time
    const WorldCluster& cluster = world_.cluster();
    const std::uint32_t pool = world_.spec().pool(job);
    const Duration limit = time_limit(world_.spec(), job);
    NodeSet open = cluster.members(pool);
    Duration longest{};
    for (const Reservation& r : world_.spec().reservations) {
        const Duration between = r.every - r.length;
        if (r.every == Duration{} || limit <= between) continue;
        if (!overlaps(r, world_.now(), limit)) continue;  // it may start before the first
        leave_out(r, open);
        longest = std::max(longest, between);
    }
    if (longest == Duration{}) return std::nullopt;
    const std::size_t device = cluster.device_of(pool);
    std::int64_t nodes = 0;  // that hold a pod
    for (NodeIndex n = 0; n < cluster.nodes().size(); ++n) {
        nodes += open.has(n) && cluster.capacity(n, device) >= job.gpus_per_pod ? 1 : 0;
    }
    if (nodes >= job.pods()) return std::nullopt;
    const bool limited = has_time_limit(world_.spec(), job);
    return fmt::format(
        "wants nodes for {}{}; between two windows of [[reservation]] they are its own for {} at "
        "most",
        to_text(limit), limited ? "" : " (no limit is given)", to_text(longest));
}

void Slurm::submitted(JobIndex job) {
    queue_.add(job);
    changed();
    if (may_fit(world_.job(job))) plan_stale_ = true;
}

void Slurm::goes_on(JobIndex job, const Allocation& gpus) {
    submitted(job);
    start(job, gpus, *world_.job(job).goes_on);
}

void Slurm::released(JobIndex job) {
    preemption_.left(job);
    something_came_free();
    const bool was_suspended =
        std::erase_if(suspended_, [job](const Suspended& s) { return s.job == job; }) > 0;
    const bool ran = end_.size() > job && end_[job] != Instant{};
    if (ran) {
        ends_.erase({end_[job], job});
        end_[job] = Instant{};
        priorities_.stops(job);
    }
    const WorldJobStatus& status = world_.status(job);
    if (status.phase == WorldPhase::suspended) {
        const Duration limit = time_limit(world_.spec(), world_.job(job));
        suspended_.push_back({job, limit - (world_.now() - status.started)});
    } else if (ran || was_suspended) {
        qos_gpus_[world_.job(job).qos] -= world_.job(job).gpus;
    }
}

// ---- starting jobs ----

NodeSet Slurm::allowed_nodes(JobIndex index) const {
    const WorldJob& job = world_.job(index);
    NodeSet allowed = world_.cluster().members(world_.spec().pool(job));
    leave_windows_out(world_.spec(), world_.now(), time_limit(world_.spec(), job), allowed);
    leave_to_suspended(index, allowed);
    return allowed;
}

// Their nodes are for those who may displace them.
void Slurm::leave_to_suspended(JobIndex job, NodeSet& nodes) const {
    if (nodes.words() == 0) return;  // the plan's, where it needs none
    for (const Suspended& s : suspended_) {
        if (preemption_.may_displace(job, s.job)) continue;
        for (const NodeShare& share : world_.status(s.job).held) nodes.remove(share.node);
    }
}

bool Slurm::within_limits(JobIndex job) const {
    const SlurmQos& qos = spec_.qos[world_.job(job).qos];
    return !preemption_.makes_way(job) && world_.power_for(job) &&
           (qos.gpus_max == 0 ||
            qos_gpus_[world_.job(job).qos] + world_.job(job).gpus <= qos.gpus_max);
}

bool Slurm::switches_do(JobIndex index, const Allocation& allocation) {
    const WorldJob& job = world_.job(index);
    if (job.switches_max == 0 || placement_.leaves_of(allocation) <= job.switches_max) return true;
    const Instant patience =
        world_.status(index).eligible + std::min(job.switches_wait, spec_.switches_wait_max);
    if (world_.now() >= patience) return true;
    world_.wake_at(patience);
    time_tells_ = std::min(time_tells_, patience);
    return false;
}

// So many nodes have so much free, wherever they are.
bool Slurm::may_fit(const WorldJob& job) const {
    const std::int64_t full = job.gpus / job.gpus_per_pod;
    const std::int64_t rest = job.gpus % job.gpus_per_pod;
    const WorldCluster& cluster = world_.cluster();
    const std::uint32_t pool = world_.spec().pool(job);
    return cluster.nodes_with(pool, job.gpus_per_pod) >= full &&
           (rest == 0 || cluster.nodes_with(pool, rest) > full);
}

bool Slurm::try_now(JobIndex index, const NodeSet* spoken_for) {
    const WorldJob& job = world_.job(index);
    if (!may_fit(job) || !world_.power_for(index)) return false;
    NodeSet allowed = allowed_nodes(index);
    if (spoken_for) allowed.remove(*spoken_for);
    const auto allocation = placement_.place(job, {allowed, allowed, world_.device_of(index)});
    if (!allocation || !switches_do(index, *allocation)) return false;
    start(index, *allocation);
    return true;
}

void Slurm::runs(JobIndex job, Duration limit) {
    end_[job] = planned_end(world_.spec(), world_.now(), limit);
    ends_.emplace(end_[job], job);
    priorities_.runs(job);
    preemption_.runs(job);
    changed();
}

void Slurm::start(JobIndex job, const Allocation& allocation, Duration ran) {
    queue_.remove(job);
    if (end_.size() <= job) end_.resize(job + std::size_t{1});
    runs(job, std::max(Duration{}, time_limit(world_.spec(), world_.job(job)) - ran));
    qos_gpus_[world_.job(job).qos] += world_.job(job).gpus;
    world_.bind(job, allocation);
    wake_when_displaceable(job);
}

// Displaces others for it, and starts it if they are gone at once.
bool Slurm::make_room(JobIndex job) {
    const WorldJob& wants = world_.job(job);
    SlurmPreemption::Suits suits;
    if (spec_.topology != SlurmTopology::none || wants.switches_max > 0) {
        suits = [&](const NodeSet& full, const NodeSet& rest) {
            const auto nodes = placement_.place_later(wants, {full, rest, world_.device_of(job)});
            return nodes && switches_do(job, *nodes);
        };
    }
    const std::vector<JobIndex> victims = preemption_.victims(job, allowed_nodes(job), suits);
    std::vector<JobIndex> gone;
    for (const JobIndex victim : victims) {
        if (preemption_.displace(victim, job)) gone.push_back(victim);
    }
    if (gone.size() == victims.size()) return !victims.empty() && try_now(job);
    for (const JobIndex victim : gone) preemption_.make_way(victim, job);
    return false;
}

// True if anybody goes on. Nodes of those that may displace it are theirs first.
bool Slurm::resume_suspended() {
    bool any = false;
    for (const Suspended& s : std::vector<Suspended>(suspended_)) {
        const Allocation& held = world_.status(s.job).held;
        NodeSet open = world_.cluster().members(world_.spec().pool(world_.job(s.job)));
        leave_windows_out(world_.spec(), world_.now(), s.left, open);
        for (const Suspended& other : suspended_) {
            if (other.job == s.job || !preemption_.may_displace(other.job, s.job)) continue;
            for (const NodeShare& share : world_.status(other.job).held) open.remove(share.node);
        }
        const bool free = std::ranges::all_of(held, [&](const NodeShare& share) {
            return open.has(share.node) &&
                   world_.cluster().node(share.node).state == NodeState::up &&
                   world_.cluster().free(share.node, world_.device_of(s.job)) >= share.gpus;
        });
        if (!free || preemption_.makes_way(s.job) || !world_.power_for(s.job)) continue;
        std::erase_if(suspended_, [&](const Suspended& other) { return other.job == s.job; });
        runs(s.job, s.left);
        world_.resume(s.job);
        wake_when_displaceable(s.job);
        any = true;
    }
    return any;
}

void Slurm::wake_when_displaceable(JobIndex job) {
    const Duration exempt = spec_.qos[world_.job(job).qos].exempt;
    if (exempt == Duration{}) return;
    world_.wake_at(std::max(world_.now(), world_.status(job).started + exempt));
}

Instant Slurm::next_window_end() const {
    Instant next = Instant::max();
    for (const Reservation& r : world_.spec().reservations) {
        const Instant end = next_end(r, world_.now());
        if (end > world_.now()) next = std::min(next, end);
    }
    return next;
}

void Slurm::schedule() {
    queue_.sort();
    if (world_.now() >= time_tells_) {
        plan_stale_ = true;
        time_tells_ = next_window_end();
    }
    for (const JobIndex job : preemption_.schedule()) {
        if (world_.status(job).phase == WorldPhase::waiting) try_now(job);
    }
    const Duration now = world_.now().time_since_epoch();
    const bool main = now % spec_.main_interval == Duration::zero();
    const std::int64_t depth = main ? INT64_MAX : spec_.event_depth;
    main_pass(depth);
    while (resume_suspended())
        main_pass(depth);  // what they don't take of their nodes is free again
    if (spec_.backfill_enabled && plan_stale_ &&
        now % spec_.backfill.interval == Duration::zero()) {
        plan_stale_ = false;
        backfill();
    }
    wake_later();
}

// Where a job of a partition has to wait, none of the others starts on that partition's nodes either: only
// backfill knows whether it would be in the way.
void Slurm::main_pass(std::int64_t depth) {
    std::vector<bool> blocked(first_.size());
    NodeSet spoken_for(world_.cluster().nodes().size());
    std::int64_t open = 0;
    for (std::uint32_t p = 0; p < first_.size(); ++p) open += queue_.waiting(p) > 0 ? 1 : 0;
    depth_reached_ = false;
    for (std::size_t i = queue_.begin(); i < queue_.size() && open > 0; ++i) {
        const JobIndex job = queue_.at(i);
        if (job == no_world_job || blocked[world_.job(job).partition]) continue;
        if (depth-- == 0) {
            depth_reached_ = true;
            return;
        }
        if (!within_limits(job)) continue;
        if (try_now(job, &spoken_for)) continue;
        if (!preemption_.any_leaving_for(job) && make_room(job)) continue;
        blocked[world_.job(job).partition] = true;
        spoken_for.add(world_.cluster().members(world_.job(job).partition));
        --open;
    }
}

// Where in the queue those are, behind the first, who could start now if nothing were planned for others.
std::vector<std::size_t> Slurm::candidates() const {
    std::int64_t looked_at = 0;
    std::vector<std::size_t> out;
    for (std::size_t i = queue_.begin(); i < queue_.size(); ++i) {
        const JobIndex job = queue_.at(i);
        if (job == no_world_job) continue;
        if (looked_at++ == spec_.backfill.depth) break;
        if (looked_at > 1 && may_fit(world_.job(job)) && within_limits(job)) out.push_back(i);
    }
    return out;
}

void Slurm::backfill() {
    std::vector<std::size_t> candidates = this->candidates();
    if (candidates.empty()) return;
    plan_.renew();
    const Instant latest = world_.now() + spec_.backfill.window;
    bool promised = false;
    bool taken = false;  // since the last candidate was looked at
    for (std::size_t i = queue_.begin();; ++i) {
        // Behind everyone who may still start now, nobody needs a plan.
        while (taken && !candidates.empty() && candidates.back() >= i) {
            const JobIndex last = queue_.at(candidates.back());
            if (plan_.may_start_now(last, time_limit(world_.spec(), world_.job(last)))) break;
            candidates.pop_back();
        }
        taken = false;
        if (candidates.empty() || i > candidates.back()) break;
        const JobIndex job = queue_.at(i);
        if (job == no_world_job || !within_limits(job)) continue;
        const Duration limit = time_limit(world_.spec(), world_.job(job));
        // Now nodes are chosen as ever; later any that will be free, as the topology has it, stand for those
        // that it will get.
        std::optional<Allocation> nodes;
        const bool anywhere = spec_.topology == SlurmTopology::none;
        const auto suits = [&](const SlurmPlan::Start& start) {
            const bool now = start.at == world_.now();
            if (!now && anywhere) return true;
            NodeSet pods = start.pods;
            NodeSet rest = start.rest;
            if (now) leave_to_suspended(job, pods);
            if (now) leave_to_suspended(job, rest);
            const SlurmPlacement::Allowed allowed{pods, rest, world_.device_of(job)};
            nodes = now ? placement_.place(world_.job(job), allowed)
                        : placement_.place_later(world_.job(job), allowed);
            return nodes && (!now || switches_do(job, *nodes));
        };
        const SlurmPlan::Start* start_at = plan_.earliest(job, limit, latest, std::cref(suits));
        if (start_at == nullptr) continue;
        const bool now = start_at->at == world_.now();
        if (now || !anywhere) {
            plan_.take(job, *nodes, *start_at);
        } else {
            plan_.take_first(job, *start_at);
        }
        if (now) {
            start(job, *nodes);
        } else if (!promised) {
            world_.promise(job, start_at->at);
        }
        promised = taken = true;
    }
}

void Slurm::wake_later() {
    if (queue_.empty()) return;
    const auto next = [&](Duration interval) {
        const Duration now = world_.now().time_since_epoch();
        return Instant(now - now % interval + interval);
    };
    Instant at = Instant::max();
    if (spec_.backfill_enabled && plan_stale_) at = next(spec_.backfill.interval);
    if (depth_reached_) at = std::min(at, next(spec_.main_interval));
    if (at == Instant::max() || at == woken_for_) return;
    woken_for_ = at;
    world_.wake_at(at);
}

JobIndex Slurm::first(std::uint32_t partition) const {
    if (!firsts_known_) {
        firsts_known_ = true;
        std::fill(first_.begin(), first_.end(), no_world_job);
        std::int64_t open = 0;
        for (std::uint32_t p = 0; p < first_.size(); ++p) open += queue_.waiting(p) > 0 ? 1 : 0;
        for (std::size_t i = queue_.begin(); i < queue_.size() && open > 0; ++i) {
            const JobIndex job = queue_.at(i);
            if (job == no_world_job || !within_limits(job)) continue;
            JobIndex& first = first_[world_.job(job).partition];
            if (first != no_world_job) continue;
            first = job;
            --open;
        }
    }
    return first_[partition];
}

}  // namespace

std::unique_ptr<WorldScheduler> make_slurm(WorldView& world) {
    return std::make_unique<Slurm>(world);
}

}  // namespace railyard
