#pragma once
// What every storage system is to the rest: ceilings, metadata rates, capacity and protection, each a pure
// function of the design and of what is broken. A kind of system is one file that implements StorageSystem.
//
// All rates are of the store as its clients see them. What is shared is named once: a report says which
// ceiling is the least, and that is the wall that a job hits.

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "sim/units.h"

namespace railyard {

// Something that bounds the traffic of all clients together, in a report's words.
struct Ceiling {
    std::string what;  // "servers", "drives", "server NICs", "write buffer"
    Bandwidth bandwidth;
};
const Ceiling& least(
    const std::vector<Ceiling>& ceilings);  // the first of equals; must not be empty

// The broken parts of a store.
struct StoreState {
    std::int64_t servers_down = 0;
    std::int64_t boxes_down = 0;     // enclosures of drives, where they are not the servers
    std::int64_t drives_down = 0;    // lost and not yet rebuilt
    std::int64_t rebuilds = 0;       // under way
    bool write_buffer_full = false;  // where there is one
    bool operator==(const StoreState&) const = default;
};

// Calls that open, make, look up and remove files.
struct StoreCalls {
    double creates_per_s = 0;  // all clients together; 0: not known, never the limit
    double opens_per_s = 0;
    double stats_per_s = 0;
    double removes_per_s = 0;
    Duration create_latency{};  // one thread of one client: what each operation takes
    Duration open_latency{};
    Duration first_byte{};  // from a read to its first byte; 0: not known apart from the open

    void all_at(double per_s) { creates_per_s = opens_per_s = stats_per_s = removes_per_s = per_s; }
};

struct StoreLimits : StoreCalls {
    std::vector<Ceiling> read;  // all clients together
    std::vector<Ceiling> write;
    Bandwidth client_read;  // one node, with what its NICs carry
    Bandwidth client_write;
    Bandwidth file_read;  // one file, by the stripes or parts that it has
    Bandwidth file_write;
    std::int64_t file_servers = 0;  // that one file is on; 0: all
    // Share of the data that nobody serves in this state: who touches it waits. The ceilings are those
    // of the rest.
    double unreachable = 0;
    // What is written faster than this runs ahead of the drives, until the buffer is full; 0: no buffer.
    Bytes write_buffer;
    Bandwidth drain;
    bool over_network = true;  // false: in the nodes themselves, no NIC is between
};

struct StoreCapacity {
    Bytes raw;
    Bytes net;         // after protection, spares and the system's own overhead
    std::string rule;  // "raw x 16/18 x (9-1)/9 x 0.9"
};

// What survives which loss, and what coming back takes.
struct Protection {
    std::int64_t servers = 0;
    std::int64_t failover_servers = 0;  // that stand in for each other: 2 for pairs; 0: all
    std::int64_t servers_lost_max = 0;  // of those, all data is served with so many gone at once
    // Stripes span servers, and a lost one takes its drives with it until it is back. All drives are
    // then one group, and a server has as many as another.
    bool servers_hold_data = false;
    std::int64_t boxes = 0;           // enclosures of drives, where they are not the servers
    std::int64_t boxes_lost_max = 0;  // all data is served with so many gone at once
    std::int64_t groups = 0;          // of drives that protect each other
    std::int64_t group_drives = 0;
    std::int64_t stripe_drives = 0;    // of a group, those that hold one stripe; 0: all
    std::int64_t drives_lost_max = 0;  // of one stripe, at once; one more and data is lost
    Bytes drive_capacity;              // 0: the drives are not modelled
    // Lost drives of one group that are rebuilt before they are replaced; not set: any number.
    std::optional<std::int64_t> spare_drives;
    Bandwidth rebuild;              // of one group with all its drives: what is rebuilt per time
    double rebuild_reads = 0;       // bytes read for each that is rebuilt
    bool rebuild_over_all = false;  // declustered: all drives take part, more losses first
    Duration rebuild_after{};  // of a lost server's data: one that is back sooner is not rebuilt
    Duration failover{};       // clients of a lost server wait so long, then others serve for it
    bool waits_for_server = false;  // nobody serves for it: clients wait until it is back
    // Share of the data that a group takes with it when nothing of it can be read. For one that loses single
    // stripes it is scaled by how many are lost, elsewhere.
    double lost_with_group = 1;
};

// What is paid by use, in USD; nothing where the store is one's own.
struct StorePrices {
    Bytes write_part;  // one request carries so much; 0: whole files
    Bytes read_part;
    double per_write_request = 0;
    double per_read_request = 0;
    double per_egress_byte = 0;  // that leaves the store's owner's network; 0: none does
    double per_byte_month = 0;

    bool any() const {
        return per_write_request > 0 || per_read_request > 0 || per_egress_byte > 0 ||
               per_byte_month > 0;
    }
};

class StorageSystem {
  public:
    virtual ~StorageSystem() = default;
    virtual StoreLimits limits(const StoreState& state) const = 0;
    virtual StoreCapacity capacity() const = 0;
    virtual Protection protection() const = 0;
    virtual StorePrices prices() const { return {}; }
};

}  // namespace railyard
