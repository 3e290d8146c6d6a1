#pragma once
// The experiments of DCQCN's paper (Zhu et al., SIGCOMM 2015) and of its fluid model (CoNEXT 2016), and a
// burst past a bystander (table 42), as the packet engine makes them.

#include <cstdint>
#include <memory>
#include <vector>

#include "models/fabric/fabric.h"
#include "tests/laws/oracles/ns3_runs.h"

namespace railyard {

// Switches and NICs at one rate, a microsecond apart; the paper's parameters and thresholds.
struct DcqcnTestbed {
    StandaloneCatalogue c;
    PacketNetwork network;
    PacketSpec spec;
    std::vector<PacketFlow> flows;
    EcnProfile ecn;
    std::int64_t gbits = 40;

    DcqcnTestbed();
    VertexId switch_(std::int64_t buffer_bytes = 12'000'000) {
        return network.add_switch(buffer_bytes);
    }
    LinkId nic_to(VertexId sw) { return cable(network.add_nic(), sw); }
    LinkId cable(VertexId a, VertexId b) {
        return network.add_cable(a, b, gbit(gbits), Picoseconds(us));
    }
    void flow(std::vector<LinkId> path, std::int64_t bytes = std::int64_t{1} << 40,
              std::int64_t start_us = 0);
    DcqcnSpec dcqcn_spec() { return read_dcqcn(c.catalogue, "dcqcn_paper", gbit(gbits)); }
    PacketEngine engine(std::unique_ptr<Congestion> control, bool marks);
    // DCQCN, or PFC alone.
    PacketEngine engine(bool controlled) {
        return engine(controlled ? dcqcn(dcqcn_spec()) : no_congestion_control(), controlled);
    }
    // Gbit/s on the wire of each flow, between two instants.
    std::vector<double> rates(PacketEngine& e, std::int64_t from_us, std::int64_t to_us) const;
    // Likewise when the flows have settled.
    std::vector<double> settled_rates(bool controlled);
};

// Figures 3 and 8: a sender beside the receiver, then `far` ones behind another switch.
std::vector<double> near_and_far_rates(bool controlled, int far);
// Figures 4 and 9: the victim's rate, with `extra` senders to the congested port from another leaf.
double victim_rate(bool controlled, int extra);

// Where the marking settles for N flows on a link.
struct FluidPoint {
    int flows = 0;
    std::int64_t gbits = 0;
    double additive_bits_per_s = 40e6;
    Picoseconds increase_timer{55 * us};
    std::int64_t byte_counter = 10'000'000;
    Picoseconds cnp_interval{50 * us};
    std::int64_t packet_bytes = 1024;
};
struct FluidRun {
    double marked_share = 0;    // by the mean queue
    std::vector<double> rates;  // Gbit/s on the wire
};
// On a marking slope of the paper's steepness that goes on for long enough.
FluidRun settle(const FluidPoint& point);

// Table 42: two flows share a link between two switches; then hosts beside the receivers send messages to the
// second flow's for a millisecond. How often, and how large the switch is, the table doesn't say.
struct BurstRun {
    double bystander_before = 0;  // Gbit/s
    double other_before = 0;
    double paused_ms = 0;        // from the burst's begin to the last pause of the shared link
    double bystander_least = 0;  // from then on
    double underused_ms = 0;     // from then until the shared link is full again
    std::int64_t pauses_before = 0;
};
BurstRun burst_past_bystander(std::uint64_t seed);

}  // namespace railyard
