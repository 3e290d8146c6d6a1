// railyard sensitivity: which inputs decide the answer?

#include <fmt/format.h>

#include <algorithm>

#include "tools/cli/cmd.h"
#include "tools/cli/metric_text.h"
#include "tools/cli/study_arguments.h"
#include "tools/cli/terminal.h"
#include "tools/cli/verdict_table.h"
#include "tools/program/json_text.h"
#include "tools/study/dead_knobs.h"
#include "tools/study/deciding_metric.h"
#include "tools/study/sensitivity.h"

namespace railyard {

namespace {

struct SensitivityArguments {
    StudyArguments study;
    std::vector<std::string> over;
    std::vector<std::string> over_log;
    bool estimates = true;
    bool knobs = true;
    SensitivityOptions options;
};

SensitivityArguments parse_sensitivity(const std::vector<std::string>& arguments) {
    SensitivityArguments out;
    CommandLine line(
        "railyard sensitivity SCENARIO.toml [options]",
        "Says which inputs decide the answer: each estimate that the scenario reads, within its\n"
        "printed range, and each key that --over gives a range. One at a time, by Morris's\n"
        "screening, and by their parts of the variance. Names keys of the file that change "
        "nothing.");
    line.positional("scenario", -1);
    line.add()("metric", po::value(&out.options.metric)->default_value(""),
               "Whose changes count: a metric of run --json; without it what decides in compare,\n"
               "goodput of one job and the mean bounded slowdown of many");
    line.add()("over", po::value(&out.over)->composing(),
               "A key and its range: --over job.checkpoint.interval=\"5 min:1 h\"");
    line.add()("over-log", po::value(&out.over_log)->composing(),
               "The same, even over the range's logarithm");
    line.add()("no-estimates", "Only what --over names");
    line.add()("no-knobs", "Don't look for keys that change nothing");
    line.add()("trajectories", a_count(8), "Trajectories of Morris's screening; 0: none");
    line.add()("samples", a_count(256), "Runs for the parts of the variance; 0: none");
    add_study_options(line);
    const auto values = line.parse(arguments);
    out.study = study_arguments(values, only_scenario(values, "sensitivity"));
    // Ends of a range differ on the same random numbers: a few replicas tell them apart.
    constexpr std::int64_t replicas_enough = 8;
    if (!values.count("replicas")) out.study.trials.replicas = replicas_enough;
    out.estimates = values.count("no-estimates") == 0;
    out.knobs = values.count("no-knobs") == 0;
    out.options.trajectories = count_option(values, "trajectories", 0);
    out.options.samples = count_option(values, "samples", 0);
    return out;
}

std::vector<KeyRange> ranges_of(const SensitivityArguments& args) {
    std::vector<KeyRange> ranges;
    for (const std::string& text : args.over) {
        ranges.push_back(KeyRange::parse(text, false, "--over"));
    }
    for (const std::string& text : args.over_log) {
        ranges.push_back(KeyRange::parse(text, true, "--over-log"));
    }
    return ranges;
}

Json json_of(const Sensitivity& r, std::size_t i) {
    const TornadoBar& bar = r.bars[i];
    Json out = {{"name", bar.input.name()},
                {"low", bar.input.at(0)},
                {"high", bar.input.at(1)},
                {"range_given", bar.input.range_given()},
                {"change_at_low", six_digits(bar.low)},
                {"change_at_high", six_digits(bar.high)}};
    if (i < r.effects.size()) {
        out["mu_star"] = six_digits(r.effects[i].mean_absolute);
        out["mu"] = six_digits(r.effects[i].mean);
        out["sigma"] = six_digits(r.effects[i].deviation);
    }
    if (r.fit && i < r.deciding) {
        const FirstOrderIndex& index = r.fit->inputs[i];
        out["first_order"] = six_digits(index.index);
        out["first_order_ci95"] = {six_digits(index.ci95.low), six_digits(index.ci95.high)};
    }
    return out;
}

void print_json(const Scenario& s, const SensitivityArguments& args, const Sensitivity& r,
                const std::vector<Knob>& knobs) {
    Json inputs = Json::array();
    for (std::size_t i = 0; i < r.bars.size(); ++i) inputs.push_back(json_of(r, i));
    Json dead = Json::array();
    for (const Knob& knob : knobs) {
        if (knob.dead) dead.push_back({{"key", knob.key}, {"tried", knob.tried}});
    }
    Json out = {{"scenario", s.file},
                {"version", version()},
                {"seed", s.seed},
                {"replicas", r.base.count},
                {"metric", args.options.metric},
                {"base", six_digits(r.base.mean)},
                {"inputs", inputs},
                {"dead_keys", dead},
                {"runs", r.runs},
                {"complete", !r.interrupted}};
    if (r.fit) {
        out["fit"] = {
            {"samples", r.samples_possible},   {"degree", r.fit->degree},
            {"r2", six_digits(r.fit->r2)},     {"q2", six_digits(r.fit->q2)},
            {"mean", six_digits(r.fit->mean)}, {"deviation", six_digits(r.fit->deviation)}};
    }
    fmt::print("{}\n", one_line(out));
}

// Shares are told in points of a hundred.
class Shown {
  public:
    explicit Shown(const Metric& metric) : share_(is_percentage(metric.name)) {}
    std::string change(double v) const {
        return share_ ? fmt::format("{:+.3f}", 100 * v) : fmt::format("{:+.4g}", v);
    }
    std::string change(const std::optional<double>& v) const {
        return v ? change(*v) : std::string("impossible");
    }
    std::string size(double v) const {
        return share_ ? fmt::format("{:.3f}", 100 * v) : fmt::format("{:.4g}", v);
    }
    std::string value(double v) const { return share_ ? percent(v) : fmt::format("{:.6g}", v); }
    const char* unit() const { return share_ ? " (points)" : ""; }

