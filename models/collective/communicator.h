#pragma once
// The GPUs that take part in a collective and what connects them, with all that the cost of a
// collective needs computed once: seconds, bytes and bytes per second.

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "models/catalogue/catalogue.h"
#include "models/collective/algorithm.h"
#include "models/collective/gpu_network.h"
#include "models/hardware/hardware.h"

namespace railyard {

using ByProtocol = std::array<double, 3>;

// What NCCL's tuner believes (src/graph/tuning.cc): constants of its source, nothing fitted.
struct TunerConstants {
    ByProtocol ring_base_s{}, ring_nvlink_s{}, ring_pcie_s{}, ring_network_s{};
    ByProtocol tree_base_s{}, tree_nvlink_s{}, tree_pcie_s{}, tree_network_s{};
    double nvls_s = 0;
    double nvls_network_s = 0;  // where the switches of the network reduce, too
    double nvls_tree_network_s = 0;
    double collnet_nvlink_s = 0;
    double collnet_per_rank_s = 0;
    double collnet_network_s = 0;
    double pat_base_s = 0;
    double pat_network_s = 0;
    double pat_per_rank_s = 0;
    double network_overhead_s = 0;  // of the host's processor, per step
    double network_plateau = 0;     // multiplies the latency of a large Simple ring
    // Shares of the ring's bandwidth.
    double ll128_share = 0;
    double collnet_bandwidth = 0;
    double pat_bandwidth = 0;
    double tree_bandwidth = 0;
    double tree_ll_share = 0;
    double tree_ll128_share = 0;
    std::array<std::vector<double>, 3> tree_correction;  // by protocol and log2(bytes / 64)
    // Bytes/s, by GPU generation and number of nodes.
    double channels = 0;
    double ll_max = 0;
    double ring_ll128_max = 0;
    double tree_max = 0;
    double nvls_tree_max = 0;
    double nvls_efficiency = 0;  // of the NVLink bandwidth; 0: the generation has no NVLS
    std::int64_t nvls_ranks_min = 0;
};

// What nccl-tests measure. README.md has the equations and what each number was fitted on.
struct MeasuredConstants {
    // By GPU generation.
    double launch_s = 0;
    double hop_s = 0;                // one step of LL over NVLink
    double ring_efficiency = 0;      // of the bandwidth that NCCL counts
    double nvls_efficiency = 0;      // likewise
    double copy_bytes_per_s = 0;     // through the GPU's multiprocessors, Simple and LL128
    double ll_copy_bytes_per_s = 0;  // likewise, LL
    double peer_bytes_per_s = 0;     // to one peer
    // The same for all.
    double ll128_hop = 0, simple_hop = 0;  // hops of these protocols, in hops of LL
    double ll128_efficiency = 0;
    double nvls_setup_s = 0;
    double nvls_rank_cost = 0;
    double fill_share = 0;           // of the pipeline's chunks that nothing overlaps
    double fill_bytes = 0;           // per rank and stage
    double pairwise_efficiency = 0;  // of the NVLink bandwidth that NCCL counts
    double peer_hop = 0;             // hops of LL for each peer after the first
    double peer_ll_bytes_per_s = 0;  // to one peer by LL
    double network_ll_share = 0;     // of the tuner's limit for LL, what a tree gets
    double network_hop_s = 0;        // what a hop takes more than over InfiniBand
    double far_hop_s = 0;            // what one to another building takes more than the others
    double far_share = 0;            // of a ring's hops between nodes that go there
};

// What a communicator can be: how many ranks, on how many GPUs of each node.
struct CommunicatorShape {
    std::int64_t ranks = 1;
    std::int64_t ranks_per_node = 1;  // of the nodes but the last
    bool sharp = false;
    std::int64_t stride = 1;  // how far apart neighbours are, in GPUs
    bool all_groups =
        false;  // all of a node's GPUs are in some group of the kind, and talk at once
};

struct Communicator {
    std::int64_t ranks = 1;
    std::int64_t domains = 1;    // NVLink domains that they spread over, evenly
    double per_domain = 1;       // ranks / domains
    std::int64_t nodes = 1;      // likewise; with more domains than nodes some are joined by PCIe
    double nvlink = 0;           // bytes/s per GPU and direction, as NCCL counts it
    double pair = 0;             // of it, to one neighbour, where each pair has a link; 0: a switch
    double ring_share = 1;       // of it, what rings can use that share no link
    double network = 0;          // bytes/s per domain and direction that this communicator can use
    double nominal_network = 0;  // what NCCL takes that for, which sees NICs and no contention
    double tree_network = 0;     // bytes/s of an all-reduce by a double tree between domains
    double all_to_all_network = 0;  // as `network`, while all send to all
    double send_network = 0;        // as `network`, while each sends to one of another domain
    bool by_pcie =
        false;  // of one domain: NVLink does not join it, and all_to_all_network is each GPU's
    double pat_network = 0;    // as `network`, on the rounds of PAT
    double sharp_network = 0;  // as `network`, where the switches reduce
    bool nvswitch = false;
    bool in_order = true;   // the network keeps stores in order, which LL128 needs
    bool sharp = false;     // the switches reduce
    double tree_depth = 0;  // log2(domains)

    std::string transport;
    std::string bottleneck;  // the link that holds it up, once measured
    LinkLoads loads;         // where the network keeps them
    TunerConstants tuner;
    MeasuredConstants measured;

    // So much between domains, by all algorithms' ways.
    void set_network(double bytes_per_s);
    // What there is between NVLink domains: the group's part of the NICs, and where some of the domains share
    // a node, no more than PCIe carries.
    void share_network(const Node& node, const CommunicatorShape& shape);
    bool over_pcie() const { return domains > nodes; }
    // What is left of the network beside others' traffic, which NCCL doesn't see when it chooses.
    Communicator with_network_slowed(double slowdown) const;
};

// All that the catalogue says about collectives on a kind of node: read once, good for any communicator.
struct CollectiveConstants {
    std::array<TunerConstants, 3> tuner;  // for one node, two, and more
    MeasuredConstants measured;
    // Without a switch: of the link between two GPUs, and between two dies of one package. 0: there is a
    // switch.
    double pair_bytes_per_s = 0;
    double dies_bytes_per_s = 0;
};
CollectiveConstants read_collective_constants(Catalogue& catalogue, const Node& node);

// Lays the ranks out. `node` is what read_node gave, perhaps with other numbers and NICs. Its NICs
// and what they carry become the network: a communicator has its GPUs' share of them, one at least. A GB200
// NVL72 rack is one node of 72 GPUs.
Communicator make_communicator(const CollectiveConstants& constants, const Node& node,
                               CommunicatorShape shape);

// Both at once.
Communicator read_communicator(Catalogue& catalogue, const Node& node, CommunicatorShape shape);

// Puts into `communicator`, of more than one rank, what it gets of a network for this collective when all
// these groups, of which it is one, talk at once. PAT gets a ring's share.
void measure(GpuNetwork& network, const GpuGroups& groups, Collective collective,
             Communicator& communicator);

// Seconds that an eager framework adds to a collective that no CUDA graph holds.
double read_framework_launch(Catalogue& catalogue);

}  // namespace railyard
