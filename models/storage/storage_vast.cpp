// VAST: CNodes without state in front of DBoxes, which all of them reach over NVMe-oF. Writes land in SCM,
// and move on to wide stripes over the drives of all boxes.

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "models/storage/storage_kinds.h"

namespace railyard {

namespace {

const std::vector<std::string> box_models = {"ceres", "maverick"};

class VastStore : public StorageSystem {
  public:
    struct Spec {
        std::int64_t boxes = 1;
        bool box_ha = false;
        std::int64_t data = 0;
        std::int64_t parity = 0;
        Bandwidth box_read;
        Bandwidth box_write;  // into SCM, redundancy included
        Bandwidth box_drain;  // from SCM to the drives, likewise
        Bytes box_buffer;
        double buffer_written = 1;  // bytes in SCM for each that is written
        double reconstruction = 1;  // of a stripe, what is read for a lost strip
        double metadata_per_s = 0;  // one CNode
        Duration rebuild_time{};    // of one drive
    };
    // design.servers are CNodes; design.drives those of one box.
    VastStore(const StoreDesign& design, const Spec& spec) : d_(design), s_(spec) {}

    StoreLimits limits(const StoreState& state) const override {
        const double cnodes = real(std::max<std::int64_t>(0, d_.servers - state.servers_down));
        const auto all = real(s_.boxes);
        const double boxes = real(std::max<std::int64_t>(0, s_.boxes - state.boxes_down));
        const double lost = 1 - boxes / all + real(state.drives_down) / real(drives());
        const double reads = 1 + lost * std::max(0.0, reads_per_lost() - 1);

        StoreLimits out = sound_limits(d_);
        // The drives are the boxes' business: design.drives counts those of a box.
        StoreDesign front = d_;
        front.drives.bound = false;
        out.read = read_ceilings(front, {cnodes, 0, cnodes});
        out.read.push_back({"DBoxes", s_.box_read * (boxes / reads)});
        out.write = write_ceilings(front, {cnodes, 0, cnodes});
        out.write.push_back({"write buffer", s_.box_write * (boxes / s_.buffer_written)});
        out.write_buffer = share_of(s_.box_buffer, boxes / s_.buffer_written);
        out.drain = drain(boxes);
        if (state.rebuilds > 0) {
            std::vector<Ceiling> left = {out.read.back()};
            take(left, rebuild() * (real(state.rebuilds) * reads_per_lost()));
            out.read.back() = left.front();
        }
        if (state.write_buffer_full) out.write.push_back({"write buffer's drain", out.drain});
        out.all_at(s_.metadata_per_s * cnodes);
        // Stripes span all boxes.
        if (state.boxes_down > (s_.box_ha ? 1 : 0) || cnodes == 0) stop(out);
        return out;
    }

    StoreCapacity capacity() const override {
        const Bytes raw = d_.drives.capacity * drives();
        return {raw, share_of(raw, real(s_.data) / stripe()),
                fmt::format("raw x {}/{}", s_.data, s_.data + s_.parity)};
    }

    Protection protection() const override {
        Protection p;
        p.servers = d_.servers;
        p.servers_lost_max = d_.servers - 1;
        p.boxes = s_.boxes;
        p.boxes_lost_max = s_.box_ha ? 1 : 0;
        p.groups = 1;
        p.group_drives = drives();
        p.stripe_drives = s_.data + s_.parity;
        p.drives_lost_max = s_.parity;
        p.drive_capacity = d_.drives.capacity;
        p.rebuild = rebuild();
        p.rebuild_reads = reads_per_lost();
        p.rebuild_over_all = true;
        return p;
    }

  private:
    double stripe() const { return real(s_.data + s_.parity); }
    std::int64_t drives() const { return s_.boxes * d_.drives.count; }
    double reads_per_lost() const { return s_.reconstruction * stripe(); }
    Bandwidth rebuild() const {
        const double bytes_per_s = real(d_.drives.capacity.count()) / seconds(s_.rebuild_time);
        return Bandwidth::bits_per_second(std::llround(8 * bytes_per_s));
    }

    Bandwidth drain(double boxes) const {
        return s_.box_drain * (boxes * real(s_.data) / stripe());
    }

