#include "models/fabric/headroom.h"

#include <fmt/format.h>

#include <cmath>

namespace railyard {

Headroom sonic_headroom(Catalogue& catalogue, const std::string& switch_model, Bandwidth speed,
                        Metres cable, bool eight_lanes) {
    const auto bytes = [&](const char* key) {
        return real(catalogue.data("headroom_formula", "", key).count());
    };
    const auto number = [&](const std::string& key) {
        return catalogue.number("headroom_formula", "", key);
    };
    const auto to_kib = [](double b) {
        return Bytes::of(static_cast<std::int64_t>(std::ceil(b / 1024)) * 1024);
    };
    const std::int64_t gbit = speed.bits_per_second() / 1'000'000'000;
    const double cell = real(catalogue.data("switch", switch_model, "cell").count());
    const double smallest = bytes("min_packet");

    const double under_way = 2 * cable.value * speed.bytes_per_second() /
                             catalogue.metres_per_second("headroom_formula", "", "signal_speed");
    const double peer = number(fmt::format("pause_quanta_{}g", gbit)) *
                        real(catalogue.integer("pfc", "", "quantum_bits")) / 8;
    const bool tiled = catalogue.has("switch", switch_model, "tile_bytes_per_gbit");
    const double tile =
        tiled ? catalogue.number("switch", switch_model, "tile_bytes_per_gbit") * real(gbit) : 0;
    const double room = bytes("port_mtu") + under_way + bytes("mac_phy_delay") + peer + tile;

    const double worst =
        cell > 2 * smallest ? std::ceil(cell / smallest) : std::ceil(2 * cell / (1 + cell));
    const double small = number("small_packet_percentage");
    const double overhead = (100 - small + small * worst) / 100;
    return {to_kib(bytes("pipeline_latency") * (eight_lanes ? 2 : 1)),
            to_kib(bytes("lossless_mtu") + room * overhead)};
}

Bytes headroom_by_delay(Catalogue& catalogue, Bandwidth rate, Picoseconds latency) {
    const std::int64_t factor = catalogue.integer("pfc", "", "headroom_rtt_factor_hpcc");
    const __int128 bits = static_cast<__int128>(rate.bits_per_second()) * latency.count();
    return Bytes::of(factor * static_cast<std::int64_t>(bits / 8'000'000'000'000));
}

}  // namespace railyard
