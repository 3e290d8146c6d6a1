#pragma once
// What a job's groups get of the compute network when it is run packet by packet: run.fidelity = "packet".

#include <memory>

#include "models/campaign/scenario.h"

namespace railyard {

// Of the scenario's compute network, whose packets must be read. Outlived by the scenario.
std::shared_ptr<NetworkModel> packet_rates(const Scenario& scenario);

}  // namespace railyard
