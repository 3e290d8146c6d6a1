// railyard calibrate: numbers of the models fitted to the user's own measurements.

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <set>

#include "sim/error.h"
#include "tools/cli/calibration_text.h"
#include "tools/cli/cmd.h"
#include "tools/cli/study_arguments.h"
#include "tools/cli/terminal.h"
#include "tools/program/lists.h"
#include "tools/program/output_file.h"
#include "tools/study/deciding_metric.h"

namespace railyard {

namespace {

struct CalibrateArguments {
    StudyArguments study;
    std::string scenario;
    std::vector<TableFiles> tables;
    std::string output;
    std::string metric;
    bool next = false;
    bool rows = false;
    bool json = false;

    std::vector<std::string> inputs() const {
        std::vector<std::string> out = {scenario};
        for (const TableFiles& table : tables) {
            out.push_back(table.csv);
            if (!table.description.empty()) out.push_back(table.description);
        }
        return out;
    }
};

CalibrateArguments parse_calibrate(const std::vector<std::string>& arguments) {
    CalibrateArguments out;
    CommandLine line(
        "railyard calibrate SCENARIO.toml [[TABLE.toml] TABLE.csv...] -o MINE.toml",
        "Fits numbers of the catalogue to measurements, within the ranges that the numbers have.\n"
        "A table and its description are those of 'railyard verify'. Writes an\n"
        "[override] for scenarios to include.");
    line.positional("what", -1);
    line.add()("output,o", po::value(&out.output)->default_value(""),
               "The file to write; without it, nothing is written");
    line.add()("what-next", po::bool_switch(&out.next),
               "Which rows without a measured value would, once measured, leave the least doubt\n"
               "about the scenario's answer");
    line.add()("metric", po::value(&out.metric)->default_value(""),
               "The answer: a metric of run --json; without it what decides in compare");
    line.add()("rows", po::bool_switch(&out.rows),
               "Print every measurement, not only those that are furthest off");
    line.add_json();
    line.add_settings();
    line.add()("replicas", a_text(), "Number of replicas of the scenario");
    line.add_threads();
    const auto values = line.parse(arguments);
    const std::vector<std::string> what = all_of(values, "what");
    if (what.size() < 2) {
        throw ScenarioError("calibrate needs a scenario and at least one table of measurements",
                            "railyard calibrate SCENARIO.toml TABLE.toml TABLE.csv -o MINE.toml");
    }
    out.scenario = what[0];
    out.study = study_arguments(values, out.scenario);
    constexpr std::int64_t replicas_enough = 8;  // on the same random numbers a few tell slopes
    if (!values.count("replicas")) out.study.trials.replicas = replicas_enough;
    out.tables = named_tables({what.begin() + 1, what.end()});
    out.json = values.count("json") > 0;
    return out;
}

// The estimates of rows and scenario that are numbers of the catalogue or of the scenario's own entries,
// under the catalogue's names.
std::vector<Estimate> catalogue_estimates(std::vector<Estimate> of_rows,
                                          const std::vector<Estimate>& of_scenario,
                                          const OwnEntries* own) {
    constexpr std::string_view overridden = "override.";
    of_rows.insert(of_rows.end(), of_scenario.begin(), of_scenario.end());
    std::vector<Estimate> out;
    std::set<std::string> seen;
    for (Estimate& each : of_rows) {
        if (each.path.starts_with(overridden)) each.path.erase(0, overridden.size());
        const bool range = free_number(each).spread > 0 && each.high_factor > 0;
        if (range && catalogue_place(each.path, own) && seen.insert(each.path).second) {
            out.push_back(std::move(each));
        }
    }
    return out;
}

void fit(CalibrationAnswer& out, std::size_t tables) {
    const auto measured = mapped(out.measurements.rows(), &Measurement::measured);
    Progress line("passes");
    std::int64_t done = 0;
    // Two looks at each number, then some more at those that matter.
    const auto expected = static_cast<std::int64_t>((2 * out.numbers.size() + 60) * tables);
    out.found = calibrate(out.numbers, measured, [&](const std::vector<Perturbations>& variants) {
        return out.measurements.figures(variants, [&] {
            ++done;
            line.update(done, std::max(done, expected));
        });
    });
    const bool told = std::ranges::any_of(out.found.numbers, &FittedNumber::read);
    if (told) return;
    throw ScenarioError("the measurements tell nothing of any number of the catalogue",
                        "what they are simulated with must read an estimate: 'railyard run' of "
                        "their description lists them");
}

// The scenario's answer with what was found, and on what of it that hangs.
void ask(CalibrationAnswer& out, const StudyArguments& study, bool next) {
    const Figures answers = [&](const std::vector<Perturbations>& variants) {
        TrialOptions trials = study.trials;
        trials.metrics = {out.metric};
        Progress line("runs");
        trials.progress = line.updates();
        auto means = means_with(trials, study.changes, variants);
        if (means.size() < variants.size()) throw Interrupted();
        return means;
    };
    const std::vector<double> logs = mapped(out.found.numbers, [](const FittedNumber& number) {
        return found_new(number) ? number.log : 0;
    });
    for (const std::vector<double>& answer : answers({{}, scaled(out.numbers, logs)})) {
        out.answers.push_back(answer.empty() ? std::nan("") : answer[0]);
    }
    if (!next) return;
    if (!(out.answers[1] > 0)) {
        throw ScenarioError(fmt::format("{} is {:.4g}: no measurement shrinks its interval",
                                        out.metric, out.answers[1]),
                            "another --metric that is more than 0");
    }
    out.slopes = slopes_at(out.numbers, logs, answers)[0];
}

// The scenario's own keys win over those of files that it includes.
void warn_of_hidden(const Scenario& scenario) {
    if (scenario.overrides.members.empty()) return;
    fmt::print(stderr,
               "{}: warning: it has an [override]: what stands there holds over what is written "
               "here for the same numbers\n",
               visible(scenario.file));
}

// Reads the overlay back before it is written, so that mistakes are reported first.
void try_overlay(const std::string& text, const Scenario& scenario) {
    Diagnostics diagnostics;
    const Document document = parse_document(text, "overlay", diagnostics);
    diagnostics.raise_if_any();
    StandaloneCatalogue own(ValueChoice::corrected, document.root.find("override"), "overlay", {},
                            nullptr, scenario.own_entries);
    own.diagnostics.raise_if_any();
}

void require_measured(const Measurements& measurements) {
    const bool any = std::ranges::any_of(measurements.rows(),
                                         [](const auto& row) { return row.measured.value > 0; });
    if (any) return;
    throw ScenarioError("no row has a measurement that can be simulated",
                        "'railyard verify --rows' of the same tables says what it makes of them");
}

}  // namespace

int cmd_calibrate(const std::vector<std::string>& arguments) {
    const CalibrateArguments args = parse_calibrate(arguments);
    const StudyArguments& study = args.study;
    const Scenario scenario = load_scenario(study.trials.text, study.trials.file, study.changes);
    if (!can_start(scenario)) return exit_stuck;
    std::string metric = args.metric;
    if (metric.empty()) metric = deciding_metric(std::vector{work_of(scenario)}).metric;
    find_metric(scenario, metric);
    std::vector<NamedTable> tables = read_tables(args.tables);
    std::optional<OutputFile> file;
    if (!args.output.empty()) file.emplace(args.output, args.inputs());

    // What is overridden for the scenario is so for what was measured.
    std::vector<std::string> settings;
    Document overrides;
    overrides.name = "--set";
    Diagnostics diagnostics;
    for (const std::string& setting : study.changes.settings) {
        if (!setting.starts_with("override.")) continue;
        settings.push_back(setting);
        apply_setting(overrides, setting, diagnostics);
    }
    diagnostics.raise_if_any();
    const Measurements measurements(std::move(tables), settings, overrides.root.find("override"),
                                    study.trials.threads);
    print_warnings(measurements.warnings());
    for (Diagnostic row : measurements.unused()) {
        row.help = "this row is not used";
        print_warnings({row});
    }
    require_measured(measurements);
    CalibrationAnswer answer{
        scenario,
        measurements,
        catalogue_estimates(measurements.estimates(),
                            args.next ? scenario.estimates : std::vector<Estimate>{},
                            scenario.own_entries.get()),
        {}};
    answer.numbers = mapped(answer.estimates, free_number);
    answer.metric = metric;
    fit(answer, args.tables.size());
    ask(answer, study, args.next);
    if (file) {
        const std::string text =
            calibration_overlay(answer, args.scenario, mapped(args.tables, &TableFiles::csv));
        try_overlay(text, scenario);
        warn_of_hidden(scenario);
        file->write(text);
        file->keep();
    }
    if (args.json) {
        fmt::print("{}\n", calibration_json(answer));
    } else {
        print_calibration(answer, args.rows);
    }
    return exit_ok;
}

}  // namespace railyard
