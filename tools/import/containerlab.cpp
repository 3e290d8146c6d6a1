// A network as containerlab has it (*.clab.yml): who is cabled to whom, and nothing of speeds.

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <filesystem>
#include <map>
#include <set>

#include "tools/import/importers.h"
#include "tools/import/json_tree.h"
#include "tools/import/text_file.h"
#include "tools/import/yaml_tree.h"
#include "tools/program/pattern.h"

namespace railyard {

namespace {

struct Device {
    bool host = false;
    int tier = -1;  // cables to the nearest host; a host's is 0
    int line = 0;
    std::map<std::string, std::string> peers;  // by interface
};

class Containerlab : private Importer {
  public:
    using Importer::Importer;
    void run();

  private:
    void error(const Value& at, const std::string& path, std::string message,
               std::string help = {}) {
        diagnostics_.error(file_, at.at, path, std::move(message), std::move(help));
    }
    void read_devices(const Value& topology, const Value& nodes);
    void read_links(const Value& links);
    std::pair<std::string, std::string> end_of(const Value& end);
    void read_rate();
    void find_tiers();
    void find_hosts();
    std::string network() const;
    void add_part();

    std::string file_;
    std::map<std::string, Device> devices_;
    std::vector<std::string> hosts_;  // those of a leaf side by side
    std::size_t nics_ = 0;            // of a host
    std::size_t nics_said_ = 0;
    std::string rate_;  // "400 Gbit/s"
    std::int64_t outside_ = 0;
};

// What runs plain Linux is a host. A kind may stand with the node, with its group, or be everybody's.
void Containerlab::read_devices(const Value& topology, const Value& nodes) {
    for (const auto& [name, node] : nodes.members) {
        const Value* group = at_path(&node, {"group"});
        const Value* groups = at_path(&topology, {"groups"});
        const Value* kind = at_path(&node, {"kind"});
        if (kind == nullptr && group != nullptr) {
            kind = at_path(groups, {group->text.c_str(), "kind"});
        }
        if (kind == nullptr) kind = at_path(&topology, {"defaults", "kind"});
        if (kind == nullptr) error(node, name, "has no kind: host or switch?");
        devices_[name] = {kind != nullptr && kind->text == "linux", -1, node.at.line, {}};
    }
}

std::pair<std::string, std::string> Containerlab::end_of(const Value& end) {
    const Value* node = at_path(&end, {"node"});
    const Value* interface = at_path(&end, {"interface"});
    if (node != nullptr && interface != nullptr) return {node->text, interface->text};
    const std::size_t colon = end.text.find(':');
    if (colon == std::string::npos) return {end.text, ""};
    return {end.text.substr(0, colon), end.text.substr(colon + 1)};
}

void Containerlab::read_links(const Value& links) {
    static const std::set<std::string> beyond = {"host", "mgmt-net", "macvlan", "dummy", "vxlan"};
    for (const Value& link : links.items) {
        const Value* ends = at_path(&link, {"endpoints"});
        if (ends == nullptr || ends->items.size() != 2) {
            const Value* type = at_path(&link, {"type"});
            if (type != nullptr && beyond.contains(type->text)) {
                ++outside_;
            } else {
                error(link, "links",
                      "expected two endpoints, as in [\"leaf1:e1-1\", \"spine1:e1-1\"]");
            }
            continue;
        }
        const auto a = end_of(ends->items[0]);
        const auto b = end_of(ends->items[1]);
        const auto leads_out = [&](const auto& end) {
            return beyond.contains(end.first) && !devices_.contains(end.first);
        };
        if (leads_out(a) || leads_out(b)) {
            ++outside_;
            continue;
        }
        if (a.first == b.first) error(link, a.first, "a cable from a node to itself");
        for (const auto& [own, other] : {std::pair(a, b), std::pair(b, a)}) {
            const auto device = devices_.find(own.first);
            if (device == devices_.end() || own.second.empty()) {
                error(link, own.first,
                      own.second.empty() ? "expected NODE:INTERFACE"
                                         : "no node of this topology has this name");
            } else if (!device->second.peers.emplace(own.second, other.first).second) {
                error(link, own.first, fmt::format("{} has two cables", own.second));
            }
        }
    }
}

void Containerlab::read_rate() {
    const Found found = match_pattern(options_.network, R"((\d{1,3})x(\d{1,4})G)");
    if (found.empty()) {
        return diagnostics_.error(
            file_, {}, "", "containerlab does not say how fast a cable is",
            "--network 1x400G: each host's NICs; all cables are taken as fast");
    }
    nics_said_ = std::stoul(found[1]);
    rate_ = fmt::format("{} Gbit/s", std::stoi(found[2]));
}

void Containerlab::find_tiers() {
    std::vector<std::string> reached;
    for (auto& [name, device] : devices_) {
        if (!device.host) continue;
        device.tier = 0;
        reached.push_back(name);
    }
    for (std::size_t i = 0; i < reached.size(); ++i) {
        const Device& from = devices_.at(reached[i]);
        for (const auto& [interface, peer] : from.peers) {
            Device& to = devices_.at(peer);
            if (to.tier >= 0) continue;
            to.tier = from.tier + 1;
            reached.push_back(peer);
        }
    }
    constexpr int tiers_max = 3;
    for (const auto& [name, device] : devices_) {
        if (device.tier < 0 || device.tier > tiers_max) {
            diagnostics_.error(file_, {device.line, 1}, name, "reaches no host within three tiers");
        }
        for (const auto& [interface, peer] : device.peers) {
            if (name > peer || std::abs(devices_.at(peer).tier - device.tier) == 1) continue;
            diagnostics_.error(file_, {device.line, 1}, name,
                               fmt::format("{} leads to {}, as many cables from the hosts as {} is",
                                           interface, peer, name),
                               "a network here has cables between neighbouring tiers only");
        }
    }
}

void Containerlab::find_hosts() {
    for (const auto& [name, device] : devices_) {
        if (device.host) hosts_.push_back(name);
    }
    if (hosts_.empty()) {
        return diagnostics_.error(file_, {}, "", "no node is a host: none is of kind linux");
    }
    nics_ = devices_.at(hosts_.front()).peers.size();
    for (const std::string& host : hosts_) {
        const Device& device = devices_.at(host);
        if (device.peers.size() == nics_ && nics_ == nics_said_) continue;
        diagnostics_.error(file_, {device.line, 1}, host,
                           fmt::format("cables: {}; of {} {}, and --network says {}",
                                       device.peers.size(), hosts_.front(), nics_, nics_said_),
                           "all hosts have as many NICs");
    }
    const auto leaf_of = [&](const std::string& host) {
        const Device& device = devices_.at(host);
        return device.peers.empty() ? std::string() : device.peers.begin()->second;
    };
    std::ranges::stable_sort(hosts_, {}, leaf_of);
}

std::string Containerlab::network() const {
    std::string out =
        fmt::format("# {}, imported by railyard import containerlab\n", visible(file_));
    std::map<std::pair<std::string, std::string>, int> cables;
    for (const auto& [name, device] : devices_) {
        if (device.host) continue;
        out += fmt::format("[[switch]]  # {}:{}\nname = {}\ntier = {}\n", visible(file_),
                           device.line, toml_text(name), device.tier);
        for (const auto& [interface, peer] : device.peers) {
            if (devices_.at(peer).tier > device.tier) ++cables[{name, peer}];
        }
    }
    for (const auto& [pair, count] : cables) {
        out += fmt::format("[[cable]]\nfrom = {}\nto = {}\ncount = {}\nbandwidth = \"{}\"\n",
                           toml_text(pair.first), toml_text(pair.second), count, rate_);
    }
    for (std::size_t node = 0; node < hosts_.size(); ++node) {
        const Device& host = devices_.at(hosts_[node]);
        std::size_t nic = 0;
        for (const auto& [interface, leaf] : host.peers) {
            out += fmt::format(
                "[[attach]]  # {}:{} {}\nswitch = {}\nfirst_node = {}\nlast_node = {}\nnic = {}\n",
                visible(file_), host.line, visible(interface), toml_text(leaf), node, node, nic++);
        }
    }
    return out;
}

void Containerlab::add_part() {
    const auto beside = [&](const char* ending) {
        return std::filesystem::path(path_beside(options_.output, ending)).filename().string();
    };
    part_.beside(".network", network());
    part_.beside(".nodes", fmt::format("{}\n", fmt::join(hosts_, "\n")));
    part_.note(
        "A node of kind linux is a host; a switch's tier is how many cables it is from one.");
    if (outside_ > 0)
        part_.note(fmt::format("Links that lead out of the lab, left out: {}.", outside_));
    part_.section("cluster");
    if (!options_.nodes.empty()) part_.value("node", toml_text(options_.nodes.front()), "--node");
    part_.value("nodes", fmt::format("{}", hosts_.size()),
                fmt::format("{}: hosts; which is which is in {}", file_, beside(".nodes")));
    part_.value("nics_per_node", fmt::format("{}", nics_), "cables of a host");
    part_.section("fabric.compute");
    part_.value("kind", "\"roce\"", "containerlab's switches are Ethernet's");
    part_.value("topology", "\"custom\"", "as it is cabled");
    part_.value("file", toml_text(beside(".network")), file_);
    part_.value("nic_bandwidth", toml_text(rate_), "--network");
    if (options_.nodes.empty()) part_.left_out("what the nodes are: cluster.node, or --node");
    part_.left_out(
        "speeds, which --network says of all cables; lengths, buffers, PFC and ECN, routing");
    part_.left_out("storage and management networks");
}

void Containerlab::run() {
    file_ = options_.files.front();
    if (options_.files.size() > 1) {
        return diagnostics_.error(options_.files[1], {}, "", "a second file: give one topology");
    }
    std::string text;
    for (const FileLine& line : read_lines(file_, diagnostics_)) text += line.text + "\n";
    diagnostics_.raise_if_any();
    const Document document = parse_yaml(text, file_, diagnostics_);
    diagnostics_.raise_if_any();
    if (const Value* infra = at_path(&document.root, {"infrastructure"})) {
        const Value* old = at_path(infra, {"connections"});
        return error(
            old != nullptr ? *old : *infra, "infrastructure",
            old != nullptr
                ? "InfraGraph in the superseded 'connections' syntax, which its own schema refuses"
                : "InfraGraph is not read here");
    }
    const Value* topology = at_path(&document.root, {"topology"});
    const Value* nodes = at_path(topology, {"nodes"});
    const Value* links = at_path(topology, {"links"});
    if (nodes == nullptr || links == nullptr) {
        return error(document.root, "topology",
                     "has no nodes and links: it is no topology of containerlab");
    }
    if (options_.output.empty()) {
        return diagnostics_.error(file_, {}, "",
                                  "becomes two files, a part of a scenario and its network",
                                  "give -o mine.toml: the network goes to mine.network");
    }
    read_devices(*topology, *nodes);
    read_links(*links);
    read_rate();
    diagnostics_.raise_if_any();
    find_hosts();
    find_tiers();
    diagnostics_.raise_if_any();
    add_part();
}

}  // namespace

void import_containerlab(const ImportOptions& options, ImportedPart& part,
                         Diagnostics& diagnostics) {
    Containerlab(options, part, diagnostics).run();
}

}  // namespace railyard
