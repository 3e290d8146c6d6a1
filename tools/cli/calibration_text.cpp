#include "tools/cli/calibration_text.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <filesystem>
#include <map>

#include "tools/cli/metric_text.h"
#include "tools/cli/terminal.h"
#include "tools/program/lists.h"
#include "tools/program/program.h"
#include "tools/study/axis.h"

namespace railyard {

namespace {

struct NumberText {
    double number = 0;
    std::string unit;  // with what stands before it
};

NumberText number_text_of(const std::string& value) {
    NumberText out;
    const char* end = value.data() + value.size();
    const auto [rest, wrong] = std::from_chars(value.data(), end, out.number);
    if (wrong == std::errc()) out.unit.assign(rest, end);
    return out;
}

// As TOML: a text where it has a unit.
std::string toml_of(const std::string& value) {
    return number_text_of(value).unit.empty() ? value : toml_text(Value::of(value));
}

std::string one_comment(const std::string& text) {
    std::string out = visible(text);
    std::ranges::replace(out, '\n', ' ');
    return out;
}

// In its own unit, to four digits.
std::string value_times(const std::string& value, double factor) {
    const NumberText text = number_text_of(value);
    return fmt::format("{:.4g}{}", text.number * factor, text.unit);
}

// "+12.3 %": how much more is simulated than was measured.
std::string off_text(double log) {
    return fmt::format("{:+.1f} %", 100 * std::expm1(log));
}

std::string row_text(const Measurement& row) {
    return visible(fmt::format("{}, {}", row.row, row.quantity));
}

// The share that nine in ten are within of what has this variance of its logarithm.
double share90(double variance) {
    return std::expm1(ninety * std::sqrt(std::max(0.0, variance)));
}

// The rows without a measurement, the one that would tell most first.
std::vector<std::size_t> next_rows(const CalibrationAnswer& c) {
    std::vector<std::size_t> out;
    for (std::size_t i = 0; i < c.found.measurements.size(); ++i) {
        if (!c.found.measurements[i].used) out.push_back(i);
    }
    std::ranges::stable_sort(out, {},
                             [&](std::size_t row) { return c.found.variance_with(row, c.slopes); });
    return out;
}

void print_numbers(const CalibrationAnswer& c) {
    Table table({"number", ">before", "90 %", ">after", "90 %", "goes with"});
    std::vector<std::string> untold;
    std::size_t unread = 0;
    for (std::size_t i = 0; i < c.estimates.size(); ++i) {
        const FittedNumber& number = c.found.numbers[i];
        if (!number.read) ++unread;
        if (number.read && !found_new(number)) untold.push_back(number.number.path);
        if (!found_new(number)) continue;
        constexpr double worth_naming = 0.7;
        const auto times = [&](double by) { return value_times(c.estimates[i].value, by); };
        const auto between = [&](const Interval& factor) {
            return fmt::format("{} to {}", times(factor.low), times(factor.high));
        };
        const FittedNumber prior{number.number, 0, number.number.spread, 0, 0, true};
        table.add(
            {number.number.path, c.estimates[i].value, between(prior.factor90()),
             times(std::exp(number.log)), between(number.factor90()),
             std::abs(number.correlation) > worth_naming
                 ? fmt::format("{} ({:+.2f})", c.numbers[number.partner].path, number.correlation)
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
    if (!c.found.converged) {
        fmt::print("\n  stopped after {} steps, before the fit had settled\n", c.found.steps);
    }
}

void print_measurements(const CalibrationAnswer& c, bool all_rows) {
    const std::vector<Measurement>& rows = c.measurements.rows();
    const std::vector<FittedMeasurement>& fitted = c.found.measurements;
    std::vector<std::size_t> order;
    for (std::size_t i = 0; i < rows.size(); ++i) {
        if (fitted[i].used) order.push_back(i);
    }
    const auto mean = [&](double FittedMeasurement::*log) {
        double sum = 0;
        for (const std::size_t i : order) sum += std::expm1(std::abs(fitted[i].*log));
        return 100 * sum / static_cast<double>(order.size());
    };
    fmt::print(
        "\n  mean |error| of {}: {:.2f} % before, {:.2f} % fitted, {:.2f} % with each left out "
        "of the fit\n",
        counted(order.size(), "measurement"), mean(&FittedMeasurement::before),
        mean(&FittedMeasurement::after), mean(&FittedMeasurement::left_out));
    constexpr std::size_t shown_max = 12;
    const bool all = all_rows || order.size() <= shown_max;
    if (!all) {
        std::ranges::stable_sort(order, std::greater<>(),
                                 [&](std::size_t i) { return std::abs(fitted[i].left_out); });
        order.resize(shown_max);
    }
    Table table({"where", "measurement", ">measured", ">before", ">fitted", ">left out"});
    for (const std::size_t i : order) {
        table.add({visible(rows[i].place()), row_text(rows[i]),
                   fmt::format("{:.5g}", rows[i].measured.value), off_text(fitted[i].before),
                   off_text(fitted[i].after), off_text(fitted[i].left_out)});
    }
    fmt::print("{}{}", table.text(), all ? "" : "  the others are nearer: --rows prints all\n");
}

void print_outliers(const CalibrationAnswer& c) {
    for (std::size_t i = 0; i < c.found.measurements.size(); ++i) {
        const FittedMeasurement& row = c.found.measurements[i];
        if (!row.outlier()) continue;
        const Measurement& measurement = c.measurements.rows()[i];
        const double off = -row.left_out;
        fmt::print(
            "{}: outlier: {}: {} is {:.1f} % {} than the others say ({:.1f} standard "
            "deviations): a part, not the model\n",
            visible(measurement.place()), visible(measurement.row), visible(measurement.quantity),
            100 * std::abs(std::expm1(off)), off > 0 ? "more" : "less", std::abs(row.deviation));
    }
}

void print_next(const CalibrationAnswer& c) {
    const double now = c.found.variance(c.slopes);
    fmt::print("  nine in ten within {:.3g} % of it, as far as these numbers go\n",
               100 * share90(now));
    Table table({"to measure next", "", ">then within", ">of the variance gone"});
    for (const std::size_t i : next_rows(c)) {
        const Measurement& row = c.measurements.rows()[i];
        const double left = c.found.variance_with(i, c.slopes);
        table.add({visible(row.place()), row_text(row),
                   fmt::format("{:.3g} %", 100 * share90(left)),
                   fmt::format("{:.1f} %", now > 0 ? 100 * (1 - left / now) : 0.0)});
    }
    if (table.empty()) {
        fmt::print(
            "\n  nothing to choose from: leave the measured field of a row empty to ask what "
            "measuring it would tell\n");
    } else {
        fmt::print("\n{}", table.text());
    }
}

Json number_json(const FittedNumber& number, const Estimate& before) {
    const Interval factor = number.factor90();
    Json out = {{"number", number.number.path},
                {"before", before.value},
                {"found_anew", found_new(number)},
                {"read", number.read},
                {"factor", six_digits(std::exp(number.log))},
                {"factor_90", {six_digits(factor.low), six_digits(factor.high)}}};
    if (number.correlation != 0) out["correlation"] = six_digits(number.correlation);
    return out;
}

Json place_json(const Measurement& of) {
    return {{"where", of.place()}, {"row", of.row}, {"quantity", of.quantity}};
}

// What is simulated, before and after, stands beside what was measured; null where nothing was.
Json measurement_json(const Measurement& of, const FittedMeasurement& row) {
    const auto times = [unit = row.used ? of.measured.value : 1](double log) {
        return six_digits(unit * std::exp(log));
    };
    Json out = place_json(of);
    out["measured"] = row.used ? six_digits(of.measured.value) : Json(nullptr);
    out["before"] = times(row.before);
    out["fitted"] = times(row.after);
    if (!row.used) return out;
    out["left_out"] = times(row.left_out);
    out["deviation"] = six_digits(row.deviation);
    out["outlier"] = row.outlier();
    return out;
}

}  // namespace

std::optional<CataloguePlace> catalogue_place(const std::string& path, const OwnEntries* own) {
    const std::size_t first = path.find('.');
    const std::size_t last = path.rfind('.');
    if (first == std::string::npos) return std::nullopt;
    CataloguePlace out{path.substr(0, first), "", path.substr(last + 1)};
    if (last > first) out.name = path.substr(first + 1, last - first - 1);
    const Value* entry = Catalogue::entry(out.kind, out.name);
    for (const OpenKind& open : open_kinds()) {
        if (own == nullptr || (out.kind != open.section && out.kind != open.kind)) continue;
        const Value* mine = own->find(open.kind, out.name);
        if (mine == nullptr) continue;
        out.kind = open.kind;  // as an [override] has it
        entry = mine;
    }
    const Value* value = entry != nullptr ? entry->find(out.key) : nullptr;
    const Value* inner = value != nullptr ? value->find("value") : nullptr;
    const bool number = inner != nullptr &&
                        (inner->kind == Value::Kind::real || inner->kind == Value::Kind::string);
    return number ? std::optional(out) : std::nullopt;
}

bool found_new(const FittedNumber& number) {
    constexpr double moved = 0.1;  // of the prior's spread
    return number.read && (!number.untold() || std::abs(number.log) > moved * number.number.spread);
}

void print_calibration(const CalibrationAnswer& c, bool all_rows) {
    const auto told = std::ranges::count_if(c.found.numbers, found_new);
    fmt::print("{}\n  {} numbers of the catalogue found anew, of {} that were read\n",
               coloured(visible(c.scenario.title), Colour::bold), told, c.numbers.size());
    print_numbers(c);
    print_measurements(c, all_rows);
    const auto answer = [&](double v) {
        return std::isfinite(v) ? metric_text(c.metric, v) : "impossible";
    };
    fmt::print("\n  {} of the scenario: {} before, {} with these numbers\n", c.metric,
               answer(c.answers[0]), answer(c.answers[1]));
    if (!c.slopes.empty()) print_next(c);
    if (c.measurements.guessed() > 0) {
        fmt::print(
            "\n  of {} neither tolerance.row nor the model says how exact they are: 10 % is "
            "taken to hold nine in ten\n",
            counted(c.measurements.guessed(), "row"));
    }
    if (c.measurements.limits() > 0) {
        fmt::print("\n  {} that only say at most or at least so much were not used\n",
                   counted(c.measurements.limits(), "row"));
    }
    print_outliers(c);
}

std::string calibration_json(const CalibrationAnswer& c) {
    Json out = {{"scenario", c.scenario.title},
                {"converged", c.found.converged},
                {"steps", c.found.steps},
                {"numbers", Json::array()},
                {"measurements", Json::array()},
                {"answer",
                 {{"metric", c.metric},
                  {"before", six_digits(c.answers[0])},
                  {"with_these_numbers", six_digits(c.answers[1])}}}};
    for (std::size_t i = 0; i < c.estimates.size(); ++i) {
        const FittedNumber& number = c.found.numbers[i];
        Json& each = out["numbers"].emplace_back(number_json(number, c.estimates[i]));
        if (number.correlation != 0) each["goes_with"] = c.numbers[number.partner].path;
    }
    const std::vector<Measurement>& rows = c.measurements.rows();
    for (std::size_t i = 0; i < c.found.measurements.size(); ++i) {
        out["measurements"].push_back(measurement_json(rows[i], c.found.measurements[i]));
    }
    if (c.slopes.empty()) return one_line(out);
    out["answer"]["share_90"] = six_digits(share90(c.found.variance(c.slopes)));
    out["measure_next"] = json_array(next_rows(c), [&](std::size_t row) {
        Json next = place_json(rows[row]);
        next["then_share_90"] = six_digits(share90(c.found.variance_with(row, c.slopes)));
        return next;
    });
    return one_line(out);
}

std::string calibration_overlay(const CalibrationAnswer& c, const std::string& scenario,
                                const std::vector<std::string>& files) {
    const auto names = mapped(files, [](const std::string& file) {
        return one_comment(std::filesystem::path(file).filename().string());
    });
    const std::string source = fmt::format("calibrated on {}", fmt::join(names, ", "));
    std::map<std::string, std::string> sections;
    for (std::size_t i = 0; i < c.estimates.size(); ++i) {
        const FittedNumber& number = c.found.numbers[i];
        const Estimate& before = c.estimates[i];
        const auto place = catalogue_place(number.number.path, c.scenario.own_entries.get());
        if (!place || !found_new(number)) continue;
        const Interval factor = number.factor90();
        const auto times = [&](double by) { return value_times(before.value, by); };
        std::string& text =
            sections[place->name.empty() ? place->kind
                                         : fmt::format("{}.{}", place->kind, place->name)];
        text += fmt::format(
            "# was {} ({} to {}{}: {})\n"
            "{} = {{ value = {}, class = \"estimate\", source = {}, low = {}, high = {} }}\n",
            before.value, times(before.low_factor), times(before.high_factor),
            before.range_given ? "" : ", no printed range", one_comment(before.source), place->key,
            toml_of(times(std::exp(number.log))), toml_text(Value::of(source)),
            toml_of(times(factor.low)), toml_of(times(factor.high)));
    }
    std::string out = fmt::format(
        "# Written by railyard calibrate {} for {},\n# from {}.\n"
        "# A scenario has it with include = [\"this file\"]; low and high hold nine in ten.\n",
        version(), one_comment(scenario), fmt::join(names, ", "));
    for (const auto& [section, text] : sections) {
        out += fmt::format("\n[override.{}]\n{}", section, text);
    }
    return out;
}

}  // namespace railyard
