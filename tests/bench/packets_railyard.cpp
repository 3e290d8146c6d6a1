// usage: railyard_packets TRAFFIC [CONGESTION [ACKS [ROUTING]]]
//
// The traffic packet by packet on a fat-tree of 1 us links, building and routing included: PFC, ECN and
// `CONGESTION` (dcqcn) on, an acknowledgement for each so many packets (1). ROUTING: path (by hash), spray,
// random_spray, adaptive, flowlet, or entropy, which makes the network Ultra Ethernet: trimming and no PFC.
// Prints the CPU seconds, the MB of memory that network, routes and packets took at the peak, data
// packet-hops, events, the last flow's end and the mean one in us, and a digest.

#include <algorithm>
#include <array>
#include <ctime>

#include "tests/bench/fat_tree.h"

namespace {

using namespace railyard;

constexpr Picoseconds link_latency(1'000'000);

PacketNetwork network_of(const Topology& topology, Catalogue& catalogue) {
    PacketNetwork network = PacketNetwork::of(topology, 32'000'000);
    for (PacketLink& l : network.links) {
        l.latency = link_latency;
        l.headroom_bytes = headroom_by_delay(catalogue, l.rate, l.latency).count();
        l.ecn = {catalogue.data("ecn", "recommend_400g", "kmin").count(),
                 catalogue.data("ecn", "recommend_400g", "kmax").count(),
                 catalogue.number("ecn", "recommend_400g", "pmax")};
    }
    return network;
}

}  // namespace

int main(int argc, char** argv) {
    if (argc < 2) return 2;
    const std::string congestion = argc > 2 ? argv[2] : "dcqcn";
    const Traffic traffic = railyard::traffic(argv[1]);
    StandaloneCatalogue own;

    const double before_mb = peak_megabytes();
    const Topology topology = fat_tree(traffic);
    PacketNetwork network = network_of(topology, own.catalogue);
    const std::array<std::string, 6> routings = {"path",     "spray",   "random_spray",
                                                 "adaptive", "flowlet", "entropy"};
    const auto routing =
        std::find(routings.begin(), routings.end(), argc > 4 ? argv[4] : "path") - routings.begin();
    if (routing == std::ssize(routings)) return 2;
    constexpr Picoseconds base_rtt = 12 * (link_latency + Picoseconds(82'000));
    PacketProfile profile;
    PacketSpec& spec = profile.spec;
    if (routing > 0) spec.recovery = Recovery::selective_repeat;
    spec.reordering = spec.recovery_window;  // in a lossless network what is missing is late
    spec.flowlet_gap = 50 * link_latency;
    spec.buffer.alpha = own.catalogue.number("pfc", "", "alpha_hpcc");
    if (argc > 3) spec.ack_every = std::atoi(argv[3]);
    if (routings[static_cast<std::size_t>(routing)] == "entropy") {
        spec.trimming.enabled = true;
        spec.classes[1].flow_control = FlowControl::none;
        spec.buffer.alpha = 8;
        set_up_ultra_ethernet(own.catalogue, topology.line_rate(0), base_rtt, profile);
        for (PacketLink& l : network.links) l.ecn = profile.ecn->at(l.rate);
    }
    std::unique_ptr<Congestion> control;
    for (const CongestionKind& kind : congestion_kinds()) {
        if (kind.name == congestion) {
            control = kind.make(own.catalogue, {"dcqcn_hpcc_repo_vendor", topology.line_rate(0),
                                                base_rtt, spec.trimming.enabled});
        }
    }
    if (!control) return 2;
    PacketEngine engine(network, spec, std::move(control));
    if (routing > 0) engine.choose_from(NextHops(topology));
    engine.expect(traffic.flows.size());
    add_flows(traffic.flows, topology, static_cast<PacketRouting>(routing), engine);
    if (!engine.run(PacketEngine::never)) return 1;
    double last = 0;
    double sum = 0;
    for (std::size_t i = 0; i < traffic.flows.size(); ++i) {
        const double end = static_cast<double>(engine.end(i).count()) * 1e-6;
        last = std::max(last, end);
        sum += end - traffic.flows[i].start_s * 1e6;
    }
    const PacketEngine::Totals& t = engine.totals();
    if (t.lost_lossless + t.lost_lossy > 0) return 1;
    const double cpu_s = static_cast<double>(std::clock()) / CLOCKS_PER_SEC;
    std::printf("%.6f %.3f %llu %llu %.1f %.1f %s\n", cpu_s, peak_megabytes() - before_mb,
                static_cast<unsigned long long>(t.data_hops),
                static_cast<unsigned long long>(t.events), last,
                sum / static_cast<double>(traffic.flows.size()), engine.digest().c_str());
    return 0;
}
