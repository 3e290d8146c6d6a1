// DeepSeek's 3FS: chains of replicas (CRAQ) over the drives of all servers; any replica of a chain serves
// reads, writes pass through all of them. Metadata is in FoundationDB.

#include <fmt/format.h>

#include "models/storage/spread_store.h"
#include "models/storage/storage_kinds.h"

namespace railyard {

std::unique_ptr<StorageSystem> build_threefs(Section& storage, Section& own, Catalogue& c,
                                             StoreDesign design) {
    const auto& name = design.name;
    std::int64_t replicas = c.integer("storage", name, "replicas");
    own.read("replicas", replicas, "Servers of a chain", {Bound::count});
    if (design.servers < replicas) {
        storage.error("servers",
                      fmt::format("a chain of {} replicas needs as many servers, found {}",
                                  replicas, design.servers),
                      fmt::format("storage.servers = {} or more", replicas));
    }
    SpreadSpec spec{.data = 1, .parity = replicas - 1};
    design.calls.all_at(c.rate("storage", name, "metadata_rate").per_second);
    read_latencies(c, design);
    spec.failover = c.time("storage", name, "failover_time");
    spec.rebuild = c.bandwidth("storage", name, "recovery_bandwidth_per_server");
    return make_spread_store(storage, design, spec);
}

}  // namespace railyard
