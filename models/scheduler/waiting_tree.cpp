#include "models/scheduler/waiting_tree.h"

#include <algorithm>
#include <bit>
#include <utility>

namespace railyard {

namespace {

bool may_fit(const WaitingTree::Job& least, const WaitingTree::Gap& gap) {
    return least.gpus <= gap.gpus &&
           (least.expected <= gap.time || least.gpus <= gap.gpus_any_time);
}

}  // namespace

void WaitingTree::add(std::size_t rank, Job job) {
    if (rank >= leaves_) {
        const std::size_t before = std::exchange(leaves_, std::bit_ceil(rank + 1));
        const std::vector<Job> least = std::exchange(least_, std::vector<Job>(2 * leaves_));
        for (std::size_t r = 0; r < before; ++r) set(r, least[before + r]);
    }
    set(rank, job);
}

void WaitingTree::set(std::size_t rank, Job job) {
    std::size_t vertex = leaves_ + rank;
    least_[vertex] = job;
    for (vertex /= 2; vertex > 0; vertex /= 2) {
        const Job& a = least_[2 * vertex];
        const Job& b = least_[2 * vertex + 1];
        least_[vertex] = {std::min(a.gpus, b.gpus), std::min(a.expected, b.expected)};
    }
}

std::size_t WaitingTree::next(std::size_t from, const Gap& gap) const {
    if (from >= leaves_) return no_rank;
    // Subtrees that cover from, from + 1, ... without overlap: each is the right neighbour of the last.
    for (std::size_t vertex = leaves_ + from;;) {
        if (may_fit(least_[vertex], gap)) {
            const std::size_t found = descend(vertex, gap);
            if (found != no_rank) return found;
        }
        while (vertex % 2 == 1) vertex /= 2;
        if (vertex == 0) return no_rank;
        ++vertex;
    }
}

std::size_t WaitingTree::first() const {
    constexpr Gap anyone{INT64_MAX - 1, Duration::zero(), INT64_MAX - 1};
    return next(0, anyone);
}

// What the least of two things suggests need not be true of one job: back up when it is not.
std::size_t WaitingTree::descend(std::size_t vertex, const Gap& gap) const {
    if (!may_fit(least_[vertex], gap)) return no_rank;
    if (vertex >= leaves_) return vertex - leaves_;
    const std::size_t found = descend(2 * vertex, gap);
    return found != no_rank ? found : descend(2 * vertex + 1, gap);
}

}  // namespace railyard
