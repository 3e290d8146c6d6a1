#include "models/scheduler/volcano_shares.h"

#include <algorithm>

namespace railyard {

std::vector<std::int64_t> deserved_shares(std::int64_t gpus,
                                          const std::vector<QueueDemand>& queues) {
    constexpr std::int64_t unit = 1000;
    std::vector<std::int64_t> deserved(queues.size());
    const auto lacks = [&](std::size_t q) {
        const QueueDemand& queue = queues[q];
        if (queue.weight == 0) return std::int64_t{0};
        const std::int64_t most =
            queue.capability > 0 ? std::min(queue.capability, queue.wanted) : queue.wanted;
        return most * unit - deserved[q];
    };
    std::int64_t left = gpus * unit;
    while (left > 0) {
        std::int64_t weights = 0;
        for (std::size_t q = 0; q < queues.size(); ++q)
            weights += lacks(q) > 0 ? queues[q].weight : 0;
        if (weights == 0) break;
        std::int64_t given = 0;
        for (std::size_t q = 0; q < queues.size(); ++q) {
            if (lacks(q) <= 0) continue;
            const auto part =
                static_cast<std::int64_t>(__int128{left} * queues[q].weight / weights);
            // When each would get less than a thousandth, the first gets it all.
            const std::int64_t more =
                std::min(std::max<std::int64_t>(part, given == 0 ? 1 : 0), lacks(q));
            deserved[q] += more;
            given += more;
            if (given == left) break;
        }
        left -= given;
    }
    return deserved;
}

}  // namespace railyard
