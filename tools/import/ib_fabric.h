#pragma once
// An InfiniBand fabric as ibnetdiscover prints it.

#include <map>
#include <string>
#include <vector>

#include "tools/import/text_file.h"

namespace railyard {

struct IbPort {
    int port = 0;
    std::string peer;  // "S-2c5eab0300c26280"
    int peer_port = 0;
    double gbps = 0;  // of the cable
    int line = 0;
};

struct IbNode {
    std::string id;  // "H-e09d7303007a4bd8"
    std::string description;
    std::string device;  // 0xd2f2
    int ports = 0;
    int line = 0;
    std::vector<IbPort> links;

    bool is_switch() const { return id.starts_with("S-"); }
    // A switch's own engine for reductions, no host.
    bool is_aggregation() const {
        return description.find("Aggregation Node") != std::string::npos;
    }
};

using IbFabric = std::map<std::string, IbNode>;  // by id

// Reads the file; what is no ibnetdiscover, or has no switch, is reported.
IbFabric read_ib_fabric(const std::string& file, const std::vector<FileLine>& lines,
                        Diagnostics& diagnostics);

// "a08-p1-dgx-04-c01 mlx5_5": the host, and the rail's number, HCA-6 being mlx5_5. Empty: the host has no
// name of its own.
struct IbHost {
    std::string name;
    int rail = -1;
};
IbHost ib_host(const std::string& description);

}  // namespace railyard
