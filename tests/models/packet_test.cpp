#include <doctest/doctest.h>
#include <fmt/format.h>

#include <algorithm>

#include "models/fabric/fabric.h"
#include "sim/rng.h"
#include "tests/table.h"

using namespace railyard;

namespace {

constexpr std::int64_t us = 1'000'000;  // in ps
constexpr Bandwidth gbit(std::int64_t n) {
    return Bandwidth::bits_per_second(n * 1'000'000'000);
}

struct CatalogueOnly {
    Diagnostics diagnostics;
    ValueReader reader{diagnostics, ""};
    Catalogue catalogue{reader, ValueChoice::corrected, nullptr};
};

// ---- the runs of table 44: its header has the configuration ----

struct Reference {
    CatalogueOnly c;
    PacketNetwork network;
    PacketSpec spec;
    std::string congestion;  // a name in the table
    std::vector<PacketFlow> flows;

    Reference(std::string cc, std::int64_t buffer_bytes) : congestion(std::move(cc)) {
        const bool hpcc = congestion.starts_with("hpcc");
        spec.payload_bytes = 1000;
        spec.header_bytes = hpcc ? 78 : 36;
        spec.ack_bytes = hpcc ? 76 : 48;
        spec.buffer.bytes = buffer_bytes;
        spec.buffer.alpha = c.catalogue.number("pfc", "", "alpha_hpcc");
        spec.buffer.resume_offset_bytes =
            c.catalogue.data("pfc", "", "resume_offset_hpcc").count();
    }

    VertexId nic() { return network.add_nic(); }
    VertexId switch_() { return network.add_switch(spec.buffer.bytes); }
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

    PacketEngine engine() {
        std::size_t hops = 0;
        std::int64_t line = 0;
        const bool mild = congestion.find("rp55") != std::string::npos;
        for (PacketLink& l : network.links) {
            l.headroom_bytes = headroom_by_delay(c.catalogue, l.rate, l.latency).count();
            const std::int64_t per_gbit = l.rate.bits_per_second() / 1'000'000'000;
            line = l.rate.bits_per_second();
            if (congestion.starts_with("dcqcn")) {
                l.ecn = {4000 * per_gbit, 16000 * per_gbit, mild ? 0.01 : 0.2};
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
            const std::int64_t transfer = 1000 * 8'000'000 / (line / 1'000'000);
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
std::vector<double> goodputs(PacketEngine& e, std::size_t flows, std::int64_t from_us,
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
        if (q == 0) continue;
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

double mean(const std::vector<double>& v) {
    double sum = 0;
    for (const double x : v) sum += x;
    return sum / static_cast<double>(v.size());
}

}  // namespace

TEST_CASE("explore: table 44") {
    for (const char* cc : {"pfc_only_no_cc", "dcqcn_hpccrepo_defaults", "hpcc_defaults"}) {
        for (const int n : {2, 4, 8}) {
            Reference r(cc, 32'000'000);
            const VertexId sw = r.switch_();
            const VertexId to = r.nic();
            const LinkId down = r.cable(sw, to);
            for (int i = 0; i < n; ++i) {
                r.flow({r.cable(r.nic(), sw), down}, 1'000'000);
            }
            PacketEngine e = r.engine();
            const bool done = e.run(Picoseconds(100'000 * us));
            std::vector<double> fct;
            for (int i = 0; i < n; ++i) {
                fct.push_back(static_cast<double>(e.end(static_cast<std::size_t>(i)).count()) * 1e-6 -
                              1000);
            }
            fmt::print("incast {} n={} done {} mean {:.1f} max {:.1f} min {:.1f} qmax {:.1f} pfc {} lost {} {}\n",
                       cc, n, done, mean(fct), *std::max_element(fct.begin(), fct.end()),
                       *std::min_element(fct.begin(), fct.end()),
                       static_cast<double>(e.queue_bytes_max(down, 1)) * 1e-3,
                       e.totals().pause_frames, e.totals().lost_lossless, e.audit());
        }
    }
    for (const char* cc : {"dcqcn_hpccrepo_defaults", "hpcc_defaults", "dcqcn_rp55_frt5_pmax0.01"}) {
        for (const int n : {2, 4, 8}) {
            Reference r(cc, 32'000'000);
            const VertexId s1 = r.switch_();
            const VertexId s2 = r.switch_();
            const LinkId middle = r.cable(s1, s2);
            for (int i = 0; i < n; ++i) {
                const LinkId up = r.cable(r.nic(), s1);
                r.flow({up, middle, r.cable(s2, r.nic())});
            }
            PacketEngine e = r.engine();
            Queue44 q;
            const auto g = goodputs(e, static_cast<std::size_t>(n), 11000, 21000, middle, q);
            fmt::print("dumbbell {} n={} mean {:.3f} min {:.3f} max {:.3f} qmean {:.1f} qmax {:.1f} pfc {} {}\n", cc,
                       n, mean(g), *std::min_element(g.begin(), g.end()),
                       *std::max_element(g.begin(), g.end()), q.mean_kb, q.max_kb,
                       e.totals().pause_frames, e.audit());
        }
    }
    for (const char* cc : {"pfc_only_no_cc", "dcqcn_hpccrepo_defaults", "hpcc_defaults"}) {
        for (const int k : {0, 1, 2}) {
            Reference r(cc, 4'000'000);
            const VertexId s1 = r.switch_();
            const VertexId s2 = r.switch_();
            const LinkId middle = r.cable(s1, s2);
            const LinkId r1 = r.cable(s2, r.nic());
            const LinkId r2 = r.cable(s2, r.nic());
            r.flow({r.cable(r.nic(), s1), middle, r1});
            r.flow({r.cable(r.nic(), s1), middle, r2});
            for (int i = 0; i < k; ++i) r.flow({r.cable(r.nic(), s2), r2});
            PacketEngine e = r.engine();
            Queue44 q;
            const auto g = goodputs(e, static_cast<std::size_t>(2 + k), 5000, 13000, middle, q);
            fmt::print("victim {} k={} A {:.3f} B {:.3f} extra {:.3f} pfc {} lost {} {}\n", cc, k, g[0], g[1],
                       k ? g[2] : 0, e.totals().pause_frames, e.totals().lost_lossless, e.audit());
        }
    }
    for (const char* cc : {"pfc_only_no_cc", "dcqcn_hpccrepo_defaults", "hpcc_defaults"}) {
        Reference r(cc, 32'000'000);
        std::vector<VertexId> s;
        for (int i = 0; i < 4; ++i) s.push_back(r.switch_());
        std::vector<LinkId> path = {r.cable(r.nic(), s[0])};
        std::vector<LinkId> middle;
        for (std::size_t i = 0; i < 3; ++i) middle.push_back(r.cable(s[i], s[i + 1]));
        path.insert(path.end(), middle.begin(), middle.end());
        path.push_back(r.cable(s[3], r.nic()));
        r.flow(path);
        for (std::size_t i = 0; i < 3; ++i) {
            const LinkId up = r.cable(r.nic(), s[i]);
            r.flow({up, middle[i], r.cable(s[i + 1], r.nic())});
        }
        PacketEngine e = r.engine();
        Queue44 q;
        const auto g = goodputs(e, 4, 11000, 21000, middle[0], q);
        fmt::print("parking {} long {:.3f} cross {:.3f} {:.3f} {:.3f} pfc {} {}\n", cc, g[0], g[1], g[2], g[3],
                   e.totals().pause_frames, e.audit());
    }
}
