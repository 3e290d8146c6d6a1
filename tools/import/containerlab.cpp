// A network as containerlab has it (*.clab.yml): who is cabled to whom, and nothing of speeds.

#include <fmt/format.h>

#include <set>

#include "tools/import/cabling.h"
#include "tools/import/json_tree.h"

namespace railyard {

namespace {

class Containerlab : private Importer {
  public:
    using Importer::Importer;
    void run() {
        const Document document = cabling_.topology();
        if (const Value* infra = at_path(&document.root, {"infrastructure"})) {
            const Value* old = at_path(infra, {"connections"});
            return error(old != nullptr ? *old : *infra, "infrastructure",
                         old != nullptr ? "InfraGraph in the superseded 'connections' syntax, "
                                          "which its own schema refuses"
                                        : "InfraGraph, which 'railyard import infragraph' reads");
        }
        const Value* topology = at_path(&document.root, {"topology"});
        const Value* nodes = at_path(topology, {"nodes"});
        const Value* links = at_path(topology, {"links"});
        if (nodes == nullptr || links == nullptr) {
            return error(document.root, "topology",
                         "has no nodes and links: it is no topology of containerlab");
        }
        if (cabling_.lacks_output()) return;
        const SaidNics said = cabling_.read_rate("containerlab");
        read_devices(*topology, *nodes);
        read_links(*links, said.rate);
        diagnostics_.raise_if_any();
        cabling_.arrange(said.count);
        part_.note(
            "A node of kind linux is a host; a switch's tier is how many cables it is from one.");
        if (outside_ > 0) part_.note("Links that lead out of the lab, left out: {}.", outside_);
        cabling_.add_part("containerlab", "--network");
        part_.left_out(
            "speeds, which --network says of all cables; lengths, buffers, PFC and ECN, routing");
        part_.left_out("storage and management networks");
    }

  private:
    // What runs plain Linux is a host. A kind may stand with the node, with its group, or be everybody's.
    void read_devices(const Value& topology, const Value& nodes) {
        for (const auto& [name, node] : nodes.members) {
            const Value* group = at_path(&node, {"group"});
            const Value* groups = at_path(&topology, {"groups"});
            const Value* kind = at_path(&node, {"kind"});
            if (kind == nullptr && group != nullptr) {
                kind = at_path(groups, {group->text.c_str(), "kind"});
            }
            if (kind == nullptr) kind = at_path(&topology, {"defaults", "kind"});
            if (kind == nullptr) error(node, name, "has no kind: host or switch?");
            cabling_.devices[name] = {
                kind != nullptr && kind->text == "linux", -1, file_, node.at.line, {}};
        }
    }

    void read_links(const Value& links, const std::string& rate) {
        static const std::set<std::string> beyond = {"host", "mgmt-net", "macvlan", "dummy",
                                                     "vxlan"};
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
                return beyond.contains(end.first) && !cabling_.devices.contains(end.first);
            };
            if (leads_out(a) || leads_out(b)) {
                ++outside_;
                continue;
            }
            if (a.first == b.first) error(link, a.first, "a cable from a node to itself");
            for (const auto& [own, other] : {std::pair(a, b), std::pair(b, a)}) {
                const auto device = cabling_.devices.find(own.first);
                if (device == cabling_.devices.end() || own.second.empty()) {
                    error(link, own.first,
                          own.second.empty() ? "expected NODE:INTERFACE"
                                             : "no node of this topology has this name");
                } else if (!device->second.ports.emplace(own.second, CabledPort{other.first, rate})
                                .second) {
                    error(link, own.first, fmt::format("{} has two cables", own.second));
                }
            }
        }
    }

    std::pair<std::string, std::string> end_of(const Value& end) {
        const Value* node = at_path(&end, {"node"});
        const Value* interface = at_path(&end, {"interface"});
        if (node != nullptr && interface != nullptr) return {node->text, interface->text};
        const std::size_t colon = end.text.find(':');
        if (colon == std::string::npos) return {end.text, ""};
        return {end.text.substr(0, colon), end.text.substr(colon + 1)};
    }

    Cabling cabling_{options_, part_, diagnostics_};
    std::int64_t outside_ = 0;
};

}  // namespace

Import import_containerlab = run_importer<Containerlab>;

}  // namespace railyard
