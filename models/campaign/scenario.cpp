#include "models/campaign/scenario.h"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>
#include <set>
#include <tuple>

#include "models/campaign/host_memory.h"
#include "models/campaign/outline.h"
#include "models/campaign/phases.h"
#include "models/campaign/power_reader.h"
#include "models/campaign/sections.h"
#include "models/campaign/store_traffic.h"
#include "sim/parallel.h"
#include "sim/text.h"

namespace railyard {

Scenario::Scenario() = default;
Scenario::Scenario(const Scenario&) = default;
Scenario::Scenario(Scenario&&) noexcept = default;
Scenario& Scenario::operator=(const Scenario&) = default;
Scenario& Scenario::operator=(Scenario&&) noexcept = default;
Scenario::~Scenario() = default;

StandaloneCatalogue Scenario::open_catalogue() const {
    return StandaloneCatalogue(values, &overrides, file, perturbations, overrides_read,
                               own_entries);
}

namespace {

constexpr std::int64_t flow_gpus_max = 1 << 20;

WindowContext window_context(const Scenario& s, const std::vector<ClusterNetwork>& networks) {
    return {networks,    s.job.nodes,
            s.converged, s.own_class ? 2 : 1,
            s.seed,      s.fidelity == Fidelity::packet};
}
WindowContext window_context(const Scenario& s) {
    return window_context(s, s.networks);
}

NodePorts ports_of(const Node& node) {
    NodePorts ports;
    ports.node = node.name;
    ports.nics = node.nics;
    if (node.nics % node.trays == 0) ports.rails = node.nics / node.trays;
    ports.storage_nics = node.storage_nics;
    ports.nic = node.nic;
    ports.nic_planes = node.nic_ports;
    ports.line_rate = node.nic_line_rate;
    ports.infiniband = node.transport == "infiniband";
    return ports;
}

// The scenario's own models and nodes must be whole, used or not.
void check_own_entries(ValueReader& values, const Scenario& s) {
    if (s.own_entries == nullptr || s.own_entries->empty() || !values.diagnostics().ok()) return;
    ValueReader checks(values.diagnostics(), values.file());  // to check is not to read
    Catalogue catalogue(checks, s.values, &s.overrides, nullptr, s.own_entries);
    for (const std::string& name : s.own_entries->names("model")) read_model(catalogue, name);
    for (const std::string& name : s.own_entries->names("node")) read_node(catalogue, name);
}

bool reduces_between_nodes(const Scenario& job) {
    Communicators groups = communicators(job, Fidelity::analytic, {});
    const StepOutline step =
        step_outline(job.model, job.plan, groups, job.parameter_bytes, job.optimizer_traffic);
    const auto reduces = [&](const std::vector<CollectiveCall>& calls) {
        return std::ranges::any_of(calls, [&](const CollectiveCall& call) {
            return call.collective == Collective::all_reduce &&
                   (call.ranks - 1) * call.stride >= job.node.gpus;
        });
    };
    return std::ranges::any_of(
               step.layers,
               [&](const LayerOutline& layer) { return reduces(layer.forward.calls); }) ||
           std::ranges::any_of(step.stages,
                               [&](const StageOutline& stage) { return reduces(stage.exchanges); });
}

// Switches add up all-reduces between nodes; plans may have none, as with ZeRO.
void warn_of_idle_sharp(const Scenario& s, Section& top) {
    const bool in_window = std::ranges::any_of(
        s.window.traffic, [](const TrafficSpec& t) { return t.kind == WindowTraffic::sharp; });
    if (!s.networks[0].sharp || s.trace || in_window) return;
    const bool used = s.world ? std::ranges::any_of(s.world->models,
                                                    [](const auto& job) {
                                                        return job && reduces_between_nodes(*job);
                                                    })
                              : reduces_between_nodes(s);
    if (used) return;
    top.section("fabric").section("compute").warning(
        "sharp", "has no effect: no plan has an all-reduce between nodes",
        "job.parallel.zero = 0 reduces gradients in one; a window's traffic of kind \"sharp\" uses "
        "it too");
}

// Reads the sections in the order of the language, each into the scenario. In describing mode the
// same code runs over no document.
class ScenarioReader {
  public:
    ScenarioReader(ValueReader& values, const Value* root, std::vector<SchemaRow>* schema,
                   const ScenarioChanges& changes = {})
        : values_(values), changes_(changes), outline_(root), top_(values, root, "", {}, schema) {
        if (!changes.run_windows) return;
        s_.windows = changes.windows ? changes.windows : std::make_shared<WindowCache>();
    }

    Scenario read();

  private:
    // Something in the scenario runs packet by packet.
    bool packets_wanted() const {
        return changes_.packets || s_.fidelity == Fidelity::packet || top_.has("window") ||
               outline_.find({"failures", "storm"});
    }
    // Nobody asks what a model says of a step that is given.
    bool step_measured() const {
        return changes_.must_run && !changes_.plan && outline_.find({"job", "step", "time"});
    }
    bool ok() const { return values_.diagnostics().ok() && !top_.describing(); }
    void read_catalogue();
    void read_networks_and_stores();
    NetworkContext network_context(const StoreReader& store) const;
    void read_work();
    void derive();
    void warn_of_late_strikes();
    void warn_of_layout();
    void read_run();
    void read_network_draws(Section& run);
    void read_cluster();
    void read_fault(Section& section);
    void read_job(Section job);
    void check_end(Section& job);
    void read_step(Section& job);
    void read_trace(Section& job);
    void reach_all_ranks();
    void model_steps();
    void step_on_draws(std::vector<StepModel>& models);
    Duration burst_penalty();
    void check_world();

