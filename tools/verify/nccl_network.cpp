#include "tools/verify/nccl_network.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <optional>

#include "sim/text.h"
#include "tools/program/csv_table.h"
#include "tools/program/lists.h"
#include "tools/program/pattern.h"

namespace railyard {

const CloudInstance* cloud_instance(const std::string& text) {
    static const std::vector<CloudInstance> instances = {
        {R"(\bp4de?(?:\.\w+)?\b)", "a100", "4x100g efa v1"},
        {R"(\bp5(?:\.\w+)?\b)", "h100", "32x100g efa v2"},
        {R"(\bp5e(?:\.\w+)?\b)", "h200", "32x100g efa v2"},
        {R"(\bp5en(?:\.\w+)?\b)", "h200", "16x200g efa v3"},
        {R"(\bp6-b200(?:\.\w+)?\b)", "b200", "8x400g efa v4"},
        {R"(\ba3[- ]high(?:gpu)?(?:-8g)?\b)", "h100", "4x200g tcpx"},
        {R"(\ba3[- ]mega(?:gpu)?(?:-8g)?\b)", "h100", "8x200g tcpxo"},
        {R"(\ba3[- ]ultra(?:gpu)?(?:-8g)?\b)", "h200", "8x400g roce"},
        {R"(\bndm?(?:96\w*)?[ _-]?a100[ _-]v4\b)", "a100", "8x200g ib"},
        {R"(\bnd(?:96\w*)?[ _-]?h100[ _-]v5\b)", "h100", "8x400g ib"},
        {R"(\bnd(?:96\w*)?[ _-]?h200[ _-]v5\b)", "h200", "8x400g ib"},
        {R"(\bnd(?:96\w*)?[ _-]?mi300x[ _-]v5\b)", "mi300x", "8x400g ib"},
        // Only these nodes have such NICs.
        {R"(tcpxo)", "h100", "8x200g tcpxo"},
        {R"(tcpx)", "h100", "4x200g tcpx"}};
    const auto named = std::ranges::find_if(instances, [&](const CloudInstance& each) {
        return !find_pattern(text, each.name).empty();
    });
    return named == instances.end() ? nullptr : &*named;
}

namespace {

bool says(const std::string& text, const char* pattern) {
    return !find_pattern(text, pattern).empty();
}

// What a generation of InfiniBand carries.
double generation_gbit(const std::string& name) {
    static const std::map<std::string, double> rates = {
        {"edr", 100}, {"hdr", 200}, {"ndr", 400}, {"xdr", 800}};
    return rates.at(name);
}

// What the products carry whose names say no rate; 0: another product.
double product_gbit(const std::string& product, const std::string& number) {
    static const std::map<std::string, double> rates = {
        {"cx6", 200}, {"cx7", 400},   {"cx8", 800},         {"bf2", 200},
        {"bf3", 400}, {"thor2", 400}, {"slingshot10", 100}, {"slingshot11", 200}};
    const std::string name = product == "connectx" ? "cx" : product == "bluefield" ? "bf" : product;
    const auto found = rates.find(name + number);
    return found == rates.end() ? 0 : found->second;
}

struct CountedNics {
    std::int64_t count = 0;
    double gbit = 0;   // of each
    std::string unit;  // as printed, if it is
};

// A product's number is no rate: "ConnectX-7", "Slingshot 11".
std::string without_products(const std::string& network) {
    return without_pattern(network, R"((?:connectx|cx|mlx|bluefield|bf|thor|slingshot)[ -]?\d+\b)");
}

// "3.2 Tbps", "3200 Gb/s", "400G".
const char* const rate_pattern = R"((\d{1,4}(?:\.\d+)?)\s*([gt])(?:b\w*)?(?:/s)?\b)";

std::vector<double> rates_gbit(const std::string& text) {
    return mapped(find_all(text, rate_pattern), [](const Found& rate) {
        return std::stod(rate[1]) * (rate[2] == "t" ? 1000 : 1);
    });
}

// NICs of several ports, "8x 2x200G".
const char* const ports_pattern =
    R"((\d{1,4})\s*x\s*([a-z]*)\s*\(?(\d{1,2})\s*x\s*(\d{2,4})\s*(g\w*(?:/s)?)?)";
// "8x400G", "8x NDR400 IB", "4x (200 Gb/s)": below ten is no NIC's rate, but a number of something else.
const char* const count_pattern =
    R"((\d{1,4})\s*x\s*((?:(?:ib|infiniband) )?[a-z]*)\s*\(?(\d{2,4}(?:\.\d+)?)\s*(g\w*(?:/s)?)?)";
// "8x NDR".
const char* const generation_pattern =
    R"((\d{1,4})\s*x\s*(?:(?:ib|infiniband) )?(edr|hdr|ndr|xdr)\b)";
// "8 NDR400 NICs", "8 400G HCAs".
const char* const nics_pattern =
    R"(\b(\d{1,2}) (?:(edr|hdr|ndr|xdr) ?(?:\d{3})?|(\d{2,4}) ?g\w*(?:/s)?) (?:\w+ )?)"
    R"((?:nics?|hcas?|adapters?)\b)";
// "8x ConnectX-7", "4x Slingshot-11".
const char* const product_pattern =
    R"((\d{1,4})\s*x\s*(connectx|cx|bluefield|bf|thor|slingshot)[ -]?(\d+)\b)";
const char* const per_gpu_pattern = R"(\([^()]*per gpu\))";
const char* const name_pattern = R"(\b(edr|hdr|ndr|xdr) ?(\d{3})?\b)";

// NICs as a text counts them: "8x NDR400 IB", "4x100G". A generation of InfiniBand says the rate by itself
// ("8x NDR"); the number in a product's name ("8x CX8 800G", "8x ConnectX-7 400G") is no rate.
std::vector<CountedNics> counted_nics(const std::string& network) {
    std::string text = without_products(network);
    std::vector<CountedNics> out;
    // What a GPU has ("2x200G per GPU") counts nothing.
    for (const Found& nics : find_all(text, ports_pattern)) {
        constexpr double ports_max = 4;
        constexpr double gbit_max = 800;
        const double gbit = std::stod(nics[3]) * std::stod(nics[4]);
        if (std::stod(nics[3]) > ports_max || gbit > gbit_max) return {{}, {}};  // no one kind
        out.push_back({std::stoll(nics[1]), gbit, nics[5]});
    }
    // The rest is counted, too: who asks refuses more than one kind.
    if (!out.empty()) text = without_pattern(text, ports_pattern);
    text = without_pattern(text, per_gpu_pattern);
    for (const Found& nics : find_all(text, count_pattern)) {
        out.push_back({std::stoll(nics[1]), std::stod(nics[3]), nics[4]});
    }
    if (!out.empty()) return out;
    for (const Found& nics : find_all(text, generation_pattern)) {
        out.push_back({std::stoll(nics[1]), generation_gbit(nics[2]), ""});
    }
    for (const Found& nics : find_all(text, nics_pattern)) {
        const double gbit = nics[2].empty() ? std::stod(nics[3]) : generation_gbit(nics[2]);
        out.push_back({std::stoll(nics[1]), gbit, ""});
    }
    if (!out.empty()) return out;
    for (const Found& nics : find_all(network, product_pattern)) {
        const double gbit = product_gbit(nics[2], nics[3]);
        if (gbit > 0) out.push_back({std::stoll(nics[1]), gbit, ""});
    }
    return out;
}

// Where no NICs are counted: as many as the node has. The text says what all have together ("3.2 Tbps") or
// what each has ("IB NDR", "400G per GPU", the rate of the node's own); another rate is that of the one NIC that
// there is ("100GbE"). If it says nothing they are the node's own. Nothing for another text.
std::vector<CountedNics> uncounted_nics(const std::string& network, const Node& node) {
    if (!match_pattern(network, R"(|-|not (said|stated)|unspecified|unknown)").empty()) {
        return {{node.nics, 0, ""}};
    }
    const std::string text = without_products(network);
    const std::vector<Found> names = find_all(text, name_pattern);
    const std::vector<double> rates = rates_gbit(text);
    if (names.size() + rates.size() == 0 &&
        says(
            text,
            R"(\b(?:ib|infiniband|roce\w*|spectrum\S*|tcpx\w*|tcp|ipoib|sockets|slingshot|opa|nvls|sharp)\b)")) {
        return {{node.nics, 0, ""}};
    }
    if (names.size() > 1 || rates.size() > 1 || names.size() + rates.size() == 0) return {};
    const double of_name = names.empty()         ? 0
                           : names[0][2].empty() ? generation_gbit(names[0][1])
                                                 : std::stod(names[0][2]);
    const double gbit = rates.empty() ? of_name : rates[0];
    const bool of_each = says(text, R"(per (?:gpu|nic)\b)");
    if (of_each || gbit == of_name) return {{node.nics, gbit, ""}};
    constexpr double of_one_max = 800;
    if (gbit <= of_one_max) {
        const double own = 1e-9 * real(node.nic_line_rate.bits_per_second());
        return {{gbit == own ? node.nics : 1, gbit, ""}};
    }
    const std::int64_t count = of_name > 0 ? std::llround(gbit / of_name) : node.nics;
    const double each = gbit / real(count);
    if (of_name > 0 && each != of_name) return {};
    return {{count, each, ""}};
}

// What a text says of the ways that it has, and not of its NICs.
struct Settings {
    bool sockets = false;  // the library is told to leave InfiniBand and RoCE alone
    std::string rest;      // of the text
};

// Whether the text has this, which then is taken out of it.
bool takes(std::string& text, const char* pattern) {
    if (find_pattern(text, pattern).empty()) return false;
    text = without_pattern(text, pattern);
    return true;
}

const char* const bounce_pattern =
    R"(\b(?:no|without|w/o|non)[ -]?(?:gpu ?direct|gdr)(?:[ -]?rdma)?\b|)"
    R"(\b(?:gpu ?direct|gdr)(?:[ -]?rdma)?(?: is)? ?[=:]? ?(?:off|disabled|0)\b|)"
    R"(\bnccl_net_gdr_level ?= ?(?:0|loc)\b)";
const char* const acs_pattern = R"(\bacs(?: is| was)? ?[=:]? ?(?:on|enabled|1)\b|\bwith acs\b)";
const char* const no_acs_pattern =
    R"(\bacs(?: is| was)? ?[=:]? ?(?:off|disabled|0)\b|\b(?:no|without|w/o) acs\b)";
const char* const no_nvlink_pattern =
    R"(\b(?:no|without|w/o) nvlink\w*|\bnvlink\d?(?: is| was)? ?[=:]? ?(?:off|disabled)\b)";
const char* const even_pattern =
    R"(\b1 ?: ?1\b(?: \w*subscri\w+)?|\bnon-?blocking\b|\b(?:no|not|without|non)[ -]?oversubscri\w+)";
const char* const uneven_pattern =
    R"(\b\d+(?:\.\d+)? ?: ?\d+\b(?: ?-?\w*(?:subscri|block|taper)\w*)?|\w*oversubscri\w+|\btaper\w*)";

Settings read_settings(std::string text, const NetworkWords& words, Node& node) {
    Settings out;
    const auto refuse = [](const std::string& why) { throw RowError{"network", why}; };
    takes(text, no_acs_pattern);
    takes(text, R"(\bnccl_ib_disable ?= ?0\b)");
    takes(text, even_pattern);
    out.sockets = takes(text, R"(\bnccl_ib_disable ?= ?1\b)");
    if (takes(text, acs_pattern)) node.pcie.acs = true;
    if (says(text, R"(\bacs\b)")) refuse("'ACS': is it on or off?");
    if (takes(text, bounce_pattern) && words.joins) {
        if (node.nvlink_domain < node.gpus) {
            refuse("without GPUDirect, and NVLink does not join a node's GPUs: no model has that");
        }
        node.pcie.peer_to_peer = false;
    }
    if (takes(text, no_nvlink_pattern)) remove_nvlink(node);
    if (const Found found = find_pattern(text, uneven_pattern); !found.empty() && words.joins) {
        refuse(
            fmt::format("'{}': how much of it a ring passes, its switches decide: write a "
                        "scenario with [fabric.compute] for 'railyard perf'",
                        found[0]));
    }
    if (const Found found = find_pattern(text, R"(\bnccl_\w+ ?= ?\S+)"); !found.empty()) {
        refuse(fmt::format("nothing here reads '{}'", found[0]));
    }
    out.rest = std::move(text);
    return out;
}

// The version of EFA that a text names, as an entry of the catalogue; "": none.
std::string efa_version(const std::string& network) {
    static const std::map<std::string, std::string> nics = {
        {"1", "efa_v1_100"}, {"2", "efa_v2_100"}, {"3", "efa_v3_200"}, {"4", "efa_v4_400"}};
    const Found version = find_pattern(network, R"(\befa[ -]?v ?([1-4])\b)");
    return version.empty() ? "" : nics.at(version[1]);
}

std::string efa_of(const std::string& network, double gbit, const Node& node) {
    const std::string version = efa_version(network);
    if (!version.empty()) return version;
    // AWS p4 nodes, all that it has with A100, have the first version, whether or not that is said.
    if (node.gpu.id.starts_with("a100")) return "efa_v1_100";
    return gbit < 200 ? "efa_v2_100" : gbit < 400 ? "efa_v3_200" : "efa_v4_400";
}

std::string infiniband_of(double gbit) {
    return gbit < 400 ? "cx6_hdr200" : gbit < 800 ? "cx7_ndr400" : "cx8_xdr800";
}

// The NIC that stands for the transport that the text names, "" for one that names none; the rate decides
// between generations of one.
std::string named_nic(const std::string& network, double gbit, const Node& node) {
    if (says(network, "tcpxo")) return "gcp_tcpxo_200";
    if (says(network, "tcpx")) return "gcp_tcpx_200";
    if (says(network, R"(\befa)")) return efa_of(network, gbit, node);
    if (says(network, "pollara|ainic")) return "pollara_400";
    if (says(network, "slingshot")) return "slingshot_11";
    if (says(network, R"(\bopa)")) return "omni_path_100";
    if (says(network, R"(roce|spectrum|\bthor)")) return "generic_400g_roce";
    if (says(network, R"(\btcp\b|\bsockets?\b|\bipoib\b)")) return "eth100_tcp";
    // Ethernet of 200 Gbit/s and more is not left to sockets.
    if (says(network, R"(gbe\b|\bethernet\b)")) {
        return gbit < 200 ? "eth100_tcp" : "generic_400g_roce";
    }
    if (says(network,
             R"(\b(?:ib|infiniband|quantum|connectx|cx|mlx|bluefield|bf)(?:\b|[ -]?\d))") ||
        says(network, R"(\b(?:edr|hdr|ndr|xdr)\w*)")) {
        return infiniband_of(gbit);
    }
    return "";
}

// Where no transport is named it is the node's own, or InfiniBand.
std::string usual_nic(double gbit, const Node& node) {
    const double own = 1e-9 * real(node.nic_line_rate.bits_per_second());
    return gbit == own || node.transport == "roce" ? node.nic : infiniband_of(gbit);
}

// Sockets: a stream for each of NCCL's channels, as much as a core of the host moves, by way of its memory.
void limit_sockets(Catalogue& catalogue, Node& node) {
    if (!catalogue.has("nic", node.nic, "per_flow_bandwidth")) return;
    const std::int64_t streams = catalogue.integer("collective", node.gpu.generation, "channels") *
                                 catalogue.integer("nic", node.nic, "nccl_socket_threads") *
                                 catalogue.integer("nic", node.nic, "nccl_sockets_per_thread");
    const double nics = real(node.nics);
    const Bandwidth stream = catalogue.bandwidth("nic", node.nic, "per_flow_bandwidth");
    const double bounce = 8 * node.pcie.bounce_bytes_per_s * real(node.gpus) / nics;
    node.nic_bandwidth = std::min({node.nic_bandwidth, stream * (real(streams) / nics),
                                   Bandwidth::bits_per_second(std::llround(bounce))});
}

// So many NICs of so many Gbit/s each, of the transport that the text names.
void set_nics(Catalogue& catalogue, const Settings& said, const std::string& network,
              const CountedNics& nics, Node& node) {
    std::string nic = named_nic(network, nics.gbit, node);
    if (nic.empty()) nic = usual_nic(nics.gbit, node);
    const std::string transport = catalogue.text("nic", nic, "transport", "unknown");
    if (said.sockets && (transport == "infiniband" || transport == "roce")) nic = "eth100_tcp";
    node.nics = nics.count;
    set_nic(catalogue, node, nic);
    const Bandwidth printed = Bandwidth::bits_per_second(std::llround(nics.gbit * 1e9));
    node.nic_bandwidth =
        printed * (node.nic_bandwidth.bytes_per_second() / node.nic_line_rate.bytes_per_second());
    node.nic_line_rate = printed;
    limit_sockets(catalogue, node);
}

// The NICs of a cloud whose nodes the catalogue has with this GPU: "AWS EFA" counts them for whoever knows.
// Not if the text says another rate of all.
bool set_cloud_nics(Catalogue& catalogue, const std::string& network, Node& node) {
    if (!says(network, R"(\befa)")) return false;
    const std::vector<double> rates = rates_gbit(without_products(network));
    const std::string version = efa_version(network);
    for (const std::string& name : Catalogue::names("node")) {
        const Value& entry = *Catalogue::entry("node", name);
        const Value* nic = entry.find("compute_nic");
        if (entry.find("gpu")->text != node.gpu.id || nic == nullptr) continue;
        if (!nic->text.starts_with(version.empty() ? "efa" : version)) continue;
        const Node cloud = read_node(catalogue, name);
        const double all = 1e-9 * real(cloud.nics * cloud.nic_line_rate.bits_per_second());
        if (!rates.empty() && std::abs(rates[0] / all - 1) > 0.01) return false;
        node.nics = cloud.nics;
        set_nic(catalogue, node, nic->text);
        return true;
    }
    if (version.empty()) return false;
    const Bandwidth each = catalogue.bandwidth("nic", version, "bandwidth");
    const double count = rates.empty() ? 0 : 1e9 * rates[0] / real(each.bits_per_second());
    if (count < 1 || count != std::round(count)) {
        throw RowError{"network", fmt::format("no node of the catalogue has {} and the NICs {}: "
                                              "count them, as in '16x200G EFA v3'",
                                              node.gpu.id, version)};
    }
    node.nics = std::llround(count);
    set_nic(catalogue, node, version);
    return true;
}

// NICs that a text counts are those of a node with as many GPUs as the run has on each, perhaps fewer than
// the catalogue's node has. More NICs than that are of a larger node, of which the run has a part; how many
// GPUs a cloud's node has, or a system that is named, is known.
void take_counted_node(std::int64_t nics, std::int64_t ranks, Node& node) {
    if (nics > ranks || ranks >= node.gpus) return;
    node.gpus = ranks;
    node.nvlink_domain = std::min(node.nvlink_domain, ranks);
}

// Where a text says no rate: InfiniBand and RoCE are as fast as the node's own NICs, others have one rate.
Bandwidth usual_rate(Catalogue& catalogue, const std::string& nic, const Node& node) {
    const std::string transport =
        nic.empty() ? "infiniband" : catalogue.text("nic", nic, "transport", "unknown");
    const bool any = transport == "infiniband" || transport == "roce";
    return any ? node.nic_line_rate : catalogue.bandwidth("nic", nic, "bandwidth");
}

// Whether the text names no other transport than the cloud's instance has: "p5.48xlarge, TCP" does.
bool same_transport(Catalogue& catalogue, const std::string& network, const NetworkWords& words,
                    const Node& node) {
    const auto transport = [&](const std::string& text) {
        const std::string nic = named_nic(text, 0, node);
        return nic.empty() ? "" : catalogue.text("nic", nic, "transport", "unknown");
    };
    const std::string said = transport(network);
    return said.empty() || said == transport(words.cloud->nics);
}

// The NICs that the text counts, "8x NDR400 IB" or "4x100G": so many Gbit/s each.
void read_nics(Catalogue& catalogue, const NetworkWords& words, const Settings& said, Node& node) {
    std::string network = said.rest;
    const bool named = words.cloud != nullptr;
    if (named) network = without_pattern(network, words.cloud->name);
    const std::vector<double> rates = rates_gbit(without_products(network));
    std::vector<CountedNics> nics = counted_nics(network);
    if (nics.empty() && named && rates.empty() && same_transport(catalogue, network, words, node)) {
        network = words.cloud->nics;
        nics = counted_nics(network);
    } else {
        network = said.rest;
    }
    const bool as_p4d = rates.empty() || rates == std::vector<double>{400};
    const bool efa = says(network, R"(\befa)");
    if (nics.empty() && as_p4d && efa && node.gpu.id.starts_with("a100")) {
        nics = {{4, 100, ""}};  // all that it rents out with A100
    }
    if (nics.size() == 1 && !named && !efa && !words.system) {
        take_counted_node(nics[0].count, words.ranks, node);
    }
    if (nics.empty() && set_cloud_nics(catalogue, network, node)) return;
    const bool in_bytes = mentions(words.network, "GB/s");
    if (in_bytes && (nics.empty() || nics[0].unit.starts_with("gb/"))) {
        throw RowError{"network",
                       fmt::format("expected NICs in Gbit/s, found '{}'", words.network)};
    }
    if (nics.empty()) nics = uncounted_nics(network, node);
    if (nics.size() != 1) {
        throw RowError{
            "network",
            fmt::format("expected one kind of NIC, as in '8x400G', found '{}'", words.network)};
    }
    const std::string nic = named_nic(network, 0, node);
    if (nics[0].gbit == 0 && (said.sockets || !nic.empty())) {
        nics[0].gbit = 1e-9 * real(usual_rate(catalogue, nic, node).bits_per_second());
    }
    if (nics[0].gbit > 0) set_nics(catalogue, said, network, nics[0], node);
}

// Racks that are one NVLink domain each say "4x400G" of a tray, "1x400G" or "NDR400" of a GPU; what isn't
// said is the catalogue's.
void read_rack_nics(Catalogue& catalogue, const Settings& said, Node& node) {
    const std::string& network = said.rest;
    const std::vector<CountedNics> counted = counted_nics(network);
    const std::vector<Found> rate =
        find_all(network, R"((?:hdr|ndr|xdr) ?(\d{3})\b|\b(\d{3}) ?g(?:b\w*)?(?:/s)?\b)");
    const auto trays = node.gpus / catalogue.integer("node", node.name, "gpus_per_tray");
    if (counted.size() == 1) {
        const std::int64_t count = counted[0].count;
        const std::int64_t parts = count == 1 ? node.gpus : count == node.gpus ? 1 : trays;
        set_nics(catalogue, said, network, {count * parts, counted[0].gbit, ""}, node);
    } else if (rate.size() == 1) {
        const std::string& gbit = rate[0][1].empty() ? rate[0][2] : rate[0][1];
        set_nics(catalogue, said, network, {node.gpus, std::stod(gbit), ""}, node);
    }
}

// Words that decide nothing here, or that others than this have read.
const char* const known_words =
    R"((?:nvidia|mellanox|intel|amd|broadcom|hpe|cray|cornelis|dell|supermicro|lenovo|aws|amazon|ec2|gcp|)"
    R"(google|cloud|azure|microsoft|oci|oracle|coreweave|lambda|nebius|crusoe|together|alibaba|meta|)"
    R"(a|an|the|of|on|in|at|via|over|by|for|from|to|and|or|with|per|each|all|both|total|aggregate|)"
    R"(nodes?|gpus?|nics?|hcas?|ports?|adapters?|rails?|racks?|hosts?|servers?|systems?|trays?|planes?|)"
    R"(optimi[sz]ed|rail-optimi[sz]ed|fat-?tree|fat|tree|clos|leaf|spine|tor|switch|switches|fabric|network|)"
    R"(cluster|superpod|interconnect|inter-?node|bandwidth|bisection|full|line|rate|speed|)"
    R"(second|first|another|other|same|user|slide|)"
    R"(default|unspecified|unknown|not|said|stated|no|sharp|sharpv\d|nvls|mnnvl|nvlink\d?|nvswitch|nvl\d*|)"
    R"(ib|infiniband|edr\d*|hdr\d*|ndr\d*|xdr\d*|quantum(?:-?\d)?|qm\d+|connectx|cx\d?|mlx\w*|bluefield|bf\d?|)"
    R"(roce|rocev\d|spectrum|spectrum-?[x\d]|thor\d?|pollara|ainic|efa|efav\d|srd|slingshot|opa\d*|)"
    R"(tcpx|tcpxo|gpudirect|gpudirect-tcpxo?|fastrak|rdma|gdr|tcp|sockets?|ipoib|gbe|ethernet|)"
    R"(gbps|gbit|gbits|gb|tbps|tb|g|s|x|v\d+|pcie|pxn|dgx|hgx|sxm\d?|nvl|[abghv]+\d{2,3}[ax]?|mi\d+x?|)"
    R"(aws-ofi-nccl|libfabric|plugin|nccl|rccl|version|driver|m?ofed|ubuntu|)"
    R"(20\d\d|v?\d+(?:\.\d+){2,}))";

// What is left of the text once all that is understood is taken out.
std::vector<std::string> unread_words(const NetworkWords& words, std::string text) {
    if (words.cloud != nullptr) text = without_pattern(text, words.cloud->name);
    const char* counted = R"(\b\d+[ -]?(?:nodes?|gpus?|racks?|hosts?|servers?|rails?|planes?)\b)";
    text = without_pattern(text, counted);
    text = without_pattern(text, product_pattern);
    text = without_products(text);
    text = without_pattern(without_pattern(text, per_gpu_pattern), nics_pattern);
    // What the NICs are called is beside their number.
    for (const char* pattern : {ports_pattern, count_pattern}) {
        text = with_replaced(text, pattern, " $2 ");
    }
    for (const char* pattern : {generation_pattern, name_pattern, rate_pattern}) {
        text = without_pattern(text, pattern);
    }
    std::vector<std::string> out;
    for (const Found& word : find_all(text, R"([a-z0-9_](?:[a-z0-9_.+-]*[a-z0-9_])?)")) {
        if (match_pattern(word[0], known_words).empty()) out.push_back(word[0]);
    }
    return out;
}

// Numbers count something; and a word beside no name of a transport may be that of one.
void refuse_unread(const NetworkWords& words, const std::string& text,
                   const std::vector<std::string>& unread, const Node& node) {
    for (const std::string& word : unread) {
        if (!match_pattern(word, R"(x?\d[\d.]*x?|dual.*|quad.*)").empty()) {
            throw RowError{"network",
                           fmt::format("nothing here reads '{}' of '{}'", word, words.network)};
        }
    }
    if (!unread.empty() && words.cloud == nullptr && named_nic(text, 0, node).empty()) {
        throw RowError{"network", fmt::format("no NIC here is called '{}'", unread[0])};
    }
}

}  // namespace

std::vector<std::string> read_network_words(Catalogue& catalogue, const NetworkWords& words,
                                            Node& node) {
    std::string text = with_replaced(lower_case(words.network), "×", "x");
    text = with_replaced(text, "omni-?path", "opa");
    const char* numbers[] = {"one", "two", "three", "four", "five", "six", "seven", "eight"};
    for (std::size_t i = 0; i < std::size(numbers); ++i) {
        const std::string word = fmt::format("\\b{}\\b", numbers[i]);
        text = with_replaced(text, word.c_str(), fmt::format("{}", i + 1));
    }
    const Settings said = read_settings(text, words, node);
    if (!words.joins) return {};
    const std::vector<std::string> unread = unread_words(words, said.rest);
    // A rack that is one NVLink domain.
    if (node.nvlink_domain > 8) {
        read_rack_nics(catalogue, said, node);
    } else {
        read_nics(catalogue, words, said, node);
    }
    refuse_unread(words, said.rest, unread, node);
    return unread;
}

}  // namespace railyard
