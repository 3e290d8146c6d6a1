#pragma once
// Runs that others have published figures of: those of table 44, ns-3 with the HPCC authors' model. Its
// header has the configuration.

#include <doctest/doctest.h>

#include <algorithm>
#include <map>
#include <string>
#include <vector>

#include "models/fabric/fabric.h"

namespace railyard {

constexpr std::int64_t us = 1'000'000;  // in ps
constexpr Bandwidth gbit(std::int64_t n) {
    return Bandwidth::bits_per_second(n * 1'000'000'000);
}

struct Reference {
    StandaloneCatalogue c;
    PacketNetwork network;
    PacketSpec spec;
    std::string congestion;  // a name in the table
    std::int64_t buffer_bytes;
    std::vector<PacketFlow> flows;
    std::int64_t marked_as_gbit = 0;  // ECN's thresholds are those of this rate; 0: of the link's

    Reference(std::string cc, std::int64_t bytes) : congestion(std::move(cc)), buffer_bytes(bytes) {
        const bool hpcc = congestion.starts_with("hpcc");
        spec.payload_bytes = 1000;
        spec.header_bytes = hpcc ? 78 : 36;
        spec.ack_bytes = hpcc ? 76 : 48;
        spec.ack_class = 1;  // they queue with the data, as WebSearch's slowdowns tell
        spec.buffer.alpha = c.catalogue.number("pfc", "", "alpha_hpcc");
        spec.buffer.resume_offset_bytes = c.catalogue.data("pfc", "", "resume_offset_hpcc").count();
    }

    VertexId nic() { return network.add_nic(); }
    VertexId switch_() { return network.add_switch(buffer_bytes); }
    LinkId cable(VertexId a, VertexId b, std::int64_t g = 100) {
        return network.add_cable(a, b, gbit(g), Picoseconds(us));
    }
    void flow(std::vector<LinkId> path, std::int64_t bytes = std::int64_t{1} << 40) {
        PacketFlow f;
        f.path = std::move(path);
        f.bytes = bytes;
        f.start = Picoseconds(1000 * us);
        flows.push_back(std::move(f));
    }

    PacketEngine engine(std::uint64_t seed = 1) {
        spec.seed = seed;
        std::size_t hops = 0;
        std::int64_t line = 0;
        const bool mild = congestion.find("rp55") != std::string::npos;
        for (PacketLink& l : network.links) {
            l.headroom_bytes = headroom_by_delay(c.catalogue, l.rate, l.latency).count();
            const std::int64_t gbits =
                marked_as_gbit > 0 ? marked_as_gbit : l.rate.bits_per_second() / 1'000'000'000;
            line = l.rate.bits_per_second();
            if (congestion.starts_with("dcqcn")) {
                l.ecn = {4000 * gbits, 16000 * gbits, mild ? 0.01 : 0.2};
            }
        }
        for (const PacketFlow& f : flows) hops = std::max(hops, f.path.size());
        std::unique_ptr<Congestion> control = no_congestion_control();
        if (congestion.starts_with("dcqcn")) {
            DcqcnSpec d;
            d.alpha_timer = Picoseconds(us);
            d.reduce_period = Picoseconds(4 * us);
            d.increase_timer = Picoseconds((mild ? 55 : 900) * us);
            d.fast_recovery_steps = mild ? 5 : 1;
            d.additive_bits_per_s = mild ? 40e6 : 50e6;
            d.hyper_bits_per_s = mild ? 400e6 : 100e6;
            d.min_bits_per_s = 100e6;
            control = dcqcn(d);
        } else if (congestion.starts_with("hpcc")) {
            HpccSpec h;
            const std::int64_t transfer = spec.payload_bytes * 8'000'000 / (line / 1'000'000);
            h.base_rtt = Picoseconds(static_cast<std::int64_t>(hops) * (2 * us + transfer));
            h.utilisation = c.catalogue.number("hpcc", "", "utilisation");
            h.stages_max = c.catalogue.integer("hpcc", "", "stages_max");
            h.additive_bits_per_s = 50e6;
            h.min_bits_per_s = 100e6;
            control = hpcc(h);
        }
        PacketEngine e(network, spec, std::move(control));
        for (const PacketFlow& f : flows) e.add(f);
        return e;
    }
};

struct Queue44 {
    double mean_kb = 0;
    double max_kb = 0;
};

// Goodput of each flow in Gbit/s between two instants, and the queue at `watched` looked at every
// microsecond when it is not empty.
inline std::vector<double> goodputs(PacketEngine& e, std::size_t flows, std::int64_t from_us,
                                    std::int64_t to_us, LinkId watched, Queue44& queue) {
    double sum = 0;
    std::int64_t samples = 0;
    std::vector<std::int64_t> before(flows);
    for (std::int64_t t = 1000; t <= to_us; ++t) {
        e.run(Picoseconds(t * us));
        if (t == from_us) {
            for (std::size_t f = 0; f < flows; ++f) before[f] = e.received_bytes(f);
        }
        const std::int64_t q = e.queue_bytes(watched, 1);
        if (q == 0 || t < from_us) continue;
        sum += static_cast<double>(q);
        ++samples;
        queue.max_kb = std::max(queue.max_kb, static_cast<double>(q) * 1e-3);
    }
    if (samples > 0) queue.mean_kb = sum / static_cast<double>(samples) * 1e-3;
    std::vector<double> out;
    for (std::size_t f = 0; f < flows; ++f) {
        out.push_back(static_cast<double>(e.received_bytes(f) - before[f]) * 8 /
                      (static_cast<double>(to_us - from_us) * 1e3));
    }
    return out;
}

inline double mean(const std::vector<double>& v) {
    double sum = 0;
    for (const double x : v) sum += x;
    return sum / static_cast<double>(v.size());
}

// What one run has to say about the rows of one (experiment, cc, parameter).
using Metrics = std::map<std::string, double>;

inline Metrics incast(const std::string& cc, int n, std::uint64_t seed) {
    Reference r(cc, 32'000'000);
    const VertexId sw = r.switch_();
    const LinkId down = r.cable(sw, r.nic());
    for (int i = 0; i < n; ++i) r.flow({r.cable(r.nic(), sw), down}, 1'000'000);
    PacketEngine e = r.engine(seed);
    REQUIRE(e.run(Picoseconds(100'000 * us)));
    CHECK(e.audit() == "");
    CHECK(e.totals().lost_lossless == 0);
    std::vector<double> fct;
    for (std::size_t i = 0; i < r.flows.size(); ++i) {
        fct.push_back(static_cast<double>(e.end(i).count()) * 1e-6 - 1000);
    }
    return {{"fct_mean_us", mean(fct)},
            {"fct_max_us", *std::max_element(fct.begin(), fct.end())},
            {"fct_min_us", *std::min_element(fct.begin(), fct.end())},
            {"q_max_kB", static_cast<double>(e.queue_bytes_max(down, 1)) * 1e-3}};
}

inline Metrics dumbbell(const std::string& cc, int n, std::uint64_t seed) {
    Reference r(cc, 32'000'000);
    const VertexId left = r.switch_();
    const VertexId right = r.switch_();
    const LinkId middle = r.cable(left, right);
    for (int i = 0; i < n; ++i) {
        const LinkId up = r.cable(r.nic(), left);
        r.flow({up, middle, r.cable(right, r.nic())});
    }
    PacketEngine e = r.engine(seed);
    Queue44 queue;
    const auto rates = goodputs(e, r.flows.size(), 11000, 21000, middle, queue);
    CHECK(e.audit() == "");
    CHECK(e.totals().lost_lossless == 0);
    return {{"mean_gbps", mean(rates)}, {"q_mean_kB", queue.mean_kb}, {"q_max_kB", queue.max_kb}};
}

inline Metrics pfc_victim(const std::string& cc, int extra, std::uint64_t seed) {
    Reference r(cc, 4'000'000);
    const VertexId s1 = r.switch_();
    const VertexId s2 = r.switch_();
    const LinkId middle = r.cable(s1, s2);
    const LinkId r1 = r.cable(s2, r.nic());
    const LinkId r2 = r.cable(s2, r.nic());
    r.flow({r.cable(r.nic(), s1), middle, r1});
    r.flow({r.cable(r.nic(), s1), middle, r2});
    for (int i = 0; i < extra; ++i) r.flow({r.cable(r.nic(), s2), r2});
    PacketEngine e = r.engine(seed);
    Queue44 queue;
    const auto rates = goodputs(e, r.flows.size(), 5000, 13000, middle, queue);
    CHECK(e.audit() == "");
    CHECK(e.totals().lost_lossless == 0);
    Metrics m = {{"victim_gbps", rates[0]},
                 {"B_gbps", rates[1]},
                 {"pfc_events", static_cast<double>(e.totals().pause_frames)}};
    if (extra > 0) m["extra_mean_gbps"] = mean({rates.begin() + 2, rates.end()});
    return m;
}

inline Metrics parking_lot(const std::string& cc, std::uint64_t seed) {
    Reference r(cc, 32'000'000);
    std::vector<VertexId> s;
    for (int i = 0; i < 4; ++i) s.push_back(r.switch_());
    std::vector<LinkId> path = {r.cable(r.nic(), s[0])};
    for (std::size_t i = 0; i < 3; ++i) path.push_back(r.cable(s[i], s[i + 1]));
    const std::vector<LinkId> hop(path.begin() + 1, path.end());
    path.push_back(r.cable(s[3], r.nic()));
    r.flow(path);
    for (std::size_t i = 0; i < 3; ++i) {
        const LinkId up = r.cable(r.nic(), s[i]);
        r.flow({up, hop[i], r.cable(s[i + 1], r.nic())});
    }
    PacketEngine e = r.engine(seed);
    Queue44 queue;
    const auto rates = goodputs(e, 4, 11000, 21000, hop[0], queue);
    CHECK(e.audit() == "");
    CHECK(e.totals().lost_lossless == 0);
    return {{"long_gbps", rates[0]},
            {"cross_mean_gbps", (rates[1] + rates[2] + rates[3]) / 3},
            {"pfc_events", static_cast<double>(e.totals().pause_frames)}};
}

}  // namespace railyard
