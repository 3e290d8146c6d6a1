#pragma once
// A 64-bit digest of a sequence of values: the order counts, the machine does not.

#include <bit>
#include <chrono>
#include <cstdint>
#include <string>
#include <string_view>

namespace railyard {

// splitmix64's finaliser: every input bit reaches every output bit.
constexpr std::uint64_t mix_bits(std::uint64_t z) {
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ULL;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebULL;
    return z ^ (z >> 31);
}

class Fingerprint {
  public:
    void add(std::uint64_t value) {
        state_ = mix_bits(state_ ^ (value + 0x9e3779b97f4a7c15ULL + (state_ << 6) + (state_ >> 2)));
    }
    void add(std::int64_t value) { add(static_cast<std::uint64_t>(value)); }
    void add(__int128 value) {
        add(static_cast<std::uint64_t>(value));
        add(static_cast<std::uint64_t>(value >> 64));
    }
    void add(double value) { add(std::bit_cast<std::uint64_t>(value)); }
    template <class Tick>
    void add(std::chrono::duration<std::int64_t, Tick> value) {
        add(value.count());
    }
    void add(std::string_view text) {
        add(static_cast<std::uint64_t>(text.size()));
        for (const char c : text) add(static_cast<std::uint64_t>(static_cast<unsigned char>(c)));
    }

    template <class... Values>
    void add_all(const Values&... values) {
        (add(values), ...);
    }
    void add(bool value) { add(static_cast<std::uint64_t>(value)); }
    void add(int value) { add(static_cast<std::int64_t>(value)); }
    void add(std::uint32_t value) { add(static_cast<std::uint64_t>(value)); }

    void add(const char* text) { add(std::string_view(text)); }

    std::uint64_t value() const { return state_; }
    std::string hex() const;  // 16 digits

  private:
    std::uint64_t state_ = 0x243f6a8885a308d3ULL;
};

}  // namespace railyard
