#include "models/storage/neighbour_reader.h"

#include <fmt/format.h>

#include <algorithm>

namespace railyard {

namespace {

NeighbourSpec read_neighbour(Section& section, const StoreSetup& store, std::int64_t job_nodes,
                             bool fair_by_job) {
    NeighbourSpec n;
    section.read("name", n.name, "What it is called", {.required = true});
    std::int64_t nodes = job_nodes;
    section.read("nodes", nodes, "Its nodes, of the same kind: its share of the store",
                 {Bound::count, "as many as the job's"});
    section.read("checkpoint", n.checkpoint, "Bytes of each of its checkpoints",
                 {Bound::non_negative, "0: it saves nothing"});
    section.read("files", n.files, "Files that a checkpoint creates", {Bound::non_negative});
    std::optional<Duration> every;
    section.read("every", every, "From the start of a checkpoint to the next one's",
                 {Bound::positive, "needed with checkpoint"});
    section.read("start", n.start, "When its first checkpoint starts",
                 {Bound::non_negative, "at random within every"});
    section.read("reads", n.reads, "What it asks to read all the time",
                 {Bound::non_negative, "0: it reads nothing"});
    section.finish();
    if (section.describing() || !section.ok()) return n;
    n.every = every.value_or(Duration{});
    n.weight = fair_by_job ? 1 : nodes;
    n.network_read = store.limits.client_read * nodes;
    n.network_write = store.limits.client_write * nodes;
    if (n.checkpoint > Bytes{} && !every) {
        section.error("every", "is missing: how often does it save?");
    }
    if (n.checkpoint == Bytes{}) {
        warn_of_keys(section, {"files", "every", "start"}, "has no effect without checkpoint");
    }
    if (!store.limits.over_network) {
        section.error("name", "[storage] is in the job's own nodes: no other job is on it");
    }
    if (store.capacity > Bytes{} && n.checkpoint > store.capacity) {
        section.error("checkpoint", fmt::format("does not fit into the {} of {}",
                                                to_text(store.capacity), store.name));
    }
    if (n.checkpoint == Bytes{} && n.reads.bits_per_second() == 0) {
        section.error("reads", "a neighbour that neither saves nor reads is none",
                      "give checkpoint and every, or reads");
    }
    return n;
}

}  // namespace

std::vector<NeighbourSpec> read_neighbours(Section& top, const StoreSetup& store,
                                           std::int64_t job_nodes, bool fair_by_job) {
    std::vector<NeighbourSpec> all;
    for (Section& section : top.sections("neighbour", "Another job on the same store")) {
        NeighbourSpec n = read_neighbour(section, store, job_nodes, fair_by_job);
        const auto same = [&](const NeighbourSpec& other) { return other.name == n.name; };
        if (std::ranges::any_of(all, same)) {
            section.error("name", fmt::format("there are two neighbours '{}'", n.name));
        }
        all.push_back(std::move(n));
    }
    return all;
}

}  // namespace railyard
