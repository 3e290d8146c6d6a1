// The packet engine against others' figures: ns-3's RDMA model, closed forms, fluid models, testbeds.

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <map>

#include "sim/rng.h"
#include "tests/models/packet_reference.h"
#include "tests/table.h"

using namespace railyard;

TEST_CASE("the fabric agrees with ns-3's RDMA model (table 44)") {
    // The reference is one draw of the marking. So where packets are marked it must lie, by the tolerance,
    // within what five draws of ours give.
    struct Span {
        double least = 1e300;
        double most = -1e300;
    };
    std::map<std::string, std::map<std::string, Span>> ran;
    int compared = 0;
    for (const TableRow& row : read_table("44_ns3_reference_dcqcn_hpcc_pfc.csv")) {
        const std::string& experiment = row.at("experiment");
        const std::string& cc = row.at("cc");
        const std::string& parameter = row.at("parameter");
        const std::string key = experiment + " " + cc + " " + parameter;
        if (experiment.starts_with("websearch")) continue;
        if (!ran.contains(key)) {
            const bool marked = cc.starts_with("dcqcn");
            const int seeds = marked ? 5 : 1;
            for (int seed = 1; seed <= seeds; ++seed) {
                const auto s = static_cast<std::uint64_t>(seed);
                const int n =
                    parameter.find('=') == std::string::npos ? 0 : std::stoi(parameter.substr(2));
                const Metrics one = experiment == "incast"       ? incast(cc, n, s)
                                    : experiment == "dumbbell"   ? dumbbell(cc, n, s)
                                    : experiment == "pfc_victim" ? pfc_victim(cc, n, s)
                                                                 : parking_lot(cc, s);
                for (const auto& [name, value] : one) {
                    Span& span = ran[key][name];
                    span.least = std::min(span.least, value);
                    span.most = std::max(span.most, value);
                }
            }
        }
        std::string metric = row.at("metric");
        double reference = 0;
        if (metric == "cross_gbps") {
            metric = "cross_mean_gbps";
            for (std::size_t at = 0, next = 0; next != std::string::npos; at = next + 3) {
                next = row.at("value").find(" / ", at);
                reference += std::stod(row.at("value").substr(at)) / 3;
            }
        } else {
            reference = std::stod(row.at("value"));
        }
        const auto found = ran[key].find(metric);
        if (found == ran[key].end()) continue;
        const bool rate = metric.ends_with("gbps");
        const bool queue = metric.starts_with("q_");
        double tolerance = rate ? 0.10 : queue ? 0.30 : 0.20;
        if (cc == "pfc_only_no_cc") tolerance = metric == "pfc_events" ? 0.10 : 0.03;
        // How often a marked flow is still paused is luck.
        if (cc != "pfc_only_no_cc" && metric == "pfc_events") continue;
        CAPTURE(key);
        CAPTURE(metric);
        CHECK(found->second.least <= reference * (1 + tolerance));
        CHECK(found->second.most >= reference * (1 - tolerance));
        ++compared;
    }
    CHECK(compared > 60);
}