    StoreDesign d_;
    Spec s_;
};

void check_boxes(Section& own, const VastStore::Spec& spec, int model, std::int64_t ha_min) {
    if (!spec.box_ha || spec.boxes >= ha_min) return;
    own.error("dboxes",
              fmt::format("DBox HA on {} needs {} DBoxes, found {}", box_models[model], ha_min,
                          spec.boxes),
              fmt::format("storage.vast.dboxes = {}, or dbox_ha = false: then a lost DBox stops "
                          "the store until it is back",
                          ha_min));
}

void read_rates(Section& own, Catalogue& c, const std::string& name, VastStore::Spec& spec) {
    spec.box_read = c.bandwidth("storage", name, "dbox_read_bandwidth");
    spec.box_write = c.bandwidth("storage", name, "dbox_write_bandwidth");
    spec.box_drain = c.bandwidth("storage", name, "dbox_drain_bandwidth");
    spec.box_buffer = c.data("storage", name, "scm_capacity_per_dbox");
    own.read("dbox_read_bandwidth", spec.box_read, "What one DBox gives",
             {Bound::positive, "from the catalogue"});
    own.read("dbox_write_bandwidth", spec.box_write, "What one DBox's SCM takes, copies included",
             {Bound::positive, "from the catalogue"});
    own.read("drain_bandwidth", spec.box_drain, "What one DBox moves from SCM to its drives",
             {Bound::positive, "from the catalogue"});
    own.read("write_buffer", spec.box_buffer, "SCM of one DBox that takes writes",
             {Bound::positive, "from the catalogue"});
}

// Keys that a DBox has no use for, and a network that can't reach it.
void check_surroundings(Section& storage, const StoreSite& site) {
    warn_of_keys(storage,
                 {"drive_read_bandwidth", "drive_write_bandwidth", "drive_rebuild_bandwidth"},
                 "has no effect with storage.system = \"vast\": a DBox is described as a whole, by "
                 "storage.vast.dbox_read_bandwidth and its like");
    if (!site.rdma && !storage.describing()) {
        storage.error("system",
                      fmt::format("VAST's CNodes reach their DBoxes over NVMe-oF, which needs RoCE "
                                  "or InfiniBand: {} is \"tcp\"",
                                  site.network),
                      fmt::format("{} = \"roce\" or \"infiniband\"", site.network));
    }
}

}  // namespace

std::unique_ptr<StorageSystem> build_vast(Section& storage, Section& own, Catalogue& c,
                                          StoreDesign design) {
    const auto& name = design.name;
    VastStore::Spec spec;
    int model = 0;
    own.choose("model", model, box_models, "What the DBoxes are");
    const bool ceres = model == 0;
    own.read("dbox_ha", spec.box_ha, "Stripes survive the loss of a whole DBox");
    const std::int64_t ha_min =
        c.integer("storage", name, ceres ? "dbox_ha_min_ceres" : "dbox_ha_min_maverick");
    spec.boxes = spec.box_ha ? ha_min : c.integer("storage", name, "min_dboxes");
    own.read("dboxes", spec.boxes, "DBoxes; storage.servers counts the CNodes",
             {Bound::count, "1; with dbox_ha as many as that needs: 15 of ceres, 22 of maverick"});
    check_boxes(own, spec, model, ha_min);
    if (design.drives.count == 0) {
        design.drives.count =
            c.integer("storage", name, ceres ? "ceres_drives" : "maverick_drives");
    }
    spec.parity = c.integer("storage", name, "parity");
    // Four drives stay out of each stripe. A box's loss must cost no more strips than parity restores.
    const std::int64_t data_max = c.integer("storage", name, "stripe_data_max");
    const std::int64_t drives = spec.boxes * design.drives.count;
    spec.data = std::min(data_max, drives - 4 - spec.parity);
    if (spec.box_ha) spec.data = std::min(spec.data, spec.parity * (spec.boxes - 1));
    const std::int64_t data_min = c.integer("storage", name, "stripe_data_min");
    if (spec.data < data_min && !own.describing()) {
        storage.error("drives_per_server",
                      fmt::format("{} drives in {} DBoxes do not make a stripe of {}+{}", drives,
                                  spec.boxes, data_min, spec.parity),
                      fmt::format("at least {} drives", data_min + spec.parity + 4));
        spec.data = data_min;
    }
    read_rates(own, c, name, spec);
    // RAID 6 over the boxes, where there are enough of them; else each write is there twice.
    const bool raid = spec.boxes >= c.integer("storage", name, "write_buffer_raid_min_dboxes");
    const auto boxes = real(spec.boxes);
    spec.buffer_written = raid ? boxes / (boxes - 2) : 2;
    spec.reconstruction = c.number("storage", name, "reconstruction_read_fraction");
    spec.metadata_per_s = c.rate("storage", name, "metadata_rate_per_cnode").per_second;
    spec.rebuild_time = c.time("storage", name, "rebuild_time_per_ssd");
    design.calls.open_latency = design.calls.first_byte = c.time("storage", name, "read_latency");
    design.calls.create_latency = c.time("storage", name, "write_latency");
    check_surroundings(storage, design.site);
    return std::make_unique<VastStore>(design, spec);
}

}  // namespace railyard
