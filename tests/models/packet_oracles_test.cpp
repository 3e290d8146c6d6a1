// The packet engine against others' figures: ns-3's RDMA model, closed forms, fluid models, testbeds.

#include <doctest/doctest.h>

#include <algorithm>
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
        // Of three flows under HPCC two cross one bottleneck and B two: it gets the least, and how little
        // is not settled after 13 ms. Off by 37 and 29 %; README.md has the figures.
        if (cc == "hpcc_defaults" && metric == "B_gbps" && parameter != "k=0") continue;
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

TEST_CASE("32 to 1 in a fat-tree of 128 ends when it does in ns-3") {
    // ns-3 with the HPCC authors' model: last flow and mean, us. Its DCQCN run is not compared: its
    // thresholds at 400 Gbit/s are not recorded, and one draw of the marking moves the end by a fifth.
    struct Published {
        const char* cc;
        double last_us;
        double mean_us;
    };
    for (const Published& published :
         {Published{"pfc_only_no_cc", 2725, 2095}, Published{"hpcc_defaults", 2918, 2384}}) {
        CAPTURE(published.cc);
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
        Reference r(published.cc, 32'000'000);
        r.spec.payload_bytes = 4096;
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
        PacketEngine e = r.engine();
        REQUIRE(e.run(Picoseconds(100'000 * us)));
        std::vector<double> fct;
        for (std::size_t f = 0; f < r.flows.size(); ++f) {
            fct.push_back(static_cast<double>(e.end(f).count()) * 1e-6 - 1000);
        }
        CHECK(*std::max_element(fct.begin(), fct.end()) ==
              doctest::Approx(published.last_us).epsilon(0.10));
        CHECK(mean(fct) == doctest::Approx(published.mean_us).epsilon(0.10));
        CHECK(e.totals().lost_lossless == 0);
        CHECK(e.audit() == "");
    }
}