TEST_CASE("the fabric agrees with ns-3 on WebSearch, flow size by flow size (table 44)") {
    struct Sized {
        double bytes;
        double slowdown;
    };
    std::map<std::string, std::vector<Sized>> ran;
    int compared = 0;
    for (const TableRow& row : read_table("44_ns3_reference_dcqcn_hpcc_pfc.csv")) {
        if (!row.at("experiment").starts_with("websearch")) continue;
        const std::string& cc = row.at("cc");
        if (!ran.contains(cc)) {
            Reference r(cc, 32'000'000);
            const VertexId sw = r.switch_();
            std::vector<LinkId> up;
            for (int i = 0; i < 16; ++i) up.push_back(r.cable(r.nic(), sw, 25));
            for (const TableRow& f : read_table("traces/ns3_websearch_flows.csv")) {
                r.flow({up[std::stoul(f.at("source"))],
                        reverse_link(up[std::stoul(f.at("destination"))])},
                       std::stoll(f.at("bytes")));
                r.flows.back().start =
                    Picoseconds(static_cast<std::int64_t>(std::stod(f.at("start_s")) * 1e12));
            }
            PacketEngine e = r.engine();
            REQUIRE(e.run(PacketEngine::never));
            CHECK(e.totals().lost_lossless == 0);
            for (std::size_t i = 0; i < r.flows.size(); ++i) {
                const auto bytes = static_cast<double>(r.flows[i].bytes);
                const double fct_us =
                    static_cast<double>((e.end(i) - r.flows[i].start).count()) * 1e-6;
                ran[cc].push_back({bytes, fct_us / (4 + bytes * 1.048 * 8 / 25e3)});
            }
        }
        const std::string sizes = row.at("parameter").substr(5);
        const double from = std::stod(sizes);
        const double to = std::stod(sizes.substr(sizes.find('-') + 1));
        std::vector<double> slowdowns;
        for (const Sized& s : ran[cc]) {
            if (s.bytes >= from && s.bytes < to) slowdowns.push_back(s.slowdown);
        }
        std::sort(slowdowns.begin(), slowdowns.end());
        const std::string& metric = row.at("metric");
        const double reference = std::stod(row.at("value"));
        CAPTURE(cc);
        CAPTURE(sizes);
        CAPTURE(metric);
        if (metric == "count") {
            CHECK(static_cast<double>(slowdowns.size()) == reference);
        } else if (metric == "slowdown_mean") {
            CHECK(mean(slowdowns) == doctest::Approx(reference).epsilon(0.10));
        } else {
            // Between two order statistics, as numpy does. The 99th of some hundreds is two flows' luck.
            const double at =
                std::stod(metric.substr(1)) / 100 * static_cast<double>(slowdowns.size() - 1);
            const auto below = static_cast<std::size_t>(at);
            const double value = slowdowns[below] + (at - static_cast<double>(below)) *
                                                        (slowdowns[below + 1] - slowdowns[below]);
            CHECK(value == doctest::Approx(reference).epsilon(metric == "p99" ? 0.50 : 0.20));
        }
        ++compared;
    }
    CHECK(compared == 34);
}

TEST_CASE("the fabric keeps to the closed forms of table 73") {
    int compared = 0;
    for (const TableRow& row : read_table("73_oracle_network.csv")) {
        const std::string& oracle = row.at("oracle");
        const std::string& config = row.at("config");
        CAPTURE(oracle);
        CAPTURE(config);
        const auto after = [&](const char* name) {
            return std::stoi(config.substr(config.find(name) + 2));
        };
        if (oracle.starts_with("N-to-1 incast")) {
            // Beyond the drain: a packet's way into the switch, two links there and back, the last ACK.
            const double beyond_us = 0.08288 + 4 + 2 * 48 * 80e-6;
            CHECK(incast("pfc_only_no_cc", after("N="), 1)["fct_max_us"] ==
                  doctest::Approx(std::stod(row.at("value")) + beyond_us).epsilon(1e-9));
        } else if (oracle.starts_with("PFC victim")) {
            // No switch here takes turns among its ways in: shared thresholds come near to it, and less so
            // the more there are. ns-3's own rows (k = 1, 2) are 1.8 and 2.5 % below.
            const Metrics m = pfc_victim("pfc_only_no_cc", after("k="), 1);
            for (const char* flow : {"victim_gbps", "B_gbps"}) {
                CHECK(m.at(flow) == doctest::Approx(std::stod(row.at("value"))).epsilon(0.06));
            }
        } else if (oracle.starts_with("parking lot")) {
            CHECK(parking_lot("pfc_only_no_cc", 1)["long_gbps"] ==
                  doctest::Approx(0.5 * 100 / 1.036).epsilon(0.01));
        } else {
            continue;
        }
        ++compared;
    }
    CHECK(compared == 6);
}

