#pragma once
// What goes wrong in a packet window, at which NIC or cable.

#include <optional>
#include <string>
#include <vector>

#include "models/fabric/network_reader.h"
#include "models/fabric/packet_window.h"

namespace railyard {

const std::vector<std::string>& window_fault_names();  // in the order of WindowFault::Kind

struct FaultSpec {
    std::string network;
    WindowFault fault;  // of one link; of all cables of a NIC where it has several
    std::vector<LinkId> links;
};

// Reads a [[window.fault]]; nothing when its network was not built, or when something was wrong.
std::optional<FaultSpec> read_window_fault(Section& section,
                                           const std::vector<ClusterNetwork>& networks);

// Reports a fault that one of `faults` is as well: the last would win.
void check_faulty_once(Section& section, const std::vector<FaultSpec>& faults,
                       const FaultSpec& fault);

}  // namespace railyard
