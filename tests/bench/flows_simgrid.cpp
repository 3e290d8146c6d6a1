// usage: railyard_flows_simgrid TRAFFIC FILE
//
// The traffic as SimGrid solves it: S4U, its CM02 network model with lazy updates and no correction factors.

#include <xbt/log.h>

#include <ctime>
#include <simgrid/s4u.hpp>

#include "tests/bench/traffic.h"

namespace sg4 = simgrid::s4u;

int main(int argc, char** argv) {
    if (argc < 3) return 2;
    const std::string file = argv[2];
    xbt_log_control_set("root.thresh:error");
    sg4::Engine engine(&argc, argv);
    for (const char* setting :
         {"network/model:CM02", "network/optim:Lazy", "network/crosstraffic:0",
          "network/TCP-gamma:0", "network/latency-factor:1", "network/bandwidth-factor:1",
          "network/weight-S:0"}) {
        engine.set_config(setting);
    }
    const railyard::Traffic traffic = railyard::traffic(argv[1]);
    const auto half = static_cast<unsigned>(traffic.half);
    sg4::FatTreeParams shape(3, {half, half, static_cast<unsigned>(traffic.pods)}, {1, half, half},
                             {1, 1, 1});
    const auto make_host = [](sg4::NetZone* zone, const std::vector<unsigned long>&,
                              unsigned long id) {
        const sg4::Host* host = zone->create_host("h" + std::to_string(id), 1e9)->seal();
        return std::make_pair(host->get_netpoint(),
                              static_cast<simgrid::kernel::routing::NetPoint*>(nullptr));
    };
    sg4::NetZone* zone = sg4::create_fatTree_zone("tree", nullptr, shape, {make_host, {}, {}},
                                                  railyard::link_bytes_per_s, 0.0,
                                                  sg4::Link::SharingPolicy::SPLITDUPLEX);
    zone->seal();
    std::vector<sg4::Host*> hosts;
    for (int i = 0; i < traffic.hosts(); ++i) {
        hosts.push_back(sg4::Host::by_name("h" + std::to_string(i)));
    }
    std::vector<double> ends;
    sg4::Actor::create("sender", hosts[0], [&] {
        std::vector<sg4::CommPtr> comms;
        for (const railyard::Flow& f : traffic.flows) {
            if (f.start_s > sg4::Engine::get_clock()) sg4::this_actor::sleep_until(f.start_s);
            comms.push_back(sg4::Comm::sendto_async(hosts[static_cast<std::size_t>(f.from)],
                                                    hosts[static_cast<std::size_t>(f.to)],
                                                    static_cast<std::uint64_t>(f.bytes)));
        }
        sg4::Comm::wait_all(comms);
        for (const sg4::CommPtr& c : comms) ends.push_back(c->get_finish_time());
    });
    engine.run();
    railyard::report(file, ends, static_cast<double>(std::clock()) / CLOCKS_PER_SEC);
    return 0;
}
