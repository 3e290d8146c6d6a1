// BeeGFS: storage servers whose targets are RAID groups, and metadata servers. Without buddy mirrors nobody
// serves for a server that is gone; with them each chunk is on two servers, and half of the space holds
// copies.

#include <fmt/format.h>

#include <algorithm>

#include "models/storage/raid_groups.h"
#include "models/storage/storage_kinds.h"

namespace railyard {

namespace {

class BeegfsStore : public StorageSystem {
  public:
    struct Spec {
        RaidGroups groups;
        std::int64_t stripe_count = 1;
        bool mirrored = false;
        Duration failover{};
    };
    BeegfsStore(const StoreDesign& design, const Spec& spec) : d_(design), s_(spec) {}

    // Chunks lie where they were put, as Lustre's: the buddy of a lost server serves both their chunks, and a
    // load on all targets ends with it.
    StoreLimits limits(const StoreState& state) const override {
        const auto n = real(d_.servers);
        const double gone = std::min(n, real(state.servers_down));
        const double up = s_.mirrored && gone > 0 ? n / 2 : n - gone;
        const double copies = s_.mirrored && gone == 0 ? 2 : 1;
        StoreLimits out = sound_limits(d_);
        const double left = s_.mirrored ? 1 : up / n;
        out.read = read_ceilings(d_, {up, raid_read_drives(d_, s_.groups, state) * left, up});
        out.write = write_ceilings(
            d_,
            {up / copies, raid_write_drives(d_, s_.groups, state) * left / copies, up / copies});
        out.file_read = least(out.read).bandwidth * of_targets();
        out.file_write = least(out.write).bandwidth * of_targets();
        out.file_servers = std::min(s_.stripe_count, d_.servers);
        const double lost = s_.mirrored ? std::max(0.0, gone - n / 2) * 2 / n : gone / n;
        // A file waits when any of its targets does.
        out.unreachable = std::min(1.0, lost * real(s_.stripe_count));
        return out;
    }

    StoreCapacity capacity() const override {
        StoreCapacity out = raid_capacity(d_, s_.groups);
        if (s_.mirrored) {
            out.net = Bytes::of(out.net.count() / 2);
            out.rule += ", twice";
        }
        return out;
    }

    Protection protection() const override {
        Protection p = raid_protection(d_, s_.groups);
        p.failover_servers = s_.mirrored ? 2 : 1;
        p.servers_lost_max = s_.mirrored ? 1 : 0;
        p.waits_for_server = !s_.mirrored;
        if (s_.mirrored) p.failover = s_.failover;
        p.lost_with_group = of_targets();
        return p;
    }

  private:
    // Targets that one file is on, of all.
    double of_targets() const {
        return real(std::min(s_.stripe_count, s_.groups.count)) / real(s_.groups.count);
    }

    StoreDesign d_;
    Spec s_;
};

}  // namespace

std::unique_ptr<StorageSystem> build_beegfs(Section& storage, Section& own, Catalogue& c,
                                            StoreDesign design) {
    const auto& name = design.name;
    BeegfsStore::Spec spec;
    spec.groups = read_raid_groups(storage, own, c, design);
    spec.stripe_count = c.integer("storage", name, "stripe_count");
    own.read("stripe_count", spec.stripe_count, "Targets that one file is striped over",
             {Bound::count});
    own.read("buddy_mirror", spec.mirrored, "Each chunk is on two servers");
    std::int64_t mds = c.integer("storage", name, "mds");
    own.read("mds", mds, "Metadata servers", {Bound::count});
    const std::int64_t servers_min = c.integer("storage", name, "min_servers");
    if (design.servers < servers_min) {
        storage.error("servers",
                      fmt::format("BeeGFS starts with {} storage servers, found {}", servers_min,
                                  design.servers),
                      fmt::format("storage.servers = {} or more", servers_min));
    } else if (spec.mirrored && design.servers % 2 != 0) {
        own.error("buddy_mirror",
                  fmt::format("buddies are pairs of servers, and {} is odd", design.servers),
                  fmt::format("storage.servers = {}", design.servers + 1));
    }
    if (spec.stripe_count > spec.groups.count && own.has("stripe_count")) {
        own.error("stripe_count",
                  fmt::format("{} targets are wanted for a file, {} servers have {}",
                              spec.stripe_count, design.servers, spec.groups.count),
                  fmt::format("at most {}", spec.groups.count));
    }
    design.calls.all_at(c.rate("storage", name, "metadata_create_rate_per_mds").per_second *
                        real(mds));
    read_latencies(c, design);
    spec.failover = c.time("storage", name, "failover_time");
    return std::make_unique<BeegfsStore>(design, spec);
}

}  // namespace railyard
