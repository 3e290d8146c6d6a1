#include "models/scheduler/world_cluster.h"

#include <algorithm>
#include <bit>
#include <utility>

#include "sim/check.h"

namespace railyard {

WorldCluster::WorldCluster(const WorldSpec& spec) : parts_per_gpu_(spec.parts_per_gpu()) {
    constexpr std::int64_t gpus_per_node_max = 255;
    for (std::uint32_t g = 0; g < spec.groups.size(); ++g) {
        const NodeGroup& group = spec.groups[g];
        RY_CHECK(group.gpus_per_node > 0 && group.gpus_per_node <= gpus_per_node_max);
        gpus_max_ = std::max(gpus_max_, group.gpus_per_node);
        for (std::int64_t i = 0; i < group.nodes; ++i) {
            WorldNode node;
            node.group = g;
            node.gpus = group.mig ? 0 : group.gpus_per_node;
            if (!spec.places.empty()) node.place = spec.places[nodes_.size()];
            nodes_.push_back(node);
            mig_.emplace_back();
            if (group.mig) mig_.back().emplace(group.gpus_per_node, *group.mig);
        }
    }
    std::size_t group_end = 0;
    alike_until_.assign(nodes_.size(), static_cast<NodeIndex>(nodes_.size()));
    const auto ends_at = [this](std::size_t end) {
        for (std::size_t n = end; n-- > 0 && alike_until_[n] > end;) {
            alike_until_[n] = static_cast<NodeIndex>(end);
        }
    };
    for (const NodeGroup& group : spec.groups) {
        ends_at(group_end += static_cast<std::size_t>(group.nodes));
    }
    for (const PartitionSpec& partition : spec.partitions) {
        ends_at(partition.first_node);
        ends_at(partition.first_node + static_cast<std::size_t>(partition.nodes));
    }
    alone_.assign(nodes_.size(), no_world_job);
    jobs_.resize(nodes_.size());
    ailing_ = NodeSet(nodes_.size());
    add_device(spec, "");
    pools_.resize(nodes_.size());
    parts_.resize(spec.pools());
    for (std::uint32_t p = 0; p < spec.pools(); ++p) {
        const std::string& slice = spec.request_of_pool(p).slice;
        auto device =
            std::ranges::find_if(devices_, [&slice](const Device& d) { return d.slice == slice; });
        device_of_pool_.push_back(static_cast<std::size_t>(device - devices_.begin()));
        if (device == devices_.end()) add_device(spec, slice);
        parts_[p].count.resize(devices_[device_of_pool_[p]].by_free.size());
        members_.emplace_back(nodes_.size());
        const PartitionSpec& partition = spec.partitions[spec.partition_of_pool(p)];
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

// All nodes are empty.
void WorldCluster::add_device(const WorldSpec& spec, const std::string& slice) {
    Device device{.slice = slice};
    for (const NodeGroup& group : spec.groups) {
        const std::vector<std::string> names = mig_names(group.gpu.memory);
        const auto found = std::ranges::find(names, slice);
        device.profile.emplace_back();
        if (!group.mig || found == names.end()) continue;
        device.profile.back() = static_cast<ProfileIndex>(found - names.begin());
    }
    std::int64_t most = slice.empty() ? gpus_max_ : 0;
    for (NodeIndex n = 0; n < nodes_.size(); ++n) {
        const auto profile = device.profile[nodes_[n].group];
        device.capacity.push_back(profile ? mig_[n]->room(*profile)
                                          : (slice.empty() ? nodes_[n].gpus : 0));
        most = std::max(most, device.capacity.back());
    }
    device.free = device.capacity;
    device.by_free.assign(static_cast<std::size_t>(most) + 1, NodeSet(nodes_.size()));
    devices_.push_back(std::move(device));
}

void WorldCluster::list(NodeIndex index, int sign) {
    if (nodes_[index].state != NodeState::up) return;
    for (Device& device : devices_) {
        NodeSet& set = device.by_free[device.free[index]];
        if (sign > 0) {
            set.add(index);
        } else {
            set.remove(index);
        }
    }
    for (const std::uint32_t p : pools_[index]) {
        const std::size_t device = device_of_pool_[p];
        const std::int64_t free = devices_[device].free[index];
        const bool other = mig_[index] && device == 0;  // slices are of no use to whole GPUs' jobs
        parts_[p].free_gpus += sign * free;
        parts_[p].free_parts += other ? 0 : sign * free_parts_of(index);
        parts_[p].count[free] += sign;
    }
}

std::int64_t WorldCluster::nodes_with(std::uint32_t pool, std::int64_t gpus) const {
    const std::vector<std::int64_t>& count = parts_[pool].count;
    std::int64_t sum = 0;
    for (auto g = static_cast<std::size_t>(gpus); g < count.size(); ++g) sum += count[g];
    return sum;
}

void WorldCluster::set_free(NodeIndex index, std::int64_t gpus) {
    const std::int64_t before = std::exchange(devices_[0].free[index], gpus);
    if (nodes_[index].state != NodeState::up) return;
    devices_[0].by_free[before].remove(index);
    devices_[0].by_free[gpus].add(index);
    move_free(index, 1, before, gpus);
}

// Counts so many nodes like this one, all up, anew.
void WorldCluster::move_free(NodeIndex index, std::int64_t nodes, std::int64_t before,
                             std::int64_t after) {
    for (const std::uint32_t p : pools_[index]) {
        Part& part = parts_[p];
        const std::int64_t more = nodes * (after - before);
        part.free_gpus += more;
        part.free_parts += more * parts_per_gpu_;
        part.count[before] -= nodes;
        part.count[after] += nodes;
    }
}

void WorldCluster::take_whole(const NodeRun& run, JobIndex job) {
    Device& gpus = devices_[0];
    NodeSet& free = gpus.by_free[run.gpus];
    each_word(run, [&](std::size_t w, std::uint64_t nodes) {
        RY_CHECK((nodes & ~free.word(w)) == 0);
        free.word(w) &= ~nodes;
        gpus.by_free[0].word(w) |= nodes;
    });
    std::fill_n(gpus.free.begin() + run.first, run.count, 0);
    std::fill_n(alone_.begin() + run.first, run.count, job);
    move_free(run.first, run.count, run.gpus, 0);
}

void WorldCluster::give_back_whole(const NodeRun& run, JobIndex job) {
    Device& gpus = devices_[0];
    std::int64_t up = run.count;
    each_word(run, [&](std::size_t w, std::uint64_t nodes) {
        for (std::uint64_t ail = nodes & ailing_.word(w); ail != 0; ail &= ail - 1) {
            const auto bit = static_cast<std::size_t>(std::countr_zero(ail));
            if (nodes_[w * 64 + bit].state == NodeState::up) continue;
            nodes &= ~(std::uint64_t{1} << bit);
            --up;
        }
        gpus.by_free[0].word(w) &= ~nodes;
        gpus.by_free[run.gpus].word(w) |= nodes;
    });
    JobIndex others = 0;
    for (NodeIndex n = run.first; n < run.end(); ++n) others |= alone_[n] ^ job;
    RY_CHECK(others == 0);
    std::fill_n(gpus.free.begin() + run.first, run.count, run.gpus);
    std::fill_n(alone_.begin() + run.first, run.count, no_world_job);
    move_free(run.first, up, 0, run.gpus);
}

std::vector<JobIndex> WorldCluster::jobs_on(NodeIndex node) const {
    return alone_[node] == no_world_job ? jobs_[node] : std::vector<JobIndex>{alone_[node]};
}

std::vector<std::int64_t> WorldCluster::parts_by_group(const Allocation& gpus,
                                                       std::int64_t parts_each) const {
    std::vector<std::int64_t> out(nodes_.back().group + 1);
    each_run(gpus, [&](const NodeRun& run, bool) {
        out[node(run.first).group] += run.gpus * run.count * parts_each;
    });
    return out;
}

std::vector<NodeIndex> WorldCluster::ailing(const Allocation& gpus) const {
    std::vector<NodeIndex> out;
    for (const NodeRun& run : gpus.runs()) {
        each_word(run, [&](std::size_t w, std::uint64_t nodes) {
            for (std::uint64_t ail = nodes & ailing_.word(w); ail != 0; ail &= ail - 1) {
                const auto bit = static_cast<std::size_t>(std::countr_zero(ail));
                out.push_back(static_cast<NodeIndex>(w * 64 + bit));
            }
        });
    }
    return out;
}

void WorldCluster::count_slices(NodeIndex index) {
    for (Device& device : devices_) {
        const auto profile = device.profile[nodes_[index].group];
        if (profile) device.free[index] = mig_[index]->room(*profile);
    }
}

void WorldCluster::take(NodeIndex index, JobIndex job, std::int64_t gpus, std::uint32_t pool) {
    const WorldNode& node = nodes_[index];
    std::vector<JobIndex>& jobs = jobs_[index];
    RY_CHECK(gpus > 0 && node.state == NodeState::up);
    if (mig_[index]) {
        const auto profile = devices_[device_of_pool_[pool]].profile[node.group];
        RY_CHECK(gpus == 1 && profile && mig_[index]->room(*profile) > 0);
        list(index, -1);
        const auto kept = kept_places_.extract(job);
        mig_[index]->take(*profile, job, kept ? std::optional(kept.mapped()) : std::nullopt);
        count_slices(index);
        list(index, 1);
    } else {
        RY_CHECK(free(index, 0) >= gpus);
        set_free(index, free(index, 0) - gpus);
    }
    if (std::ranges::find(jobs, job) == jobs.end()) jobs.push_back(job);
    if (mig_[index] || free(index, 0) > 0 || jobs.size() > 1) return;
    alone_[index] = job;
    jobs.clear();
}

void WorldCluster::give_back(NodeIndex index, JobIndex job, std::int64_t gpus) {
    std::vector<JobIndex>& jobs = jobs_[index];
    const auto found = std::ranges::find(jobs, job);
    RY_CHECK(found != jobs.end());
    jobs.erase(found);
    if (mig_[index]) {
        list(index, -1);
        mig_[index]->give_back(job);
        count_slices(index);
        list(index, 1);
    } else {
        RY_CHECK(free(index, 0) + gpus <= nodes_[index].gpus);
        set_free(index, free(index, 0) + gpus);
    }
}

void WorldCluster::set_state(NodeIndex index, NodeState state) {
    list(index, -1);
    nodes_[index].state = state;
    list(index, 1);
    note_ailing(index);
}

void WorldCluster::set_broken(NodeIndex index, bool broken) {
    nodes_[index].broken = broken;
    note_ailing(index);
}

void WorldCluster::note_ailing(NodeIndex index) {
    if (nodes_[index].broken || nodes_[index].state != NodeState::up) {
        ailing_.add(index);
    } else {
        ailing_.remove(index);
    }
}

}  // namespace railyard
