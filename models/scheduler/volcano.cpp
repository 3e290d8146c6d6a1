// Volcano: pods of a PodGroup get GPUs together or not at all, queues have parts of the cluster, and a job
// that loses a pod starts again as a whole.

#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "models/scheduler/kube_scheduler.h"
#include "models/scheduler/volcano_shares.h"

namespace railyard {

namespace {

class Volcano : public KubeScheduler {
  public:
    explicit Volcano(WorldView& world);

    std::optional<std::string> never(JobIndex job) const override;
    void submitted(JobIndex job) override;
    void goes_on(JobIndex job, const Allocation& gpus) override;
    void released(JobIndex job) override;
    void failed(JobIndex job, NodeIndex node) override { restart(job, node); }
    void prolog_failed(JobIndex job, NodeIndex node) override { restart(job, node); }
    void node_changed(NodeIndex node) override {
        KubeScheduler::node_changed(node);
        stale_ = true;
        count_nodes();
    }
    void schedule() override;
    JobIndex first(std::uint32_t partition) const override {
        std::optional<WaitingJob> best;
        const auto look_at = [&](const WaitingJob* first) {
            if (first != nullptr && (!best || *first < *best)) best = *first;
        };
        for (const Queue& queue : queues_) {
            look_at(queue.waiting.first(partition,
                                        [this](JobIndex job) { return within_capability(job); }));
            look_at(queue.let_in.first(partition, [](JobIndex) { return true; }));
        }
        return best ? best->job : pods_.first(partition);
    }

  private:
    // For one resource: whole GPUs, or slices of a profile.
    struct Account {
        std::int64_t allocated = 0;   // by those that run
        std::int64_t wanted = 0;      // by these and by those that wait
        std::int64_t admitted = 0;    // by those that wait and are let in
        std::int64_t deserved = 0;    // in thousandths
        std::int64_t capability = 0;  // at most; 0: any number
        std::map<std::int64_t, std::int64_t> allocated_by_priority{};
    };
    struct Queue {
        WaitingQueue waiting{};        // not let in
        WaitingQueue let_in{};         // Inqueue
        std::set<JobIndex> running{};  // have their gang
        std::vector<Account> of{};     // by device
        // In a round of allocation: those before have had their turn, or all have.
        std::optional<WaitingJob> from{};
        bool through = false;
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
    Account& account(JobIndex job) {
        return queues_[world_.job(job).queue].of[world_.device_of(job)];
    }
    // Whether its queue may let it in.
    bool within_capability(JobIndex job) const {
        const Account& a = account(job);
        return a.capability == 0 || a.allocated + a.admitted + world_.job(job).gpus <= a.capability;
    }
    const Account& account(JobIndex job) const {
        return queues_[world_.job(job).queue].of[world_.device_of(job)];
    }
    PodRequest gang(JobIndex job) const;
    WaitingJob waiting(JobIndex job) const {
        return {world_.priority(job), world_.status(job).eligible, job};
    }
    void evicted(JobIndex job, NodeIndex node) override { restart(job, node); }
    void restart(JobIndex job, NodeIndex node);
    void share_out();
    void enqueue();
    void allocate();
    // The queue with less than all others whose turn it is, or queues_.size().
    template <class Less>
    std::size_t next_queue(Less less) const {
        std::size_t next = queues_.size();
        for (std::size_t q = 0; q < queues_.size(); ++q) {
            if (queues_[q].through) continue;
            if (next == queues_.size() || less(queues_[q], queues_[next])) next = q;
        }
        return next;
    }
    void begin_round();
    void count_nodes();
    bool try_allocate(JobIndex job);
    void count_running(JobIndex job);
    bool within_share(JobIndex job) const {
        return (account(job).allocated + gang(job).gpus()) * 1000 <= account(job).deserved;
    }
    void make_room();
    bool may_displace_own(JobIndex job) const;
    bool may_displace_others(JobIndex job) const;
    bool make_room_for(JobIndex job, std::uint32_t queue);
    bool displace(JobIndex job, std::vector<JobIndex> victims, bool across);

