#pragma once
// Entropy values: how a sender spreads its packets over paths that switches choose by hash.
//
// A packet carries a value that every switch hashes with the flow; another value is, perhaps, another path.
// The Ultra Ethernet specification leaves open how values are chosen; here are those of its public simulator.
// An acknowledgement brings back the value of the packet that caused it, and what became of that packet.
// A new choice is a class and a row in the table of entropy.cpp.

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "sim/units.h"

namespace railyard {

enum class PathNews : std::uint8_t { good, marked, trimmed, timed_out };

class EntropyChoice {
  public:
    virtual ~EntropyChoice() = default;
    // A queue pair of this index begins.
    virtual void start(std::uint32_t flow) = 0;
    // The value that the flow's next packet carries.
    virtual std::uint16_t next(std::uint32_t flow, Picoseconds now) = 0;
    virtual void heard(std::uint32_t flow, std::uint16_t value, PathNews news, Picoseconds now) = 0;
};

struct EntropySpec {
    std::string choice = "mixed";  // a name in entropy_kinds()
    std::uint32_t values = 64;     // in a queue pair's pool; a power of two
    std::uint64_t seed = 1;
};

struct EntropyKind {
    const char* name;
    const char* doc;
    std::unique_ptr<EntropyChoice> (*make)(const EntropySpec& spec);
};
const std::vector<EntropyKind>& entropy_kinds();
std::unique_ptr<EntropyChoice> make_entropy_choice(const EntropySpec& spec);

}  // namespace railyard
