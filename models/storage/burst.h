#pragma once
// A storage burst: all ranks of a job write or read their files at once, over the real network.
//
// Every file moves at one pace over all its stripes and takes its max-min fair share of what it crosses:
// the servers' ceilings, their NICs, the links between, the node's NICs and the system's client; and no
// more than its own cap: the stripes of one file, and the rank that serialises it. Before its data moves
// a rank has to have its files created or opened.
//
// Ignores: queues inside the servers and the network (packet windows have these), page caches, and that a
// rank may write while it still creates. Starts are told apart in at most 64 waves, each as late as the
// last rank in it. Stripes are as wide as a file: what a file writes goes to all of its servers evenly,
// all the time.

#include <optional>
#include <string>
#include <vector>

#include "models/fabric/fabric.h"
#include "models/storage/store.h"
#include "models/storage/store_service.h"

namespace railyard {

constexpr Bandwidth unlimited = Bandwidth::bits_per_second(INT64_MAX);

struct BurstStore {
    StoreLimits limits;             // in its present state
    std::int64_t servers_down = 0;  // the last ones; those left have equal parts of each ceiling
    // Servers that one file is spread over, in turn from one that a hash picks on, as Lustre's objects
    // are; 0: over all servers.
    std::int64_t stripes = 0;
};

// A store's limits in one direction.
struct DirectedLimits {
    Ceiling servers;  // the least of all
    Bandwidth client;
    Bandwidth file;
    double operations_per_s = 0;  // creates, or opens
    Duration operation_latency{};
    Duration first_byte{};
};
DirectedLimits directed(const StoreLimits& limits, Direction direction);

// What each rank moves.
struct BurstLoad {
    std::string what = "checkpoint";
    Direction direction = Direction::write;
    std::int64_t ranks_per_node = 1;
    Bytes bytes_per_rank;
    std::int64_t files_per_rank = 1;       // moved side by side, of equal sizes
    std::int64_t operations_per_rank = 0;  // creates, or opens, before the data
    bool one_file = false;                 // all ranks read the same files
    Bandwidth rank_bandwidth = unlimited;  // what one rank serialises, or loads
    // It comes from a registry apart from the store and from this network, which serves so much to all.
    std::optional<Bandwidth> registry;
};

// Somebody else's flow, there for the whole burst. From or to a server's NIC it is a part of the store's
// reads or writes.
struct NeighbourFlow {
    VertexId from = 0;
    VertexId to = 0;
    Bandwidth cap = unlimited;
};

struct BurstSpec {
    const Topology& topology;  // with servers
    RoutingSpec routing;
    std::vector<std::int64_t> nodes;  // of the job
    BurstStore store;
    double payload = 1;  // of a link's line rate, what protocols leave
    std::vector<NeighbourFlow> neighbours{};
    bool file_by_file = false;  // creates and opens request by request, not by their closed form
    std::uint64_t seed = 1;     // of where files begin
};

// One reason to wait.
struct WallShare {
    Wall wall = Wall::store;
    std::string where;    // the ceiling or link that did most of it: "servers", "leaf-3 to spine-1"
    double of_time = 0;   // of the time that files spent until they were done
    double of_bytes = 0;  // of the bytes, those that moved while this was the limit
};

struct BurstResult {
    std::string what;
    std::string stuck;    // why it never ends; empty: it does. The times are then time_max
    Duration stall{};     // until the last byte has arrived
    Duration metadata{};  // until the last file was created or opened
    std::vector<Duration> rank_ends;  // in order of the nodes
    Bytes bytes;                      // of all ranks
    Bandwidth bandwidth;              // bytes over stall
    double operations_per_s = 0;      // reached, while there were any
    std::vector<WallShare> walls;     // most of the time first
    Bandwidth neighbours;             // moved meanwhile by their flows, on average

    Duration rank_end(double quantile) const;         // 0: the first rank done, 1: the slowest
    Bandwidth rank_bandwidth(double quantile) const;  // a rank's bytes over its end; 0: the slowest
    std::string wall_text() const;                    // "store (servers)"
    std::uint64_t digest() const;
};

BurstResult run_burst(const BurstSpec& spec, const BurstLoad& load);
// Several at once, all from the same instant. Their operations queue up in the order of the loads.
std::vector<BurstResult> run_bursts(const BurstSpec& spec, const std::vector<BurstLoad>& loads);

// The load on each link for each byte/s of the whole load.
struct BurstLinks {
    struct Link {
        LinkId link = 0;
        double share = 0;
        double capacity_bytes_per_s = 0;
    };
    std::vector<Link> links;  // ascending
    std::string no_path;      // two that the network does not join; empty when all goes
};
BurstLinks burst_links(const BurstSpec& spec, const BurstLoad& load);

// What there is where no network is built.
struct BurstEnds {
    std::int64_t nodes = 1;
    Bandwidth node_network;  // of one node
    std::int64_t servers = 1;
    Bandwidth server_network = unlimited;  // of one server
};
// The same by its closed form: the least of all ceilings on a network that is none, files spread evenly.
// Half of what is idle while ranks come in is counted; that the last ones finish alone is not.
BurstResult burst_closed_form(const BurstEnds& ends, const BurstStore& store,
                              const BurstLoad& load);

}  // namespace railyard
