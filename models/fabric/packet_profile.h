#pragma once
// How a network treats packets: what its switches do with their buffers, and its NICs with marks and losses.
// A profile and a topology make what the packet engine runs on.

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "models/fabric/packet_engine.h"

namespace railyard {

// In the order of FlowControl.
extern const std::vector<std::string> flow_control_names;

// Marking thresholds, the same for all queues or growing with their link's rate.
struct EcnRule {
    double kmin_bytes = 0;  // of a queue, or for each 25 Gbit/s of its link
    double kmax_bytes = 0;
    double pmax = 0;
    bool per_25_gbit = false;
    double beyond = 1;  // share marked above kmax

    EcnProfile at(Bandwidth rate) const;
};
// The catalogue's entry of kind "ecn".
EcnRule read_ecn(Catalogue& catalogue, const std::string& name);

// A switch that is not set up as the others are.
struct DeviatingSwitch {
    VertexId at = 0;
    bool pfc = true;
    bool ecn = true;
    std::optional<int> pfc_priority;  // the one that it has PFC for; absent: as the others
    std::optional<Bytes> headroom;
};

struct PacketProfile {
    FlowControl flow_control = FlowControl::pfc;
    std::optional<EcnRule> ecn;
    std::optional<Bytes> buffer;       // of each switch; absent: its model's
    std::optional<Bytes> headroom;     // of each lossless (port, class); absent: needed_headroom()
    Bytes vl_buffer;                   // of each (whole port, class) with credits
    std::string congestion = "dcqcn";  // a name in congestion_kinds()
    std::string parameters;            // the catalogue's set for it
    // The table of gaps of infiniband_cc.
    std::optional<InfinibandCongestionSpec> cct;
    bool oversubscribed = false;  // receivers that give credit follow the core too
    std::int64_t ports = 1;       // of a NIC that one flow's packets leave by
    PacketSpec spec;              // all else
    std::vector<int> priorities;  // IEEE 802.1p, of each class with PFC; of others -1
    std::vector<DeviatingSwitch> deviating;

    bool has_pfc(VertexId at) const;
    // Bit c: it sends and heeds pauses for class c. A switch that has PFC for another priority sets the
    // headroom apart, and has no pauses for these.
    std::uint8_t pausing(VertexId at) const;
    // Headrooms that a switch sets apart at each port.
    std::int64_t headrooms(VertexId at) const;
};

// What a (port, class) at the end of `link` needs so that nothing is lost after it has sent XOFF: SONiC's
// formula where the switch's cells are known, else its shipped table, else what the link holds and two
// packets.
Bytes needed_headroom(Catalogue& catalogue, const Topology& topology, LinkId link);
// How far apart buildings may be for this switch's buffer to hold the headroom of all its ports; none:
// not even side by side.
std::optional<Metres> site_distance_max(Catalogue& catalogue, const Topology& topology,
                                        const PacketProfile& profile, VertexId at);

// The room of each class with credits at the end of `link`: where ports are parts of a cage, that part of a
// whole port's, but a packet's at least.
Bytes lane_buffer(const Topology& topology, const PacketProfile& profile, LinkId link);

// One switch's buffer under a profile.
struct BufferPlan {
    VertexId at = 0;
    Bytes buffer;
    Bytes reserved;  // headrooms and reserves of all its ports
    Bytes
        xoff_threshold;   // of one hot (port, class), with nothing else in the pool; 0: no PFC here
    Bytes headroom;       // of the port that has the least beyond its need
    Bytes headroom_need;  // of the same
    EcnProfile ecn;       // of its fastest port
};
// One for each kind of switch: those that differ in model, in what deviates, or in any figure of their plan.
std::vector<BufferPlan> plan_buffers(Catalogue& catalogue, const Topology& topology,
                                     const PacketProfile& profile);

PacketNetwork packet_network(Catalogue& catalogue, const Topology& topology,
                             const PacketProfile& profile);
// The round trip of the slowest way up to the top and down.
Picoseconds unloaded_round_trip(const Topology& topology, const PacketSpec& spec);
// When a sender that hears nothing has waited for so many timeouts. After retries + 1 of them it gives up. 0:
// its timeouts follow from round trips.
Picoseconds timeouts_take(const PacketSpec& spec, std::int64_t timeouts);
// A connection's only cable is down for so long: until the first try that comes through, by which all that
// was lost is sent again; nothing: the sender gives up before.
std::optional<Picoseconds> stands_still(Catalogue& catalogue, const PacketProfile& profile,
                                        Picoseconds outage);
// The queues, marks, acknowledgements and timeouts of Ultra Ethernet, in bandwidth-delay products of NICs of
// this rate. The profile knows packets' sizes already, whether switches trim, and perhaps how long a queue
// may be.
void set_up_ultra_ethernet(Catalogue& catalogue, Bandwidth line, Picoseconds round_trip,
                           PacketProfile& profile);
// For NICs of this topology.
std::unique_ptr<Congestion> make_congestion(Catalogue& catalogue, const Topology& topology,
                                            const PacketProfile& profile);

}  // namespace railyard
