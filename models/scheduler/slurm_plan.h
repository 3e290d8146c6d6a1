#pragma once
// What will be free on each node of a fleet, by the jobs' time limits and by what has been planned: Slurm's
// backfill's table of the future.
//
// Slots follow one another; in each every node has so many GPUs free. They are made only as far ahead as
// somebody asks: beyond the last one GPUs can only be given back, so what fits at its end fits later.

#include <functional>
#include <map>
#include <optional>
#include <set>
#include <utility>

#include "models/scheduler/fleet_scheduler.h"

namespace railyard {

class SlurmPlan {
  public:
    using Ends =
        std::set<std::pair<Instant, JobIndex>>;  // when those that hold GPUs will have ended
    // References must outlive the plan; nothing may change but by take().
    SlurmPlan(const Fleet& fleet, const Ends& ends);

    struct Start {
        Instant at{};
        Instant until{};  // rounded up to the resolution
        NodeSet pods;     // nodes that can take a pod of the job, and what is left over, all along
        NodeSet rest;
    };
    using Suits = std::function<bool(const Start&)>;
    // The earliest instant up to `latest` at which enough nodes of the job's partition have enough GPUs
    // free for so long, and these suit.
    std::optional<Start> earliest(JobIndex job, Duration length, Instant latest,
                                  const Suits& suits);
    // By a job that will start then, or that starts now and will be among the ends.
    void take(JobIndex job, const Allocation& allocation, const Start& start);

  private:
    struct Slot {
        Instant begin{};
        std::vector<NodeSet> at_least;    // by GPUs: nodes with at least so many free; 0: all nodes
        std::vector<std::int32_t> count;  // by pool and GPUs: how many these are
        bool planned = false;             // less is free than before on some nodes
    };
    bool extend();  // one slot more, if anything ends after the last one
    void change(Slot& slot, NodeIndex node, std::int64_t gpus) const;  // so many more free
    bool enough(const FleetJob& job, const Slot& slot) const;
    NodeSet free_all_along(std::int64_t gpus, std::size_t first, std::size_t end) const;
    bool fits(const FleetJob& job, Duration length, std::size_t first, std::size_t end,
              Start& start) const;
    void leave_windows_out(Instant from, Duration length, NodeSet& nodes) const;

    const Fleet& fleet_;
    const Ends& ends_;
    Ends::const_iterator next_end_;
    std::multimap<Instant, Allocation> planned_ends_;  // of what was taken, after the last slot
    std::vector<JobIndex> taken_;  // who started since, and ends as planned here
    std::vector<Slot> slots_;
};

// Whether a reservation has its nodes at some instant of [from, from + length).
bool overlaps(const Reservation& reservation, Instant from, Duration length);

}  // namespace railyard
