#pragma once
// The technologies that a network may be of.

#include <cstdint>
#include <string>
#include <vector>

#include "sim/text.h"

namespace railyard {

enum class NetworkKind : std::uint8_t {
    infiniband,
    roce,
    tcp,             // plain Ethernet: kernel sockets, drop-tail
    ultra_ethernet,  // packets in any order, trimmed where they find no room
    efa,             // AWS: packets in any order over many paths (SRD), drop-tail
};
// Names of fabric.*.kind, in the order of the enum.
inline const std::vector<std::string> network_kinds = {"infiniband", "roce", "tcp",
                                                       "ultra_ethernet", "efa"};
inline const std::string& to_text(NetworkKind kind) {
    return word_of(network_kinds, kind);
}

// Whether NICs take packets in any order, and a loss is known by what comes back or does not.
constexpr bool any_order(NetworkKind kind) {
    return kind == NetworkKind::ultra_ethernet || kind == NetworkKind::efa;
}

}  // namespace railyard
