#include "tools/import/slurm_cluster.h"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>
#include <set>

#include "models/campaign/campaign.h"
#include "tools/import/importers.h"
#include "tools/import/text_file.h"

namespace railyard {

namespace {

class ClusterReader : private Importer {
  public:
    ClusterReader(const std::vector<SlurmRecord>& records, const ImportOptions& options,
                  ImportedPart& part, Diagnostics& diagnostics)
        : Importer(options, part, diagnostics), records_(records) {}
    SlurmCluster read();

  private:
    void read_gres();
    void read_nodes();
    void add_nodes(const SlurmRecord& record);
    void add_node(const SlurmRecord& record, const std::string& name);
    bool find_gpus(const SlurmRecord& record, const std::string& name, SlurmNode& node);
    void find_kinds();
    std::string kind_of(const SlurmNode& node) const;
    std::string likely_kinds(const SlurmNode& node) const;
    void name_groups();
    void read_partitions();
    void read_sets();
    std::vector<std::string> nodes_with(const std::string& features) const;
    void add_partition(const SlurmRecord& record);
    std::vector<std::string> names_in(const SlurmRecord& record, std::string_view key);
    std::vector<std::string> members(const SlurmRecord& record, const std::string& nodes);
    void say_left_out();
    void error(const SlurmRecord& record, std::string_view key, std::string message,
               std::string help = {}) {
        diagnostics_.error(record.file, record.at(), std::string(key), std::move(message),
                           std::move(help));
    }

