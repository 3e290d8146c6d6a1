#include "tests/laws/oracles/ns3_runs.h"

#include <algorithm>
#include <cstdlib>

#include "sim/check.h"
#include "tools/program/csv_table.h"

namespace railyard {

namespace {

constexpr std::int64_t start_us = 1000;
// What the table lets flows run, and what it looks at.
constexpr std::int64_t steady_from_us = 11'000;
constexpr std::int64_t steady_to_us = 21'000;

DcqcnSpec repository_defaults() {
    DcqcnSpec d;
    d.alpha_timer = Picoseconds(us);
    d.reduce_period = Picoseconds(4 * us);
    d.increase_timer = Picoseconds(900 * us);
    d.fast_recovery_steps = 1;
    d.additive_bits_per_s = 50e6;
    d.hyper_bits_per_s = 100e6;
    d.min_bits_per_s = 100e6;
    return d;
}

// The number behind "_<name>" in a congestion control's name.
std::optional<double> variant(const std::string& name, const std::string& key) {
    const std::size_t at = name.find("_" + key);
    if (at == std::string::npos) return std::nullopt;
    const char* number = name.c_str() + at + key.size() + 1;
    char* end = nullptr;
    const double value = std::strtod(number, &end);
    if (end == number) return std::nullopt;
    return value;
}

bool whole(const PacketEngine& e) {
    RY_CHECK(e.audit().empty());
    return e.totals().lost_lossless == 0;
}

double least(const std::vector<double>& values) {
    return *std::min_element(values.begin(), values.end());
}

double most(const std::vector<double>& values) {
    return *std::max_element(values.begin(), values.end());
}

// Jain's index: 1 when all are equal, 1/n when one has all.
double fairness(const std::vector<double>& values) {
    double squares = 0;
    for (const double x : values) squares += x * x;
    return mean(values) * mean(values) * static_cast<double>(values.size()) / squares;
}

double pause_events(const PacketEngine& e) {
    return static_cast<double>(e.totals().pause_frames);
}

}  // namespace

double mean(const std::vector<double>& values) {
    double sum = 0;
    for (const double x : values) sum += x;
    return sum / static_cast<double>(values.size());
}

std::optional<Ns3Control> Ns3Control::of(const std::string& name) {
    Ns3Control out;
    out.dcqcn = repository_defaults();
    if (name.starts_with("pfc_only")) return out;
    if (name.starts_with("hpcc")) {
        out.kind = Kind::hpcc;
        return out;
    }
    if (!name.starts_with("dcqcn")) return std::nullopt;
    out.kind = Kind::dcqcn;
    if (const auto timer = variant(name, "rp")) {
        out.dcqcn.increase_timer = Picoseconds(static_cast<std::int64_t>(*timer * us));
        // The table's header: the shorter timer goes with the paper's steps.
        out.dcqcn.additive_bits_per_s = 40e6;
        out.dcqcn.hyper_bits_per_s = 400e6;
    }
    if (const auto steps = variant(name, "frt")) {
        out.dcqcn.fast_recovery_steps = static_cast<int>(*steps);
    }
    out.pmax = variant(name, "pmax").value_or(out.pmax);
    return out;
}

Ns3Network::Ns3Network(const Ns3Control& by, std::int64_t bytes)
    : control(by), buffer_bytes(bytes) {
    const bool telemetry = control.kind == Ns3Control::Kind::hpcc;
    spec.payload_bytes = 1000;
    spec.header_bytes = telemetry ? 78 : 36;
    spec.ack_bytes = telemetry ? 76 : 48;
    spec.ack_class = 1;  // they queue with the data, as WebSearch's slowdowns tell
    spec.buffer.alpha = c.catalogue.number("pfc", "", "alpha_hpcc");
    spec.buffer.resume_offset_bytes = c.catalogue.data("pfc", "", "resume_offset_hpcc").count();
}

void Ns3Network::flow(std::vector<LinkId> path, std::int64_t bytes) {
    PacketFlow f = flow_of(std::move(path), bytes);
    f.start = Picoseconds(start_us * us);
    flows.push_back(std::move(f));
}

PacketEngine Ns3Network::engine(std::uint64_t seed) {
    spec.seed = seed;
    std::size_t hops = 0;
    std::int64_t line = 0;
    for (PacketLink& l : network.links) {
        l.headroom_bytes = headroom_by_delay(c.catalogue, l.rate, l.latency).count();
        line = l.rate.bits_per_second();
        const std::int64_t gbits = marked_as_gbit > 0 ? marked_as_gbit : line / 1'000'000'000;
        if (control.draws()) l.ecn = {4000 * gbits, 16000 * gbits, control.pmax};
    }
    for (const PacketFlow& f : flows) hops = std::max(hops, f.path.size());
    std::unique_ptr<Congestion> congestion = no_congestion_control();
    if (control.kind == Ns3Control::Kind::dcqcn) {
        congestion = dcqcn(control.dcqcn);
    } else if (control.kind == Ns3Control::Kind::hpcc) {
        HpccSpec h;
        const std::int64_t transfer = spec.payload_bytes * 8'000'000 / (line / 1'000'000);
        h.base_rtt = Picoseconds(static_cast<std::int64_t>(hops) * (2 * us + transfer));
        h.utilisation = c.catalogue.number("hpcc", "", "utilisation");
        h.stages_max = c.catalogue.integer("hpcc", "", "stages_max");
        h.additive_bits_per_s = 50e6;
        h.min_bits_per_s = 100e6;
        congestion = hpcc(h);
    }
    PacketEngine e(network, spec, std::move(congestion));
    for (const PacketFlow& f : flows) e.add(f);
    return e;
}

std::vector<double> goodputs(PacketEngine& e, std::size_t flows, std::int64_t from_us,
                             std::int64_t to_us, LinkId watched, WatchedQueue& queue) {
    double sum = 0;
    std::int64_t samples = 0;
    std::vector<std::int64_t> before(flows);
    for (std::int64_t t = start_us; t <= to_us; ++t) {
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

Metrics incast(const Ns3Control& control, int n, std::uint64_t seed) {
    Ns3Network r(control, 32'000'000);
    const VertexId sw = r.switch_();
    const LinkId down = r.cable(sw, r.nic());
    for (int i = 0; i < n; ++i) r.flow({r.cable(r.nic(), sw), down}, 1'000'000);
    PacketEngine e = r.engine(seed);
    const bool ended = e.run(Picoseconds(100'000 * us));
    if (!whole(e) || !ended) return {};
    std::vector<double> fct;
    for (std::size_t i = 0; i < r.flows.size(); ++i) {
        fct.push_back(static_cast<double>((e.end(i) - r.flows[i].start).count()) * 1e-6);
    }
    return {{"fct_mean_us", mean(fct)},
            {"fct_max_us", most(fct)},
            {"fct_min_us", least(fct)},
            {"q_max_kB", static_cast<double>(e.queue_bytes_max(down, 1)) * 1e-3},
            {"pfc", pause_events(e)},
            // What went through the bottleneck, at its rate.
            {"ideal_us", static_cast<double>(e.sent_bytes(down)) * 8 * 1e6 /
                             static_cast<double>(r.network.links[down].rate.bits_per_second())}};
}

Metrics dumbbell(const Ns3Control& control, int n, std::uint64_t seed) {
    Ns3Network r(control, 32'000'000);
    const VertexId left = r.switch_();
    const VertexId right = r.switch_();
    const LinkId middle = r.cable(left, right);
    for (int i = 0; i < n; ++i) {
        const LinkId up = r.cable(r.nic(), left);
        r.flow({up, middle, r.cable(right, r.nic())});
    }
    PacketEngine e = r.engine(seed);
    WatchedQueue queue;
    const auto rates = goodputs(e, r.flows.size(), steady_from_us, steady_to_us, middle, queue);
    if (!whole(e)) return {};
    return {{"mean_gbps", mean(rates)}, {"min_gbps", least(rates)},   {"max_gbps", most(rates)},
            {"jain", fairness(rates)},  {"q_mean_kB", queue.mean_kb}, {"q_max_kB", queue.max_kb},
            {"pfc", pause_events(e)}};
}

Metrics pfc_victim(const Ns3Control& control, int extra, std::uint64_t seed) {
    Ns3Network r(control, 4'000'000);
    const VertexId s1 = r.switch_();
    const VertexId s2 = r.switch_();
    const LinkId middle = r.cable(s1, s2);
    const LinkId r1 = r.cable(s2, r.nic());
    const LinkId r2 = r.cable(s2, r.nic());
    r.flow({r.cable(r.nic(), s1), middle, r1});
    r.flow({r.cable(r.nic(), s1), middle, r2});
    for (int i = 0; i < extra; ++i) r.flow({r.cable(r.nic(), s2), r2});
    PacketEngine e = r.engine(seed);
    WatchedQueue queue;
    const auto rates = goodputs(e, r.flows.size(), 5000, 13'000, middle, queue);
    if (!whole(e)) return {};
    Metrics m = {{"victim_gbps", rates[0]}, {"B_gbps", rates[1]}, {"pfc_events", pause_events(e)}};
    if (extra > 0) m["extra_mean_gbps"] = mean({rates.begin() + 2, rates.end()});
    return m;
}

Metrics parking_lot(const Ns3Control& control, int hops, std::uint64_t seed) {
    Ns3Network r(control, 32'000'000);
    const auto count = static_cast<std::size_t>(hops);
    std::vector<VertexId> s;
    for (std::size_t i = 0; i <= count; ++i) s.push_back(r.switch_());
    std::vector<LinkId> path = {r.cable(r.nic(), s[0])};
    for (std::size_t i = 0; i < count; ++i) path.push_back(r.cable(s[i], s[i + 1]));
    const std::vector<LinkId> hop(path.begin() + 1, path.end());
    path.push_back(r.cable(s[count], r.nic()));
    r.flow(path);
    for (std::size_t i = 0; i < count; ++i) {
        const LinkId up = r.cable(r.nic(), s[i]);
        r.flow({up, hop[i], r.cable(s[i + 1], r.nic())});
    }
    PacketEngine e = r.engine(seed);
    WatchedQueue queue;
    const auto rates = goodputs(e, r.flows.size(), steady_from_us, steady_to_us, hop[0], queue);
    if (!whole(e)) return {};
    Metrics m = {{"long_gbps", rates[0]}, {"pfc_events", pause_events(e)}};
    for (std::size_t i = 1; i < rates.size(); ++i) {
        m["cross_gbps " + std::to_string(i)] = rates[i];
    }
    return m;
}

std::vector<SizedFlow> star_slowdowns(const Ns3Control& control, int nics, std::int64_t gbits,
                                      const std::string& trace) {
    Ns3Network r(control, 32'000'000);
    const VertexId sw = r.switch_();
    std::vector<LinkId> up;
    for (int i = 0; i < nics; ++i) up.push_back(r.cable(r.nic(), sw, gbits));
    std::vector<Diagnostic> wrong;
    bool strangers = false;
    each_row(read_csv_table(trace), wrong, [&](const Fields& f) {
        const auto from = static_cast<std::size_t>(f.integer("source"));
        const auto to = static_cast<std::size_t>(f.integer("destination"));
        strangers |= from >= up.size() || to >= up.size();
        if (strangers) return;
        r.flow({up[from], reverse_link(up[to])}, f.integer("bytes"));
        r.flows.back().start = Picoseconds(static_cast<std::int64_t>(f.number("start_s") * 1e12));
    });
    if (!wrong.empty()) throw ScenarioError(wrong);
    if (strangers) return {};
    PacketEngine e = r.engine();
    const bool ended = e.run(PacketEngine::never);
    if (!whole(e) || !ended) return {};
    // The table's: two links there and back, and what INT adds to each packet, for all controls alike.
    constexpr double base_us = 4;
    constexpr double wire_share = 1.048;
    std::vector<SizedFlow> out;
    for (std::size_t i = 0; i < r.flows.size(); ++i) {
        const auto bytes = static_cast<double>(r.flows[i].bytes);
        const double fct_us = static_cast<double>((e.end(i) - r.flows[i].start).count()) * 1e-6;
        const double bits_per_us = static_cast<double>(gbits) * 1e3;
        out.push_back({bytes, fct_us / (base_us + bytes * wire_share * 8 / bits_per_us)});
    }
    return out;
}

}  // namespace railyard
