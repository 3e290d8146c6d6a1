#pragma once
// What a job reaches of its store over the scenario's networks.

#include "models/campaign/scenario.h"

namespace railyard {

// How a job's files come to the store, and back from it.
struct StoreTraffic {
    BurstStore store;      // limits with what the nodes' NICs carry
    Bytes bytes_per_rank;  // of a checkpoint
    std::int64_t files_per_rank = 1;
    std::int64_t operations_per_rank = 0;  // 0: only bytes are counted, not the creates and opens
    Bandwidth rank_write = unlimited;      // what one rank serialises
};

// A checkpoint of all ranks to [storage]; its size and who writes it must be known.
StoreTraffic checkpoint_traffic(const Scenario& scenario);

struct StoreReach {
    Bandwidth read;  // bytes of all ranks over the time until the slowest has its own
    Bandwidth write;
    Wall read_wall = Wall::store;
    Wall write_wall = Wall::store;
    std::string read_limit;  // "network (leaf-0 to spine-3)"
    std::string write_limit;
    std::string no_path;  // why nothing moves; the bandwidths are then 0
};

// The network that storage traffic runs on: [fabric.compute] with its servers, or [fabric.storage];
// nullptr when it was not built, or run.fidelity = "analytic" asks for none.
const ClusterNetwork* storage_network(const Scenario& scenario);

// What a network carries with the slow NICs that the scenario has.
Topology with_slow_nics(const Scenario& scenario, const ClusterNetwork& network);

// What is moved to and from [storage] is on the links of steps.
bool shares_network_with_store(const Scenario& scenario);

// What a transfer of the job's on these nodes sends over the compute network when it moves as fast as it
// can alone. Where stores are shared by nodes the last link is the store itself. Needs servers there;
// throws NoPath. Ignores classes of traffic, and a buffer that takes more than the store's drives at first.
LinkLoads transfer_loads(const Scenario& scenario, const TransferSpec& transfer,
                         const std::vector<NodeIndex>& nodes, const Topology& topology,
                         HashSeed hashes);

// The whole job at once, with nobody else on the network; NICs of the compute network with the scenario's
// faults.
StoreReach reach(const Scenario& scenario, const StoreTraffic& traffic);

// For one that stands on these nodes, on a compute network as `topology` has it; 0 without a path.
struct ReachedRates {
    Bandwidth read;
    Bandwidth write;
};
ReachedRates reach_over(const Scenario& scenario, const std::vector<NodeIndex>& nodes,
                      const Topology& topology, HashSeed hashes);
// The cables, by number, that it passes on the way to the store and back; none in a direction without a path.
std::vector<bool> cables_to_store(const Scenario& scenario, const std::vector<NodeIndex>& nodes,
                                  const Topology& topology, HashSeed hashes);

// All ranks write their checkpoint at once; then all read it, their image and their index at once. On the
// network that storage traffic runs on, which must be built.
struct StoreBursts {
    BurstResult checkpoint;
    RestartTimes restart;
};
StoreBursts store_bursts(const Scenario& scenario, const StoreTraffic& traffic,
                         const RestartStorm& storm);

}  // namespace railyard
