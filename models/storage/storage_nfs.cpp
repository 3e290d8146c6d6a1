// A single NFS server with a RAID group or more behind it.

#include <fmt/format.h>

#include "models/storage/raid_groups.h"
#include "models/storage/storage_kinds.h"

namespace railyard {

namespace {

class NfsStore : public StorageSystem {
  public:
    struct Spec {
        RaidGroups groups;
        bool pair = false;
        Duration failover{};
    };
    NfsStore(const StoreDesign& design, const Spec& spec) : d_(design), s_(spec) {}

    StoreLimits limits(const StoreState& state) const override {
        StoreLimits out = sound_limits(d_);
        out.read = read_ceilings(d_, {1, raid_read_drives(d_, s_.groups, state), 1});
        out.write = write_ceilings(d_, {1, raid_write_drives(d_, s_.groups, state), 1});
        out.file_read = d_.client_read;
        out.file_write = d_.client_write;
        if (state.servers_down > (s_.pair ? 1 : 0)) stop(out);
        return out;
    }

    StoreCapacity capacity() const override { return raid_capacity(d_, s_.groups); }
    Protection protection() const override {
        Protection p = raid_protection(d_, s_.groups);
        // Hard mounts hang until the server is back, or its standby has taken over.
        p.servers = s_.pair ? 2 : 1;
        p.servers_lost_max = s_.pair ? 1 : 0;
        p.waits_for_server = !s_.pair;
        if (s_.pair) p.failover = s_.failover;
        p.lost_with_group = 1 / real(s_.groups.count);
        return p;
    }

  private:
    StoreDesign d_;
    Spec s_;
};

}  // namespace

std::unique_ptr<StorageSystem> build_nfs(Section& storage, Section& own, Catalogue& c,
                                         StoreDesign design) {
    const auto& name = design.name;
    NfsStore::Spec spec;
    spec.groups = read_raid_groups(storage, own, c, design);
    own.read("failover_pair", spec.pair, "A standby takes over when the server is lost");
    if (design.servers != 1) {
        storage.error("servers", fmt::format("nfs_single is one server, found {}", design.servers),
                      "another storage.system: the servers of \"generic\" add up");
    }
    StoreCalls& calls = design.calls;
    calls.all_at(c.rate("storage", name, "metadata_rate").per_second);
    calls.create_latency = calls.open_latency = calls.first_byte =
        c.time("storage", name, "latency");
    spec.failover = c.time("storage", name, "failover_time");
    return std::make_unique<NfsStore>(design, spec);
}

}  // namespace railyard
