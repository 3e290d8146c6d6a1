#pragma once
// Runs of table 44, ns-3 with the HPCC authors' RDMA model, as the packet engine makes them. The table's
// header has the configuration.

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "tests/packets.h"

namespace railyard {

double mean(const std::vector<double>& values);

// A congestion control by its name in the table: "pfc_only_no_cc", "hpcc_defaults", "dcqcn_<defaults>",
// "dcqcn_rp55_frt5_pmax0.01" (timer in us, steps of fast recovery, Pmax).
struct Ns3Control {
    enum class Kind : std::uint8_t { none, dcqcn, hpcc };
    Kind kind = Kind::none;
    DcqcnSpec dcqcn = {};  // the HPCC repository's defaults
    double pmax = 0.2;

    // Nothing when it is none of these.
    static std::optional<Ns3Control> of(const std::string& name);
    bool draws() const { return kind == Kind::dcqcn; }  // marks at random
};

// A network, its flows and what controls them.
struct Ns3Network {
    StandaloneCatalogue c;
    PacketNetwork network;
    PacketSpec spec;
    Ns3Control control;
    std::int64_t buffer_bytes;
    std::vector<PacketFlow> flows;
    std::int64_t marked_as_gbit = 0;  // ECN's thresholds are those of this rate; 0: of the link's

    Ns3Network(const Ns3Control& control, std::int64_t buffer_bytes);

    VertexId nic() { return network.add_nic(); }
    VertexId switch_() { return network.add_switch(buffer_bytes); }
    LinkId cable(VertexId a, VertexId b, std::int64_t gbits = 100) {
        return network.add_cable(a, b, gbit(gbits), Picoseconds(us));
    }
    // From the start at 1 ms on.
    void flow(std::vector<LinkId> path, std::int64_t bytes = unending);
    PacketEngine engine(std::uint64_t seed = 1);
};

struct WatchedQueue {
    double mean_kb = 0;
    double max_kb = 0;
};

// Goodput of each of the first `flows` flows, Gbit/s, between two instants; and the queue at `watched`,
// looked at every microsecond when it is not empty.
std::vector<double> goodputs(PacketEngine& e, std::size_t flows, std::int64_t from_us,
                             std::int64_t to_us, LinkId watched, WatchedQueue& queue);

// What one run has to say, by the table's names of metrics. Empty when packets were lost, or when flows that
// end did not.
using Metrics = std::map<std::string, double>;

Metrics incast(const Ns3Control& control, int n, std::uint64_t seed);
Metrics dumbbell(const Ns3Control& control, int n, std::uint64_t seed);
Metrics pfc_victim(const Ns3Control& control, int extra, std::uint64_t seed);
Metrics parking_lot(const Ns3Control& control, int hops, std::uint64_t seed);

struct SizedFlow {
    double bytes;
    double slowdown;  // completion time / (base round trip + bytes at line rate)
};

// The flows of `trace` (a CSV file: source, destination, bytes, start_s) on a star; in their order.
std::vector<SizedFlow> star_slowdowns(const Ns3Control& control, int nics, std::int64_t gbits,
                                      const std::string& trace);

}  // namespace railyard
