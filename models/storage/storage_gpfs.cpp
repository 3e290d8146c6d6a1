// IBM Storage Scale (GPFS): building blocks of two servers that share an enclosure of declustered RAID.
// Files are striped over all of them, and every server takes part in metadata.

#include <fmt/format.h>

#include <algorithm>

#include "models/storage/raid_groups.h"
#include "models/storage/storage_kinds.h"

namespace railyard {

namespace {

class GpfsStore : public StorageSystem {
  public:
    struct Spec {
        RaidGroups groups;
        Duration failover{};
    };
    GpfsStore(const StoreDesign& design, const Spec& spec) : d_(design), s_(spec) {}

    // A file's stripes are on all building blocks, so it moves at the pace of the one that lost a server.
    StoreLimits limits(const StoreState& state) const override {
        const auto n = real(d_.servers);
        const double up = state.servers_down == 0 ? n : n / 2;
        StoreLimits out = sound_limits(d_);
        out.read = read_ceilings(d_, {up, raid_read_drives(d_, s_.groups, state), up});
        out.write = write_ceilings(d_, {up, raid_write_drives(d_, s_.groups, state), up});
        // With both servers of a block gone, every striped file misses a part.
        if (state.servers_down > d_.servers / 2) stop(out);
        return out;
    }

    StoreCapacity capacity() const override { return raid_capacity(d_, s_.groups); }
    Protection protection() const override {
        Protection p = raid_protection(d_, s_.groups);
        p.failover_servers = 2;
        p.servers_lost_max = 1;
        p.rebuild_over_all = true;
        p.failover = s_.failover;
        p.lost_with_group = 1;  // files are striped over all groups
        return p;
    }

  private:
    StoreDesign d_;
    Spec s_;
};

}  // namespace

std::unique_ptr<StorageSystem> build_gpfs(Section& storage, Section& own, Catalogue& c,
                                          StoreDesign design) {
    const auto& name = design.name;
    GpfsStore::Spec spec;
    spec.groups = read_raid_groups(storage, own, c, design);
    spec.groups.array_drives = 2 * design.drives.count;  // of a building block
    spec.groups.rebuild_speedup = c.number("raid", "", "declustered_speedup");
    const std::int64_t servers_min = c.integer("storage", name, "min_servers");
    if (design.servers < servers_min || design.servers % 2 != 0) {
        storage.error(
            "servers",
            fmt::format("Storage Scale's servers come in building blocks of two: found {}",
                        design.servers),
            fmt::format("{} or {}", std::max(servers_min, design.servers - 1),
                        std::max(servers_min, design.servers + 1)));
    }
    design.calls.all_at(c.rate("storage", name, "metadata_rate").per_second);
    read_latencies(c, design);
    spec.failover = c.time("storage", name, "failover_time");
    return std::make_unique<GpfsStore>(design, spec);
}

}  // namespace railyard
