#pragma once
// What all systems of servers have in common: servers, the drives and NICs behind them, and the ceilings that
// these make.

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "models/catalogue/catalogue.h"
#include "models/storage/store.h"

namespace railyard {

// The cluster around a store.
struct StoreSite {
    std::string node;  // in the catalogue
    std::int64_t nodes = 1;
    Bandwidth node_nics;  // those of one node that carry storage traffic, together
    // Drives of a distributed store that are reached over the network need RDMA.
    bool rdma = true;
    std::string network;  // "fabric.storage", as its key in a scenario
};

// One server's drives.
struct ServerDrives {
    std::int64_t count = 0;  // 0: not modelled
    Bytes capacity;
    Bandwidth read;
    Bandwidth write;
    Bandwidth rebuild;            // of one drive in a RAID group
    bool capacity_given = false;  // by the scenario
    bool bound = false;           // false: the server's given rate counts them in
};

struct StoreDesign {
    std::string name;  // in the catalogue
    std::int64_t servers = 1;
    // What one server does. Without a value the drives and NICs alone bound it.
    std::optional<Bandwidth> server_read;
    std::optional<Bandwidth> server_write;
    bool server_write_given = false;  // by the scenario
    Bandwidth server_nics;            // all of one server
    bool nics_bound = false;          // false: the server's rates count them in
    ServerDrives drives;
    Bandwidth client_read;  // one node, with what its NICs carry
    Bandwidth client_write;
    StoreCalls calls;  // of a sound store; the system's own
    StoreSite site;

    std::int64_t drive_count() const { return servers * drives.count; }
    Bytes raw() const { return drives.capacity * drive_count(); }
};

// The parts of a design that still serve clients, in units of a healthy part: 7.5 servers.
struct Parts {
    double servers = 0;
    double drives = 0;
    double nics = 0;  // servers' worth of them
};
Parts all_parts(const StoreDesign& design);

std::vector<Ceiling> read_ceilings(const StoreDesign& design, const Parts& parts);
std::vector<Ceiling> write_ceilings(const StoreDesign& design, const Parts& parts);
// What somebody else takes of each.
void take(std::vector<Ceiling>& ceilings, Bandwidth taken);
// Nothing can be read or written.
void stop(StoreLimits& limits);

// The limits of a sound store: ceilings of all parts, clients and calls as designed, and files that reach
// every server.
StoreLimits sound_limits(const StoreDesign& design);
// Into the design's calls: create_latency and open_latency of its entry in the catalogue.
void read_latencies(Catalogue& catalogue, StoreDesign& design);

// Bytes times a factor, rounded down.
Bytes share_of(Bytes bytes, double factor);

// The share of stripes of `width` drives, spread evenly over `drives`, that has all of `lost` drives.
double stripes_hit(std::int64_t width, std::int64_t drives, std::int64_t lost);

}  // namespace railyard
