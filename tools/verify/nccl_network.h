#pragma once
// The NICs of a node and the ways to them, in the words that people put beside what nccl-tests prints.

#include <cstdint>
#include <string>
#include <vector>

#include "models/hardware/hardware.h"

namespace railyard {

// A kind of node that a cloud rents out, "p5.48xlarge" or "ND H100 v5".
struct CloudInstance {
    const char* name;  // a regular expression over small letters
    const char* gpu;   // in small letters
    const char* nics;  // as a table writes them
};
// The one that a text in small letters names, or nullptr.
const CloudInstance* cloud_instance(const std::string& text);

// What a row says of a node's NICs.
struct NetworkWords {
    std::string network;         // the column's text
    const CloudInstance* cloud;  // nullptr: none is named
    bool system;                 // one is named, "DGX H100", and so how many GPUs it has
    std::int64_t ranks;          // of a node
    bool joins;                  // several NVLink domains
};

// Sets the node's NICs and what else is said of it, and returns words that nothing here reads. Throws
// RowError, of the column "network", where those may decide how fast the network is.
std::vector<std::string> read_network_words(Catalogue& catalogue, const NetworkWords& words,
                                            Node& node);

}  // namespace railyard
