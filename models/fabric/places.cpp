#include "models/fabric/places.h"

#include <fmt/format.h>

#include <algorithm>
#include <span>

namespace railyard {

std::optional<VertexId> find_place(Section& section, const char* key, const Topology& topology,
                                   const std::string& name, VertexKind wanted) {
    if (topology.vertex_count() == 0 && !section.ok())
        return std::nullopt;  // it could not be built
    std::vector<std::string> all;
    for (VertexId v = 0; v < topology.vertex_count(); ++v) all.push_back(topology.name(v));
    const auto switches = all.begin() + topology.nic_count();
    const std::optional<VertexId> at = topology.find(name);
    if (!at) {
        const std::vector<std::string> candidates(
            wanted == VertexKind::switch_ ? switches : all.begin(),
            wanted == VertexKind::nic ? switches : all.end());
        section.error(key, fmt::format("the network has no '{}'", name),
                      did_you_mean(name, candidates));
        return std::nullopt;
    }
    const bool nic = topology.level(*at) == 0;
    if (wanted != VertexKind::any && nic != (wanted == VertexKind::nic)) {
        section.error(key, fmt::format("{} is a {}, expected a {}", name,
                                       nic ? "NIC" : level_name(topology.level(*at)),
                                       nic ? "switch" : "NIC"));
        return std::nullopt;
    }
    return at;
}

std::optional<LinkId> find_cable(Section& section, const char* key, const Topology& topology,
                                 VertexId from, VertexId to) {
    const std::optional<LinkId> cable = cable_between(topology, from, to);
    if (!cable) {
        section.error(
            key, fmt::format("no cable joins {} and {}", topology.name(from), topology.name(to)));
    }
    return cable;
}

void warn_of_parallel(Section& section, const Topology& topology, VertexId from, VertexId to) {
    std::int64_t cables = 0;
    for (const std::span<const LinkId> links :
         {topology.up_links(from), topology.down_links(from)}) {
        cables +=
            std::ranges::count_if(links, [&](LinkId l) { return topology.links()[l].to == to; });
    }
    if (cables <= 1) return;
    section.warning("to", fmt::format("{} cables join {} and {}: this is of one, the others go on",
                                      cables, topology.name(from), topology.name(to)));
}

}  // namespace railyard
