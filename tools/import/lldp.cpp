// What LLDP says of neighbours, a file for each node: 'lldpcli -f json show neighbors' or '-f json0'. A file
// is named after its node (leaf1.json). Who bridges or routes is a switch.

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <set>

#include "tools/import/cabling.h"
#include "tools/import/json_tree.h"

namespace railyard {

namespace {

// One form has a thing, the other a list of one thing.
const Value* only(const Value* value) {
    if (value == nullptr || value->kind != Value::Kind::array) return value;
    return value->items.size() == 1 ? &value->items.front() : nullptr;
}

std::string plain(const Value* value) {
    const Value* found = only(value);
    if (found == nullptr) return "";
    if (found->kind == Value::Kind::table) found = at_path(found, {"value"});
    return found != nullptr ? found->text : "";
}

bool bridges(const Value* capabilities) {
    if (capabilities == nullptr) return false;
    const auto one = [](const Value& capability) {
        const std::string type = text_in(capability, "type");
        const Value* on = capability.find("enabled");
        return (type == "Bridge" || type == "Router") && on != nullptr && on->integer == 1;
    };
    if (capabilities->kind == Value::Kind::array)
        return std::ranges::any_of(capabilities->items, one);
    return one(*capabilities);
}

class Lldp : private Importer {
  public:
    using Importer::Importer;

    void run() {
        if (cabling_.lacks_output()) return;
        const SaidNics said = cabling_.read_rate("LLDP");
        diagnostics_.raise_if_any();
        rate_ = said.rate;
        // Switches are what others say they are: hosts' files come in any order.
        for (const std::string& file : options_.files) {
            file_ = file;
            read_node();
        }
        diagnostics_.raise_if_any();
        join_ends();
        diagnostics_.raise_if_any();
        cabling_.arrange(said.count);
        part_.note(
            "A switch is who bridges or routes; its tier is how many cables it is from a host.");
        if (one_sided_ > 0) {
            part_.note("Cables that only one end tells of, since the other has no file: {}.",
                       one_sided_);
        }
        cabling_.add_part("lldp", "--network");
        part_.left_out(
            "speeds, which --network says of all cables; lengths, buffers, PFC and ECN, routing");
        part_.left_out(
            "storage and management networks, unless LLDP runs on them: then take them out");
    }

  private:
    struct Neighbour {
        std::string node;
        std::string port;
        bool port_is_mac = false;
        bool is_switch = false;
    };

    void read_node() {
        const std::string node = std::filesystem::path(file_).stem().string();
        if (!own_files_.insert(node).second) {
            return error(fmt::format("a second file of {}", visible(node)),
                         "files are named after their nodes: leaf1.json");
        }
        const Document document = file_as_json(RepeatedKeys::kept);
        const Value* lldp = only(at_path(&document.root, {"lldp"}));
        const Value* interfaces = at_path(lldp, {"interface"});
        if (interfaces == nullptr) {
            return error(document.root, "lldp.interface",
                         "is not there: nothing of LLDP, or no neighbours",
                         "lldpcli -f json0 show neighbors > NODE.json");
        }
        if (!cabling_.devices.contains(node)) cabling_.devices[node] = {false, -1, file_, 1, {}};
        const std::vector<Value> one = {*interfaces};
        for (const Value& each : interfaces->kind == Value::Kind::array ? interfaces->items : one) {
            const Value* name = each.find("name");
            if (name != nullptr && name->kind == Value::Kind::string) {
                read_interface(node, name->text, each);
                continue;
            }
            for (const auto& [port, interface] : each.members)
                read_interface(node, port, interface);
        }
    }

    void read_interface(const std::string& node, const std::string& port, const Value& interface) {
        add(interface, node, port, neighbour_of(interface));
    }

    Neighbour neighbour_of(const Value& interface) {
        Neighbour out;
        const Value* chassis = only(at_path(&interface, {"chassis"}));
        const Value* named = chassis;
        if (chassis != nullptr && chassis->find("name") != nullptr) {
            out.node = plain(chassis->find("name"));
        } else if (chassis != nullptr && chassis->find("id") == nullptr &&
                   chassis->members.size() == 1) {
            out.node = chassis->members.front().key;
            named = &chassis->members.front().value;
        }
        if (named != nullptr) out.is_switch = bridges(named->find("capability"));
        const Value* id = only(at_path(only(at_path(&interface, {"port"})), {"id"}));
        if (id != nullptr) {
            out.port = plain(id);
            out.port_is_mac = text_in(*id, "type") == "mac";
        }
        return out;
    }

    void add(const Value& at, const std::string& node, const std::string& port,
             const Neighbour& neighbour) {
        if (neighbour.node.empty() || neighbour.port.empty()) {
            return error(at, port, "the neighbour has no name, or its port has none",
                         "lldpd on it, with a host name: a NIC's own agent gives addresses alone");
        }
        if (neighbour.node == node) return error(at, port, "a cable from a node to itself");
        if (!told_.emplace(std::pair(node, port), Told{neighbour, file_, at.at}).second) {
            return error(at, port, "two neighbours on one interface: a hub, or a NIC's own agent",
                         "turn off the NIC firmware's LLDP, or take its entry out");
        }
        CabledDevice& peer = cabling_.devices[neighbour.node];
        if (peer.file.empty()) peer = {false, -1, file_, at.at.line, {}};
        if (neighbour.is_switch) switches_.insert(neighbour.node);
    }

    // A cable that both ends tell of is one.
    void join_ends() {
        for (auto& [name, device] : cabling_.devices) device.host = !switches_.contains(name);
        for (const auto& [place, told] : told_) {
            const auto& [node, port] = place;
            const Neighbour& peer = told.neighbour;
            if (own_files_.contains(peer.node)) {
                const auto back = told_.find({peer.node, peer.port});
                if (back == told_.end() || back->second.neighbour.node != node) {
                    diagnostics_.error(
                        told.file, told.at, port,
                        fmt::format("leads to {} of {}, whose own file does not say so",
                                    visible(peer.port), visible(peer.node)),
                        peer.port_is_mac
                            ? "lldpcli configure lldp portidsubtype ifname, on that node"
                            : "dumps of one time");
                    continue;
                }
            } else {
                ++one_sided_;
                const bool free = cabling_.devices.at(peer.node)
                                      .ports.emplace(peer.port, CabledPort{node, rate_})
                                      .second;
                if (!free) {
                    diagnostics_.error(told.file, told.at, port,
                                       fmt::format("{} of {} has two cables", visible(peer.port),
                                                   visible(peer.node)));
                }
            }
            cabling_.devices.at(node).ports.emplace(port, CabledPort{peer.node, rate_});
        }
    }

    // What one end says of a cable.
    struct Told {
        Neighbour neighbour;
        std::string file;
        Position at;
    };
    Cabling cabling_{options_, part_, diagnostics_};
    std::string rate_;
    std::set<std::string> own_files_;  // nodes that have one
    std::set<std::string> switches_;
    std::map<std::pair<std::string, std::string>, Told> told_;  // by node and port
    std::int64_t one_sided_ = 0;
};

}  // namespace

Import import_lldp = run_importer<Lldp>;

}  // namespace railyard