namespace {

// 32 of 128 NICs send 4 MiB to the first, in a three-tier fat-tree of 400 Gbit/s: last and mean end, us.
std::pair<double, double> fat_tree_incast(const char* cc, std::uint64_t seed) {
    TopologySpec shape;
    shape.nodes = 128;
    shape.tiers = 3;
    shape.nic_bandwidth = gbit(400);
    shape.leaf.name = "switch";
    shape.leaf.ports = 8;
    shape.leaf.port_bandwidth = gbit(400);
    shape.spine = shape.core = shape.leaf;
    std::string problem;
    const Topology topology = Topology::build(shape, problem);
    REQUIRE(problem.empty());
    Reference r(cc, 32'000'000);
    r.spec.payload_bytes = 4096;
    r.marked_as_gbit = 100;
    r.network = PacketNetwork::of(topology, r.buffer_bytes);
    for (PacketLink& l : r.network.links) l.latency = Picoseconds(us);
    Router router(topology, {Routing::ecmp});
    RandomStream random(1, 0, "test/incast");
    std::vector<VertexId> from;
    while (from.size() < 32) {
        const auto nic = static_cast<VertexId>(1 + random.below(127));
        if (std::find(from.begin(), from.end(), nic) == from.end()) from.push_back(nic);
    }
    for (const VertexId nic : from) {
        std::vector<Usage> usages;
        router.route(nic, 0, 0, usages);
        std::vector<LinkId> path;
        for (const Usage& u : usages) path.push_back(u.link);
        r.flow(path, 4 << 20);
    }
    PacketEngine e = r.engine(seed);
    REQUIRE(e.run(Picoseconds(100'000 * us)));
    CHECK(e.totals().lost_lossless == 0);
    CHECK(e.audit() == "");
    std::vector<double> fct;
    for (std::size_t f = 0; f < r.flows.size(); ++f) {
        fct.push_back(static_cast<double>(e.end(f).count()) * 1e-6 - 1000);
    }
    return {*std::max_element(fct.begin(), fct.end()), mean(fct)};
}

}  // namespace

TEST_CASE("32 to 1 in a fat-tree of 128 ends when it does in ns-3") {
    // ns-3 with the HPCC authors' model: last flow and mean, us. Its ECN thresholds at 400 Gbit/s are not
    // recorded; README.md has why they must have been those of 100 Gbit/s.
    struct Published {
        const char* cc;
        double last_us;
        double mean_us;
        int draws;
    };
    for (const Published& published :
         {Published{"pfc_only_no_cc", 2725, 2095, 1}, Published{"hpcc_defaults", 2918, 2384, 1},
          Published{"dcqcn_hpccrepo_defaults", 4528, 3677, 5}}) {
        CAPTURE(published.cc);
        double last_us = 0;
        double mean_us = 0;
        for (int seed = 1; seed <= published.draws; ++seed) {
            const auto [last, all] =
                fat_tree_incast(published.cc, static_cast<std::uint64_t>(seed));
            last_us += last / published.draws;
            mean_us += all / published.draws;
        }
        CHECK(last_us == doctest::Approx(published.last_us).epsilon(0.10));
        CHECK(mean_us == doctest::Approx(published.mean_us).epsilon(0.10));
    }
}

// ---- DCQCN's own figures: links of 40 Gbit/s, the paper's parameters ----

namespace {

struct DcqcnTestbed {
    StandaloneCatalogue c;
    PacketNetwork network;
    PacketSpec spec;
    std::vector<PacketFlow> flows;
    EcnProfile ecn{c.catalogue.data("ecn", "dcqcn_paper_40g", "kmin").count(),
                   c.catalogue.data("ecn", "dcqcn_paper_40g", "kmax").count(),
                   c.catalogue.number("ecn", "dcqcn_paper_40g", "pmax")};
    std::int64_t gbits = 40;

    DcqcnTestbed() {
        spec.payload_bytes = 1000;
        spec.header_bytes = 24;  // 1 KiB on the wire
        spec.cnp_interval = c.catalogue.time("dcqcn", "dcqcn_paper", "cnp_interval");
    }
    VertexId switch_(std::int64_t buffer_bytes = 12'000'000) {
        return network.add_switch(buffer_bytes);
    }
    LinkId nic_to(VertexId sw) {
        return network.add_cable(network.add_nic(), sw, gbit(gbits), latency);
    }
    LinkId cable(VertexId a, VertexId b) { return network.add_cable(a, b, gbit(gbits), latency); }
    void flow(std::vector<LinkId> path, std::int64_t bytes = std::int64_t{1} << 40,
              std::int64_t start_us = 0) {
        PacketFlow f;
        f.path = std::move(path);
        f.bytes = bytes;
        f.start = Picoseconds(start_us * us);
        flows.push_back(std::move(f));
    }
    DcqcnSpec dcqcn_spec() { return read_dcqcn(c.catalogue, "dcqcn_paper", gbit(gbits)); }
    PacketEngine engine(std::unique_ptr<Congestion> control, bool marks) {
        for (PacketLink& l : network.links) {
            l.headroom_bytes = headroom_by_delay(c.catalogue, l.rate, l.latency).count();
            if (marks) l.ecn = ecn;
        }
        PacketEngine e(network, spec, std::move(control));
        for (const PacketFlow& f : flows) e.add(f);
        return e;
    }
    // Gbit/s on the wire of each flow, between two instants.
    std::vector<double> rates(PacketEngine& e, std::int64_t from_us, std::int64_t to_us) const {
        e.run(Picoseconds(from_us * us));
        std::vector<double> out;
        for (std::size_t f = 0; f < flows.size(); ++f)
            out.push_back(-static_cast<double>(e.received_bytes(f)));
        e.run(Picoseconds(to_us * us));
        const double wire =
            1 + static_cast<double>(spec.header_bytes) / static_cast<double>(spec.payload_bytes);
        for (std::size_t f = 0; f < flows.size(); ++f) {
            out[f] = (out[f] + static_cast<double>(e.received_bytes(f))) * 8e-3 * wire /
                     static_cast<double>(to_us - from_us);
        }
        return out;
    }

  private:
    static constexpr Picoseconds latency{us};
};

}  // namespace

TEST_CASE("PFC alone favours the sender next door, DCQCN does not (figures 3 and 8 of its paper)") {
    const auto run = [](bool controlled) {
        DcqcnTestbed t;
        const VertexId far = t.switch_();
        const VertexId near = t.switch_();
        const LinkId between = t.cable(far, near);
        const LinkId down = reverse_link(t.nic_to(near));
        t.flow({t.nic_to(near), down});
        for (int i = 0; i < 3; ++i) t.flow({t.nic_to(far), between, down});
        PacketEngine e =
            t.engine(controlled ? dcqcn(t.dcqcn_spec()) : no_congestion_control(), controlled);
        return t.rates(e, controlled ? 40'000 : 1'000, controlled ? 100'000 : 5'000);
    };
    // Near: half the port, by ways in. Far: a third of the other half each. Measured: 20 and 7 to 10.
    const std::vector<double> pfc = run(false);
    CHECK(pfc[0] == doctest::Approx(20).epsilon(0.01));
    for (std::size_t f = 1; f < 4; ++f) CHECK(pfc[f] == doctest::Approx(20.0 / 3).epsilon(0.01));
    for (const double rate : run(true)) CHECK(rate == doctest::Approx(10).epsilon(0.15));
}

TEST_CASE("PFC alone halves a victim's rate, DCQCN gives it back (figures 4 and 9 of its paper)") {
    const auto victim = [](bool controlled) {
        DcqcnTestbed t;
        const VertexId t1 = t.switch_();
        const VertexId t2 = t.switch_();
        const VertexId t4 = t.switch_();
        const VertexId leaf[2] = {t.switch_(), t.switch_()};
        const LinkId up[2] = {t.cable(t1, leaf[0]), t.cable(t1, leaf[1])};
        const LinkId across[2] = {t.cable(leaf[0], t4), t.cable(leaf[1], t4)};
        const LinkId down = reverse_link(t.nic_to(t4));
        const LinkId aside = t.cable(leaf[0], t2);
        t.flow({t.nic_to(t1), up[0], aside, reverse_link(t.nic_to(t2))});
        for (int i = 0; i < 4; ++i) t.flow({t.nic_to(t1), up[i % 2], across[i % 2], down});
        PacketEngine e =
            t.engine(controlled ? dcqcn(t.dcqcn_spec()) : no_congestion_control(), controlled);
        return t.rates(e, controlled ? 40'000 : 1'000, controlled ? 100'000 : 5'000)[0];
    };
    CHECK(victim(false) == doctest::Approx(10).epsilon(0.15));
    CHECK(victim(true) == doctest::Approx(20).epsilon(0.15));
}

TEST_CASE("a burst to another port costs a bystander half its rate for long (table 42)") {
    DcqcnTestbed t;
    t.ecn.kmax_bytes = 100'000;
    const VertexId s2 = t.switch_();
    const VertexId s1 = t.switch_(4'000'000);
    const LinkId between = t.cable(s2, s1);
    const LinkId r1 = reverse_link(t.nic_to(s1));
    const LinkId r2 = reverse_link(t.nic_to(s1));
    t.flow({t.nic_to(s2), between, r1});  // the bystander
    t.flow({t.nic_to(s2), between, r2});
    // 49 Gbit/s for a millisecond, so that the queue is gone 0.2 ms later, as in the table.
    constexpr std::int64_t burst_us = 30'000;
    for (int host = 0; host < 15; ++host) {
        const LinkId up = t.nic_to(s1);
        for (int at = 0; at < 1000; at += 10) t.flow({up, r2}, 4000, burst_us + at);
    }
    DcqcnSpec d = t.dcqcn_spec();
    d.increase_timer = Picoseconds(50 * us);
    PacketEngine e = t.engine(dcqcn(d), true);
    const auto rate = [&](std::int64_t from_us) {
        return t.rates(e, burst_us + from_us, burst_us + from_us + 250);
    };
    CHECK(rate(-1000)[0] == doctest::Approx(18).epsilon(0.15));  // table: 17
    CHECK(e.pauses(between, 1) == 0);
    CHECK(rate(1'500)[0] > 10);
    const std::int64_t pauses = e.pauses(between, 1);
    CHECK(pauses > 20);  // while the burst lasts
    const std::vector<double> low = rate(2'500);
    CHECK(low[0] < 9.5);
    // Then R_AI every 50 us, and the link is not full before 16 ms are over.
    const std::vector<double> later = rate(12'500);
    CHECK(later[0] - low[0] == doctest::Approx(10 * 0.8).epsilon(0.10));
    CHECK(later[0] + later[1] < 0.9 * 40);
    const std::vector<double> full = rate(24'000);
    CHECK(full[0] + full[1] > 0.95 * 40);
    CHECK(e.pauses(between, 1) == pauses);
}

TEST_CASE("DCQCN settles where its fluid model says") {
    // Zhu et al., CoNEXT 2016, for small p: cuts and increases balance where
    // p^3 = R_AI N^2 / (tau C^2) (1/B + N/(T C))^2, in packets and seconds.
    const auto marked_share = [](int n, double packets_per_s, double additive_packets_per_s) {
        constexpr double tau = 50e-6;
        constexpr double timer = 55e-6;
        constexpr double byte_counter = 1e4;
        const double of_line = n / packets_per_s;
        return std::cbrt(additive_packets_per_s / tau * of_line * of_line *
                         std::pow(1 / byte_counter + of_line / timer, 2));
    };
    int rows = 0;
    for (const TableRow& row : read_table("73_oracle_network.csv")) {
        if (!row.at("oracle").starts_with("DCQCN")) continue;
        const std::string& config = row.at("config");
        const int n = std::stoi(config.substr(config.find("N=") + 2));
        const double bits = std::stod(config.substr(config.find("C=") + 2)) * 1e9;
        CHECK(marked_share(n, bits / 8e3, 40e6 / 8e3) ==
              doctest::Approx(std::stod(row.at("value"))).epsilon(1e-6));
        ++rows;
    }
    CHECK(rows == 2);

    struct Setting {
        int flows;
        std::int64_t gbits;
    };
    for (const Setting& setting :
         {Setting{4, 40}, Setting{10, 40}, Setting{16, 40}, Setting{16, 100}}) {
        CAPTURE(setting.flows);
        CAPTURE(setting.gbits);
        DcqcnTestbed t;
        t.gbits = setting.gbits;
        t.spec.ack_class = -1;
        t.ecn = {5'000, 1'955'000, 0.1};  // the paper's slope, further on
        const VertexId sw = t.switch_(32'000'000);
        const LinkId down = reverse_link(t.nic_to(sw));
        for (int i = 0; i < setting.flows; ++i) t.flow({t.nic_to(sw), down});
        PacketEngine e = t.engine(dcqcn(t.dcqcn_spec()), true);
        double sum = 0;
        int samples = 0;
        std::vector<double> rates(t.flows.size());
        for (std::int64_t at = 50'000; at < 100'000; at += 10) {
            const std::vector<double> now = t.rates(e, at, at + 10);
            for (std::size_t f = 0; f < rates.size(); ++f) rates[f] += now[f];
            sum += static_cast<double>(e.queue_bytes(down, 1));
            ++samples;
        }
        const double share = (sum / samples - static_cast<double>(t.ecn.kmin_bytes)) * t.ecn.pmax /
                             static_cast<double>(t.ecn.kmax_bytes - t.ecn.kmin_bytes);
        constexpr double packet_bits = 8 * 1024;
        CHECK(share ==
              doctest::Approx(marked_share(setting.flows,
                                           static_cast<double>(setting.gbits) * 1e9 / packet_bits,
                                           40e6 / packet_bits))
                  .epsilon(0.12));
        for (const double rate : rates) {
            CHECK(
                rate / samples ==
                doctest::Approx(static_cast<double>(setting.gbits) / setting.flows).epsilon(0.20));
        }
    }
}

TEST_CASE("a queue of a lossy class takes what it has room for") {
    PacketNetwork network;
    const VertexId sw = network.add_switch(16'000'000);
    const LinkId down = network.add_cable(sw, network.add_nic(), gbit(400), Picoseconds(us));
    PacketSpec spec;
    spec.classes = {{FlowControl::none, false}, {FlowControl::none, false}};
    spec.ack_class = -1;
    spec.lossy_queue_bytes = 10'000;
    constexpr int senders = 8;
    std::vector<PacketFlow> flows;
    for (int i = 0; i < senders; ++i) {
        PacketFlow f;
        f.path = {network.add_cable(network.add_nic(), sw, gbit(400), Picoseconds(us)), down};
        f.bytes = 4096;
        flows.push_back(f);
    }
    PacketEngine e(network, spec);
    for (const PacketFlow& f : flows) e.add(f);
    CHECK_FALSE(e.run(Picoseconds(100 * us)));
    // One goes out at once, two wait.
    CHECK(e.totals().lost_lossy == senders - 3);
    CHECK(e.queue_bytes_max(down, 1) == 2 * (4096 + 58));
    CHECK(e.audit() == "");
}
