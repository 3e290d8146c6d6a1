#pragma once
// RAID groups of drives inside servers: what a lost drive leaves of a group, and what the groups hold.

#include "models/storage/store_design.h"

namespace railyard {

struct RaidGroups {
    std::int64_t count = 0;  // in the whole store
    std::int64_t data = 0;
    std::int64_t parity = 0;
    // Declustered: stripes of d + p lie at random on so many drives, of several groups and their spare space;
    // 0: each group is on drives of its own.
    std::int64_t array_drives = 0;
    double rebuild_speedup = 1;  // of those, over one spare drive that takes all writes
    std::int64_t drives() const { return data + parity; }
};

// Reads data_drives and parity of each group and says when a server has too few drives for one.
RaidGroups read_raid_groups(Section& storage, Section& own, Catalogue& catalogue,
                            const StoreDesign& design);

// The drives' worth of bandwidth that an evenly spread load finds, of the whole store: it ends with the
// slowest group, or array. With k of its N drives lost, k / N of its data is read back from d others each; a
// rebuild keeps its drives busy for a part of the time. Whole stripes are written, so of d + p drives d carry
// data.
double raid_read_drives(const StoreDesign& design, const RaidGroups& groups,
                        const StoreState& state);
double raid_write_drives(const StoreDesign& design, const RaidGroups& groups,
                         const StoreState& state);

StoreCapacity raid_capacity(const StoreDesign& design, const RaidGroups& groups);
// The groups' protection; what servers do for each other is the caller's.
Protection raid_protection(const StoreDesign& design, const RaidGroups& groups);

}  // namespace railyard
