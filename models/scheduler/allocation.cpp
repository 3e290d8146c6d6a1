#include "models/scheduler/allocation.h"

#include "sim/check.h"

namespace railyard {

std::size_t Allocation::size() const {
    std::size_t nodes = 0;
    for (const NodeRun& run : runs_) nodes += run.count;
    return nodes;
}

NodeShare Allocation::operator[](std::size_t index) const {
    auto run = runs_.begin();
    for (; index >= run->count; ++run) index -= run->count;
    return {run->first + static_cast<std::uint32_t>(index), run->gpus};
}

void Allocation::push_back(const NodeRun& run) {
    if (!runs_.empty() && runs_.back().end() == run.first && runs_.back().gpus == run.gpus) {
        runs_.back().count += run.count;
    } else {
        runs_.push_back(run);
    }
}

void Allocation::insert(const Allocation& more) {
    for (const NodeRun& run : more.runs_) {
        if (runs_.empty() || runs_.back().end() <= run.first) {
            push_back(run);
        } else {
            for (std::uint32_t n = run.first; n < run.end(); ++n) insert({n, run.gpus});
        }
    }
}

void Allocation::insert(const NodeShare& share) {
    if (runs_.empty() || runs_.back().end() <= share.node) {
        push_back(share);
        return;
    }
    NodeRun run{share.node, 1, share.gpus};
    if (has(share.node)) run.gpus += erase(share.node).front().gpus;
    const auto after =
        std::ranges::find_if(runs_, [&share](const NodeRun& r) { return r.first > share.node; });
    if (after != runs_.begin() && after[-1].end() == run.first && after[-1].gpus == run.gpus) {
        ++after[-1].count;
    } else {
        runs_.insert(after, run);
    }
}

Allocation Allocation::erase(std::uint32_t node) {
    const auto run = std::ranges::find_if(runs_, [node](const NodeRun& r) { return r.has(node); });
    RY_CHECK(run != runs_.end());
    Allocation out(NodeShare{node, run->gpus});
    NodeRun after{node + 1, run->end() - node - 1, run->gpus};
    run->count = node - run->first;
    if (after.count > 0 && run->count > 0) {
        runs_.insert(run + 1, after);
    } else if (after.count > 0) {
        *run = after;
    } else if (run->count == 0) {
        runs_.erase(run);
    }
    return out;
}

}  // namespace railyard
