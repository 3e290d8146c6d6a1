// What ibnetdiscover prints, with the names of a --node-name-map and what iblinkinfo says of ports beside it:
// the compute network as it is cabled, and what is odd about it.

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <set>

#include "tools/import/ib_fabric.h"
#include "tools/import/importers.h"

namespace railyard {

namespace {

struct Nic {
    const IbNode* ca = nullptr;
    std::string leaf;  // a switch's id
    double gbps = 0;
};

struct Host {
    std::string name;
    std::map<int, Nic> nics;  // by rail
};

struct Cables {
    std::map<double, int> count;  // by Gbit/s
    int line = 0;
};

class Ibnetdiscover : private Importer {
  public:
    using Importer::Importer;

    void run() {
        read_files();
        diagnostics_.raise_if_any();
        if (options_.output.empty()) {
            return error("becomes two files, a part of a scenario and its network",
                         "give -o mine.toml: the network goes to mine.network");
        }
        check_ends();
        find_tiers();
        diagnostics_.raise_if_any();
        find_hosts();
        find_nodes();
        diagnostics_.raise_if_any();
        order_nodes();
        find_cables();
        say_missing();
        say_swapped();
        add_part();
    }

  private:
    void read_files() {
        std::optional<std::vector<FileLine>> scan;
        for (const std::string& file : options_.files) {
            const std::vector<FileLine> lines = read_lines(file, diagnostics_);
            if (!diagnostics_.ok()) return;
            const auto has = [&](auto test) { return std::ranges::any_of(lines, test); };
            const auto first = std::ranges::find_if(lines, [](const FileLine& line) {
                return !trimmed(line.text).empty() && !trimmed(line.text).starts_with('#');
            });
            if (has([](const FileLine& line) {
                    return line.text.find("==(") != std::string::npos;
                })) {
                read_link_info(file, lines);
            } else if (first != lines.end() && trimmed(first->text).starts_with("0x")) {
                read_names(file, lines);
            } else if (!scan) {
                file_ = file;
                scan = lines;
            } else {
                diagnostics_.error(file, {}, "",
                                   fmt::format("a second scan beside {}: give one", file_));
            }
        }
        if (!scan && diagnostics_.ok()) error("no file is what ibnetdiscover prints");
        if (!diagnostics_.ok()) return;
        fabric_ = read_ib_fabric(file_, *scan, diagnostics_);
        for (auto& [id, node] : fabric_) {
            const auto named = given_names_.find(id.substr(2));
            if (named != given_names_.end()) node.description = named->second;
        }
    }

    void read_names(const std::string& file, const std::vector<FileLine>& lines) {
        for (const FileLine& line : lines) {
            const std::string_view text = trimmed(line.text);
            if (text.empty() || text.starts_with('#')) continue;
            const std::size_t open = text.find('"');
            const std::size_t close =
                open == std::string_view::npos ? open : text.find('"', open + 1);
            if (close == std::string_view::npos) {
                diagnostics_.error(file, line.at(), "", "expected a GUID and a name in quotes");
                return;
            }
            std::string guid = lower_case(trimmed(text.substr(0, open)));
            if (guid.starts_with("0x")) guid = guid.substr(2);
            given_names_[guid] = text.substr(open + 1, close - open - 1);
        }
    }

    // Ports that are down, and links that could be faster: the only dump that says what a link should be.
    void read_link_info(const std::string& file, const std::vector<FileLine>& lines) {
        std::int64_t down = 0;
        for (const FileLine& line : lines) {
            if (line.text.find("==(") == std::string::npos) continue;
            if (line.text.find("Down/") != std::string::npos) ++down;
            if (line.text.find("Could be") == std::string::npos) continue;
            diagnostics_.warning(
                file, line.at(), "",
                fmt::format("a link that is slower than it should be: {}", trimmed(line.text)),
                "its rate is in the network; reseat or replace the cable");
        }
        if (down > 0) part_.note("{}: {} ports are down.", file, down);
    }