    const std::vector<SlurmRecord>& records_;
    SlurmCluster out_;
    std::map<std::string, std::string> defaults_;  // of NodeName=DEFAULT
    std::map<std::string, const SlurmRecord*> defined_;
    std::map<std::string, std::size_t> place_;  // of nodes with GPUs
    std::map<std::string, SlurmGres> gres_;     // by node, of gres.conf; "" for all
    std::map<std::string, std::vector<std::string>> sets_;
    std::map<std::string, std::string> features_;  // by node: "a100,nvl72"
    std::vector<std::string> without_gpus_;
    std::vector<std::string> future_;
    std::vector<std::string> cloud_;
};

std::vector<std::string> ClusterReader::names_in(const SlurmRecord& record, std::string_view key) {
    std::string problem;
    std::vector<std::string> out = expand_hostlist(*record.find(key), problem);
    if (!problem.empty()) error(record, key, problem);
    return out;
}

// gres.conf: what AutoDetect finds is not in it.
void ClusterReader::read_gres() {
    for (const SlurmRecord& record : records_) {
        const std::string* name = record.find("name");
        if (name == nullptr || lower_case(*name) != "gpu") continue;
        SlurmGres gres;
        if (const std::string* type = record.find("type")) gres.type = lower_case(*type);
        if (const std::string* count = record.find("count")) {
            gres.count = whole_value(*count).value_or(0);
        } else if (const std::string* file = record.find("file")) {
            std::string problem;
            gres.count = static_cast<std::int64_t>(expand_hostlist(*file, problem).size());
            if (!problem.empty()) error(record, "file", problem);
        }
        const std::vector<std::string> nodes = record.find("nodename") != nullptr
                                                   ? names_in(record, "nodename")
                                                   : std::vector<std::string>{""};
        for (const std::string& node : nodes) {
            SlurmGres& all = gres_[node];
            all.count += gres.count;  // a line for each socket is usual
            if (!gres.type.empty()) all.type = gres.type;
        }
    }
}

void ClusterReader::read_nodes() {
    for (const SlurmRecord& record : records_) {
        const std::string* name = record.find("nodename");
        if (name == nullptr || record.find("name") != nullptr) continue;
        // gres.conf has nodes whose GPUs slurmd finds by itself.
        if (record.find("autodetect") != nullptr) continue;
        if (lower_case(*name) == "default") {
            for (const auto& [key, value] : record.keys) defaults_[key] = value;
            continue;
        }
        add_nodes(record);
    }
}

void ClusterReader::add_nodes(const SlurmRecord& record) {
    for (const std::string& name : names_in(record, "nodename")) {
        const auto [known, fresh] = defined_.emplace(name, &record);
        if (fresh) {
            const std::string* feature = record.find("feature");
            if (feature == nullptr) feature = record.find("features");
            features_[name] = feature != nullptr ? *feature : defaults_["feature"];
            add_node(record, name);
            continue;
        }
        diagnostics_.warning(
            record.file, record.at(), "NodeName",
            fmt::format("{} is there twice: Slurm takes the first, of {}, and so does this", name,
                        known->second->place()));
    }
}

void ClusterReader::add_node(const SlurmRecord& record, const std::string& name) {
    const std::string* state = record.find("state");
    const std::string is = lower_case(state != nullptr ? *state : defaults_["state"]);
    if (is == "future") {
        future_.push_back(name);
        out_.others.insert(name);
        return;
    }
    SlurmNode node{name, 0, "", "", "", &record, -1};
    if (!find_gpus(record, name, node)) return;
    if (node.gpus == 0) {
        without_gpus_.push_back(name);
        out_.others.insert(name);
        return;
    }
    if (is == "cloud") cloud_.push_back(name);
    place_[name] = out_.nodes.size();
    out_.nodes.push_back(std::move(node));
}

// False, and reported, where it can't be said.
bool ClusterReader::find_gpus(const SlurmRecord& record, const std::string& name, SlurmNode& node) {
    const std::string* given = record.find("gres");
    const std::string gres = given != nullptr ? *given : defaults_["gres"];
    std::string problem;
    const std::vector<SlurmGres> found = slurm_gpus(gres, problem);
    if (!problem.empty()) {
        error(record, "Gres", problem);
        return false;
    }
    for (const SlurmGres& one : found) {
        if (one.slices) {
            error(record, "Gres",
                  fmt::format("gpu:{}:{} are slices of MIG, not {} GPUs", one.type, one.count,
                              one.count),
                  "write the whole GPUs here (Gres=gpu:h100:8) and give mig and mig_layout to the "
                  "[[node_group]]");
            return false;
        }
        if (!node.type.empty() && one.type != node.type) {
            error(record, "Gres",
                  fmt::format("{} has GPUs of two types, {} and {}: a node has GPUs of one", name,
                              node.type, one.type));
            return false;
        }
        node.type = one.type;
        node.gpus += one.count;
    }
    const auto of_all = gres_.find("");  // its files may be more than a node has
    if (of_all != gres_.end() && node.type.empty()) node.type = of_all->second.type;
    const auto own = gres_.find(name);
    if (own == gres_.end() || node.gpus == 0) return true;
    if (node.type.empty()) node.type = own->second.type;
    if (own->second.count > 0 && own->second.count != node.gpus) {
        error(record, "Gres",
              fmt::format("{} has {} GPUs here and {} in gres.conf", name, node.gpus,
                          own->second.count),
              "a GPU that is lost? Write in both what the machine has");
        return false;
    }
    return true;
}

// What the user says that a type of GPU is.
std::string ClusterReader::kind_of(const SlurmNode& node) const {
    std::string for_all;
    for (const std::string& given : options_.nodes) {
        const std::size_t equals = given.find('=');
        if (equals == std::string::npos) {
            for_all = given;
        } else if (lower_case(given.substr(0, equals)) == node.type) {
            return given.substr(equals + 1);
        }
    }
    return for_all;
}

std::string ClusterReader::likely_kinds(const SlurmNode& node) const {
    std::vector<std::string> out;
    for (const std::string& name : Catalogue::names("node")) {
        if (!node.type.empty() && name.find(node.type) != std::string::npos) out.push_back(name);
    }
    const std::string type = node.type.empty() ? "" : node.type + "=";
    if (out.empty()) {
        return fmt::format("give --node {}NAME, of 'railyard list node'{}", type,
                           node.type.empty() ? "" : ", none of which has that in its name");
    }
    return fmt::format(
        "give --node {}{}{}", type, out.front(),
        out.size() > 1 ? fmt::format(", or another of {}", fmt::join(out, ", ")) : "");
}

void ClusterReader::find_kinds() {
    const std::vector<std::string> known = Catalogue::names("node");
    std::set<std::string> asked;
    for (SlurmNode& node : out_.nodes) {
        node.kind = kind_of(node);
        if (!node.kind.empty() && std::ranges::find(known, node.kind) == known.end()) {
            throw ScenarioError(fmt::format("--node {}: no node of the catalogue", node.kind),
                                suggest(node.kind, known));
        }
        if (!node.kind.empty() || !asked.insert(node.type).second) continue;
        error(*node.record, "Gres",
              node.type.empty()
                  ? fmt::format("{} GPUs without a type: which node of the catalogue is it?",
                                node.gpus)
                  : fmt::format("which node of the catalogue has {} GPUs that this site calls "
                                "'{}'?",
                                node.gpus, visible(node.type)),
              likely_kinds(node));
    }
}

// Alike are nodes of one kind with as many GPUs.
void ClusterReader::name_groups() {
    std::map<std::string, std::set<std::int64_t>> counts;
    for (const SlurmNode& node : out_.nodes) counts[node.kind].insert(node.gpus);
    for (SlurmNode& node : out_.nodes) {
        node.group = counts[node.kind].size() == 1
                         ? node.kind
                         : fmt::format("{}_{}_gpus", node.kind, node.gpus);
    }
}

// The nodes that "Nodes=a[1-3],set,ALL" names.
std::vector<std::string> ClusterReader::members(const SlurmRecord& record,
                                                const std::string& nodes) {
    std::vector<std::string> out;
    for (const std::string& one : split_hostlist(nodes)) {
        if (lower_case(one) == "all") {
            for (const auto& [name, where] : defined_) out.push_back(name);
        } else if (const auto set = sets_.find(one); set != sets_.end()) {
            out.insert(out.end(), set->second.begin(), set->second.end());
        } else {
            std::string problem;
            const std::vector<std::string> names = expand_hostlist(one, problem);
            if (!problem.empty()) error(record, "Nodes", problem);
            out.insert(out.end(), names.begin(), names.end());
        }
    }
    return out;
}

// Those that have one of the features.
std::vector<std::string> ClusterReader::nodes_with(const std::string& features) const {
    std::vector<std::string> out;
    const std::vector<std::string> asked = split_text(features, ',');
    for (const auto& [node, has] : features_) {
        const std::vector<std::string> own = split_text(has, ',');
        if (std::ranges::any_of(own, [&](const std::string& one) {
                return !one.empty() && std::ranges::find(asked, one) != asked.end();
            })) {
            out.push_back(node);
        }
    }
    return out;
}

// A set is what its Feature and its Nodes come to together.
void ClusterReader::read_sets() {
    for (const SlurmRecord& record : records_) {
        const std::string* set = record.find("nodeset");
        if (set == nullptr) continue;
        std::vector<std::string>& nodes = sets_[*set];
        if (const std::string* feature = record.find("feature")) {
            nodes = nodes_with(*feature);
            if (nodes.empty()) {
                error(record, "Feature", fmt::format("no node has the feature {}", *feature));
            }
        }
        if (const std::string* named = record.find("nodes")) {
            const std::vector<std::string> more = members(record, *named);
            nodes.insert(nodes.end(), more.begin(), more.end());
        }
    }
}

// PartitionName=DEFAULT holds for those that follow, until another says otherwise.
void ClusterReader::read_partitions() {
    read_sets();
    std::map<std::string, std::pair<std::string, std::string>> defaults;  // value, place
    for (const SlurmRecord& record : records_) {
        const std::string* name = record.find("partitionname");
        if (name == nullptr) continue;
        if (lower_case(*name) == "default") {
            for (const auto& [key, value] : record.keys) {
                if (key != "partitionname") defaults[key] = {value, record.place()};
            }
            continue;
        }
        SlurmRecord& whole = out_.partition_records.emplace_back(record);
        for (const auto& [key, given] : defaults) {
            if (whole.find(key) != nullptr) continue;
            whole.keys.emplace_back(key, given.first);
            whole.given.emplace_back(key, given.second);
        }
        add_partition(whole);
    }
}

void ClusterReader::add_partition(const SlurmRecord& record) {
    const std::string& name = *record.find("partitionname");
    SlurmPartition out{name, &record, {}};
    const std::string* nodes = record.find("nodes");
    std::vector<std::string> unknown;
    for (const std::string& node :
         nodes != nullptr ? members(record, *nodes) : std::vector<std::string>{}) {
        const auto found = place_.find(node);
        if (found != place_.end()) out.nodes.push_back(found->second);
        const bool future = std::ranges::find(future_, node) != future_.end();
        if (found == place_.end() && !future && !defined_.contains(node)) unknown.push_back(node);
    }
    if (!unknown.empty()) {
        return error(record, "Nodes",
                     fmt::format("partition {} names {} nodes that no NodeName defines: {}", name,
                                 unknown.size(), some_of(unknown)),
                     "give the file with their NodeName, too");
    }
    std::ranges::sort(out.nodes);
    out.nodes.erase(std::unique(out.nodes.begin(), out.nodes.end()), out.nodes.end());
    const std::string* state = record.find("state");
    const std::string is = lower_case(state != nullptr ? *state : "up");
    if (out.nodes.empty() || is == "down" || is == "inactive") {
        return part_.note("Left out: partition {} of {}, {}.", name, record.place(),
                          out.nodes.empty() ? "which has no node with GPUs" : "which is " + is);
    }
    out_.partitions.push_back(std::move(out));
}

void ClusterReader::say_left_out() {
    if (!without_gpus_.empty()) {
        part_.note("Left out: {} nodes without GPUs: {}.", without_gpus_.size(),
                   some_of(without_gpus_));
    }
    if (!future_.empty()) {
        part_.note("Left out: {} nodes with State=FUTURE: {}.", future_.size(), some_of(future_));
    }
    if (!cloud_.empty()) {
        const SlurmRecord& first = *defined_[cloud_.front()];
        diagnostics_.warning(
            first.file, first.at(), "State",
            fmt::format("{} of {} nodes are CLOUD: powered off until they are used, "
                        "and at most so many",
                        cloud_.size(), out_.nodes.size()),
            "they are taken as there: set cluster.nodes to what you pay for");
    }
}

SlurmCluster ClusterReader::read() {
    read_gres();
    read_nodes();
    if (out_.nodes.empty() && diagnostics_.ok()) {
        if (defined_.empty()) return std::move(out_);
        error(*defined_.begin()->second, "Gres",
              fmt::format("none of {} nodes has Gres=gpu", defined_.size()),
              "is this the slurm.conf of a cluster with GPUs?");
    }
    if (diagnostics_.ok()) find_kinds();
    name_groups();
    read_partitions();
    say_left_out();
    return std::move(out_);
}

// Leaves of nodes that are none of ours.
void leave_out_others(SlurmCluster& cluster, Diagnostics& diagnostics) {
    std::erase_if(cluster.leaves, [&](const SlurmLeaf& leaf) {
        const bool other =
            !leaf.nodes.empty() && std::ranges::all_of(leaf.nodes, [&](const std::string& name) {
                return cluster.others.contains(name);
            });
        if (other) {
            diagnostics.warning(
                leaf.file, {leaf.line, 1}, "Nodes",
                fmt::format("'{}' is left out: its {} nodes have no GPUs, or are to come",
                            leaf.name, leaf.nodes.size()));
        }
        return other;
    });
}

bool is_run(const std::vector<std::size_t>& seen) {
    const auto [low, high] = std::minmax_element(seen.begin(), seen.end());
    return *high - *low + 1 == seen.size();
}

// The nodes group by group, by partition within one if asked, and then leaf by leaf.
std::vector<std::size_t> node_order(const SlurmCluster& cluster, bool by_partition) {
    const std::size_t count = cluster.nodes.size();
    std::vector<std::string> groups;
    for (const SlurmNode& node : cluster.nodes) {
        if (std::ranges::find(groups, node.group) == groups.end()) groups.push_back(node.group);
    }
    // Larger partitions decide first, so that one within another stays together.
    std::vector<const SlurmPartition*> by_size;
    for (const SlurmPartition& p : cluster.partitions) by_size.push_back(&p);
    std::ranges::stable_sort(
        by_size, [](const auto* a, const auto* b) { return a->nodes.size() > b->nodes.size(); });
    std::vector<std::vector<bool>> in(count, std::vector<bool>(by_size.size()));
    for (std::size_t p = 0; p < by_size.size(); ++p) {
        for (const std::size_t node : by_size[p]->nodes) in[node][p] = true;
    }
    std::vector<std::size_t> out(count);
    std::iota(out.begin(), out.end(), 0);
    std::ranges::stable_sort(out, [&](std::size_t a, std::size_t b) {
        const SlurmNode& left = cluster.nodes[a];
        const SlurmNode& right = cluster.nodes[b];
        const auto group_a = std::ranges::find(groups, left.group);
        const auto group_b = std::ranges::find(groups, right.group);
        if (group_a != group_b) return group_a < group_b;
        if (by_partition && in[a] != in[b]) return in[a] > in[b];
        return static_cast<unsigned>(left.leaf) < static_cast<unsigned>(right.leaf);
    });
    return out;
}

// A partition that would not be a run of nodes.
const SlurmPartition* first_broken(const SlurmCluster& cluster,
                                   const std::vector<std::size_t>& order) {
    const std::size_t count = cluster.nodes.size();
    std::vector<std::size_t> place(count);
    for (std::size_t i = 0; i < count; ++i) place[order[i]] = i;
    for (const SlurmPartition& p : cluster.partitions) {
        std::vector<std::size_t> seen;
        for (const std::size_t node : p.nodes) seen.push_back(place[node]);
        if (!seen.empty() && !is_run(seen)) return &p;
    }
    return nullptr;
}

void put_in_order(SlurmCluster& cluster, const std::vector<std::size_t>& order) {
    const std::size_t count = cluster.nodes.size();
    std::vector<SlurmNode> sorted;
    std::vector<std::size_t> place(count);
    for (std::size_t i = 0; i < count; ++i) {
        place[order[i]] = i;
        sorted.push_back(cluster.nodes[order[i]]);
    }
    cluster.nodes = std::move(sorted);
    for (SlurmPartition& p : cluster.partitions) {
        for (std::size_t& node : p.nodes) node = place[node];
        std::ranges::sort(p.nodes);
    }
}

}  // namespace

SlurmCluster read_slurm_cluster(const std::vector<SlurmRecord>& records,
                                const ImportOptions& options, ImportedPart& part,
                                Diagnostics& diagnostics) {
    return ClusterReader(records, options, part, diagnostics).read();
}

void place_on_leaves(SlurmCluster& cluster, Diagnostics& diagnostics) {
    if (cluster.leaves.empty() || cluster.nodes.empty()) return;
    leave_out_others(cluster, diagnostics);
    std::map<std::string, SlurmNode*> nodes;
    for (SlurmNode& node : cluster.nodes) nodes[node.name] = &node;
    for (std::size_t i = 0; i < cluster.leaves.size(); ++i) {
        SlurmLeaf& leaf = cluster.leaves[i];
        std::vector<std::string> unknown;
        for (const std::string& name : leaf.nodes) {
            const auto found = nodes.find(name);
            if (found == nodes.end()) {
                unknown.push_back(name);
                continue;
            }
            if (found->second->leaf >= 0) {
                const SlurmLeaf& other =
                    cluster.leaves[static_cast<std::size_t>(found->second->leaf)];
                diagnostics.error(leaf.file, {leaf.line, 1}, "Nodes",
                                  fmt::format("{} is on {} and on {} (line {})", name, leaf.name,
                                              other.name, other.line));
                return;
            }
            found->second->leaf = static_cast<int>(i);
        }
        if (unknown.size() == leaf.nodes.size()) {
            std::vector<std::string> known;
            for (const auto& [name, node] : nodes) known.push_back(name);
            diagnostics.error(
                leaf.file, {leaf.line, 1}, "Nodes",
                fmt::format("'{}' names {} nodes, none of which slurm.conf defines with GPUs: {}",
                            leaf.name, unknown.size(), some_of(unknown)),
                did_you_mean(unknown.empty() ? "" : unknown.front(), known));
            return;
        }
        if (!unknown.empty()) {
            diagnostics.warning(leaf.file, {leaf.line, 1}, "Nodes",
                                fmt::format("'{}' names {} nodes that slurm.conf does not define "
                                            "with GPUs: {}",
                                            leaf.name, unknown.size(), some_of(unknown)));
            std::erase_if(leaf.nodes, [&](const std::string& n) { return !nodes.contains(n); });
        }
    }
    std::vector<std::string> nowhere;
    for (const SlurmNode& node : cluster.nodes) {
        if (node.leaf < 0) nowhere.push_back(node.name);
    }
    if (nowhere.empty()) return;
    const SlurmLeaf& last = cluster.leaves.back();
    diagnostics.warning(last.file, {last.line, 1}, "",
                        fmt::format("{} nodes are on no switch: {}. Slurm lets no job run across",
                                    nowhere.size(), some_of(nowhere)),
                        "they are put behind the others");
}

void order_slurm_nodes(SlurmCluster& cluster, ImportedPart& part, Diagnostics& diagnostics) {
    std::vector<std::size_t> chosen = node_order(cluster, false);
    if (first_broken(cluster, chosen) != nullptr) {
        chosen = node_order(cluster, true);
        part.note("Nodes are counted partition by partition, not as the files list them.");
        if (!cluster.leaves.empty()) {
            part.note("So they are not in the order of their leaves: which share one is lost.");
        }
    }
    if (const SlurmPartition* broken = first_broken(cluster, chosen)) {
        return diagnostics.error(
            broken->record->file, broken->record->at(), "Nodes",
            fmt::format("partition {} can't be a run of nodes while the others are, too",
                        broken->name),
            "a partition here is a run of nodes: leave one out, or make them nest");
    }
    put_in_order(cluster, chosen);
}

}  // namespace railyard
