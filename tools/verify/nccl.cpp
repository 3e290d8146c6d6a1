#include "tools/verify/nccl.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>

#include "tools/language/names.h"
#include "tools/program/pattern.h"

namespace railyard {

namespace {

// A run of nccl-tests, in the words of its table.
struct NcclRun {
    std::string device, network, collective, algorithm;
    std::int64_t nodes = 1;
    std::int64_t gpus = 1;
    double bytes = 0;
};

std::string lower(std::string text) {
    std::transform(text.begin(), text.end(), text.begin(),
                   [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
    return text;
}

// The kind of node in the catalogue whose GPU a text names; of GPUs that are in each other's names
// (B200, GB200) the longest, of nodes with the same the first. Throws RowError when it names two.
std::string node_named(const char* column, const std::string& text) {
    std::string best;
    std::string of;
    for (const std::string& node : Catalogue::names("node")) {
        const std::string gpu = Catalogue::entry("node", node)->find("gpu")->text;
        const std::string family = gpu.substr(0, gpu.find('_'));
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
std::string node_of(const NcclRun& run) {
    const std::string node = node_named("network", lower(run.network));
    return node.empty() ? node_named("device", lower(run.device)) : node;
}

// The NIC that stands for a transport; the rate decides between generations of one.
const char* nic_of(const std::string& network, double gbit) {
    if (mentions(network, "tcpxo")) return "gcp_tcpxo_200";
    if (mentions(network, "tcpx")) return "gcp_tcpx_200";
    if (mentions(network, "efa")) {
        // AWS p4 nodes have the first version, whether or not that is said.
        if (mentions(network, "efa v1") || mentions(network, "p4d")) return "efa_v1_100";
        return gbit < 200 ? "efa_v2_100" : gbit < 400 ? "efa_v3_200" : "efa_v4_400";
    }
    if (mentions(network, "roce")) return "generic_400g_roce";
    if (mentions(network, "tcp") || mentions(network, "gbe")) return "eth100_tcp";
    return gbit < 400 ? "cx6_hdr200" : "cx7_ndr400";
}

// Sets the NICs that the network's column counts, "8x NDR400 IB" or "4x100G": so many Gbit/s each.
void read_network(Bench& bench, const std::string& column, Node& node) {
    const std::string network = lower(column);
    const std::vector<Found> nics =
        find_all(network, R"((\d+)\s*x\s*([a-z]*)\s*(\d+(?:\.\d+)?)\s*(g\w*(?:/s)?)?)");
    if (nics.size() != 1) {
        throw RowError{"network",
                       fmt::format("expected one kind of NIC, as in '8x400G', found '{}'", column)};
    }
    if (nics[0][4].starts_with("gb/") && mentions(column, "GB/s")) {
        throw RowError{"network", fmt::format("expected NICs in Gbit/s, found '{}'", column)};
    }
    const double gbit = std::stod(nics[0][3]);
    node.nics = std::stoll(nics[0][1]);
    set_nic(bench.catalogue(), node, nic_of(network, gbit));
    const Bandwidth printed = Bandwidth::bits_per_second(std::llround(gbit * 1e9));
    node.nic_bandwidth =
        printed * (node.nic_bandwidth.bytes_per_second() / node.nic_line_rate.bytes_per_second());
    node.nic_line_rate = printed;
}

template <class Word>
Word named(const std::string& word, const std::vector<std::string>& words) {
    return static_cast<Word>(std::ranges::find(words, word) - words.begin());
}

// An algorithm's name, with or without a protocol, says that it was forced, unless it explains a
// default; the library's own name asks for nothing. A column that says more, such as one algorithm up to
// a size and another above, is not expressed.
Wish wish_of(const std::string& column) {
    const std::string text = lower(column);
    const char* nothing = R"(|-|[nr]ccl|default\s*(\([^()]*\))?|\w+\s*\(default\))";
    if (!match_pattern(text, nothing).empty()) return {};
    const char* forced =
        R"((ring|tree|nvlstree|nvls|pat)(?: (ll128|ll|simple))?(?: \(nvls off\))?)";
    const Found found = match_pattern(text, forced);
    if (found.empty()) {
        throw RowError{"algo",
                       fmt::format("expected an algorithm of all sizes and its protocol, as in "
                                   "'Ring LL', or 'default', found '{}'",
                                   column)};
    }
    const std::string algorithm = found[1] == "nvlstree" ? "nvls_tree" : found[1];
    Wish wish;
    wish.algorithm = named<Algorithm>(algorithm, algorithm_names());
    if (!found[2].empty()) wish.protocol = named<Protocol>(found[2], protocol_names());
    return wish;
}

std::optional<double> nccl_seconds(Bench& bench, const NcclRun& run) {
    const std::string kind = node_of(run);
    const std::optional<Collective> collective = parse_collective(run.collective);
    if (kind.empty() || !collective || run.gpus < 2 || run.nodes < 1 || run.bytes <= 0) {
        return std::nullopt;
    }
    Node node = bench.node(kind.c_str());
    // A rack that is one NVLink domain is one node here, whatever the number of its trays.
    const bool rack = node.nvlink_domain > 8;
    if (!rack && run.nodes > 1) read_network(bench, run.network, node);
    const Communicator c = read_communicator(
        bench.catalogue(), node,
        {run.gpus, rack ? node.gpus : (run.gpus + run.nodes - 1) / run.nodes, false});
    const auto choice = choose(c, *collective, run.bytes, wish_of(run.algorithm));
    if (!choice) return std::nullopt;
    return collective_cost(c, *collective, run.bytes, *choice)->seconds;
}

std::string size_class(const char* unit, double bytes) {
    return fmt::format("{}, {} 1 MiB", unit, bytes < 1048576 ? "below" : "from");
}

// 30: published outputs of nccl-tests. What stas00's tables hold was measured through PyTorch.
RowResult nccl_published(Bench& bench, const Fields& f) {
    if (mentions(f.text("flag"), "misconfigured") || mentions(f.text("flag"), "not stated")) {
        return std::nullopt;
    }
    const NcclRun run{f.text("device"),   f.text("network"), f.text("op"),     f.text("algo"),
                      f.integer("nodes"), f.integer("gpus"), f.number("bytes")};
    std::optional<double> time = nccl_seconds(bench, run);
    if (!time || f.number("time_oop_us") <= 0) return std::nullopt;
    if (f.text("source").starts_with("stas00")) *time += read_framework_launch(bench.catalogue());
    return VerifiedRow{fmt::format("{} {} {} B", f.text("id"), run.collective, f.text("bytes")),
                       size_class("us", run.bytes), f.number("time_oop_us"), 1e6 * *time};
}

// 31: nccl-tests in one NVLink domain.
RowResult nccl_intranode(Bench& bench, const Fields& f) {
    const NcclRun run{f.text("device"), "", f.text("op"), "default", 1, f.integer("num_gpus"),
                      f.number("bytes")};
    const std::optional<double> time = nccl_seconds(bench, run);
    if (!time) return std::nullopt;
    return VerifiedRow{
        fmt::format("{} {} {} B on {}", run.device, run.collective, f.text("bytes"), run.gpus),
        size_class("us", run.bytes), f.figure("median_us"), 1e6 * *time};
}

// 32: peaks, taken as 16 GiB. Where the table says "multi", four nodes of eight: at its peak a ring
// is as fast as its NICs, on any number of nodes.
RowResult nccl_peak(Bench& bench, const Fields& f) {
    if (f.text("num_gpus") == "any") return std::nullopt;
    const bool multi = f.text("num_gpus") == "multi";
    NcclRun run{f.text("device"),
                f.text("network"),
                f.text("op"),
                f.text("algo"),
                multi ? 4 : f.integer("nodes"),
                multi ? 32 : f.integer("num_gpus"),
                0};
    const std::string gib = f.groups("size", "peak|large|([0-9]+) ?GiB", "8GiB")[0];
    run.bytes = (gib.empty() ? 16 : std::stod(gib)) * 1073741824;
    const double published = f.number("busbw_GBps");
    const std::optional<double> time = nccl_seconds(bench, run);
    if (!time || published == 0) return std::nullopt;
    return VerifiedRow{
        fmt::format("{} {} {} on {}", run.device, run.network, run.algorithm, f.text("num_gpus")),
        "GB/s busbw", published,
        run.bytes * bus_factor(*parse_collective(run.collective), run.gpus) / *time * 1e-9};
}

constexpr TableFormat nccl_formats[] = {
    {"30", "nccl-tests, published outputs", nccl_published},
    {"31", "nccl-tests, one NVLink domain", nccl_intranode},
    {"32", "nccl-tests, peaks by algorithm", nccl_peak},
};

}  // namespace

std::span<const TableFormat> nccl_tables() {
    return nccl_formats;
}

}  // namespace railyard
