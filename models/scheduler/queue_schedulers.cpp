// Queues as textbooks have them, one for each partition: its first job starts when it fits, and all others
// wait until then (fifo, sjf, priority), or those start that do not delay it (EASY backfill, Lifka 1995).

#include <algorithm>
#include <bit>
#include <optional>
#include <set>
#include <utility>

#include "models/scheduler/few_nodes.h"
#include "models/scheduler/pod_placement.h"
#include "models/scheduler/waiting_tree.h"
#include "models/scheduler/whole_jobs.h"
#include "sim/check.h"

namespace railyard {

namespace {

// Whose key is the least comes first, and of equal ones who was submitted first.
using Key = std::int64_t (*)(const WorldView& world, JobIndex job);

std::int64_t alike(const WorldView& /*world*/, JobIndex /*job*/) {
    return 0;
}
// What is taken for a job's time before it has ended.
std::int64_t expected_ns(const WorldView& world, JobIndex index) {
    const WorldSpec& spec = world.spec();
    const WorldJob& job = world.job(index);
    const WorldJobKind& kind = spec.kinds[job.kind];
    const Duration limit = time_limit(spec, job);
    if (spec.estimate == RuntimeEstimate::limit) return limit.count();
    return std::min(limit, kind.step ? kind.steps_take : job.work).count();
}
std::int64_t falling_priority(const WorldView& world, JobIndex job) {
    return -world.priority(job);
}

class HeadFirst : public WholeJobs {
  public:
    HeadFirst(WorldView& world, Key key)
        : WholeJobs(world), queues_(world.spec().partitions.size()), key_(key) {}

    std::optional<std::string> never(JobIndex job) const override {
        return never_fits(world_, job, fitting_);
    }
    void submitted(JobIndex index) override {
        if (places_.size() <= index) places_.resize(index + std::size_t{1});
        Place& place = places_[index];
        Queue& queue = queue_of(index);
        // It keeps its place when it is requeued.
        if (place.submitted != world_.status(index).submitted) {
            place = {world_.status(index).submitted, static_cast<Rank>(queue.by_rank.size())};
            queue.by_rank.push_back(index);
        }
        queue.waiting.insert({key_(world_, index), place.rank});
    }
    void goes_on(JobIndex job, const Allocation& gpus) override {
        submitted(job);
        start(job, gpus, *world_.job(job).goes_on);
    }
    void released(JobIndex) override {}
    void node_changed(NodeIndex) override {}
    // Queues may share nodes: whose head comes first has the first choice.
    void schedule() override {
        const auto place = [this](const Queue& queue) {
            return std::pair(queue.waiting.begin()->first, places_[head(queue)].submitted);
        };
        std::vector<Queue*> open;
        for (Queue& queue : queues_) open.push_back(&queue);
        while (true) {
            std::erase_if(open, [](const Queue* queue) { return queue->waiting.empty(); });
            const auto first = std::ranges::min_element(
                open, {}, [&](const Queue* queue) { return place(*queue); });
            if (first == open.end()) return;
            if (!start_if_fits(head(**first))) open.erase(first);
        }
    }
    JobIndex first(std::uint32_t partition) const override {
        const Queue& queue = queues_[partition];
        return queue.waiting.empty() ? no_world_job : head(queue);
    }

  protected:
    using Rank = std::uint32_t;  // in order of submission to a queue
    struct Queue {
        std::set<std::pair<std::int64_t, Rank>> waiting{};
        std::vector<JobIndex> by_rank{};
    };

    static JobIndex head(const Queue& queue) {
        return queue.by_rank[queue.waiting.begin()->second];
    }
    Queue& queue_of(JobIndex job) { return queues_[world_.job(job).partition]; }
    Rank rank(JobIndex job) const { return places_[job].rank; }
    PoolNodes free_nodes(JobIndex job) const {
        return {world_.cluster(), world_.spec().pool(world_.job(job))};
    }
    std::optional<Allocation> place(JobIndex index) const {
        const WorldJob& job = world_.job(index);
        if (job.gpus > world_.cluster().free_gpus(world_.spec().pool(job))) return std::nullopt;
        return free_nodes(index).place(job);
    }
    virtual void start(JobIndex job, const Allocation& nodes, Duration /*ran*/) {
        queue_of(job).waiting.erase({key_(world_, job), rank(job)});
        world_.bind(job, nodes);
    }

    std::vector<Queue> queues_;  // by partition

  private:
    bool start_if_fits(JobIndex job) {
        if (!world_.power_for(job)) return false;
        const std::optional<Allocation> nodes = place(job);
        if (nodes) start(job, *nodes, {});
        return nodes.has_value();
    }

