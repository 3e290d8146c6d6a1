#pragma once
// What is asked of a collective library, and the ways in which it may do it. Names as NCCL's.

#include <cstdint>
#include <string>
#include <vector>

#include "sim/text.h"

namespace railyard {

enum class Collective : std::uint8_t {
    all_reduce,
    all_gather,
    reduce_scatter,
    all_to_all,
    broadcast,
    reduce,
    send_recv  // every rank sends its buffer to the next one
};

enum class Algorithm : std::uint8_t {
    ring,
    tree,
    nvls,            // the NVSwitch reduces and multicasts
    nvls_tree,       // NVLS in a domain, a tree between domains
    collnet_direct,  // SHARP: the InfiniBand switches reduce
    pat,             // parallel aggregated trees, one GPU per domain
    pairwise         // sends and receives with each peer
};

// How data and readiness travel: `ll` spends every other word on a flag, `ll128` 8 bytes of 128,
// `simple` none but waits for whole chunks.
enum class Protocol : std::uint8_t { ll, ll128, simple };

// In the order of the enums.
extern const std::vector<std::string> collective_names;
extern const std::vector<std::string> algorithm_names;
extern const std::vector<std::string> protocol_names;
inline const std::string& to_text(Collective c) {
    return word_of(collective_names, c);
}
inline const std::string& to_text(Algorithm a) {
    return word_of(algorithm_names, a);
}
inline const std::string& to_text(Protocol p) {
    return word_of(protocol_names, p);
}

// What nccl-tests multiplies size / time with, so that the result of every collective and number of
// ranks compares with the speed of a link: 2(n-1)/n, (n-1)/n or 1. 0 for one rank where peers share
// the buffer.
double bus_factor(Collective collective, std::int64_t ranks);

}  // namespace railyard
