// Kueue: a workload is admitted as a whole when its cluster queue has quota for it; then Kubernetes binds its
// pods one by one, or, with a topology request, where Kueue says. Who isn't whole in time is evicted, and
// comes back later.

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <utility>

#include "models/scheduler/kube_scheduler.h"
#include "models/scheduler/kueue_quota.h"
#include "models/scheduler/kueue_topology.h"
#include "models/scheduler/pod_retries.h"

namespace railyard {

namespace {

class Kueue : public KubeScheduler {
  public:
    explicit Kueue(WorldView& world)
        : KubeScheduler(world),
          rules_(spec_.kueue),
          flavors_(static_cast<std::uint32_t>(world.spec().groups.size())),
          quotas_(world.spec(), world.cluster()),
          retries_(world, pods_),
          waiting_(spec_.queues.size()) {}

    std::optional<std::string> never(JobIndex job) const override;
    void submitted(JobIndex job) override;
    void goes_on(JobIndex job, const Allocation& gpus) override;
    void released(JobIndex job) override;
    void failed(JobIndex job, NodeIndex node) override;
    void prolog_failed(JobIndex job, NodeIndex node) override;
    void silent(NodeIndex node) override;
    void schedule() override;
    JobIndex first(std::uint32_t partition) const override {
        const JobIndex admitted = pods_.first(partition);
        if (admitted != no_world_job) return admitted;
        return first_waiting(waiting_, partition, [this](JobIndex job) {
            return quotas_.fits_some(world_.job(job).queue, world_.device_of(job),
                                     world_.job(job).gpus);
        });
    }

  private:
    struct Workload {
        bool replaced = false;  // a node of it, before its processes noticed
        std::uint32_t flavor = 0;
        Instant admitted{};
        Instant timed_out = Instant::min();  // when it waits since it was not whole in time
        std::int64_t evictions = 0;          // since it was last whole
    };
    const KubeJobKind& kind(JobIndex job) const {
        return world_.spec().kinds[world_.job(job).kind].kube;
    }
    // Admitted workloads that the same others may displace.
    struct Group {
        std::uint32_t queue = 0;
        std::uint32_t flavor = 0;
        std::size_t device = 0;
        std::int64_t priority = 0;
        auto operator<=>(const Group&) const = default;
    };
    Group group(JobIndex admitted) const {
        return {world_.job(admitted).queue, workloads_[admitted].flavor, world_.device_of(admitted),
                world_.priority(admitted)};
    }
    // What a workload that can be admitted gets.
    struct Admission {
        std::uint32_t flavor = 0;
        Allocation nodes{};
    };
    bool placed_by_kueue(JobIndex job) const { return kind(job).topology != TopologyRequest::none; }
    FlavorResource resource(JobIndex job, std::uint32_t flavor) const {
        return {flavor, world_.device_of(job)};
    }
    PodRequest request(JobIndex job, std::uint32_t flavor) const {
        PodRequest out = missing_pods(world_, job);
        out.flavor = flavor;
        return out;
    }
    // By age, but for one that a time-out has evicted (GetQueueOrderTimestamp).
    WaitingJob waiting(JobIndex job) const {
        return {world_.priority(job),
                std::max(world_.status(job).submitted, workloads_[job].timed_out), job};
    }
    void evicted(JobIndex job, NodeIndex node) override;
    void not_whole(JobIndex job, Duration patience);
    void replace_node(JobIndex job, NodeIndex node);
    void evict(JobIndex job, JobEnd why);
    void note_whole();
    void evict_late();
    void admit_all();
    bool borrows(JobIndex job) const;
    // A queue's place in a round: its next workload, and what the queue comes up with.
    struct Turn {
        JobIndex job = no_world_job;
        bool borrows = false;
        WaitingJob last{};
        bool operator<(const Turn& other) const {
            return borrows != other.borrows ? !borrows : last < other.last;
        }
    };
    std::optional<Turn> turn_of(std::uint32_t queue) const;
    void pass_before(std::uint32_t queue, const Turn& turn);
    bool could_hold(JobIndex job, std::uint32_t flavor) const;
    std::optional<Admission> find(JobIndex job) const;
    void admit(JobIndex job, const Admission& admission);
    void count_admitted(JobIndex job, std::uint32_t flavor, Instant since);
    std::vector<JobIndex> room_for(JobIndex job);
    bool may_have_room(JobIndex job, std::uint32_t flavor);
    void make_room(JobIndex job, const std::vector<JobIndex>& leaving);
    std::vector<JobIndex> victims(JobIndex job, std::uint32_t flavor);
    bool places(JobIndex job, std::uint32_t flavor, const std::vector<JobIndex>& leaving) const;
    bool may_displace(JobIndex job, const Group& victim, std::uint32_t flavor) const;

