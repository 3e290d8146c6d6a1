#include "tools/cli/calibration_overlay.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <filesystem>
#include <map>

#include "sim/error.h"
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

std::string value_times(const std::string& value, double factor) {
    const NumberText text = number_text_of(value);
    return fmt::format("{:.4g}{}", text.number * factor, text.unit);
}

bool found_new(const FittedNumber& number) {
    constexpr double moved = 0.1;  // of the prior's spread
    return number.read && (!number.untold() || std::abs(number.log) > moved * number.number.spread);
}

std::string calibration_overlay(const Calibrated& found, const std::vector<Estimate>& before,
                                const std::string& scenario, const OwnEntries* own,
                                const std::vector<std::string>& files) {
    std::vector<std::string> names;
    for (const std::string& file : files) {
        names.push_back(one_comment(std::filesystem::path(file).filename().string()));
    }
    const std::string source = fmt::format("calibrated on {}", fmt::join(names, ", "));
    std::map<std::string, std::string> sections;
    for (std::size_t i = 0; i < before.size(); ++i) {
        const FittedNumber& number = found.numbers[i];
        const std::optional<CataloguePlace> place = catalogue_place(number.number.path, own);
        if (!place || !found_new(number)) continue;
        const Interval factor = number.factor90();
        const auto times = [&](double by) { return value_times(before[i].value, by); };
        std::string& text =
            sections[place->name.empty() ? place->kind
                                         : fmt::format("{}.{}", place->kind, place->name)];
        text += fmt::format(
            "# was {} ({} to {}{}: {})\n"
            "{} = {{ value = {}, class = \"estimate\", source = {}, low = {}, high = {} }}\n",
            before[i].value, times(before[i].low_factor), times(before[i].high_factor),
            before[i].range_given ? "" : ", no printed range", one_comment(before[i].source),
            place->key, toml_of(times(std::exp(number.log))), toml_text(Value::of(source)),
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
