#include <fmt/format.h>

#include <algorithm>

#include "models/fabric/places.h"
#include "models/fabric/window_reader.h"

namespace railyard {

std::optional<WindowRoute> read_window_route(Section& section,
                                             const std::vector<ClusterNetwork>& networks) {
    std::string from;
    std::string to;
    std::vector<std::string> via;
    section.read("from", from, "The NIC that sends: node-3.nic-0", {.required = true});
    section.read("to", to, "The NIC that receives", {.required = true});
    section.read("via", via,
                 "The switches between them, in order: [\"leaf-0\", \"spine-1\"]; of several "
                 "cables between two the first sound one",
                 {.required = true});
    constexpr std::size_t switches_max = 254;  // a path has at most 255 links
    if (via.size() > switches_max) {
        section.error(
            "via", fmt::format("expected at most {} switches, found {}", switches_max, via.size()));
    }
    const ClusterNetwork* network = choose_network(section, networks);
    section.finish();
    if (via.size() > switches_max) return std::nullopt;
    if (from.empty() || to.empty() || via.empty() || network == nullptr) return std::nullopt;
    const Topology& t = network->topology;
    std::vector<std::optional<VertexId>> stops = {
        find_place(section, "from", t, from, VertexKind::nic)};
    for (const std::string& name : via) {
        stops.push_back(find_place(section, "via", t, name, VertexKind::switch_));
    }
    stops.push_back(find_place(section, "to", t, to, VertexKind::nic));
    if (stops.front() && stops.front() == stops.back()) {
        section.error("to", fmt::format("{} sends to itself", from));
        return std::nullopt;
    }
    if (std::find(stops.begin(), stops.end(), std::nullopt) != stops.end()) return std::nullopt;
    WindowRoute route{network->name, *stops.front(), *stops.back(), {}};
    for (std::size_t i = 0; i + 1 < stops.size(); ++i) {
        const auto cable = find_cable(section, "via", t, *stops[i], *stops[i + 1]);
        if (!cable) return std::nullopt;
        if (t.links()[*cable].bytes_per_s == 0) {
            section.error("via", fmt::format("no working cable joins {} and {}", t.name(*stops[i]),
                                             t.name(*stops[i + 1])));
            return std::nullopt;
        }
        route.path.push_back(*cable);
    }
    return route;
}

}  // namespace railyard
