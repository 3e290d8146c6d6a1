// railyard perf: what nccl-tests would print on the scenario's cluster.

#include <fmt/format.h>

#include "models/campaign/campaign.h"
#include "tools/cli/cmd.h"
#include "tools/cli/network_luck.h"
#include "tools/cli/options.h"
#include "tools/cli/prediction_text.h"
#include "tools/cli/terminal.h"
#include "tools/cli/terminal_observer.h"
#include "tools/language/names.h"
#include "tools/program/json_text.h"
#include "tools/program/lists.h"
#include "tools/study/trials.h"
#include "tools/verify/collective_error.h"

namespace railyard {

namespace {

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
                                   const CommunicatorShape& shape, Collective collective,
                                   Wish wish) {
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
        if (chooses(out.back(), collective, Algorithm::pat, wish)) {
            out.back().pat_network = pat_bytes_per_s(network, groups);
        }
    }
    return out;
}

struct PerfArguments {
    Collective collective;
    std::string scenario;
    std::vector<std::int64_t> sizes;
    Wish wish;
    po::variables_map values;
};

PerfArguments parse_perf(const std::vector<std::string>& arguments) {
    CommandLine line(
        "railyard perf COLLECTIVE SCENARIO.toml [options]",
        "Prints what nccl-tests would print on the scenario's cluster, with the algorithm and\n"
        "protocol that NCCL would choose. COLLECTIVE: all_reduce, all_gather, reduce_scatter,\n"
        "alltoall, broadcast, reduce or sendrecv. Nothing else uses the links.");
    line.positional("collective", 1);
    line.positional("scenario", 1);
    line.add_settings();
    line.add()("begin,b", a_text("8"), "Smallest size in bytes, with K, M, G or T");
    line.add()("end,e", a_text("8G"), "Largest size");
    line.add()("factor,f", a_count(2), "Multiply sizes by this");
    line.add()("increment,i", a_text(), "Or add this");
    line.add()("gpus,g", a_count(), "Ranks; otherwise all GPUs");
    line.add()("nodes,N", a_count(), "Nodes to spread the ranks over");
    line.add()("algorithm", a_text(), "Force one (NCCL_ALGO)");
    line.add()("protocol", a_text(), "Force one (NCCL_PROTO)");
    line.add_json();
    const auto values = line.parse(arguments);
    if (!values.count("collective") || !values.count("scenario")) {
        throw ScenarioError("perf needs a collective and a scenario file",
                            "railyard perf all_reduce -b 8 -e 8G -f 2 SCENARIO.toml");
    }
    const std::string& name = values["collective"].as<std::vector<std::string>>()[0];
    const std::optional<Collective> collective = parse_collective(name);
    if (!collective) {
        throw ScenarioError(fmt::format("unknown collective '{}'", name),
                            suggest(name, collective_names));
    }
    return PerfArguments{*collective,
                         values["scenario"].as<std::vector<std::string>>()[0],
                         sizes_of(values),
                         {parse_name<Algorithm>(values, "algorithm", algorithm_names),
                          parse_name<Protocol>(values, "protocol", protocol_names)},
                         values};
}

// A message size's row.
struct PerfRow {
    std::int64_t size = 0;   // bytes, as nccl-tests counts them
    std::int64_t count = 0;  // elements
    Choice choice;
    CollectiveCost cost;
    double algbw = 0;  // bytes per second
    double busbw = 0;
    double analytic_s = 0;  // on an ideal network
    DrawRange over_draws;   // seconds
};

// One collective over some of a scenario's GPUs.
class PerfTest {
  public:
    PerfTest(const Scenario& s, const PerfArguments& args)
        : s_(s),
          collective_(args.collective),
          wish_(args.wish),
          flow_(s.fidelity != Fidelity::analytic) {
        StandaloneCatalogue own = s.open_catalogue();
        const CommunicatorShape shape = shape_of(s, args.values);
        ideal_ = read_communicator(own.catalogue, with_faults(s.node, faults_of(s, shape)), shape);
        own.diagnostics.raise_if_any();
        draws_ = {ideal_};
        if (flow_) {
            const Communicator nominal = read_communicator(own.catalogue, s.node, shape);
            draws_ = on_draws(s, nominal, shape, collective_, wish_);
        }
        for (const Communicator& each : {draws_[0], ideal_}) {
            if (!choose(each, collective_, 0, wish_)) throw_unavailable(each, collective_, wish_);
        }
        middle_ = middle_of(times_on_draws(args.sizes.back()));
    }

