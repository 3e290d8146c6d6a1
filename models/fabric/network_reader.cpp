#include "models/fabric/network_reader.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <deque>
#include <mutex>
#include <optional>

#include "models/fabric/places.h"
#include "sim/text.h"

namespace railyard {

namespace {

// Keeps of these switches those that a network can be built of.
std::vector<std::string> fit_for_networks(const Catalogue& catalogue,
                                          std::vector<std::string> names) {
    std::erase_if(names, [&](const std::string& name) {
        const Value* entry = catalogue.find_entry("switch", name);
        return !entry->find("latency") || entry->find("tech")->text == "nvlink";
    });
    return names;
}

}  // namespace

// What people buy for it. A scenario's own switch is taken by its name alone.
std::string fitting_switch(Catalogue& catalogue, bool infiniband, Bandwidth rate) {
    std::string best;
    Bandwidth best_rate;
    for (const std::string& name : fit_for_networks(catalogue, Catalogue::names("switch"))) {
        const SwitchModel model = read_switch(catalogue, name);
        if (model.infiniband != infiniband || model.port_bandwidth < rate) continue;
        if (!best.empty() && model.port_bandwidth >= best_rate) continue;
        best = name;
        best_rate = model.port_bandwidth;
    }
    return best;
}

namespace {

std::vector<std::string> topology_names() {
    std::vector<std::string> names = names_of(topology_kinds());
    names.emplace_back("custom");
    return names;
}

struct BuiltNetwork {
    TopologySpec spec;
    Topology topology;
    std::string problem;
    std::vector<VertexId> cut;  // Topology::unreachable
};

// Points of a sweep and an answer's estimates mostly differ in something else: the last two are kept, unless
// they take more than some 100 MB.
BuiltNetwork built_once(const TopologySpec& spec) {
    constexpr std::size_t kept_max = 2;
    constexpr std::size_t links_max = 1 << 20;
    static std::mutex mutex;
    static std::deque<BuiltNetwork> kept;
    {
        const std::lock_guard lock(mutex);
        for (const BuiltNetwork& network : kept) {
            if (network.spec == spec) return network;
        }
    }
    BuiltNetwork built{.spec = spec, .topology = {}, .problem = {}, .cut = {}};
    built.topology = Topology::build(spec, built.problem);
    if (built.problem.empty()) built.cut = unreachable(built.topology);
    if (built.topology.links().size() > links_max) return built;
    const std::lock_guard lock(mutex);
    kept.push_front(built);
    if (kept.size() > kept_max) kept.pop_back();
    return built;
}

struct LinkFault {
    Section section;
    std::string from;
    std::string to;
    double capacity = 0;
};

class NetworkReader {
  public:
    NetworkReader(Section& fabric, Catalogue& catalogue, const NetworkContext& context)
        : fabric_(fabric), catalogue_(catalogue), context_(context) {}

    // `kind` and `spec` hold the defaults; without a kind the network is plain Ethernet.
    ClusterNetwork read(const char* name, std::optional<int> kind, TopologySpec spec);

  private:
    bool wanted(const ClusterNetwork& network) const {
        return network.given || context_.build ||
               ((context_.build_compute || context_.packets) && network.name == "compute") ||
               carries_window(network);
    }
    bool carries_window(const ClusterNetwork& network) const {
        return context_.packets && (network.name == "compute" ||
                                    (network.name == "storage" && context_.storage_traffic));
    }
    bool build(Section& section, ClusterNetwork& network, const std::string& file,
               std::vector<LinkFault>& faults);
    void warn_of_idle_keys(Section& section, const ClusterNetwork& network);
    static void warn_of_shape(Section& section, const ClusterNetwork& network);
    void count_values(Section& section, ClusterNetwork& network) const;
    void check_switches(Section& section, const ClusterNetwork& network);
    void read_switches(Section& section, ClusterNetwork& network);
    void read_planes(Section& section, TopologySpec& s) const;
    void read_sites(Section& network, TopologySpec& s);
    static void read_shape(Section& section, TopologySpec& s);
    void read_cables(Section& section, ClusterNetwork& network);
    std::optional<Optics> read_optics_of(Section& section, const char* key, const std::string& name,
                                         Metres length);
    static std::vector<LinkFault> read_faults(Section& section);
    void read_routing(Section& section, ClusterNetwork& network);
    void warn_of_idle_network(Section& section, const ClusterNetwork& network,
                              const std::vector<LinkFault>& faults);
    void read_custom(Section& section, ClusterNetwork& network, const std::string& file);
    void apply_faults(ClusterNetwork& network, std::vector<LinkFault>& faults);

