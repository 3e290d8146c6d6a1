#include "models/campaign/host_memory.h"

#include <fmt/format.h>

#include <algorithm>

namespace railyard {

namespace {

void add_data(std::vector<HostMemoryUse>& uses, const Scenario& s) {
    const DataLoading& data = *s.data;
    const auto nodes = real(s.job.nodes);
    const auto bytes = [](Bytes b) { return real(b.count()); };
    uses.push_back({"page cache", "data", bytes(data.page_cache)});
    uses.push_back({"prefetch queues", "data", data.flow.queue_bytes / nodes});
    uses.push_back({"shuffle buffers", "data", bytes(data.shuffle_buffers) / nodes});
}

void add_state(std::vector<HostMemoryUse>& uses, const Scenario& s) {
    const CheckpointSpec& c = s.job.checkpoint;
    const double share = real(c.size.count()) / real(s.checkpoint_writers.nodes);
    if (c.mode == CheckpointMode::async && !c.snapshot_is_a_copy()) {
        uses.push_back({"snapshots", "checkpoint", share * real(c.buffers)});
    }
    for (const TierSpec& tier : c.tiers) {
        const double kept = share * real(tier.keep);
        if (tier.place == Place::host_memory) uses.push_back({"copies", "checkpoint", kept});
        if (tier.place == Place::peer_memory) {
            uses.push_back({"copies, the peer's too", "checkpoint", 2 * kept});
        }
    }
}

std::string text(double bytes) {
    return to_text(Bytes::of(static_cast<std::int64_t>(std::min(bytes, 9e18))));
}

}  // namespace

std::vector<HostMemoryUse> host_memory_uses(const Scenario& s) {
    std::vector<HostMemoryUse> uses;
    if (s.data) add_data(uses, s);
    if (s.job.checkpoint.mode != CheckpointMode::none) add_state(uses, s);
    if (s.plan.offload_layers > 0) {
        const double gpus = real(s.job.gpus_per_node);
        uses.push_back({"activations", "parallel", gpus * host_bytes_per_gpu(s.model, s.plan)});
    }
    std::erase_if(uses, [](const HostMemoryUse& use) { return use.bytes < 1; });
    return uses;
}

// With a GPU's part of what all but activations leave of its node's memory.
PlanTask plan_task(const Scenario& s) {
    PlanTask task{s.model, s.plan, s.plan.gpus(), s.parameter_bytes, s.optimizer_traffic};
    StandaloneCatalogue own = s.open_catalogue();
    if (!own.catalogue.has("node", s.node.name, "host_memory")) return task;
    Scenario others = s;
    others.plan.offload_layers = 0;
    double left = real(own.catalogue.data("node", s.node.name, "host_memory").count());
    for (const HostMemoryUse& use : host_memory_uses(others)) left -= use.bytes;
    task.host_bytes_per_gpu = std::max(0.0, left) / real(s.job.gpus_per_node);
    return task;
}

void check_host_memory(Section& job, Catalogue& catalogue, const Scenario& s) {
    if (!catalogue.has("node", s.node.name, "host_memory")) return;
    const std::vector<HostMemoryUse> uses = host_memory_uses(s);
    double sum = 0;
    std::string parts;
    for (const HostMemoryUse& use : uses) {
        sum += use.bytes;
        parts += fmt::format("{}{} {}", parts.empty() ? "" : ", ", text(use.bytes), use.what);
    }
    const Bytes there = catalogue.data("node", s.node.name, "host_memory");
    if (sum <= real(there.count())) return;
    job.error(std::ranges::max_element(uses, {}, &HostMemoryUse::bytes)->section,
              fmt::format("{} do not fit into the {} of memory of each node: {}", text(sum),
                          to_text(there), parts),
              "keep less there, or spread the job over more nodes");
}

}  // namespace railyard
