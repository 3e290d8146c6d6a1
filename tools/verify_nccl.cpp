#include "tools/verify_nccl.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <regex>

#include "tools/options.h"

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

bool mentions(const std::string& text, std::string_view word) {
    return text.find(word) != std::string::npos;
}

// The first kind of node in the catalogue whose GPU is named, and of those the longest name; the
// name of a system in the network's column ("DGX H100 8x400G") comes before a list of devices.
std::string node_of(const NcclRun& run) {
    for (const std::string& text : {lower(run.network), lower(run.device)}) {
        std::string best;
        std::size_t length = 0;
        for (const std::string& node : Catalogue::names("node")) {
            const std::string gpu = Catalogue::entry("node", node)->find("gpu")->text;
            const std::string family = gpu.substr(0, gpu.find('_'));
            if (family.size() > length && mentions(text, family)) {
                best = node;
                length = family.size();
            }
        }
        if (!best.empty()) return best;
    }
    return "";
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

// Sets the NICs that the network's column counts, "8x NDR400 IB" or "4x100G".
void read_network(Bench& bench, const std::string& column, Node& node) {
    const std::string network = lower(column);
    std::smatch found;
    static const std::regex NICs(R"((\d+)\s*x\s*[a-z]*\s*(\d+))");
    if (!std::regex_search(network, found, NICs)) return;
    const double gbit = std::stod(found[2]);
    node.nics = std::stoll(found[1]);
    set_nic(bench.catalogue(), node, nic_of(network, gbit));
    const Bandwidth printed = Bandwidth::bits_per_second(std::llround(gbit * 1e9));
    node.nic_bandwidth =
        printed * (node.nic_bandwidth.bytes_per_second() / node.nic_line_rate.bytes_per_second());
    node.nic_line_rate = printed;
}

// An algorithm's name says that it was forced, unless it explains a default.
Wish wish_of(const std::string& column) {
    const std::string text = lower(column);
    Wish wish;
    if (mentions(text, "default")) return wish;
    if (text.starts_with("ring")) wish.algorithm = Algorithm::ring;
    if (text.starts_with("tree")) wish.algorithm = Algorithm::tree;
    if (text.starts_with("nvls")) wish.algorithm = Algorithm::nvls;
    if (text.starts_with("nvlstree")) wish.algorithm = Algorithm::nvls_tree;
    if (mentions(text, "simple")) wish.protocol = Protocol::simple;
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
    const double size = f.leading_number("size");  // "8GiB", or "peak"
    run.bytes = (size > 0 ? size : 16) * 1073741824;
    const double published = f.number("busbw_GBps");
    const std::optional<double> time = nccl_seconds(bench, run);
    if (!time || published == 0) return std::nullopt;
    return VerifiedRow{
        fmt::format("{} {} {} on {}", run.device, run.network, run.algorithm, f.text("num_gpus")),
        "GB/s busbw", published,
        run.bytes * bus_factor(*parse_collective(run.collective), run.gpus) / *time * 1e-9};
}

constexpr TableFormat formats[] = {
    {"30", "nccl-tests, published outputs", nccl_published},
    {"31", "nccl-tests, one NVLink domain", nccl_intranode},
    {"32", "nccl-tests, peaks by algorithm", nccl_peak},
};

}  // namespace

std::span<const TableFormat> nccl_tables() {
    return formats;
}

}  // namespace railyard
