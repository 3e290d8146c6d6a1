// railyard breakeven: at what value of a key does the verdict between two designs flip?

#include <fmt/format.h>

#include <algorithm>

#include "tools/cli/cmd.h"
#include "tools/cli/cost_report.h"
#include "tools/cli/metric_text.h"
#include "tools/cli/study_arguments.h"
#include "tools/cli/terminal.h"
#include "tools/cli/verdict_table.h"
#include "tools/program/json_text.h"
#include "tools/program/lists.h"
#include "tools/study/breakeven.h"

namespace railyard {

namespace {

struct BreakevenArguments : BreakevenDesigns {
    std::int64_t scan_points;
    bool json;
    bool estimates;
};

std::string text_option(const po::variables_map& values, const char* option) {
    if (values.count(option)) return values[option].as<std::string>();
    throw ScenarioError(fmt::format("breakeven needs --{}", option),
                        "railyard breakeven KEY A.toml B.toml --from VALUE --to VALUE");
}

// With two files --set changes both; with one it makes B of A.
void read_designs(const po::variables_map& values, const std::vector<std::string>& files,
                  KeyedDesign& a, KeyedDesign& b) {
    const StudyArguments first = study_arguments(values, files[0]);
    a = {first.trials, first.changes};
    b = a;
    if (files.size() == 2) {
        b.trials = study_arguments(values, files[1]).trials;
        return;
    }
    const std::vector<std::string> settings = settings_of(values);
    if (settings.empty()) {
        throw ScenarioError("breakeven compares two designs, found one",
                            "name a second file, or make it of the first with --set KEY=VALUE");
    }
    std::erase_if(a.changes.settings,
                  [&](const std::string& setting) { return contains(settings, setting); });
}

// A --set of the key itself would be lost where the key gets the range's values.
void refuse_lost_setting(const BreakevenArguments& args) {
    std::string lost;
    for (const KeyedDesign* design : {&args.a, &args.b}) {
        for (const std::string& setting : design->changes.settings) {
            if (!setting.starts_with(args.range.key() + "=")) continue;
            if (!design->has_key) return;
            lost = setting;
        }
    }
    if (lost.empty()) return;
    throw ScenarioError(fmt::format("--set {}: breakeven gives that key the range's values", lost),
                        "--in a leaves the key as it is in B");
}

BreakevenArguments parse_breakeven(const std::vector<std::string>& arguments) {
    CommandLine line(
        "railyard breakeven KEY A.toml B.toml --from VALUE --to VALUE [options]",
        "Finds the value of KEY at which the better of two designs becomes the worse, on the same\n"
        "random numbers. With one file, --set makes the second design of it; with two, it changes "
        "both.");
    line.positional("scenario", -1);
    line.add()("from", a_text(), "The range's lower end: 10, \"5 min\"");
    line.add()("to", a_text(), "The range's upper end");
    line.add()("log", "Spread what is tried over the range's logarithm");
    line.add()("in", a_text("both"), "Where the key is set: both, a, b");
    line.add()("metric", a_text(),
               "What is compared: a metric of run --json; without it as 'compare' chooses it");
    line.add()("no-estimates", "Don't try the estimates that the verdict hangs on");
    line.add()("points", a_count(9), "Values of the key to look for flips between, 2 or more");
    add_study_options(line);
    const auto values = line.parse(arguments);

    const std::vector<std::string> names = all_of(values, "scenario");
    if (names.size() < 2 || names.size() > 3) {
        throw ScenarioError(
            fmt::format("breakeven needs a key and one or two scenario files, found {}{}",
                        names.size(), names.size() == 1 ? " word" : " words"),
            "railyard breakeven KEY A.toml B.toml --from VALUE --to VALUE");
    }
    const std::string from = text_option(values, "from");
    const std::string to = text_option(values, "to");
    const KeyRange range(names[0], from, to, values.count("log") > 0, names[0]);
    const std::int64_t points = count_option(values, "points", 2);
    BreakevenArguments out{{range, text_of(values, "metric")},
                           points,
                           values.count("json") > 0,
                           values.count("no-estimates") == 0};
    read_designs(values, {names.begin() + 1, names.end()}, out.a, out.b);
    const std::string in = values["in"].as<std::string>();
    if (in != "both" && in != "a" && in != "b") {
        throw ScenarioError(fmt::format("--in: expected both, a or b, found '{}'", in));
    }
    out.a.has_key = in != "b";
    out.b.has_key = in != "a";
    refuse_lost_setting(out);
    return out;
}

// Both ends of the range make a design whose job can start, and pairs have the same random numbers. False:
// the reason is on standard error.
bool check_designs(BreakevenArguments& args) {
    std::vector<Scenario> designs;
    for (const KeyedDesign* design : {&args.a, &args.b}) {
        for (const double x : {args.range.low(), args.range.high()}) {
            designs.push_back(load_at(args, *design, x));
            if (!can_start(designs.back())) return false;
        }
    }
    choose_metric(args, designs);
    if (args.a.trials.prices) warn_of_prices_missing({{"A", &designs[0]}, {"B", &designs[2]}});
    return true;
}

BreakevenResult search(const BreakevenArguments& args) {
    Progress progress("values");
    std::int64_t done = 0;
    constexpr std::int64_t roots_expected = 25;
    return find_breakeven(args, static_cast<std::size_t>(args.scan_points), [&] {
        progress.update(++done, std::max(done, args.scan_points + roots_expected));
    });
}

void print_json(const BreakevenArguments& args, const BreakevenResult& r,
                const std::optional<EstimatesAtEnds>& estimates) {
    const Json scan = json_array(r.scan, [&](const DifferenceAt& d) -> Json {
        return {
            {"value", args.range.value(d.x)},      {"a", json_number(d.pairs.mean_a)},
            {"b", json_number(d.pairs.mean_b)},    {"difference", json_number(d.pairs.difference)},
            {"ci95", ends_json(d.pairs.interval)}, {"verdict", verdict_name(d.pairs.verdict)}};
    });
    const auto text = [&](const std::optional<double>& x) {
        return x ? Json(args.range.value(*x)) : Json(nullptr);
    };
    const Json crossings = json_array(r.crossings, [&](const Crossing& c) -> Json {
        return {{"value", args.range.value(c.x)},
                {"number", c.x},
                {"before", c.before},
                {"ci95", {text(c.low), text(c.high)}},
                {"ci95_numbers", {json_number(c.low), json_number(c.high)}},
                {"better_below", verdict_name(c.below)}};
    });
    Json out = {{"key", args.range.key()},      {"a", args.a.trials.file},
                {"b", args.b.trials.file},      {"metric", args.metric},
                {"version", version()},         {"flips", !r.crossings.empty()},
                {"crossings", crossings},       {"scan", scan},
                {"evaluations", r.evaluations}, {"complete", !r.interrupted}};
    if (estimates) {
        out["estimates"] = {{"at_low", verdict_estimates_json(estimates->low, "A", "B")},
                            {"at_high", verdict_estimates_json(estimates->high, "A", "B")},
                            {"turning", estimates->turning()},
                            {"survives", estimates->turning().empty()}};
    }
    fmt::print("{}\n", one_line(out));
}

std::string name_of(Verdict verdict) {
    constexpr const char* names[] = {"A", "B", "equal", "undecided"};
    return names[static_cast<std::size_t>(verdict)];
}

void print_designs(const BreakevenArguments& args) {
    const auto text = [](const KeyedDesign& design) {
        const std::vector<std::string>& settings = design.changes.settings;
        return settings.empty()
                   ? design.trials.file
                   : fmt::format("{} with {}", design.trials.file, fmt::join(settings, ", "));
    };
    const bool both = args.a.has_key && args.b.has_key;
    fmt::print("A is {}\nB is {}\n{} is set in {}; compared by {}, {} is better{}{}\n",
               text(args.a), text(args.b), args.range.key(),
               both             ? "both"
               : args.a.has_key ? "A"
                                : "B",
               args.metric, better_name(better_of(args.metric)), args.why.empty() ? "" : ": ",
               args.why);
}

void print_scan(const BreakevenArguments& args, const BreakevenResult& r) {
    Table table(
        {{args.range.key(), Table::Align::right}, ">A", ">B", ">B - A", "95 % interval", "better"});
    constexpr int decimals = 3;  // near a crossing differences are small
    const auto mean = [&](double v) { return metric_text(args.metric, v, decimals); };
    const auto difference = [&](double v) { return difference_text(args.metric, v, decimals); };
    for (const DifferenceAt& d : r.scan) {
        const PairedComparison& p = d.pairs;
        table.add({args.range.short_value(d.x), mean(p.mean_a), mean(p.mean_b),
                   difference(p.difference),
                   interval_text(p.interval, difference, "one replica: none"), name_of(p.verdict)});
    }
    fmt::print("\n{}", table.text());
}

std::string open_text(const KeyRange& range, const Crossing& c) {
    if (c.low && c.high && range.short_value(*c.low) == range.short_value(*c.high)) return "";
    const auto end = [&](const std::optional<double>& x, const char* none) {
        return x ? range.short_value(*x) : std::string(none);
    };
    return fmt::format("  the verdict is open (95 %) from {} to {}\n",
                       end(c.low, "the range's lower end"), end(c.high, "the range's upper end"));
}

void print_crossing(const KeyRange& range, const Crossing& c) {
    const char* below = c.below == Verdict::first ? "A" : "B";
    const char* above = c.below == Verdict::first ? "B" : "A";
    if (range.whole()) {
        fmt::print("  {} is better up to {}, {} from {} on\n", below, range.short_value(c.before),
                   above, range.short_value(c.x));
    } else {
        fmt::print("  {} is better below {}, {} above\n", below,
                   coloured(range.short_value(c.x), Colour::bold), above);
    }
}

void print_verdict(const BreakevenArguments& args, const BreakevenResult& r) {
    fmt::print("\n");
    for (std::size_t i = 0; i < r.crossings.size(); ++i) {
        print_crossing(args.range, r.crossings[i]);
        const std::string open = open_text(args.range, r.crossings[i]);
        const bool repeated =
            i + 1 < r.crossings.size() && open == open_text(args.range, r.crossings[i + 1]);
        if (!repeated) fmt::print("{}", open);
    }
    if (!r.crossings.empty() || r.scan.empty()) return;
    const auto decided =
        std::ranges::find_if(r.scan, [](const DifferenceAt& d) { return d.pairs.difference != 0; });
    if (decided == r.scan.end()) {
        fmt::print("  no flip in the range: A and B are the same, replica by replica\n");
        return;
    }
    const bool b = (decided->pairs.difference > 0) == (better_of(args.metric) == Better::higher);
    const bool open = std::ranges::any_of(
        r.scan, [](const DifferenceAt& d) { return d.pairs.verdict == Verdict::undecided; });
    fmt::print("  no flip in the range: {} is better at every value that was tried{}\n",
               b ? "B" : "A", open ? ", by the mean; at some the interval leaves it open" : "");
}

// At each end of the key's range, and whether the crossing stays between them.
void print_estimates(const BreakevenArguments& args, const EstimatesAtEnds& estimates) {
    for (const VerdictEstimates* at : {&estimates.low, &estimates.high}) {
        const double x = at == &estimates.low ? args.range.low() : args.range.high();
        fmt::print("\n  with {} = {}:", args.range.key(), args.range.short_value(x));
        print_verdict_estimates(*at, "A", "B");
    }
    if (estimates.low.default_ranges || estimates.high.default_ranges) print_default_range();
    const std::vector<std::string> turning = estimates.turning();
    const bool crosses = estimates.crosses();
    const char* stays =
        crosses ? "the crossing stays in the range" : "there is no crossing in the range";
    const char* leaves = crosses ? "it leaves the range" : "it comes into the range";
    if (turning.empty()) {
        fmt::print("\n  {} at both ends of each of these estimates\n", stays);
    } else {
        fmt::print("\n  {}, but at an end of these {}:\n    {}\n", stays, leaves,
                   fmt::join(turning, "\n    "));
    }
}

}  // namespace

int cmd_breakeven(const std::vector<std::string>& arguments) {
    BreakevenArguments args = parse_breakeven(arguments);
    if (!check_designs(args)) return exit_stuck;
    const BreakevenResult result = search(args);
    if (result.scan.empty()) throw Interrupted();
    std::optional<EstimatesAtEnds> estimates;
    if (args.estimates && !result.interrupted) {
        Progress progress("estimates");
        args.a.trials.progress = progress.updates();
        estimates = estimates_at_ends(args, result);
    }
    if (args.json) {
        print_json(args, result, estimates);
    } else {
        print_designs(args);
        print_scan(args, result);
        print_verdict(args, result);
        fmt::print("\n  {} of replicas at each of {} values\n",
                   counted(result.scan[0].pairs.pairs, "pair"), result.evaluations);
        if (estimates) print_estimates(args, *estimates);
    }
    if (!result.interrupted) return exit_ok;
    fmt::print(stderr, "railyard: interrupted: this is what {} values have shown\n",
               result.evaluations);
    return exit_interrupted;
}

}  // namespace railyard
