// usage: railyard_flows TRAFFIC FILE
//
// The traffic as the flow scale solves it, building of the network and routing included.

#include <ctime>

#include "tests/bench/fat_tree.h"

int main(int argc, char** argv) {
    using namespace railyard;
    if (argc < 3) return 2;
    const Traffic traffic = railyard::traffic(argv[1]);
    const Topology topology = fat_tree(traffic);
    Router router(topology, {Routing::destination});
    FlowSimulation simulation(capacities(topology));
    for (const Flow& f : traffic.flows) {
        Transfer transfer;
        router.route(static_cast<VertexId>(f.from), static_cast<VertexId>(f.to), 0,
                     transfer.usages);
        transfer.bytes = static_cast<double>(static_cast<std::int64_t>(f.bytes));
        transfer.start = Picoseconds(static_cast<std::int64_t>(f.start_s * 1e12));
        transfer.latency = router.latency(transfer.usages);
        simulation.add(std::move(transfer));
    }
    simulation.run();
    std::vector<double> ends;
    for (std::size_t i = 0; i < traffic.flows.size(); ++i) {
        ends.push_back(static_cast<double>(simulation.end(i).count()) * 1e-12);
    }
    report(argv[2], ends, static_cast<double>(std::clock()) / CLOCKS_PER_SEC);
    return 0;
}
