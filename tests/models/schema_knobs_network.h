#pragma once
// For each key of a network whose parts break a value to set.

#include "tests/models/schema_knobs.h"

namespace railyard {

inline const std::map<std::string, Knob> network_knobs = {
    {"failures.cause.network_part",
     {{"failures.cause.0.network_part=leaf"}, {}, "", "", broken_network.c_str()}},
    {"failures.cause.rate_per_part",
     {{"failures.cause.0.rate_per_part=0.3 /day"}, {}, "", "", broken_network.c_str()}},
    {"inject.part", {{"inject.0.part=spine-1"}, {}, "", "", broken_network.c_str()}},
    {"inject.from", {{"inject.1.from=leaf-1"}, {}, "", "", broken_network.c_str()}},
    {"inject.to", {{"inject.1.to=spine-1"}, {}, "", "", broken_network.c_str()}},
    {"inject.speed", {{"inject.1.speed=0.5"}, {}, "", "", broken_network.c_str()}},
};

}  // namespace railyard
