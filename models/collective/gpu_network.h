#pragma once
// What bytes cross from GPU to GPU outside NVLink, PCIe, NICs and the network, as one set of links that are
// shared max-min fairly: what a group of ranks gets when all groups of a job talk at once.
//
// A ring is a pipeline: in steady state all its hops carry the same stream, so it is one flow that uses each
// of its links, and its slowest hop is its speed. A group that has m NICs in each node runs m rings (NCCL's
// channels); ring c leaves and enters every node by NIC c, so that it stays on its rail where there are
// rails. Data are split evenly over the rings: the slowest sets the pace. So it is with trees: two for each
// of the NICs, all of whose edges carry one stream up and one down. NVLink ports serve one group at a time,
// so there is nothing to share: of them only what the worst GPU of a group has left is told.

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "models/collective/algorithm.h"
#include "models/collective/cables_used.h"
#include "models/collective/node_links.h"
#include "models/fabric/fabric.h"
#include "models/hardware/hardware.h"
#include "sim/fingerprint.h"

namespace railyard {

// GPUs by number, node by node, in the order of their ranks.
using GpuGroup = std::vector<std::int64_t>;

// Groups that talk at once. A name stands for them where a rate is looked up; they are listed when it has to
// be measured.
class GpuGroups {
  public:
    using List = std::vector<GpuGroup>;
    GpuGroups(const List& list);  // which must outlive it
    // The name must differ for other groups.
    GpuGroups(Fingerprint name, std::function<List()> make)
        : name_(name.value()), make_(std::move(make)) {}
    GpuGroups(const GpuGroups&) = delete;

    std::uint64_t name() const { return name_; }
    const List& list() const;

  private:
    std::uint64_t name_;
    std::function<List()> make_;
    mutable List made_;
    mutable const List* list_ = nullptr;  // null: not made yet
};

// What a collective looks like to the links.
enum class Traffic : std::uint8_t {
    ring,
    all_reduce,  // a ring, or trees
    all_to_all,
    send,
};
inline Traffic traffic_of(Collective collective) {
    return collective == Collective::all_to_all   ? Traffic::all_to_all
           : collective == Collective::send_recv  ? Traffic::send
           : collective == Collective::all_reduce ? Traffic::all_reduce
                                                  : Traffic::ring;
}

// What all groups of a collective send over the links between switches, or of the whole network, while it is
// under way.
struct LinkLoads {
    struct Load {
        LinkId link = 0;
        double flows = 0;  // whole streams; a stream of which a quarter passes is a quarter
        double capacity_bytes_per_s = 0;
    };
    std::vector<Load> links;      // ascending
    double flow_bytes_per_s = 0;  // of each stream, with nobody else in the network
};

struct GroupRate {
    // For a group over several nodes: what it moves out of each node. For one inside a node without NVLink,
    // for all_to_all() and for send(): what each GPU moves. 0 where nothing leaves NVLink.
    double bytes_per_s = 0;
    // Latency of the longest way through the network beyond that of one leaf, without the delay between
    // buildings; that delay; and the part of a ring's hops between nodes that have it.
    double extra_hop_s = 0;
    double far_hop_s = 0;
    double far_share = 0;
    double nvlink_left = 1;  // of the worst GPU's NVLink bandwidth
    std::string bottleneck;  // the link that sets the rate, for people
    // Where asked for: what crosses between switches.
    LinkLoads loads;
};

// What a stream sends from NIC to NIC, per byte of its own progress.
struct NetworkHop {
    VertexId from = 0;
    VertexId to = 0;
    float share = 1;
    std::uint64_t label = 0;  // tells connections between the same two NICs apart
};
using NetworkStream = std::vector<NetworkHop>;

enum class StreamKind : std::uint8_t {
    fan,   // all hops at once
    ring,  // each waits for the one before
    reduction,  // from NICs (to themselves) up a tree of switches, which they label with its number, and down
};

// A closer look at the network than fair shares.
class NetworkModel {
  public:
    virtual ~NetworkModel() = default;
    // Progress in bytes/s of each stream, when all are under way at once. Every stream has hops.
    virtual std::vector<double> rates(const std::vector<NetworkStream>& streams,
                                      StreamKind kind) = 0;
};

class GpuNetwork {
  public:
    // `topology` has the NICs of `nodes` nodes of this kind, and must outlive this.
    GpuNetwork(const Node& node, const Topology& topology, RoutingSpec routing);

    // The same with another seed of its switches' hashes; made of this one, which must outlive it unchanged.
    // Threads may make and use several.
    GpuNetwork rehashed(std::uint64_t seed);

    void degrade(const PartFault& fault);
    // From now on rates come with their loads; `of_nics`: those between NICs and leaves too.
    void keep_loads(bool of_nics = false) {
        keep_loads_ = true;
        loads_of_nics_ = of_nics;
    }
    // From now on routes are noted here.
    void note_cables(std::shared_ptr<CablesUsed> used) { cables_used_ = std::move(used); }
    // Asks this too.
    void look_closer(std::shared_ptr<NetworkModel> model) { closer_ = std::move(model); }

