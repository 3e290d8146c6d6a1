#pragma once
// Power under a campaign: what the ledger's time draws, from the sections [power] and [facility] or, without
// them, from the catalogue alone.

#include <array>
#include <optional>

#include "models/fabric/fabric.h"
#include "models/facility/facility.h"
#include "models/training/training.h"
#include "sim/metrics.h"

namespace railyard {

// What the nodes hang on: breakers, or PDUs with their limits, each with the same number of nodes behind it.
struct BreakerSpec {
    Watts rating{};
    std::int64_t nodes = 0;
    double tolerance = 0;  // standard deviation of the load at which one trips, relative
    Duration reset{};      // until its nodes are back
    TripCurve curve;
};

// Loops of coolant, each with a pump and the same number of nodes behind it.
struct PumpSpec {
    std::int64_t nodes = 0;
    Rate failure_rate;  // of one loop
    bool standby = false;
    Duration failover{};       // until the standby pump runs
    double heat_capacity = 0;  // J/K for each GPU
    Duration repair{};         // until its nodes are back
};

struct PowerSpec {
    bool given = false;           // the scenario has [power] or [facility]
    bool facility_given = false;  // heat, racks and what feeds them are modelled
    NodePower node;
    double supplies_load =
        0;  // of the supplies that are left when the redundant ones are gone; 0: not known
    Cooling cooling;
    std::int64_t nodes_per_rack = 0;
    std::optional<GramsPerKilowattHour> carbon;
    Watts repairing;  // a node that is out of service
    Watts network;    // switches and transceivers
    Watts network_design;
    Watts storage;  // servers
    ThrottleLaw throttle;
    std::optional<BreakerSpec> breaker;
    std::optional<PumpSpec> pump;
    Duration edge{};  // from one level of the swing to the other

    // Of the job's step.
    GpuStep step;
    HeatState heat;
    Watts gpu_mean;          // of one GPU, over the step
    PowerProfile node_step;  // of one of its nodes

    // What a node draws while its time is booked so.
    Watts of(Category category) const;
    // The most that a node may draw: its rating, or its GPUs at their cap with all else at full.
    Watts node_design() const;
};

// Energy of one replica, before the facility's own losses. Node-nanoseconds times milliwatts: exact.
struct CampaignEnergy {
    std::array<Picojoules, category_count> nodes{};
    Picojoules network = 0;
    Picojoules storage = 0;

    Picojoules total() const;
};
CampaignEnergy energy_of(const PowerSpec& power, const Ledger& ledger, std::int64_t gpus_per_node,
                         Duration simulated);

// What it comes to at the meter of a cluster of so many nodes, some of them in the job.
EnergyUse energy_use(const PowerSpec& power, const CampaignEnergy& energy, Duration simulated,
                     std::int64_t nodes, std::int64_t job_nodes);

// power_mean, power_peak, energy, energy_per_token ..., of one replica. `tokens`: those that it has kept,
// of a job that counts them.
void add_power_metrics(const PowerSpec& power, const EnergyUse& use, std::int64_t job_nodes,
                       std::optional<double> tokens, std::vector<Metric>& out);

// The switches and transceivers of a network as it is built.
struct NetworkPower {
    Watts typical;
    Watts design;
};
NetworkPower network_power(const Topology& topology, Catalogue& catalogue);

}  // namespace railyard