    Section& fabric_;
    Catalogue& catalogue_;
    const NetworkContext& context_;
};

void NetworkReader::read_switches(Section& section, ClusterNetwork& network) {
    TopologySpec& spec = network.spec;
    // A network that is not built asks nothing of the catalogue: what is not read, no answer hangs on.
    const bool needed = wanted(network);
    std::string leaf =
        needed ? fitting_switch(catalogue_, network.infiniband(), spec.nic_bandwidth) : "";
    std::string spine;
    std::string core;
    const std::vector<std::string> known =
        fit_for_networks(catalogue_, catalogue_.all_names("switch"));
    section.name("leaf", leaf, known, "a switch in the catalogue", "The switch that NICs attach to",
                 {.otherwise = "the slowest of this kind that is as fast as the NICs"});
    section.name("spine", spine, known, "a switch in the catalogue", "The switch that joins leaves",
                 {.otherwise = "as the leaf"});
    section.name("core", core, known, "a switch in the catalogue", "The switch that joins spines",
                 {.otherwise = "as the spine"});
    if (!needed) return;
    if (leaf.empty()) {
        if (!section.describing()) {
            section.error("leaf",
                          fmt::format("no {} switch in the catalogue has ports of {}",
                                      to_text(network.kind), line_rate_text(spec.nic_bandwidth)));
        }
        return;
    }
    if (spine.empty()) spine = leaf;
    if (core.empty()) core = spine;
    spec.leaf = read_switch(catalogue_, leaf);
    spec.spine = read_switch(catalogue_, spine);
    spec.core = read_switch(catalogue_, core);
}

void NetworkReader::read_routing(Section& section, ClusterNetwork& network) {
    RoutingSpec& routing = network.routing;
    const bool hashed = any_order(network.kind);
    routing.policy = hashed ? Routing::entropy
                     : network.infiniband() && network.spec.leaf.adaptive_routing
                         ? Routing::adaptive
                         : Routing::ecmp;
    section.choose("routing", routing.policy, routing_names,
                   "How flows choose among equal paths; adaptive by default on InfiniBand switches "
                   "that can, entropy on Ultra Ethernet and EFA");
    if (routing.policy == Routing::entropy && !hashed) {
        section.error("routing", "entropy values need kind = \"ultra_ethernet\" or \"efa\"",
                      "routing = \"random_spray\" also spreads packets by chance");
        routing.policy = Routing::ecmp;
    }
    // One whose packets stay together needs a queue pair for each of its ports.
    if (!goes_by_packet(routing.policy)) routing.queue_pairs = network.spec.planes;
    section.read("queue_pairs", routing.queue_pairs,
                 "Queue pairs of one connection, which take different paths", {Bound::positive});
    constexpr std::int64_t queue_pairs_max = 128;
    if (routing.queue_pairs > queue_pairs_max) {
        section.error("queue_pairs", fmt::format("expected at most {}, found {}", queue_pairs_max,
                                                 routing.queue_pairs));
        routing.queue_pairs = 1;
    }
    std::optional<std::int64_t> seed;
    section.read("hash_seed", seed,
                 "Seed of the switches' hash functions: this one draw of all luck",
                 {Bound::non_negative, "run.network_draws of them, and 0 in packet windows"});
    routing.hash_seed = static_cast<std::uint64_t>(seed.value_or(0));
    network.hash_given = seed.has_value();
    section.read("hash_polarized", routing.hash_polarized,
                 "All switches hash alike: collisions of one tier stay together in the next");
}

void NetworkReader::read_custom(Section& section, ClusterNetwork& network,
                                const std::string& path) {
    Diagnostics diagnostics;
    ValueReader values(diagnostics, path);
    Document document;
    try {
        document = parse_document(read_file(path), path, diagnostics);
    } catch (const ScenarioError& e) {
        section.error("file", e.diagnostics().empty() ? e.what() : e.diagnostics()[0].message);
        return;
    }
    if (diagnostics.ok()) {
        Section top(values, &document.root, "", {});
        network.topology = Topology::read(top, network.spec, catalogue_);
        top.finish();
    }
    diagnostics.raise_if_any();
}

void NetworkReader::apply_faults(ClusterNetwork& network, std::vector<LinkFault>& faults) {
    Topology& topology = network.topology;
    for (LinkFault& fault : faults) {
        const auto from = find_place(fault.section, "from", topology, fault.from);
        const auto to = find_place(fault.section, "to", topology, fault.to);
        if (!from || !to) continue;
        const auto cable = find_cable(fault.section, "to", topology, *from, *to);
        if (!cable) continue;
        topology.degrade(*cable, fault.capacity);
    }
}

// On the flow scale many values are all paths at once, and few are so many of them.
void NetworkReader::count_values(Section& section, ClusterNetwork& network) const {
    const bool given = section.section("transport").has("entropy_values");
    if (network.routing.policy != Routing::entropy || !given || context_.packet_rates) return;
    const bool efa = network.kind == NetworkKind::efa;
    const std::int64_t usual =
        std::llround(efa ? catalogue_.number("efa", "", "paths")
                         : catalogue_.number("ultra_ethernet", "", "entropy_values"));
    const std::int64_t values = network.packets.spec.entropy.values;
    if (values < usual) network.few_values = values;
}

namespace {

// Whether a network on one leaf is on that by its own ports, not by what leaves have above them.
bool is_one_leaf_anyway(TopologySpec spec) {
    spec.oversubscription = 1;
    std::string problem;
    const Topology t = Topology::build(spec, problem);
    return problem.empty() && t.levels() == 1;
}

}  // namespace

// What the tiers that were built make of its keys.
void NetworkReader::warn_of_shape(Section& section, const ClusterNetwork& network) {
    const Topology& t = network.topology;
    const TopologySpec& spec = network.spec;
    if (t.vertex_count() == 0 || spec.kind == "custom" || spec.kind == "single_switch") return;
    std::size_t down = 0;  // cables of the fullest leaf
    std::size_t up = 0;
    for (auto v = static_cast<VertexId>(t.nic_count()); v < t.vertex_count(); ++v) {
        if (t.level(v) > 1 || t.down_links(v).size() <= down) continue;
        down = t.down_links(v).size();
        up = t.up_links(v).size();
    }
    if (t.levels() == 1) {
        const std::string of_leaf = "has no effect: no leaf needs a spine";
        warn_of_keys(
            section,
            {"tiers", "spine_oversubscription", "spine", "core", "switch_cable", "switch_optics"},
            of_leaf);
        const bool given = section.has("oversubscription");
        if (given && is_one_leaf_anyway(spec)) warn_of_keys(section, {"oversubscription"}, of_leaf);
        return;
    }
    if (t.levels() == 2) {
        warn_of_keys(section, {"spine_oversubscription", "core"},
                     "has no effect: two tiers are enough");
    }
    const double built = real(down) / real(up);
    constexpr double close = 0.95;
    if (section.has("oversubscription") && built < close * spec.oversubscription) {
        section.warning(
            "oversubscription",
            fmt::format("is {:.3g} as built: the fullest leaf has {} cables down and {} up", built,
                        down, up));
    }
    if (spec.sites == 1 || t.levels() < 3) return;
    auto spine = static_cast<VertexId>(t.nic_count());
    while (t.level(spine) != 2) ++spine;
    const auto below = t.down_links(spine);
    const auto across = t.up_links(spine);
    const double built_across = real(below.size()) * t.line_rate(below[0]).bytes_per_second() /
                                (real(across.size()) * t.line_rate(across[0]).bytes_per_second());
    Section sites = section.section("sites");
    if (sites.has("oversubscription") && built_across < close * spec.site_oversubscription) {
        sites.warning("oversubscription",
                      fmt::format("is {:.3g} as built: a spine has {} cables to leaves and {} to "
                                  "other sites",
                                  built_across, below.size(), across.size()));
    }
}

// Keys that nothing in a network of this shape, or with this routing, asks for.
void NetworkReader::warn_of_idle_keys(Section& section, const ClusterNetwork& network) {
    const std::string& kind = network.spec.kind;
    const std::string of_shape = fmt::format("has no effect with topology = \"{}\"", kind);
    if (kind == "single_switch" || kind == "custom") {
        warn_of_keys(section,
                     {"tiers", "oversubscription", "spine_oversubscription", "nodes_per_leaf",
                      "spine", "core"},
                     of_shape);
    }
    if (kind == "single_switch") warn_of_keys(section, {"switch_cable", "switch_optics"}, of_shape);
    warn_of_shape(section, network);
    const Routing policy = network.routing.policy;
    const std::string of_routing =
        fmt::format("has no effect with routing = \"{}\"", word_of(routing_names, policy));
    const bool sprays = policy == Routing::spray || policy == Routing::random_spray ||
                        (policy == Routing::entropy && network.few_values == 0);
    // On the packet scale each queue pair has a rate and a recovery of its own.
    if (sprays && !context_.packets) warn_of_keys(section, {"queue_pairs"}, of_routing);
    const bool flowlets_alone = policy == Routing::flowlet && context_.packet_rates;
    if (sprays || policy == Routing::destination || policy == Routing::adaptive || flowlets_alone) {
        warn_of_keys(section, {"hash_seed", "hash_polarized"}, of_routing);
    }
}

// Many jobs send nothing but what their steps do, and not every step is computed.
void NetworkReader::warn_of_idle_network(Section& section, const ClusterNetwork& network,
                                         const std::vector<LinkFault>& faults) {
    if (!network.given) return;
    if (network.name != "compute") {
        if (!context_.many_jobs) return;
        section.warning("",
                        "carries nothing with [scheduler]: it is cabled, bought and powered, and "
                        "no job waits for it");
    } else if (!context_.any_steps) {
        section.warning("",
                        "carries nothing: no [[jobs.kind]] has a model. It says where nodes stand, "
                        "and is bought and powered");
    } else if (context_.step_measured && !context_.packets) {
        section.warning("", "has no effect on steps: job.step.time is measured");
    } else if (!context_.build_compute && !context_.build && !context_.packets) {
        std::string broken;
        for (const LinkFault& f : faults) {
            broken += fmt::format("; {} to {} slows nothing", f.from, f.to);
        }
        section.warning(
            "", "steps are computed on an ideal network with run.fidelity = \"analytic\"" + broken,
            "only kind and sharp change them; run.fidelity = \"flow\" takes all of it");
    }
}

void NetworkReader::check_switches(Section& section, const ClusterNetwork& network) {
    const Topology& t = network.topology;
    for (auto v = static_cast<VertexId>(t.nic_count()); v < t.vertex_count(); ++v) {
        const SwitchModel& model = t.switch_model(v);
        if (model.infiniband != network.infiniband()) {
            section.error("kind", fmt::format("{} ({}) is not {}", t.name(v), model.name,
                                              network.infiniband() ? "InfiniBand" : "Ethernet"));
            return;
        }
        if (network.sharp && !(network.infiniband() && model.sharp)) {
            section.error(
                "sharp",
                fmt::format("{} ({}) does not reduce in the network", t.name(v), model.name),
                "sharp = false");
            return;
        }
    }
}

// A custom network says by its cables how many ports a NIC has.
void NetworkReader::read_planes(Section& section, TopologySpec& s) const {
    s.planes = s.plane_count();
    section.read("planes", s.planes,
                 "Networks side by side: each NIC has a port in each, of its rate's equal part",
                 {Bound::positive, "1, or 2 with topology = \"dual_plane\""});
    const char* key = section.has("planes") ? "planes" : "topology";
    if (s.kind == "custom" && s.planes > 1) {
        section.error(key, "has no effect with topology = \"custom\"",
                      "an [[attach]] for each port");
        s.planes = 1;
    }
    if (s.kind == "dual_plane" && s.planes != 2) {
        section.error(key,
                      fmt::format("topology = \"dual_plane\" has 2 planes, found {}", s.planes),
                      fmt::format("topology = \"rail_optimized\" with planes = {}", s.planes));
        s.planes = 2;
    }
    const std::int64_t ports = context_.ports.nic_planes;
    if (ports % s.planes == 0 || !section.ok()) return;
    if (s.planes > ports) {
        section.error(key,
                      fmt::format("{} planes are more than the {} ports that a NIC ({}) can have",
                                  s.planes, ports, context_.ports.nic),
                      fmt::format("planes = {}", ports));
        s.planes = ports;
        return;
    }
    // A port has an equal part of the NIC's lanes.
    const auto port = [&](std::int64_t planes) {
        return line_rate_text(s.nic_bandwidth * (1.0 / real(planes)));
    };
    std::int64_t fewer = s.planes;
    while (ports % fewer != 0) --fewer;
    std::int64_t more = s.planes;
    while (ports % more != 0) ++more;
    section.error(key,
                  fmt::format("{} planes are ports of {}, which do not exist: a NIC ({}) of {} "
                              "splits into equal parts of its {} lanes",
                              s.planes, port(s.planes), context_.ports.nic,
                              line_rate_text(s.nic_bandwidth), ports),
                  fmt::format("planes = {}, ports of {}, or planes = {}, ports of {}", fewer,
                              port(fewer), more, port(more)));
    s.planes = fewer;
}

// Buildings. One tree spans them, so it has to be cabled by rule.
void NetworkReader::read_sites(Section& network, TopologySpec& s) {
    Section section = network.section("sites");
    section.read("count", s.sites,
                 "Buildings, each with an equal part of the nodes, in their order",
                 {Bound::positive});
    section.read("distance", s.site_distance, "Length of a cable from one building to another",
                 {Bound::positive, "none: needed with more than one"});
    section.read("oversubscription", s.site_oversubscription,
                 "A building's bandwidth below its spines over that to the others",
                 {Bound::positive});
    section.read("bandwidth", s.site_bandwidth, "Rate of one cable to the switches that join them",
                 {Bound::positive, "that of a port"});
    section.read("lossless", s.site_lossless,
                 "Pauses on cables between buildings, with headroom for their length");
    section.finish();
    if (section.describing()) return;
    if (s.sites == 1) {
        if (section.present()) section.warning("", "has no effect with count = 1");
        return;
    }
    const auto refuse = [&](const char* key, const std::string& text,
                            const std::string& hint = "") {
        section.error(key, text, hint);
        s.sites = 1;
    };
    if (context_.for_want && s.servers % s.sites != 0) s.servers = 0;
    if (s.kind == "custom" || s.kind == "single_switch") {
        refuse("count", fmt::format("topology = \"{}\" has one site", s.kind),
               "topology = \"fat_tree\"");
    } else if (!section.has("distance")) {
        refuse("distance", "is missing: how far are the buildings from each other?",
               "distance = \"10 km\"");
    } else if (s.nodes % s.sites != 0 || s.servers % s.sites != 0) {
        refuse("count",
               fmt::format("{} nodes and {} storage servers can't be split evenly over {} sites",
                           s.nodes, s.servers, s.sites));
    }
}

void NetworkReader::read_shape(Section& section, TopologySpec& s) {
    section.read("tiers", s.tiers, "Tiers of switches, 2 or 3",
                 {Bound::positive, "as many as it takes"});
    if (section.has("tiers") && s.tiers != 2 && s.tiers != 3) {
        section.error("tiers", fmt::format("expected 2 or 3, found {}", s.tiers),
                      "one tier is topology = \"single_switch\"");
        s.tiers = 0;
    }
    section.read("oversubscription", s.oversubscription,
                 "A leaf's bandwidth to its NICs over that to the spines", {Bound::at_least_one});
    section.read("spine_oversubscription", s.spine_oversubscription,
                 "Likewise of a spine, in three tiers", {Bound::at_least_one});
    section.read("nodes_per_leaf", s.nodes_per_leaf,
                 "Nodes that share a leaf, or the leaves of a rail-optimised unit",
                 {Bound::positive, "as many as the leaf's ports allow"});
    section.read("endpoint_cable", s.endpoint_cable, "Length from NIC to leaf",
                 {Bound::non_negative});
    section.read("switch_cable", s.switch_cable, "Length between switches", {Bound::non_negative});
}

void NetworkReader::read_cables(Section& section, ClusterNetwork& network) {
    TopologySpec& spec = network.spec;
    const std::vector<std::string> known = catalogue_.all_names("optics");
    constexpr const char* otherwise =
        "by rate and length as they are bought; they neither flap nor become dirty";
    section.name("endpoint_optics", spec.endpoint_optics, known, "a kind of optics",
                 "What cables from NIC to leaf are made of", {.otherwise = otherwise});
    section.name("switch_optics", spec.switch_optics, known, "a kind of optics",
                 "What cables between switches are made of", {.otherwise = otherwise});
    if (section.describing()) return;
    network.endpoint_optics =
        read_optics_of(section, "endpoint_optics", spec.endpoint_optics, spec.endpoint_cable);
    network.switch_optics =
        read_optics_of(section, "switch_optics", spec.switch_optics, spec.switch_cable);
}

std::optional<Optics> NetworkReader::read_optics_of(Section& section, const char* key,
                                                    const std::string& name, Metres length) {
    if (name.empty()) return std::nullopt;
    const Metres reach = catalogue_.metres("optics", name, "reach");
    if (length.value > reach.value) {
        section.error(key,
                      fmt::format("{} reaches {} m, and these cables are {} m long", name,
                                  reach.value, length.value),
                      "shorter cables, or optics that reach as far");
    }
    return read_optics(catalogue_, name);
}

std::vector<LinkFault> NetworkReader::read_faults(Section& section) {
    std::vector<LinkFault> faults;
    for (Section& each : section.sections("fault", "A cable that is broken, from the start")) {
        LinkFault fault{each, {}, {}, 0};
        each.read("from", fault.from, "One end: leaf-0, spine-3, node-2.nic-1", {.required = true});
        each.read("to", fault.to, "The other end", {.required = true});
        each.read("capacity", fault.capacity, "What is left of its bandwidth; 0: it is dead",
                  {Bound::fraction});
        each.finish();
        faults.push_back(std::move(fault));
    }
    return faults;
}

namespace {

// `rate` is what the nodes' NICs need, and then the network's.
void read_nic_bandwidth(Section& section, bool compute, Bandwidth& rate) {
    const Bandwidth of_nodes = rate;
    section.read("nic_bandwidth", rate, "Line rate of a NIC, per direction",
                 {Bound::positive,
                  "the catalogue's; on the compute network what cluster.nic_bandwidth needs"});
    if (compute && !section.describing() && of_nodes < rate) {
        section.warning("nic_bandwidth",
                        fmt::format("makes no node faster: its NICs move at most {} each",
                                    line_rate_text(of_nodes)),
                        "cluster.nic_bandwidth says what they move");
    }
}

}  // namespace

ClusterNetwork NetworkReader::read(const char* name, std::optional<int> kind, TopologySpec spec) {
    Section section = fabric_.section(name);
    ClusterNetwork network;
    network.name = name;
    network.given = section.present();
    if (kind) {
        section.choose(
            "kind", *kind, network_kinds,
            "The network's technology: which switches, routing and in-network reduction there are");
    }
    if (kind) network.kind = static_cast<NetworkKind>(*kind);
    network.kind_given = section.has("kind");
    section.name("topology", spec.kind, topology_names(), "a kind of topology",
                 "The network's shape, by default of two tiers or three as needed");
    const std::string file =
        section.file("file", "A TOML file with [[switch]], [[cable]] and [[attach]]",
                     {.otherwise = "only with topology = \"custom\""});
    read_nic_bandwidth(section, network.name == "compute", spec.nic_bandwidth);
    network.spec = spec;
    const bool custom = spec.kind == "custom" && network.name == "compute";
    if (custom && context_.for_want) network.spec.servers = 0;  // the file may have none
    if (kind) read_planes(section, network.spec);
    read_switches(section, network);
    read_shape(section, network.spec);
    if (network.name == "compute") read_sites(section, network.spec);
    if (kind) read_cables(section, network);
    if (network.name == "compute") {
        read_routing(section, network);
        section.read("sharp", network.sharp, "Reduce in the network (SHARP), InfiniBand only");
        if (network.sharp && !section.describing()) {
            TopologySpec& s = network.spec;
            s.leaf.sharp_trees = s.spine.sharp_trees = s.core.sharp_trees =
                catalogue_.integer("sharp", "", "trees_per_switch");
        }
    }
    std::vector<LinkFault> faults = read_faults(section);
    const bool built = build(section, network, file, faults);
    std::optional<PacketReader> packets;
    if (kind) {
        if (context_.many_jobs && !context_.packet_rates) {
            section.no_effect("without run.fidelity = \"packet\"");
        }
        packets.emplace(
            section, network.kind,
            network.name == "compute" ? std::optional(network.routing.policy) : std::nullopt);
    }
    section.finish();
    warn_of_idle_network(section, network, faults);
    const bool errors = network.endpoint_optics || network.switch_optics;
    if (built && packets && (carries_window(network) || packets->given() || errors)) {
        network.packets = packets->profile(catalogue_, network.topology, context_.storage_class,
                                           context_.ports.nic);
        count_values(section, network);
    }
    warn_of_idle_keys(section, network);
    return network;
}

// False: it is not asked for, or can't be built.
bool NetworkReader::build(Section& section, ClusterNetwork& network, const std::string& file,
                          std::vector<LinkFault>& faults) {
    const TopologySpec& s = network.spec;
    const bool custom = s.kind == "custom";
    if (custom != section.has("file")) {
        section.error("file",
                      custom ? "a custom topology needs a file"
                             : fmt::format("has no effect with topology = \"{}\"", s.kind),
                      custom ? "" : "topology = \"custom\"");
        return false;
    }
    if (section.describing() || !section.ok() || !wanted(network)) return false;
    constexpr std::int64_t nics_max = 1 << 20;
    if (s.nodes * s.nics_per_node + s.servers * s.nics_per_server > nics_max) {
        section.error(
            "",
            fmt::format("{} nodes with {} NICs each: networks of more than {} NICs are not built",
                        s.nodes, s.nics_per_node, nics_max));
        return false;
    }
    std::vector<VertexId> cut;
    if (custom) {
        read_custom(section, network, file);
        cut = unreachable(network.topology);
    } else {
        const BuiltNetwork built = built_once(s);
        if (built.problem.empty()) {
            network.topology = built.topology;
            cut = built.cut;
        } else {
            section.error(
                "", fmt::format("can't be cabled: {}", built.problem),
                "another switch, more tiers, more oversubscription, or fewer nodes_per_leaf");
            return false;
        }
    }
    check_switches(section, network);
    if (!section.ok()) return false;
    if (!cut.empty()) {
        section.error("", fmt::format("{} and {} are not connected", network.topology.name(0),
                                      network.topology.name(cut[0])));
        return false;
    }
    apply_faults(network, faults);
    return true;
}

}  // namespace

RoutingSpec ClusterNetwork::flow_routing() const {
    RoutingSpec out = routing;
    if (few_values == 0) return out;
    out.policy = Routing::ecmp;
    out.queue_pairs = routing.queue_pairs * few_values * spec.plane_count();
    return out;
}

std::vector<ClusterNetwork> read_networks(Section& top, Catalogue& catalogue,
                                          const NetworkContext& context) {
    Section fabric = top.section("fabric");
    NetworkReader reader(fabric, catalogue, context);
    const NodePorts& ports = context.ports;
    std::vector<ClusterNetwork> networks;

    TopologySpec compute;
    compute.propagation_s_per_m =
        catalogue.delay_per_metre("cable", "propagation", "propagation_delay");
    compute.kind = "rail_optimized";
    compute.nodes = context.nodes;
    compute.nics_per_node = ports.nics;
    compute.rails = ports.rails;
    compute.nic_bandwidth = ports.line_rate;
    if (context.converged) {
        compute.servers = context.storage_servers;
        compute.nics_per_server = context.nics_per_server;
    }
    const auto kind =
        static_cast<int>(ports.infiniband ? NetworkKind::infiniband : NetworkKind::roce);
    networks.push_back(reader.read("compute", kind, compute));

    TopologySpec storage = compute;
    storage.kind = "fat_tree";
    storage.nics_per_node = std::max<std::int64_t>(1, ports.storage_nics);
    storage.rails = 0;
    storage.servers = context.storage_servers;
    storage.nics_per_server = context.nics_per_server;
    const bool wanted = ports.storage_nics > 0 || fabric.has("storage");
    if ((wanted && !context.converged) || fabric.describing()) {
        networks.push_back(reader.read("storage", kind, storage));
    }
    if (fabric.has("storage") && (ports.storage_nics == 0 || context.converged)) {
        fabric.error("storage",
                     context.converged && !context.for_want
                         ? std::string("there is none with storage.network = \"compute\"")
                         : fmt::format("{} has no NICs for a storage network", ports.node),
                     "without [fabric.storage], storage traffic uses the compute NICs");
        fabric.section("storage");  // its keys are not looked at
    }

    TopologySpec management = compute;
    management.kind = "fat_tree";
    management.servers = context.storage_servers;
    management.nics_per_server = 1;
    management.nics_per_node = 1;
    management.rails = 0;
    management.nic_bandwidth = catalogue.bandwidth("nic", "mgmt_1g", "bandwidth");
    management.oversubscription = 4;
    networks.push_back(reader.read("management", std::nullopt, management));
    fabric.finish();
    return networks;
}

const ClusterNetwork* choose_network(Section& section,
                                     const std::vector<ClusterNetwork>& networks) {
    static const std::vector<std::string> names = {"compute", "storage"};
    int network = 0;
    section.choose("network", network, names, "Which network");
    const auto its = std::ranges::find_if(networks, [&](const ClusterNetwork& n) {
        return n.name == names[network] && n.topology.vertex_count() > 0;
    });
    if (its != networks.end()) return &*its;
    if (network == 1) section.error("network", "there is no storage network", "[fabric.storage]");
    return nullptr;
}

}  // namespace railyard
