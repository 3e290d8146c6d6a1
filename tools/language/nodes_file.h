#pragma once
// Virtual clusters as a table lists them: which, how many nodes, and with how many GPUs.

#include <optional>
#include <string>
#include <vector>

#include "models/scheduler/scheduler.h"

namespace railyard {

constexpr std::int64_t nodes_max = 1'000'000;
constexpr std::int64_t gpus_per_node_max = 1024;

// Columns: vc, partition or name; nodes or "node num"; gpus_per_node, for which `gpus_per_node` stands
// where the table has none. Throws ScenarioError.
std::vector<VirtualCluster> read_nodes_file(const std::string& path,
                                            std::optional<std::int64_t> gpus_per_node);

}  // namespace railyard
