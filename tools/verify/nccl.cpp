#include "tools/verify/nccl.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "sim/text.h"
#include "tools/language/names.h"
#include "tools/program/csv_table.h"
#include "tools/program/lists.h"
#include "tools/program/pattern.h"
#include "tools/verify/collective_error.h"
#include "tools/verify/nccl_network.h"

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

// The name of a system in the network's column ("DGX H100 8x400G") comes before a list of devices; a cloud's
// instance stands for its GPU where none is named.
std::string node_of(const std::string& device, const std::string& network,
                    const CloudInstance* cloud) {
    std::string node = node_named("network", network);
    if (node.empty()) node = node_named("device", device);
    if (cloud == nullptr) return node;
    if (node.empty()) return node_named("device", cloud->gpu);
    const std::string& gpu = Catalogue::entry("node", node)->find("gpu")->text;
    if (!gpu.starts_with(cloud->gpu)) {
        throw RowError{"network",
                       fmt::format("such nodes of that cloud have {}, not {}", cloud->gpu, gpu)};
    }
    return node;
}

// A node has no more ranks than GPUs, and each has one.
void check_spread(const std::string& column, std::int64_t gpus, std::int64_t nodes,
                  const Node& node) {
    const std::int64_t ranks = (gpus + nodes - 1) / nodes;
    if (ranks > node.gpus) {
        throw RowError{column, fmt::format("{} GPUs on {} node{}: {} of the catalogue has {}", gpus,
                                           nodes, nodes == 1 ? "" : "s", node.name, node.gpus)};
    }
    if ((gpus + ranks - 1) / ranks != nodes) {
        throw RowError{column, fmt::format("{} GPUs don't spread over {} nodes", gpus, nodes)};
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
        throw RowError{"algorithm",
                       fmt::format("expected an algorithm of all sizes and its protocol, "
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

const NcclTests::Known& NcclTests::known_of(const Run& run, const Texts& column) {
    const std::string key = fmt::format("{}\n{}\n{}\n{}\n{}\n{}", run.device, run.network,
                                        run.racks, run.algorithm, run.nodes, run.gpus);
    const auto found = known_.find(key);
    if (found != known_.end()) return found->second;
    const std::string network = lower_case(run.network);
    const std::string device = lower_case(run.device);
    const CloudInstance* cloud = cloud_instance(network);
    if (cloud == nullptr) cloud = cloud_instance(device);
    const std::string kind = node_of(device, network, cloud);
    if (kind.empty()) {
        throw RowError{column("device"),
                       fmt::format("no node of the catalogue has a GPU '{}'", run.device)};
    }
    Node node = read_node(own_.catalogue, kind);
    // A rack that is one NVLink domain is one node here, whatever the number of its trays.
    const std::int64_t domains =
        node.nvlink_domain > 8 ? racks_of(run.racks, run.gpus, node) : run.nodes;
    const std::int64_t ranks = (run.gpus + domains - 1) / domains;
    check_spread(column("gpus"), run.gpus, domains, node);
    const bool system = cloud != nullptr || !node_named("network", network).empty();
    std::vector<std::string> unread =
        read_network_words(own_.catalogue, {run.network, cloud, system, ranks, domains > 1}, node);
    const std::string words = lower_case(run.network + " " + run.algorithm);
    const bool sharp =
        mentions(words, "sharp") && find_pattern(words, "(no|without) sharp|sharp off").empty();
    const CommunicatorShape shape{run.gpus, ranks, sharp};
    return known_
        .emplace(key, Known{read_communicator(own_.catalogue, node, shape), std::move(unread)})
        .first->second;
}

std::map<std::string, double> NcclTests::figures(const Texts& text, const Texts& column) {
    try {
        return figures_of(text, column);
    } catch (const RowError& error) {
        // Tables call these columns as they like.
        for (const char* name : {"device", "network", "algorithm"}) {
            if (error.column != name || column(name).empty()) continue;
            throw RowError{column(name), error.message};
        }
        throw;
    }
}

std::map<std::string, double> NcclTests::figures_of(const Texts& text, const Texts& column) {
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
    unread_.clear();
    const Known& known = known_of(run, column);
    unread_ = known.unread;
    const Communicator& c = known.communicator;
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
