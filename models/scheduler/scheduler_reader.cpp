#include "models/scheduler/scheduler_reader.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>

#include "models/scheduler/dedicated.h"
#include "models/scheduler/reader_names.h"
#include "sim/text.h"

namespace railyard {

namespace {

const std::vector<std::string> estimate_names = {"limit", "work"};

class WorldReader {
  public:
    WorldReader(Section& top, Catalogue& catalogue, const WorldSite& site, WorldSpec& spec,
                std::vector<Node>& nodes)
        : top_(top), catalogue_(catalogue), site_(site), nodes_(nodes), spec_(spec) {}

    void read();

  private:
    void read_groups();
    GpuAttributes attributes(const Node& node);
    void read_scheduler();
    void read_health(Section& scheduler);
    void read_partitions();
    void read_reservations();
    void read_nodes(Section& section, NodeIndex& first, std::int64_t& nodes);
    void place_nodes(Section& scheduler, std::int64_t nodes_per_leaf);

    Section& top_;
    Catalogue& catalogue_;
    const WorldSite& site_;
    std::vector<Node>& nodes_;  // by group
    WorldSpec& spec_;
};

void WorldReader::read() {
    read_groups();
    read_scheduler();
    check_slices(top_, spec_);
    read_partitions();
    read_reservations();
}

// ---- nodes ----

void WorldReader::read_groups() {
    std::int64_t sum = 0;
    for (Section& section :
         top_.sections("node_group", "Nodes of one kind, where a cluster has several")) {
        NodeGroup group;
        std::string node;
        Node kind;
        section.read("name", group.name, "What it is called", {.required = true});
        section.name("node", node, catalogue_.all_names("node"), "a node in the catalogue",
                     "What each of them is", {.required = true});
        group.nodes = 1;
        section.read("nodes", group.nodes, "How many; all together cluster.nodes",
                     {.bound = Bound::count, .required = true});
        if (!node.empty()) {
            kind = read_node(catalogue_, node);
            group.gpus_per_node = kind.gpus;
            group.gpu = attributes(kind);
        }
        read_slices(section, catalogue_, group);
        section.finish();
        if (node.empty()) continue;
        refuse_same_name(section, group.name, names_of(spec_.groups), "group of nodes");
        sum += group.nodes;
        spec_.groups.push_back(group);
        nodes_.push_back(std::move(kind));
    }
    if (spec_.groups.empty()) {
        spec_.groups.push_back({"all", site_.nodes, site_.node.gpus, attributes(site_.node)});
        nodes_.push_back(site_.node);
    } else if (sum != site_.nodes) {
        top_.error("node_group",
                   fmt::format("the groups have {} nodes, cluster.nodes is {}", sum, site_.nodes));
    }
    constexpr std::int64_t gpus_per_node_max = 255;
    for (NodeGroup& group : spec_.groups) {
        if (group.gpus_per_node <= gpus_per_node_max) continue;
        top_.error("cluster", fmt::format("nodes of many jobs have at most {} GPUs, found {}",
                                          gpus_per_node_max, group.gpus_per_node));
        group.gpus_per_node = gpus_per_node_max;
    }
}

GpuAttributes WorldReader::attributes(const Node& node) {
    GpuAttributes out;
    out.kind = node.gpu.id;
    out.memory = node.gpu.hbm_capacity;
    out.nvlink_domain = node.nvlink ? node.nvlink_domain : 1;
    if (catalogue_.has("gpu", node.gpu.id, "compute_capability")) {
        out.compute_capability10 =
            std::llround(10 * catalogue_.number("gpu", node.gpu.id, "compute_capability"));
    }
    return out;
}

// Some of the nodes: from one on, or those of a group.
void WorldReader::read_nodes(Section& section, NodeIndex& first, std::int64_t& nodes) {
    std::int64_t from = 0;
    std::string group;
    section.name("group", group, own_names(section, names_of(spec_.groups)), "a [[node_group]]",
                 "Its nodes", {.otherwise = "first_node and nodes say which"});
    section.read("first_node", from, "The first of its nodes, counted from 0",
                 {Bound::non_negative});
    nodes = site_.nodes - from;
    section.read("nodes", nodes, "How many", {Bound::positive, "from first_node to the last"});
    if (!group.empty()) {
        from = 0;
        for (const NodeGroup& g : spec_.groups) {
            if (g.name == group) {
                nodes = g.nodes;
                break;
            }
            from += g.nodes;
        }
        refuse_keys(section, {"first_node", "nodes"}, "has no effect with group");
    }
    if (from < 0 || nodes < 1 || from + nodes > site_.nodes) {
        section.error("nodes", fmt::format("expected nodes from 0 to {}, found {} to {}",
                                           site_.nodes - 1, from, from + nodes - 1));
        from = 0;
        nodes = site_.nodes;
    }
    first = static_cast<NodeIndex>(from);
}

// Leaves as the compute network has them, blocks as its spines join them; or runs of nodes.
void WorldReader::place_nodes(Section& scheduler, std::int64_t nodes_per_leaf) {
    const Topology& network = site_.network;
    spec_.places.resize(static_cast<std::size_t>(site_.nodes));
    if (nodes_per_leaf > 0) {
        for (std::size_t n = 0; n < spec_.places.size(); ++n) {
            spec_.places[n].leaf =
                static_cast<std::uint32_t>(n / static_cast<std::size_t>(nodes_per_leaf));
        }
        return;
    }
    if (network.nodes() != site_.nodes) {
        if (spec_.slurm.topology != SlurmTopology::none) {
            scheduler.error("topology", "the nodes stand nowhere",
                            "give scheduler.nodes_per_leaf, or [fabric.compute]");
        }
        return;
    }
    std::map<VertexId, std::uint32_t> leaves;
    std::map<VertexId, std::uint32_t> blocks;
    for (std::size_t n = 0; n < spec_.places.size(); ++n) {
        const auto ups = network.up_links(network.nic(static_cast<std::int64_t>(n), 0));
        if (ups.empty()) continue;
        const VertexId leaf = network.links()[ups[0]].to;
        VertexId spine = leaf;
        for (const LinkId up : network.up_links(leaf)) {
            const VertexId above = network.links()[up].to;
            spine = spine == leaf ? above : std::min(spine, above);
        }
        const auto number = [](auto& known, VertexId of) {
            return known.emplace(of, static_cast<std::uint32_t>(known.size())).first->second;
        };
        spec_.places[n] = {number(leaves, leaf), number(blocks, spine)};
    }
}

// ---- the scheduler ----

void WorldReader::read_scheduler() {
    Section scheduler = top_.section("scheduler");
    std::vector<std::string> kinds = names_of(world_scheduler_kinds());
    kinds.insert(kinds.begin(), dedicated_scheduler);  // which is no scheduler of many jobs
    scheduler.name("kind", spec_.scheduler, kinds, "a scheduler",
                   "Who decides which job gets what");
    scheduler.no_effect(unless_under({"sjf", "easy"}, spec_));
    scheduler.choose(
        "estimate", spec_.estimate, estimate_names,
        "What it takes for a job's time: its time limit, or its work, which nobody knows so well");
    scheduler.no_effect("");
    read_slurm(scheduler, catalogue_, spec_);
    std::int64_t nodes_per_leaf = 0;
    scheduler.no_effect(unless_under({"slurm", "kueue"}, spec_));
    scheduler.read("nodes_per_leaf", nodes_per_leaf, "Nodes of a leaf, or of a block",
                   {Bound::positive, "as [fabric.compute] cables them"});
    scheduler.no_effect("");
    read_health(scheduler);
    read_kube_scheduler(scheduler, spec_);
    scheduler.finish();
    if (!top_.describing() && scheduler.ok()) place_nodes(scheduler, nodes_per_leaf);
}

void WorldReader::read_health(Section& scheduler) {
    Section section = scheduler.section("health");
    HealthChecks& health = spec_.health;
    section.read("prolog", health.prolog, "Nodes are checked before a job starts on them");
    section.read("epilog", health.epilog, "Nodes are checked after a job has ended");
    section.read("prolog_time", health.prolog_time, "How long that takes", {Bound::non_negative});
    section.read("epilog_time", health.epilog_time, "How long that takes", {Bound::non_negative});
    section.read("interval", health.interval, "From one check of all nodes to the next",
                 {Bound::positive, "there are none (HealthCheckInterval)"});
    section.finish();
    if (!health.prolog) {
        warn_of_keys(section, {"prolog_time"}, "has no effect with prolog = false");
        health.prolog_time = {};
    }
    if (!health.epilog) {
        warn_of_keys(section, {"epilog_time"}, "has no effect with epilog = false");
        health.epilog_time = {};
    }
    if (!health.prolog && !health.epilog && health.interval == Duration{}) {
        section.warning("",
                        "nobody looks for broken nodes that answer: jobs fail on them for ever");
    }
}

// ---- who gets which nodes, and when ----

void WorldReader::read_partitions() {
    for (Section& section : top_.sections("partition", "Nodes behind one queue")) {
        PartitionSpec p;
        section.read("name", p.name, "What it is called", {.required = true});
        read_nodes(section, p.first_node, p.nodes);
        section.read("limit_max", p.limit_max, "Longest time of a job (MaxTime)",
                     {Bound::positive, "none"});
        section.read("limit_default", p.limit_default,
                     "Time limit of a job that names none (DefaultTime)",
                     {Bound::positive, "limit_max"});
        section.read("gpus_max", p.gpus_max, "GPUs of one job at most",
                     {Bound::positive, "any number"});
        section.read("submitted_max", p.submitted_max,
                     "Jobs that it holds, running and waiting; more are refused (MaxSubmitJobs)",
                     {Bound::positive, "any number"});
        section.no_effect(unless_under({"slurm"}, spec_));
        section.read("priority", p.priority, "Relative to that of others (PriorityJobFactor)",
                     {Bound::non_negative});
        section.read("tier", p.tier, "Jobs of higher tiers come first, whatever their priority",
                     {Bound::non_negative});
        section.finish();
        warn_without_weight(section, {"priority"}, spec_, spec_.slurm.priority.partition,
                            "partition");
        refuse_same_name(section, p.name, names_of(spec_.partitions), "partition");
        spec_.partitions.push_back(p);
    }
    if (spec_.partitions.empty()) {
        PartitionSpec all;
        all.name = "all";
        all.nodes = site_.nodes;
        spec_.partitions.push_back(all);
    }
}

void WorldReader::read_reservations() {
    const std::string elsewhere = unless_under({"slurm"}, spec_);
    top_.no_effect(elsewhere);
    std::vector<Section> sections =
        top_.sections("reservation", "Nodes under maintenance for a while: no job may run into it");
    top_.no_effect("");
    for (Section& section : sections) {
        Reservation r;
        Duration start{};
        read_nodes(section, r.first_node, r.nodes);
        section.read("start", start, "When it begins", {Bound::non_negative});
        section.read("duration", r.length, "How long it lasts",
                     {.bound = Bound::positive, .required = true});
        section.read("every", r.every, "From one to the next", {Bound::positive, "there is one"});
        section.finish();
        r.start = Instant(start);
        if (r.every > Duration{} && r.every <= r.length) {
            section.error("every",
                          "expected more than its duration: the nodes would never be back");
            r.every = {};
        }
        if (elsewhere.empty()) spec_.reservations.push_back(r);
    }
}

}  // namespace

void read_scheduler(Section& top, Catalogue& catalogue, const WorldSite& site, WorldSpec& spec,
                    std::vector<Node>& nodes) {
    WorldReader(top, catalogue, site, spec, nodes).read();
}

}  // namespace railyard
