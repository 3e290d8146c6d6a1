// Kueue: a workload is admitted as a whole when its cluster queue has quota for it; then Kubernetes binds its
// pods one by one, or, with a topology request, where Kueue says. Who isn't whole in time is evicted, and
// comes back later.

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "models/scheduler/kube_scheduler.h"
#include "models/scheduler/kueue_quota.h"
#include "models/scheduler/kueue_topology.h"
#include "models/scheduler/pod_retries.h"

namespace railyard {

namespace {

class Kueue : public KubeScheduler {
  public:
    explicit Kueue(Fleet& fleet)
        : KubeScheduler(fleet),
          rules_(spec_.kueue),
          quotas_(fleet.spec(), fleet.cluster()),
          retries_(fleet, pods_),
          waiting_(spec_.queues.size()) {}

    std::optional<std::string> never(JobIndex job) const override;
    void submitted(JobIndex job) override;
    void released(JobIndex job) override;
    void failed(JobIndex job, NodeIndex node) override;
    void prolog_failed(JobIndex job, NodeIndex node) override;
    void silent(NodeIndex node) override;
    void schedule() override;
    JobIndex first(std::uint32_t partition) const override {
        const JobIndex admitted = pods_.first(partition);
        return admitted != no_fleet_job ? admitted : first_waiting(fleet_, waiting_, partition);
    }

  private:
    struct Workload {
        bool replaced = false;  // a node of it, before its processes noticed
        std::uint32_t flavor = 0;
        Instant admitted{};
        std::int64_t evictions = 0;  // since it was last whole
    };
    const KubeJobKind& kind(JobIndex job) const {
        return fleet_.spec().kinds[fleet_.job(job).kind].kube;
    }
    bool placed_by_kueue(JobIndex job) const { return kind(job).topology != TopologyRequest::none; }
    WaitingJob waiting(JobIndex job) const {
        return {priority(job), fleet_.status(job).eligible, job};
    }
    std::uint32_t flavors() const {
        return static_cast<std::uint32_t>(fleet_.spec().groups.size());
    }
    std::size_t device_of(JobIndex job) const {
        return fleet_.cluster().device_of(fleet_.spec().pool(fleet_.job(job)));
    }
    FlavorResource resource(JobIndex job, std::uint32_t flavor) const {
        return {flavor, device_of(job)};
    }
    PodRequest request(JobIndex job, std::uint32_t flavor) const {
        PodRequest out = missing_pods(fleet_, job);
        out.flavor = flavor;
        return out;
    }
    void evicted(JobIndex job, NodeIndex node) override;
    void not_whole(JobIndex job, Duration patience);
    void replace_node(JobIndex job, NodeIndex node);
    void evict(JobIndex job, JobEnd why);
    void note_whole();
    void evict_late();
    bool blocked() const {
        return rules_.wait_for_pods_ready && rules_.block_admission && !late_.empty();
    }
    void admit_all();
    bool comes_before(const WaitingJob& a, const WaitingJob& b) const;
    bool try_admit(JobIndex job);
    void admit(JobIndex job, std::uint32_t flavor, const Allocation& nodes);
    bool make_room(JobIndex job);
    std::vector<JobIndex> victims(JobIndex job, std::uint32_t flavor);
    bool places(JobIndex job, std::uint32_t flavor, const std::vector<JobIndex>& leaving) const;
    bool may_displace(JobIndex job, JobIndex victim, std::uint32_t flavor) const;

