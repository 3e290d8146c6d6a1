// railyard calibrate: numbers of the models fitted to the user's own measurements.

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <set>

#include "sim/error.h"
#include "tools/cli/calibration_overlay.h"
#include "tools/cli/cmd.h"
#include "tools/cli/metric_text.h"
#include "tools/cli/study_arguments.h"
#include "tools/cli/terminal.h"
#include "tools/program/json_text.h"
#include "tools/program/lists.h"
#include "tools/program/output_file.h"
#include "tools/study/deciding_metric.h"
#include "tools/verify/measurements.h"

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

// "+12.3 %": how much more is simulated than was measured.
std::string off_text(double log) {
    return fmt::format("{:+.1f} %", 100 * std::expm1(log));
}

// The share that nine in ten are within of what has this variance of its logarithm.
double share90(double variance) {
    return std::expm1(ninety * std::sqrt(std::max(0.0, variance)));
}

Json interval_json(const Interval& interval) {
    return {six_digits(interval.low), six_digits(interval.high)};
}

Json number_json(const FittedNumber& number, const Estimate& before) {
    Json out = {{"number", number.number.path},
                {"before", before.value},
                {"found_anew", found_new(number)},
                {"read", number.read},
                {"factor", six_digits(std::exp(number.log))},
                {"factor_90", interval_json(number.factor90())}};
    if (number.correlation != 0) out["correlation"] = six_digits(number.correlation);
    return out;
}

// What is simulated, before and after, stands beside what was measured; null where nothing was.
Json measurement_json(const Measurement& of, const FittedMeasurement& row) {
    const double unit = row.used ? of.measured.value : 1;
    Json out = {{"where", of.place()},
                {"row", of.row},
                {"quantity", of.quantity},
                {"measured", row.used ? six_digits(of.measured.value) : Json(nullptr)},
                {"before", six_digits(unit * std::exp(row.before))},
                {"fitted", six_digits(unit * std::exp(row.after))}};
    if (!row.used) return out;
    out["left_out"] = six_digits(unit * std::exp(row.left_out));
    out["deviation"] = six_digits(row.deviation);
    out["outlier"] = row.outlier();
    return out;
}

class Calibration {
  public:
    Calibration(const CalibrateArguments& args, const Scenario& scenario,
                const Measurements& measurements)
        : args_(args), scenario_(scenario), measurements_(measurements) {
        estimates_ = catalogue_estimates(measurements.estimates(),
                                         args.next ? scenario.estimates : std::vector<Estimate>{},
                                         scenario.own_entries.get());
        for (const Estimate& each : estimates_) numbers_.push_back(free_number(each));
    }

    void fit() {
        const std::vector<Measured> measured = mapped(measurements_.rows(), &Measurement::measured);
        Progress line("passes");
        std::int64_t done = 0;
        // Two looks at each number, then some more at those that matter.
        const auto expected =
            static_cast<std::int64_t>((2 * numbers_.size() + 60) * args_.tables.size());
        found_ = calibrate(numbers_, measured, [&](const std::vector<Perturbations>& variants) {
            return measurements_.figures(variants, [&] {
                ++done;
                line.update(done, std::max(done, expected));
            });
        });
        const bool told = std::ranges::any_of(found_.numbers, &FittedNumber::read);
        if (told) return;
        throw ScenarioError("the measurements tell nothing of any number of the catalogue",
                            "what they are simulated with must read an estimate: 'railyard run' of "
                            "their description lists them");
    }

    void ask(const std::string& metric) {
        metric_ = find_metric(scenario_, metric);
        const std::vector<double> logs = mapped(found_.numbers, [](const FittedNumber& number) {
            return found_new(number) ? number.log : 0;
        });
        for (const std::vector<double>& answer : answers({{}, scaled(numbers_, logs)})) {
            answers_.push_back(answer.empty() ? std::nan("") : answer[0]);
        }
        if (!args_.next) return;
        if (!(answers_[1] > 0)) {
            throw ScenarioError(fmt::format("{} is {:.4g}: no measurement shrinks its interval",
                                            metric, answers_[1]),
                                "another --metric that is more than 0");
        }
        slopes_ =
            slopes_at(numbers_, logs, [&](const auto& variants) { return answers(variants); })[0];
    }

    std::string overlay() const {
        const std::vector<std::string> files = mapped(args_.tables, &TableFiles::csv);
        return calibration_overlay(found_, estimates_, args_.scenario, scenario_.own_entries.get(),
                                   files);
    }

