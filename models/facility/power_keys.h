#pragma once
// [power] and [facility] as they stand: supplies, racks, cooling, breakers, pumps and the site's budget.

#include <optional>
#include <string>
#include <vector>

#include "models/catalogue/catalogue.h"
#include "models/facility/breaker.h"
#include "models/facility/cooling.h"
#include "models/facility/gpu_heat.h"
#include "models/facility/node_power.h"
#include "sim/config.h"

namespace railyard {

// What a site does that would draw more than it may.
enum class OverBudget : std::uint8_t {
    throttle,  // all clocks stay low enough for all nodes to compute at once
    hold,      // jobs wait until there is power for them
};
extern const std::vector<std::string> over_budget_names;   // in order
extern const std::vector<std::string> power_redundancies;  // of a node's supplies

// What the nodes hang on: breakers, or PDUs with their limits, each with the same number of nodes behind it.
struct BreakerSpec {
    Watts rating{};
    std::int64_t nodes = 0;
    double tolerance = 0;  // standard deviation of the load at which one trips, relative
    Duration reset{};      // until its nodes are back
    TripCurve curve;
    std::size_t cause = 0;  // of the scenario's
};

// Loops of coolant, each with a pump: the cluster's CDUs.
struct PumpSpec {
    std::int64_t loops = 0;
    Rate failure_rate;  // of one loop
    bool standby = false;
    Duration failover{};       // until the standby pump runs
    double heat_capacity = 0;  // J/K for each GPU
    Duration repair{};         // until its nodes are back
    std::size_t cause = 0;     // of the scenario's
};

struct PoweredNode {
    NodePower node;
    Watts repairing;  // while it is out of service
};

struct FacilitySpec {
    bool given = false;           // the scenario has [power] or [facility]
    bool facility_given = false;  // heat, racks and what feeds them are modelled
    // How much of what the supplies carry without the redundant ones a node needs; 0: not known.
    double supplies_load = 0;
    Cooling cooling;
    std::int64_t nodes_per_rack = 0;
    std::optional<GramsPerKilowattHour> carbon;
    std::optional<Watts> budget;  // of the site, at the meter
    OverBudget over_budget = OverBudget::throttle;
    ThrottleLaw throttle;
    std::optional<BreakerSpec> breaker;
    std::optional<PumpSpec> pump;
    Duration edge{};  // from one level of the swing to the other
};

struct PowerKeys : PoweredNode, FacilitySpec {};

struct PowerSections {
    explicit PowerSections(Section& top);
    Section power;
    Section facility;
    Section breaker;
    Section pump;
};

// What the cluster's sections say of its nodes.
struct RackedNodes {
    std::string name;  // of the node's entry
    NodePowerSpec spec;
    std::int64_t count = 0;
    std::optional<std::int64_t> per_rack;
};

// Reads both sections and checks what needs no job's step: supplies, racks, the breakers' idle load, inlets.
// Values that nothing of the scenario hangs on are read from `aside`, so they count as none of its estimates.
PowerKeys read_power_keys(Section& top, PowerSections& sections, Catalogue& catalogue,
                          Catalogue& aside, const RackedNodes& nodes);

}  // namespace railyard