    // Each cable is told by both of its ends.
    void check_ends() {
        std::vector<std::string> unconfirmed;
        std::vector<std::string> unknown;
        int line = 0;
        for (const auto& [id, node] : fabric_) {
            for (const IbPort& port : node.links) {
                const auto peer = fabric_.find(port.peer);
                if (peer == fabric_.end()) {
                    unknown.push_back(fmt::format("{} (line {})", port.peer, port.line));
                    continue;
                }
                const std::vector<IbPort>& back = peer->second.links;
                if (std::ranges::any_of(back, [&port, &id = id](const IbPort& other) {
                        return other.peer == id && other.port == port.peer_port &&
                               other.peer_port == port.port;
                    })) {
                    continue;
                }
                if (line == 0) line = port.line;
                unconfirmed.push_back(fmt::format("{}[{}]->{}[{}] (line {})", id, port.port,
                                                  port.peer, port.peer_port, port.line));
            }
        }
        if (!unknown.empty()) {
            odd(0, "",
                fmt::format("{} cables lead to what has no record of its own: {}", unknown.size(),
                            some_of(unknown)),
                "is the output whole, and not filtered?");
        }
        if (!unconfirmed.empty()) {
            warning({line, 1}, "",
                    fmt::format("{} cables are told by one end only: {}", unconfirmed.size(),
                                some_of(unconfirmed)));
        }
    }

    // A leaf has hosts, a spine is next to leaves, a core switch is what is left.
    void find_tiers() {
        std::map<std::string, int> used;
        for (const auto& [id, node] : fabric_) {
            if (!node.is_switch()) continue;
            // "MF0;A09-P1-IBLEAF-04-04:MQM9701/U1"
            std::string name = node.description;
            if (name.starts_with("MF0;")) name = name.substr(4, name.find(':') - 4);
            if (name.empty() || name.find("Mellanox") != std::string::npos) name = id;
            if (++used[name] > 1) name += "-" + id.substr(2);
            names_[id] = name;
            for (const IbPort& port : node.links) {
                const auto peer = fabric_.find(port.peer);
                if (peer != fabric_.end() && !peer->second.is_switch() &&
                    !peer->second.is_aggregation()) {
                    tier_[id] = 1;
                }
            }
        }
        for (const int tier : {2, 3}) {
            for (const auto& [id, node] : fabric_) {
                if (!node.is_switch() || tier_.contains(id)) continue;
                if (std::ranges::any_of(node.links, [&](const IbPort& port) {
                        const auto below = tier_.find(port.peer);
                        return below != tier_.end() && below->second == tier - 1;
                    })) {
                    tier_[id] = tier;
                }
            }
        }
        for (const auto& [id, node] : fabric_) {
            if (!node.is_switch()) continue;
            if (!tier_.contains(id)) {
                odd(node.line, name_of(id), "a switch that reaches no host within three tiers");
                continue;
            }
            for (const IbPort& port : node.links) {
                const auto other = tier_.find(port.peer);
                if (other == tier_.end() || std::abs(other->second - tier_[id]) == 1) continue;
                error({port.line, 1}, name_of(id),
                      fmt::format("is of tier {}, and so is {} at the other end: tiers can't be "
                                  "told where switches of one join",
                                  tier_[id], name_of(port.peer)),
                      "a network here has cables between neighbouring tiers only");
                return;
            }
        }
    }

    void find_hosts() {
        std::vector<std::string> nameless;
        std::int64_t aggregation = 0;
        std::int64_t cas = 0;
        int first = 0;
        for (const auto& [id, node] : fabric_) {
            if (node.is_switch()) continue;
            ++cas;
            if (node.is_aggregation()) {
                ++aggregation;
                continue;
            }
            const IbHost host = ib_host(node.description);
            if (host.name.empty() || node.links.empty()) {
                nameless.push_back(id);
                if (first == 0 || node.line < first) first = node.line;
                continue;
            }
            Host& entry = hosts_[host.name];
            entry.name = host.name;
            if (node.links.size() > 1 && !two_ports_said_) {
                two_ports_said_ = true;
                warning({node.line, 1}, host.name,
                        "a CA with several cabled ports: its first is taken, as one NIC",
                        "NICs of two ports are two NICs here: set cluster.nics_per_node and say "
                        "where they go by hand");
            }
            const IbPort& port = node.links.front();
            const auto [nic, fresh] =
                entry.nics.emplace(host.rail, Nic{&node, port.peer, port.gbps});
            if (!fresh) {
                error({node.line, 1}, host.name,
                      fmt::format("two CAs are its mlx5_{} (HCA-{}), the other in line {}",
                                  host.rail, host.rail + 1, nic->second.ca->line),
                      "two hosts of one name? Give a file of 0xGUID \"name mlx5_N\" lines, too");
            }
        }
        part_.note("{} switches and {} CAs, {} of which are the switches' own (Aggregation Node).",
                   names_.size(), cas, aggregation);
        if (nameless.empty()) return;
        odd(first, "",
            fmt::format("{} of {} CAs have no host name: {}", nameless.size(), cas,
                        some_of(nameless)),
            "give a file of 0xGUID \"name mlx5_N\" lines, too (a --node-name-map); --skip-bad "
            "leaves them out");
    }

