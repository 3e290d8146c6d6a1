#pragma once
// A small network that has everything: 64 NICs, switches of eight ports in three tiers.

#include <doctest/doctest.h>

#include <string>

#include "models/fabric/fabric.h"

namespace railyard {

inline Topology three_tiers() {
    TopologySpec spec;
    spec.kind = "fat_tree";
    spec.nodes = 64;
    spec.tiers = 3;
    spec.nic_bandwidth = Bandwidth::bits_per_second(400'000'000'000);
    spec.leaf.name = "switch";
    spec.leaf.ports = 8;
    spec.leaf.port_bandwidth = spec.nic_bandwidth;
    spec.spine = spec.core = spec.leaf;
    std::string problem;
    Topology t = Topology::build(spec, problem);
    REQUIRE(problem == "");
    return t;
}

}  // namespace railyard
