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
    explicit Volcano(Fleet& fleet);

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
    // Of one resource: whole GPUs, or slices of a profile.
    struct Account {
        std::int64_t allocated = 0;   // by those that run
        std::int64_t wanted = 0;      // by these and by those that wait
        std::int64_t admitted = 0;    // by those that wait and are let in
        std::int64_t deserved = 0;    // in thousandths
        std::int64_t capability = 0;  // at most; 0: any number
    };
    struct Queue {
        std::set<JobIndex> running{};  // have their gang
        std::vector<Account> of{};     // by device
    };
    // How much a queue has of how much it deserves.
    struct Part {
        std::int64_t has = 0;
        std::int64_t deserved = 0;
        bool operator<(const Part& other) const {
            return __int128{has} * other.deserved < __int128{other.has} * deserved;
        }
    };
    enum class Counted : std::uint8_t { running, let_in_too };
    static Part most_of(const Queue& queue, Counted counted);
    std::size_t device_of(JobIndex job) const {
        return fleet_.cluster().device_of(fleet_.spec().pool(fleet_.job(job)));
    }
    Account& account(JobIndex job) { return queues_[fleet_.job(job).queue].of[device_of(job)]; }
    const Account& account(JobIndex job) const {
        return queues_[fleet_.job(job).queue].of[device_of(job)];
    }
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
    void try_allocate(JobIndex job);
    bool within_share(JobIndex job) const {
        return (account(job).allocated + fleet_.job(job).gpus) * 1000 <= account(job).deserved;
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

Volcano::Volcano(Fleet& fleet)
    : KubeScheduler(fleet), queues_(spec_.queues.size()), waiting_(spec_.queues.size()) {
    const FleetCluster& cluster = fleet.cluster();
    for (std::size_t q = 0; q < queues_.size(); ++q) {
        queues_[q].of.resize(cluster.devices());
        queues_[q].of[0].capability = spec_.queues[q].capability;
        for (const SliceCapability& slices : spec_.queues[q].slice_capability) {
            for (std::size_t d = 1; d < cluster.devices(); ++d) {
                if (cluster.slice_of(d) == slices.slice) queues_[q].of[d].capability = slices.most;
            }
        }
    }
}

// ---- what it is told ----

std::optional<std::string> Volcano::never(JobIndex index) const {
    if (auto why = never_fits(fleet_, index)) return why;
    const FleetJob& job = fleet_.job(index);
    const std::int64_t most = account(index).capability;
    if (most > 0 && job.gpus > most) {
        return fmt::format("wants {} GPUs; all jobs of queue {} together get {} at most", job.gpus,
                           spec_.queues[job.queue].name, most);
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
    account(job).wanted += fleet_.job(job).gpus;
    stale_ = true;
}

void Volcano::released(JobIndex job) {
    Queue& queue = queues_[fleet_.job(job).queue];
    const std::int64_t gpus = fleet_.job(job).gpus;
    stale_ = true;
    Account& account = this->account(job);
    account.wanted -= gpus;
    if (queue.running.erase(job) > 0) account.allocated -= gpus;
    waiting_[fleet_.job(job).queue].erase(waiting(job));
    if (let_in_[job]) account.admitted -= gpus;
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

// Each resource by itself.
void Volcano::share_out() {
    const FleetCluster& cluster = fleet_.cluster();
    for (std::size_t d = 0; d < cluster.devices(); ++d) {
        std::vector<QueueDemand> demands;
        for (std::size_t q = 0; q < queues_.size(); ++q) {
            const Account& account = queues_[q].of[d];
            demands.push_back({spec_.queues[q].weight, account.wanted, account.capability});
        }
        std::int64_t all = 0;
        for (NodeIndex n = 0; n < cluster.nodes().size(); ++n) {
            all += cluster.node(n).state == NodeState::up ? cluster.capacity(n, d) : 0;
        }
        const std::vector<std::int64_t> deserved = deserved_shares(all, demands);
        for (std::size_t q = 0; q < queues_.size(); ++q) queues_[q].of[d].deserved = deserved[q];
    }
}

// Of the resource of which that is most.
Volcano::Part Volcano::most_of(const Queue& queue, Counted counted) {
    Part most;
    for (const Account& a : queue.of) {
        const std::int64_t let_in = counted == Counted::let_in_too ? a.admitted : 0;
        const Part part{a.allocated + let_in, a.deserved};
        if (most.deserved == 0 || most < part) most = part;
    }
    return most;
}

// Lets in whom the cluster, overcommitted, has room for, and whose queue may have so much: of the queue that
// has least of what it deserves, let in or running, the next.
void Volcano::enqueue() {
    const FleetCluster& cluster = fleet_.cluster();
    std::vector<std::int64_t> room(cluster.devices());
    for (std::size_t d = 0; d < room.size(); ++d) {
        for (NodeIndex n = 0; n < cluster.nodes().size(); ++n) room[d] += cluster.capacity(n, d);
        room[d] = room[d] * spec_.volcano.overcommit_percent / 100;
        for (const Queue& queue : queues_) room[d] -= queue.of[d].allocated + queue.of[d].admitted;
    }
    auto candidates = waiting_in_order(false);
    const auto has_less = [](const Queue& a, const Queue& b) {
        return most_of(a, Counted::let_in_too) < most_of(b, Counted::let_in_too);
    };
    for (std::size_t q = next_queue(candidates, has_less); q < queues_.size();
         q = next_queue(candidates, has_less)) {
        const JobIndex job = candidates[q].back();
        candidates[q].pop_back();
        Account& account = this->account(job);
        const std::int64_t gpus = fleet_.job(job).gpus;
        const std::int64_t most = account.capability;
        if (gpus > room[device_of(job)]) continue;
        if (most > 0 && account.allocated + account.admitted + gpus > most) continue;
        let_in_[job] = true;
        account.admitted += gpus;
        room[device_of(job)] -= gpus;
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
        return most_of(a, Counted::running) < most_of(b, Counted::running);
    };
    auto candidates = waiting_in_order(true);
    for (std::size_t q = next_queue(candidates, has_less); q < queues_.size();
         q = next_queue(candidates, has_less)) {
        const JobIndex job = candidates[q].back();
        candidates[q].pop_back();
        if (within_share(job)) try_allocate(job);
    }
}

void Volcano::try_allocate(JobIndex index) {
    const FleetJob& job = fleet_.job(index);
    const FleetCluster& cluster = fleet_.cluster();
    const PodRequest request = gang(index);
    if (cluster.free_gpus(request.pool) < request.gpus()) return;
    const auto nodes =
        place_pods(cluster, request, free_gpus(cluster, cluster.device_of(request.pool)),
                   cluster.members(request.pool), spec_.scoring);
    if (!nodes) return;
    waiting_[job.queue].erase(waiting(index));
    queues_[job.queue].running.insert(index);
    account(index).admitted -= job.gpus;
    account(index).allocated += job.gpus;
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
// deserve. Only of the resource that it asks for: Volcano doesn't know what a slice of another profile, gone,
// would leave room for.
bool Volcano::make_room_for(JobIndex job, std::uint32_t queue) {
    std::vector<JobIndex> own;
    std::vector<JobIndex> others;
    for (std::uint32_t q = 0; q < queues_.size(); ++q) {
        for (const JobIndex victim : queues_[q].running) {
            if (fleet_.status(victim).phase == FleetPhase::completing)
                return false;  // room is made
            if (device_of(victim) != device_of(job)) continue;
            if (q == queue && priority(victim) < priority(job)) own.push_back(victim);
            if (q != queue && spec_.queues[q].reclaimable) others.push_back(victim);
        }
    }
    if (spec_.volcano.preempt && displace(job, own, false)) return true;
    return spec_.volcano.reclaim && within_share(job) && displace(job, others, true);
}

// Those of lowest priority, and of these the latest, until the job fits; nobody if it never does.
bool Volcano::displace(JobIndex job, std::vector<JobIndex> victims, bool across) {
    std::sort(victims.begin(), victims.end(), [this](JobIndex a, JobIndex b) {
        return std::tuple(priority(a), fleet_.status(b).started, b) <
               std::tuple(priority(b), fleet_.status(a).started, a);
    });
    std::vector<std::int64_t> beyond;  // what each queue has beyond its part, in thousandths
    const std::size_t device = device_of(job);
    for (const Queue& queue : queues_) {
        beyond.push_back(queue.of[device].allocated * 1000 - queue.of[device].deserved);
    }
    const FleetCluster& cluster = fleet_.cluster();
    const PodRequest request = gang(job);
    FreeGpus free = free_gpus(cluster, device);
    std::int64_t own = account(job).allocated + fleet_.job(job).gpus;
    const auto fits = [&] {
        return own * 1000 <= account(job).deserved &&
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
        try_allocate(job);  // unless the others take their time to leave
        return true;
    }
    return false;
}

}  // namespace

std::unique_ptr<FleetScheduler> make_volcano(Fleet& fleet) {
    return std::make_unique<Volcano>(fleet);
}

}  // namespace railyard
