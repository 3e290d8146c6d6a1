#include "models/fabric/window_reader.h"

#include <fmt/format.h>

#include <algorithm>

#include "models/fabric/packet_limits.h"
#include "models/fabric/routing.h"

namespace railyard {

namespace {

// When the rate of a collective counts as known.
void read_settling(Section& section, const WindowContext& context, WindowSpec& spec) {
    spec.pieces_max = 384;
    section.read("pieces_max", spec.pieces_max,
                 "Pieces after which a collective's rate is taken as it is, marked "
                 "(run.fidelity = \"packet\")",
                 {.bound = Bound::positive});
    constexpr std::int64_t pieces_least = 12;
    constexpr std::int64_t pieces_most = 1 << 20;
    if (spec.pieces_max < pieces_least || spec.pieces_max > pieces_most) {
        section.error(
            "pieces_max",
            fmt::format("expected {} to {}, found {}", pieces_least, pieces_most, spec.pieces_max),
            "what 6 take more than 3 is compared with what 12 take more than 6, and so on");
    }
    spec.settled_within = 0.05;
    section.read("settled_within", spec.settled_within,
                 "What twice the pieces may change of the collective's rate",
                 {.bound = Bound::fraction});
    for (const char* key : {"pieces_max", "settled_within"}) {
        if (section.has(key) && !context.packet_rates) {
            section.warning(key, "has no effect without run.fidelity = \"packet\"");
        }
    }
}

void check_carries_traffic(Section& section, const std::string& network,
                           const std::vector<TrafficSpec>& traffic, const WindowContext& context) {
    const bool carries = std::any_of(traffic.begin(), traffic.end(), [&](const TrafficSpec& t) {
        const ClusterNetwork* its = network_of(t, context);
        return its != nullptr && its->name == network;
    });
    if (carries) return;
    section.warning("network",
                    fmt::format("has no effect: nothing is sent on the {} network", network));
}

// A route that nothing takes is a mistake.
void check_routes(std::vector<Section>& sections, const WindowSpec& spec,
                  const WindowContext& context) {
    const std::vector<NetworkWindow> windows = lay_out(spec, context);
    for (std::size_t i = 0; i < spec.routes.size(); ++i) {
        const WindowRoute& route = spec.routes[i];
        for (const NetworkWindow& window : windows) {
            if (window.network->name != route.network) continue;
            const std::vector<PacketFlow>& flows = window.window.flows;
            const bool taken = std::any_of(flows.begin(), flows.end(), [&](const PacketFlow& f) {
                return f.path == route.path;
            });
            if (taken) continue;
            const Topology& t = window.network->topology;
            sections[i].error(
                "from",
                fmt::format("nothing is sent from {} to {}", t.name(route.from), t.name(route.to)),
                "window.traffic of kind \"file\" says who sends to whom");
        }
    }
}

}  // namespace

WindowSpec read_window(Section& top, const WindowContext& context) {
    Section section = top.section("window");
    WindowSpec spec;
    spec.given = section.present();
    spec.time_max = std::chrono::minutes(2);
    section.read("time_max", spec.time_max, "Simulated time after which a window stops, marked",
                 {.bound = Bound::positive});
    keep_within(section, "time_max", spec.time_max, packet_time_max);
    spec.events_max = 1'000'000'000;
    section.read("events_max", spec.events_max, "Events after which a window stops, marked",
                 {.bound = Bound::positive});
    read_settling(section, context, spec);
    for (Section& each : section.sections("traffic", "Messages of a window; without any, a ring")) {
        spec.traffic.push_back(read_window_traffic(each, context));
    }
    if (spec.traffic.empty()) spec.traffic.push_back(default_window_traffic());
    for (Section& each : section.sections(
             "fault",
             "Something that goes wrong in a window, and there alone: a campaign's storms are "
             "failures.storm")) {
        auto fault = read_window_fault(each, context.networks);
        if (!fault) continue;
        check_faulty_once(each, spec.faults, *fault);
        check_carries_traffic(each, fault->network, spec.traffic, context);
        spec.faults.push_back(std::move(*fault));
    }
    std::vector<Section> routes =
        section.sections("route", "A route between two NICs that the network would not choose");
    for (Section& each : routes) {
        auto route = read_window_route(each, context.networks);
        if (!route) continue;
        check_carries_traffic(each, route->network, spec.traffic, context);
        const bool twice =
            std::any_of(spec.routes.begin(), spec.routes.end(), [&](const WindowRoute& other) {
                return other.network == route->network && other.from == route->from &&
                       other.to == route->to;
            });
        if (twice) each.error("from", "two NICs can have one route each way");
        spec.routes.push_back(std::move(*route));
    }
    section.read("allow_loss", spec.allow_loss,
                 "true: packets of a lossless class may find no room; else that is an error");
    section.finish();
    if (!spec.routes.empty() && section.ok()) {
        try {
            check_routes(routes, spec, context);
        } catch (const NoPath&) {
            // Cables are cut: who runs the window is told.
        }
    }
    return spec;
}

}  // namespace railyard
