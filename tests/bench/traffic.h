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
    int after = -1;  // starts when this earlier flow has ended; -1: none
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

// Every chunk goes nearly twice round, a hop when the one before has ended.
inline void add_ring(int members, Traffic& t) {
    for (int chunk = 0; chunk < members; ++chunk) {
        for (int hop = 0; hop < 2 * (members - 1); ++hop) {
            const int from = (chunk + hop) % members;
            t.flows.push_back({from, (from + 1) % members, 512 << 10, 0,
                               hop == 0 ? -1 : static_cast<int>(t.flows.size()) - 1});
        }
    }
}

inline void add_all_to_all(int members, Traffic& t) {
    const double bytes = members == 64 ? 256 << 10 : 64 << 10;
    const int step = t.hosts() / members;
    for (int i = 0; i < members; ++i) {
        for (int j = 0; j < members; ++j) {
            if (i != j) t.flows.push_back({i * step, j * step, bytes, 0});
        }
    }
}

// `name` is <hosts>_<pattern>, such as 1024_a2aflat256; hosts 128, 1024, 4096 or 8192; patterns perm (a
// permutation), rand (Poisson arrivals at half load), a2aflat<n> (all-to-all of n hosts, spread
// evenly), incast (32 senders to one host, once in 128 hosts, 31 times in 1024), ring<n> (a ring
// all-reduce of n hosts).
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
        const double bytes = hosts == 128 ? 16 << 20 : hosts == 8192 ? 1 << 20 : 4 << 20;
        for (int i = 0; i < hosts; ++i)
            t.flows.push_back({i, to[static_cast<std::size_t>(i)], bytes, 0});
    } else if (pattern == "incast") {
        // Groups of 33 of the shuffled hosts; the first of each receives.
        std::vector<int> order(static_cast<std::size_t>(hosts));
        for (int i = 0; i < hosts; ++i) order[static_cast<std::size_t>(i)] = i;
        for (int i = hosts - 1; i > 0; --i) {
            std::swap(order[static_cast<std::size_t>(i)],
                      order[static_cast<std::size_t>(any(i + 1))]);
        }
        const int groups = hosts == 128 ? 1 : hosts / 33;
        const double bytes = hosts == 128 ? 4 << 20 : 1 << 20;
        for (int g = 0; g < groups; ++g) {
            for (int i = 1; i <= 32; ++i) {
                t.flows.push_back({order[static_cast<std::size_t>(33 * g + i)],
                                   order[static_cast<std::size_t>(33 * g)], bytes, 0});
            }
        }
    } else if (pattern.starts_with("ring")) {
        add_ring(std::stoi(pattern.substr(4)), t);
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
        add_all_to_all(std::stoi(pattern.substr(7)), t);
    }
    return t;
}

// The most memory that this process has ever held.
inline double peak_megabytes() {
    double peak_kb = 0;
    std::ifstream status("/proc/self/status");
    for (std::string line; std::getline(status, line);) {
        if (line.starts_with("VmHWM:")) peak_kb = std::stod(line.substr(6));
    }
    return peak_kb / 1024;
}

// Writes each flow's end, in order, and prints the CPU seconds and the peak of memory in MB.
inline void report(const std::string& path, const std::vector<double>& ends_s, double cpu_s) {
    std::ofstream out(path, std::ios::binary);
    out.write(reinterpret_cast<const char*>(ends_s.data()),
              static_cast<std::streamsize>(ends_s.size() * sizeof(double)));
    std::printf("%.6f %.3f\n", cpu_s, peak_megabytes());
}

}  // namespace railyard