    void print() const {
        const auto told = std::ranges::count_if(found_.numbers, found_new);
        fmt::print("{}\n  {} numbers of the catalogue found anew, of {} that were read\n",
                   coloured(visible(scenario_.title), Colour::bold), told, numbers_.size());
        print_numbers();
        print_measurements();
        print_answer();
        if (args_.next) print_next();
        if (measurements_.guessed() > 0) {
            fmt::print(
                "\n  of {} neither tolerance.row nor the model says how exact they are: 10 % is "
                "taken to hold nine in ten\n",
                counted(measurements_.guessed(), "row"));
        }
        if (measurements_.limits() > 0) {
            fmt::print("\n  {} that only say at most or at least so much were not used\n",
                       counted(measurements_.limits(), "row"));
        }
        print_outliers();
    }

    std::string json() const {
        Json out = {{"scenario", scenario_.title},
                    {"converged", found_.converged},
                    {"steps", found_.steps},
                    {"numbers", Json::array()},
                    {"measurements", Json::array()},
                    {"answer",
                     {{"metric", metric_.name},
                      {"before", six_digits(answers_[0])},
                      {"with_these_numbers", six_digits(answers_[1])}}}};
        for (std::size_t i = 0; i < estimates_.size(); ++i) {
            out["numbers"].push_back(number_json(found_.numbers[i], estimates_[i]));
            if (found_.numbers[i].correlation == 0) continue;
            out["numbers"].back()["goes_with"] = numbers_[found_.numbers[i].partner].path;
        }
        for (std::size_t i = 0; i < found_.measurements.size(); ++i) {
            out["measurements"].push_back(
                measurement_json(measurements_.rows()[i], found_.measurements[i]));
        }
        if (args_.next) {
            out["answer"]["share_90"] = six_digits(share90(found_.variance(slopes_)));
            out["measure_next"] = Json::array();
            for (const std::size_t row : next_rows()) {
                const double left = share90(found_.variance_with(row, slopes_));
                out["measure_next"].push_back({{"where", measurements_.rows()[row].place()},
                                               {"row", measurements_.rows()[row].row},
                                               {"quantity", measurements_.rows()[row].quantity},
                                               {"then_share_90", six_digits(left)}});
            }
        }
        return one_line(out);
    }

  private:
    std::vector<std::vector<double>> answers(const std::vector<Perturbations>& variants) const {
        TrialOptions trials = args_.study.trials;
        trials.metrics = {metric_.name};
        std::vector<ScenarioChanges> changes;
        for (const Perturbations& variant : variants) {
            changes.push_back(args_.study.changes);
            changes.back().perturbations = variant;
        }
        Progress line("runs");
        trials.progress = line.updates();
        std::vector<std::vector<double>> out;
        for (const std::optional<Trial>& trial : run_trials(trials, changes)) {
            if (!trial) throw Interrupted();
            out.emplace_back();
            if (trial->possible()) out.back() = {trial->summary(0).mean};
        }
        return out;
    }

    void print_numbers() const {
        Table table({"number", ">before", "90 %", ">after", "90 %", "goes with"});
        std::vector<std::string> untold;
        std::size_t unread = 0;
        for (std::size_t i = 0; i < estimates_.size(); ++i) {
            const FittedNumber& number = found_.numbers[i];
            if (!number.read) ++unread;
            if (number.read && !found_new(number)) untold.push_back(number.number.path);
            if (!found_new(number)) continue;
            constexpr double worth_naming = 0.7;
            const Interval factor = number.factor90();
            const Interval prior =
                FittedNumber{number.number, 0, number.number.spread, 0, 0, true}.factor90();
            table.add({number.number.path, estimates_[i].value,
                       fmt::format("{} to {}", times(i, prior.low), times(i, prior.high)),
                       times(i, std::exp(number.log)),
                       fmt::format("{} to {}", times(i, factor.low), times(i, factor.high)),
                       std::abs(number.correlation) > worth_naming
                           ? fmt::format("{} ({:+.2f})", numbers_[number.partner].path,
                                         number.correlation)
                           : ""});
        }
        fmt::print("\n{}", table.text());
        if (table.empty()) fmt::print("  none: each stays as it is\n");
        if (!untold.empty()) {
            fmt::print("\n  read, but these measurements don't tell them:\n    {}\n",
                       fmt::join(untold, "\n    "));
        }
        if (unread > 0)
            fmt::print("\n  {} without effect on any measurement\n", counted(unread, "number"));
        if (!found_.converged) {
            fmt::print("\n  stopped after {} steps, before the fit had settled\n", found_.steps);
        }
    }

