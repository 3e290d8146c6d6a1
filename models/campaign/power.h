#pragma once
// Power under a campaign: what the ledger's time draws, from the sections [power] and [facility] or, without
// them, from the catalogue alone.

#include <array>
#include <functional>
#include <optional>
#include <vector>

#include "models/fabric/fabric.h"
#include "models/facility/facility.h"
#include "models/training/training.h"
#include "sim/metrics.h"

namespace railyard {

// What became of breakers and loops in one replica.
struct FeedCounts {
    std::int64_t breaker_trips = 0;
    std::int64_t pump_losses = 0;
    std::int64_t pump_losses_ridden_through = 0;
};

// A node of one kind, under jobs of one kind.
struct NodeDraw : PoweredNode {
    // The jobs' step on it.
    GpuStep step;
    HeatState heat;
    Watts gpu_mean;          // of one GPU, over the step
    PowerProfile node_step;  // of one of their nodes

    // When its GPUs run this step for long, at the speed of `heat`.
    void run(const GpuStep& step);
    // What it draws while its time is booked so.
    Watts of(Category category) const;
    Watts without_job(Category category) const;
};

struct PowerSpec : NodeDraw, FacilitySpec {
    Watts network;  // switches and transceivers
    Watts network_design;
    Watts storage;            // servers
    double budget_speed = 1;  // of the clocks, which keeps to the site's budget
    std::vector<InjectedStrike> injected_pump_losses;
};

using NodeEnergy = std::array<Picojoules, category_count>;

// Energy of one replica, before the facility's own losses. Node-nanoseconds times milliwatts: exact.
struct CampaignEnergy {
    NodeEnergy nodes{};
    Picojoules network = 0;
    Picojoules storage = 0;

    Picojoules total() const;
};
// The energy of nodes that all draw alike, whose GPUs the ledger counts in `parts_per_node`.
NodeEnergy node_energy(const std::function<Watts(Category)>& draw, const Ledger& ledger,
                       std::int64_t parts_per_node);
CampaignEnergy energy_of(const PowerSpec& power, const NodeEnergy& nodes, Duration simulated);

// What all nodes draw together.
struct NodesDraw {
    double peak = 0;   // W: at the highest instant
    double swing = 0;  // of the jobs' nodes, at the edges of a step
    double design = 0;
};
NodesDraw nodes_draw(const PowerSpec& power, std::int64_t nodes, std::int64_t job_nodes);

// What it comes to at the meter.
EnergyUse energy_use(const PowerSpec& power, const CampaignEnergy& energy, Duration simulated,
                     const NodesDraw& nodes);

// power_mean, power_peak, energy, energy_per_token ..., of one replica. `tokens`: those that it has kept,
// of a job that counts them.
void add_power_metrics(const PowerSpec& power, const EnergyUse& use, double swing,
                       std::optional<double> tokens, MetricList& out);
// Metrics of racks, heat and feeds, with [facility].
void add_facility_metrics(const PowerSpec& power, std::int64_t job_nodes, const FeedCounts& feeds,
                          MetricList& out);

// What a switch draws; one without a published figure, what a common one does.
struct SwitchPower {
    Watts typical;
    Watts most;
};
SwitchPower switch_power(const std::string& model, Catalogue& catalogue);

// The switches and transceivers of a network as it is built.
struct NetworkPower {
    Watts typical;
    Watts design;
};
NetworkPower network_power(const Topology& topology, Catalogue& catalogue);

}  // namespace railyard
