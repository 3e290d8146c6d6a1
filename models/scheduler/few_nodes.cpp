#include "models/scheduler/few_nodes.h"

#include <algorithm>
#include <bit>

namespace railyard {

std::int64_t PoolNodes::room(bool whole) const {
    std::int64_t all = 0;
    std::int64_t empty = 0;
    std::int64_t most_of_used = 0;
    for (std::int64_t free = 1; free <= most_; ++free) {
        std::int64_t nodes = 0;
        const With with(*this, free);
        for (std::size_t w = 0; w < members_.words(); ++w) nodes += std::popcount(with[w]);
        all += nodes * free;
        if (free == most_) {
            empty = nodes;
        } else if (nodes > 0) {
            most_of_used = free;
        }
    }
    return whole ? empty * most_ + most_of_used : all;
}

template <class Visit>
void PoolNodes::each_with(std::int64_t free, const std::uint64_t* last, const Visit& visit) const {
    const With with(*this, free);
    for (const bool of_last : {false, true}) {
        if (of_last && last == nullptr) return;
        for (std::size_t w = 0; w < members_.words(); ++w) {
            std::uint64_t nodes = with[w];
            if (last != nullptr) nodes &= of_last ? last[w] : ~last[w];
            for (; nodes != 0; nodes &= nodes - 1) {
                const auto bit = static_cast<std::size_t>(std::countr_zero(nodes));
                if (!visit(static_cast<NodeIndex>(w * 64 + bit))) return;
            }
        }
    }
}

std::optional<Allocation> PoolNodes::place(const WorldJob& job, const std::uint64_t* last) const {
    Allocation out;
    std::int64_t pods = job.gpus / job.gpus_per_pod;
    for (std::int64_t free = job.gpus_per_pod; free <= most_ && pods > 0; ++free) {
        each_with(free, last, [&](NodeIndex node) {
            const std::int64_t here = std::min(pods, free / job.gpus_per_pod);
            out.insert({node, here * job.gpus_per_pod});
            pods -= here;
            return pods > 0;
        });
    }
    std::int64_t rest = job.gpus % job.gpus_per_pod;
    // On a node of its own; else beside its other pods.
    for (const bool beside : {false, true}) {
        for (std::int64_t free = most_; free >= rest && rest > 0 && pods == 0; --free) {
            each_with(free, last, [&](NodeIndex node) {
                const std::int64_t taken = out.gpus_on(node);
                if ((taken > 0) != beside || free - taken < rest) return true;
                out.insert({node, rest});
                rest = 0;
                return false;
            });
        }
    }
    if (pods > 0 || rest > 0) return std::nullopt;
    return out;
}

}  // namespace railyard
