#pragma once
// Stores that spread each piece of data over a few of all drives, as copies or as coded strips, each on
// another server: Ceph, 3FS, object stores. What is lost moves to the servers that are left.

#include <memory>

#include "models/storage/store_design.h"

namespace railyard {

struct SpreadSpec {
    std::int64_t data = 1;    // strips of a piece; 1: whole copies
    std::int64_t parity = 2;  // strips more; copies more
    double creates_per_s = 0;
    double opens_per_s = 0;
    Duration create_latency{};
    Duration open_latency{};
    Duration first_byte{};
    Duration failover{};
    Duration rebuild_after{};
    Bandwidth rebuild{};    // one server's part
    Bandwidth file_read{};  // 0: as fast as the store
    Bandwidth file_write{};
};

// What is left when servers and drives are gone: in wholes of a sound one, and what a client's byte costs in
// reads, as a lost strip costs those of all its piece.
struct SpreadParts {
    double servers = 0;
    double drives = 0;
    double reads = 1;
};
SpreadParts spread_parts(const StoreDesign& design, std::int64_t data, const StoreState& state);

std::unique_ptr<StorageSystem> make_spread_store(const StoreDesign& design, const SpreadSpec& spec);

}  // namespace railyard
