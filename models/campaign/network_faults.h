#pragma once
// What breaks of the compute network in mid-campaign: the parts that [[inject]] and [[failures.cause]] name.

#include "models/campaign/scenario.h"

namespace railyard {

// What a cause can strike: all cables between switches, or all NICs, leaves, spines or core switches.
const std::vector<std::string>& network_part_kinds();

// A [[failures.cause]] of this kind of parts, which a sound network has; its parts have `speed` left.
void add_network_cause(Section& section, const FailureCause& cause, std::size_t kind, double speed,
                       Scenario& scenario);

// What the compute network's cables do by what they are made of: flap, become dirty, die. Steps on flows.
void add_optics_causes(Catalogue& catalogue, Scenario& scenario);

// An [[inject]] that names a part instead of a cause.
void add_outage(Section& section, const InjectionSpec& spec, Scenario& scenario);

// The one job's steps over what is left of the network; after its sizes and draws are known.
void route_steps(Scenario& scenario);

}  // namespace railyard