    // Nodes are the hosts that have a NIC on each rail that most have.
    void find_nodes() {
        std::map<std::vector<int>, int> shapes;
        for (const auto& [name, host] : hosts_) {
            std::vector<int> rails;
            for (const auto& [rail, nic] : host.nics) rails.push_back(rail);
            ++shapes[rails];
        }
        int most = 0;
        for (const auto& [rails, count] : shapes) {
            if (count > most) {
                most = count;
                rails_ = rails;
            }
        }
        std::vector<std::string> fewer;
        int first = 0;
        for (const auto& [name, host] : hosts_) {
            const bool whole = std::ranges::all_of(
                rails_, [&host = host](int rail) { return host.nics.contains(rail); });
            if (whole && host.nics.size() == rails_.size()) {
                nodes_.push_back(host);
                continue;
            }
            const int line = host.nics.begin()->second.ca->line;
            if (first == 0 || line < first) first = line;
            fewer.push_back(fmt::format("{} ({})", name, host.nics.size()));
        }
        std::vector<std::string> rails;
        for (const int rail : rails_) rails.push_back(fmt::format("mlx5_{}", rail));
        part_.note("{} hosts have {} NICs, on rails {} (HCA-n is mlx5_(n-1)).", nodes_.size(),
                   rails_.size(), fmt::join(rails, ", "));
        if (!fewer.empty()) {
            odd(first, "",
                fmt::format("{} of {} hosts have other NICs than the {} that most have: {}",
                            fewer.size(), hosts_.size(), rails_.size(), some_of(fewer)));
        }
        std::vector<std::string> lost;
        std::erase_if(nodes_, [&](const Host& host) {
            for (const auto& [rail, nic] : host.nics) {
                const auto tier = tier_.find(nic.leaf);
                if (tier != tier_.end() && tier->second == 1) continue;
                lost.push_back(host.name);
                return true;
            }
            return false;
        });
        if (!lost.empty())
            odd(0, "", fmt::format("{} hosts are on no leaf: {}", lost.size(), some_of(lost)));
        if (nodes_.empty() && diagnostics_.ok())
            error("no host is whole: there is no node to attach");
    }

    // So that those of a leaf are neighbours.
    void order_nodes() {
        std::map<double, int> rates;
        std::ranges::stable_sort(nodes_, [&](const Host& a, const Host& b) {
            const std::string left = name_of(a.nics.begin()->second.leaf);
            const std::string right = name_of(b.nics.begin()->second.leaf);
            return left != right ? left < right : a.name < b.name;
        });
        for (const Host& host : nodes_) {
            for (const auto& [rail, nic] : host.nics) ++rates[nic.gbps];
        }
        int most = 0;
        for (const auto& [gbps, count] : rates) {
            if (count >= most) {
                most = count;
                rate_ = gbps;
            }
        }
    }

    void find_cables() {
        for (const auto& [id, node] : fabric_) {
            if (!node.is_switch() || !tier_.contains(id)) continue;
            for (const IbPort& port : node.links) {
                const auto other = tier_.find(port.peer);
                if (other == tier_.end() || other->second != tier_[id] + 1) continue;
                Cables& cables = cables_[{id, port.peer}];
                ++cables.count[port.gbps];
                if (cables.line == 0) cables.line = port.line;
                if (port.gbps >= rate_ || rate_ == 0) continue;
                warning({port.line, 1}, name_of(id),
                        fmt::format("port {} to {} runs at {:.4g} Gbit/s, the NICs at {:.4g}",
                                    port.port, name_of(port.peer), port.gbps, rate_),
                        "it is in the network at its rate");
            }
        }
    }

