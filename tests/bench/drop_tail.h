#pragma once
// What railyard and ns-3 are both asked: datagrams at line rate through drop-tail queues. No pause, no mark,
// no second try. Every flow has a NIC of its own to send from.

#include "tests/bench/fat_tree.h"

namespace railyard {

struct DropTail {
    static constexpr std::int64_t payload_bytes = 4096;
    static constexpr std::int64_t header_bytes = 2 + 20 + 8;  // PPP, IPv4, UDP: what ns-3 sends
    static constexpr std::int64_t link_latency_ps = 1'000'000;

    Traffic traffic;
    Topology topology;
    std::vector<std::vector<LinkId>> path;       // of each flow, by destination
    std::vector<std::vector<LinkId>> path_back;  // of its acknowledgements, likewise

    explicit DropTail(const std::string& name)
        : traffic(railyard::traffic(name)), topology(fat_tree(traffic)) {
        Router router(topology, {Routing::destination});
        for (Flow f : traffic.flows) {
            path.push_back(path_of(router, f));
            std::swap(f.from, f.to);
            path_back.push_back(path_of(router, f));
        }
    }

    std::int64_t packets(std::size_t flow) const {
        return (bytes(flow) + payload_bytes - 1) / payload_bytes;
    }
    std::int64_t bytes(std::size_t flow) const {
        return static_cast<std::int64_t>(traffic.flows[flow].bytes);
    }
    // Flows begin a nanosecond apart, so that no two packets ever reach a queue at once: which of them
    // would be lost is then a matter of the traffic, and not of a simulator's order.
    static std::int64_t start_ps(std::size_t flow) {
        return 1'009 * static_cast<std::int64_t>(flow);
    }
};

// What became of a flow.
struct Arrivals {
    std::int64_t packets = 0;
    std::int64_t last_ps = 0;  // when the last one of them had arrived
};

// Writes what became of each flow, and prints the CPU seconds, the MB of memory taken since `before_mb`, and
// the packet-hops.
inline void report(const std::string& path, const std::vector<Arrivals>& arrivals, double cpu_s,
                   double before_mb, std::uint64_t hops) {
    std::ofstream out(path, std::ios::binary);
    out.write(reinterpret_cast<const char*>(arrivals.data()),
              static_cast<std::streamsize>(arrivals.size() * sizeof(Arrivals)));
    std::printf("%.6f %.3f %llu\n", cpu_s, peak_megabytes() - before_mb,
                static_cast<unsigned long long>(hops));
}

}  // namespace railyard