    // The slowest group's rate when all of them run a ring at once, double trees (what an all-reduce adds up
    // in a second), an all-to-all at once, or each GPU of a group sends to the next, cyclically. Every group
    // has at least two GPUs. Throws NoPath, and ScenarioError for an all-to-all that is too large. Of a large
    // one all streams of all groups keep one pace, that of the busiest link.
    GroupRate ring(const GpuGroups& groups);
    GroupRate tree(const GpuGroups& groups);
    GroupRate all_to_all(const GpuGroups& groups);
    GroupRate send(const GpuGroups& groups);
    // Likewise an all-reduce that switches add up (SHARP), over a tree for each ring that there would be:
    // what each node moves out, once. Nothing when a group's NICs have no switch above all of them, or a
    // switch would be part of more trees than it can.
    GroupRate reduction(const GpuGroups& groups);
    GroupRate rate(Traffic traffic, const GpuGroups& groups) {
        return traffic == Traffic::all_to_all ? all_to_all(groups)
               : traffic == Traffic::send     ? send(groups)
                                              : ring(groups);
    }

    std::string link_name(LinkId link) const;

  private:
    // The rate, measured once for all networks that are alike in this process: a sweep asks again and again.
    template <class Measure>
    GroupRate once(std::uint64_t which, const GpuGroups& groups, const Measure& measure);
    void set_up();  // the routes and capacities, for a rate that is not known
    void slow_down(const PartFault& fault);

    // Flows that are solved together.
    struct Streams {
        std::vector<Usage> usages;
        std::vector<std::size_t> ends;    // of each flow in `usages`
        std::vector<double> factor;       // what the group moves for a byte of the flow's
        std::vector<NetworkStream> hops;  // of each flow
        StreamKind kind = StreamKind::fan;

        // The usages from `first` on are one flow.
        void close(std::size_t first, double group_bytes_per_byte, NetworkStream& through);
    };
    // A part of a flow, from NIC to NIC of one rail where the two GPUs are not in one node.
    struct Hop {
        std::int64_t from;
        std::int64_t to;
        std::int64_t rail;  // which NIC, of both nodes
        float share = 1;
        std::uint64_t connection = 0;  // of those between the same two GPUs
    };

    void connect(const Hop& hop, std::vector<Usage>& out);
    void connect_by_receiver(std::int64_t from, std::int64_t to, float share,
                             std::vector<Usage>& out);
    // A group's GPUs in one node, or in one NVLink domain of it, and the NICs next to them.
    struct Members {
        std::span<const std::int64_t> gpus;
        std::vector<std::int64_t> nics;
    };
    std::vector<Members> members_of(const GpuGroup& group, bool by_domain = false) const;
    // The one of them that is next to the NIC, or the first.
    std::int64_t gpu_near(const Members& part, std::int64_t nic) const;
    void add_ring(const GpuGroup& group, Streams& streams);
    void add_double_tree(const GpuGroup& group, Streams& streams);
    bool add_switch_trees(const GpuGroup& group, Streams& streams);
    void look_closer(const Streams& streams, LinkId bottleneck, GroupRate& rate);
    // The link that holds the slowest up, and what its group moves in a second.
    std::pair<LinkId, double> slowest_flow(const Streams& streams) const;
    GroupRate slowest(const Streams& streams, std::span<const GpuGroup> groups);
    GroupRate at_one_pace(std::span<const GpuGroup> groups, const std::vector<double>& load);
    std::vector<double> loads_by_leaf(std::span<const GpuGroup> groups);
    std::vector<double> loads_by_pair(std::span<const GpuGroup> groups);
    double nvlink_left(std::span<const GpuGroup> groups) const;
    void note_latency(std::span<const Usage> route);
    void take_latencies(GroupRate& out);    // since it was last asked
    bool tells_load_of(LinkId link) const;  // whether LinkLoads have it
    LinkLoads loads_of(const Streams& streams, double group_bytes_per_s) const;

    const Topology& topology_;
    RoutingSpec routing_;
    GpuNetwork* like_ = nullptr;    // that it is a rehashed() one of
    std::optional<Router> router_;  // since set_up()
    // Ways through the network since the last solve: the longest, without the delay to another building.
    Picoseconds longest_{};
    Picoseconds far_{};  // that delay, of the longest
    double far_share_ = 0;
    double hops_of_ring_ = 0;
    double far_hops_of_ring_ = 0;
    std::vector<double> capacity_;  // bytes/s, of the network's links, then of those inside nodes
    NodeLinks inside_;
    double wire_share_;  // of a network's link that is left for data
    double nic_bytes_per_s_;
    std::vector<PartFault> faults_;       // of links
    std::vector<std::int64_t> trees_at_;  // by vertex, of the reduction that is being put together
    NetworkStream hops_;                  // of the stream that is being put together
    std::shared_ptr<NetworkModel> closer_;
    bool keep_loads_ = false;
    Fingerprint likeness_;  // what rates follow from, the topology and the hashes' seed apart
    bool loads_of_nics_ = false;
    std::shared_ptr<CablesUsed> cables_used_;
};

// What each GPU moves in an all-gather or a reduce-scatter by PAT, all groups being of one size with one
// GPU in each node: round by round to the rank 1, 2, 4 ... places on, the fewer parts the further.
double pat_bytes_per_s(GpuNetwork& network, const GpuGroups& groups);

}  // namespace railyard