    Key key_;
    struct Place {
        Instant submitted = Instant::max();
        Rank rank = 0;
    };
    std::vector<Place> places_;  // by job
    mutable FittingShapes fitting_;
};

// The first job that does not fit has a reservation at the instant when enough GPUs will be free; any other
// starts if it fits now and either ends by then or takes GPUs that the reservation leaves over.
class Easy : public HeadFirst {
  public:
    explicit Easy(WorldView& world)
        : HeadFirst(world, alike),
          levels_(world.cluster()),
          backfills_(queues_.size(), Backfill(levels_)) {
        const std::vector<WorldNode>& nodes = world.cluster().nodes();
        const auto& first = nodes.front();
        alike_nodes_ =
            std::ranges::all_of(nodes, [&](const WorldNode& n) { return n.gpus == first.gpus; });
    }

    void submitted(JobIndex index) override {
        HeadFirst::submitted(index);
        const WorldJob& job = world_.job(index);
        Backfill& backfill = backfills_[job.partition];
        const bool counted = backfill.only_of_all_nodes && backfill.whole;
        backfill.waiting.add(rank(index), {job.gpus, Duration(expected_ns(world_, index))});
        backfill.only_of_all_nodes &= world_.spec().pool(job) == job.partition;
        backfill.whole &= alike_nodes_ && (job.gpus == job.gpus_per_pod ||
                                           job.gpus_per_pod == world_.cluster().device_max(0));
        if (counted != (backfill.only_of_all_nodes && backfill.whole)) backfill.room_later.reset();
    }
    void released(JobIndex job) override {
        if (ends_of_.size() <= job || ends_of_[job] == none) return;
        // Sooner than was thought: what has been planned need not be the best any more.
        if (ends_of_[job] > world_.now()) plan_anew();
        ends_.erase({ends_of_[job], job});
        ends_of_[job] = none;
    }
    void node_changed(NodeIndex) override { plan_anew(); }
    void schedule() override {
        HeadFirst::schedule();
        for (std::uint32_t p = 0; p < queues_.size(); ++p) overtake(p);
    }

  private:
    // Behind the first of a queue.
    struct Backfill {
        explicit Backfill(const LevelTable& levels) : later(levels) {}
        WaitingTree waiting{};          // by rank
        bool only_of_all_nodes = true;  // no job asks for some of the partition's nodes
        bool whole = true;              // all jobs are as PoolNodes::room() wants them
        JobIndex reserved_for = no_world_job;
        Instant at{};                              // the reservation
        FreeLevels later;                          // what is free then, for it and others
        std::optional<std::int64_t> room_later{};  // there; none: it has to be counted
    };

    void start(JobIndex job, const Allocation& nodes, Duration ran) override {
        backfills_[world_.job(job).partition].waiting.remove(rank(job));
        if (ends_of_.size() <= job) ends_of_.resize(job + std::size_t{1}, none);
        ends_of_[job] = world_.now() - ran + Duration(expected_ns(world_, job));
        ends_.insert({ends_of_[job], job});
        HeadFirst::start(job, nodes, ran);
        // Partitions may share nodes.
        for (std::uint32_t p = 0; p < backfills_.size(); ++p) {
            if (p != world_.job(job).partition && overlap(p, nodes)) {
                backfills_[p].reserved_for = no_world_job;
            }
        }
    }
    bool overlap(std::uint32_t partition, const Allocation& nodes) const {
        const NodeSet& members = world_.cluster().members(partition);
        return std::ranges::any_of(nodes.runs(), [&](const NodeRun& run) {
            return members.has(run.first) || members.has(run.end() - 1);
        });
    }
    void plan_anew() {
        for (Backfill& backfill : backfills_) backfill.reserved_for = no_world_job;
    }
    void reserve(JobIndex job, Backfill& backfill);
    void take(FreeLevels& free, JobIndex job, const Allocation& nodes);
    FreeLevels beside(JobIndex head, const Backfill& backfill);
    void overtake(std::uint32_t partition);

