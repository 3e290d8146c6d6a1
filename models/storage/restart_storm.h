#pragma once
// A restart storm: every rank reads its checkpoint, its node the container image, and every rank the
// dataset's index, all from the same instant.

#include "models/catalogue/catalogue.h"
#include "models/storage/burst.h"

namespace railyard {

struct RestartStorm {
    std::int64_t ranks_per_node = 1;
    Bytes checkpoint_per_rank;
    std::int64_t files_per_rank = 1;
    Bandwidth load_bandwidth = unlimited;  // what one rank turns from files into tensors
    Bytes image;                           // one for each node, the same for all
    std::optional<Bandwidth> registry;     // that gives it; absent: the store does
    Bytes index;                           // each rank reads all of it; 0: there is none
};
// Its image and index as the catalogue estimates them.
RestartStorm typical_restart_storm(Catalogue& catalogue);

struct RestartTimes {
    BurstResult image;
    BurstResult checkpoint;
    BurstResult index;
    Duration all{};  // until the last of them
};
RestartTimes restart_storm(const BurstSpec& spec, const RestartStorm& storm);

}  // namespace railyard