    // Most leaves have so many cables up; those with fewer, and pairs with fewer than most, miss some.
    void say_missing() {
        std::map<std::string, int> up;
        std::map<std::string, int> down;
        std::map<int, int> of_pairs;
        for (const auto& [pair, cables] : cables_) {
            int all = 0;
            for (const auto& [gbps, count] : cables.count) all += count;
            up[pair.first] += all;
            down[pair.second] += all;
            ++of_pairs[all];
        }
        int usual = 0;
        for (const auto& [count, pairs] : of_pairs) {
            if (pairs >= of_pairs[usual]) usual = count;
        }
        int most = 0;
        std::set<std::string> spines;
        for (const auto& [id, count] : up) most = std::max(most, count);
        for (const auto& [id, tier] : tier_) {
            if (tier == 2) spines.insert(id);
        }
        std::vector<std::string> short_of;
        std::vector<std::string> pairs;
        int missing = 0;
        for (const auto& [id, tier] : tier_) {
            if (tier != 1) continue;
            if (up[id] == 0) {
                warning({fabric_.at(id).line, 1}, name_of(id), "a leaf without cables up");
            } else if (up[id] < most) {
                short_of.push_back(fmt::format("{} ({})", name_of(id), up[id]));
            }
            for (const std::string& spine : spines) {
                const auto found = cables_.find({id, spine});
                int have = 0;
                if (found != cables_.end()) {
                    for (const auto& [gbps, count] : found->second.count) have += count;
                }
                if (up[id] == 0 || have >= usual) continue;
                missing += usual - have;
                pairs.push_back(
                    fmt::format("{} to {} ({} of {})", name_of(id), name_of(spine), have, usual));
            }
        }
        std::vector<std::string> spine_ports;
        for (const std::string& spine : spines) {
            spine_ports.push_back(fmt::format("{} {}", name_of(spine), down[spine]));
        }
        part_.note("{} leaves and {} spines; cables of each spine: {}.",
                   std::ranges::count_if(tier_, [](const auto& t) { return t.second == 1; }),
                   spines.size(), fmt::join(spine_ports, ", "));
        if (missing == 0) return;
        warning(
            fmt::format("{} cables are missing, were each leaf joined to each spine by {} as most "
                        "are: {}. {} leaves have fewer than {} up: {}",
                        missing, usual, some_of(pairs), short_of.size(), most, some_of(short_of)),
            "the network has what is there");
    }

    // A leaf that serves one rail has somebody of another.
    void say_swapped() {
        std::map<std::string, std::map<int, int>> served;
        for (const auto& [name, host] : hosts_) {
            for (const auto& [rail, nic] : host.nics) ++served[nic.leaf][rail];
        }
        const auto rail_of = [&](const std::string& leaf) {
            int all = 0;
            int best = -1;
            for (const auto& [rail, count] : served[leaf]) {
                all += count;
                if (best < 0 || count > served[leaf][best]) best = rail;
            }
            constexpr double clear = 0.8;
            return best >= 0 && served[leaf][best] >= clear * all && all >= 4 ? best : -1;
        };
        for (const auto& [name, host] : hosts_) {
            for (const auto& [rail, nic] : host.nics) {
                const int expected = rail_of(nic.leaf);
                if (expected < 0 || expected == rail) continue;
                const auto other = host.nics.find(expected);
                const bool swapped =
                    other != host.nics.end() && rail_of(other->second.leaf) == rail;
                if (swapped && expected < rail) continue;  // said of the other
                warning({nic.ca->line, 1}, name,
                        swapped
                            ? fmt::format("mlx5_{} and mlx5_{} are swapped: they are on {} and {}",
                                          rail, expected, name_of(nic.leaf),
                                          name_of(other->second.leaf))
                            : fmt::format("mlx5_{} is on {}, whose others are mlx5_{}", rail,
                                          name_of(nic.leaf), expected),
                        "the network has it as it is cabled");
            }
        }
    }

    std::string name_of(const std::string& id) const {
        const auto named = names_.find(id);
        return named != names_.end() ? named->second : id;
    }

    std::string model_of(const IbNode& node) const {
        if (node.device == "0xd2f2") return "qm9700_ndr";
        if (node.device == "0xd2f0") return "qm8700_hdr";
        if (node.device == "0xcb20" || node.device == "0xcf08") return "sb7890_edr36";
        double fastest = 0;
        for (const IbPort& port : node.links) fastest = std::max(fastest, port.gbps);
        return fastest > 400   ? "q3400_xdr"
               : fastest > 200 ? "qm9700_ndr"
               : fastest > 100 ? "qm8700_hdr"
                               : "sb7890_edr36";
    }

