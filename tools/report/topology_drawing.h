#pragma once
// A network as a picture.

#include <string>

#include "models/fabric/fabric.h"

namespace railyard {

// SVG: a row per tier, leaves with what hangs on them below, lines as wide as their cables are many and red
// where one is broken. A network of more than a few thousand lines shows them thinned out, and says so.
// With `load`, a share of the busiest link's for each link, lines are coloured by it, from blue to red; a
// broken one is dashed.
std::string topology_svg(const Topology& topology, const std::string& title,
                         const std::vector<double>& load = {});

// Graphviz DOT: every switch and node, an edge per pair with the number of its cables.
std::string topology_dot(const Topology& topology, const std::string& title);

}  // namespace railyard
