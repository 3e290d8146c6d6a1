#pragma once
// What a network is made of: what an architect orders, and what its shape gives.

#include <string>
#include <vector>

#include "models/fabric/topology.h"

namespace railyard {

struct SwitchOrder {
    std::string tier;
    std::string model;
    std::int64_t count = 0;
    std::int64_t ports = 0;  // of all of them, at the rate of their links
    std::int64_t ports_used = 0;
    double oversubscription = 0;  // bandwidth down over bandwidth up; 0: nothing above
};

struct CableOrder {
    std::string where;     // "NIC to leaf"
    std::string optics{};  // an entry of the catalogue, where the scenario has one
    // "Cat6, RJ45", "DAC", "AOC", "optics and fibre", "long ..." and "coherent ...", by rate and reach.
    std::string medium;
    Metres length;
    Bandwidth bandwidth;
    std::int64_t count = 0;
    std::int64_t transceivers = 0;  // separate ones: two for each fibre
};

struct Materials {
    std::vector<SwitchOrder> switches;
    std::vector<CableOrder> cables;
    std::int64_t nics = 0;
    double half_of_nics_bytes_per_s = 0;  // what the NICs of half of the nodes could send
};

// As built, broken cables included.
Materials materials_of(const Topology& topology, Catalogue& catalogue);

}  // namespace railyard
