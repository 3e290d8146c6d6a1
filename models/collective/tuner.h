#pragma once
// What NCCL would do: the estimate by which it chooses, as its source has it. Known to be short of
// measured times, in particular of small messages; cost.h has those.

#include <optional>
#include <string>

#include "models/collective/algorithm.h"
#include "models/collective/communicator.h"

namespace railyard {

struct Choice {
    Algorithm algorithm = Algorithm::ring;
    Protocol protocol = Protocol::simple;
};

// Why this can't be, for people; empty when it can.
std::string why_unavailable(const Communicator& communicator, Collective collective, Choice choice);
bool available(const Communicator& communicator, Collective collective, Choice choice);

// NCCL's estimate in seconds, of a choice that is available and not pairwise, for which NCCL makes
// none. ranks > 1.
double tuner_seconds(const Communicator& communicator, Collective collective, double bytes,
                     Choice choice);

// What a person may insist on.
struct Wish {
    std::optional<Algorithm> algorithm;
    std::optional<Protocol> protocol;
};

// What NCCL chooses: the least estimate of what is wished for; LL between peers of at most 16 KiB.
// nullopt when nothing like that is available; without a wish something always is.
std::optional<Choice> choose(const Communicator& communicator, Collective collective, double bytes,
                             Wish wish = {});

// Whether that is this algorithm for some size: of powers of two.
bool chooses(const Communicator& communicator, Collective collective, Algorithm algorithm,
             Wish wish);

}  // namespace railyard
