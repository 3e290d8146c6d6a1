#include "tests/laws/oracles/dcqcn_runs.h"

#include <algorithm>

namespace railyard {

DcqcnTestbed::DcqcnTestbed()
    : ecn{c.catalogue.data("ecn", "dcqcn_paper_40g", "kmin").count(),
          c.catalogue.data("ecn", "dcqcn_paper_40g", "kmax").count(),
          c.catalogue.number("ecn", "dcqcn_paper_40g", "pmax")} {
    spec.payload_bytes = 1000;
    spec.header_bytes = 24;  // 1 KiB on the wire
    spec.cnp_interval = c.catalogue.time("dcqcn", "dcqcn_paper", "cnp_interval");
}

void DcqcnTestbed::flow(std::vector<LinkId> path, std::int64_t bytes, std::int64_t start_us) {
    PacketFlow f = flow_of(std::move(path), bytes);
    f.start = Picoseconds(start_us * us);
    flows.push_back(std::move(f));
}

PacketEngine DcqcnTestbed::engine(std::unique_ptr<Congestion> control, bool marks) {
    for (PacketLink& l : network.links) {
        l.headroom_bytes = headroom_by_delay(c.catalogue, l.rate, l.latency).count();
        if (marks) l.ecn = ecn;
    }
    PacketEngine e(network, spec, std::move(control));
    for (const PacketFlow& f : flows) e.add(f);
    return e;
}

std::vector<double> DcqcnTestbed::rates(PacketEngine& e, std::int64_t from_us,
                                        std::int64_t to_us) const {
    e.run(Picoseconds(from_us * us));
    std::vector<double> out;
    for (std::size_t f = 0; f < flows.size(); ++f) {
        out.push_back(-static_cast<double>(e.received_bytes(f)));
    }
    e.run(Picoseconds(to_us * us));
    const double wire =
        1 + static_cast<double>(spec.header_bytes) / static_cast<double>(spec.payload_bytes);
    for (std::size_t f = 0; f < flows.size(); ++f) {
        out[f] = (out[f] + static_cast<double>(e.received_bytes(f))) * 8e-3 * wire /
                 static_cast<double>(to_us - from_us);
    }
    return out;
}

std::vector<double> DcqcnTestbed::settled_rates(bool controlled) {
    PacketEngine e = engine(controlled);
    return rates(e, 40'000, controlled ? 100'000 : 60'000);
}

std::vector<double> near_and_far_rates(bool controlled, int far) {
    DcqcnTestbed t;
    const VertexId there = t.switch_();
    const VertexId here = t.switch_();
    const LinkId between = t.cable(there, here);
    const LinkId down = reverse_link(t.nic_to(here));
    t.flow({t.nic_to(here), down});
    for (int i = 0; i < far; ++i) t.flow({t.nic_to(there), between, down});
    return t.settled_rates(controlled);
}

double victim_rate(bool controlled, int extra) {
    DcqcnTestbed t;
    const VertexId t1 = t.switch_();
    const VertexId t2 = t.switch_();
    const VertexId t3 = t.switch_();
    const VertexId t4 = t.switch_();
    const LinkId down = reverse_link(t.nic_to(t4));
    const LinkId of_t2 = reverse_link(t.nic_to(t2));
    // Two ways from pod to pod, and half of the senders' flows on each.
    std::vector<std::vector<LinkId>> way(2);
    std::vector<std::vector<LinkId>> way_of_t3(2);
    for (std::size_t i = 0; i < 2; ++i) {
        const VertexId leaf = t.switch_();
        const VertexId spine = t.switch_();
        const VertexId far_leaf = t.switch_();
        const LinkId up = t.cable(t1, leaf);
        const LinkId to_t4 = t.cable(far_leaf, t4);
        if (i == 0) t.flow({t.nic_to(t1), up, t.cable(leaf, t2), of_t2});
        way[i] = {up, t.cable(leaf, spine), t.cable(spine, far_leaf), to_t4, down};
        way_of_t3[i] = {t.cable(t3, far_leaf), to_t4, down};
    }
    const auto send = [&](VertexId from, const std::vector<LinkId>& by) {
        std::vector<LinkId> path = {t.nic_to(from)};
        path.insert(path.end(), by.begin(), by.end());
        t.flow(std::move(path));
    };
    for (std::size_t i = 0; i < 4; ++i) send(t1, way[i % 2]);
    for (int i = 0; i < extra; ++i) send(t3, way_of_t3[static_cast<std::size_t>(i) % 2]);
    return t.settled_rates(controlled).front();
}

FluidRun settle(const FluidPoint& point) {
    DcqcnTestbed t;
    t.gbits = point.gbits;
    t.spec.ack_class = -1;
    t.spec.payload_bytes = point.packet_bytes - t.spec.header_bytes;
    t.spec.cnp_interval = point.cnp_interval;
    t.ecn = {5'000, 1'955'000, 0.1};  // the paper's slope, further on
    const VertexId sw = t.switch_(32'000'000);
    const LinkId down = reverse_link(t.nic_to(sw));
    for (int i = 0; i < point.flows; ++i) t.flow({t.nic_to(sw), down});
    DcqcnSpec control = t.dcqcn_spec();
    control.additive_bits_per_s = point.additive_bits_per_s;
    control.increase_timer = point.increase_timer;
    control.byte_counter = point.byte_counter;
    PacketEngine e = t.engine(dcqcn(control), true);
    FluidRun out;
    out.rates.resize(t.flows.size());
    double queue = 0;
    constexpr std::int64_t from_us = 50'000;
    constexpr std::int64_t to_us = 100'000;
    constexpr std::int64_t step_us = 10;
    constexpr double samples = static_cast<double>((to_us - from_us) / step_us);
    for (std::int64_t at = from_us; at < to_us; at += step_us) {
        const std::vector<double> now = t.rates(e, at, at + step_us);
        for (std::size_t f = 0; f < now.size(); ++f) out.rates[f] += now[f] / samples;
        queue += static_cast<double>(e.queue_bytes(down, 1)) / samples;
    }
    out.marked_share = (queue - static_cast<double>(t.ecn.kmin_bytes)) * t.ecn.pmax /
                       static_cast<double>(t.ecn.kmax_bytes - t.ecn.kmin_bytes);
    return out;
}

BurstRun burst_past_bystander(std::uint64_t seed) {
    DcqcnTestbed t;
    t.spec.seed = seed;
    t.ecn.kmax_bytes = 100'000;
    const VertexId s2 = t.switch_();
    const VertexId s1 = t.switch_(4'000'000);
    const LinkId between = t.cable(s2, s1);
    const LinkId r1 = reverse_link(t.nic_to(s1));
    const LinkId r2 = reverse_link(t.nic_to(s1));
    t.flow({t.nic_to(s2), between, r1});
    t.flow({t.nic_to(s2), between, r2});
    // A message of each host every 10 us: 49 Gbit/s on the wire, so that 6 MB are gone after 1.2 ms.
    constexpr int hosts = 15;
    constexpr std::int64_t burst_us = 30'000;  // the two have settled
    constexpr std::int64_t burst_length_us = 1'000;
    for (int host = 0; host < hosts; ++host) {
        const LinkId up = t.nic_to(s1);
        for (std::int64_t at = 0; at < burst_length_us; at += 10) {
            t.flow({up, r2}, 4000, burst_us + at);
        }
    }
    DcqcnSpec control = t.dcqcn_spec();
    control.increase_timer = Picoseconds(50 * us);
    PacketEngine e = t.engine(dcqcn(control), true);
    std::vector<PauseEdge> pauses;
    e.log_pauses(pauses);
    const std::vector<double> before = t.rates(e, burst_us - 1'000, burst_us);
    BurstRun out;
    out.bystander_before = before[0];
    out.other_before = before[1];
    out.pauses_before = e.pauses(between, 1);
    constexpr std::int64_t step_us = 250;
    std::vector<double> bystander;
    std::vector<double> shared;
    for (std::int64_t at = burst_us; at < burst_us + 60'000; at += step_us) {
        const std::vector<double> now = t.rates(e, at, at + step_us);
        bystander.push_back(now[0]);
        shared.push_back(now[0] + now[1]);
    }
    Picoseconds paused_until(burst_us * us);
    for (const PauseEdge& edge : pauses) {
        if (edge.link == between) paused_until = std::max(paused_until, edge.at);
    }
    out.paused_ms = static_cast<double>(paused_until.count()) * 1e-9 - burst_us * 1e-3;
    const auto first = static_cast<std::ptrdiff_t>(out.paused_ms * 1e3 / step_us) + 1;
    const auto least = std::min_element(bystander.begin() + first, bystander.end());
    out.bystander_least = *least;
    const double full = 0.95 * static_cast<double>(t.gbits);
    const auto filled = std::find_if(shared.begin() + (least - bystander.begin()), shared.end(),
                                     [&](double rate) { return rate > full; });
    out.underused_ms =
        static_cast<double>(filled - shared.begin()) * step_us * 1e-3 - out.paused_ms;
    return out;
}

}  // namespace railyard
