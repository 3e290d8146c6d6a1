#include "models/scheduler/fleet_cluster.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "sim/check.h"

namespace railyard {

std::int64_t FleetSpec::nodes() const {
    std::int64_t sum = 0;
    for (const NodeGroup& group : groups) sum += group.nodes;
    return sum;
}

std::int64_t FleetSpec::gpus() const {
    std::int64_t sum = 0;
    for (const NodeGroup& group : groups) sum += group.nodes * group.gpus_per_node;
    return sum;
}

const NodeGroup& FleetSpec::group_of_node(NodeIndex node) const {
    std::int64_t before = 0;
    for (const NodeGroup& group : groups) {
        before += group.nodes;
        if (node < before) return group;
    }
    RY_UNREACHABLE("a node of the fleet");
}

std::int64_t FleetSpec::gpus_of_node(NodeIndex node) const {
    return group_of_node(node).gpus_per_node;
}

std::int64_t FleetSpec::gpus_of_pool_node(std::uint32_t pool) const {
    const PartitionSpec& partition = partitions[partition_of_pool(pool)];
    for (std::int64_t i = 0; i < partition.nodes; ++i) {
        const NodeGroup& group = group_of_node(static_cast<NodeIndex>(partition.first_node + i));
        if (count_unmet(request_of_pool(pool), group.gpu) == 0) return group.gpus_per_node;
    }
    return gpus_of_node(partition.first_node);
}

std::optional<std::string> FleetSpec::why_empty(std::uint32_t pool) const {
    if (pool < partitions.size()) return std::nullopt;
    const PartitionSpec& partition = partitions[partition_of_pool(pool)];
    const GpuRequest& request = request_of_pool(pool);
    const NodeGroup* nearest = nullptr;
    const NodeGroup* elsewhere = nullptr;
    std::int64_t first = 0;
    for (const NodeGroup& group : groups) {
        const bool here = first < partition.first_node + partition.nodes &&
                          first + group.nodes > partition.first_node;
        first += group.nodes;
        const int unmet = count_unmet(request, group.gpu);
        if (here && unmet == 0) return std::nullopt;
        if (unmet == 0 && elsewhere == nullptr) elsewhere = &group;
        if (!here) continue;
        if (nearest == nullptr || unmet < count_unmet(request, nearest->gpu)) nearest = &group;
    }
    std::string why = fmt::format(
        "requires {}; no node of partition {} has that: nearest is group {}, {} with {}",
        describe(request), partition.name, nearest->name, nearest->gpu.kind,
        describe_unmet(request, nearest->gpu));
    if (elsewhere != nullptr) why += fmt::format("; group {} has it", elsewhere->name);
    return why;
}

FleetCluster::FleetCluster(const FleetSpec& spec) {
    constexpr std::int64_t gpus_per_node_max = 255;
    for (std::uint32_t g = 0; g < spec.groups.size(); ++g) {
        const NodeGroup& group = spec.groups[g];
        RY_CHECK(group.gpus_per_node > 0 && group.gpus_per_node <= gpus_per_node_max);
        gpus_max_ = std::max(gpus_max_, group.gpus_per_node);
        for (std::int64_t i = 0; i < group.nodes; ++i) {
            FleetNode node;
            node.group = g;
            node.gpus = node.free = group.gpus_per_node;
            if (!spec.places.empty()) node.place = spec.places[nodes_.size()];
            nodes_.push_back(node);
        }
    }
    by_free_.assign(static_cast<std::size_t>(gpus_max_) + 1, NodeSet(nodes_.size()));
    pools_.resize(nodes_.size());
    parts_.resize(spec.pools());
    for (std::uint32_t p = 0; p < spec.pools(); ++p) {
        const PartitionSpec& partition = spec.partitions[spec.partition_of_pool(p)];
        parts_[p].count.resize(static_cast<std::size_t>(gpus_max_) + 1);
        members_.emplace_back(nodes_.size());
        for (std::int64_t i = 0; i < partition.nodes; ++i) {
            const auto node = static_cast<NodeIndex>(partition.first_node + i);
            const GpuAttributes& gpus = spec.groups[nodes_[node].group].gpu;
            if (count_unmet(spec.request_of_pool(p), gpus) > 0) continue;
            members_[p].add(node);
            pools_[node].push_back(p);
        }
    }
    for (NodeIndex node = 0; node < nodes_.size(); ++node) list(node, 1);
}

void FleetCluster::list(NodeIndex index, int sign) {
    const FleetNode& node = nodes_[index];
    if (node.state != NodeState::up) return;
    NodeSet& set = by_free_[static_cast<std::size_t>(node.free)];
    if (sign > 0) {
        set.add(index);
    } else {
        set.remove(index);
    }
    for (const std::uint32_t p : pools_[index]) {
        parts_[p].free_gpus += sign * node.free;
        parts_[p].count[static_cast<std::size_t>(node.free)] += sign;
    }
}

std::int64_t FleetCluster::nodes_with(std::uint32_t pool, std::int64_t gpus) const {
    const std::vector<std::int64_t>& count = parts_[pool].count;
    std::int64_t sum = 0;
    for (auto g = static_cast<std::size_t>(gpus); g < count.size(); ++g) sum += count[g];
    return sum;
}

void FleetCluster::set_free(NodeIndex index, std::int64_t gpus) {
    FleetNode& node = nodes_[index];
    const auto before = static_cast<std::size_t>(std::exchange(node.free, gpus));
    if (node.state != NodeState::up) return;
    const auto after = static_cast<std::size_t>(gpus);
    by_free_[before].remove(index);
    by_free_[after].add(index);
    for (const std::uint32_t p : pools_[index]) {
        Part& part = parts_[p];
        part.free_gpus += static_cast<std::int64_t>(after) - static_cast<std::int64_t>(before);
        --part.count[before];
        ++part.count[after];
    }
}

void FleetCluster::take(NodeIndex index, JobIndex job, std::int64_t gpus) {
    FleetNode& node = nodes_[index];
    RY_CHECK(gpus > 0 && node.state == NodeState::up && node.free >= gpus);
    set_free(index, node.free - gpus);
    if (std::find(node.jobs.begin(), node.jobs.end(), job) == node.jobs.end()) {
        node.jobs.push_back(job);
    }
}

void FleetCluster::give_back(NodeIndex index, JobIndex job, std::int64_t gpus) {
    FleetNode& node = nodes_[index];
    const auto found = std::find(node.jobs.begin(), node.jobs.end(), job);
    RY_CHECK(found != node.jobs.end() && node.free + gpus <= node.gpus);
    set_free(index, node.free + gpus);
    node.jobs.erase(found);
}

void FleetCluster::set_state(NodeIndex index, NodeState state) {
    list(index, -1);
    nodes_[index].state = state;
    list(index, 1);
}

}  // namespace railyard
