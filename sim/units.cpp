#include "sim/units.h"

#include <fmt/format.h>

#include <array>
#include <charconv>
#include <cmath>
#include <deque>
#include <limits>

#include "sim/check.h"
#include "sim/error.h"

namespace railyard {

namespace {

using Wide = __int128;
constexpr std::int64_t int64_max = std::numeric_limits<std::int64_t>::max();

std::int64_t saturate(Wide n) {
    return n > Wide{int64_max} ? int64_max : static_cast<std::int64_t>(n);
}

}  // namespace

Duration from_seconds(double s) {
    RY_CHECK(!std::isnan(s));
    constexpr double seconds_max = 9.2e9;
    if (s > seconds_max) return Duration::max();
    if (s < -seconds_max) return Duration::min();
    return Duration(std::llround(s * 1e9));
}

Bandwidth operator*(Bandwidth b, std::int64_t n) {
    RY_CHECK(n >= 0);
    return Bandwidth(saturate(Wide{b.bits_per_second_} * n));
}

Bandwidth operator*(Bandwidth b, double factor) {
    RY_CHECK(factor >= 0);
    const double product = real(b.bits_per_second_) * factor;
    return Bandwidth(product >= 9.2e18 ? int64_max : std::llround(product));
}

Duration transfer_time(Bytes bytes, Bandwidth bandwidth) {
    RY_CHECK(bandwidth.bits_per_second() > 0 && bytes.count() >= 0);
    const Wide numerator = Wide{bytes.count()} * 8 * 1'000'000'000;
    const Wide denominator = bandwidth.bits_per_second();
    return Duration(saturate((numerator + denominator - 1) / denominator));
}

namespace {

struct Unit {
    std::string_view symbol;
    Dimension dimension;
    double scale;  // to the base unit; whole for time, data, bandwidth and steps
};

constexpr double ki = 1024.0;

using enum Dimension;
// The first spelling of a scale is the one that messages use.
constexpr Unit units[] = {
    {"ns", time, 1},
    {"us", time, 1e3},
    {"ms", time, 1e6},
    {"s", time, 1e9},
    {"second", time, 1e9},
    {"seconds", time, 1e9},
    {"min", time, 60e9},
    {"minute", time, 60e9},
    {"minutes", time, 60e9},
    {"h", time, 3600e9},
    {"hour", time, 3600e9},
    {"hours", time, 3600e9},
    {"day", time, 86400e9},
    {"days", time, 86400e9},
    {"d", time, 86400e9},
    {"week", time, 604800e9},
    {"weeks", time, 604800e9},
    {"month", time, 30 * 86400e9},
    {"months", time, 30 * 86400e9},
    {"year", time, 365 * 86400e9},
    {"years", time, 365 * 86400e9},
    {"steps", steps, 1},
    {"step", steps, 1},
    {"B", data, 1},
    {"kB", data, 1e3},
    {"MB", data, 1e6},
    {"GB", data, 1e9},
    {"TB", data, 1e12},
    {"PB", data, 1e15},
    {"EB", data, 1e18},
    {"KiB", data, ki},
    {"MiB", data, ki* ki},
    {"GiB", data, ki* ki* ki},
    {"TiB", data, ki* ki* ki* ki},
    {"PiB", data, ki* ki* ki* ki* ki},
    {"B/s", bandwidth, 8},
    {"kB/s", bandwidth, 8e3},
    {"MB/s", bandwidth, 8e6},
    {"GB/s", bandwidth, 8e9},
    {"TB/s", bandwidth, 8e12},
    {"PB/s", bandwidth, 8e15},
    {"KiB/s", bandwidth, 8 * ki},
    {"MiB/s", bandwidth, 8 * ki* ki},
    {"GiB/s", bandwidth, 8 * ki* ki* ki},
    {"TiB/s", bandwidth, 8 * ki* ki* ki* ki},
    {"bit/s", bandwidth, 1},
    {"kbit/s", bandwidth, 1e3},
    {"Mbit/s", bandwidth, 1e6},
    {"Gbit/s", bandwidth, 1e9},
    {"Tbit/s", bandwidth, 1e12},
    {"b/s", bandwidth, 1},
    {"kb/s", bandwidth, 1e3},
    {"Mb/s", bandwidth, 1e6},
    {"Gb/s", bandwidth, 1e9},
    {"Tb/s", bandwidth, 1e12},
    {"bps", bandwidth, 1},
    {"kbps", bandwidth, 1e3},
    {"Mbps", bandwidth, 1e6},
    {"Gbps", bandwidth, 1e9},
    {"Tbps", bandwidth, 1e12},
    {"FLOP/s", compute, 1},
    {"GFLOP/s", compute, 1e9},
    {"TFLOP/s", compute, 1e12},
    {"PFLOP/s", compute, 1e15},
    {"EFLOP/s", compute, 1e18},
    {"TFLOPS", compute, 1e12},
    {"FLOP", work, 1},
    {"GFLOP", work, 1e9},
    {"TFLOP", work, 1e12},
    {"PFLOP", work, 1e15},
    {"W", power, 1},
    {"kW", power, 1e3},
    {"MW", power, 1e6},
    {"GW", power, 1e9},
    {"J", energy, 1},
    {"Wh", energy, 3600},
    {"kWh", energy, 3.6e6},
    {"MWh", energy, 3.6e9},
    {"/s", rate, 1},
    {"/min", rate, 1.0 / 60},
    {"/h", rate, 1.0 / 3600},
    {"/day", rate, 1.0 / 86400},
    {"/week", rate, 1.0 / 604800},
    {"/month", rate, 1.0 / (30 * 86400)},
    {"/year", rate, 1.0 / (365 * 86400)},
    {"Hz", frequency, 1},
    {"kHz", frequency, 1e3},
    {"MHz", frequency, 1e6},
    {"GHz", frequency, 1e9},
    {"degC", temperature, 1},
    {"m", length, 1},
    {"km", length, 1e3},
    {"kg", mass, 1},
    {"U", rack_units, 1},
    {"l/min", flow, 1},
    {"K/W", thermal_resistance, 1},
    {"m/s", speed, 1},
    {"ns/m", delay_per_length, 1e-9},
    {"USD", money, 1},
    {"USD/kWh", price, 1},
    {"USD/GB", price, 1},
    {"USD/TB", price, 1},
    {"USD/GB/month", price, 1},
    {"USD/TB/month", price, 1},
    {"USD/TB/year", price, 1},
    {"USD/1000", price, 1},
    {"USD/kW", price, 1},
    {"USD/kW/month", price, 1},
    {"USD/h", price, 1},
    {"gCO2/kWh", carbon_intensity, 1},
    {"kgCO2/kWh", carbon_intensity, 1e3},
    {"USD/m", price, 1},
    {"USD/year", price, 1},
};

// With thousands and millions of all that money is counted in, each beside its USD.
const std::vector<Unit>& all_units() {
    static std::deque<std::string> symbols;
    static const std::vector<Unit> all = [] {
        std::vector<Unit> out;
        for (const Unit& unit : units) {
            out.push_back(unit);
            if (!unit.symbol.starts_with("USD")) continue;
            for (const auto& [prefix, scale] : {std::pair("k", 1e3), {"M", 1e6}}) {
                symbols.push_back(prefix + std::string(unit.symbol));
                out.push_back({symbols.back(), unit.dimension, scale * unit.scale});
            }
        }
        return out;
    }();
    return all;
}

// The mantissa as digits and a power of ten, so that "0.1 s" is exactly 10^8 ns.
struct Decimal {
    Wide digits = 0;
    int exponent = 0;
    bool negative = false;
};

// Reads an unsigned or signed decimal number from the front of `text`; false when there is none or
// it has more than 30 significant digits.
bool read_decimal(std::string_view& text, Decimal& out) {
    std::size_t i = 0;
    if (i < text.size() && (text[i] == '-' || text[i] == '+')) out.negative = text[i++] == '-';
    int digits = 0;
    bool point = false;
    for (; i < text.size(); ++i) {
        const char c = text[i];
        if (c == '.' && !point) {
            point = true;
        } else if (c >= '0' && c <= '9') {
            if (out.digits > Wide{int64_max} * 1'000'000'000) return false;
            out.digits = out.digits * 10 + (c - '0');
            if (point) --out.exponent;
            ++digits;
        } else if (c != '_') {
            break;
        }
    }
    if (digits == 0) return false;
    if (i + 1 < text.size() && (text[i] == 'e' || text[i] == 'E')) {
        int exponent = 0;
        const char* first = text.data() + i + 1;
        if (*first == '+') ++first;
        const auto [end, status] = std::from_chars(first, text.data() + text.size(), exponent);
        if (status == std::errc{} && std::abs(exponent) < 1000) {
            out.exponent += exponent;
            i = static_cast<std::size_t>(end - text.data());
        }
    }
    text.remove_prefix(i);
    return true;
}

std::optional<std::int64_t> scale_exactly(const Decimal& d, double unit_scale) {
    if (d.digits == 0) return 0;
    Wide value = d.digits;
    int exponent = d.exponent;
    const Wide limit = Wide{int64_max};
    Wide scale = static_cast<Wide>(unit_scale);
    // Negative exponents divide last, with the scale multiplied in first while that fits.
    const Wide wide_max = (Wide{1} << 126);
    if (value > wide_max / scale) return std::nullopt;
    value *= scale;
    for (; exponent > 0; --exponent) {
        if (value > limit) return std::nullopt;
        value *= 10;
    }
    Wide divisor = 1;
    for (; exponent < 0; ++exponent) {
        if (divisor > wide_max / 10) return 0;
        divisor *= 10;
    }
    value = (value + divisor / 2) / divisor;
    if (value > limit) return std::nullopt;
    return static_cast<std::int64_t>(d.negative ? -value : value);
}

std::string_view trim(std::string_view s) {
    while (!s.empty() && s.front() == ' ') s.remove_prefix(1);
    while (!s.empty() && s.back() == ' ') s.remove_suffix(1);
    return s;
}

}  // namespace

std::vector<std::string> unit_symbols(std::optional<Dimension> dimension) {
    std::vector<std::string> out;
    for (const Unit& unit : all_units()) {
        if (!dimension || unit.dimension == *dimension) out.emplace_back(unit.symbol);
    }
    return out;
}

namespace {

struct DimensionWords {
    std::string_view name;
    std::string_view example;
};
constexpr DimensionWords dimension_words[] = {
    // in the order of Dimension
    {"a time", "\"30 min\""},
    {"an amount of data", "\"80 GB\""},
    {"a bandwidth", "\"400 Gbit/s\" or \"50 GB/s\""},
    {"a compute rate", "\"989 TFLOP/s\""},
    {"a number of floating-point operations", "\"16 GFLOP\""},
    {"a power", "\"700 W\""},
    {"an energy", "\"5 kWh\""},
    {"a rate of events", "\"0.01 /day\""},
    {"a frequency", "\"1830 MHz\""},
    {"a temperature", "\"85 degC\""},
    {"a length", "\"40 m\""},
    {"a mass", "\"130 kg\""},
    {"a height in rack units", "\"8 U\""},
    {"a coolant flow", "\"60 l/min\""},
    {"a thermal resistance", "\"0.05 K/W\""},
    {"an amount of money", "\"310000 USD\""},
    {"a price per unit", "\"0.08 USD/kWh\""},
    {"a number of steps", "\"100 steps\""},
    {"a speed", "\"198e6 m/s\""},
    {"a delay per length", "\"5 ns/m\""},
    {"a carbon intensity", "\"400 gCO2/kWh\""},
};
static_assert(std::size(dimension_words) ==
              static_cast<std::size_t>(Dimension::carbon_intensity) + 1);

}  // namespace

std::string_view dimension_name(Dimension dimension) {
    return dimension_words[static_cast<std::size_t>(dimension)].name;
}

std::string_view dimension_example(Dimension dimension) {
    return dimension_words[static_cast<std::size_t>(dimension)].example;
}

std::optional<Quantity> parse_quantity(std::string_view text, std::string& why,
                                       std::optional<Dimension> wanted) {
    const std::string_view whole = trim(text);
    std::string_view rest = whole;
    Decimal number;
    if (!read_decimal(rest, number)) {
        const bool digit = !rest.empty() && rest.front() >= '0' && rest.front() <= '9';
        why = digit ? "has too many digits" : "does not begin with a number";
        return std::nullopt;
    }
    const std::string_view symbol = trim(rest);
    if (symbol.empty()) {
        why = "has no unit";
        return std::nullopt;
    }
    for (const Unit& unit : all_units()) {
        if (unit.symbol != symbol) continue;
        Quantity q;
        q.dimension = unit.dimension;
        const std::string digits(whole.substr(0, whole.size() - rest.size()));
        std::string plain;
        for (const char c : digits) {
            if (c != '_' && c != '+') plain += c;
        }
        std::from_chars(plain.data(), plain.data() + plain.size(), q.number);
        q.unit = unit.symbol;
        q.base_per_unit = unit.scale;
        q.value = q.number * unit.scale;
        if (!std::isfinite(q.value)) {
            why = "is too large";
            return std::nullopt;
        }
        const bool exact = unit.dimension == time || unit.dimension == data ||
                           unit.dimension == bandwidth || unit.dimension == steps;
        if (exact) q.integer = scale_exactly(number, unit.scale);
        return q;
    }
    if (symbol.starts_with(',')) {
        why = "has a comma: a decimal point is a point";
        return std::nullopt;
    }
    why = fmt::format("has the unknown unit '{}'", symbol);
    std::string hint = did_you_mean(symbol, unit_symbols(wanted));
    if (hint.empty() && wanted) {
        hint = fmt::format("valid: {}", fmt::join(unit_symbols(wanted), ", "));
    }
    if (!hint.empty()) why += "; " + hint;
    return std::nullopt;
}

namespace {

struct Step {
    double scale;
    const char* unit;
};

template <std::size_t N>
std::string pick(double value, const std::array<Step, N>& steps_up) {
    const Step* chosen = &steps_up[0];
    for (const Step& each : steps_up) {
        if (std::abs(value) >= each.scale * 0.9995) chosen = &each;
    }
    return fmt::format("{:.3g} {}", value / chosen->scale, chosen->unit);
}

}  // namespace

std::string to_text(Duration d) {
    static constexpr std::array<Step, 7> steps_up{{{1, "ns"},
                                                   {1e3, "us"},
                                                   {1e6, "ms"},
                                                   {1e9, "s"},
                                                   {60e9, "min"},
                                                   {3600e9, "h"},
                                                   {86400e9, "day"}}};
    const double ns = real(d.count());
    if (d >= std::chrono::hours(24 * 365 * 10))
        return fmt::format("{:.3g} years", ns / (365 * 86400e9));
    return ns == 0 ? "0 s" : pick(ns, steps_up);
}

std::string to_text(Bytes b) {
    static constexpr std::array<Step, 6> steps_up{
        {{1, "B"}, {1e3, "kB"}, {1e6, "MB"}, {1e9, "GB"}, {1e12, "TB"}, {1e15, "PB"}}};
    return pick(real(b.count()), steps_up);
}

std::string to_text(Bandwidth b) {
    static constexpr std::array<Step, 5> steps_up{
        {{1, "B/s"}, {1e3, "kB/s"}, {1e6, "MB/s"}, {1e9, "GB/s"}, {1e12, "TB/s"}}};
    return pick(b.bytes_per_second(), steps_up);
}

std::string to_text(Watts p) {
    static constexpr std::array<Step, 4> steps_up{
        {{1, "W"}, {1e3, "kW"}, {1e6, "MW"}, {1e9, "GW"}}};
    return pick(p.value, steps_up);
}

std::string line_rate_text(Bandwidth b) {
    const double gbit = real(b.bits_per_second()) * 1e-9;
    return gbit < 1 ? fmt::format("{:g} Mbit/s", 1e3 * gbit) : fmt::format("{:g} Gbit/s", gbit);
}

std::string to_text(Flops f) {
    static constexpr std::array<Step, 4> steps_up{
        {{1, "FLOP/s"}, {1e9, "GFLOP/s"}, {1e12, "TFLOP/s"}, {1e15, "PFLOP/s"}}};
    return pick(f.per_second, steps_up);
}

}  // namespace railyard
