#include "models/storage/raid_groups.h"

#include <fmt/format.h>

#include <algorithm>

namespace railyard {

namespace {

// Drives that share stripes, and how many such sets there are.
struct Arrays {
    std::int64_t drives = 0;
    std::int64_t count = 0;
};

Arrays arrays_of(const StoreDesign& design, const RaidGroups& groups) {
    if (groups.array_drives == 0) return {groups.drives(), groups.count};
    return {groups.array_drives, design.drive_count() / groups.array_drives};
}

// Lost drives fall into different arrays while there are some that have all theirs.
std::int64_t lost_of_one(const Arrays& arrays, const RaidGroups& groups, const StoreState& state) {
    return std::min(groups.parity, (state.drives_down + arrays.count - 1) / arrays.count);
}

Bandwidth rebuild_rate(const StoreDesign& design, const RaidGroups& groups) {
    return design.drives.rebuild * groups.rebuild_speedup;
}

// The share of a drive's time that a rebuild leaves: in a group of its own each drive is read as fast as the
// lost one is written, in an array d reads of each byte are spread over all.
double free_time(const StoreDesign& design, const RaidGroups& groups, const StoreState& state) {
    if (state.rebuilds == 0) return 1;
    const double of_one =
        groups.array_drives == 0 ? 1 : real(groups.data) / real(groups.array_drives);
    const double taken = rebuild_rate(design, groups).bytes_per_second() * of_one /
                         design.drives.read.bytes_per_second();
    return std::max(0.0, 1 - taken);
}

}  // namespace

RaidGroups read_raid_groups(Section& storage, Section& own, Catalogue& catalogue,
                            const StoreDesign& design) {
    RaidGroups groups;
    groups.data = catalogue.integer("storage", design.name, "raid_data");
    groups.parity = catalogue.integer("storage", design.name, "raid_parity");
    own.read("data_drives", groups.data, "Drives of a RAID group that hold data",
             {Bound::count, "the system's, from the catalogue"});
    own.read("parity", groups.parity, "Drives of a RAID group that may be lost",
             {Bound::count, "the system's, from the catalogue"});
    const std::int64_t of_server = design.drives.count / groups.drives();
    if (of_server == 0 && !storage.describing()) {
        storage.error("drives_per_server",
                      fmt::format("{} drives do not make one RAID group of {}+{}",
                                  design.drives.count, groups.data, groups.parity),
                      fmt::format("at least {} drives, or smaller groups", groups.drives()));
    }
    groups.count = std::max<std::int64_t>(1, of_server) * design.servers;
    return groups;
}

double raid_read_drives(const StoreDesign& design, const RaidGroups& groups,
                        const StoreState& state) {
    const Arrays arrays = arrays_of(design, groups);
    const auto n = real(arrays.drives);
    const auto lost = real(lost_of_one(arrays, groups, state));
    const double reads = 1 + lost / n * (real(groups.data) - 1);
    return real(arrays.count) * (n - lost) / reads * free_time(design, groups, state);
}

double raid_write_drives(const StoreDesign& design, const RaidGroups& groups,
                         const StoreState& state) {
    const Arrays arrays = arrays_of(design, groups);
    const auto left = real(arrays.drives - lost_of_one(arrays, groups, state));
    return real(arrays.count) * real(groups.data) * left / real(groups.drives()) *
           free_time(design, groups, state);
}

StoreCapacity raid_capacity(const StoreDesign& design, const RaidGroups& groups) {
    const std::int64_t spares = design.drive_count() - groups.count * groups.drives();
    return {design.raw(), design.drives.capacity * (groups.count * groups.data),
            fmt::format("{} groups x {} of {}+{} drives x {}{}", groups.count, groups.data,
                        groups.data, groups.parity, to_text(design.drives.capacity),
                        spares > 0 ? fmt::format("; {} drives are spare", spares) : "")};
}

Protection raid_protection(const StoreDesign& design, const RaidGroups& groups) {
    Protection p;
    p.servers = design.servers;
    const Arrays arrays = arrays_of(design, groups);
    p.groups = arrays.count;
    p.group_drives = arrays.drives;
    p.stripe_drives = groups.drives();
    p.drives_lost_max = groups.parity;
    p.drive_capacity = design.drives.capacity;
    p.rebuild = rebuild_rate(design, groups);
    p.rebuild_reads = real(groups.data);
    p.lost_with_group = 1 / real(arrays.count);
    return p;
}

}  // namespace railyard
