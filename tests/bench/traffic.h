#pragma once
// The traffic that flow solvers are timed on, and how the two programs that solve it report: same
// flows, same fat-tree, same routes (by destination), links of 400 Gbit/s without latency: with
// one, the rival shares links by round-trip time.

#include <cstdint>
#include <cstdio>
#include <fstream>
#include <string>
#include <vector>

#include "sim/rng.h"

namespace railyard {

struct Flow {
    int from = 0;
    int to = 0;
    double bytes = 0;
    double start_s = 0;
};

// A three-tier fat-tree: `half` NICs to a leaf, `half` leaves to a pod, as many pods as it takes; half^2
// core switches.
struct Traffic {
    int half = 0;
    int pods = 0;
    std::vector<Flow> flows;  // by start

    int hosts() const { return half * half * pods; }
};

constexpr double link_bytes_per_s = 50e9;

// `name` is <hosts>_<pattern>, such as 1024_a2aflat256; hosts 128, 1024 or 4096; patterns perm (a
// permutation), rand (Poisson arrivals at half load), a2aflat<n> (all-to-all of n hosts, spread evenly).
inline Traffic traffic(const std::string& name) {
    Traffic t;
    const int hosts = std::stoi(name);
    const std::string pattern = name.substr(name.find('_') + 1);
    t.half = hosts == 128 ? 4 : hosts == 1024 ? 8 : 16;
    t.pods = hosts / (t.half * t.half);
    RandomStream random(1, 0, name);
    const auto any = [&](int n) {
        return static_cast<int>(random.below(static_cast<std::uint64_t>(n)));
    };
    if (pattern == "perm") {
        std::vector<int> to(static_cast<std::size_t>(hosts));
        for (int i = 0; i < hosts; ++i) to[static_cast<std::size_t>(i)] = i;
        // Sattolo's shuffle: one cycle, so nobody sends to itself.
        for (int i = hosts - 1; i > 0; --i) {
            std::swap(to[static_cast<std::size_t>(i)], to[static_cast<std::size_t>(any(i))]);
        }
        const double bytes = hosts == 128 ? 16 << 20 : 4 << 20;
        for (int i = 0; i < hosts; ++i)
            t.flows.push_back({i, to[static_cast<std::size_t>(i)], bytes, 0});
    } else if (pattern == "rand") {
        constexpr double mean_bytes = 1 << 20;
        const double rate = 0.5 * hosts * link_bytes_per_s / mean_bytes;
        double now = 0;
        for (int i = 0; i < 5000; ++i) {
            now += random.exponential() / rate;
            const int from = any(hosts);
            const int to = (from + 1 + any(hosts - 1)) % hosts;
            t.flows.push_back({from, to, 1 + mean_bytes * random.exponential(), now});
        }
    } else {
        const int members = std::stoi(pattern.substr(7));
        const double bytes = members == 64 ? 256 << 10 : 64 << 10;
        for (int i = 0; i < members; ++i) {
            for (int j = 0; j < members; ++j) {
                const int step = hosts / members;
                if (i != j) t.flows.push_back({i * step, j * step, bytes, 0});
            }
        }
    }
    return t;
}

// Writes each flow's end, in order, and prints the CPU seconds and the peak of memory in MB.
inline void report(const std::string& path, const std::vector<double>& ends_s, double cpu_s) {
    std::ofstream out(path, std::ios::binary);
    out.write(reinterpret_cast<const char*>(ends_s.data()),
              static_cast<std::streamsize>(ends_s.size() * sizeof(double)));
    double peak_kb = 0;
    std::ifstream status("/proc/self/status");
    for (std::string line; std::getline(status, line);) {
        if (line.starts_with("VmHWM:")) peak_kb = std::stod(line.substr(6));
    }
    std::printf("%.6f %.3f\n", cpu_s, peak_kb / 1024);
}

}  // namespace railyard
