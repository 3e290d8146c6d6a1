#pragma once
// What `railyard storage` says of a scenario's store.

#include <vector>

#include "models/campaign/campaign.h"
#include "tools/program/json_text.h"

namespace railyard {

// What it gives, holds and loses with its parts, and the walls that a checkpoint meets.
void print_store(const Scenario& scenario, const SmallFiles& files);
// How long all ranks take over the network when they come at once.
void print_bursts(const Scenario& scenario);
Json store_json(const Scenario& scenario, const SmallFiles& files);

// What all nodes of the job read and write together, bytes/s, and what a checkpoint takes, s.
std::vector<double> store_answers(const Scenario& scenario);

}  // namespace railyard
