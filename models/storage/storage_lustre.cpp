// Lustre: metadata servers beside object storage servers (OSS), whose targets (OST) are RAID groups. A file
// lies on stripe_count of them. Servers stand in pairs that reach each other's targets. DDN EXAScaler is
// Lustre in appliances of two controllers.

#include <fmt/format.h>

#include <algorithm>

#include "models/storage/raid_groups.h"
#include "models/storage/storage_kinds.h"

namespace railyard {

namespace {

class LustreStore : public StorageSystem {
  public:
    struct Spec {
        RaidGroups groups;
        std::int64_t osts = 1;
        std::int64_t stripe_count = 1;
        std::int64_t pair = 2;     // servers that stand in for each other: 1, two controllers
        std::optional<Bytes> net;  // measured, of the whole store
        Duration failover{};
    };
    LustreStore(const StoreDesign& design, const Spec& spec) : d_(design), s_(spec) {}

    // Files lie where they were put, evenly: with half of a pair gone, what is on its targets moves at half
    // the speed, and a load on all targets ends with it. So one lost server costs what half of them would.
    StoreLimits limits(const StoreState& state) const override {
        const auto n = real(d_.servers);
        const double up = state.servers_down == 0 ? n : n / 2;
        StoreLimits out = sound_limits(d_);
        out.read = read_ceilings(d_, {up, raid_read_drives(d_, s_.groups, state), up});
        out.write = write_ceilings(d_, {up, raid_write_drives(d_, s_.groups, state), up});
        const double of_osts = real(std::min(s_.stripe_count, s_.osts)) / real(s_.osts);
        out.file_read = least(out.read).bandwidth * of_osts;
        out.file_write = least(out.write).bandwidth * of_osts;
        out.file_servers =
            std::min(s_.stripe_count, d_.servers);  // neighbouring OSTs are on different servers
        // The second of a pair goes last.
        const std::int64_t spread = d_.servers / s_.pair * (s_.pair == 1 ? 1 : s_.pair / 2);
        if (state.servers_down > spread) {
            out.unreachable = std::min(1.0, real((state.servers_down - spread) * s_.pair) / n);
        }
        return out;
    }

    StoreCapacity capacity() const override {
        StoreCapacity out = raid_capacity(d_, s_.groups);
        if (s_.net) {
            out.net = *s_.net;
            out.rule = fmt::format("{} appliances, measured usable", d_.servers);
        }
        return out;
    }

    Protection protection() const override {
        Protection p = raid_protection(d_, s_.groups);
        p.failover_servers = s_.pair == 1 ? 1 : 2;
        p.servers_lost_max = 1;
        p.failover = s_.failover;
        p.lost_with_group = std::min(1.0, real(s_.stripe_count) / real(s_.osts));
        return p;
    }

  private:
    StoreDesign d_;
    Spec s_;
};

// Settings of Lustre that do not depend on the hardware. `values` is its entry in the catalogue.
void read_lustre(Section& own, Catalogue& c, StoreDesign& design, LustreStore::Spec& spec) {
    const std::string values = "lustre";
    spec.stripe_count = c.integer("storage", values, "default_stripe_count");
    own.read("stripe_count", spec.stripe_count, "OSTs that one file is striped over",
             {Bound::count});
    if (spec.stripe_count > spec.osts && !own.describing()) {
        own.error("stripe_count",
                  fmt::format("{} OSTs are wanted for a file, {} servers have {}",
                              spec.stripe_count, design.servers, spec.osts),
                  fmt::format("at most {}, or more storage.servers", spec.osts));
    }
    std::int64_t mds = c.integer("storage", values, "mds");
    own.read("mds", mds, "Metadata servers at work; each has a standby", {Bound::count});
    const auto rate = [&](const char* key) {
        return c.rate("storage", values, key).per_second * real(mds);
    };
    design.calls.creates_per_s = rate("mds_create_rate");
    design.calls.opens_per_s = rate("mds_mixed_rate");
    design.calls.stats_per_s = rate("mds_stat_rate");
    design.calls.removes_per_s = rate("mds_unlink_rate");
    design.calls.create_latency = from_seconds(
        1 / c.rate("storage", values, "small_file_create_rate_single_thread").per_second);
    design.calls.open_latency = c.time("storage", values, "open_latency");
    spec.failover = c.time("storage", values, "failover_time");
    own.read("failover_time", spec.failover, "From a server's loss until its partner serves for it",
             {Bound::non_negative, "from the catalogue"});
}

}  // namespace

std::unique_ptr<StorageSystem> build_lustre(Section& storage, Section& own, Catalogue& c,
                                            StoreDesign design) {
    LustreStore::Spec spec;
    spec.groups = read_raid_groups(storage, own, c, design);
    spec.osts = spec.groups.count;
    const std::int64_t oss_min = c.integer("storage", design.name, "min_servers") / 2;
    if (design.servers < oss_min) {
        storage.error(
            "servers",
            fmt::format("Lustre's OSS stand in pairs that fail over: {} are the least, found {}",
                        oss_min, design.servers),
            "its metadata servers are counted by storage.lustre.mds");
    }
    read_lustre(own, c, design, spec);
    return std::make_unique<LustreStore>(design, spec);
}

std::unique_ptr<StorageSystem> build_exascaler(Section& storage, Section& own, Catalogue& c,
                                               StoreDesign design) {
    LustreStore::Spec spec;
    const auto& name = design.name;
    const std::int64_t drives = c.integer("storage", name, "nvme_drives");
    if (design.drives.count == 0 && !design.drives.capacity_given) {
        spec.net = c.data("storage", name, "usable_capacity") * design.servers;
    }
    if (design.drives.count == 0) design.drives.count = drives;
    if (!design.drives.capacity_given) {
        design.drives.capacity =
            Bytes::of(c.data("storage", name, "raw_capacity").count() / drives);
    }
    spec.groups = read_raid_groups(storage, own, c, design);
    spec.osts = c.integer("storage", name, "osts") * design.servers;
    spec.pair = 1;
    read_lustre(own, c, design, spec);
    return std::make_unique<LustreStore>(design, spec);
}

}  // namespace railyard
