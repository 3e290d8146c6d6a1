#pragma once
// What a scenario names in a network: a NIC, a switch, the cable between two of them.

#include <optional>
#include <string>

#include "models/fabric/topology.h"
#include "sim/config.h"

namespace railyard {

enum class VertexKind : std::uint8_t { any, nic, switch_ };

// Each reports at `key` what is not there, with the nearest name that is.
std::optional<VertexId> find_place(Section& section, const char* key, const Topology& topology,
                                   const std::string& name, VertexKind wanted = VertexKind::any);
std::optional<LinkId> find_cable(Section& section, const char* key, const Topology& topology,
                                 VertexId from, VertexId to);
// Says at "to" that a fault is of one of several cables side by side.
void warn_of_parallel(Section& section, const Topology& topology, VertexId from, VertexId to);

}  // namespace railyard
