#pragma once
// Quantities with their dimension in the type. Nothing converts from a bare number: a value enters
// with its unit named, and leaves by a function whose name says the unit.
//
// Times are std::chrono durations over int64: nanoseconds on the campaign clock (292 years),
// picoseconds on the packet clock (106 days). What decides when an event happens is integer
// arithmetic; doubles are for reported averages.

#include <chrono>
#include <compare>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace railyard {

using Nanoseconds = std::chrono::duration<std::int64_t, std::nano>;
using Picoseconds = std::chrono::duration<std::int64_t, std::pico>;
using Duration = Nanoseconds;

// The longest time that a scenario may name: sums of a few of them still fit the clock.
constexpr Duration time_max = std::chrono::hours(24 * 365 * 100);

// A number of something, where it enters an average, a rate or a sum of money.
constexpr double real(auto number) {
    return static_cast<double>(number);
}

inline double seconds(Duration d) {
    return real(d.count()) * 1e-9;
}
// Rounded to the nearest nanosecond; saturates at the clock's ends. s must not be NaN.
Duration from_seconds(double s);

// A number of bytes; decimal units (1 GB = 10^9) unless a name says binary (1 GiB = 2^30).
class Bytes {
  public:
    constexpr Bytes() = default;
    static constexpr Bytes of(std::int64_t count) { return Bytes(count); }
    constexpr std::int64_t count() const { return count_; }

    constexpr auto operator<=>(const Bytes&) const = default;
    friend constexpr Bytes operator+(Bytes a, Bytes b) { return Bytes(a.count_ + b.count_); }
    friend constexpr Bytes operator-(Bytes a, Bytes b) { return Bytes(a.count_ - b.count_); }
    friend constexpr Bytes operator*(Bytes a, std::int64_t n) { return Bytes(a.count_ * n); }

  private:
    explicit constexpr Bytes(std::int64_t count) : count_(count) {}
    std::int64_t count_ = 0;
};

// Bits per second, so that "400 Gbit/s" and "50 GB/s" are the same whole number.
class Bandwidth {
  public:
    constexpr Bandwidth() = default;
    static constexpr Bandwidth bits_per_second(std::int64_t n) { return Bandwidth(n); }
    constexpr std::int64_t bits_per_second() const { return bits_per_second_; }
    constexpr double bytes_per_second() const { return real(bits_per_second_) / 8.0; }

    constexpr auto operator<=>(const Bandwidth&) const = default;
    // Saturates at the largest representable bandwidth (1.15 EB/s).
    friend Bandwidth operator*(Bandwidth b, std::int64_t n);
    // Rounded to the nearest bit per second; saturates likewise.
    friend Bandwidth operator*(Bandwidth b, double factor);

  private:
    explicit constexpr Bandwidth(std::int64_t n) : bits_per_second_(n) {}
    std::int64_t bits_per_second_ = 0;
};

// FLOP/s. A double: it enters analytic models only.
struct Flops {
    double per_second = 0;
    auto operator<=>(const Flops&) const = default;
};

// Events per second. A double: it is the parameter of a distribution.
struct Rate {
    double per_second = 0;
    auto operator<=>(const Rate&) const = default;
};

// In USD. A double, and a large one: exact sums are in cents (models/facility/cost_price.h).
struct Money {
    double usd = 0;
    auto operator<=>(const Money&) const = default;
};

// A double: it enters propagation delays and bills of material.
struct Metres {
    double value = 0;
    auto operator<=>(const Metres&) const = default;
};

// Doubles: they enter averages, limits and when a part has grown too hot, never how much is booked.
struct Watts {
    double value = 0;
    auto operator<=>(const Watts&) const = default;
};
struct Celsius {
    double value = 0;
    auto operator<=>(const Celsius&) const = default;
};
struct KelvinPerWatt {
    double value = 0;
    auto operator<=>(const KelvinPerWatt&) const = default;
};
struct GramsPerKilowattHour {  // of CO2 equivalent
    double value = 0;
    auto operator<=>(const GramsPerKilowattHour&) const = default;
};

// Time to move `bytes` at `bandwidth`, rounded up, so that a transfer never ends early. The product
// is widened to 128 bits. Needs bandwidth > 0 and bytes >= 0; saturates at the clock's end.
Duration transfer_time(Bytes bytes, Bandwidth bandwidth);

// ---- text ----

// What kind of thing a unit measures.
enum class Dimension : std::uint8_t {
    time,
    data,
    bandwidth,
    compute,
    work,
    power,
    energy,
    rate,
    frequency,
    temperature,
    length,
    mass,
    rack_units,
    flow,
    thermal_resistance,
    money,
    price,
    steps,
    speed,
    delay_per_length,
    carbon_intensity,
};
std::string_view dimension_name(Dimension dimension);     // "a bandwidth"
std::string_view dimension_example(Dimension dimension);  // "\"400 Gbit/s\""
// The units of a dimension, or all of them, in the order that messages name them.
std::vector<std::string> unit_symbols(std::optional<Dimension> dimension);

// A number with a unit, as written. `integer` is exact decimal arithmetic in the base unit (ns,
// bytes, bit/s, steps), rounded to nearest; nullopt when it does not fit into int64.
struct Quantity {
    Dimension dimension = Dimension::time;
    double value = 0;  // in the base unit; SI otherwise (FLOP/s, W, J, 1/s, Hz, degC, m, kg, USD)
    std::optional<std::int64_t> integer;
    double number = 0;         // in its unit
    std::string_view unit;     // its symbol
    double base_per_unit = 1;  // one of the unit, in the base unit

    // The number that it would be in the unit of `other`, of the same dimension.
    double in_unit_of(const Quantity& other) const {
        return unit == other.unit ? number : value / other.base_per_unit;
    }
    // In the base unit, whatever that is: in place of one that could not be read.
    static Quantity one(Dimension of) {
        Quantity q;
        q.dimension = of;
        q.value = 1;
        q.integer = 1;
        return q;
    }
};

// Parses "400 Gbit/s", "400Gbps", "1.5e3 GB/s", "30 min", "0.01 /day". On failure returns nullopt
// and says why in `why` ("has no unit", "unknown unit 'GBs'; did you mean 'GB/s'?").
// A unit that it does not know is looked for among those of the `wanted` dimension.
std::optional<Quantity> parse_quantity(std::string_view text, std::string& why,
                                       std::optional<Dimension> wanted = {});

// Short text with three significant digits and a fitting unit: "1.94 h", "2.8 TB", "50 GB/s".
std::string to_text(Duration d);
std::string to_text(Bytes b);
std::string to_text(Bandwidth b);
std::string line_rate_text(Bandwidth b);  // "400 Gbit/s": what a port is called by
std::string to_text(Flops f);
std::string to_text(Watts p);

}  // namespace railyard