    PerfRow row(std::int64_t size) const {
        const double bytes = static_cast<double>(size);
        const std::vector<double> times = times_on_draws(size);
        const Communicator& c = draws_[middle_of(times)];
        PerfRow out;
        out.size = size;
        out.count = count_of(collective_, size, c.ranks);
        out.choice = *choose(c, collective_, bytes, wish_);
        out.cost = *collective_cost(c, collective_, bytes, out.choice);
        out.algbw = out.cost.seconds > 0 ? bytes / out.cost.seconds : 0;
        out.busbw = out.algbw * bus_factor(collective_, c.ranks);
        out.analytic_s = seconds_on(ideal_, bytes);
        out.over_draws = range_of_draws(times);
        return out;
    }

    Json json_of(const PerfRow& row) const {
        Json out = {{"size", row.size},
                    {"count", row.count},
                    {"time_s", row.cost.seconds},
                    {"latency_s", row.cost.latency_s},
                    {"algbw_bytes_per_s", row.algbw},
                    {"busbw_bytes_per_s", row.busbw},
                    {"algorithm", to_text(row.choice.algorithm)},
                    {"protocol", to_text(row.choice.protocol)},
                    {"channels", row.cost.channels}};
        if (flow_) out["analytic_time_s"] = row.analytic_s;
        if (lucky()) out["network_draws"] = range_json(row.over_draws);
        return out;
    }

    Table table_of(const std::vector<PerfRow>& rows) const {
        std::vector<Table::Column> columns = {">size", ">count", ">type",  ">redop",    ">root",
                                              ">time", ">algbw", ">busbw", "algorithm", "protocol"};
        std::vector<std::string> units = {"(B)",  "(elements)", "",       "", "",
                                          "(us)", "(GB/s)",     "(GB/s)", "", ""};
        if (flow_) {
            columns.push_back(">analytic");
            units.push_back("(us)");
        }
        if (lucky()) {
            columns.push_back({fmt::format("over {} draws", draws_.size()), Table::Align::right});
            units.push_back("(us)");
        }
        Table table(columns);
        table.add(units);
        for (const PerfRow& row : rows) {
            std::vector<std::string> cells = {fmt::format("{}", row.size),
                                              fmt::format("{}", row.count),
                                              "float",
                                              reduces(collective_) ? "sum" : "none",
                                              has_root(collective_) ? "0" : "-1",
                                              fmt::format("{:.2f}", 1e6 * row.cost.seconds),
                                              fmt::format("{:.2f}", 1e-9 * row.algbw),
                                              fmt::format("{:.2f}", 1e-9 * row.busbw),
                                              to_text(row.choice.algorithm),
                                              to_text(row.choice.protocol)};
            if (flow_) cells.push_back(fmt::format("{:.2f}", 1e6 * row.analytic_s));
            if (lucky()) {
                cells.push_back(fmt::format("{:.2f} to {:.2f}", 1e6 * row.over_draws.low,
                                            1e6 * row.over_draws.high));
            }
            table.add(cells);
        }
        return table;
    }

    void print_head() const {
        const Communicator& c = communicator();
        fmt::print("# {} on {} {} in {} NVLink domain{}\n", to_text(collective_), c.ranks,
                   s_.node.gpu.name, c.domains, c.domains == 1 ? "" : "s");
        if (c.domains < 2) return;
        fmt::print("# network: {:.1f} GB/s per domain and direction, {}\n", 1e-9 * c.network,
                   c.transport);
        if (lucky()) {
            fmt::print(
                "# each time is the median of {} draws of the network's hashes; the last column "
                "has their range\n",
                draws_.size());
        } else if (const std::string luck = draws_text(s_); flow_ && !luck.empty()) {
            fmt::print("# {}\n", luck);
        }
        if (!flow_) return;
        fmt::print("# held up by {}; an ideal network: {:.1f} GB/s\n", c.bottleneck,
                   1e-9 * ideal_.network);
        if (collective_ == Collective::all_reduce) {
            fmt::print(
                "# a double tree adds up {:.1f} GB/s over it; an ideal network: {:.1f} GB/s\n",
                1e-9 * c.tree_network, 1e-9 * ideal_.tree_network);
        }
        if (c.pat_network != c.network) {
            fmt::print("# PAT's rounds move {:.1f} GB/s over it; an ideal network: {:.1f} GB/s\n",
                       1e-9 * c.pat_network, 1e-9 * ideal_.pat_network);
        }
    }