    void print_measurements() const {
        const std::vector<Measurement>& rows = measurements_.rows();
        std::vector<std::size_t> order;
        double before = 0;
        double after = 0;
        double left_out = 0;
        for (std::size_t i = 0; i < rows.size(); ++i) {
            const FittedMeasurement& row = found_.measurements[i];
            if (!row.used) continue;
            order.push_back(i);
            before += std::expm1(std::abs(row.before));
            after += std::expm1(std::abs(row.after));
            left_out += std::expm1(std::abs(row.left_out));
        }
        const auto count = static_cast<double>(order.size());
        fmt::print(
            "\n  mean |error| of {}: {:.2f} % before, {:.2f} % fitted, {:.2f} % with each left out "
            "of the fit\n",
            counted(order.size(), "measurement"), 100 * before / count, 100 * after / count,
            100 * left_out / count);
        constexpr std::size_t shown_max = 12;
        const bool all = args_.rows || order.size() <= shown_max;
        if (!all) {
            std::ranges::stable_sort(order, [&](std::size_t a, std::size_t b) {
                return std::abs(found_.measurements[a].left_out) >
                       std::abs(found_.measurements[b].left_out);
            });
            order.resize(shown_max);
        }
        Table table({"where", "measurement", ">measured", ">before", ">fitted", ">left out"});
        for (const std::size_t i : order) {
            const FittedMeasurement& row = found_.measurements[i];
            table.add({visible(rows[i].place()),
                       visible(fmt::format("{}, {}", rows[i].row, rows[i].quantity)),
                       fmt::format("{:.5g}", rows[i].measured.value), off_text(row.before),
                       off_text(row.after), off_text(row.left_out)});
        }
        fmt::print("{}{}", table.text(), all ? "" : "  the others are nearer: --rows prints all\n");
    }

    void print_outliers() const {
        for (std::size_t i = 0; i < found_.measurements.size(); ++i) {
            const FittedMeasurement& row = found_.measurements[i];
            if (!row.outlier()) continue;
            const Measurement& measurement = measurements_.rows()[i];
            const double off = -row.left_out;
            fmt::print(
                "{}: outlier: {}: {} is {:.1f} % {} than the others say ({:.1f} standard "
                "deviations): a part, not the model\n",
                visible(measurement.place()), visible(measurement.row),
                visible(measurement.quantity), 100 * std::abs(std::expm1(off)),
                off > 0 ? "more" : "less", std::abs(row.deviation));
        }
    }

    void print_answer() const {
        const auto text = [&](double v) {
            return std::isfinite(v) ? metric_text(metric_.name, v) : "impossible";
        };
        fmt::print("\n  {} of the scenario: {} before, {} with these numbers\n", metric_.name,
                   text(answers_[0]), text(answers_[1]));
    }

    void print_next() const {
        const auto width = [](double variance) { return 100 * share90(variance); };
        const double now = found_.variance(slopes_);
        fmt::print("  nine in ten within {:.3g} % of it, as far as these numbers go\n", width(now));
        const std::vector<std::size_t> rows = next_rows();
        if (rows.empty()) {
            fmt::print(
                "\n  nothing to choose from: leave the measured field of a row empty to ask what "
                "measuring it would tell\n");
            return;
        }
        Table table({"to measure next", "", ">then within", ">of the variance gone"});
        for (const std::size_t i : rows) {
            const Measurement& row = measurements_.rows()[i];
            const double left = found_.variance_with(i, slopes_);
            table.add({visible(row.place()), visible(fmt::format("{}, {}", row.row, row.quantity)),
                       fmt::format("{:.3g} %", width(left)),
                       fmt::format("{:.1f} %", now > 0 ? 100 * (1 - left / now) : 0.0)});
        }
        fmt::print("\n{}", table.text());
    }

    // The rows without a measurement, the one that would tell most first.
    std::vector<std::size_t> next_rows() const {
        std::vector<std::size_t> out;
        for (std::size_t i = 0; i < found_.measurements.size(); ++i) {
            if (!found_.measurements[i].used) out.push_back(i);
        }
        std::ranges::stable_sort(
            out, {}, [&](std::size_t row) { return found_.variance_with(row, slopes_); });
        return out;
    }

    std::string times(std::size_t number, double factor) const {
        return value_times(estimates_[number].value, factor);
    }

    const CalibrateArguments& args_;
    const Scenario& scenario_;
    const Measurements& measurements_;
    std::vector<Estimate> estimates_;
    std::vector<FreeNumber> numbers_;
    Calibrated found_;
    Metric metric_;
    std::vector<double> answers_;  // of the scenario, before and after
    std::vector<double>
        slopes_;  // of the answer's logarithm, when it is asked what to measure next
};

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
        fmt::print(stderr, "{}\n", format_diagnostic(row, "warning"));
    }
    require_measured(measurements);
    Calibration calibration(args, scenario, measurements);
    calibration.fit();
    calibration.ask(metric);
    if (file) {
        const std::string text = calibration.overlay();
        try_overlay(text, scenario);
        warn_of_hidden(scenario);
        file->write(text);
        file->keep();
    }
    if (args.json) {
        fmt::print("{}\n", calibration.json());
    } else {
        calibration.print();
    }
    return exit_ok;
}

}  // namespace railyard
