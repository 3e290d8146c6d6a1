#pragma once
// Many jobs on the scenario's cluster: [scheduler], [[partition]], [[node_group]], [[reservation]], [jobs].

#include <compare>
#include <set>
#include <string>
#include <vector>

#include "models/campaign/scenario.h"
#include "models/campaign/world_power.h"

namespace railyard {

// What work counts in `work_done`.
struct JobWorth {
    double job = 0;       // of one that is done
    double gpu_hour = 0;  // of its work, without a model
};

struct WorldScenario {
    WorldSpec spec;
    std::vector<JobSource> sources;  // by kind; a trace's own kind, the last, has none
    std::vector<WorldJob> trace;     // in order of submission

    std::vector<Node> nodes;                              // by group
    std::vector<std::shared_ptr<const Scenario>> models;  // by kind of jobs; null: without a model
    std::vector<std::optional<DataLoading>> data;         // likewise: what its steps read
    std::vector<std::vector<PartFault>> throttled;  // likewise: what heat slows of their nodes
    std::vector<JobWorth> worths;                   // likewise; empty: nobody counts work
    WorldPower power;
    bool uses_objects = false;  // some kind saves to the object store, or reads there

    // What the job counts when all of its work is kept.
    double worth_of(const WorldJob& job) const;
    // A kind's name as metrics have it: small letters, digits and "_"; with its number where two would be
    // alike.
    std::string kind_key(std::size_t kind) const;
};

// Reads all of them into the scenario, whose cluster and networks must be known, except for the failures.
void read_world(Section& top, ValueReader& values, Catalogue& catalogue, Scenario& scenario);

// Jobs of a kind that can never run, with the reason.
struct JobsRefused {
    std::string kind;
    std::string reason;
    auto operator<=>(const JobsRefused&) const = default;
};
std::set<JobsRefused> jobs_refused(const Scenario& scenario);

// For verbs about one job: throws ScenarioError when the scenario has many.
void need_one_job(const Scenario& scenario, const char* verb);

// With what [failures] says of nodes.
std::shared_ptr<const WorldScenario> world_with_failures(const WorldScenario& world,
                                                         const Scenario& scenario);

// The jobs of a replica.
WorldJobs draw_jobs(const WorldScenario& world, std::uint64_t seed, std::uint64_t replica,
                    Duration until, SourcesSoFar* so_far = nullptr);

}  // namespace railyard