    const Communicator& communicator() const { return draws_[middle_]; }
    std::vector<double> times_on_draws(std::int64_t size) const {
        return mapped(draws_, [&](const Communicator& each) {
            return seconds_on(each, static_cast<double>(size));
        });
    }

  private:
    double seconds_on(const Communicator& c, double bytes) const {
        return collective_cost(c, collective_, bytes, *choose(c, collective_, bytes, wish_))
            ->seconds;
    }
    bool lucky() const { return draws_.size() > 1; }

    const Scenario& s_;
    Collective collective_;
    Wish wish_;
    bool flow_;
    Communicator ideal_;
    std::vector<Communicator> draws_;  // of the network's hashes; the ideal network without them
    std::size_t middle_ = 0;           // in which the largest size takes its median
};

// For the smallest, the middle and the largest size.
Prediction perf_prediction(const Scenario& s, const PerfArguments& args,
                           const ScenarioChanges& changes, const PerfTest& test,
                           const std::vector<PerfRow>& rows) {
    StandaloneCatalogue own = s.open_catalogue();
    std::vector<std::size_t> which = {0, rows.size() / 2, rows.size() - 1};
    which.erase(std::unique(which.begin(), which.end()), which.end());
    std::vector<Question> questions;
    std::vector<std::int64_t> sizes;
    for (const std::size_t i : which) {
        const PerfRow& row = rows[i];
        if (row.cost.seconds <= 0) continue;
        sizes.push_back(row.size);
        const ModelError error = read_collective_error(own.catalogue, test.communicator(),
                                                       static_cast<double>(row.size));
        questions.push_back({fmt::format("{} B", row.size), row.cost.seconds,
                             test.times_on_draws(row.size), error,
                             "a run of nccl-tests on this network", false});
    }
    // What the job does changes nothing here, and a draw of it may be no plan.
    std::vector<Estimate> estimates = s.estimates;
    std::erase_if(estimates, [](const Estimate& each) { return each.path.starts_with("job."); });
    return predict(questions, estimates, draws_of(s), s.seed,
                   read_again(args.scenario, changes, [&](const Scenario& drawn) {
                       const PerfTest again(drawn, args);
                       std::vector<double> out;
                       for (const std::int64_t size : sizes) {
                           out.push_back(again.row(size).cost.seconds);
                       }
                       return out;
                   }));
}

}  // namespace

int cmd_perf(const std::vector<std::string>& arguments) {
    const PerfArguments args = parse_perf(arguments);
    ScenarioChanges changes;
    changes.must_run = false;
    changes.overrides_read = std::make_shared<OverridesRead>();
    changes.settings = settings_of(args.values);
    changes.windows = watched_windows();
    const Scenario s = load_scenario_file(args.scenario, changes);
    need_one_job(s, "perf");
    print_warnings(s.warnings);

    const PerfTest test(s, args);
    std::vector<PerfRow> rows;
    double bus_sum = 0;
    for (const std::int64_t size : args.sizes) {
        rows.push_back(test.row(size));
        bus_sum += rows.back().busbw;
    }
    const double bus_mean = bus_sum / static_cast<double>(rows.size());
    const Prediction prediction = perf_prediction(s, args, changes, test, rows);
    if (args.values.count("json")) {
        const Json each = json_array(rows, [&](const PerfRow& row) { return test.json_of(row); });
        const Json out = {{"scenario", s.file},
                          {"version", version()},
                          {"collective", to_text(args.collective)},
                          {"ranks", test.communicator().ranks},
                          {"nvlink_domains", test.communicator().domains},
                          {"rows", each},
                          {"busbw_mean_bytes_per_s", bus_mean},
                          {"prediction", prediction_json(prediction)},
                          {"complete", s.limits->all().empty()}};
        fmt::print("{}\n", one_line(out));
    } else {
        test.print_head();
        fmt::print("#\n{}# Avg bus bandwidth    : {:.4g}\n", test.table_of(rows).text(),
                   1e-9 * bus_mean);
        print_prediction(prediction, std::vector<ShowNumber>(prediction.answers.size(), time_text));
    }
    print_warnings(unread_overrides(s));
    return complain_of_limits(s.limits->all());
}

}  // namespace railyard
