#pragma once
// Many jobs on the scenario's cluster: [scheduler], [[partition]], [[node_group]], [[reservation]], [jobs].

#include <string>
#include <vector>

#include "models/campaign/fleet_power.h"
#include "models/campaign/scenario.h"

namespace railyard {

// Jobs of a kind, as they come.
struct JobSource {
    FleetJob like;           // what they have in common
    std::int64_t count = 1;  // at most so many
    Rate rate;               // of a Poisson stream of them; 0: all at `like.submit`
    struct Size {
        std::int64_t gpus = 1;
        double share = 1;   // in proportion to the others'
        Duration median{};  // of their work, cut off at `longest`; 0: as below
    };
    std::vector<Size> sizes;
    // Work: log-normal, of this mean and median; all alike when they are equal.
    Duration mean{};
    Duration median{};
    double sigma = 0;         // of the logarithm of the work of sizes with a median
    Duration longest{};       // of these
    double limit_factor = 0;  // time limit in proportion to the work; 0: like.limit
};

struct FleetScenario {
    FleetSpec spec;
    std::vector<JobSource> sources;
    std::vector<FleetJob> trace;  // in order of submission

    std::vector<Node> nodes;                              // by group
    std::vector<std::shared_ptr<const Scenario>> models;  // by kind of jobs; null: without a model
    std::vector<std::vector<PartFault>> throttled;  // likewise: what heat slows of their nodes
    FleetPower power;

    // A kind's name as metrics have it: small letters, digits and "_"; with its number where two would be
    // alike.
    std::string kind_key(std::size_t kind) const;
};

// What a named stream of the catalogue says of its jobs.
PublishedStream read_published_stream(Catalogue& catalogue, const std::string& name);
// Draws the source's jobs from it.
void follow(const StreamShape& shape, JobSource& source);

const std::vector<std::string>& topology_aware_names();  // in the order of SlurmTopology
const std::vector<std::string>& preempt_mode_names();    // in the order of PreemptMode

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
