#include "models/storage/raid_groups.h"

#include <fmt/format.h>

#include <algorithm>

namespace railyard {

namespace {

// Lost drives fall into different groups while there are groups that have all theirs.
std::int64_t lost_of_one(const RaidGroups& groups, const StoreState& state) {
    return std::min(groups.parity, (state.drives_down + groups.count - 1) / groups.count);
}

Bandwidth rebuild_rate(const StoreDesign& design, const RaidGroups& groups) {
    return design.drives.rebuild * groups.rebuild_speedup;
}

// Of a drive's time, what its group's rebuild leaves.
double free_time(const StoreDesign& design, const StoreState& state) {
    if (state.rebuilds == 0) return 1;
    const double taken =
        design.drives.rebuild.bytes_per_second() / design.drives.read.bytes_per_second();
    return std::max(0.0, 1 - taken);
}

}  // namespace

RaidGroups read_raid_groups(Section& storage, Section& own, Catalogue& catalogue,
                            const StoreDesign& design) {
    RaidGroups groups;
    groups.data = catalogue.integer("storage", design.name, "raid_data");
    groups.parity = catalogue.integer("storage", design.name, "raid_parity");
    own.read("data_drives", groups.data, "Drives of a RAID group that hold data",
             {.bound = Bound::count, .otherwise = "the system's, from the catalogue"});
    own.read("parity", groups.parity, "Drives of a RAID group that may be lost",
             {.bound = Bound::count, .otherwise = "the system's, from the catalogue"});
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
    const auto n = static_cast<double>(groups.drives());
    const auto lost = static_cast<double>(lost_of_one(groups, state));
    const double reads = 1 + lost / n * (static_cast<double>(groups.data) - 1);
    return static_cast<double>(groups.count) * (n - lost) / reads * free_time(design, state);
}

double raid_write_drives(const StoreDesign& design, const RaidGroups& groups,
                         const StoreState& state) {
    const auto n = static_cast<double>(groups.drives());
    const auto lost = static_cast<double>(lost_of_one(groups, state));
    return static_cast<double>(groups.count) * static_cast<double>(groups.data) * (n - lost) / n *
           free_time(design, state);
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
    p.groups = groups.count;
    p.group_drives = groups.drives();
    p.drives_lost_max = groups.parity;
    p.drive_capacity = design.drives.capacity;
    p.rebuild = rebuild_rate(design, groups);
    p.rebuild_reads = static_cast<double>(groups.data);
    p.lost_with_group = 1 / static_cast<double>(groups.count);
    return p;
}

}  // namespace railyard
