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
    // By rate and reach, an entry of the catalogue's cables: cat6, dac, aoc, optic_400g (at any rate),
    // optic_lr or optic_zr.
    std::string kind{};
    std::string medium;  // for people: "DAC", "optics and fibre"
    Metres length;
    Bandwidth bandwidth;
    std::int64_t count = 0;
    std::int64_t transceivers = 0;  // separate ones: two for each fibre

    bool coherent() const { return kind == "optic_zr"; }
    bool between_buildings() const { return coherent() || kind == "optic_lr"; }
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