    ValueReader& values_;
    ScenarioChanges changes_;
    Outline outline_;
    Section top_;
    std::optional<Catalogue> catalogue_;
    Scenario s_;
    std::optional<PowerReader> power_;
    std::string node_name_ = "dgx_h100";
    std::string model_name_;
    std::optional<Duration> job_length_;
    std::optional<Duration> given_step_;
    bool run_duration_given_ = false;
    bool network_draws_given_ = false;
    bool nic_bandwidth_given_ = false;
    bool nodes_known_ = true;  // how many the cluster has
};

Scenario ScenarioReader::read() {
    s_.file = values_.file();
    top_.read("title", s_.title, "One line that says what is simulated",
              {.otherwise = "the name of the one [[jobs.kind]] of scheduler.kind = \"dedicated\"; "
                            "else the file's"});

    std::vector<std::string> include;  // parse_with_includes has put them in
    top_.read(
        "include", include,
        "Files with parts of the scenario, seen from this one: what this one says itself holds",
        {.otherwise = "none"});
    read_catalogue();
    read_run();
    read_cluster();
    power_.emplace(top_, *catalogue_, node_name_, s_);
    read_networks_and_stores();
    read_work();
    s_.cost = read_cost(top_, values_, s_);
    for (Section& phase : phase_sections(top_)) read_phase(phase);
    top_.finish();
    derive();
    if (!changes_.overrides_read) {
        if (ok()) catalogue_->warn_of_unread_overrides();
        s_.overrides_read.reset();
    }
    return std::move(s_);
}

void ScenarioReader::read_catalogue() {
    Section catalogue = top_.section("catalogue");
    catalogue.choose(
        "values", s_.values, value_choice_names,
        "Which number counts where the seed guides and the corrected catalogue differ");
    catalogue.finish();
    const Value* overrides = top_.open_table(
        "override", "Catalogue values to replace, as [override.gpu.h100_sxm] hbm_efficiency = 0.8");
    if (overrides != nullptr) s_.overrides = *overrides;
    s_.perturbations = changes_.perturbations;
    s_.overrides_read =
        changes_.overrides_read ? changes_.overrides_read : std::make_shared<OverridesRead>();
    for (const OpenKind& kind : open_kinds()) top_.open_table(kind.section, kind.doc);
    if (outline_.root() != nullptr)
        s_.own_entries = std::make_shared<OwnEntries>(values_, *outline_.root());
    catalogue_.emplace(values_, s_.values, overrides, s_.overrides_read, s_.own_entries);
    check_own_entries(values_, s_);
}

void ScenarioReader::read_networks_and_stores() {
    StoreReader store(StoreRole::shared, top_, *catalogue_, s_.node, node_name_, s_.nodes.nodes);
    s_.converged = store.converged();
    s_.own_class = store.traffic_class().weight > 0;
    if (s_.fidelity != Fidelity::analytic && s_.gpus() > flow_gpus_max) {
        top_.error("run", fmt::format("{} GPUs: the flow scale takes at most {}", s_.gpus(),
                                      flow_gpus_max));
        s_.fidelity = Fidelity::analytic;
    }
    s_.networks = read_networks(top_, *catalogue_, network_context(store));
    for (ClusterNetwork& network : s_.networks) network.packets.spec.seed = s_.seed;
    s_.stores.push_back(store.build(s_.networks));
    s_.server_write_bandwidth = store.server_write();
    s_.fair_by_job = store.fair_by_job();
    s_.gpu_path = store.gpu_path();
    StoreReader object(StoreRole::object, top_, *catalogue_, s_.node, node_name_, s_.nodes.nodes);
    if (object.present()) s_.stores.push_back(object.build(s_.networks));
    power_->read_network_and_storage();
    warn_of_late_strikes();
    if (s_.networks[0].kind_given) {
        // NICs of Ultra Ethernet and EFA start a message as RoCE's do.
        NetworkKind kind = s_.networks[0].kind;
        if (any_order(kind)) kind = NetworkKind::roce;
        s_.node.transport = to_text(kind);
    }
    // A NIC is as fast as its link.
    s_.node.nic_bandwidth =
        std::min(s_.node.nic_bandwidth, s_.networks[0].spec.nic_bandwidth * s_.node.wire_share);
    // A socket is as fast as the core that serves it.
    if (s_.networks[0].kind == NetworkKind::tcp && !nic_bandwidth_given_) {
        const Bandwidth stream = catalogue_->bandwidth("tcp", "", "stream_bandwidth");
        s_.node.nic_bandwidth =
            std::min(s_.node.nic_bandwidth, stream * s_.networks[0].routing.queue_pairs);
    }
}

NetworkContext ScenarioReader::network_context(const StoreReader& store) const {
    NetworkContext context{.ports = ports_of(s_.node)};
    context.nodes = s_.nodes.nodes;
    context.storage_servers = store.servers();
    context.nics_per_server = store.nics_per_server();
    context.converged = s_.converged;
    context.for_want = store.converged_for_want();
    context.storage_class = store.traffic_class();
    context.build = changes_.build_networks || top_.has("cost");  // every cable is paid for
    context.build_compute = s_.fidelity != Fidelity::analytic;
    context.packets = packets_wanted();
    context.packet_rates = s_.fidelity == Fidelity::packet;
    context.storage_traffic = outline_.storage_traffic();
    context.many_jobs = outline_.many_jobs();
    context.any_steps = outline_.any_steps();
    context.step_measured = step_measured();
    return context;
}

// Who sends what over the networks, and what breaks.
void ScenarioReader::read_work() {
    WindowContext window = window_context(s_);
    window.nodes = outline_.job_nodes().value_or(s_.nodes.nodes);
    s_.window = read_window(top_, window);
    if (s_.own_class && !packets_wanted()) {
        top_.section("storage").warning(
            "traffic_class",
            "has no effect without packets: all else shares links whatever its class",
            "run.fidelity = \"packet\", or a [window]");
    }
    if (top_.has("scheduler") || top_.describing()) {
        s_.job.nodes = s_.nodes.nodes;
        s_.job.gpus_per_node = s_.node.gpus;
        read_world(top_, values_, *catalogue_, s_);
        check_world();
        if (s_.world) s_.draws = draw_networks(s_);
        if (s_.world && ok()) warn_of_idle_sharp(s_, top_);
    }
    if (top_.has("jobs") && !top_.has("scheduler") && !top_.has("job")) {
        top_.section("jobs");
        top_.error("jobs", "many jobs need a scheduler",
                   "give [scheduler], with kind = \"slurm\" or another");
    } else if (!s_.world || top_.describing()) {
        read_job(top_.section("job"));
    }
    if (top_.describing()) {  // the same keys, under the scheduler that is dedicated to one job
        read_job(top_.section("jobs").sections("kind", "Jobs that are alike").front());
    }
    const bool objects = s_.world ? s_.world->uses_objects : uses_object_store(s_);
    if (!objects) {
        const bool bought =
            s_.stores.size() > object_store_index && s_.stores[object_store_index].servers > 0;
        warn_of_keys(top_, {"object_store"},
                     bought ? "no job saves or reads there: it is bought, and draws power"
                            : "has no effect: no job saves or reads there");
    }
    s_.neighbours = read_neighbours(top_, s_.stores[shared_store], s_.job.nodes, s_.fair_by_job);
    if (!s_.world || top_.describing()) read_maintenance(top_, s_.job.maintenance);
    power_->finish();
    read_failures(top_, *catalogue_, s_);
    power_->add_causes();
    read_injections(top_, *catalogue_, s_);
    power_->take_injected();
    warn_of_layout();
    if (s_.network_faults.any() && !s_.job.stages.empty()) {
        top_.error("job", "the network's parts don't break for a job with stages",
                   "leave out job.stage, or inject.part, from and failures.cause.network_part");
    }
}

// What follows once all is read: steps under each condition, the counterfactual.
void ScenarioReader::derive() {
    if (ok() && !s_.world) model_conditions(s_, changes_.threads);
    if (ok() && !s_.world) model_stages(s_, changes_.without, changes_.threads);
    if (!s_.failures) leave_out_failures(s_);
    if (ok()) remove_from_campaign(s_, changes_.without);
    if (ok() && !s_.world) route_job(s_);
    if (s_.world) s_.world = world_with_failures(*s_.world, s_);
}

void ScenarioReader::warn_of_late_strikes() {
    const auto& failures = s_.stores[shared_store].failures;
    if (!failures || s_.duration == Duration{}) return;
    for (const StoreStrike& strike : failures->strikes) {
        if (strike.at < s_.duration) continue;
        top_.warning("storage",
                     fmt::format("failures.inject at {}: the campaign has ended by then, after {}",
                                 to_text(strike.at), to_text(s_.duration)));
    }
}

// Which nodes share a part matters where that part can fail.
void ScenarioReader::warn_of_layout() {
    const auto fails = [&](DomainKind kind) {
        const auto index = static_cast<std::size_t>(kind);
        return index < s_.nodes.domains.size() && s_.nodes.domains[index].count() > 0;
    };
    if (top_.describing() || !ok()) return;
    Section cluster = top_.section("cluster");
    const std::tuple<const char*, DomainKind, const char*> keys[] = {
        {"racks_per_pdu", DomainKind::pdu, "power feed"},
        {"racks_per_cdu", DomainKind::cdu, "cooling loop"},
        {"nodes_per_wave", DomainKind::wave, "wave of nodes"}};
    for (const auto& [key, kind, part] : keys) {
        if (fails(kind)) continue;
        warn_of_keys(cluster, {key}, fmt::format("has no effect: nothing strikes a {} here", part));
    }
}

void ScenarioReader::read_run() {
    Section run = top_.section("run");
    std::int64_t seed = 1;
    run.read("seed", seed, "Seed of every random stream", {Bound::non_negative});
    s_.seed = static_cast<std::uint64_t>(seed);
    s_.replicas = 30;
    run.read("replicas", s_.replicas,
             "Independent repetitions, which differ by random numbers only", {Bound::count});
    std::optional<Duration> duration;
    run.read("duration", duration, "Length of the campaign on the wall clock",
             {Bound::positive, "until the job is done"});
    if (duration) s_.duration = *duration;
    run_duration_given_ = run.has("duration");
    network_draws_given_ = run.has("network_draws");
    read_phase_days(run, false);
    s_.events_max = 50'000'000;
    run.read("events_max", s_.events_max,
             "Events after which a replica stops, unfinished and marked", {Bound::positive});
    run.no_effect(outline_.without_steps());
    run.choose("fidelity", s_.fidelity, fidelity_names,
               "How the network enters a step: an ideal one between the nodes' NICs, flows that "
               "share the links of [fabric.compute], or its packets");
    run.no_effect("");
    read_network_draws(run);
    run.read("failures", s_.failures,
             "false: nothing fails, in the nodes or in the stores, at random or injected");
    if (has(changes_.without, LossCause::network)) s_.fidelity = Fidelity::analytic;
    run.finish();
}

// Each draw takes a step to compute, and packets take long.
void ScenarioReader::read_network_draws(Section& run) {
    constexpr std::int64_t usual = 8;
    constexpr std::int64_t most = 10'000;
    s_.network_draws = s_.fidelity == Fidelity::packet ? 1 : usual;
    if (s_.fidelity != Fidelity::analytic) run.no_effect(outline_.without_steps());
    run.read("network_draws", s_.network_draws,
             "Random draws of the network, its hashes and which nodes are spare, over which "
             "replicas are dealt out; 1: the cluster's first nodes and hash_seed = 0",
             {Bound::count, "8; 1 with run.fidelity = \"packet\""});
    run.no_effect("");
    if (s_.network_draws > most) {
        run.error("network_draws",
                  fmt::format("expected at most {}, found {}", most, s_.network_draws));
        s_.network_draws = 1;
    }
    if (s_.fidelity == Fidelity::analytic && !has(changes_.without, LossCause::network)) {
        warn_of_keys(run, {"network_draws"}, "has no effect with run.fidelity = \"analytic\"");
    }
    if (s_.fidelity == Fidelity::packet && top_.has("scheduler")) {
        warn_of_keys(run, {"network_draws"},
                     "has no effect on many jobs with run.fidelity = \"packet\": their packets are "
                     "measured once");
    }
    if (changes_.one_draw) s_.network_draws = 1;
}

void ScenarioReader::read_cluster() {
    Section cluster = top_.section("cluster");
    cluster.name("node", node_name_, catalogue_->all_names("node"), "a node in the catalogue",
                 "What each node is");
    s_.nodes.nodes = 1;
    const std::size_t errors = values_.diagnostics().errors().size();
    cluster.read("nodes", s_.nodes.nodes, "Nodes that are there, spares included",
                 {.bound = Bound::count, .required = true});
    nodes_known_ = values_.diagnostics().errors().size() == errors;
    s_.node = read_node(*catalogue_, node_name_);
    const std::int64_t catalogue_gpus = s_.node.gpus;
    cluster.read("gpus_per_node", s_.node.gpus, "GPUs in each node",
                 {Bound::count, "the node's, from the catalogue"});
    // Another number of GPUs in a box with one NVLink domain is a box with one domain of that size.
    if (cluster.has("gpus_per_node") && s_.node.nvlink_domain <= catalogue_gpus) {
        s_.node.nvlink_domain = s_.node.gpus;
    }
    cluster.read("nics_per_node", s_.node.nics, "NICs of each node for the compute network",
                 {Bound::count, "the node's, from the catalogue"});
    if (!top_.has("cost")) cluster.no_effect(outline_.without_steps());  // it decides on switches
    cluster.read("nic_bandwidth", s_.node.nic_bandwidth, "What one NIC moves, per direction",
                 {Bound::positive, "the NIC's, from the catalogue, less protocol overhead"});
    nic_bandwidth_given_ = cluster.has("nic_bandwidth");
    if (nic_bandwidth_given_) {
        s_.node.nic_line_rate = s_.node.nic_bandwidth;
        s_.node.wire_share = 1;
    }
    s_.nodes.gpus_per_node = s_.node.gpus;
    cluster.no_effect(outline_.without_steps());
    cluster.read("acs", s_.node.pcie.acs,
                 "PCIe access control: peers under one switch meet at the root complex only");
    cluster.read("peer_to_peer", s_.node.pcie.peer_to_peer,
                 "false: GPUs and NICs reach each other through host memory only (no GPUDirect)");
    if (outline_.nvlink_domains()) cluster.no_effect("");
    bool nvlink = true;
    cluster.read("nvlink", nvlink, "false: the GPUs of a node reach each other over PCIe");
    if (!nvlink) remove_nvlink(s_.node);
    cluster.no_effect("");
    read_layout(cluster, s_.layout);
    cluster.no_effect(outline_.without_steps());
    for (Section& fault :
         cluster.sections("fault", "A part that is slower than it should be, unnoticed")) {
        read_fault(fault);
    }
    if (has(changes_.without, LossCause::degraded_parts)) s_.faults.clear();
    cluster.finish();
}

void ScenarioReader::read_fault(Section& section) {
    PartFault fault;
    section.choose("part", fault.part, part_names,
                   "gpu: its clocks; nvlink: its lanes; pcie: its lanes; nic: a NIC's rate; hbm: "
                   "the bandwidth of a GPU's memory");
    section.read("node", fault.node, "Which node, counted from 0", {Bound::non_negative});
    section.read("index", fault.index, "Which GPU or NIC of the node, counted from 0",
                 {Bound::non_negative});
    section.read("speed", fault.speed, "What is left of a sound part's speed",
                 {.bound = Bound::fraction, .required = true});
    section.finish();
    const std::int64_t parts = fault.part == Part::nic ? s_.node.nics : s_.node.gpus;
    if (fault.part == Part::nvlink && !s_.node.nvlink) {
        section.error("part", "the nodes have no NVLink", "cluster.nvlink = true");
    } else if (fault.node >= s_.nodes.nodes) {
        section.error("node",
                      fmt::format("expected 0 to {}, found {}", s_.nodes.nodes - 1, fault.node));
    } else if (fault.index >= parts) {
        section.error("index", fmt::format("expected 0 to {}, found {}", parts - 1, fault.index));
    } else if (fault.speed <= 0) {
        section.error("speed", "expected more than 0: what has stopped altogether is a failure",
                      "[[failures.cause]]");
    } else {
        s_.faults.push_back(fault);
    }
}

void ScenarioReader::read_job(Section job) {
    s_.job.nodes = s_.nodes.nodes;
    job.read("nodes", s_.job.nodes, "Nodes of the job: it gets all of them or does not run",
             {Bound::count, "all of the cluster"});
    if (nodes_known_ && s_.job.nodes > s_.nodes.nodes) {
        job.error(
            "nodes",
            fmt::format("the job wants {} nodes, the cluster has {}", s_.job.nodes, s_.nodes.nodes),
            "raise cluster.nodes or lower job.nodes");
    }
    s_.nodes.job_nodes = s_.job.nodes;
    for (const PartFault& fault : s_.faults) {
        if (fault.node < s_.job.nodes) continue;
        job.warning("nodes",
                    fmt::format("the job runs on nodes 0 to {}: the fault of {} does not touch it",
                                s_.job.nodes - 1, describe(fault)));
    }
    s_.job.gpus_per_node = s_.node.gpus;
    job.read("length", job_length_,
             "Training time after which the job is done, lost work not counted",
             {Bound::positive, "it runs until the campaign ends"});
    job.name("model", model_name_, catalogue_->all_names("model"), "a model in the catalogue",
             "The model that is trained", {.otherwise = "none: then job.step.time is needed"});
    if (!model_name_.empty()) s_.model = read_model(*catalogue_, model_name_);
    std::optional<Scenario> before;
    if (job.has("stage") || job.describing()) before = s_;
    read_job_plan(job, values_, *catalogue_, changes_, job.has("stage"), s_);
    read_step(job);
    // A plan that is tried is that of the whole job.
    if (before && !changes_.plan) {
        read_stages(job, outline_.find({"job"}), values_, *catalogue_, changes_, *before, s_);
    } else {
        job.sections("stage", "");
    }
    read_pauses(job, s_.duration, s_.job.pauses);
    check_end(job);
    join_data(job, *catalogue_, changes_.without, s_);
    if (job_length_ && ok()) {
        s_.job.target_steps = (job_length_->count() + s_.job.step.duration().count() - 1) /
                              s_.job.step.duration().count();
    }
    join_stores(s_);
    const bool burst = s_.fidelity == Fidelity::packet && s_.converged && step_is_computed(s_) &&
                       s_.no_path.empty();
    read_checkpoint(job, *catalogue_, s_,
                    burst ? BurstPenalty([&] { return burst_penalty(); }) : BurstPenalty());
    if (changes_.must_run && ok() && !job.describing()) check_host_memory(job, *catalogue_, s_);
    join_recovery(job, *catalogue_, s_);
    if (s_.job.checkpoint.read_at_start.bytes > Bytes{} &&
        s_.job.checkpoint.mode == CheckpointMode::none) {
        job.section("recovery")
            .error(s_.image > Bytes{} ? "image" : "dataset_index",
                   "without checkpoints nothing is restored");
    }
    if (ok()) check_planned_stops(job, s_.job);
    job.finish();
}

void ScenarioReader::check_end(Section& job) {
    if (job.has("length") || run_duration_given_ || !changes_.must_run || top_.describing()) return;
    // Stages that can't be read have an error of their own.
    if (job.has("stage") && (s_.job.stages.empty() || has_an_end(s_))) return;
    job.error("length", "nothing ends this campaign",
              "give run.duration, or job.length, or a length to the last [[job.stage]]");
}

void ScenarioReader::read_step(Section& job) {
    given_step_ = read_given_step(job);
    read_trace(job);
    if (changes_.plan) given_step_.reset();
    if (given_step_) {
        s_.given_step = true;
        const char* const measured = "has no effect beside job.step.time: the step is measured";
        if (changes_.must_run && job.has("software")) job.warning("software", measured);
        if (changes_.must_run && network_draws_given_) top_.warning("run.network_draws", measured);
        s_.job.step.compute = power_->slowed(*given_step_);
        s_.job.step.throttled = power_->throttled_time(s_.job.step);
        remove_from_step(s_, changes_.without);
        if (!model_name_.empty()) s_.job.step.model_flops = model_flops(s_.model, s_.plan);
    } else if (model_name_.empty() && !s_.trace) {
        if (!top_.describing() && !job.has("model") && !job.has("trace") &&
            !outline_.find({"job", "step", "time"})) {
            job.error("step", "the step is neither given nor can it be modelled",
                      "give job.step.time, job.trace, or job.model with job.parallel");
        }
        return;
    } else if (ok()) {
        s_.optimizer_traffic =
            s_.trace ? 0 : catalogue_->number("bytes_per_param", "", "optimizer_step_traffic");
        s_.collective_constants = read_collective_constants(*catalogue_, s_.node);
        model_steps();
        if (ok()) warn_of_idle_sharp(s_, top_);
        remove_from_step(s_, changes_.without);
        if (seconds(s_.job.step.duration()) > step_seconds_max) {
            job.error(s_.trace ? "trace" : "parallel", "one step takes more than 116 days",
                      "a bandwidth, a rate of the GPU, global_batch or sequence_length is far from "
                      "any training run's");
        }
    }
    if (!model_name_.empty()) s_.tokens_per_step = s_.plan.global_batch * s_.plan.sequence_length;
}

// The kernels' times are those of GPUs without a power cap.
void ScenarioReader::read_trace(Section& job) {
    std::string measured_on = node_name_;
    job.name("trace_node", measured_on, catalogue_->all_names("node"), "a node in the catalogue",
             "The node whose GPU took the times in job.trace: on another GPU a kernel takes as "
             "much longer as its num_ops and tensor_size say, or else its rate",
             {.otherwise = "cluster.node"});
    if (job.has("trace_node") && !job.has("trace") && !job.describing()) {
        job.error("trace_node", "has no effect without job.trace");
    }
    Gpu uncapped = s_.node.gpu;
    constexpr Duration second = std::chrono::seconds(1);
    if (measured_on == node_name_) {
        uncapped.sustained_fraction *= seconds(power_->slowed(second)) / seconds(second);
    } else {
        const StackKernels kernels = uncapped;
        uncapped = read_node(*catalogue_, measured_on).gpu;
        static_cast<StackKernels&>(uncapped) = kernels;
    }
    s_.trace = read_step_trace(job, values_, s_.node, s_.job.gpus(), uncapped);
    if (s_.trace && given_step_) {
        job.error("trace", "job.step.time is given too: one of the two is the step",
                  "leave out one of them");
    }
    if (changes_.plan) s_.trace.reset();
    if (s_.trace) warn_of_idle_beside(*s_.trace, s_.faults, job);
}

// Throws NoPath when dead cables part two ranks that have to talk, whatever the step's fidelity.
void ScenarioReader::reach_all_ranks() {
    const std::vector<Link>& links = s_.networks[0].topology.links();
    const bool cut =
        std::ranges::any_of(links, [](const Link& link) { return link.bytes_per_s == 0; });
    if (!cut || has(changes_.without, LossCause::network) || s_.gpus() > flow_gpus_max) return;
    steps_of(s_, Fidelity::flow, nullptr).step(s_.plan);
}

// The step as it is: on the scenario's network, held up by its faults.
void ScenarioReader::model_steps() {
    std::optional<GpuNetwork> sound;  // what draws of its hashes have in common
    const auto model = [&](Fidelity fidelity, const NetworkDraw* draw) {
        return steps_of(s_, fidelity, draw, sound ? &*sound : nullptr);
    };
    s_.analytic_step = model(Fidelity::analytic, nullptr).step(s_.plan, s_.faults);
    s_.job.step = s_.analytic_step;
    try {
        if (s_.fidelity == Fidelity::analytic) reach_all_ranks();
        s_.draws = draw_networks(s_);
        if (s_.draws.size() > 1) sound.emplace(gpu_network(s_, Fidelity::flow, {}));
        std::vector<StepModel> models;
        for (const NetworkDraw& draw : s_.draws) models.push_back(model(s_.fidelity, &draw));
        if (models.empty()) models.push_back(model(s_.fidelity, nullptr));
        step_on_draws(models);
        if (s_.fidelity == Fidelity::packet) {
            s_.fair_step = model(Fidelity::flow, nullptr).step(s_.plan, s_.faults);
        }
    } catch (const NoPath& no_path) {
        s_.no_path = no_path.what();
    }
}

// On each of the draws that there are; the one in the middle stands for all where one step must.
void ScenarioReader::step_on_draws(std::vector<StepModel>& models) {
    std::vector<StepTime> steps(models.size());
    std::vector<double> lengths(models.size());
    parallel_for(models.size(), changes_.threads, nullptr, [&](std::size_t k) {
        steps[k] = models[k].step(s_.plan);
        steps[k].degraded = held_up(models[k], s_.plan, s_.faults);
        lengths[k] = seconds(steps[k].duration());
    });
    const std::size_t usual = middle_of(lengths);
    for (const PartFault& fault : s_.faults) {
        s_.fault_costs.push_back(held_up(models[usual], s_.plan, {fault}));
    }
    const std::vector<PartFault> heat = power_->throttled_parts(steps[usual]);
    parallel_for(heat.empty() ? 0 : models.size(), changes_.threads, nullptr, [&](std::size_t k) {
        steps[k].throttled = held_up(models[k], s_.plan, s_.faults, heat) - steps[k].degraded;
    });
    s_.job.step = steps[usual];
    for (std::size_t k = 0; k < s_.draws.size(); ++k) s_.draws[k].step = steps[k];
    // What is equal here may differ in a stage.
    if (!outline_.find({"job", "stage"})) drop_equal_draws(s_.draws);
}

Duration ScenarioReader::burst_penalty() {
    StepModel beside(step_work(s_), [&](const auto& faults) {
        return communicators(s_, s_.fidelity, faults, true);
    });
    try {
        return std::max(Duration{}, beside.step(s_.plan).duration() -
                                        (s_.job.step.duration() - s_.job.step.degraded -
                                         s_.job.step.throttled - s_.job.step.data_wait));
    } catch (const NoPath& no_path) {  // to the storage servers
        s_.no_path = no_path.what();
        return {};
    }
}

// What one job has, and many have not.
void ScenarioReader::check_world() {
    refuse_keys(top_, {"job", "neighbour", "maintenance"},
                "is about one job: it has no effect with [scheduler]",
                "[[jobs.kind]] has the jobs, [[reservation]] maintenance");
    const bool storms = outline_.find({"failures", "storm"}) != nullptr;  // a window has them
    if (top_.has("window") && s_.fidelity != Fidelity::packet && !storms) {
        top_.error("window", "has no effect with [scheduler] unless jobs' steps run on packets",
                   "run.fidelity = \"packet\"");
    }
    const Value* window = storms ? nullptr : outline_.find({"window"});
    for (const char* key : {"traffic", "fault", "route"}) {
        if (window == nullptr || !window->find(key)) continue;
        top_.error(
            "window",
            fmt::format(
                "window.{} is about one job: with [scheduler] a window sends what steps send",
                key));
    }
    if (top_.has("storage") && s_.world->spec.stores.empty()) {
        top_.warning("storage",
                     "is bought, cabled and powered, but nothing is sent to it: a job's "
                     "checkpoints take jobs.kind.checkpoint_stall",
                     "give jobs.kind.checkpoint_size");
    }
    if (s_.stores[0].failures && s_.world->spec.stores.empty()) {
        top_.error("storage", "no job saves or reads there: that its parts fail has no effect",
                   "leave out storage.failures, or give [jobs.kind.checkpoint]");
    }
    if (!run_duration_given_ && std::ranges::any_of(s_.world->sources, [](const JobSource& source) {
            return source.rate.per_second > 0 && source.count > 10'000'000;
        })) {
        top_.error("run", "nothing ends this campaign: jobs come for ever",
                   "give run.duration, or a count to each [[jobs.kind]]");
    }
}

// The first word of each key below `section`.
std::set<std::string> keys_of(std::string_view section) {
    std::set<std::string> keys;
    for (const SchemaRow& row : scenario_schema()) {
        if (!row.path.starts_with(section)) continue;
        const std::string below = row.path.substr(section.size());
        keys.insert(below.substr(0, below.find_first_of(".[")));
    }
    return keys;
}

const JobKeys& job_keys() {
    static const JobKeys keys{keys_of("job."), keys_of("jobs.kind.")};
    return keys;
}

Scenario build(Document& document, Diagnostics& diagnostics, const ScenarioChanges& changes) {
    for (const std::string& setting : changes.settings) {
        if (setting.starts_with("include")) {
            diagnostics.error(document.name + " with --set", {}, "include",
                              "files are included by files, not by settings");
        }
        apply_setting(document, setting, diagnostics);
    }
    diagnostics.raise_if_any();
    // For 'railyard sweep', 'design' and 'verify': a file with them is the scenario without.
    std::erase_if(document.root.members, [](const Member& m) {
        return m.key == "sweep" || m.key == "design" || m.key == "table";
    });
    ValueReader values(diagnostics, document.name, changes.perturbations);
    const std::vector<PhaseSpec> phases = take_phases(document, values, changes.phases);
    diagnostics.raise_if_any();
    if (!phases.empty()) return load_phases(document, phases, changes);
    DedicatedJob job;
    if (is_dedicated(document.root)) job = take_dedicated_job(document.root, values, job_keys());
    Scenario scenario = ScenarioReader(values, &document.root, nullptr, changes).read();
    if (job.was_a_kind && !(diagnostics.ok() && diagnostics.warnings().empty())) {
        diagnostics = said_of_kind(diagnostics, job_keys().job);
    }
    diagnostics.raise_if_any();
    if (scenario.title.empty()) {
        scenario.title = visible(job.name.empty() ? document.name : job.name);
    }
    scenario.estimates = values.estimates();
    scenario.warnings = diagnostics.warnings();
    return scenario;
}

}  // namespace

Scenario load_scenario(std::string_view text, const std::string& name,
                       const ScenarioChanges& changes) {
    Diagnostics diagnostics;
    Document document = parse_with_includes(text, name, diagnostics);
    diagnostics.raise_if_any();
    return build(document, diagnostics, changes);
}

Scenario load_scenario(Document document, const ScenarioChanges& changes) {
    Diagnostics diagnostics;
    return build(document, diagnostics, changes);
}

Scenario load_scenario_file(const std::string& path, const ScenarioChanges& changes) {
    return load_scenario(read_file(path), path, changes);
}

bool Scenario::counts_work() const {
    const Scenario& first = phases.empty() ? *this : *phases[0].as;
    return first.world && !first.world->worths.empty();
}

double Scenario::gpu_seconds(Duration simulated) const {
    if (phases.empty()) return real(gpus()) * seconds(simulated);
    double out = 0;
    for (const ScenarioPhase& phase : phases) {
        const Duration there = std::min(simulated, phase.until) - phase.from;
        out += real(phase.as->gpus()) * std::max(0.0, seconds(there));
    }
    return out;
}

std::vector<Diagnostic> unread_overrides(const Scenario& scenario) {
    StandaloneCatalogue own = scenario.open_catalogue();
    own.catalogue.warn_of_unread_overrides();
    return own.diagnostics.warnings();
}

Communicators communicators(const Scenario& s, Fidelity fidelity,
                            const std::vector<PartFault>& faults, bool burst,
                            const NetworkDraw* draw, GpuNetwork* sound) {
    // A link's fault is where it is on the flow scale; a GPU's slows all that wait for it on either.
    const bool flow = fidelity != Fidelity::analytic;
    std::vector<PartFault> everywhere;
    for (const PartFault& f : faults) {
        if (f.node < s.job.nodes && (!flow || f.part == Part::gpu || f.part == Part::hbm))
            everywhere.push_back(f);
    }
    Communicators groups(s.collective_constants, with_faults(s.node, everywhere),
                         s.networks[0].sharp);
    if (flow) {
        const bool drawn = draw != nullptr && !draw->nodes.empty();
        std::vector<std::int64_t> nodes(drawn ? 0 : static_cast<std::size_t>(s.job.nodes));
        std::iota(nodes.begin(), nodes.end(), std::int64_t{0});
        if (drawn) nodes = draw->nodes;
        const HashSeed hashes = draw != nullptr ? HashSeed(draw->hash_seed) : HashSeed();
        groups.run_on(gpu_network(s, fidelity, faults, burst, hashes, nullptr, sound),
                      std::move(nodes));
    }
    return groups;
}

GpuNetwork gpu_network(const Scenario& s, Fidelity fidelity, const std::vector<PartFault>& faults,
                       bool burst, HashSeed hashes, const Topology* topology, GpuNetwork* sound) {
    RoutingSpec routing = s.networks[0].flow_routing();
    if (hashes) routing.hash_seed = *hashes;
    const Topology& cables = topology != nullptr ? *topology : s.networks[0].topology;
    GpuNetwork network =
        sound != nullptr ? sound->rehashed(routing.hash_seed) : GpuNetwork(s.node, cables, routing);
    if (fidelity == Fidelity::packet) network.look_closer(packet_rates(s, burst));
    for (const PartFault& fault : faults) network.degrade(fault);
    return network;
}

std::vector<NetworkWindow> packet_windows(const Scenario& s) {
    const auto is_slow_nic = [](const PartFault& fault) { return fault.part == Part::nic; };
    if (std::ranges::none_of(s.faults, is_slow_nic)) return lay_out(s.window, window_context(s));
    const auto slowed = std::make_shared<std::vector<ClusterNetwork>>(s.networks);
    for (ClusterNetwork& network : *slowed) {
        if (network.topology.vertex_count() > 0) network.topology = with_slow_nics(s, network);
    }
    std::vector<NetworkWindow> out = lay_out(s.window, window_context(s, *slowed));
    for (NetworkWindow& window : out) window.slowed = slowed;
    return out;
}

StepWork step_work(const Scenario& s) {
    return {s.model, s.parameter_bytes, s.optimizer_traffic, s.trace};
}

bool step_is_computed(const Scenario& s) {
    return s.trace || step_is_modelled(s);
}

bool step_is_modelled(const Scenario& s) {
    return !s.model.name.empty() && !s.given_step && !s.trace;
}

std::string network_text(const Scenario& s) {
    if (s.fidelity == Fidelity::analytic) return "an ideal network";
    return fmt::format("{} on {} ({})", s.fidelity == Fidelity::packet ? "packets" : "flows",
                       s.networks[0].topology.spec().kind,
                       word_of(routing_names, s.networks[0].routing.policy));
}

const std::vector<std::string> value_choice_names = {"corrected", "seed"};

const std::vector<std::string> fidelity_names = {"analytic", "flow", "packet"};

std::vector<SchemaRow> scenario_schema() {
    std::vector<SchemaRow> rows;
    Diagnostics ignored;
    ValueReader values(ignored, "");
    ScenarioReader(values, nullptr, &rows).read();
    // Systems that share a section share keys.
    std::set<std::string> seen;
    std::erase_if(rows, [&](const SchemaRow& row) { return !seen.insert(row.path).second; });
    return rows;
}

}  // namespace railyard
