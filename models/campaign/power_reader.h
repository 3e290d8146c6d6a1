#pragma once
// Joins [power] and [facility] with the scenario's jobs: caps, heat, budgets, and what feeds them as causes.

#include <string>
#include <vector>

#include "models/campaign/scenario.h"

namespace railyard {

struct WorldPower;

// What each GPU of the scenario's job does in this step of it.
GpuStep gpu_step(const Scenario& job, const StepTime& step);

// The node with all that it has.
NodePowerSpec node_power_spec(const Node& node);

class PowerReader {
  public:
    // Reads both sections. Slows the node's multiplications for a power cap. Without either section the
    // scenario's estimates are not touched.
    PowerReader(Section& top, Catalogue& catalogue, const std::string& node_name,
                Scenario& scenario);

    // Once networks and stores are known, and before any step: what they draw is part of the site's budget.
    void read_network_and_storage();
    // How long a given step takes, all of it computing, under the power cap; and what heat then adds.
    Duration slowed(Duration computing) const;
    Duration throttled_time(const StepTime& step);
    // The parts that heat, or the site's budget, slows when the job runs this step for long.
    std::vector<PartFault> throttled_parts(const StepTime& step);
    // Breakers and loops fail as causes of the scenario: after its own, and before and after [[inject]].
    void add_causes();
    void take_injected();
    // Once the job's step is known.
    void finish();

  private:
    void check_breaker();
    // What the site's budget asks for.
    bool throttles() const { return p_.budget && p_.over_budget == OverBudget::throttle; }
    bool holds_jobs() const { return p_.budget && p_.over_budget == OverBudget::hold; }
    Watts at_meter(Watts nodes) const;
    Watts draw_at(Watts gpu) const;
    Watts least_cap() const;
    Watts cap_for_budget() const;
    Watts within_budget(Watts low, Watts high) const;
    HeatState settled(const GpuPower& gpu, const GpuStep& step);
    PowerBudget jobs_budget(const WorldPower& power, const WorldSpec& spec) const;
    void check_budget(Watts idle_nodes);
    std::vector<PartFault> slowed_parts(const HeatState& heat, const std::string& whose);
    // The same for many jobs.
    void check_world();
    void finish_world();
    NodePower node_power(const Node& node);
    std::vector<PartFault> throttled_parts(const WorldJobKind& kind, NodeDraw& draw);

    Section& top_;
    Catalogue& catalogue_;  // the scenario's own
    StandaloneCatalogue aside_;
    Scenario& s_;
    PowerSpec& p_;
    PowerSections sections_;
};

}  // namespace railyard