    const KueueSpec& rules_;
    const std::uint32_t flavors_;
    KueueQuotas quotas_;
    PodRetries retries_;
    std::vector<WaitingQueue> waiting_;  // by queue
    std::vector<Workload> workloads_;    // by job
    std::set<JobIndex> admitted_;
    std::map<Group, std::int64_t> admitted_gpus_;
    std::vector<std::optional<WaitingJob>> from_;  // by queue: those before have had their turn
    std::uint64_t round_ = 0;  // within it a request that is refused once is refused
    bool admitting_ = false;
    std::vector<JobIndex> back_;  // since admission began: they wait for the next time
    using Shape = std::tuple<PodShape, std::uint32_t, TopologyRequest, TopologyLevel>;
    mutable std::map<Shape, bool> could_hold_;
    std::map<JobIndex, Instant> late_;  // admitted and not whole: evicted then
};

std::optional<std::string> Kueue::never(JobIndex index) const {
    if (auto why = KubeScheduler::never(index)) return why;
    const WorldJob& job = world_.job(index);
    std::int64_t most = 0;
    for (std::uint32_t f = 0; f < flavors_; ++f) {
        const std::int64_t quota = quotas_.most(job.queue, resource(index, f));
        most = std::max(most, quota);
        if (quota >= job.gpus && could_hold(index, f)) return std::nullopt;
    }
    const std::string& slice = world_.cluster().slice_of(world_.device_of(index));
    if (most < job.gpus) {
        return fmt::format(
            "wants {}; a workload of cluster queue {} gets {} at most, with what it may borrow",
            slice.empty() ? fmt::format("{} GPUs", job.gpus) : fmt::format("a slice {}", slice),
            spec_.queues[job.queue].name, most);
    }
    return fmt::format(
        "wants {} GPUs of one flavour where its topology request says; there are never so many",
        job.gpus);
}

void Kueue::submitted(JobIndex job) {
    if (workloads_.size() <= job) workloads_.resize(job + std::size_t{1});
    if (admitting_) {
        back_.push_back(job);
    } else {
        waiting_[world_.job(job).queue].add(world_.job(job), waiting(job));
    }
}

// Its quota is its own, whatever the queue's is now.
void Kueue::goes_on(JobIndex job, const Allocation& gpus) {
    if (workloads_.size() <= job) workloads_.resize(job + std::size_t{1});
    const std::uint32_t flavor = world_.cluster().node(gpus.front().node).group;
    count_admitted(job, flavor, world_.now() - *world_.job(job).goes_on);
    if (placed_by_kueue(job)) {
        world_.bind(job, gpus);
    } else {
        pods_.set_flavor(job, flavor);
        bind_again(job, gpus);
    }
    not_whole(job, rules_.recovery_timeout);
}

void Kueue::released(JobIndex job) {
    retries_.released(job);
    waiting_[world_.job(job).queue].remove(world_.job(job), waiting(job));
    std::erase(back_, job);
    late_.erase(job);
    if (admitted_.erase(job) == 0) return;
    workloads_[job].replaced = false;
    admitted_gpus_[group(job)] -= world_.job(job).gpus;
    quotas_.use(world_.job(job).queue, resource(job, workloads_[job].flavor),
                -world_.job(job).gpus);
}

// ---- failures ----

void Kueue::failed(JobIndex job, NodeIndex node) {
    if (!placed_by_kueue(job)) {
        retries_.failed(job, node);
        not_whole(job, rules_.recovery_timeout);
        return;
    }
    if (std::exchange(workloads_[job].replaced, false)) {
        if (world_.status(job).gpus == world_.job(job).gpus) world_.bind(job, {});
        return;
    }
    not_whole(job, rules_.recovery_timeout);
    const bool known = node != no_node &&
                       (world_.answers(node) || world_.cluster().node(node).state != NodeState::up);
    if (node == no_node) evict(job, JobEnd::failed);
    if (known) replace_node(job, node);
}

void Kueue::prolog_failed(JobIndex job, NodeIndex node) {
    if (placed_by_kueue(job)) {
        world_.halt(job);
        not_whole(job, rules_.recovery_timeout);
        replace_node(job, node);
    } else {
        retries_.prolog_failed(job, node);
        not_whole(job, rules_.recovery_timeout);
    }
}

// A topology request doesn't wait for the eviction of pods.
void Kueue::silent(NodeIndex node) {
    const std::vector<JobIndex> jobs = world_.cluster().jobs_on(node);
    KubeScheduler::silent(node);
    for (const JobIndex job : jobs) {
        const WorldPhase phase = world_.status(job).phase;
        if (!placed_by_kueue(job) || phase == WorldPhase::completing) continue;
        if (phase == WorldPhase::running) world_.halt(job);
        if (phase == WorldPhase::stalled) workloads_[job].replaced = true;
        not_whole(job, rules_.recovery_timeout);
        replace_node(job, node);
    }
}

void Kueue::evicted(JobIndex job, NodeIndex node) {
    retries_.evicted(job, node);
    not_whole(job, rules_.recovery_timeout);
}

void Kueue::not_whole(JobIndex job, Duration patience) {
    const WorldPhase phase = world_.status(job).phase;
    const bool lacks = phase == WorldPhase::gathering || phase == WorldPhase::stalled ||
                       phase == WorldPhase::waiting;
    if (!rules_.wait_for_pods_ready || admitted_.count(job) == 0 || !lacks) return;
    if (late_.emplace(job, world_.now() + patience).second) world_.wake_at(world_.now() + patience);
}

// One failed node is replaced where the topology request allows; else all of it is evicted.
void Kueue::replace_node(JobIndex job, NodeIndex node) {
    world_.unbind(job, node);
    FreeGpus free = free_gpus(world_.cluster(), world_.device_of(job));
    free[node] = 0;
    const auto nodes = replace_in_topology(world_.cluster(), request(job, workloads_[job].flavor),
                                           free, kind(job), world_.status(job).held);
    if (!nodes) {
        evict(job, JobEnd::node_fail);
        return;
    }
    world_.note("node_replaced", job, node);
    world_.bind(job, *nodes);
}

void Kueue::evict(JobIndex job, JobEnd why) {
    const Duration most = rules_.requeue_backoff_max;
    Duration wait = rules_.requeue_backoff;
    for (std::int64_t i = 0; i < workloads_[job].evictions && wait < most; ++i) wait *= 2;
    ++workloads_[job].evictions;
    late_.erase(job);
    world_.note("workload_evicted", job, no_node);
    world_.requeue(job, world_.now() + std::min(wait, most), why);
}

void Kueue::note_whole() {
    std::erase_if(late_, [this](const auto& entry) {
        if (world_.status(entry.first).phase != WorldPhase::running) return false;
        workloads_[entry.first].evictions = 0;
        return true;
    });
}

void Kueue::evict_late() {
    std::vector<JobIndex> due;
    for (const auto& [job, at] : late_) {
        if (at <= world_.now()) due.push_back(job);
    }
    for (const JobIndex job : due) {
        workloads_[job].timed_out = world_.now();
        evict(job, JobEnd::node_fail);
    }
}

// ---- admission ----

void Kueue::schedule() {
    evict_what_is_due();
    pods_.bind();
    note_whole();
    evict_late();
    admit_all();
}

bool Kueue::borrows(JobIndex index) const {
    const WorldJob& job = world_.job(index);
    for (std::uint32_t f = 0; f < flavors_; ++f) {
        if (!quotas_.borrows(job.queue, resource(index, f), job.gpus)) return false;
    }
    return true;
}

// Its first workload that is not refused; those before it come first all the same, so the queue has to wait
// until it is the turn of the last of all these.
std::optional<Kueue::Turn> Kueue::turn_of(std::uint32_t queue) const {
    const WaitingJob* next = waiting_[queue].next(from_[queue], round_);
    if (next == nullptr) return std::nullopt;
    Turn turn{next->job, false, *next};
    if (waiting_.size() == 1) return turn;
    turn.borrows = borrows(next->job);
    if (turn.borrows) return turn;
    for (const auto& [request, alike] : waiting_[queue].alike()) {
        if (!borrows(alike.jobs.begin()->job)) continue;
        auto last = alike.jobs.lower_bound(*next);
        if (last == alike.jobs.begin()) continue;
        --last;
        if (from_[queue] && *last < *from_[queue]) continue;
        if (!turn.borrows || turn.last < *last) turn.last = *last;
        turn.borrows = true;
    }
    return turn;
}

// What the queue has before the first workload that comes after that turn has had its own.
void Kueue::pass_before(std::uint32_t queue, const Turn& turn) {
    const WaitingJob* first = nullptr;
    for (const auto& [request, alike] : waiting_[queue].alike()) {
        auto at = from_[queue] ? alike.jobs.lower_bound(*from_[queue]) : alike.jobs.begin();
        const bool later = borrows(alike.jobs.begin()->job);
        if (!later && turn.borrows) continue;
        if (later == turn.borrows && at != alike.jobs.end() && *at < turn.last) {
            at = alike.jobs.upper_bound(turn.last);
        }
        if (at != alike.jobs.end() && (first == nullptr || *at < *first)) first = &*at;
    }
    if (first != nullptr) {
        from_[queue] = *first;
    } else {
        from_[queue] = {std::numeric_limits<std::int64_t>::lowest() + 1, Instant::max()};
    }
}

// Among the queues' next workloads, those that needn't borrow come first, then the highest priority, then
// the oldest. One that can't be admitted does not block the others (BestEffortFIFO).
void Kueue::admit_all() {
    from_.assign(waiting_.size(), std::nullopt);
    ++round_;
    admitting_ = true;
    bool room_made = false;
    const bool one_by_one = rules_.wait_for_pods_ready && rules_.block_admission;
    while (!one_by_one || late_.empty()) {
        std::optional<Turn> best;
        for (std::uint32_t q = 0; q < waiting_.size(); ++q) {
            const auto turn = turn_of(q);
            if (turn && (!best || *turn < *best)) best = turn;
        }
        if (!best) break;
        const JobIndex job = best->job;
        const std::uint32_t queue = world_.job(job).queue;
        auto found = find(job);
        std::vector<JobIndex> leaving;
        // No job leaves for its power.
        if (!found && !room_made && world_.power_for(job)) leaving = room_for(job);
        if (!found && leaving.empty()) {
            waiting_[queue].refuse(world_.job(job), round_);
            continue;
        }
        for (std::uint32_t q = 0; q < waiting_.size(); ++q) {
            if (q != queue) pass_before(q, *best);
        }
        from_[queue] = WaitingQueue::after(waiting(job));
        ++round_;
        if (!found) {
            make_room(job, leaving);
            room_made = true;
            found = find(job);  // unless the others take their time to leave
        }
        if (!found) continue;
        admit(job, *found);
        pods_.bind();
        note_whole();
    }
    admitting_ = false;
    for (const JobIndex job : std::exchange(back_, {})) submitted(job);
}

// Whether a flavour could ever hold it, with nobody else there.
bool Kueue::could_hold(JobIndex index, std::uint32_t flavor) const {
    const WorldJob& job = world_.job(index);
    const PodShape shape{world_.spec().pool(job), job.gpus, job.gpus_per_pod};
    const Shape key(shape, flavor, kind(index).topology, kind(index).topology_level);
    const auto [known, is_new] = could_hold_.try_emplace(key, false);
    if (is_new) {
        known->second =
            place_in_topology(world_.cluster(), request(index, flavor),
                              all_gpus(world_.cluster(), world_.device_of(index)), kind(index))
                .has_value();
    }
    return known->second;
}

std::optional<Kueue::Admission> Kueue::find(JobIndex index) const {
    const WorldJob& job = world_.job(index);
    const WorldCluster& cluster = world_.cluster();
    if (!world_.power_for(index)) return std::nullopt;
    for (std::uint32_t f = 0; f < flavors_; ++f) {
        if (!quotas_.fits(job.queue, resource(index, f), job.gpus)) continue;
        if (!placed_by_kueue(index)) {
            if (could_hold(index, f)) return Admission{f};
            continue;
        }
        const PodRequest pods = request(index, f);
        if (!may_place(cluster, pods)) continue;
        auto nodes = place_in_topology(cluster, pods, free_gpus(cluster, world_.device_of(index)),
                                       kind(index));
        if (nodes) return Admission{f, std::move(*nodes)};
    }
    return std::nullopt;
}

void Kueue::admit(JobIndex job, const Admission& admission) {
    waiting_[world_.job(job).queue].remove(world_.job(job), waiting(job));
    workloads_[job].timed_out = Instant::min();
    count_admitted(job, admission.flavor, world_.now());
    world_.note("admitted", job, no_node);
    if (placed_by_kueue(job)) {
        world_.bind(job, admission.nodes);
    } else {
        pods_.set_flavor(job, admission.flavor);
        pods_.create(job, world_.now());
    }
    not_whole(job, rules_.ready_timeout);
}

void Kueue::count_admitted(JobIndex job, std::uint32_t flavor, Instant since) {
    quotas_.use(world_.job(job).queue, resource(job, flavor), world_.job(job).gpus);
    admitted_.insert(job);
    workloads_[job].flavor = flavor;
    workloads_[job].admitted = since;
    admitted_gpus_[group(job)] += world_.job(job).gpus;
}

// ---- preemption ----

bool Kueue::may_displace(JobIndex job, const Group& victim, std::uint32_t flavor) const {
    const std::uint32_t queue = world_.job(job).queue;
    const std::uint32_t theirs = victim.queue;
    const bool same = victim.flavor == flavor && victim.device == world_.device_of(job);
    if (!same || !quotas_.lends(queue, theirs)) return false;
    const bool own = theirs == queue;
    // Others' only while they have more than their own, and for no more than is this queue's own.
    if (!own && (quotas_.borrows(queue, resource(job, flavor), world_.job(job).gpus) ||
                 !quotas_.borrows(theirs, resource(job, flavor), 0))) {
        return false;
    }
    const KueuePreemption rule = own ? rules_.within_queue : rules_.reclaim_within_cohort;
    return rule == KueuePreemption::any ||
           (rule == KueuePreemption::lower_priority && victim.priority < world_.priority(job));
}

// Whether a topology request could be met once these, of the same resource, have left; without one that is
// nobody's concern.
bool Kueue::places(JobIndex job, std::uint32_t flavor, const std::vector<JobIndex>& leaving) const {
    if (!placed_by_kueue(job)) return true;
    FreeGpus free = free_gpus(world_.cluster(), world_.device_of(job));
    for (const JobIndex victim : leaving) {
        for (const NodeShare& share : world_.status(victim).held) {
            const bool up = world_.cluster().node(share.node).state == NodeState::up;
            free[share.node] += up ? share.gpus : 0;
        }
    }
    return place_in_topology(world_.cluster(), request(job, flavor), free, kind(job)).has_value();
}

// Other queues' workloads first, then lower priority, then those admitted last. Nobody, if that is not
// enough.
std::vector<JobIndex> Kueue::victims(JobIndex index, std::uint32_t flavor) {
    const WorldJob& job = world_.job(index);
    std::vector<JobIndex> order(admitted_.begin(), admitted_.end());
    std::ranges::sort(order, [&](JobIndex a, JobIndex b) {
        const auto key = [&](JobIndex j, JobIndex other) {
            return std::tuple(world_.job(j).queue == job.queue, world_.priority(j),
                              workloads_[other].admitted, other);
        };
        return key(a, b) < key(b, a);
    });
    const FlavorResource wanted = resource(index, flavor);
    const auto stay = [&](JobIndex victim, std::int64_t sign) {
        quotas_.use(world_.job(victim).queue, wanted, sign * world_.job(victim).gpus);
    };
    std::vector<JobIndex> out;
    for (const JobIndex victim : order) {
        if (quotas_.fits(job.queue, wanted, job.gpus)) break;
        if (!may_displace(index, group(victim), flavor)) continue;
        stay(victim, -1);
        out.push_back(victim);
    }
    const auto enough = [&] {
        return quotas_.fits(job.queue, wanted, job.gpus) && places(index, flavor, out);
    };
    if (!enough()) {
        for (const JobIndex victim : out) stay(victim, 1);
        return {};
    }
    // Back from the last but one: who need not leave stays (fillBackWorkloads).
    for (std::size_t i = out.size() - 1; i-- > 0;) {
        const JobIndex victim = out[i];
        stay(victim, 1);
        out.erase(out.begin() + i);
        if (enough()) continue;
        stay(victim, -1);
        out.insert(out.begin() + i, victim);
    }
    for (const JobIndex victim : out) stay(victim, 1);
    return out;
}

// False if all that it may displace would not be enough, or nothing of it is needed.
bool Kueue::may_have_room(JobIndex index, std::uint32_t flavor) {
    const WorldJob& job = world_.job(index);
    const FlavorResource wanted = resource(index, flavor);
    if (quotas_.fits(job.queue, wanted, job.gpus)) return false;
    std::vector<std::pair<std::uint32_t, std::int64_t>> gone;
    for (const auto& [group, gpus] : admitted_gpus_) {
        if (gpus > 0 && may_displace(index, group, flavor)) gone.emplace_back(group.queue, gpus);
    }
    for (const auto& [queue, gpus] : gone) quotas_.use(queue, wanted, -gpus);
    const bool enough = quotas_.fits(job.queue, wanted, job.gpus);
    for (const auto& [queue, gpus] : gone) quotas_.use(queue, wanted, gpus);
    return enough;
}

// Who leaves for it, of the first flavour that can be had so.
std::vector<JobIndex> Kueue::room_for(JobIndex index) {
    for (std::uint32_t f = 0; f < flavors_; ++f) {
        if (!may_have_room(index, f)) continue;
        for (const JobIndex other : admitted_) {
            if (world_.status(other).phase == WorldPhase::completing)
                return {};  // it is being made
        }
        std::vector<JobIndex> chosen = victims(index, f);
        if (!chosen.empty()) return chosen;
    }
    return {};
}

void Kueue::make_room(JobIndex index, const std::vector<JobIndex>& leaving) {
    for (const JobIndex victim : leaving) {
        const bool own = world_.job(victim).queue == world_.job(index).queue;
        world_.note(own ? "preempted" : "reclaimed", victim, no_node);
        world_.requeue(victim, world_.now(), JobEnd::preempted);
    }
}

}  // namespace

std::unique_ptr<WorldScheduler> make_kueue(WorldView& world) {
    return std::make_unique<Kueue>(world);
}

}  // namespace railyard