  private:
    bool share_;
};

void print_table(const Sensitivity& r, const Shown& shown) {
    constexpr int bar_width = 12;
    Table table(
        {"input", "tried", ">at low", ">at high", "", ">mu*", ">sigma", ">first order", "95 %"});
    const double widest = r.deciding > 0 ? std::max(1e-300, r.bars[0].swing()) : 1;
    for (std::size_t i = 0; i < r.deciding; ++i) {
        const TornadoBar& b = r.bars[i];
        const bool screened = i < r.effects.size();
        std::string index = "-";
        std::string interval = "";
        if (r.fit) {
            const FirstOrderIndex& first = r.fit->inputs[i];
            index = fmt::format("{:.1f} %", 100 * first.index);
            interval = fmt::format("{:.1f} to {:.1f}", 100 * first.ci95.low, 100 * first.ci95.high);
        }
        table.add({b.input.name(),
                   fmt::format("{} to {}{}", b.input.at(0), b.input.at(1),
                               b.input.range_given() ? "" : " *"),
                   shown.change(b.low), shown.change(b.high),
                   coloured(bar(b.swing() / widest, bar_width), Colour::yellow),
                   screened ? shown.size(r.effects[i].mean_absolute) : "-",
                   screened ? shown.size(r.effects[i].deviation) : "-", index, interval});
    }
    fmt::print("\n{}", table.text());
}

void print_notes(const Sensitivity& r, std::int64_t samples) {
    print_note(
        "at low, at high: this input alone; mu*, sigma: what a move over the whole range changes, "
        "mean and spread");
    print_note(
        "first order: its part of the variance when all vary at once, each evenly over its range");
    if (r.fit) {
        fmt::print(
            "  fit of {}{} runs, polynomials of degree {}: R2 {:.3f}, on runs left out {:.3f}; "
            "what is missing to 1 comes from inputs together\n",
            r.samples_possible,
            static_cast<std::int64_t>(r.samples_possible) < samples
                ? fmt::format(" of {} (the others make no design)", samples)
                : std::string(),
            r.fit->degree, r.fit->r2, r.fit->q2);
    }
}

void print_idle(const Sensitivity& r, const std::vector<Knob>& knobs) {
    std::vector<std::string> nothing;
    std::vector<std::string> little;
    for (std::size_t i = r.deciding; i < r.bars.size(); ++i) {
        (r.bars[i].largest() == 0 ? nothing : little).push_back(r.bars[i].input.name());
    }
    const auto list = [](const char* what, const std::vector<std::string>& names) {
        if (names.empty()) return;
        fmt::print("\n  {}:\n    {}\n", what, fmt::join(names, "\n    "));
    };
    list("less than a thousandth of the largest", little);
    list("without effect within their ranges", nothing);
    std::vector<std::string> dead;
    for (const Knob& knob : knobs) {
        if (knob.dead) {
            dead.push_back(fmt::format("{} = {} (tried {})", knob.key, knob.value,
                                       fmt::join(knob.tried, ", ")));
        }
    }
    if (knobs.empty()) return;
    if (dead.empty()) {
        fmt::print(
            "\n  no dead keys: each of the {} in the file that could be turned changes something\n",
            std::ranges::count_if(knobs, [](const Knob& knob) { return !knob.tried.empty(); }));
    } else {
        fmt::print("\n  dead keys, which change nothing that run prints:\n    {}\n",
                   fmt::join(dead, "\n    "));
    }
}

// The part of the answer that holds whatever one of them is, and those that decide the rest.
void print_survival(const Sensitivity& r, const Shown& shown, const std::string& metric) {
    if (r.deciding == 0) {
        fmt::print("\n  {} hangs on none of them\n", metric);
        return;
    }
    double low = r.base.mean;
    double high = r.base.mean;
    bool impossible = false;
    for (const TornadoBar& bar : r.bars) {
        for (const std::optional<double>& end : {bar.low, bar.high}) {
            low = std::min(low, r.base.mean + end.value_or(0));
            high = std::max(high, r.base.mean + end.value_or(0));
            impossible |= !end;
        }
    }
    constexpr std::size_t named_max = 3;
    std::vector<std::string> names;
    for (std::size_t i = 0; i < std::min(named_max, r.deciding); ++i) {
        names.push_back(r.bars[i].input.name());
    }
    fmt::print(
        "\n  with any one of them at an end of its range {} is {} to {}{}; it hangs most on {}\n",
        metric, shown.value(low), shown.value(high),
        impossible ? " where there is a design at all" : "", fmt::join(names, ", "));
    const bool default_range =
        std::ranges::any_of(r.bars, [](const TornadoBar& bar) { return !bar.input.range_given(); });
    if (default_range) print_default_range();
}

void print_text(const Scenario& s, const SensitivityArguments& args, const Metric& metric,
                const Sensitivity& r, const std::vector<Knob>& knobs) {
    const Shown shown(metric);
    fmt::print("{}\n  {} {}; changes{} of {} that {} it, of {}\n", coloured(s.title, Colour::bold),
               args.options.metric, shown.value(r.base.mean), shown.unit(),
               counted(r.deciding, "input"), r.deciding == 1 ? "decides" : "decide", r.bars.size());
    if (r.deciding > 0) {
        print_table(r, shown);
        print_notes(r, args.options.samples);
    }
    print_idle(r, knobs);
    print_survival(r, shown, args.options.metric);
    fmt::print("\n  {} runs of {} on the same random numbers, seed {}\n", r.runs,
               counted(r.base.count, "replica"), s.seed);
}

}  // namespace

int cmd_sensitivity(const std::vector<std::string>& arguments) {
    SensitivityArguments args = parse_sensitivity(arguments);
    StudyArguments& study = args.study;
    const Scenario scenario = load_scenario(study.trials.text, study.trials.file, study.changes);
    if (!can_start(scenario)) return exit_stuck;
    const std::vector<KeyRange> ranges = ranges_of(args);
    const std::vector<WorkBasis> designs =
        designs_at_ends(study.trials, study.changes, scenario, ranges);
    if (args.options.metric.empty()) args.options.metric = deciding_metric(designs).metric;
    const Metric metric = find_metric(scenario, args.options.metric);
    const std::vector<UncertainInput> inputs =
        what_is_uncertain(scenario, args.options.metric, ranges, args.estimates);

    Sensitivity result;
    std::vector<Knob> knobs;
    {
        Progress progress("runs");
        study.trials.progress = progress.updates();
        result = find_sensitivity(study.trials, study.changes, scenario.seed, inputs, args.options);
        constexpr std::int64_t replicas_for_knobs = 2;
        study.trials.replicas = replicas_for_knobs;
        if (args.knobs && !result.interrupted) knobs = turn_knobs(study.trials, study.changes);
    }
    if (study.json) {
        print_json(scenario, args, result, knobs);
    } else {
        print_text(scenario, args, metric, result, knobs);
    }
    if (!interrupted()) return exit_ok;
    fmt::print(stderr, "railyard: interrupted: this is what {} runs have shown\n", result.runs);
    return exit_interrupted;
}

}  // namespace railyard
