// Volcano: pods of a PodGroup get GPUs together or not at all, queues have parts of the cluster, and a job
// that loses a pod starts again as a whole.

#include <fmt/format.h>

#include <algorithm>

#include "models/scheduler/kube_scheduler.h"
#include "models/scheduler/volcano_shares.h"

namespace railyard {

namespace {

class Volcano : public KubeScheduler {
  public:
    explicit Volcano(Fleet& fleet)
        : KubeScheduler(fleet), queues_(spec_.queues.size()), waiting_(spec_.queues.size()) {}

    std::optional<std::string> never(JobIndex job) const override;
    void submitted(JobIndex job) override;
    void released(JobIndex job) override;
    void failed(JobIndex job, NodeIndex node) override { restart(job, node); }
    void prolog_failed(JobIndex job, NodeIndex node) override { restart(job, node); }
    void node_changed(NodeIndex node) override {
        KubeScheduler::node_changed(node);
        stale_ = true;
    }
    void schedule() override;
    JobIndex first(std::uint32_t partition) const override {
        const JobIndex job = first_waiting(fleet_, waiting_, partition);
        return job == no_fleet_job ? pods_.first(partition) : job;
    }

  private:
    struct Queue {
        std::set<JobIndex> running{};  // have their gang
        std::int64_t allocated = 0;    // GPUs of these
        std::int64_t wanted = 0;       // and of those that wait
        std::int64_t admitted = 0;     // GPUs of those that wait and are let in
        std::int64_t deserved = 0;     // in thousandths
    };
    WaitingJob waiting(JobIndex job) const {
        return {priority(job), fleet_.status(job).eligible, job};
    }
    PodRequest gang(JobIndex job) const;
    void evicted(JobIndex job, NodeIndex node) override { restart(job, node); }
    void restart(JobIndex job, NodeIndex node);
    void share_out();
    void enqueue();
    void allocate();
    std::vector<std::vector<JobIndex>> waiting_in_order(bool let_in) const;
    // Of those with candidates left the one with less than all others, or queues_.size().
    template <class Less>
    std::size_t next_queue(const std::vector<std::vector<JobIndex>>& candidates, Less less) const {
        std::size_t next = queues_.size();
        for (std::size_t q = 0; q < queues_.size(); ++q) {
            if (candidates[q].empty()) continue;
            if (next == queues_.size() || less(queues_[q], queues_[next])) next = q;
        }
        return next;
    }
    void try_allocate(Queue& queue, JobIndex job);
    bool within_share(const Queue& queue, JobIndex job) const {
        return (queue.allocated + fleet_.job(job).gpus) * 1000 <= queue.deserved;
    }
    void make_room();
    bool make_room_for(JobIndex job, std::uint32_t queue);
    bool displace(JobIndex job, std::vector<JobIndex> victims, bool across);

