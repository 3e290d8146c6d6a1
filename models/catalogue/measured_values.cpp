#include "models/catalogue/measured_values.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>

#include "sim/config.h"

namespace railyard {

namespace {

struct Measured {
    const char* measurement;
    const char* datasheet;
    const char* parts = nullptr;  // it is of one of so many
};
constexpr Measured measured[] = {
    {"bf16_achievable", "bf16_dense"},
    {"fp8_achievable", "fp8_dense"},
    {"mxfp8_achievable", "fp8_dense"},
    {"fp4_achievable", "fp4_dense"},
    {"measured_gemm8192_bf16_random", "bf16_dense"},
    {"measured_gemm8192_bf16_zeros", "bf16_dense"},
    {"measured_copy_bandwidth", "hbm_bandwidth"},
    {"p2p_bandwidth_measured", "nvlink_bandwidth"},
    {"p2p_link_bandwidth", "nvlink_bandwidth", "nvlink_links"},
    {"nccl_nvlink_bandwidth_per_link", "nvlink_bandwidth", "nvlink_links"},
    {"h2d_bandwidth_measured", "pcie_bandwidth"},
    {"d2h_bandwidth_measured", "pcie_bandwidth"},
};

// How many times as much is given; nothing where nothing is, or it is no number.
std::optional<double> times(const Value& entry, const Value& given, const char* key) {
    if (key == nullptr || entry.find(key) == nullptr || given.find(key) == nullptr)
        return std::nullopt;
    const std::optional<double> before = plain_number(inner_value(*entry.find(key)));
    const std::optional<double> after = plain_number(inner_value(*given.find(key)));
    if (!before || !after || *before <= 0 || *after <= 0) return std::nullopt;
    return *after / *before;
}

// "794.5 TFLOP/s" so many times: a quantity with its unit.
std::optional<std::string> scaled(const Value& value, double factor) {
    const std::string& text = inner_value(value).text;
    const std::size_t unit = text.find(' ');
    const std::optional<double> number = plain_number(inner_value(value));
    if (inner_value(value).kind != Value::Kind::string || unit == std::string::npos || !number)
        return std::nullopt;
    const std::optional<double> one = plain_number(Value::of("1" + text.substr(unit)));
    if (!one || *one <= 0) return std::nullopt;
    return fmt::format("{:.6g}{}", *number / *one * factor, text.substr(unit));
}

}  // namespace

const Value& inner_value(const Value& value) {
    const Value* inner = value.find("value");
    return inner == nullptr ? value : *inner;
}

std::vector<std::pair<std::string, Value>> measurements_that_follow(const Value& entry,
                                                                    const Value& given) {
    std::vector<std::pair<std::string, Value>> out;
    for (const Measured& each : measured) {
        const Value* ours = entry.find(each.measurement);
        const Value* datasheet = entry.find(each.datasheet);
        if (ours == nullptr || datasheet == nullptr || given.find(each.measurement)) continue;
        const double factor = times(entry, given, each.datasheet).value_or(1) /
                              times(entry, given, each.parts).value_or(1);
        if (factor == 1) continue;
        const std::optional<double> reached = plain_number(inner_value(*ours));
        const std::optional<double> peak = plain_number(inner_value(*datasheet));
        if (!reached || !peak) continue;
        const auto text = [&](double share) {
            // One of several links is less than all of them at any rate.
            const double most = each.parts == nullptr ? *peak / *reached : share;
            return scaled(*ours, factor * std::min(share, most));
        };
        if (!text(1)) continue;
        Value value;
        value.at = given.at;
        value.members = {{"value", Value::of(*text(1))},
                         {"class", Value::of("estimate")},
                         {"source", Value::of("estimate")},
                         {"low", Value::of(*text(0.85))},
                         {"high", Value::of(*text(1.1))},
                         {"note", Value::of(fmt::format("as before of {}", each.datasheet))}};
        out.emplace_back(each.measurement, std::move(value));
    }
    return out;
}

}  // namespace railyard
