#pragma once
// A failure's instant, with everything random that may follow from it.

#include <cstddef>
#include <cstdint>
#include <optional>

#include "sim/units.h"

namespace railyard {

class RandomStream;

// All of it is drawn in any case, from the cause's own stream, so that what a strike leads to moves no other
// strike and no repair.
struct Strike {
    std::size_t cause = 0;
    std::int64_t slot = 0;     // of the job; of what has an age or is a domain: its number
    double acceptance = 0;     // uniform: it hurts below the node's rate over the worst node's
    double replacement = 0;    // uniform: below replace_fraction the node needs repair
    double repair_spread = 0;  // standard normal, of the logarithm of the repair time
    double cure = 0;           // uniform: below cured_by_repair a lemon is one no more
    double diagnosis = 1;      // uniform: how long guesses are wrong (`misleads`)
    double bystander = 0;      // uniform: the node that is blamed instead
    double search = 0;         // uniform: of a slow part, which health check finds it
    std::int64_t guesses = 0;  // at the node that is broken, all wrong
    bool follows = false;      // another one of its burst
    std::optional<std::uint32_t>
        job{};  // of many: whose rate it is; what breaks nothing stops it alone
    std::optional<Duration> out_for{};  // of an injected one: how long its nodes are out

    // Whether the next guess blames another node: of the n-th, with the probability misdiagnosis^n.
    bool misleads(double misdiagnosis) const;

    void draw_consequences(RandomStream& stream);
    void draw_diagnosis(RandomStream& stream);
};

}  // namespace railyard
