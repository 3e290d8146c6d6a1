#pragma once
// Runs of table 45, the public simulator of the Ultra Ethernet Consortium, as the packet engine makes them.
// The table's header has the configuration.

#include <string>

#include "tests/laws/oracles/ns3_runs.h"

namespace railyard {

// A row's columns, by which it is run.
struct UetCase {
    std::string traffic;  // "incast16", "perm128_mtu4160"
    std::string control;
    std::string path;
    std::string trimming;
};

// By the table's names of metrics; besides, packets `lost` in queues and `timeouts`. `folder`: of the
// table, with its traces. Empty when the case can't be expressed.
Metrics uet_run(const UetCase& given, const std::string& folder, std::uint64_t seed);

}  // namespace railyard