    std::vector<Queue> queues_;
    std::vector<std::int64_t> capacity_;  // by device
    std::vector<std::int64_t> up_;        // by device: of nodes that are up
    std::uint64_t round_ = 0;             // within it a request that is refused once is refused
    bool stale_ = false;
    Instant last_cycle_ = Instant(Duration(-1));
    Instant woken_for_{};
};

Volcano::Volcano(WorldView& world) : KubeScheduler(world), queues_(spec_.queues.size()) {
    const WorldCluster& cluster = world.cluster();
    count_nodes();
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

void Volcano::count_nodes() {
    const WorldCluster& cluster = world_.cluster();
    capacity_.assign(cluster.devices(), 0);
    up_.assign(cluster.devices(), 0);
    for (std::size_t d = 0; d < cluster.devices(); ++d) {
        for (NodeIndex n = 0; n < cluster.nodes().size(); ++n) {
            capacity_[d] += cluster.capacity(n, d);
            if (cluster.node(n).state == NodeState::up) up_[d] += cluster.capacity(n, d);
        }
    }
}

// ---- what it is told ----

std::optional<std::string> Volcano::never(JobIndex index) const {
    if (auto why = KubeScheduler::never(index)) return why;
    const WorldJob& job = world_.job(index);
    const std::int64_t most = account(index).capability;
    if (most > 0 && job.gpus > most) {
        return fmt::format("wants {} GPUs; all jobs of queue {} together get {} at most", job.gpus,
                           spec_.queues[job.queue].name, most);
    }
    const std::int64_t members = world_.spec().kinds[job.kind].kube.min_member;
    if (members > job.pods()) {
        return fmt::format("has {} pods, and wants {} of them together (min_member)", job.pods(),
                           members);
    }
    return std::nullopt;
}

void Volcano::submitted(JobIndex job) {
    queues_[world_.job(job).queue].waiting.add(world_.job(job), waiting(job));
    account(job).wanted += world_.job(job).gpus;
    stale_ = true;
}

void Volcano::goes_on(JobIndex job, const Allocation& gpus) {
    account(job).wanted += world_.job(job).gpus;
    stale_ = true;
    count_running(job);
    world_.bind(job, gpus);
}

void Volcano::released(JobIndex job) {
    Queue& queue = queues_[world_.job(job).queue];
    const std::int64_t gpus = world_.job(job).gpus;
    stale_ = true;
    Account& account = this->account(job);
    account.wanted -= gpus;
    if (queue.running.erase(job) > 0) {
        account.allocated -= gpus;
        account.allocated_by_priority[world_.priority(job)] -= gpus;
    }
    queue.waiting.remove(world_.job(job), waiting(job));
    if (queue.let_in.remove(world_.job(job), waiting(job))) account.admitted -= gpus;
}

// Its policies: RestartJob on PodFailed and on PodEvicted.
void Volcano::restart(JobIndex job, NodeIndex node) {
    world_.note("pod_failed", job, node);
    world_.requeue(job, world_.now(), node == no_node ? JobEnd::failed : JobEnd::node_fail);
}

void Volcano::schedule() {
    evict_what_is_due();
    pods_.bind();
    if (!stale_) return;
    const Duration now = world_.now().time_since_epoch();
    const Duration period = spec_.volcano.period;
    if (now % period == Duration::zero() && last_cycle_ < world_.now()) {
        last_cycle_ = world_.now();
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
    world_.wake_at(next);
}

// ---- its actions ----

// The pods that have to be there together.
PodRequest Volcano::gang(JobIndex job) const {
    PodRequest request = missing_pods(world_, job);
    const std::int64_t members = world_.spec().kinds[world_.job(job).kind].kube.min_member;
    if (members > 0 && members < world_.job(job).pods()) {
        request.pods = members;
        request.rest = 0;
    }
    return request;
}

// Each resource by itself.
void Volcano::share_out() {
    const WorldCluster& cluster = world_.cluster();
    for (std::size_t d = 0; d < cluster.devices(); ++d) {
        std::vector<QueueDemand> demands;
        for (std::size_t q = 0; q < queues_.size(); ++q) {
            const Account& account = queues_[q].of[d];
            demands.push_back({spec_.queues[q].weight, account.wanted, account.capability});
        }
        const std::vector<std::int64_t> deserved = deserved_shares(up_[d], demands);
        for (std::size_t q = 0; q < queues_.size(); ++q) queues_[q].of[d].deserved = deserved[q];
    }
}

// For the resource in which the share is the largest.
Volcano::Part Volcano::most_of(const Queue& queue, Counted counted) {
    Part most;
    for (const Account& a : queue.of) {
        const std::int64_t let_in = counted == Counted::let_in_too ? a.admitted : 0;
        const Part part{a.allocated + let_in, a.deserved};
        if (most.deserved == 0 || most < part) most = part;
    }
    return most;
}

void Volcano::begin_round() {
    ++round_;
    for (Queue& queue : queues_) {
        queue.from.reset();
        queue.through = false;
    }
}

// Lets in whom the cluster, overcommitted, has room for, and whose queue may have so much: of the queue that
// has least of what it deserves, let in or running, the next.
void Volcano::enqueue() {
    std::vector<std::int64_t> room(capacity_);
    for (std::size_t d = 0; d < room.size(); ++d) {
        room[d] = room[d] * spec_.volcano.overcommit_percent / 100;
        for (const Queue& queue : queues_) room[d] -= queue.of[d].allocated + queue.of[d].admitted;
    }
    begin_round();
    const auto has_less = [](const Queue& a, const Queue& b) {
        return most_of(a, Counted::let_in_too) < most_of(b, Counted::let_in_too);
    };
    for (std::size_t q = next_queue(has_less); q < queues_.size(); q = next_queue(has_less)) {
        Queue& queue = queues_[q];
        const WaitingJob* next = queue.waiting.next(queue.from, round_);
        if (next == nullptr) {
            queue.through = true;
            continue;
        }
        const WaitingJob job = *next;
        const WorldJob& wants = world_.job(job.job);
        Account& account = this->account(job.job);
        const std::int64_t gpus = gang(job.job).gpus();  // minResources
        if (gpus > room[world_.device_of(job.job)] || !within_capability(job.job)) {
            queue.waiting.refuse(wants, round_);
            continue;
        }
        queue.waiting.remove(wants, job);
        queue.let_in.add(wants, job);
        account.admitted += wants.gpus;
        room[world_.device_of(job.job)] -= wants.gpus;
    }
}

// The queue that has least of what it deserves comes next; in it the job of highest priority, then the
// oldest.
void Volcano::allocate() {
    const auto has_less = [](const Queue& a, const Queue& b) {
        return most_of(a, Counted::running) < most_of(b, Counted::running);
    };
    begin_round();
    for (std::size_t q = next_queue(has_less); q < queues_.size(); q = next_queue(has_less)) {
        Queue& queue = queues_[q];
        const WaitingJob* next = queue.let_in.next(queue.from, round_);
        if (next == nullptr) {
            queue.through = true;
            continue;
        }
        const WaitingJob job = *next;
        if (!within_share(job.job) || !try_allocate(job.job)) {
            queue.let_in.refuse(world_.job(job.job), round_);
            continue;
        }
        queue.from = WaitingQueue::after(job);
        ++round_;
    }
}

bool Volcano::try_allocate(JobIndex index) {
    const WorldJob& job = world_.job(index);
    const WorldCluster& cluster = world_.cluster();
    const PodRequest request = gang(index);
    if (!world_.power_for(index) || !may_place(cluster, request)) return false;
    const auto nodes =
        place_pods(cluster, request, free_gpus(cluster, cluster.device_of(request.pool)),
                   cluster.members(request.pool), spec_.scoring);
    if (!nodes) return false;
    queues_[job.queue].let_in.remove(job, waiting(index));
    account(index).admitted -= job.gpus;
    count_running(index);
    world_.bind(index, *nodes);
    if (world_.status(index).gpus == job.gpus) return true;
    pods_.create(index, world_.now());  // beyond min_member, as they fit
    world_.wake_at(world_.now());
    return true;
}

void Volcano::count_running(JobIndex job) {
    queues_[world_.job(job).queue].running.insert(job);
    Account& account = this->account(job);
    account.allocated += world_.job(job).gpus;
    account.allocated_by_priority[world_.priority(job)] += world_.job(job).gpus;
}

void Volcano::make_room() {
    ++round_;
    for (std::uint32_t q = 0; q < queues_.size(); ++q) {
        while (const WaitingJob* next = queues_[q].let_in.next(std::nullopt, round_)) {
            const JobIndex job = next->job;
            if (make_room_for(job, q)) return;
            queues_[q].let_in.refuse(world_.job(job), round_);
        }
    }
}

// False if all of lower priority in its queue would not be enough.
bool Volcano::may_displace_own(JobIndex job) const {
    const Account& account = this->account(job);
    std::int64_t gpus = 0;
    for (const auto& [of, allocated] : account.allocated_by_priority) {
        if (of < world_.priority(job)) gpus += allocated;
    }
    const PodRequest request = gang(job);
    return gpus > 0 && (account.allocated + request.gpus() - gpus) * 1000 <= account.deserved &&
           world_.cluster().free_gpus(request.pool) + gpus >= request.gpus();
}

// Likewise of all that the others have beyond their parts.
bool Volcano::may_displace_others(JobIndex job) const {
    if (!within_share(job)) return false;
    std::int64_t gpus = 0;
    for (std::uint32_t q = 0; q < queues_.size(); ++q) {
        const Account& account = queues_[q].of[world_.device_of(job)];
        const bool beyond = account.allocated * 1000 > account.deserved;
        if (q != world_.job(job).queue && spec_.queues[q].reclaimable && beyond) {
            gpus += account.allocated;
        }
    }
    const PodRequest request = gang(job);
    return gpus > 0 && world_.cluster().free_gpus(request.pool) + gpus >= request.gpus();
}

// preempt: jobs of lower priority in its queue make room; reclaim: those of queues that have more than they
// deserve. Only of the resource that it asks for: Volcano doesn't know what a slice of another profile, gone,
// would leave room for.
bool Volcano::make_room_for(JobIndex job, std::uint32_t queue) {
    if (!world_.power_for(job)) return false;  // no job leaves for its power
    const bool of_own = spec_.volcano.preempt && may_displace_own(job);
    const bool of_others = spec_.volcano.reclaim && may_displace_others(job);
    if (!of_own && !of_others) return false;
    std::vector<JobIndex> own;
    std::vector<JobIndex> others;
    for (std::uint32_t q = 0; q < queues_.size(); ++q) {
        for (const JobIndex victim : queues_[q].running) {
            if (world_.status(victim).phase == WorldPhase::completing)
                return false;  // room is made
            if (world_.device_of(victim) != world_.device_of(job)) continue;
            if (q == queue && world_.priority(victim) < world_.priority(job)) own.push_back(victim);
            if (q != queue && spec_.queues[q].reclaimable) others.push_back(victim);
        }
    }
    if (of_own && displace(job, own, false)) return true;
    return of_others && displace(job, others, true);
}

// What a job could have if some that run were gone.
class GangRoom {
  public:
    GangRoom(const WorldView& world, const PodRequest& request, PodScoring scoring)
        : world_(world),
          request_(request),
          scoring_(scoring),
          allowed_(world.cluster().members(request.pool)),
          free_(free_gpus(world.cluster(), world.cluster().device_of(request.pool))),
          pods_(pods_with(world.cluster(), request.pool, request.size)) {}

    void shift(JobIndex victim, std::int64_t sign) {
        for (const NodeShare& share : world_.status(victim).held) {
            if (!open(share.node)) continue;
            const std::int64_t before = free_[share.node] / request_.size;
            free_[share.node] += sign * share.gpus;
            pods_ += free_[share.node] / request_.size - before;
        }
    }
    bool holds_all() const {
        return pods_ >= request_.pods &&
               place_pods(world_.cluster(), request_, free_, allowed_, scoring_).has_value();
    }
    bool open(NodeIndex node) const {
        return allowed_.has(node) && world_.cluster().node(node).state == NodeState::up;
    }
    // For one pod more.
    std::int64_t lacking(NodeIndex node) const {
        return request_.size - free_[node] % request_.size;
    }

  private:
    const WorldView& world_;
    const PodRequest& request_;
    PodScoring scoring_;
    const NodeSet& allowed_;
    FreeGpus free_;
    std::int64_t pods_;
};

// The next of these, in their order, on the node that has room for a pod more with the fewest of them gone;
// where as few do on several, the one where these come first. None: on no node is that enough. A victim of
// which `may` is false stays.
template <class May>
std::vector<JobIndex> victims_on_one_node(const WorldView& world, const GangRoom& room,
                                          const std::vector<JobIndex>& victims, const May& may) {
    struct OnNode {
        std::vector<JobIndex> gone{};
        std::int64_t gpus = 0;
        std::optional<std::size_t> last{};  // place of the one with which that is enough
    };
    std::map<NodeIndex, OnNode> nodes;
    for (std::size_t place = 0; place < victims.size(); ++place) {
        const JobIndex victim = victims[place];
        for (const NodeShare& share : world.status(victim).held) {
            if (!room.open(share.node)) continue;
            OnNode& on = nodes[share.node];
            if (on.last || !may(victim, on.gone)) continue;
            on.gone.push_back(victim);
            on.gpus += share.gpus;
            if (on.gpus >= room.lacking(share.node)) on.last = place;
        }
    }
    const OnNode* best = nullptr;
    for (const auto& [node, on] : nodes) {
        const auto rank = [](const OnNode& each) {
            return std::pair(each.gone.size(), *each.last);
        };
        if (on.last && (best == nullptr || rank(on) < rank(*best))) best = &on;
    }
    return best == nullptr ? std::vector<JobIndex>{} : best->gone;
}

// Node by node, those of lowest priority and of these the latest, until the job fits; who need not leave
// stays. Nobody leaves if it never fits.
bool Volcano::displace(JobIndex job, std::vector<JobIndex> victims, bool across) {
    std::ranges::sort(victims, [this](JobIndex a, JobIndex b) {
        return std::tuple(world_.priority(a), world_.status(b).started, b) <
               std::tuple(world_.priority(b), world_.status(a).started, a);
    });
    std::vector<std::int64_t> beyond;  // what each queue has beyond its part, in thousandths
    const std::size_t device = world_.device_of(job);
    for (const Queue& queue : queues_) {
        beyond.push_back(queue.of[device].allocated * 1000 - queue.of[device].deserved);
    }
    const PodRequest request = gang(job);
    GangRoom room(world_, request, spec_.scoring);
    std::int64_t own = account(job).allocated + request.gpus();
    const auto share_is_enough = [&] { return own * 1000 <= account(job).deserved; };
    const auto shift = [&](JobIndex victim, std::int64_t sign) {
        const std::int64_t gpus = sign * world_.job(victim).gpus;
        beyond[world_.job(victim).queue] -= gpus * 1000;
        if (!across) own -= gpus;
        room.shift(victim, sign);
    };
    // A queue gives while it has more than its part, with what it has lost on the way.
    const auto may = [&](JobIndex victim, const std::vector<JobIndex>& gone) {
        std::int64_t left = beyond[world_.job(victim).queue];
        for (const JobIndex other : gone) {
            if (world_.job(other).queue == world_.job(victim).queue)
                left -= world_.job(other).gpus * 1000;
        }
        return !across || left > 0;
    };
    std::vector<JobIndex> chosen;
    while (true) {
        const bool placed = room.holds_all();
        if (placed && share_is_enough()) break;
        std::vector<JobIndex> next;
        if (!placed) next = victims_on_one_node(world_, room, victims, may);
        if (placed && !victims.empty()) next = {victims.front()};  // its queue alone has too much
        if (next.empty()) return false;
        for (const JobIndex victim : next) {
            shift(victim, 1);
            chosen.push_back(victim);
            std::erase(victims, victim);
        }
    }
    if (chosen.empty()) return false;  // it waits for something else
    for (std::size_t i = 0; i < chosen.size();) {
        shift(chosen[i], -1);
        if (share_is_enough() && room.holds_all()) {
            chosen.erase(chosen.begin() + i);
        } else {
            shift(chosen[i++], 1);
        }
    }
    for (const JobIndex gone : chosen) {
        world_.note(across ? "reclaimed" : "preempted", gone, no_node);
        world_.requeue(gone, world_.now(), JobEnd::preempted);
    }
    try_allocate(job);  // unless the others take their time to leave
    return true;
}

}  // namespace

std::unique_ptr<WorldScheduler> make_volcano(WorldView& world) {
    return std::make_unique<Volcano>(world);
}

}  // namespace railyard
