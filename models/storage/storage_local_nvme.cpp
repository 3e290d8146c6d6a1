// Drives inside the nodes, striped without protection (RAID 0): each node has its own, and they are lost
// with it.

#include <fmt/format.h>

#include <algorithm>

#include "models/storage/storage_kinds.h"

namespace railyard {

namespace {

class LocalNvmeStore : public StorageSystem {
  public:
    struct Spec {
        Bytes node_capacity;
    };
    // design.servers are the nodes.
    LocalNvmeStore(const StoreDesign& design, const Spec& spec) : d_(design), s_(spec) {}

    StoreLimits limits(const StoreState& state) const override {
        const auto n = real(d_.servers);
        // An array dies with any of its drives.
        const double up = std::max(0.0, n - real(state.servers_down + state.drives_down));
        const double drives = real(d_.drive_count()) * up / n;
        StoreLimits out = sound_limits(d_);
        out.read = read_ceilings(d_, {up, drives, up});
        out.write = write_ceilings(d_, {up, drives, up});
        const StoreLimits sound = sound_limits(d_);
        out.client_read = least(sound.read).bandwidth * (1 / n);
        out.client_write = least(sound.write).bandwidth * (1 / n);
        out.file_read = out.client_read;
        out.file_write = out.client_write;
        out.unreachable = 1 - up / n;
        out.over_network = false;
        return out;
    }

    StoreCapacity capacity() const override {
        const Bytes all = s_.node_capacity * d_.servers;
        return {all, all,
                fmt::format("{} x {} nodes, RAID 0", to_text(s_.node_capacity), d_.servers)};
    }

    Protection protection() const override {
        Protection p;
        p.servers = d_.servers;
        p.failover_servers = 1;
        p.servers_hold_data = true;
        p.waits_for_server = true;
        p.groups = d_.servers;
        p.group_drives = d_.drives.count;
        p.drive_capacity = d_.drives.capacity;
        p.spare_drives = 0;
        p.lost_with_group = 1 / real(d_.servers);
        return p;
    }

  private:
    StoreDesign d_;
    Spec s_;
};

}  // namespace

std::unique_ptr<StorageSystem> build_local_nvme(Section&, Section&, Catalogue& c,
                                                StoreDesign design) {
    const auto& name = design.name;
    const auto& node = design.site.node;
    LocalNvmeStore::Spec spec;
    design.nics_bound = false;
    const bool known =
        c.has("node", node, "local_nvme") && c.has("node", node, "local_nvme_drives");
    const std::int64_t drives =
        known ? c.integer("node", node, "local_nvme_drives") : c.integer("storage", name, "drives");
    const Bytes capacity =
        known ? c.data("node", node, "local_nvme") : c.data("storage", name, "capacity");
    if (design.drives.count == 0) design.drives.count = drives;
    if (!design.drives.capacity_given) {
        design.drives.capacity = Bytes::of(capacity.count() / drives);
    }
    spec.node_capacity = design.drives.capacity * design.drives.count;
    design.calls.create_latency = from_seconds(
        1 / c.rate("storage", name, "small_file_create_rate_single_thread").per_second);
    design.calls.open_latency = c.time("storage", name, "open_latency");
    design.calls.first_byte = c.time("storage", name, "latency");
    return std::make_unique<LocalNvmeStore>(design, spec);
}

}  // namespace railyard
