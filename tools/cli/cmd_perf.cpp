// railyard perf: what nccl-tests would print on the scenario's cluster.

#include <fmt/format.h>

#include <cmath>
#include <nlohmann/json.hpp>

#include "models/campaign/campaign.h"
#include "models/collective/collective.h"
#include "tools/cli/cmd.h"
#include "tools/cli/limits.h"
#include "tools/cli/network_luck.h"
#include "tools/cli/options.h"
#include "tools/cli/terminal.h"
#include "tools/cli/terminal_observer.h"
#include "tools/language/names.h"
#include "tools/program/json_text.h"

namespace railyard {

namespace {

using Json = nlohmann::ordered_json;

constexpr std::int64_t element_bytes = 4;  // float, as nccl-tests without -d
constexpr std::int64_t bytes_max = std::int64_t{1} << 50;
constexpr std::size_t rows_max = 100000;

// "64M": binary, as in nccl-tests.
std::int64_t parse_size(const std::string& option, const std::string& text) {
    std::size_t digits = 0;
    while (digits < text.size() && text[digits] >= '0' && text[digits] <= '9') ++digits;
    const std::string suffix = text.substr(digits);
    const std::size_t power = std::string_view("KMGT").find(suffix.empty() ? '?' : suffix[0]);
    const bool known = suffix.empty() || (suffix.size() == 1 && power != std::string_view::npos);
    if (digits == 0 || digits > 16 || !known) {
        throw ScenarioError(fmt::format("{}: expected a size, found '{}'", option, text),
                            "write 8, 64K, 32M or 8G: K, M, G and T are powers of 1024");
    }
    const std::int64_t number = std::stoll(text.substr(0, digits));
    const std::int64_t unit = suffix.empty() ? 1 : std::int64_t{1} << (10 * (power + 1));
    if (number > bytes_max / unit) {
        throw ScenarioError(fmt::format("{}: {} is more than 1024T", option, text));
    }
    return number * unit;
}

std::vector<std::int64_t> sizes_of(const po::variables_map& values) {
    const std::int64_t begin = parse_size("--begin", values["begin"].as<std::string>());
    const std::int64_t end = parse_size("--end", values["end"].as<std::string>());
    const bool by_increment = values.count("increment") > 0;
    if (by_increment && !values["factor"].defaulted()) {
        throw ScenarioError("--factor and --increment can't both be given");
    }
    if (begin > end) {
        throw ScenarioError(
            fmt::format("--begin is {} bytes, --end is {}: nothing lies between", begin, end),
            "the first size must not be larger than the last");
    }
    std::int64_t factor = 1;
    std::int64_t increment = 0;
    if (by_increment) {
        increment = parse_size("--increment", values["increment"].as<std::string>());
        if (increment == 0) throw ScenarioError("--increment: expected 1 or more, found 0");
    } else {
        factor = values["factor"].as<std::int64_t>();
        if (factor < 2) {
            throw ScenarioError(fmt::format("--factor: expected 2 or more, found {}", factor),
                                "each size is the one before times the factor");
        }
        if (begin == 0 && end > 0) {
            throw ScenarioError("--begin 0 times a factor stays 0",
                                "begin at 8, or give --increment instead");
        }
    }
    std::vector<std::int64_t> sizes;
    for (std::int64_t size = begin;; size = size * factor + increment) {
        sizes.push_back(size);
        if (sizes.size() > rows_max) {
            throw ScenarioError(fmt::format("more than {} sizes", rows_max),
                                "choose a larger --increment or a smaller --end");
        }
        if (size == 0 && !by_increment) break;
        if (size > (end - increment) / factor) break;
    }
    return sizes;
}

template <class Enum>
std::optional<Enum> parse_name(const po::variables_map& values, const char* option,
                               const std::vector<std::string>& names) {
    if (!values.count(option)) return std::nullopt;
    const std::string& name = values[option].as<std::string>();
    const std::optional<std::size_t> found = find_name(name, names);
    if (!found) {
        throw ScenarioError(fmt::format("--{}: unknown {} '{}'", option, option, name),
                            "valid: " + fmt::format("{}", fmt::join(names, ", ")));
    }
    return static_cast<Enum>(*found);
}

// How many ranks on how many GPUs of each node.
CommunicatorShape shape_of(const Scenario& s, const po::variables_map& values) {
    const std::int64_t node_count = s.nodes.nodes;
    const std::int64_t nodes = values.count("nodes") ? values["nodes"].as<std::int64_t>() : 0;
    if (values.count("nodes") && (nodes < 1 || nodes > node_count)) {
        throw ScenarioError(fmt::format("--nodes: expected 1 to {}, found {}", node_count, nodes),
                            "cluster.nodes says how many there are");
    }
    const std::int64_t available = (nodes > 0 ? nodes : node_count) * s.node.gpus;
    CommunicatorShape shape;
    shape.ranks = values.count("gpus") ? values["gpus"].as<std::int64_t>() : available;
    if (shape.ranks < 1 || shape.ranks > available) {
        throw ScenarioError(
            fmt::format("--gpus: expected 1 to {}, found {}", available, shape.ranks),
            fmt::format("a node has {}", s.node.gpus));
    }
    if (nodes > 0 && shape.ranks % nodes != 0) {
        throw ScenarioError(
            fmt::format("{} GPUs can't be spread evenly over {} nodes", shape.ranks, nodes));
    }
    shape.ranks_per_node = nodes > 0 ? shape.ranks / nodes : s.node.gpus;
    shape.sharp = s.networks[0].sharp;
    return shape;
}

// The faults of the nodes that the ranks are on.
std::vector<PartFault> faults_of(const Scenario& s, const CommunicatorShape& shape) {
    std::vector<PartFault> out;
    for (const PartFault& fault : s.faults) {
        if (fault.node * shape.ranks_per_node < shape.ranks) out.push_back(fault);
    }
    return out;
}

// The ranks' GPUs, in order.
GpuGroup gpus_of(const Scenario& s, const CommunicatorShape& shape) {
    GpuGroup group;
    for (std::int64_t rank = 0; rank < shape.ranks; ++rank) {
        group.push_back(rank / shape.ranks_per_node * s.node.gpus + rank % shape.ranks_per_node);
    }
    return group;
}

// As nccl-tests counts elements: of one rank's part where each has a part.
std::int64_t count_of(Collective collective, std::int64_t bytes, std::int64_t ranks) {
    const bool parts = collective == Collective::all_gather ||
                       collective == Collective::reduce_scatter ||
                       collective == Collective::all_to_all;
    return bytes / element_bytes / (parts ? ranks : 1);
}

bool reduces(Collective c) {
    return c == Collective::all_reduce || c == Collective::reduce_scatter ||
           c == Collective::reduce;
}
bool has_root(Collective c) {
    return c == Collective::broadcast || c == Collective::reduce;
}

// Says what stands in the way of a wish, for the algorithm that comes nearest to it.
[[noreturn]] void throw_unavailable(const Communicator& c, Collective collective, Wish wish) {
    const std::optional<Choice> usual = choose(c, collective, 0, {wish.algorithm, {}});
    const Choice wanted{wish.algorithm ? *wish.algorithm
                        : usual        ? usual->algorithm
                                       : Algorithm::ring,
                        wish.protocol.value_or(Protocol::simple)};
    std::string words;
    if (wish.algorithm) words = " --algorithm " + to_text(*wish.algorithm);
    if (wish.protocol) words += " --protocol " + to_text(*wish.protocol);
    throw ScenarioError(fmt::format("{} is not available with{}", to_text(collective), words),
                        why_unavailable(c, collective, wanted));
}

// On each draw of the network's hashes; on the one that is given.
std::vector<Communicator> on_draws(const Scenario& s, const Communicator& nominal,
                                   const CommunicatorShape& shape, Collective collective) {
    std::vector<HashSeed> seeds;
    if (hashes_are_drawn(s)) {
        for (const NetworkDraw& draw : draw_networks(s)) seeds.emplace_back(draw.hash_seed);
    }
    if (seeds.empty()) seeds.emplace_back();
    std::vector<Communicator> out;
    for (const HashSeed& seed : seeds) {
        out.push_back(nominal);
        if (nominal.ranks < 2) break;
        GpuNetwork network = gpu_network(s, s.fidelity, s.faults, false, seed);
        const std::vector<GpuGroup> groups = {gpus_of(s, shape)};
        measure(network, groups, collective, out.back());
    }
    return out;
}

std::vector<double> network_rates(const std::vector<Communicator>& draws) {
    std::vector<double> out;
    for (const Communicator& c : draws) out.push_back(c.network);
    return out;
}

}  // namespace

int cmd_perf(const std::vector<std::string>& arguments) {
    CommandLine line(
        "railyard perf COLLECTIVE SCENARIO.toml [options]",
        "Prints what nccl-tests would print on the scenario's cluster, with the algorithm and\n"
        "protocol that NCCL would choose. COLLECTIVE: all_reduce, all_gather, reduce_scatter,\n"
        "alltoall, broadcast, reduce or sendrecv. Nothing else uses the links.");
    line.positional("collective", 1);
    line.positional("scenario", 1);
    line.add_settings();
    line.add()("begin,b", po::value<std::string>()->default_value("8"),
               "Smallest size in bytes, with K, M, G or T");
    line.add()("end,e", po::value<std::string>()->default_value("8G"), "Largest size");
    line.add()("factor,f", po::value<std::int64_t>()->default_value(2), "Multiply sizes by this");
    line.add()("increment,i", po::value<std::string>(), "Or add this");
    line.add()("gpus,g", po::value<std::int64_t>(), "Ranks; otherwise all GPUs");
    line.add()("nodes,N", po::value<std::int64_t>(), "Nodes to spread the ranks over");
    line.add()("algorithm", po::value<std::string>(), "Force one (NCCL_ALGO)");
    line.add()("protocol", po::value<std::string>(), "Force one (NCCL_PROTO)");
    line.add()("json", "Print one JSON object on standard output and nothing else");
    const auto parsed = line.parse(arguments);
    if (!parsed) return exit_ok;
    const po::variables_map& values = *parsed;
    if (!values.count("collective") || !values.count("scenario")) {
        throw ScenarioError("perf needs a collective and a scenario file",
                            "railyard perf all_reduce -b 8 -e 8G -f 2 SCENARIO.toml");
    }
    const std::string& name = values["collective"].as<std::vector<std::string>>()[0];
    const std::optional<Collective> collective = parse_collective(name);
    if (!collective) {
        throw ScenarioError(fmt::format("unknown collective '{}'", name),
                            suggest(name, collective_names()));
    }
    const std::vector<std::int64_t> sizes = sizes_of(values);
    const Wish wish{parse_name<Algorithm>(values, "algorithm", algorithm_names()),
                    parse_name<Protocol>(values, "protocol", protocol_names())};

    ScenarioChanges changes;
    changes.must_run = false;
    changes.settings = settings_of(values);
    changes.windows = std::make_shared<WindowCache>(terminal_observer());
    const Scenario s =
        load_scenario_file(values["scenario"].as<std::vector<std::string>>()[0], changes);
    need_one_job(s, "perf");
    StandaloneCatalogue own = s.open_catalogue();
    const CommunicatorShape shape = shape_of(s, values);
    const Communicator ideal =
        read_communicator(own.catalogue, with_faults(s.node, faults_of(s, shape)), shape);
    own.diagnostics.raise_if_any();
    const bool flow = s.fidelity != Fidelity::analytic;
    std::vector<Communicator> draws = {ideal};
    if (flow)
        draws = on_draws(s, read_communicator(own.catalogue, s.node, shape), shape, *collective);
    const Communicator& c = draws[middle_of(network_rates(draws))];
    const Communicator* const networks[] = {&c, &ideal};
    for (const Communicator* each : networks) {
        if (!choose(*each, *collective, 0, wish)) throw_unavailable(*each, *collective, wish);
    }

    const double factor = bus_factor(*collective, c.ranks);
    Json rows = Json::array();
    std::vector<Table::Column> columns = {
        {"size", Table::Align::right},     {"count", Table::Align::right},
        {"type", Table::Align::right},     {"redop", Table::Align::right},
        {"root", Table::Align::right},     {"time", Table::Align::right},
        {"algbw", Table::Align::right},    {"busbw", Table::Align::right},
        {"algorithm", Table::Align::left}, {"protocol", Table::Align::left}};
    std::vector<std::string> units = {"(B)",  "(elements)", "",       "", "",
                                      "(us)", "(GB/s)",     "(GB/s)", "", ""};
    if (flow) {
        columns.push_back({"analytic", Table::Align::right});
        units.push_back("(us)");
    }
    const bool lucky = draws.size() > 1;
    if (lucky) {
        columns.push_back({fmt::format("over {} draws", draws.size()), Table::Align::right});
        units.push_back("(us)");
    }
    Table table(columns);
    table.add(units);
    double bus_sum = 0;
    for (const std::int64_t size : sizes) {
        const double bytes = static_cast<double>(size);
        const Choice choice = *choose(c, *collective, bytes, wish);
        const CollectiveCost cost = *collective_cost(c, *collective, bytes, choice);
        const double algbw = cost.seconds > 0 ? bytes / cost.seconds : 0;
        bus_sum += algbw * factor;
        const std::int64_t count = count_of(*collective, size, c.ranks);
        const char* redop = reduces(*collective) ? "sum" : "none";
        const double analytic_s =
            collective_cost(ideal, *collective, bytes, *choose(ideal, *collective, bytes, wish))
                ->seconds;
        Json row = {{"size", size},
                    {"count", count},
                    {"time_s", cost.seconds},
                    {"latency_s", cost.latency_s},
                    {"algbw_bytes_per_s", algbw},
                    {"busbw_bytes_per_s", algbw * factor},
                    {"algorithm", to_text(choice.algorithm)},
                    {"protocol", to_text(choice.protocol)},
                    {"channels", cost.channels}};
        if (flow) row["analytic_time_s"] = analytic_s;
        std::vector<double> times;
        for (const Communicator& each : draws) {
            times.push_back(
                collective_cost(each, *collective, bytes, *choose(each, *collective, bytes, wish))
                    ->seconds);
        }
        const DrawRange range = range_of_draws(times);
        if (lucky) row["network_draws"] = range_json(range);
        rows.push_back(row);
        std::vector<std::string> cells = {fmt::format("{}", size),
                                          fmt::format("{}", count),
                                          "float",
                                          redop,
                                          has_root(*collective) ? "0" : "-1",
                                          fmt::format("{:.2f}", 1e6 * cost.seconds),
                                          fmt::format("{:.2f}", 1e-9 * algbw),
                                          fmt::format("{:.2f}", 1e-9 * algbw * factor),
                                          to_text(choice.algorithm),
                                          to_text(choice.protocol)};
        if (flow) cells.push_back(fmt::format("{:.2f}", 1e6 * analytic_s));
        if (lucky)
            cells.push_back(fmt::format("{:.2f} to {:.2f}", 1e6 * range.low, 1e6 * range.high));
        table.add(cells);
    }
    const double bus_mean = bus_sum / static_cast<double>(sizes.size());
    if (values.count("json")) {
        const Json out = {{"scenario", s.file},
                          {"version", version()},
                          {"collective", to_text(*collective)},
                          {"ranks", c.ranks},
                          {"nvlink_domains", c.domains},
                          {"rows", rows},
                          {"busbw_mean_bytes_per_s", bus_mean},
                          {"complete", s.limits->all().empty()}};
        fmt::print("{}\n", one_line(out));
        return complain_of_limits(s.limits->all());
    }
    fmt::print("# {} on {} {} in {} NVLink domain{}\n", to_text(*collective), c.ranks,
               s.node.gpu.name, c.domains, c.domains == 1 ? "" : "s");
    if (c.domains > 1) {
        fmt::print("# network: {:.1f} GB/s per domain and direction, {}\n", 1e-9 * c.network,
                   c.transport);
        if (lucky) {
            fmt::print(
                "# the draw in the middle of {} of the network's hashes; the last column has all\n",
                draws.size());
        } else if (const std::string luck = draws_text(s); flow && !luck.empty()) {
            fmt::print("# {}\n", luck);
        }
        if (flow) {
            fmt::print("# held up by {}; an ideal network: {:.1f} GB/s\n", c.bottleneck,
                       1e-9 * ideal.network);
        }
        if (flow && *collective == Collective::all_reduce) {
            fmt::print(
                "# a double tree adds up {:.1f} GB/s over it; an ideal network: {:.1f} GB/s\n",
                1e-9 * c.tree_network, 1e-9 * ideal.tree_network);
        }
    }
    fmt::print("#\n{}# Avg bus bandwidth    : {:.4g}\n", table.text(), 1e-9 * bus_mean);
    return complain_of_limits(s.limits->all());
}

}  // namespace railyard
