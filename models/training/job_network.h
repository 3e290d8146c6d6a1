#pragma once
// What the groups of a parallel plan get of the cluster's links, when all groups of a kind talk at once.

#include <map>
#include <tuple>
#include <vector>

#include "models/collective/collective.h"

namespace railyard {

class JobNetwork {
  public:
    // `gpu_of_rank[r]` is where rank r runs.
    JobNetwork(GpuNetwork network, std::vector<std::int64_t> gpu_of_rank)
        : network_(std::move(network)), gpu_of_rank_(std::move(gpu_of_rank)) {}

    // Of the groups of `ranks` ranks that are `stride` apart, the slowest; all_reduce stands for every
    // collective that runs a ring. Measured once, then remembered. Throws NoPath.
    const GroupRate& rate(Collective collective, std::int64_t stride, std::int64_t ranks);

  private:
    GpuNetwork network_;
    std::vector<std::int64_t> gpu_of_rank_;
    std::map<std::tuple<Collective, std::int64_t, std::int64_t>, GroupRate> rates_;
};

}  // namespace railyard
