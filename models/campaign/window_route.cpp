#include "models/campaign/window_route.h"

#include <fmt/format.h>

#include <algorithm>

namespace railyard {

namespace {

std::optional<VertexId> find(Section& section, const char* key, const Topology& t,
                             const std::string& name, bool nic) {
    const std::optional<VertexId> at = t.find(name);
    if (!at) {
        section.error(key, fmt::format("the network has no '{}'", name),
                      did_you_mean(name, t.vertex_names()));
    } else if ((t.level(*at) == 0) != nic) {
        section.error(key,
                      fmt::format("{} is a {}, expected a {}", name,
                                  nic ? level_name(t.level(*at)) : "NIC", nic ? "NIC" : "switch"));
        return std::nullopt;
    }
    return at;
}

}  // namespace

std::optional<WindowRoute> read_window_route(Section& section,
                                             const std::vector<ClusterNetwork>& networks) {
    static const std::vector<std::string> names = {"compute", "storage"};
    std::string from;
    std::string to;
    std::vector<std::string> via;
    section.read("from", from, "The NIC that sends: node-3.nic-0", {.required = true});
    section.read("to", to, "The NIC that receives", {.required = true});
    section.read(
        "via", via,
        "The switches between them, in order: [\"leaf-0\", \"spine-1\"]; of several cables "
        "between two the first sound one",
        {.required = true});
    int network = 0;
    section.choose("network", network, names, "Of which network");
    section.finish();
    if (section.describing() || from.empty() || to.empty() || via.empty()) return std::nullopt;
    WindowRoute route{names[static_cast<std::size_t>(network)], 0, 0, {}};
    const auto its = std::find_if(networks.begin(), networks.end(), [&](const ClusterNetwork& n) {
        return n.name == route.network && n.topology.vertex_count() > 0;
    });
    if (its == networks.end()) {
        if (network == 1) {
            section.error("network", "there is no storage network", "[fabric.storage]");
        }
        return std::nullopt;
    }
    const Topology& t = its->topology;
    std::vector<std::optional<VertexId>> stops = {find(section, "from", t, from, true)};
    for (const std::string& name : via) stops.push_back(find(section, "via", t, name, false));
    stops.push_back(find(section, "to", t, to, true));
    if (stops.front() && stops.front() == stops.back()) {
        section.error("to", fmt::format("{} sends to itself", from));
        return std::nullopt;
    }
    if (std::find(stops.begin(), stops.end(), std::nullopt) != stops.end()) return std::nullopt;
    for (std::size_t i = 0; i + 1 < stops.size(); ++i) {
        const auto cable = t.cable_between(*stops[i], *stops[i + 1]);
        if (!cable || t.links()[*cable].bytes_per_s == 0) {
            section.error("via", fmt::format("no {}cable joins {} and {}", cable ? "working " : "",
                                             t.name(*stops[i]), t.name(*stops[i + 1])));
            return std::nullopt;
        }
        route.path.push_back(*cable);
    }
    route.from = *stops.front();
    route.to = *stops.back();
    return route;
}

}  // namespace railyard
