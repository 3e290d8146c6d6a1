// Ceph: placement groups spread over the drives of all servers, three copies or erasure-coded; CephFS's
// metadata servers beside them.

#include <fmt/format.h>

#include "models/storage/spread_store.h"
#include "models/storage/storage_kinds.h"

namespace railyard {

std::unique_ptr<StorageSystem> build_ceph(Section& storage, Section& own, Catalogue& c,
                                          StoreDesign design) {
    const auto& name = design.name;
    std::int64_t copies = c.integer("storage", name, "replication");
    own.read("replication", copies, "Copies of each object", {Bound::count});
    SpreadSpec spec{.data = 1, .parity = copies - 1};
    own.read("data_drives", spec.data, "Drives of a stripe that hold data; 1: whole copies",
             {Bound::count});
    if (spec.data > 1) spec.parity = 2;
    own.read("parity", spec.parity, "Drives of a stripe that may be lost",
             {Bound::count, "replication - 1; 2 with data_drives"});
    if (own.has("replication") && (spec.data > 1 || own.has("parity"))) {
        own.error("replication", "an erasure-coded pool has no copies",
                  "either replication, or data_drives with parity");
    }
    if (spec.data > 1 && !design.server_write_given) {
        design.server_write = c.bandwidth("storage", name, "server_write_bandwidth_erasure");
    }
    const std::int64_t servers_min =
        std::max(c.integer("storage", name, "min_servers"), spec.data + spec.parity);
    if (design.servers < servers_min) {
        storage.error("servers",
                      fmt::format("{} on servers of their own need {}, found {}",
                                  spec.data > 1 ? "strips" : "copies", servers_min, design.servers),
                      fmt::format("storage.servers = {} or more", servers_min));
    }
    std::int64_t mds = c.integer("storage", name, "mds");
    own.read("mds", mds, "Metadata servers of CephFS at work", {Bound::count});
    design.calls.all_at(c.rate("storage", name, "mds_rate").per_second * real(mds));
    design.calls.create_latency = c.time("storage", name, "write_latency");
    design.calls.open_latency = design.calls.first_byte = c.time("storage", name, "read_latency");
    spec.failover = c.time("storage", name, "failover_time");
    spec.rebuild_after = c.time("storage", name, "osd_down_out_time");
    spec.rebuild = c.bandwidth("storage", name, "recovery_bandwidth_per_server");
    return make_spread_store(storage, design, spec);
}

}  // namespace railyard
