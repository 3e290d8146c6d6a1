#pragma once
// What will be free on each node of a cluster, by the jobs' time limits and by what has been planned: Slurm's
// backfill's table of the future.
//
// Slots follow one another; in each every node has so many GPUs free. They are made only as far ahead as
// somebody asks: beyond the last one GPUs can only be given back, so what fits at its end fits later.

#include <functional>
#include <set>
#include <span>
#include <utility>

#include "models/scheduler/free_levels.h"
#include "models/scheduler/world_scheduler.h"

namespace railyard {

class SlurmPlan {
  public:
    using Ends =
        std::set<std::pair<Instant, JobIndex>>;  // when those that hold GPUs will have ended
    // References must outlive the plan. It is of use after renew().
    SlurmPlan(const WorldView& world, const Ends& ends);
    // Plans anew, from now on; nothing may change then but by take(), until the next renew().
    void renew();

    struct Start {
        Instant at{};
        Instant until{};  // rounded up to the resolution
        NodeSet pods;     // nodes that can take a pod of the job, and what is left over, all along
        NodeSet rest;
        std::size_t first = 0;  // slot of its time, and the one after the last
        std::size_t end = 0;
    };
    using Suits = std::function<bool(const Start&)>;
    // The earliest instant up to `latest` at which enough nodes of the job's partition have enough GPUs
    // free for so long, and these suit; null: there is none. It stands until the next call.
    const Start* earliest(JobIndex job, Duration length, Instant latest, const Suits& suits);
    // False when earliest() would not find it to start now, nor will after more has been taken.
    bool may_start_now(JobIndex job, Duration length);
    // By a job that will start then, or that starts now and will be among the ends.
    void take(JobIndex job, const Allocation& allocation, const Start& start);
    // By one that will start then, on the first of these nodes.
    void take_first(JobIndex job, const Start& start);

  private:
    using Nodes = std::span<const NodesOfWord>;
    struct Slot {
        Instant begin{};
        FreeLevels free;
        std::vector<std::int32_t> count;  // by pool and GPUs: nodes with at least so many free
        // More may be free than in the slot before only in words whose place ends in one of these 6 bits.
        std::uint64_t gained = 0;
    };
    // A search that is over. What asks for no less, for no less time, starts no earlier: since then less
    // has become free.
    struct Asked {
        std::uint32_t pool = 0;
        std::int64_t gpus_per_pod = 0, full_pods = 0, rest = 0;
        Duration length{};
        Instant at{};

        bool no_less_than(const Asked& other) const;
    };
    // What was taken and ends after the last slot: where its nodes are among all of these.
    struct PlannedEnd {
        Instant at{};
        std::size_t first = 0;
        std::size_t count = 0;

        bool operator<(const PlannedEnd& other) const { return at > other.at; }  // the first on top
    };
    struct Pool {
        std::size_t device = 0;
        const NodeSet* members = nullptr;
        std::size_t counts = 0;  // of it in a slot: where they begin
    };
    std::size_t device_of(JobIndex job) const;
    // Stands until the next call.
    Nodes up_nodes(const Allocation& allocation, std::size_t device);
    void end_later(Instant at, Nodes nodes);
    bool extend();  // one slot more, if anything ends after the last one
    void give_back(Slot& slot, Nodes nodes) const;
    void take(Slot& slot, Nodes nodes) const;
    void count(Slot& slot, const NodesOfWord& where, std::int64_t first, std::int64_t last,
               std::uint64_t nodes, std::int32_t sign) const;
    void take(JobIndex job, Nodes nodes, const Start& start);
    std::size_t slot_from(Instant at) const;
    Instant not_before(const Asked& asked) const;
    void remember(const Asked& asked);
    Asked asked_for(JobIndex job, Duration length) const;
    Slot spare_slot();
    bool enough(const Asked& what, const Slot& slot) const;
    static bool enough(const Asked& what, const Start& start);
    bool free_all_along(std::uint32_t pool, std::int64_t gpus, std::int64_t least,
                        std::size_t first, std::size_t end, NodeSet& nodes,
                        std::size_t& short_of) const;
    bool fits(const Asked& what, std::size_t first, Start& start, std::size_t& short_of) const;

    const WorldView& world_;
    const WorldSpec& spec_;
    const Ends& ends_;
    LevelTable levels_;
    std::vector<Pool> pools_;
    std::vector<std::vector<Pool>> of_device_;  // the same
    Ends::const_iterator next_end_;
    std::vector<PlannedEnd> planned_ends_;  // a heap
    std::vector<NodesOfWord> planned_nodes_;
    std::vector<JobIndex> started_;  // since, and end as planned here
    std::vector<Slot> slots_;
    std::vector<Slot> spare_;   // one is a few kilobytes, and a plan makes hundreds
    std::vector<Asked> asked_;  // the latest first
    Start tried_;               // scratch
    std::vector<NodesOfWord> up_nodes_;
    // Who may start now, and on which nodes even after all that has been taken since.
    JobIndex known_to_fit_ = no_world_job;
    Start fitting_;
};

// The end of the window that is open at that instant, or else of the next one, or of the last.
Instant next_end(const Reservation& reservation, Instant at);
// Whether a reservation has its nodes at some instant of [from, from + length).
bool overlaps(const Reservation& reservation, Instant from, Duration length);
// Takes a reservation's nodes out.
void leave_out(const Reservation& reservation, NodeSet& nodes);
// Takes out the nodes of all that have theirs then.
void leave_windows_out(const WorldSpec& spec, Instant from, Duration length, NodeSet& nodes);
// The end of what starts then and takes so long, rounded up to backfill's resolution.
Instant planned_end(const WorldSpec& spec, Instant from, Duration length);

}  // namespace railyard
