#pragma once
// What a job's groups get of the compute network when it is run packet by packet: run.fidelity = "packet".

#include <memory>

#include "models/campaign/scenario.h"

namespace railyard {

// Rates on the scenario's compute network, whose packets must be read; the scenario must live longer.
// `burst`: all nodes of the job write a checkpoint at the same time, to servers on that network.
std::shared_ptr<NetworkModel> packet_rates(const Scenario& scenario, bool burst);

}  // namespace railyard
