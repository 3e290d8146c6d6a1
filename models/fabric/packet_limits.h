#pragma once
// What a scenario may ask of the packet scale: how large a value may be that it counts in 64 bits (times in
// picoseconds, and buffers, which are added up and scaled), and which priorities there are.

#include <fmt/format.h>

#include <optional>

#include "sim/config.h"

namespace railyard {

// Sums of three still fit the packet clock, which ends after 106 days.
constexpr Duration packet_time_max = std::chrono::hours(24 * 30);
constexpr Bandwidth packet_rate_min = Bandwidth::bits_per_second(1'000'000);
constexpr Bytes packet_buffer_max = Bytes::of(1'000'000'000'000);

// Reports a value above `most`, and goes on with that.
template <class T>
void keep_within(Section& section, const char* key, T& value, T most) {
    if (!section.has(key) || value <= most) return;
    section.error(key, fmt::format("expected at most {}, found {}", to_text(most), to_text(value)));
    value = most;
}
inline void keep_within(Section& section, const char* key, std::int64_t& value, std::int64_t most) {
    if (!section.has(key) || value <= most) return;
    section.error(key, fmt::format("expected at most {}, found {}", most, value));
    value = most;
}
template <class T>
void keep_within(Section& section, const char* key, std::optional<T>& value, T most) {
    if (value) keep_within(section, key, *value, most);
}

// A priority of IEEE 802.1p.
inline void read_priority(Section& section, const char* key, std::int64_t& out, const char* doc,
                          KeyRules rules = {}) {
    constexpr std::int64_t priority_max = 7;
    const std::int64_t before = out;
    section.read(key, out, doc, rules);
    if (out >= 0 && out <= priority_max) return;
    section.error(key, fmt::format("expected 0 to {}, found {}", priority_max, out),
                  "Ethernet has eight priorities");
    out = before;
}

}  // namespace railyard
