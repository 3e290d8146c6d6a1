#include "tools/verify/nccl.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <initializer_list>

#include "sim/text.h"
#include "tools/language/names.h"
#include "tools/program/csv_table.h"
#include "tools/program/lists.h"
#include "tools/program/pattern.h"
#include "tools/verify/collective_error.h"

namespace railyard {

namespace {

// Which card a text names beside its GPU, "H100 PCIe" or "H100 NVL"; not a rack, "NVL72".
std::string card_of(const std::string& text) {
    const Found found = find_pattern(text, R"((?:^|[^a-z0-9])(pcie|nvl)(?![a-z0-9]))");
    return found.empty() ? "" : "_" + found[1];
}

// The kind of node in the catalogue whose GPU a text names; of GPUs that are in each other's names
// (B200, GB200) the longest, of nodes with the same the first. A card is not taken for the module of the same
// name. Throws RowError when it names two.
std::string node_named(const char* column, const std::string& text) {
    std::string best;
    std::string of;
    const std::string card = card_of(text);
    for (const std::string& node : Catalogue::names("node")) {
        const std::string gpu = Catalogue::entry("node", node)->find("gpu")->text;
        const std::string family = gpu.substr(0, gpu.find('_'));
        if (mentions(gpu, "_") && !mentions(gpu, card)) continue;
        if (!mentions(text, family) || mentions(of, family)) continue;
        if (!mentions(family, of)) {
            throw RowError{column, fmt::format("names two GPUs, {} and {}", of, family)};
        }
        best = node;
        of = family;
    }
    return best;
}

// The name of a system in the network's column ("DGX H100 8x400G") comes before a list of devices.
std::string node_of(const std::string& device, const std::string& network) {
    const std::string node = node_named("network", lower_case(network));
    return node.empty() ? node_named("device", lower_case(device)) : node;
}

bool mentions_any(const std::string& text, std::initializer_list<const char*> words) {
    return std::ranges::any_of(words, [&](const char* word) { return mentions(text, word); });
}

// The NIC that stands for a transport; the rate decides between generations of one.
const char* nic_of(const std::string& network, double gbit, const Node& node) {
    if (mentions(network, "tcpxo")) return "gcp_tcpxo_200";
    if (mentions(network, "tcpx")) return "gcp_tcpx_200";
    if (mentions(network, "efa")) {
        // AWS p4 nodes, all that it has with A100, have the first version, whether or not that is said.
        const bool p4 = node.gpu.id.starts_with("a100");
        if (p4 || mentions_any(network, {"efa v1", "efav1", "p4d"})) return "efa_v1_100";
        return gbit < 200 ? "efa_v2_100" : gbit < 400 ? "efa_v3_200" : "efa_v4_400";
    }
    if (mentions_any(network, {"pollara", "ainic"})) return "pollara_400";
    if (mentions_any(network, {"roce", "spectrum", "thor"})) return "generic_400g_roce";
    if (mentions(network, "tcp")) return "eth100_tcp";
    // Ethernet of 200 Gbit/s and more is not left to sockets.
    if (mentions(network, "gbe")) return gbit < 200 ? "eth100_tcp" : "generic_400g_roce";
    return gbit < 400 ? "cx6_hdr200" : gbit < 800 ? "cx7_ndr400" : "cx8_xdr800";
}

// So many NICs of so many Gbit/s each, of the transport that the text names.
void set_nics(Catalogue& catalogue, const std::string& network, std::int64_t count, double gbit,
              Node& node) {
    node.nics = count;
    set_nic(catalogue, node, nic_of(network, gbit, node));
    const Bandwidth printed = Bandwidth::bits_per_second(std::llround(gbit * 1e9));
    node.nic_bandwidth =
        printed * (node.nic_bandwidth.bytes_per_second() / node.nic_line_rate.bytes_per_second());
    node.nic_line_rate = printed;
}

// What a generation of InfiniBand carries, or of its ConnectX.
double generation_gbit(const std::string& name) {
    static const std::map<std::string, double> rates = {
        {"edr", 100}, {"hdr", 200}, {"ndr", 400}, {"xdr", 800}, {"6", 200}, {"7", 400}, {"8", 800}};
    return rates.at(name);
}

struct CountedNics {
    std::int64_t count = 0;
    double gbit = 0;   // of each
    std::string unit;  // as printed, if it is
};

// A product's number is no rate: "ConnectX-7".
std::string without_products(const std::string& network) {
    return without_pattern(network, R"((?:connectx|cx|mlx|bluefield|bf|thor)[ -]?\d+)");
}

// "3.2 Tbps", "3200 Gb/s", "400G".
std::vector<double> rates_gbit(const std::string& text) {
    return mapped(
        find_all(text, R"((\d{1,4}(?:\.\d+)?)\s*([gt])(?:b\w*)?(?:/s)?\b)"),
        [](const Found& rate) { return std::stod(rate[1]) * (rate[2] == "t" ? 1000 : 1); });
}

// NICs as a text counts them: "8x NDR400 IB", "4x100G". A generation of InfiniBand says the rate by itself
// ("8x NDR"); the number in a product's name ("8x CX8 800G", "8x ConnectX-7 400G") is no rate.
std::vector<CountedNics> counted_nics(const std::string& network) {
    std::string text = without_products(network);
    std::vector<CountedNics> out;
    // NICs of several ports, "8x 2x200G"; what a GPU has ("2x200G per GPU") counts nothing.
    const char* ports =
        R"((\d{1,4})\s*(?:x|×)\s*[a-z]*\s*\(?(\d{1,2})\s*(?:x|×)\s*(\d{2,4})\s*(g\w*(?:/s)?)?)";
    for (const Found& nics : find_all(text, ports)) {
        constexpr double ports_max = 4;
        constexpr double gbit_max = 800;
        const double gbit = std::stod(nics[2]) * std::stod(nics[3]);
        if (std::stod(nics[2]) > ports_max || gbit > gbit_max) return {};
        out.push_back({std::stoll(nics[1]), gbit, nics[4]});
    }
    // The rest is counted, too: who asks refuses more than one kind.
    if (!out.empty()) text = without_pattern(text, ports);
    text = without_pattern(text, R"(\([^()]*per gpu\))");
    for (
        const Found& nics : find_all(
            text,
            R"((\d{1,4})\s*(?:x|×)\s*(?:(?:ib|infiniband) )?[a-z]*\s*\(?(\d{1,4}(?:\.\d+)?)\s*(g\w*(?:/s)?)?)")) {
        constexpr double least = 10;  // below it is no NIC's rate, but a number of something else
        const double gbit = std::stod(nics[2]);
        if (gbit >= least) out.push_back({std::stoll(nics[1]), gbit, nics[3]});
    }
    if (!out.empty()) return out;
    for (const Found& nics :
         find_all(text, R"((\d{1,4})\s*(?:x|×)\s*(?:(?:ib|infiniband) )?(edr|hdr|ndr|xdr)\b)")) {
        out.push_back({std::stoll(nics[1]), generation_gbit(nics[2]), ""});
    }
    if (!out.empty()) return out;
    for (const Found& nics :
         find_all(network, R"((\d{1,4})\s*(?:x|×)\s*(?:connectx|cx)[ -]?([678])\b)")) {
        out.push_back({std::stoll(nics[1]), generation_gbit(nics[2]), ""});
    }
    return out;
}

// What the nodes have that a cloud rents out by such a name.
std::string with_clouds_nics(std::string network) {
    static const std::vector<std::pair<const char*, const char*>> clouds = {
        {"p4d", "4x100G EFA v1"},         {"p5en", "16x200G EFA"},
        {"p5e", "32x100G EFA"},           {"p5.", "32x100G EFA"},
        {"a3-ultra", "8x400G RoCE"},      {"a3 ultra", "8x400G RoCE"},
        {"a3-mega", "8x200G TCPXO"},      {"a3 mega", "8x200G TCPXO"},
        {"a3-high", "4x200G TCPX"},       {"a3 high", "4x200G TCPX"},
        {"nd h100 v5", "8x400G IB"},      {"nd h200 v5", "8x400G IB"},
        {"nd a100 v4", "8x200G IB"},      {"ndm a100 v4", "8x200G IB"},
        {"nd96isr_h100_v5", "8x400G IB"}, {"nd96amsr_a100_v4", "8x200G IB"}};
    for (const auto& [name, nics] : clouds) {
        if (mentions(network, name) && rates_gbit(without_products(network)).empty())
            return lower_case(nics);
    }
    return network;
}

// Where no NICs are counted: as many as the node has. The text says what all have together ("3.2 Tbps") or
// what each has ("IB NDR", "400G per GPU"); if it says nothing they are the node's own. Nothing for another
// text.
std::vector<CountedNics> uncounted_nics(const std::string& network, const Node& node) {
    if (!match_pattern(network, R"(|-|not (said|stated)|unspecified|unknown)").empty()) {
        return {{node.nics, 0, ""}};
    }
    const std::string text = without_products(network);
    const std::vector<Found> names = find_all(text, R"(\b(edr|hdr|ndr|xdr) ?(?:\d{3})?\b)");
    const std::vector<double> rates = rates_gbit(text);
    if (names.size() + rates.size() == 0 &&
        !find_pattern(text, R"(\b(?:ib|infiniband|roce\w*|spectrum\S*|tcpx\w*|nvls|sharp)\b)")
             .empty()) {
        return {{node.nics, 0, ""}};
    }
    if (names.size() > 1 || rates.size() > 1 || names.size() + rates.size() == 0) return {};
    const double of_name = names.empty() ? 0 : generation_gbit(names[0][1]);
    const double gbit = rates.empty() ? of_name : rates[0];
    const bool of_each = !find_pattern(text, R"(per (?:gpu|nic)\b)").empty();
    if (of_each || gbit == of_name) return {{node.nics, gbit, ""}};
    constexpr double of_one_max = 800;
    if (gbit <= of_one_max) return {};
    const std::int64_t count = of_name > 0 ? std::llround(gbit / of_name) : node.nics;
    const double each = gbit / static_cast<double>(count);
    if (of_name > 0 && each != of_name) return {};
    return {{count, each, ""}};
}

// The NICs of a cloud whose nodes the catalogue has with this GPU: "AWS EFA" counts them for whoever knows.
// Not if the text says another rate of all.
bool set_cloud_nics(Catalogue& catalogue, const std::string& network, Node& node) {
    if (!mentions(network, "efa")) return false;
    const std::vector<double> rates = rates_gbit(without_products(network));
    for (const std::string& name : Catalogue::names("node")) {
        const Value& entry = *Catalogue::entry("node", name);
        const Value* nic = entry.find("compute_nic");
        if (entry.find("gpu")->text != node.gpu.id || nic == nullptr) continue;
        if (!nic->text.starts_with("efa")) continue;
        const Node cloud = read_node(catalogue, name);
        const Bandwidth each = cloud.nic_line_rate;
        const double all = 1e-9 * static_cast<double>(cloud.nics * each.bits_per_second());
        if (!rates.empty() && std::abs(rates[0] / all - 1) > 0.01) return false;
        node.nics = cloud.nics;
        set_nic(catalogue, node, nic->text);
        return true;
    }
    return false;
}

// NICs that a text counts are those of a node with as many GPUs as the run has on each, perhaps fewer than the
// catalogue's node has. More NICs than that are of a larger node, of which the run has a part; how many GPUs a
// cloud's node has, or a system that is named, is known.
void take_counted_node(std::int64_t nics, std::int64_t ranks, Node& node) {
    if (nics > ranks || ranks >= node.gpus) return;
    node.gpus = ranks;
    node.nvlink_domain = std::min(node.nvlink_domain, ranks);
}

// Sets the NICs that the network's column counts, "8x NDR400 IB" or "4x100G": so many Gbit/s each.
// `ranks`: of a node.
void read_network(Catalogue& catalogue, const std::string& column, std::int64_t ranks, Node& node) {
    const std::string network = with_clouds_nics(lower_case(column));
    std::vector<CountedNics> nics = counted_nics(network);
    const bool known = network != lower_case(column) || mentions(network, "efa") ||
                       !node_named("network", network).empty();
    if (nics.size() == 1 && !known) take_counted_node(nics[0].count, ranks, node);
    const std::vector<double> rates = rates_gbit(without_products(network));
    const bool as_p4d = rates.empty() || rates == std::vector<double>{400};
    if (nics.empty() && as_p4d && mentions(network, "efa") && node.gpu.id.starts_with("a100")) {
        nics = {{4, 100, ""}};  // all that it rents out with A100
    }
    if (nics.empty() && set_cloud_nics(catalogue, network, node)) return;
    if (nics.empty()) nics = uncounted_nics(network, node);
    if (nics.size() != 1) {
        throw RowError{"network",
                       fmt::format("expected one kind of NIC, as in '8x400G', found '{}'", column)};
    }
    if (nics[0].gbit == 0 && mentions_any(network, {"roce", "spectrum", "tcpx"})) {
        nics[0].gbit = 1e-9 * static_cast<double>(node.nic_line_rate.bits_per_second());
    }
    if (nics[0].gbit == 0) return;
    if (nics[0].unit.starts_with("gb/") && mentions(column, "GB/s")) {
        throw RowError{"network", fmt::format("expected NICs in Gbit/s, found '{}'", column)};
    }
    set_nics(catalogue, network, nics[0].count, nics[0].gbit, node);
}

// Racks that are one NVLink domain each say "4x400G" of a tray, "1x400G" or "NDR400" of a GPU; what isn't
// said is the catalogue's.
void read_rack_network(Catalogue& catalogue, const std::string& column, std::int64_t, Node& node) {
    const std::string network = lower_case(column);
    const std::vector<CountedNics> counted = counted_nics(network);
    const std::vector<Found> rate =
        find_all(network, R"((?:hdr|ndr|xdr) ?(\d{3})\b|\b(\d{3}) ?g(?:b\w*)?(?:/s)?\b)");
    const auto trays = node.gpus / catalogue.integer("node", node.name, "gpus_per_tray");
    if (counted.size() == 1) {
        const std::int64_t count = counted[0].count;
        const std::int64_t parts = count == 1 ? node.gpus : count == node.gpus ? 1 : trays;
        set_nics(catalogue, network, count * parts, counted[0].gbit, node);
    } else if (rate.size() == 1) {
        const std::string& gbit = rate[0][1].empty() ? rate[0][2] : rate[0][1];
        set_nics(catalogue, network, node.gpus, std::stod(gbit), node);
    }
}

// Over how many racks a run goes, as its text counts them; else the fewest that hold its GPUs.
std::int64_t racks_of(const std::string& words, std::int64_t gpus, const Node& node) {
    static const std::vector<std::pair<std::string, std::int64_t>> numbers = {
        {"one", 1},   {"two", 2},   {"three", 3}, {"four", 4}, {"five", 5},    {"six", 6},
        {"seven", 7}, {"eight", 8}, {"nine", 9},  {"ten", 10}, {"twelve", 12}, {"twenty", 20}};
    const std::int64_t least = (gpus + node.gpus - 1) / node.gpus;
    const std::string text = lower_case(words);
    for (const Found& found :
         find_all(text, R"((\w+?)x?[ _-]*(?:(?:full )?nvl\d+[ _-]*)?racks?\b)")) {
        if (!find_pattern(found[1], R"(^\d{1,6}$)").empty()) {
            return std::max<std::int64_t>(least, std::stoll(found[1]));
        }
        for (const auto& [word, count] : numbers) {
            if (found[1] == word) return std::max(least, count);
        }
    }
    const bool apart =
        !find_pattern(text, R"((?:across|between|inter|cross|different)[ _-]*racks?\b)").empty();
    return std::max<std::int64_t>(least, apart ? 2 : 1);
}

template <class Word>
Word named(const std::string& word, const std::vector<std::string>& words) {
    return static_cast<Word>(std::ranges::find(words, word) - words.begin());
}

// An algorithm's name, with or without a protocol, says that it was forced, unless it explains a
// default; the library's own name asks for nothing. A column that says more, such as one algorithm up to
// a size and another above, is not expressed.
Wish wish_of(const std::string& column) {
    const std::string text = lower_case(column);
    const char* nothing = R"(|-|[nr]ccl|sharp|default\s*(\([^()]*\))?|\w+\s*\(default\))";
    if (!match_pattern(text, nothing).empty()) return {};
    const char* forced = R"((?:nccl_algo=)?(ring|tree|nvls[_ ]?tree|nvls|pat|collnet))"
                         R"((?:(?: |/|, ?)(ll128|ll|simple))?)"
                         R"((?: \(nvls off\)|(?: ?\+ ?| \(?)(?:ib )?sharp\)?)?)";
    const Found found = match_pattern(text, forced);
    if (found.empty()) {
        throw RowError{"algo", fmt::format("expected an algorithm of all sizes and its protocol, "
                                           "as in 'Ring LL', or 'default', found '{}'",
                                           column)};
    }
    const bool nvls_tree = found[1].starts_with("nvls") && found[1].ends_with("tree");
    const std::string algorithm = nvls_tree               ? "nvls_tree"
                                  : found[1] == "collnet" ? "collnet_direct"
                                                          : found[1];
    Wish wish;
    wish.algorithm = named<Algorithm>(algorithm, algorithm_names);
    if (!found[2].empty()) wish.protocol = named<Protocol>(found[2], protocol_names);
    return wish;
}

// By the library's name, or as people write it or call the program: "all-reduce", "all_reduce_perf".
std::optional<Collective> collective_of(const std::string& text) {
    std::string name = text;
    std::ranges::replace(name, '-', '_');
    if (name.ends_with("_perf")) name.resize(name.size() - std::string_view("_perf").size());
    return parse_collective(name);
}

// A number as nccl-tests prints it.
double number_of(const char* what, const std::string& text) {
    const CsvRow row = {{what, text}};
    return Fields(row).figure(what);
}

}  // namespace

// A run of nccl-tests, in the words of its table.
struct NcclTests::Run {
    std::string device, network, racks, collective, algorithm;
    std::int64_t nodes = 1;
    std::int64_t gpus = 1;
    double bytes = 0;
};

const Communicator& NcclTests::communicator(const Run& run, const Texts& column) {
    const std::string key = fmt::format("{}\n{}\n{}\n{}\n{}\n{}", run.device, run.network,
                                        run.racks, run.algorithm, run.nodes, run.gpus);
    const auto known = communicators_.find(key);
    if (known != communicators_.end()) return known->second;
    const std::string kind = node_of(run.device, run.network);
    if (kind.empty()) {
        throw RowError{column("device"),
                       fmt::format("no node of the catalogue has a GPU '{}'", run.device)};
    }
    Node node = read_node(own_.catalogue, kind);
    // A rack that is one NVLink domain is one node here, whatever the number of its trays.
    const bool rack = node.nvlink_domain > 8;
    const std::int64_t domains = rack ? racks_of(run.racks, run.gpus, node) : run.nodes;
    const std::int64_t ranks = (run.gpus + domains - 1) / domains;
    if (ranks > node.gpus) {
        throw RowError{column("gpus"),
                       fmt::format("{} GPUs on {} node{}: {} of the catalogue has {}", run.gpus,
                                   domains, domains == 1 ? "" : "s", node.name, node.gpus)};
    }
    if ((run.gpus + ranks - 1) / ranks != domains) {
        throw RowError{column("gpus"),
                       fmt::format("{} GPUs don't spread over {} nodes", run.gpus, domains)};
    }
    if (domains > 1) {
        (rack ? read_rack_network : read_network)(own_.catalogue, run.network, ranks, node);
    }
    const std::string words = lower_case(run.network + " " + run.algorithm);
    const bool sharp =
        mentions(words, "sharp") && find_pattern(words, "(no|without) sharp|sharp off").empty();
    const CommunicatorShape shape{run.gpus, ranks, sharp};
    return communicators_.emplace(key, read_communicator(own_.catalogue, node, shape))
        .first->second;
}

std::map<std::string, double> NcclTests::figures(const Texts& text, const Texts& column) {
    // A field's error is its column's.
    const auto number = [&](const char* name) {
        try {
            return number_of(name, text(name));
        } catch (const RowError& error) {
            throw RowError{column(name), error.message};
        }
    };
    const Run run{text("device"),
                  text("network"),
                  text("racks"),
                  text("collective"),
                  text("algorithm"),
                  std::llround(number("nodes")),
                  std::llround(number("gpus")),
                  number("bytes")};
    const std::optional<Collective> collective = collective_of(run.collective);
    if (!collective) {
        throw RowError{column("collective"),
                       fmt::format("no collective is called '{}'", run.collective)};
    }
    if (run.gpus < 2 || run.nodes < 1 || run.bytes <= 0) {
        throw RowError{column("gpus"), "expected two GPUs or more, nodes and bytes"};
    }
    const Communicator& c = communicator(run, column);
    const auto choice = choose(c, *collective, run.bytes, wish_of(run.algorithm));
    if (!choice) {
        throw RowError{column("algorithm"),
                       fmt::format("'{}' can't run {} here", run.algorithm, run.collective)};
    }
    const double time = collective_cost(c, *collective, run.bytes, *choice)->seconds;
    const ModelError error = read_collective_error(own_.catalogue, c, run.bytes);
    own_.diagnostics.raise_if_any();
    return {{"time", time},
            {"busbw", run.bytes * bus_factor(*collective, run.gpus) / time},
            {"framework_launch", read_framework_launch(own_.catalogue)},
            {"model_error_half", error.half},
            {"model_error", error.nine_tenths}};
}

}  // namespace railyard
