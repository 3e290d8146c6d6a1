#pragma once
// Groups of nodes of a scenario's cluster that fail together.

#include "models/campaign/scenario.h"

namespace railyard {

// Reads how nodes are housed: keys of [cluster].
void read_layout(Section& cluster, ClusterLayout& layout);

// The domains of one kind; what the cluster lacks for it is reported at `section`, a cause's.
FailureDomains domains_of(DomainKind kind, const Scenario& scenario, Section& section);

}  // namespace railyard
