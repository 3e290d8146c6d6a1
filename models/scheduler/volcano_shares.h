#pragma once
// What each queue deserves of a cluster's GPUs: Volcano's proportion plugin.

#include <cstdint>
#include <vector>

namespace railyard {

struct QueueDemand {
    std::int64_t weight = 1;
    std::int64_t wanted = 0;      // GPUs, held and asked for
    std::int64_t capability = 0;  // GPUs at most; 0: any number
};

// In thousandths of a GPU, as Volcano counts. GPUs go to the queues in proportion to their weights; what a
// queue doesn't want, or may not have, goes to the others likewise, until nothing is left or nobody wants
// more.
std::vector<std::int64_t> deserved_shares(std::int64_t gpus,
                                          const std::vector<QueueDemand>& queues);

}  // namespace railyard
