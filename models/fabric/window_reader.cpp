#include "models/fabric/window_reader.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "models/fabric/packet_limits.h"
#include "models/fabric/routing.h"
#include "sim/text.h"

namespace railyard {

namespace {

// When the rate of a collective counts as known.
void read_settling(Section& section, const WindowContext& context, WindowSpec& spec) {
    spec.pieces_max = 384;
    section.read("pieces_max", spec.pieces_max,
                 "Pieces after which a collective's rate is taken as it is, marked (run.fidelity = "
                 "\"packet\")",
                 {Bound::positive});
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
                 "What twice the pieces may change of the collective's rate", {Bound::fraction});
    if (!context.packet_rates) {
        warn_of_keys(section, {"pieces_max", "settled_within"},
                     "has no effect without run.fidelity = \"packet\"");
    }
}

void check_carries_traffic(Section& section, const std::string& network,
                           const std::vector<TrafficSpec>& traffic, const WindowContext& context) {
    const bool carries = std::ranges::any_of(traffic, [&](const TrafficSpec& t) {
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
            const bool taken = std::ranges::any_of(
                flows, [&](const PacketFlow& f) { return f.path == route.path; });
            if (taken) continue;
            const Topology& t = window.network->topology;
            sections[i].error(
                "from",
                fmt::format("nothing is sent from {} to {}", t.name(route.from), t.name(route.to)),
                "window.traffic of kind \"file\" says who sends to whom");
        }
    }
}

// A table of gaps between packets that senders do not leave while the window lasts, or that does not slow
// them enough: its last place leaves a sender 1 / (1 + gap x limit) of its rate.
void check_gaps(Section& top, const WindowSpec& spec, const WindowContext& context) {
    for (const ClusterNetwork& network : context.networks) {
        const std::optional<InfinibandCongestionSpec>& cct = network.packets.cct;
        if (!cct) continue;
        Section congestion =
            top.section("fabric").section(network.name.c_str()).section("congestion");
        const auto places = real(cct->limit);
        const double recovery = places * real(cct->timer.count()) * 1e-12;
        if (recovery > seconds(spec.time_max)) {
            congestion.warning(
                "cct_timer",
                fmt::format("{} places, one in {}, take {:.3g} s: a sender at the end of its table "
                            "is not back at full rate when the window ends, after {} at most",
                            cct->limit, to_text(std::chrono::duration_cast<Duration>(cct->timer)),
                            recovery, to_text(spec.time_max)),
                "a manager's usual choice is 20 us to 500 us");
        }
        const double slowest = 1 + cct->gap * places;
        for (const TrafficSpec& t : spec.traffic) {
            if (t.kind != WindowTraffic::incast || network_of(t, context) != &network) continue;
            const std::int64_t senders = flows_of(t, network, context);
            if (real(senders) <= slowest) continue;
            congestion.warning(
                "cct_limit",
                fmt::format("an incast of {} queue pairs has {:.3g} of a link for each; the "
                            "table's last place, {}, leaves each {:.3g}: credits hold the rest",
                            senders, 1 / real(senders), cct->limit, 1 / slowest),
                fmt::format("cct_limit = {}",
                            std::llround(std::ceil(real(senders - 1) / cct->gap))));
        }
    }
}

// Rails that are apart have no way from one to another. Cables that are cut are not counted: who runs the
// window is told of them.
void check_rails(Section& section, const TrafficSpec& traffic, const WindowContext& context) {
    const ClusterNetwork& compute = context.networks[0];
    if (network_of(traffic, context) != &compute) return;
    if (compute.topology.spec().kind != "rail_only" || compute.topology.vertex_count() == 0) return;
    std::vector<ClusterNetwork> sound = {compute};
    std::string problem;
    sound[0].topology = Topology::build(compute.topology.spec(), problem);
    WindowSpec alone;
    alone.traffic = {traffic};
    try {
        lay_out(alone, {sound, context.nodes, context.converged, context.storage_class,
                        context.seed, context.packet_rates});
    } catch (const NoPath& pair) {
        section.error(
            traffic.kind == WindowTraffic::file ? "path" : "kind",
            fmt::format("{}: {}: with topology = \"rail_only\" a NIC reaches its own rail alone",
                        word_of(window_traffic_names, traffic.kind), pair.what()),
            "\"ring\" or \"all_to_all\", which stay on their rails, or fabric.compute.topology = "
            "\"rail_optimized\"");
    }
}

}  // namespace

WindowSpec read_window(Section& top, const WindowContext& context) {
    Section section = top.section("window");
    WindowSpec spec;
    spec.given = section.present();
    spec.time_max = std::chrono::minutes(2);
    section.read("time_max", spec.time_max, "Simulated time after which a window stops, marked",
                 {Bound::positive});
    keep_within(section, "time_max", spec.time_max, packet_time_max);
    spec.events_max = 1'000'000'000;
    section.read("events_max", spec.events_max, "Events after which a window stops, marked",
                 {Bound::positive});
    read_settling(section, context, spec);
    for (Section& each : section.sections("traffic", "Messages of a window; without any, a ring")) {
        spec.traffic.push_back(read_window_traffic(each, context));
        if (section.ok() && !section.describing()) check_rails(each, spec.traffic.back(), context);
    }
    if (spec.traffic.empty()) spec.traffic.push_back(default_window_traffic());
    for (Section& each : section.sections("fault",
                                          "Something that goes wrong in a window, and there alone: "
                                          "a campaign's storms are failures.storm")) {
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
        const bool twice = std::ranges::any_of(spec.routes, [&](const WindowRoute& other) {
            return other.network == route->network && other.from == route->from &&
                   other.to == route->to;
        });
        if (twice) each.error("from", "two NICs can have one route each way");
        spec.routes.push_back(std::move(*route));
    }
    section.read("allow_loss", spec.allow_loss,
                 "true: packets of a lossless class may find no room; else that is an error");
    section.finish();
    if (spec.given || context.packet_rates) check_gaps(top, spec, context);
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
