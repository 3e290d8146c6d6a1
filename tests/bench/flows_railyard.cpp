// usage: railyard_flows TRAFFIC FILE
//
// The traffic as the flow scale solves it, building of the network and routing included.

#include <ctime>

#include "models/fabric/fabric.h"
#include "tests/bench/traffic.h"

int main(int argc, char** argv) {
    using namespace railyard;
    if (argc < 3) return 2;
    const Traffic traffic = railyard::traffic(argv[1]);
    TopologySpec spec;
    spec.nodes = traffic.hosts();
    spec.tiers = 3;
    spec.nic_bandwidth = Bandwidth::bits_per_second(400'000'000'000);
    spec.leaf.name = "switch";
    spec.leaf.ports = 2 * traffic.half;
    spec.leaf.port_bandwidth = spec.nic_bandwidth;
    spec.spine = spec.leaf;
    spec.core = spec.leaf;
    spec.core.name = "core switch";
    spec.core.ports = traffic.pods;  // a port to each pod, as in the rival's tree
    spec.endpoint_cable = spec.switch_cable = {};
    std::string problem;
    const Topology topology = Topology::build(spec, problem);
    Router router(topology, {Routing::destination});
    FlowSimulation simulation(topology.capacities());
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
