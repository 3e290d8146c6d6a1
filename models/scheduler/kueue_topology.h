#pragma once
// Kueue's topology-aware scheduling: pods on nodes of one leaf, or of one block of leaves, or of as few as
// can be.

#include "models/scheduler/pod_placement.h"

namespace railyard {

// required: in one domain of the level or not at all. preferred: in one, else in as few as the largest allow.
// unconstrained: anywhere. Of domains that hold all of it the one with the fewest free GPUs, likewise of
// those below.
std::optional<Allocation> place_in_topology(const WorldCluster& cluster, const PodRequest& pods,
                                            const FreeGpus& free, const KubeJobKind& kind);

// Nodes for pods of a job that has lost a node: in the domain that the rest of it is in, where that is
// required, or while there is room where it is preferred.
std::optional<Allocation> replace_in_topology(const WorldCluster& cluster, const PodRequest& pods,
                                              const FreeGpus& free, const KubeJobKind& kind,
                                              const Allocation& rest);

}  // namespace railyard
