#pragma once
// What sections of a scenario say of several folders' things at once: each of these joins what a folder below
// has read with what the scenario has by then.

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "models/campaign/world.h"

namespace railyard {

// ---- [cluster] ----

// How nodes are housed.
void read_layout(Section& cluster, ClusterLayout& layout);
// The domains of one kind; what the cluster lacks for it is reported at `section`, a cause's.
FailureDomains domains_of(DomainKind kind, const Scenario& scenario, Section& section);

// ---- [job], and the same of a [[jobs.kind]] ----

// Reads job.software and [job.parallel] for the job, node and model that `s` has by now. `staged`: for one of
// its stages, or for a job that has some.
void read_job_plan(Section& job, ValueReader& values, Catalogue& catalogue,
                   const ScenarioChanges& changes, bool staged, Scenario& s);

// Reads the stages into `s.job.stages` and `s.stages`; their steps are modelled later. `job_table` is the
// document's [job]; `before` the scenario as it was when [job.parallel] was about to be read, for each stage
// reads that section again, with what the stage says itself in place of the job's.
void read_stages(Section& job, const Value* job_table, ValueReader& values, Catalogue& catalogue,
                 const ScenarioChanges& changes, const Scenario& before, Scenario& s);

// Reads [job.data] into `s.data`, `s.job.data` and what each step waits for data, for the job, step, node and
// stores that `s` has by now. `without`: what a counterfactual takes away.
void join_data(Section& job, Catalogue& catalogue, const LossCauses& without, Scenario& s);

// Notes what the nodes of the job in `s`, which must be known, move together to and from its stores.
void join_stores(Scenario& s);
// Whether the job saves or reads there.
bool uses_object_store(const Scenario& s);

// What an upload that shares the compute network with the steps costs each of them; asked at most once.
using BurstPenalty = std::function<Duration()>;
// Reads [job.checkpoint] with its tiers into `s.job`, for the cluster, stores, model and step that `s` has by
// now. `burst_penalty` is empty where packets don't tell.
void read_checkpoint(Section& job, Catalogue& catalogue, Scenario& s,
                     const BurstPenalty& burst_penalty);
// [job.recovery], after the job, its steps and checkpoints.
void join_recovery(Section& job, Catalogue& catalogue, Scenario& s);

// ---- [jobs] ----

// All else of the cluster must be known.
void read_world_jobs(Section& top, ValueReader& values, Catalogue& catalogue,
                     const Scenario& scenario, WorldScenario& world);

// ---- what breaks ----

// Reads [failures] into the scenario, whose cluster, networks, job and window must be there: storms are run.
void read_failures(Section& top, Catalogue& catalogue, Scenario& scenario);
// [[inject]], failures at known times: after [failures], whose causes they name.
void read_injections(Section& top, Catalogue& catalogue, Scenario& scenario);
// Takes out all that fails: run.failures = false.
void leave_out_failures(Scenario& scenario);

// What a cause can strike: all cables between switches, or all NICs, leaves, spines or core switches.
extern const std::vector<std::string> network_part_kinds;
// A [[failures.cause]] of this kind of parts, which a sound network has; its parts have `speed` left.
void add_network_cause(Section& section, const FailureCause& cause, std::size_t kind, double speed,
                       Scenario& scenario);
// What the compute network's cables do by what they are made of: flap, become dirty, die. Steps on flows.
void add_optics_causes(Catalogue& catalogue, Scenario& scenario);
// An [[inject]] that names a part instead of a cause.
void add_outage(Section& section, const InjectionSpec& spec, Scenario& scenario);

// ---- steps, once the sections are read ----

constexpr std::size_t slow_conditions_max = 6;  // kinds of slow parts in one scenario

// The plan with so many data-parallel replicas, each with the batch that it had.
ParallelPlan with_replicas(const ParallelPlan& plan, std::int64_t data);

// The steps of the scenario's job at this fidelity, on a draw of the network's luck; both must outlive it.
// `sound` is as communicators() has it.
StepModel steps_of(const Scenario& scenario, Fidelity fidelity, const NetworkDraw* draw,
                   GpuNetwork* sound = nullptr);
// What a step takes longer with these faults: on one stage, and everywhere.
Duration held_up(StepModel& steps, const ParallelPlan& plan, const std::vector<PartFault>& faults,
                 const std::vector<PartFault>& everywhere = {});
// What a step takes longer than usual by the conditions of the scenario's slow parts, bits.
std::vector<Duration> slowed_steps(const Scenario& scenario, StepModel& steps,
                                   const ParallelPlan& plan);

// Fills the job's tables of steps: by the conditions of scenario.slow_parts, and by size.
void model_conditions(Scenario& scenario, unsigned threads);
// The steps of all stages, on each draw of the network's luck and under each condition of slow parts.
void model_stages(Scenario& s, const LossCauses& without, unsigned threads);
// The one job's steps, saves and reads over what is left of the network; after its sizes and draws are known.
void route_job(Scenario& scenario);

// What a job's groups get of the compute network when it is run packet by packet (run.fidelity = "packet"):
// rates on the scenario's network, of which [fabric]'s keys for packets are read already. It refers to the
// scenario.
// `burst`: all nodes of the job write a checkpoint at the same time, to servers on that network.
std::shared_ptr<NetworkModel> packet_rates(const Scenario& scenario, bool burst);

}  // namespace railyard
