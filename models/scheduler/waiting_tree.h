#pragma once
// The queue of a backfilling policy: waiting jobs by their rank, and the next that is small and short
// enough without looking at each.

#include <cstdint>
#include <vector>

#include "sim/units.h"

namespace railyard {

constexpr std::size_t no_rank = SIZE_MAX;

// A tree over all ranks so far whose every vertex knows the fewest GPUs and the shortest time below it.
class WaitingTree {
  public:
    struct Job {
        std::int64_t gpus = INT64_MAX;  // INT64_MAX: nobody waits here
        Duration expected = Duration::max();
    };
    // Jobs that fit: at most `gpus` and at most `time`, or at most `gpus_any_time` however long.
    struct Gap {
        std::int64_t gpus = 0;
        Duration time{};
        std::int64_t gpus_any_time = 0;
    };

    void add(std::size_t rank, Job job);
    void remove(std::size_t rank) { set(rank, {}); }

    // The first rank from `from` on that fits, or no_rank.
    std::size_t next(std::size_t from, const Gap& gap) const;
    // The first of all, or no_rank.
    std::size_t first() const;

  private:
    void set(std::size_t rank, Job job);
    std::size_t descend(std::size_t vertex, const Gap& gap) const;

    std::size_t leaves_ = 1;  // a power of two; a leaf's vertex is leaves_ + rank
    std::vector<Job> least_ = std::vector<Job>(2);  // by vertex; the root is 1
};

}  // namespace railyard
