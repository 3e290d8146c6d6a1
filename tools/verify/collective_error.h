#pragma once
// How far published times of collectives are from what the models say.

#include <string>

#include "models/collective/collective.h"
#include "models/training/training.h"

namespace railyard {

// The latency of small ones, and what one call differs from the next, weigh more than the bandwidth of large
// ones; InfiniBand and RoCE are known from several systems, each other transport from one. Bandwidths between
// nodes are known of four nodes of eight GPUs at most: of more, or of racks, less is known.
inline ModelError read_collective_error(Catalogue& catalogue, const Communicator& c, double bytes) {
    constexpr double small_max = 1 << 20;
    constexpr double large_min = 1 << 30;
    const bool shown = c.domains == 1 || (c.domains <= 4 && c.per_domain <= 8);
    const std::string kind = c.domains == 1 ? "collective_inside"
                             : c.in_order   ? "collective_between"
                                            : "collective_other_transport";
    return read_model_error(catalogue, kind + (bytes < small_max             ? "_small"
                                               : bytes < large_min || !shown ? ""
                                                                             : "_large"));
}

}  // namespace railyard