    std::string network() const {
        std::string out =
            fmt::format("# {}, imported by railyard import ibnetdiscover\n", comment_text(file_));
        for (const auto& [id, tier] : tier_) {
            const IbNode& node = fabric_.at(id);
            out +=
                fmt::format("[[switch]]  # {}:{}\nname = {}\ntier = {}\nmodel = {}  # devid {}\n",
                            comment_text(file_), node.line, toml_text(name_of(id)), tier,
                            toml_text(model_of(node)), visible(node.device));
        }
        for (const auto& [pair, cables] : cables_) {
            for (const auto& [gbps, count] : cables.count) {
                out += fmt::format(
                    "[[cable]]  # {}:{}\nfrom = {}\nto = {}\ncount = {}\nbandwidth = \"{} "
                    "Gbit/s\"\n",
                    comment_text(file_), cables.line, toml_text(name_of(pair.first)),
                    toml_text(name_of(pair.second)), count, gbps);
            }
        }
        for (std::size_t i = 0; i < rails_.size(); ++i) {
            for (std::size_t first = 0; first < nodes_.size();) {
                const Nic& nic = nodes_[first].nics.at(rails_[i]);
                std::size_t last = first;
                const auto alike = [&](const Nic& other) {
                    return other.leaf == nic.leaf && other.gbps == nic.gbps;
                };
                while (last + 1 < nodes_.size() && alike(nodes_[last + 1].nics.at(rails_[i])))
                    ++last;
                out += fmt::format(
                    "[[attach]]  # {}:{}\nswitch = {}\nfirst_node = {}\nlast_node = {}\nnic = {}\n",
                    comment_text(file_), nic.ca->line, toml_text(name_of(nic.leaf)), first, last,
                    i);
                if (nic.gbps != rate_) out += fmt::format("bandwidth = \"{} Gbit/s\"\n", nic.gbps);
                first = last + 1;
            }
        }
        return out;
    }

    void add_part() {
        const std::string path = path_beside(options_.output, ".network");
        std::vector<std::string> names;
        for (std::size_t i = 0; i < nodes_.size(); ++i) names.push_back(nodes_[i].name);
        part_.beside(".network", network());
        part_.beside(".nodes", fmt::format("{}\n", fmt::join(names, "\n")));
        part_.section("cluster");
        if (!options_.nodes.empty()) part_.quoted("node", options_.nodes.front(), "--node");
        part_.whole(
            "nodes", nodes_.size(),
            fmt::format(
                "{}: hosts; which is which is in {}", file_,
                std::filesystem::path(path_beside(options_.output, ".nodes")).filename().string()));
        part_.whole("nics_per_node", rails_.size(), "rails that most hosts have");
        part_.section("fabric.compute");
        const IbNode& leaf = fabric_.at(nodes_.front().nics.begin()->second.leaf);
        const std::string place = fmt::format("{}:{}", file_, leaf.line);
        part_.quoted("kind", "infiniband", "it is ibnetdiscover's");
        part_.quoted("topology", "custom", "as it is cabled");
        part_.quoted("file", std::filesystem::path(path).filename().string(), place);
        part_.quoted("leaf", model_of(leaf), fmt::format("{}: devid {}", place, leaf.device));
        part_.value("nic_bandwidth", fmt::format("\"{} Gbit/s\"", rate_),
                    "what most CAs' ports run at");
        if (options_.nodes.empty()) part_.left_out("what the nodes are: cluster.node, or --node");
        part_.left_out("cables' lengths, buffers, routing, service levels");
        part_.left_out("storage and management networks");
    }

    // What keeps a node out: an error, or with --skip-bad a warning.
    void odd(int line, const std::string& what, std::string message, std::string help = {}) {
        if (options_.skip_bad) {
            warning({line, 1}, what, std::move(message), "left out");
        } else {
            error({line, 1}, what, std::move(message),
                  help.empty() ? "--skip-bad leaves them out" : std::move(help));
        }
    }

    IbFabric fabric_;
    std::map<std::string, std::string> given_names_;  // by GUID
    std::map<std::string, int> tier_;
    std::map<std::string, Host> hosts_;
    std::vector<int> rails_;
    std::vector<Host> nodes_;
    std::map<std::pair<std::string, std::string>, Cables> cables_;  // lower tier first
    bool two_ports_said_ = false;
    std::map<std::string, std::string> names_;  // of switches
    double rate_ = 0;
};

}  // namespace

Import import_ibnetdiscover = run_importer<Ibnetdiscover>;

}  // namespace railyard
