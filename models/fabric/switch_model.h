#pragma once
// What a switch is: ports, their rate, how long it holds a packet.

#include <cstdint>
#include <string>

#include "models/catalogue/catalogue.h"

namespace railyard {

struct SwitchModel {
    std::string name;  // its catalogue entry
    std::int64_t ports = 0;
    Bandwidth port_bandwidth;
    Duration latency{};
    bool infiniband = false;
    bool adaptive_routing = false;
    bool sharp = false;                    // reduces in the network
    std::int64_t sharp_trees = INT64_MAX;  // that it can be part of at once
    bool trims = false;                    // packets that find no room, to their headers
    bool link_level_retry = false;

    // Ports at a link rate: a fast port splits into slower ones.
    std::int64_t ports_at(Bandwidth link) const {
        if (link.bits_per_second() <= 0) return 0;
        return ports * (port_bandwidth.bits_per_second() / link.bits_per_second());
    }
    bool operator==(const SwitchModel&) const = default;
};

SwitchModel read_switch(Catalogue& catalogue, const std::string& name);

}  // namespace railyard