    const KueueSpec& rules_;
    KueueQuotas quotas_;
    PodRetries retries_;
    std::vector<std::set<WaitingJob>> waiting_;  // by queue
    std::vector<Workload> workloads_;            // by job
    std::set<JobIndex> admitted_;
    std::map<JobIndex, Instant> late_;  // admitted and not whole: evicted then
};

std::optional<std::string> Kueue::never(JobIndex index) const {
    if (auto why = never_fits(fleet_, index)) return why;
    const FleetJob& job = fleet_.job(index);
    const FreeGpus empty = all_gpus(fleet_.cluster(), device_of(index));
    std::int64_t most = 0;
    for (std::uint32_t f = 0; f < flavors(); ++f) {
        const std::int64_t quota = quotas_.most(job.queue, resource(index, f));
        most = std::max(most, quota);
        if (quota >= job.gpus &&
            place_in_topology(fleet_.cluster(), request(index, f), empty, kind(index))) {
            return std::nullopt;
        }
    }
    const std::string& slice = fleet_.cluster().slice_of(device_of(index));
    if (most < job.gpus) {
        return fmt::format(
            "wants {}; a workload of cluster queue {} gets {} at most, with what it may borrow",
            slice.empty() ? fmt::format("{} GPUs", job.gpus) : fmt::format("a slice {}", slice),
            spec_.queues[job.queue].name, most);
    }
    return fmt::format(
        "wants {} GPUs of one flavour where its topology request says; there are "
        "never so many",
        job.gpus);
}

void Kueue::submitted(JobIndex job) {
    if (workloads_.size() <= job) workloads_.resize(job + std::size_t{1});
    waiting_[fleet_.job(job).queue].insert(waiting(job));
}

void Kueue::released(JobIndex job) {
    retries_.released(job);
    waiting_[fleet_.job(job).queue].erase(waiting(job));
    late_.erase(job);
    if (admitted_.erase(job) == 0) return;
    workloads_[job].replaced = false;
    quotas_.use(fleet_.job(job).queue, resource(job, workloads_[job].flavor),
                -fleet_.job(job).gpus);
}

// ---- failures ----

void Kueue::failed(JobIndex job, NodeIndex node) {
    if (!placed_by_kueue(job)) {
        retries_.failed(job, node);
        not_whole(job, rules_.recovery_timeout);
        return;
    }
    if (std::exchange(workloads_[job].replaced, false)) {
        if (fleet_.status(job).gpus == fleet_.job(job).gpus) fleet_.bind(job, {});
        return;
    }
    not_whole(job, rules_.recovery_timeout);
    const bool known = node != no_node &&
                       (fleet_.answers(node) || fleet_.cluster().node(node).state != NodeState::up);
    if (node == no_node) evict(job, JobEnd::failed);
    if (known) replace_node(job, node);
}

void Kueue::prolog_failed(JobIndex job, NodeIndex node) {
    if (placed_by_kueue(job)) {
        fleet_.halt(job);
        not_whole(job, rules_.recovery_timeout);
        replace_node(job, node);
    } else {
        retries_.prolog_failed(job, node);
        not_whole(job, rules_.recovery_timeout);
    }
}

// A topology request doesn't wait for the eviction of pods.
void Kueue::silent(NodeIndex node) {
    const std::vector<JobIndex> jobs = fleet_.cluster().node(node).jobs;
    KubeScheduler::silent(node);
    for (const JobIndex job : jobs) {
        const FleetPhase phase = fleet_.status(job).phase;
        if (!placed_by_kueue(job) || phase == FleetPhase::completing) continue;
        if (phase == FleetPhase::running) fleet_.halt(job);
        if (phase == FleetPhase::stalled) workloads_[job].replaced = true;
        not_whole(job, rules_.recovery_timeout);
        replace_node(job, node);
    }
}

void Kueue::evicted(JobIndex job, NodeIndex node) {
    retries_.evicted(job, node);
    not_whole(job, rules_.recovery_timeout);
}

void Kueue::not_whole(JobIndex job, Duration patience) {
    const FleetPhase phase = fleet_.status(job).phase;
    const bool lacks = phase == FleetPhase::gathering || phase == FleetPhase::stalled ||
                       phase == FleetPhase::waiting;
    if (!rules_.wait_for_pods_ready || admitted_.count(job) == 0 || !lacks) return;
    if (late_.emplace(job, fleet_.now() + patience).second) fleet_.wake_at(fleet_.now() + patience);
}

// One failed node is replaced where the topology request allows; else all of it is evicted.
void Kueue::replace_node(JobIndex job, NodeIndex node) {
    fleet_.unbind(job, node);
    FreeGpus free = free_gpus(fleet_.cluster(), device_of(job));
    free[node] = 0;
    const auto nodes = replace_in_topology(fleet_.cluster(), request(job, workloads_[job].flavor),
                                           free, kind(job), fleet_.status(job).held);
    if (!nodes) {
        evict(job, JobEnd::node_fail);
        return;
    }
    fleet_.note("node_replaced", job, node);
    fleet_.bind(job, *nodes);
}

void Kueue::evict(JobIndex job, JobEnd why) {
    const Duration most = rules_.requeue_backoff_max;
    Duration wait = rules_.requeue_backoff;
    for (std::int64_t i = 0; i < workloads_[job].evictions && wait < most; ++i) wait *= 2;
    ++workloads_[job].evictions;
    late_.erase(job);
    fleet_.note("workload_evicted", job, no_node);
    fleet_.requeue(job, fleet_.now() + std::min(wait, most), why);
}

void Kueue::note_whole() {
    std::erase_if(late_, [this](const auto& entry) {
        if (fleet_.status(entry.first).phase != FleetPhase::running) return false;
        workloads_[entry.first].evictions = 0;
        return true;
    });
}

void Kueue::evict_late() {
    std::vector<JobIndex> due;
    for (const auto& [job, at] : late_) {
        if (at <= fleet_.now()) due.push_back(job);
    }
    for (const JobIndex job : due) evict(job, JobEnd::node_fail);
}

// ---- admission ----

void Kueue::schedule() {
    evict_what_is_due();
    pods_.bind();
    note_whole();
    evict_late();
    admit_all();
}

bool Kueue::comes_before(const WaitingJob& a, const WaitingJob& b) const {
    const auto borrows = [this](const WaitingJob& w) {
        const FleetJob& job = fleet_.job(w.job);
        for (std::uint32_t f = 0; f < flavors(); ++f) {
            if (!quotas_.borrows(job.queue, resource(w.job, f), job.gpus)) return false;
        }
        return true;
    };
    const bool of_a = borrows(a);
    return of_a != borrows(b) ? !of_a : a < b;
}

// Of the queues' next workloads one that needn't borrow comes first, then the highest priority, then the
// oldest. One that can't be admitted keeps nobody else waiting (BestEffortFIFO).
void Kueue::admit_all() {
    std::vector<std::vector<WaitingJob>> heads;  // the next one last
    for (const auto& queue : waiting_) heads.emplace_back(queue.rbegin(), queue.rend());
    bool room_made = false;
    while (!blocked()) {
        std::vector<WaitingJob>* best = nullptr;
        for (std::vector<WaitingJob>& queue : heads) {
            if (queue.empty()) continue;
            if (best == nullptr || comes_before(queue.back(), best->back())) best = &queue;
        }
        if (best == nullptr) return;
        const JobIndex job = best->back().job;
        best->pop_back();
        bool admitted = try_admit(job);
        if (!admitted && !room_made) {
            room_made = make_room(job);
            admitted = room_made && try_admit(job);  // unless the others take their time to leave
        }
        if (!admitted) continue;
        pods_.bind();
        note_whole();
    }
}

bool Kueue::try_admit(JobIndex index) {
    const FleetJob& job = fleet_.job(index);
    const FleetCluster& cluster = fleet_.cluster();
    for (std::uint32_t f = 0; f < flavors(); ++f) {
        if (!quotas_.fits(job.queue, resource(index, f), job.gpus)) continue;
        const PodRequest pods = request(index, f);
        const bool placed = placed_by_kueue(index);
        if (placed && cluster.free_gpus(pods.pool) < job.gpus) continue;
        // Without a topology request only whether the flavour could ever hold it.
        const std::size_t device = device_of(index);
        const auto nodes = place_in_topology(
            cluster, pods, placed ? free_gpus(cluster, device) : all_gpus(cluster, device),
            kind(index));
        if (!nodes) continue;
        admit(index, f, *nodes);
        return true;
    }
    return false;
}

void Kueue::admit(JobIndex job, std::uint32_t flavor, const Allocation& nodes) {
    waiting_[fleet_.job(job).queue].erase(waiting(job));
    quotas_.use(fleet_.job(job).queue, resource(job, flavor), fleet_.job(job).gpus);
    admitted_.insert(job);
    workloads_[job].flavor = flavor;
    workloads_[job].admitted = fleet_.now();
    fleet_.note("admitted", job, no_node);
    if (placed_by_kueue(job)) {
        fleet_.bind(job, nodes);
    } else {
        pods_.set_flavor(job, flavor);
        pods_.create(job, fleet_.now());
    }
    not_whole(job, rules_.ready_timeout);
}

// ---- preemption ----

bool Kueue::may_displace(JobIndex job, JobIndex victim, std::uint32_t flavor) const {
    const std::uint32_t queue = fleet_.job(job).queue;
    const std::uint32_t theirs = fleet_.job(victim).queue;
    const bool same = workloads_[victim].flavor == flavor && device_of(victim) == device_of(job);
    if (!same || !quotas_.lends(queue, theirs)) return false;
    const bool own = theirs == queue;
    // Others' only while they have more than their own, and for no more than is this queue's own.
    if (!own && (quotas_.borrows(queue, resource(job, flavor), fleet_.job(job).gpus) ||
                 !quotas_.borrows(theirs, resource(job, flavor), 0))) {
        return false;
    }
    const KueuePreemption rule = own ? rules_.within_queue : rules_.reclaim_within_cohort;
    return rule == KueuePreemption::any ||
           (rule == KueuePreemption::lower_priority && priority(victim) < priority(job));
}

// Whether a topology request could be met once these, of the same resource, have left; without one that is
// nobody's concern.
bool Kueue::places(JobIndex job, std::uint32_t flavor, const std::vector<JobIndex>& leaving) const {
    if (!placed_by_kueue(job)) return true;
    FreeGpus free = free_gpus(fleet_.cluster(), device_of(job));
    for (const JobIndex victim : leaving) {
        for (const NodeShare& share : fleet_.status(victim).held) {
            const bool up = fleet_.cluster().node(share.node).state == NodeState::up;
            free[share.node] += up ? share.gpus : 0;
        }
    }
    return place_in_topology(fleet_.cluster(), request(job, flavor), free, kind(job)).has_value();
}

// Other queues' workloads first, then lower priority, then those admitted last. Nobody, if that is not
// enough.
std::vector<JobIndex> Kueue::victims(JobIndex index, std::uint32_t flavor) {
    const FleetJob& job = fleet_.job(index);
    std::vector<JobIndex> order(admitted_.begin(), admitted_.end());
    std::sort(order.begin(), order.end(), [&](JobIndex a, JobIndex b) {
        const auto key = [&](JobIndex j, JobIndex other) {
            return std::tuple(fleet_.job(j).queue == job.queue, priority(j),
                              workloads_[other].admitted, other);
        };
        return key(a, b) < key(b, a);
    });
    std::vector<JobIndex> out;
    for (const JobIndex victim : order) {
        if (quotas_.fits(job.queue, resource(index, flavor), job.gpus)) break;
        if (!may_displace(index, victim, flavor)) continue;
        quotas_.use(fleet_.job(victim).queue, resource(index, flavor), -fleet_.job(victim).gpus);
        out.push_back(victim);
    }
    const bool enough =
        quotas_.fits(job.queue, resource(index, flavor), job.gpus) && places(index, flavor, out);
    for (const JobIndex victim : out) {
        quotas_.use(fleet_.job(victim).queue, resource(index, flavor), fleet_.job(victim).gpus);
    }
    return enough ? out : std::vector<JobIndex>{};
}

bool Kueue::make_room(JobIndex index) {
    for (const JobIndex other : admitted_) {
        if (fleet_.status(other).phase == FleetPhase::completing)
            return false;  // room is being made
    }
    for (std::uint32_t f = 0; f < flavors(); ++f) {
        const std::vector<JobIndex> chosen = victims(index, f);
        for (const JobIndex victim : chosen) {
            const bool own = fleet_.job(victim).queue == fleet_.job(index).queue;
            fleet_.note(own ? "preempted" : "reclaimed", victim, no_node);
            fleet_.requeue(victim, fleet_.now(), JobEnd::preempted);
        }
        if (!chosen.empty()) return true;
    }
    return false;
}

}  // namespace

std::unique_ptr<FleetScheduler> make_kueue(Fleet& fleet) {
    return std::make_unique<Kueue>(fleet);
}

}  // namespace railyard
