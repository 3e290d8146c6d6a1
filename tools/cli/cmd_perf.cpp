// railyard perf: what nccl-tests would print on the scenario's cluster.

#include <fmt/format.h>

#include "tools/cli/cmd.h"
#include "tools/cli/options.h"
#include "tools/cli/prediction_text.h"
#include "tools/cli/terminal.h"
#include "tools/cli/terminal_observer.h"
#include "tools/language/names.h"
#include "tools/program/json_text.h"
#include "tools/program/lists.h"
#include "tools/study/collective_test.h"
#include "tools/study/trials.h"
#include "tools/verify/collective_error.h"

namespace railyard {

namespace {

constexpr std::size_t rows_max = 100000;

std::vector<std::int64_t> sizes_of(const po::variables_map& values) {
    const std::int64_t begin = parse_size("--begin", text_of(values, "begin"));
    const std::int64_t end = parse_size("--end", text_of(values, "end"));
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
        increment = parse_size("--increment", text_of(values, "increment"));
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

bool reduces(Collective c) {
    return c == Collective::all_reduce || c == Collective::reduce_scatter ||
           c == Collective::reduce;
}
bool has_root(Collective c) {
    return c == Collective::broadcast || c == Collective::reduce;
}

struct PerfArguments {
    CollectiveQuestion question;
    std::string scenario;
    std::vector<std::int64_t> sizes;
    std::vector<std::string> settings;
    bool json;
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
    std::vector<std::int64_t> sizes = sizes_of(values);
    CollectiveQuestion question{*collective,
                                {parse_name<Algorithm>(values, "algorithm", algorithm_names),
                                 parse_name<Protocol>(values, "protocol", protocol_names)}};
    if (values.count("nodes")) question.nodes = values["nodes"].as<std::int64_t>();
    if (values.count("gpus")) question.gpus = values["gpus"].as<std::int64_t>();
    return {question, all_of(values, "scenario")[0], std::move(sizes), settings_of(values),
            values.count("json") > 0};
}

Json json_of(const CollectiveTime& row, bool flow, bool lucky) {
    Json out = {{"size", row.size},
                {"count", row.count},
                {"time_s", row.cost.seconds},
                {"latency_s", row.cost.latency_s},
                {"algbw_bytes_per_s", row.algbw},
                {"busbw_bytes_per_s", row.busbw},
                {"algorithm", to_text(row.choice.algorithm)},
                {"protocol", to_text(row.choice.protocol)},
                {"channels", row.cost.channels}};
    if (flow) out["analytic_time_s"] = row.analytic_s;
    if (lucky) out["network_draws"] = range_json(row.over_draws);
    return out;
}

Table table_of(const CollectiveTest& test, const std::vector<CollectiveTime>& rows, bool flow) {
    const bool lucky = test.draws() > 1;
    std::vector<Table::Column> columns = {">size", ">count", ">type",  ">redop",    ">root",
                                          ">time", ">algbw", ">busbw", "algorithm", "protocol"};
    std::vector<std::string> units = {"(B)",  "(elements)", "",       "", "",
                                      "(us)", "(GB/s)",     "(GB/s)", "", ""};
    if (flow) {
        columns.push_back(">analytic");
        units.push_back("(us)");
    }
    if (lucky) {
        columns.push_back({fmt::format("over {} draws", test.draws()), Table::Align::right});
        units.push_back("(us)");
    }
    Table table(columns);
    table.add(units);
    for (const CollectiveTime& row : rows) {
        std::vector<std::string> cells = {fmt::format("{}", row.size),
                                          fmt::format("{}", row.count),
                                          "float",
                                          reduces(test.collective()) ? "sum" : "none",
                                          has_root(test.collective()) ? "0" : "-1",
                                          fmt::format("{:.2f}", 1e6 * row.cost.seconds),
                                          fmt::format("{:.2f}", 1e-9 * row.algbw),
                                          fmt::format("{:.2f}", 1e-9 * row.busbw),
                                          to_text(row.choice.algorithm),
                                          to_text(row.choice.protocol)};
        if (flow) cells.push_back(fmt::format("{:.2f}", 1e6 * row.analytic_s));
        if (lucky) {
            cells.push_back(fmt::format("{:.2f} to {:.2f}", 1e6 * row.over_draws.low,
                                        1e6 * row.over_draws.high));
        }
        table.add(cells);
    }
    return table;
}

void print_head(const Scenario& s, const CollectiveTest& test, const Communicator& c) {
    fmt::print("# {} on {} {} in {} NVLink domain{}\n", to_text(test.collective()), c.ranks,
               s.node.gpu.name, c.domains, c.domains == 1 ? "" : "s");
    if (c.domains < 2) return;
    const bool flow = s.fidelity != Fidelity::analytic;
    fmt::print("# network: {:.1f} GB/s per domain and direction, {}\n", 1e-9 * c.network,
               c.transport);
    if (test.draws() > 1) {
        fmt::print(
            "# each time is the median of {} draws of the network's hashes; the last column "
            "has their range\n",
            test.draws());
    } else if (const std::string luck = draws_text(s); flow && !luck.empty()) {
        fmt::print("# {}\n", luck);
    }
    if (!flow) return;
    fmt::print("# held up by {}; an ideal network: {:.1f} GB/s\n", c.bottleneck,
               1e-9 * test.ideal().network);
    if (test.collective() == Collective::all_reduce) {
        fmt::print("# a double tree adds up {:.1f} GB/s over it; an ideal network: {:.1f} GB/s\n",
                   1e-9 * c.tree_network, 1e-9 * test.ideal().tree_network);
    }
    if (c.pat_network != c.network) {
        fmt::print("# PAT's rounds move {:.1f} GB/s over it; an ideal network: {:.1f} GB/s\n",
                   1e-9 * c.pat_network, 1e-9 * test.ideal().pat_network);
    }
}

// For the smallest, the middle and the largest size.
Prediction perf_prediction(const Scenario& s, const PerfArguments& args,
                           const ScenarioChanges& changes, const CollectiveTest& test,
                           const std::vector<CollectiveTime>& rows) {
    StandaloneCatalogue own = s.open_catalogue();
    std::vector<std::size_t> which = {0, rows.size() / 2, rows.size() - 1};
    which.erase(std::unique(which.begin(), which.end()), which.end());
    std::vector<Question> questions;
    std::vector<std::int64_t> sizes;
    for (const std::size_t i : which) {
        const CollectiveTime& row = rows[i];
        if (row.cost.seconds <= 0) continue;
        sizes.push_back(row.size);
        const ModelError error = read_collective_error(
            own.catalogue, test.communicator(args.sizes.back()), static_cast<double>(row.size));
        questions.push_back({fmt::format("{} B", row.size), row.cost.seconds,
                             test.times_on_draws(row.size), error,
                             "a run of nccl-tests on this network", false});
    }
    // What the job does changes nothing here, and a draw of it may be no plan.
    std::vector<Estimate> estimates = s.estimates;
    std::erase_if(estimates, [](const Estimate& each) { return each.path.starts_with("job."); });
    return predict(questions, estimates, draws_of(s), s.seed,
                   read_again(args.scenario, changes, [&](const Scenario& drawn) {
                       const CollectiveTest again(drawn, args.question);
                       return mapped(
                           sizes, [&](std::int64_t size) { return again.time(size).cost.seconds; });
                   }));
}

// A cluster on which nothing runs is enough: what its job would do changes nothing here, so that one that is
// not there, or has no step, is given one. Files that can't be read are told of when they are.
void need_no_job(const std::string& path, ScenarioChanges& changes) {
    Diagnostics ignored;
    Document scenario = parse_with_includes(read_file(path), path, ignored);
    for (const std::string& setting : changes.settings) {
        apply_setting(scenario, setting, ignored);
    }
    const Value& root = scenario.root;
    for (const char* other : {"jobs", "phase", "scheduler"}) {
        if (root.find(other) != nullptr) return;
    }
    const Value* job = root.find("job");
    const auto has = [&](const char* key) { return job != nullptr && job->find(key) != nullptr; };
    if (has("step") || has("model") || has("trace") || has("stage")) return;
    changes.settings.emplace_back("job.step.time=\"1 s\"");
    if (!has("checkpoint")) changes.settings.emplace_back("job.checkpoint.mode=\"none\"");
}

}  // namespace

int cmd_perf(const std::vector<std::string>& arguments) {
    const PerfArguments args = parse_perf(arguments);
    ScenarioChanges changes;
    changes.must_run = false;
    changes.overrides_read = std::make_shared<OverridesRead>();
    changes.settings = args.settings;
    need_no_job(args.scenario, changes);
    changes.windows = watched_windows();
    const Scenario s = load_scenario_file(args.scenario, changes);
    need_one_job(s, "perf");
    print_warnings(s.warnings);

    const CollectiveTest test(s, args.question);
    const Communicator& c = test.communicator(args.sizes.back());
    const bool flow = s.fidelity != Fidelity::analytic;
    const auto rows = mapped(args.sizes, [&](std::int64_t size) { return test.time(size); });
    double bus_sum = 0;
    for (const CollectiveTime& row : rows) bus_sum += row.busbw;
    const double bus_mean = bus_sum / static_cast<double>(rows.size());
    const Prediction prediction = perf_prediction(s, args, changes, test, rows);
    if (args.json) {
        const Json each = json_array(
            rows, [&](const CollectiveTime& row) { return json_of(row, flow, test.draws() > 1); });
        const Json out = {{"scenario", s.file},
                          {"version", version()},
                          {"collective", to_text(test.collective())},
                          {"ranks", c.ranks},
                          {"nvlink_domains", c.domains},
                          {"rows", each},
                          {"busbw_mean_bytes_per_s", bus_mean},
                          {"prediction", prediction_json(prediction)},
                          {"complete", s.limits->all().empty()}};
        fmt::print("{}\n", one_line(out));
    } else {
        print_head(s, test, c);
        fmt::print("#\n{}# Avg bus bandwidth    : {:.4g}\n", table_of(test, rows, flow).text(),
                   1e-9 * bus_mean);
        print_prediction(prediction, std::vector<ShowNumber>(prediction.answers.size(), time_text));
    }
    print_warnings(unread_overrides(s));
    return complain_of_limits(s.limits->all());
}

}  // namespace railyard
