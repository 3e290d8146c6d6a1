#pragma once
// A scenario: one TOML file, read, checked and turned into what a campaign runs on.

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "models/campaign/cost.h"
#include "models/campaign/counterfactual.h"
#include "models/campaign/limits.h"
#include "models/campaign/network_draw.h"
#include "models/campaign/power.h"
#include "models/fabric/fabric.h"
#include "models/scheduler/scheduler.h"
#include "models/storage/storage.h"
#include "models/training/training.h"

namespace railyard {

// The network model that steps are computed with.
enum class Fidelity : std::uint8_t { analytic, flow, packet };
extern const std::vector<std::string> fidelity_names;
extern const std::vector<std::string> value_choice_names;  // in the order of ValueChoice

struct WorldScenario;

// How nodes are housed, in runs in order of their number.
struct ClusterLayout {
    std::int64_t nodes_per_rack = 4;
    bool nodes_per_rack_given = false;
    std::int64_t racks_per_pdu = 4;
    std::int64_t racks_per_cdu = 8;
    std::int64_t nodes_per_wave = 32;
};

// [run]
struct CampaignSpec {
    std::string file;
    std::string title;
    std::uint64_t seed = 1;
    std::int64_t replicas = 1;
    Duration duration{};          // the campaign's length; zero: until the job is done
    std::int64_t events_max = 0;  // per replica
    Fidelity fidelity = Fidelity::analytic;
    std::int64_t network_draws = 1;  // how many to make
};

// [cluster]
struct ClusterSpec {
    Node node;
    NodePool::Spec nodes;
    ClusterLayout layout;
    std::vector<PartFault> faults;
    std::vector<Duration> fault_costs;  // what each, alone, adds to a step
};

struct Scenario;

// From a day until another; the times are after the campaign's first day.
struct ScenarioPhase {
    std::string name;
    Duration from{};
    Duration until{};
    Duration stop{};                       // that its job stands still first
    std::shared_ptr<const Scenario> as{};  // all that is there
};

inline constexpr double step_seconds_max = 1e7;  // a step of 116 days is a mistake in the scenario

// A spec of each folder, read there; and what the campaign makes of several of them.
struct Scenario : CampaignSpec,
                  CatalogueSpec,
                  ClusterSpec,
                  NetworksSpec,
                  StoresSpec,
                  TrainingSpec,
                  FailuresSpec {
    // The defaults, in scenario.cpp: compiled once there, not in each source that uses one.
    Scenario();
    Scenario(const Scenario&);
    Scenario(Scenario&&) noexcept;
    Scenario& operator=(const Scenario&);
    Scenario& operator=(Scenario&&) noexcept;
    ~Scenario();

    std::vector<NetworkDraw>
        draws;            // of the network's luck, by which replicas differ; none: there is none
    std::string no_path;  // set when the network cuts the job's ranks off: nothing can advance
    PowerSpec power;
    std::optional<CostSetup> cost;  // with [cost]
    std::int64_t world_gpus = 0;
    std::shared_ptr<const WorldScenario> world;  // many jobs instead of `job`: with [scheduler]
    // When the cluster changes on some days: all its phases. What else stands here is as in the first
    // phase but for the length, the estimates, the causes and the cost. Empty: it stays as it is.
    std::vector<ScenarioPhase> phases;

    std::vector<Estimate> estimates;  // every estimate that was read, from scenario and catalogue
    std::vector<Diagnostic> warnings;
    // Remembers the packet windows that reading ran, and those of measuring the network again. Copies share
    // it. Null: windows are not run, and no replica can be.
    std::shared_ptr<WindowCache> windows;
    std::shared_ptr<LimitsReached> limits = std::make_shared<LimitsReached>();

    // The catalogue as this scenario has it. The scenario must outlive it.
    StandaloneCatalogue open_catalogue() const;
    // The shared store, whose limits and protection are pure functions of what is broken.
    const StorageSystem& store() const { return *stores[0].system; }
    std::int64_t gpus() const { return world ? world_gpus : nodes.nodes * node.gpus; }
    double gpu_seconds(Duration simulated) const;  // of the GPUs that are there
    bool counts_work() const;  // some of its kinds of jobs say what they are worth
    // What MFU is measured against: the dense bf16 peak of the job's GPUs together, whatever they compute in.
    double peak_flops() const { return node.gpu.bf16_dense.per_second * real(job.gpus()); }
};

// The job is done one day: it has a length, or its last stage has.
bool has_an_end(const Scenario& scenario);

// What the steps of its one job, or of its jobs of one kind, are made of.
StepWork step_work(const Scenario& scenario);
// Whether a document has phases, if only a first one that begins late (phases.cpp).
bool has_phases(const Document& document);
// A step is computed, from the job's model or its trace; and it is the model's.
bool step_is_computed(const Scenario& scenario);
bool step_is_modelled(const Scenario& scenario);

// What a step is computed on: "an ideal network", "flows on fat_tree (ecmp)".
std::string network_text(const Scenario& scenario);

// What the scenario's ranks have to talk over, with these of its parts faulty; on the flow scale the compute
// network must be built, and outlive what is returned. Without a draw: by the network's own hashes, on the
// cluster's first nodes.
// Burst: beside a checkpoint that all nodes write to servers on the same network, packet by packet.
Communicators communicators(const Scenario& scenario, Fidelity fidelity,
                            const std::vector<PartFault>& faults = {}, bool burst = false,
                            const NetworkDraw* draw = nullptr, GpuNetwork* sound = nullptr);
// On this topology, which outlives it, if one is given. `sound`: the same network on the flow scale without
// faults, with any hashes, from which this one is made quicker than anew.
GpuNetwork gpu_network(const Scenario& scenario, Fidelity fidelity,
                       const std::vector<PartFault>& faults, bool burst = false,
                       HashSeed hashes = {}, const Topology* topology = nullptr,
                       GpuNetwork* sound = nullptr);

// What a search for the best plan of the scenario's job begins with.
PlanTask plan_task(const Scenario& scenario);

// The scenario's packet windows, one for each network that has traffic; the networks must be built with their
// packets.
std::vector<NetworkWindow> packet_windows(const Scenario& scenario);

// What may differ from the file: settings "a.b=c" in order, then scaled numbers.
struct ScenarioChanges {
    std::vector<std::string> settings;
    Perturbations perturbations{};
    LossCauses without{};  // these are taken away
    // False: no replica is run, so the model need not fit into memory, and nothing needs to end a campaign.
    bool must_run = true;
    // Phases may be there: who asks looks at replicas' metrics and costs, not at one cluster.
    bool phases = false;
    // The model is split so, whatever job.parallel says, and the step is modelled: one that was
    // measured is of another plan.
    std::optional<ParallelPlan> plan{};
    bool build_networks = false;  // those too that have no section, by their defaults
    bool packets = false;         // read how the networks treat packets, build the compute network
    bool one_draw = false;  // of the network's random choices, whatever run.network_draws says
    unsigned threads = 1;   // that measure steps on draws of the network
    // False: no packet window is run, for those who only ask whether the file is right. Storms then delay
    // nothing, and steps on packets are as fast as the NICs.
    bool run_windows = true;
    std::shared_ptr<WindowCache> windows{};  // shared with other scenarios; none: its own
    // Notes which overrides are read while the scenario is in use, perhaps together with others, for who then
    // asks for `unread_overrides`. None: reading the scenario warns of those that it did not need.
    std::shared_ptr<OverridesRead> overrides_read{};
};

// Reads and checks a scenario from TOML text; `name` stands in messages. Throws ScenarioError with
// all that is wrong, and Interrupted when its windows are.
Scenario load_scenario(std::string_view text, const std::string& name,
                       const ScenarioChanges& changes = {});
// Reads a document that was parsed, with its includes.
Scenario load_scenario(Document document, const ScenarioChanges& changes = {});
Scenario load_scenario_file(const std::string& path, const ScenarioChanges& changes = {});

// A warning for each override that nobody has read so far; for scenarios that note them.
std::vector<Diagnostic> unread_overrides(const Scenario& scenario);

// The language: every key, its type, default and meaning.
std::vector<SchemaRow> scenario_schema();

// The other entries of a scenario that a person may choose from by name, with one line each.
struct Kind {
    std::string group;  // "storage system", "failure profile" ...
    std::string name;
    std::string doc;
};
std::vector<Kind> kinds();

}  // namespace railyard
