#pragma once
// Small networks whose switches are all alike.

#include <doctest/doctest.h>

#include <string>

#include "models/fabric/fabric.h"

namespace railyard {

inline TopologySpec uniform_topology(const std::string& kind, std::int64_t nodes,
                                     std::int64_t ports, Bandwidth rate, std::int64_t tiers = 0) {
    TopologySpec spec;
    spec.kind = kind;
    spec.nodes = nodes;
    spec.tiers = tiers;
    spec.nic_bandwidth = rate;
    spec.leaf.name = "switch";
    spec.leaf.ports = ports;
    spec.leaf.port_bandwidth = rate;
    spec.spine = spec.core = spec.leaf;
    return spec;
}

inline Topology built(const TopologySpec& spec) {
    std::string problem;
    Topology t = Topology::build(spec, problem);
    REQUIRE_MESSAGE(problem.empty(), problem);
    return t;
}

// It has everything: 64 NICs, switches of eight ports in three tiers.
inline Topology three_tiers() {
    return built(
        uniform_topology("fat_tree", 64, 8, Bandwidth::bits_per_second(400'000'000'000), 3));
}

}  // namespace railyard
