#include "models/scheduler/world_spec.h"

#include <fmt/format.h>

#include <algorithm>

#include "sim/check.h"
#include "sim/integers.h"

namespace railyard {

void NodeGroup::list_slices() {
    gpu.slices.clear();
    if (!mig) return;
    const std::vector<std::string> names = mig_names(gpu.memory);
    for (const MigInstance& instance : mig->layout) {
        const std::string& slice = names[instance.profile];
        const bool listed = std::ranges::find(gpu.slices, slice) != gpu.slices.end();
        if (!listed) gpu.slices.push_back(slice);
    }
    if (mig->layout.empty()) gpu.slices = names;
}

std::string WorldSpec::name_of(const WorldJob& job) const {
    if (job.trace_row > 0) return trace_ids[job.trace_row - 1];
    if (trace_ids.empty()) return fmt::format("{}", job.id);
    return fmt::format("{}-{}", kinds[job.kind].name, job.id);
}

Duration WorldSpec::sound_step(const WorldJobKind& kind) const {
    Duration out = tick(kind);
    out += from_seconds(seconds(out) * kind.duty * kind.throttled);
    return out + wait_for_batch(kind.late(out));
}

std::int64_t WorldSpec::steps_of(const WorldJob& job) const {
    const WorldJobKind& kind = kinds[job.kind];
    if (kind.step) return kind.steps;
    const Duration each = job.timed ? sound_step(kind) : tick(kind);
    return ceil_div(job.work.count(), each.count());
}

std::int64_t WorldSpec::nodes() const {
    std::int64_t sum = 0;
    for (const NodeGroup& group : groups) sum += group.nodes;
    return sum;
}

std::int64_t WorldSpec::gpus() const {
    std::int64_t sum = 0;
    for (const NodeGroup& group : groups) sum += group.nodes * group.gpus_per_node;
    return sum;
}

const NodeGroup& WorldSpec::group_of_node(NodeIndex node) const {
    std::int64_t before = 0;
    for (const NodeGroup& group : groups) {
        before += group.nodes;
        if (node < before) return group;
    }
    RY_UNREACHABLE("a node of the cluster");
}

std::int64_t WorldSpec::gpus_of_pool_node(std::uint32_t pool) const {
    const PartitionSpec& partition = partitions[partition_of_pool(pool)];
    for (std::int64_t i = 0; i < partition.nodes; ++i) {
        const NodeGroup& group = group_of_node(static_cast<NodeIndex>(partition.first_node + i));
        if (count_unmet(request_of_pool(pool), group.gpu) == 0) return group.gpus_per_node;
    }
    return group_of_node(partition.first_node).gpus_per_node;
}

std::optional<std::string> WorldSpec::why_empty(std::uint32_t pool) const {
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

std::int64_t WorldSpec::parts_per_gpu() const {
    const bool any =
        std::ranges::any_of(groups, [](const NodeGroup& group) { return group.mig.has_value(); });
    return any ? mig_compute_slices : 1;
}

std::int64_t WorldSpec::parts_of(const WorldJob& job) const {
    const std::string& slice = requests[kinds[job.kind].request].slice;
    return slice.empty() ? parts_per_gpu() : mig_compute_of(slice);
}

}  // namespace railyard