    LevelTable levels_;
    std::vector<Backfill> backfills_;  // by partition
    bool alike_nodes_ = true;
    std::set<std::pair<Instant, JobIndex>> ends_;  // expected, of those that hold GPUs
    static constexpr Instant none = Instant::min();
    std::vector<Instant> ends_of_;    // by job
    std::vector<NodesOfWord> moved_;  // scratch
};

// Lets those that hold GPUs end, in the order in which that is expected, until the job fits.
void Easy::reserve(JobIndex index, Backfill& backfill) {
    const WorldJob& job = world_.job(index);
    const std::uint32_t pool = world_.spec().pool(job);
    const WorldCluster& cluster = world_.cluster();
    backfill.reserved_for = index;
    backfill.at = world_.now();
    backfill.later = FreeLevels(cluster, levels_);
    backfill.room_later.reset();
    const PoolNodes nodes(cluster, pool, backfill.later);
    std::int64_t free = nodes.room(false);
    for (auto next = ends_.begin(); free < job.gpus || !nodes.place(job);) {
        if (next == ends_.end()) {  // it waits for nodes that are not up
            backfill.at = Instant::max();
            return;
        }
        backfill.at = std::max(world_.now(), next->first);
        for (; next != ends_.end() && next->first <= backfill.at; ++next) {
            const std::size_t device = world_.device_of(next->second);
            backfill.later.up_nodes(world_.status(next->second).held, device, moved_);
            for (const NodesOfWord& back : moved_) {
                backfill.later.give_back(back, [](auto...) {});
                const std::uint64_t ours = back.nodes & cluster.members(pool).word(back.word);
                if (device == world_.device_of(index)) free += std::popcount(ours) * back.gpus;
            }
        }
    }
    world_.promise(index, backfill.at);
}

void Easy::take(FreeLevels& free, JobIndex job, const Allocation& nodes) {
    free.up_nodes(nodes, world_.device_of(job), moved_);
    for (const NodesOfWord& taken : moved_) free.take(taken, [](auto...) {});
}

// What is free now and stays free beside the first job of the queue. That takes nodes that nobody else can
// have now, as far as there are any.
FreeLevels Easy::beside(JobIndex head, const Backfill& backfill) {
    const WorldJob& job = world_.job(head);
    FreeLevels free(world_.cluster(), levels_);
    FreeLevels left = backfill.later;
    if (backfill.at != Instant::max()) {
        const PoolNodes nodes(world_.cluster(), world_.spec().pool(job), left);
        const auto its = nodes.place(job, free.at_least(job.gpus_per_pod, world_.device_of(head)));
        RY_CHECK(its.has_value());
        take(left, head, *its);
    }
    free.limit_to(left);
    return free;
}

void Easy::overtake(std::uint32_t partition) {
    Queue& queue = queues_[partition];
    Backfill& backfill = backfills_[partition];
    if (queue.waiting.empty()) return;
    const WorldCluster& cluster = world_.cluster();
    const PoolNodes now(cluster, partition);
    const PoolNodes later(cluster, partition, backfill.later);
    const auto room = [&](const PoolNodes& nodes) {
        return backfill.only_of_all_nodes ? nodes.room(backfill.whole) : INT64_MAX - 1;
    };
    std::int64_t room_now = room(now);
    if (room_now == 0) return;
    const JobIndex head = this->head(queue);
    if (!world_.power_for(head)) return;              // nobody may take what it waits for
    const bool overdue = backfill.at < world_.now();  // somebody has outlived the estimate
    if (backfill.reserved_for != head || overdue) reserve(head, backfill);
    const Duration time = backfill.at - world_.now();
    std::optional<FreeLevels> free;  // for those that do not end before
    for (std::size_t next = rank(head) + std::size_t{1};; ++next) {
        if (!backfill.room_later) backfill.room_later = room(later);
        next = backfill.waiting.next(next, {room_now, time, *backfill.room_later});
        if (next == no_rank) return;
        const JobIndex job = queue.by_rank[next];
        if (!world_.power_for(job)) continue;
        std::optional<Allocation> nodes;
        if (Duration(expected_ns(world_, job)) <= time) {
            if ((nodes = place(job))) free.reset();
        } else {
            if (!free) free = beside(head, backfill);
            const std::uint32_t pool = world_.spec().pool(world_.job(job));
            if ((nodes = PoolNodes(cluster, pool, *free).place(world_.job(job)))) {
                take(*free, job, *nodes);
                take(backfill.later, job, *nodes);
                backfill.room_later.reset();
            }
        }
        if (!nodes) continue;
        start(job, *nodes, {});
        room_now = room(now);
        if (cluster.devices() > 1) free.reset();  // a slice leaves less for others on its GPU
    }
}

}  // namespace

std::unique_ptr<WorldScheduler> make_fifo(WorldView& world) {
    return std::make_unique<HeadFirst>(world, alike);
}
std::unique_ptr<WorldScheduler> make_sjf(WorldView& world) {
    return std::make_unique<HeadFirst>(world, expected_ns);
}
std::unique_ptr<WorldScheduler> make_priority(WorldView& world) {
    return std::make_unique<HeadFirst>(world, falling_priority);
}
std::unique_ptr<WorldScheduler> make_easy(WorldView& world) {
    return std::make_unique<Easy>(world);
}

}  // namespace railyard
