// usage: railyard_drop_tail TRAFFIC QUEUE_BYTES FILE
//
// The traffic of drop_tail.h as the packet engine carries it: one lossy class, no ECN, queues of so
// many bytes; building and routing included. With 0 for the queues nothing is lost, and a flow is a
// flow; else each packet is a flow of its own, since a flow would send again what it lost.

#include <ctime>

#include "tests/bench/drop_tail.h"

namespace railyard {

namespace {

PacketNetwork network_of(const Topology& topology) {
    // Its queues fill before a switch's buffer does.
    PacketNetwork network = PacketNetwork::of(topology, std::int64_t{1} << 40);
    for (PacketLink& l : network.links) l.latency = Picoseconds(DropTail::link_latency_ps);
    return network;
}

// The acknowledgement that ends a flow takes its path's time, and nothing of its bandwidth.
std::int64_t arrival_ps(const PacketEngine& engine, std::size_t flow, std::size_t hops,
                        std::int64_t ack_bytes) {
    constexpr std::int64_t ps_per_byte = 20;
    return engine.end(flow).count() -
           static_cast<std::int64_t>(hops) * (DropTail::link_latency_ps + ack_bytes * ps_per_byte);
}

void run(const std::string& name, std::int64_t queue_bytes, const std::string& file) {
    const double before_mb = peak_megabytes();
    const DropTail asked(name);
    PacketSpec spec;
    spec.payload_bytes = DropTail::payload_bytes;
    spec.header_bytes = DropTail::header_bytes;
    spec.classes = {{FlowControl::none, false}, {FlowControl::none, false}};
    spec.ack_every = INT64_MAX;
    spec.ack_class = -1;
    const bool drops = queue_bytes > 0;
    if (drops) spec.lossy_queue_bytes = queue_bytes;
    PacketEngine engine(network_of(asked.topology), spec);

    std::vector<std::size_t> flow_of;  // of each flow of the engine
    for (std::size_t f = 0; f < asked.path.size(); ++f) {
        PacketFlow flow;
        flow.path = asked.path[f];
        flow.bytes = drops ? spec.payload_bytes : asked.bytes(f);
        const std::int64_t pieces = drops ? asked.packets(f) : 1;
        for (std::int64_t p = 0; p < pieces; ++p) {
            constexpr std::int64_t packet_ps =
                (DropTail::payload_bytes + DropTail::header_bytes) * 20;
            flow.start = Picoseconds(DropTail::start_ps(f) + p * packet_ps);
            engine.add(flow);
            flow_of.push_back(f);
        }
    }
    engine.run(Picoseconds(std::int64_t{1} << 40));

    std::vector<Arrivals> arrivals(asked.path.size());
    for (std::size_t i = 0; i < flow_of.size(); ++i) {
        if (engine.end(i) == PacketEngine::never) continue;
        Arrivals& a = arrivals[flow_of[i]];
        a.packets += drops ? 1 : asked.packets(flow_of[i]);
        a.last_ps = std::max(a.last_ps,
                             arrival_ps(engine, i, asked.path[flow_of[i]].size(), spec.ack_bytes));
    }
    report(file, arrivals, static_cast<double>(std::clock()) / CLOCKS_PER_SEC, before_mb,
           engine.totals().data_hops);
}

}  // namespace

}  // namespace railyard

int main(int argc, char** argv) {
    if (argc < 4) return 2;
    railyard::run(argv[1], std::atoll(argv[2]), argv[3]);
    return 0;
}
