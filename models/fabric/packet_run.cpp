#include "models/fabric/packet_run.h"

#include <bit>
#include <utility>

namespace railyard {

std::uint64_t ps_per_byte_of(Bandwidth rate) {
    const auto bits = static_cast<__int128>(rate.bits_per_second());
    return static_cast<std::uint64_t>(
        ((static_cast<__int128>(8'000'000'000'000) << 20) + bits - 1) / bits);
}

namespace {

// Buckets for a handful of events each when links are busy; and as many of them as reach one packet's
// transfer and propagation ahead.
TimingWheel fitting_wheel(const PacketNetwork& network, const PacketSpec& spec) {
    std::int64_t transfer = INT64_MAX;
    std::int64_t ahead = 0;
    for (const PacketLink& l : network.links) {
        if (l.rate.bits_per_second() <= 0) continue;
        const std::int64_t t =
            transfer_ps(spec.payload_bytes + spec.header_bytes, ps_per_byte_of(l.rate));
        transfer = std::min(transfer, t);
        ahead = std::max(ahead, t + l.latency.count());
    }
    constexpr std::int64_t events_per_bucket = 16;
    const std::int64_t links = static_cast<std::int64_t>(network.links.size());
    const auto width = static_cast<std::uint64_t>(events_per_bucket * transfer / links);
    const int shift =
        std::clamp(static_cast<int>(std::bit_width(width)) - 1, 0, TimingWheel::shift_max);
    const int bits = static_cast<int>(std::bit_width(static_cast<std::uint64_t>(ahead >> shift)));
    return {shift, std::clamp(bits, 6, 20)};
}

}  // namespace

PacketRun::PacketRun(const PacketNetwork& network, PacketSpec given)
    : spec(std::move(given)), wheel(fitting_wheel(network, spec)) {}

}  // namespace railyard