    std::vector<Queue> queues_;
    std::vector<std::set<WaitingJob>> waiting_;  // by queue
    std::vector<bool> let_in_;                   // by job: Inqueue
    bool stale_ = false;
    Instant last_cycle_ = Instant(Duration(-1));
    Instant woken_for_{};
};

// ---- what it is told ----

std::optional<std::string> Volcano::never(JobIndex index) const {
    if (auto why = never_fits(fleet_, index)) return why;
    const FleetJob& job = fleet_.job(index);
    const KubeQueue& queue = spec_.queues[job.queue];
    if (queue.capability > 0 && job.gpus > queue.capability) {
        return fmt::format("wants {} GPUs; all jobs of queue {} together get {} at most", job.gpus,
                           queue.name, queue.capability);
    }
    const std::int64_t members = fleet_.spec().kinds[job.kind].kube.min_member;
    if (members > job.pods()) {
        return fmt::format("has {} pods, and wants {} of them together (min_member)", job.pods(),
                           members);
    }
    return std::nullopt;
}

void Volcano::submitted(JobIndex job) {
    const std::uint32_t queue = fleet_.job(job).queue;
    if (let_in_.size() <= job) let_in_.resize(job + std::size_t{1});
    waiting_[queue].insert(waiting(job));
    queues_[queue].wanted += fleet_.job(job).gpus;
    stale_ = true;
}

void Volcano::released(JobIndex job) {
    pods_.remove(job);
    Queue& queue = queues_[fleet_.job(job).queue];
    const std::int64_t gpus = fleet_.job(job).gpus;
    stale_ = true;
    queue.wanted -= gpus;
    if (queue.running.erase(job) > 0) queue.allocated -= gpus;
    waiting_[fleet_.job(job).queue].erase(waiting(job));
    if (let_in_[job]) queue.admitted -= gpus;
    let_in_[job] = false;
}

// Its policies: RestartJob on PodFailed and on PodEvicted.
void Volcano::restart(JobIndex job, NodeIndex node) {
    fleet_.note("pod_failed", job, node);
    fleet_.requeue(job, fleet_.now(), node == no_node ? JobEnd::failed : JobEnd::node_fail);
}

void Volcano::schedule() {
    evict_what_is_due();
    pods_.bind();
    if (!stale_) return;
    const Duration now = fleet_.now().time_since_epoch();
    const Duration period = spec_.volcano.period;
    if (now % period == Duration::zero() && last_cycle_ < fleet_.now()) {
        last_cycle_ = fleet_.now();
        stale_ = false;
        share_out();
        enqueue();
        allocate();
        make_room();
        if (!stale_) return;
    }
    const Instant next(now - now % period + period);
    if (next == woken_for_) return;
    woken_for_ = next;
    fleet_.wake_at(next);
}

// ---- its actions ----

// The pods that have to be there together.
PodRequest Volcano::gang(JobIndex job) const {
    PodRequest request = missing_pods(fleet_, job);
    const std::int64_t members = fleet_.spec().kinds[fleet_.job(job).kind].kube.min_member;
    if (members > 0 && members < fleet_.job(job).pods()) {
        request.pods = members;
        request.rest = 0;
    }
    return request;
}

void Volcano::share_out() {
    std::vector<QueueDemand> demands;
    for (std::uint32_t q = 0; q < queues_.size(); ++q) {
        demands.push_back({spec_.queues[q].weight, queues_[q].wanted, spec_.queues[q].capability});
    }
    std::int64_t gpus = 0;
    for (const FleetNode& node : fleet_.cluster().nodes()) {
        gpus += node.state == NodeState::up ? node.gpus : 0;
    }
    const std::vector<std::int64_t> deserved = deserved_shares(gpus, demands);
    for (std::uint32_t q = 0; q < queues_.size(); ++q) queues_[q].deserved = deserved[q];
}

// Lets in whom the cluster, overcommitted, has room for, and whose queue may have so much: of the queue that
// has least of what it deserves, let in or running, the next.
void Volcano::enqueue() {
    std::int64_t taken = 0;
    for (const Queue& queue : queues_) taken += queue.allocated + queue.admitted;
    const std::int64_t room = fleet_.spec().gpus() * spec_.volcano.overcommit_percent / 100;
    auto candidates = waiting_in_order(false);
    const auto has_less = [](const Queue& a, const Queue& b) {
        return __int128{a.allocated + a.admitted} * b.deserved <
               __int128{b.allocated + b.admitted} * a.deserved;
    };
    for (std::size_t q = next_queue(candidates, has_less); q < queues_.size();
         q = next_queue(candidates, has_less)) {
        const JobIndex job = candidates[q].back();
        candidates[q].pop_back();
        Queue& queue = queues_[q];
        const std::int64_t gpus = fleet_.job(job).gpus;
        const std::int64_t most = spec_.queues[q].capability;
        if (taken + gpus > room) continue;
        if (most > 0 && queue.allocated + queue.admitted + gpus > most) continue;
        let_in_[job] = true;
        queue.admitted += gpus;
        taken += gpus;
    }
}

// By queue, the next one last.
std::vector<std::vector<JobIndex>> Volcano::waiting_in_order(bool let_in) const {
    std::vector<std::vector<JobIndex>> out(queues_.size());
    for (std::size_t q = 0; q < queues_.size(); ++q) {
        for (const WaitingJob& w : waiting_[q]) {
            if (let_in_[w.job] == let_in) out[q].push_back(w.job);
        }
        std::reverse(out[q].begin(), out[q].end());
    }
    return out;
}

// The queue that has least of what it deserves comes next; in it the job of highest priority, then the
// oldest.
void Volcano::allocate() {
    const auto has_less = [](const Queue& a, const Queue& b) {
        return __int128{a.allocated} * b.deserved < __int128{b.allocated} * a.deserved;
    };
    auto candidates = waiting_in_order(true);
    for (std::size_t q = next_queue(candidates, has_less); q < queues_.size();
         q = next_queue(candidates, has_less)) {
        const JobIndex job = candidates[q].back();
        candidates[q].pop_back();
        if (within_share(queues_[q], job)) try_allocate(queues_[q], job);
    }
}

void Volcano::try_allocate(Queue& queue, JobIndex index) {
    const FleetJob& job = fleet_.job(index);
    const FleetCluster& cluster = fleet_.cluster();
    const PodRequest request = gang(index);
    if (cluster.free_gpus(request.pool) < request.gpus()) return;
    const auto nodes = place_pods(cluster, request, free_gpus(cluster),
                                  cluster.members(request.pool), spec_.scoring);
    if (!nodes) return;
    waiting_[job.queue].erase(waiting(index));
    queue.running.insert(index);
    queue.admitted -= job.gpus;
    queue.allocated += job.gpus;
    let_in_[index] = false;
    fleet_.bind(index, *nodes);
    if (fleet_.status(index).gpus == job.gpus) return;
    pods_.create(index, fleet_.now());  // beyond min_member, as they fit
    fleet_.wake_at(fleet_.now());
}

void Volcano::make_room() {
    for (std::uint32_t q = 0; q < queues_.size(); ++q) {
        for (const WaitingJob& w : std::set<WaitingJob>(waiting_[q])) {
            if (let_in_[w.job] && make_room_for(w.job, q)) return;
        }
    }
}

// preempt: jobs of lower priority in its queue make room; reclaim: those of queues that have more than they
// deserve.
bool Volcano::make_room_for(JobIndex job, std::uint32_t queue) {
    std::vector<JobIndex> own;
    std::vector<JobIndex> others;
    for (std::uint32_t q = 0; q < queues_.size(); ++q) {
        for (const JobIndex victim : queues_[q].running) {
            if (fleet_.status(victim).phase == FleetPhase::completing)
                return false;  // room is made
            if (q == queue && priority(victim) < priority(job)) own.push_back(victim);
            if (q != queue && spec_.queues[q].reclaimable) others.push_back(victim);
        }
    }
    if (spec_.volcano.preempt && displace(job, own, false)) return true;
    return spec_.volcano.reclaim && within_share(queues_[queue], job) &&
           displace(job, others, true);
}

// Those of lowest priority, and of these the latest, until the job fits; nobody if it never does.
bool Volcano::displace(JobIndex job, std::vector<JobIndex> victims, bool across) {
    std::sort(victims.begin(), victims.end(), [this](JobIndex a, JobIndex b) {
        return std::tuple(priority(a), fleet_.status(b).started, b) <
               std::tuple(priority(b), fleet_.status(a).started, a);
    });
    std::vector<std::int64_t> beyond;  // what each queue has beyond its part, in thousandths
    for (const Queue& queue : queues_) beyond.push_back(queue.allocated * 1000 - queue.deserved);
    const FleetCluster& cluster = fleet_.cluster();
    const PodRequest request = gang(job);
    FreeGpus free = free_gpus(cluster);
    Queue& queue = queues_[fleet_.job(job).queue];
    std::int64_t own = queue.allocated + fleet_.job(job).gpus;
    const auto fits = [&] {
        return own * 1000 <= queue.deserved &&
               place_pods(cluster, request, free, cluster.members(request.pool), spec_.scoring)
                   .has_value();
    };
    if (fits()) return false;  // it waits for something else
    std::vector<JobIndex> chosen;
    for (const JobIndex victim : victims) {
        std::int64_t& theirs = beyond[fleet_.job(victim).queue];
        if (across && theirs <= 0) continue;
        theirs -= fleet_.job(victim).gpus * 1000;
        if (!across) own -= fleet_.job(victim).gpus;
        for (const NodeShare& share : fleet_.status(victim).held) {
            if (cluster.node(share.node).state == NodeState::up) free[share.node] += share.gpus;
        }
        chosen.push_back(victim);
        if (!fits()) continue;
        for (const JobIndex gone : chosen) {
            fleet_.note(across ? "reclaimed" : "preempted", gone, no_node);
            fleet_.requeue(gone, fleet_.now(), JobEnd::preempted);
        }
        try_allocate(queue, job);  // unless the others take their time to leave
        return true;
    }
    return false;
}

}  // namespace

std::unique_ptr<FleetScheduler> make_volcano(Fleet& fleet) {
    return std::make_unique<Volcano>(fleet);
}

}  // namespace railyard
