// Slurm's topology.conf and topology.yaml: a logical tree without bandwidths, of which the leaves count here.

#include <fmt/format.h>

#include <set>

#include "tools/import/slurm_cluster.h"
#include "tools/import/text_file.h"
#include "tools/import/yaml_tree.h"

namespace railyard {

namespace {

// Switches by name, whichever file they are from.
struct LogicalSwitch {
    SlurmLeaf leaf;  // its own nodes
    std::vector<std::string> children;
};

void expand_into(const std::string& list, const SlurmLeaf& at, std::vector<std::string>& out,
                 Diagnostics& diagnostics) {
    std::string problem;
    out = expand_hostlist(list, problem);
    if (!problem.empty()) diagnostics.error(at.file, {at.line, 1}, at.name, problem);
}

void check_tree(const std::vector<LogicalSwitch>& switches, Diagnostics& diagnostics) {
    std::set<std::string> names;
    for (const LogicalSwitch& s : switches) {
        if (!names.insert(s.leaf.name).second) {
            diagnostics.error(s.leaf.file, {s.leaf.line, 1}, s.leaf.name, "is there twice");
        }
    }
    std::map<std::string, std::string> parent;
    for (const LogicalSwitch& s : switches) {
        const Position at{s.leaf.line, 1};
        if (!s.leaf.nodes.empty() && !s.children.empty()) {
            diagnostics.error(s.leaf.file, at, s.leaf.name, "has both nodes and switches");
        }
        for (const std::string& child : s.children) {
            if (!names.contains(child)) {
                diagnostics.error(s.leaf.file, at, s.leaf.name,
                                  fmt::format("is above '{}', which no line defines", child));
            } else if (const auto [known, fresh] = parent.emplace(child, s.leaf.name); !fresh) {
                diagnostics.error(
                    s.leaf.file, at, s.leaf.name,
                    fmt::format("'{}' is below both this and {}", child, known->second));
            }
        }
    }
}

void take_leaves(const std::vector<LogicalSwitch>& switches, SlurmCluster& cluster,
                 ImportedPart& part, Diagnostics& diagnostics) {
    check_tree(switches, diagnostics);
    for (const LogicalSwitch& s : switches) {
        if (!s.leaf.nodes.empty()) cluster.leaves.push_back(s.leaf);
    }
    const std::size_t above = switches.size() - cluster.leaves.size();
    if (above > 0) {
        part.note(
            "Left out: {} switches above the leaves. Slurm's tree has no cables, ports or rails.",
            above);
    }
}

// One topology of topology.yaml.
class TopologyYaml {
  public:
    TopologyYaml(const std::string& file, SlurmCluster& cluster, ImportedPart& part,
                 Diagnostics& diagnostics)
        : file_(file), cluster_(cluster), part_(part), diagnostics_(diagnostics) {}
    void read() {
        read_lines(file_, diagnostics_);  // refuses templates
        const Document document = parse_yaml(read_input(file_), file_, diagnostics_);
        if (!diagnostics_.ok()) return;
        const Value* topology = chosen(document);
        if (topology == nullptr) return;
        const Value* tree = topology->find("tree");
        const Value* block = topology->find("block");
        const Value* list = tree != nullptr    ? tree->find("switches")
                            : block != nullptr ? block->find("blocks")
                                               : nullptr;
        if (list == nullptr) {
            return part_.note("{}:{}: neither a tree nor blocks: no leaves are imported.", file_,
                              topology->at.line);
        }
        cluster_.blocks = block != nullptr;
        read_list(*list, block != nullptr ? "block" : "switch");
    }

  private:
    const Value* chosen(const Document& document) {
        const Value& root = document.root;
        if (root.kind != Value::Kind::array) {
            const bool model = root.find("switches") != nullptr && root.find("blocks") != nullptr;
            error(root, "",
                  model ? "a model of topograph, not Slurm's topology.yaml"
                        : "not Slurm's topology.yaml, which is a list of topologies",
                  model ? "give the topology.conf or topology.yaml that topograph writes" : "");
            return nullptr;
        }
        const Value* out = nullptr;
        for (const Value& one : root.items) {
            const Value* is_default = one.find("cluster_default");
            if (one.find("topology") == nullptr) {
                error(one, "topology", "is missing: the topology's name");
                return nullptr;
            }
            if (out == nullptr || (is_default != nullptr && is_default->integer == 1)) out = &one;
        }
        if (out == nullptr) error(root, "", "there is no topology in it");
        return out;
    }

    void read_list(const Value& list, const char* name) {
        std::vector<LogicalSwitch> switches;
        for (const Value& one : list.items) {
            const Value* called = one.find(name);
            const Value* nodes = one.find("nodes");
            const Value* children = one.find("children");
            if (called == nullptr) return error(one, name, "is missing: what it is called");
            LogicalSwitch s{
                {called->kind == Value::Kind::string ? called->text
                                                     : fmt::format("{}", called->integer),
                 fmt::format("{}:{}", file_, one.at.line),
                 {},
                 file_,
                 one.at.line},
                {}};
            if (nodes != nullptr) expand_into(nodes->text, s.leaf, s.leaf.nodes, diagnostics_);
            if (children != nullptr) expand_into(children->text, s.leaf, s.children, diagnostics_);
            switches.push_back(std::move(s));
        }
        take_leaves(switches, cluster_, part_, diagnostics_);
    }

    void error(const Value& at, const std::string& key, std::string message,
               std::string help = {}) {
        diagnostics_.error(file_, at.at, key, std::move(message), std::move(help));
    }

    const std::string& file_;
    SlurmCluster& cluster_;
    ImportedPart& part_;
    Diagnostics& diagnostics_;
};

}  // namespace

void read_slurm_switches(const std::vector<SlurmRecord>& records, SlurmCluster& cluster,
                         ImportedPart& part, Diagnostics& diagnostics) {
    std::vector<LogicalSwitch> switches;
    for (const SlurmRecord& record : records) {
        const bool block = record.find("blockname") != nullptr;
        if (!block && record.find("switchname") == nullptr) continue;
        const std::string& name = *record.find(block ? "blockname" : "switchname");
        LogicalSwitch s{{name, record.place(), {}, record.file, record.line}, {}};
        if (const std::string* nodes = record.find("nodes")) {
            expand_into(*nodes, s.leaf, s.leaf.nodes, diagnostics);
        }
        if (const std::string* children = record.find("switches")) {
            expand_into(*children, s.leaf, s.children, diagnostics);
        }
        cluster.blocks = cluster.blocks || block;
        switches.push_back(std::move(s));
    }
    if (!switches.empty()) take_leaves(switches, cluster, part, diagnostics);
}

void read_topology_yaml(const std::string& file, SlurmCluster& cluster, ImportedPart& part,
                        Diagnostics& diagnostics) {
    TopologyYaml(file, cluster, part, diagnostics).read();
}

}  // namespace railyard
