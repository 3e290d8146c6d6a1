#pragma once
// Stores that spread each piece of data over a few of all drives, as copies or as coded strips, each on
// another server: Ceph, 3FS, WEKA, object stores. What is lost moves to the servers that are left.

#include <memory>
#include <optional>

#include "models/storage/store_design.h"

namespace railyard {

struct SpreadSpec {
    std::int64_t data = 1;    // strips of a piece; 1: whole copies
    std::int64_t parity = 2;  // strips more; copies more
    // Servers' worth of space that is kept free; not set: none of its own, but no store is full, and what is
    // lost finds room.
    std::optional<std::int64_t> spares;
    double overhead = 0;  // of the file system, of raw capacity
    // A server takes in what clients send, and its share of the strips that all servers send around. Else
    // clients send each strip to its server.
    bool servers_spread = false;
    // With more servers lost than parity makes up for; else only what they had is gone.
    bool stops_whole = false;
    double metadata_per_server = 0;  // calls of each kind per second; 0: those of the design
    Duration failover{};
    Duration rebuild_after{};
    Bandwidth rebuild{};    // one server's part
    Bandwidth file_read{};  // 0: as fast as the store
    Bandwidth file_write{};
};

// Warns of the keys of `storage` that only RAID groups ask for.
std::unique_ptr<StorageSystem> make_spread_store(Section& storage, const StoreDesign& design,
                                                 const SpreadSpec& spec);

}  // namespace railyard
