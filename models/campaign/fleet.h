#pragma once
// Many jobs on the scenario's cluster: [scheduler], [[partition]], [[node_group]], [[reservation]], [jobs].

#include <string>
#include <vector>

#include "models/campaign/fleet_power.h"
#include "models/campaign/scenario.h"

namespace railyard {

// What work counts in `work_done`.
struct JobWorth {
    double job = 0;       // of one that is done
    double gpu_hour = 0;  // of its work, without a model
};

struct FleetScenario {
    FleetSpec spec;
    std::vector<JobSource> sources;
    std::vector<FleetJob> trace;  // in order of submission

    std::vector<Node> nodes;                              // by group
    std::vector<std::shared_ptr<const Scenario>> models;  // by kind of jobs; null: without a model
    std::vector<std::vector<PartFault>> throttled;  // likewise: what heat slows of their nodes
    std::vector<JobWorth> worths;                   // likewise; empty: nobody counts work
    FleetPower power;

    // What the job counts when all of its work is kept.
    double worth_of(const FleetJob& job) const;
    // A kind's name as metrics have it: small letters, digits and "_"; with its number where two would be
    // alike.
    std::string kind_key(std::size_t kind) const;
};

// Reads all of them into the scenario, whose cluster and networks must be known, except for the failures.
void read_fleet(Section& top, ValueReader& values, Catalogue& catalogue, Scenario& scenario);

// For verbs about one job: throws ScenarioError when the scenario has many.
void need_one_job(const Scenario& scenario, const char* verb);

// With what [failures] says of nodes.
std::shared_ptr<const FleetScenario> fleet_with_failures(const FleetScenario& fleet,
                                                         const Scenario& scenario);

// The jobs of a replica.
FleetJobs draw_jobs(const FleetScenario& fleet, std::uint64_t seed, std::uint64_t replica,
                    Duration until);

}  // namespace railyard
