#include "tests/laws/oracles/networks.h"

#include <fmt/format.h>

#include <cmath>
#include <string>
#include <vector>

#include "tests/laws/oracles/dcqcn_runs.h"
#include "tests/laws/oracles/network_runs.h"
#include "tests/laws/oracles/ns3_runs.h"

namespace railyard {

namespace {

// What a row asks, by the groups that its kind's patterns leave open.
struct Oracle {
    std::string row;  // in the table's own words
    std::vector<std::string> name;
    std::vector<std::string> config;
    std::vector<std::string> value;
    std::vector<VerifiedRow>& out;

    void put(const char* what, double published, double simulated) const {
        out.push_back({row, what, published, simulated});
    }
    double published() const { return std::stod(value.at(0)); }
    double number(std::size_t group) const { return std::stod(config.at(group)); }
    std::int64_t integer(std::size_t group) const { return std::llround(number(group)); }
    // Within what a model here is run for.
    std::int64_t count(std::size_t group, std::int64_t least, std::int64_t most) const {
        const double found = number(group);
        if (found < static_cast<double>(least) || found > static_cast<double>(most)) {
            throw RowError{"config", fmt::format("expected {} to {}, found {}", least, most,
                                                 config.at(group))};
        }
        return integer(group);
    }
    Bandwidth gbits(std::size_t group) const {
        if (number(group) <= 0) throw RowError{"config", "expected a rate above 0"};
        return Bandwidth::bits_per_second(std::llround(number(group) * 1e9));
    }
};

void tree(const Oracle& o, int tiers) {
    constexpr std::int64_t ports_most = 128;  // half a million NICs
    const std::int64_t k = o.count(0, 2, ports_most);
    if (k % 2 != 0) throw RowError{"config", "expected an even number of ports"};
    const TreeSize size = largest_tree(k, tiers);
    o.put("NICs", o.published(), static_cast<double>(size.nics));
    if (o.value.size() > 1) {
        o.put("switches", std::stod(o.value[1]), static_cast<double>(size.switches));
    }
}

void fat_tree(const Oracle& o) {
    tree(o, 3);
}

void leaf_spine(const Oracle& o) {
    tree(o, 2);
}

HashedLinks hashed(const Oracle& o) {
    constexpr std::int64_t most = 4096;
    return {o.count(0, 1, most), o.count(1, 1, most)};
}

void hash(const Oracle& o) {
    o.put("fullest link / mean", o.published(), hashed(o).most_over_mean());
}

void no_collision(const Oracle& o) {
    constexpr std::int64_t most = 4096;
    const std::int64_t flows = o.count(0, 1, most);
    o.put("P(no collision)", o.published(), HashedLinks(flows, flows).no_collision());
}

void utilisation(const Oracle& o) {
    o.put("links used", o.published(), hashed(o).links_used());
}

void incast_row(const Oracle& o) {
    constexpr std::int64_t bytes_most = 1'000'000'000;
    const std::int64_t flows = o.count(0, 1, 1024);
    const std::int64_t bytes = o.count(1, 1, bytes_most);
    const std::int64_t wire = o.count(2, 1, 65536);
    const std::int64_t payload = o.count(3, 1, wire);
    if (flows * bytes < 2 * payload) throw RowError{"config", "expected two packets or more"};
    const Picoseconds drain =
        incast_drain(static_cast<int>(flows), bytes, payload, wire, o.gbits(4));
    o.put("drain, us", o.published(), static_cast<double>(drain.count()) / us);
}

void headroom(const Oracle& o) {
    const Picoseconds propagation(std::llround(o.number(1) * o.number(2) * 1e3));
    o.put("headroom, bytes", o.published(),
          static_cast<double>(headroom_needed(o.gbits(0), propagation, o.count(3, 1, 65536))));
}

void pause(const Oracle& o) {
    const std::int64_t quanta = std::stoll(o.name.at(0));
    if (quanta < 2 || quanta > 65535) throw RowError{"oracle", "expected 2 to 65535 quanta"};
    o.put("pause, us", o.published(),
          static_cast<double>(pause_of(quanta, o.gbits(0)).count()) / us);
}

void fluid_point(const Oracle& o) {
    FluidPoint point;
    point.flows = static_cast<int>(o.count(0, 1, 4096));
    point.gbits = o.count(1, 1, 10'000);
    point.additive_bits_per_s = o.number(2) * 1e6;
    point.cnp_interval = Picoseconds(o.count(3, 1, 1'000'000) * us);
    point.byte_counter = std::llround(o.number(4) * 1e6);
    point.increase_timer = Picoseconds(o.count(5, 1, 1'000'000) * us);
    o.put("marked share", o.published(), settle(point).marked_share);
}

void parking(const Oracle& o) {
    const std::int64_t hops = std::stoll(o.name.at(0));
    if (hops < 1 || hops > 1024) throw RowError{"oracle", "expected 1 to 1024 hops"};
    o.put("share of C", o.published(), parking_lot_share(hops, o.count(0, 0, 1024)));
}

void victim(const Oracle& o) {
    const auto control = Ns3Control::of("pfc_only");
    const Metrics ran = pfc_victim(*control, static_cast<int>(o.count(0, 1, 64)), 1);
    if (ran.empty()) throw RowError{"config", "the network of table 44 has no room for these"};
    o.put("victim, Gbit/s", o.published(), ran.at("victim_gbps"));
    o.put("B, Gbit/s", o.published(), ran.at("B_gbps"));
}

// The rows whose oracle begins so. Of such a row all is understood, by these patterns, or nothing is said.
struct Pattern {
    const char* pattern;
    const char* like;
};
struct ConfigKind {
    const char* begins;
    Pattern oracle;
    Pattern config;
    Pattern quantity;
    Pattern value;
    Pattern unit;
    void (*add)(const Oracle&);
};

#define RY_NUMBER "([0-9.]+(?:e-?[0-9]+)?)"
#define RY_GBITS "C=" RY_NUMBER " ?G(?:b/s)?"
const ConfigKind config_kinds[] = {
    {"k-ary 3-tier fat tree",
     {"k-ary 3-tier fat tree", "k-ary 3-tier fat tree"},
     {"k=([0-9]{1,6})", "k=4"},
     {"hosts / switches", "hosts / switches"},
     {"([0-9]+) / ([0-9]+)", "16 / 20"},
     {"count", "count"},
     fat_tree},
    {"2-tier leaf-spine",
     {"2-tier leaf-spine, radix k, 1:1", "2-tier leaf-spine, radix k, 1:1"},
     {"k=([0-9]{1,6})", "k=4"},
     {"hosts", "hosts"},
     {"([0-9]+)", "512"},
     {"count", "count"},
     leaf_spine},
    {"ECMP hash",
     {"ECMP hash, m equal flows on n equal links", "ECMP hash, m equal flows on n equal links"},
     {"m=([0-9]{1,6}) n=([0-9]{1,6})", "m=4 n=4"},
     {R"(E\[max flows on a link\] / mean)", "E[max flows on a link] / mean"},
     {RY_NUMBER, "2.125"},
     {"ratio", "ratio"},
     hash},
    {"ECMP no collision",
     {"ECMP no collision", "ECMP no collision"},
     {"m=n=([0-9]{1,6})", "m=n=8"},
     {R"(P\(no collision\))", "P(no collision)"},
     {RY_NUMBER, "0.5"},
     {"prob", "prob"},
     no_collision},
    {"ECMP utilisation",
     {"ECMP utilisation", "ECMP utilisation"},
     {"m=([0-9]{1,6}) n=([0-9]{1,6})", "m=16 n=16"},
     {R"(E\[fraction of links used\])", "E[fraction of links used]"},
     {RY_NUMBER, "0.64"},
     {"fraction", "fraction"},
     utilisation},
    {"N-to-1 incast",
     {"N-to-1 incast, lossless, line rate", "N-to-1 incast, lossless, line rate"},
     {"N=([0-9]{1,6}), S=" RY_NUMBER " B payload, ([0-9]{1,6}) B on the wire per ([0-9]{1,6}) B"
      R"((?: \(as in the ns-3 fork\))?, )" RY_GBITS,
      "N=2, S=1e6 B payload, 1036 B on the wire per 1000 B, C=100 Gb/s"},
     {"drain time of last byte", "drain time of last byte"},
     {RY_NUMBER, "165.76"},
     {"us", "us"},
     incast_row},
    {"PFC headroom lower bound",
     {"PFC headroom lower bound", "PFC headroom lower bound"},
     {RY_GBITS ", cable " RY_NUMBER R"( m \()" RY_NUMBER R"( ns/m\), MTU ([0-9]{1,6}))",
      "C=100 Gb/s, cable 10 m (5 ns/m), MTU 1024"},
     {R"(2\*C\*tprop \+ 2\*MTU)", "2*C*tprop + 2*MTU"},
     {RY_NUMBER, "3298"},
     {"bytes", "bytes"},
     headroom},
    {"PFC pause",
     {"PFC pause ([0-9]{1,6}) quanta", "PFC pause 65535 quanta"},
     {RY_GBITS, "C=100 Gb/s"},
     {"pause duration", "pause duration"},
     {RY_NUMBER, "335.5"},
     {"us", "us"},
     pause},
    {"DCQCN fluid fixed point",
     {R"(DCQCN fluid fixed point \(Zhu et al. CoNEXT 2016\))",
      "DCQCN fluid fixed point (Zhu et al. CoNEXT 2016)"},
     {"N=([0-9]{1,6}), " RY_GBITS ", R_AI=" RY_NUMBER
      " Mb/s, tau_prime=([0-9]{1,6}) us, B=" RY_NUMBER " MB, T=([0-9]{1,6}) us, 1 KB packets",
      "N=10, C=40G, R_AI=40 Mb/s, tau_prime=50 us, B=10 MB, T=55 us, 1 KB packets"},
     {R"(p\* \(marking prob.\))", "p* (marking prob.)"},
     {RY_NUMBER, "0.0081"},
     {"prob", "prob"},
     fluid_point},
    {"parking lot",
     {"parking lot, ([0-9]{1,6}) hops, max-min", "parking lot, 3 hops, max-min"},
     {R"(long flow \+ ([0-9]{1,6}) cross flows? per hop, C)",
      "long flow + 1 cross flow per hop, C"},
     {"long flow rate", "long flow rate"},
     {RY_NUMBER " C", "0.5 C"},
     {"", ""},
     parking},
    {"PFC victim",
     {R"(PFC victim \(file 44 topology\), no CC, per-ingress round robin)",
      "PFC victim (file 44 topology), no CC, per-ingress round robin"},
     {"k=([0-9]{1,6}) extra local senders", "k=1 extra local senders"},
     {R"(victim = B = C/\(k\+1\))", "victim = B = C/(k+1)"},
     {RY_NUMBER, "48.26"},
     {"Gb/s goodput at 100G", "Gb/s goodput at 100G"},
     victim},
};
#undef RY_GBITS
#undef RY_NUMBER

void add_row(const ConfigKind& kind, const Fields& f, std::vector<VerifiedRow>& out) {
    const auto groups = [&](const char* column, const Pattern& p) {
        return f.groups(column, p.pattern, p.like);
    };
    groups("quantity", kind.quantity);
    groups("unit", kind.unit);
    const Oracle oracle{
        fmt::format("{}, {}: {}", f.text("oracle"), f.text("config"), f.text("quantity")),
        groups("oracle", kind.oracle), groups("config", kind.config), groups("value", kind.value),
        out};
    kind.add(oracle);
}

}  // namespace

std::optional<VerifiedTable> verify_networks(const CsvTable& table) {
    if (!table.name.starts_with("73")) return std::nullopt;
    VerifiedTable out{table.name, "closed forms of networks", table.rows.size()};
    each_row(table, out.unused, [&](const Fields& f) {
        for (const ConfigKind& kind : config_kinds) {
            if (f.text("oracle").starts_with(kind.begins)) add_row(kind, f, out.expressed);
        }
    });
    return out;
}

}  // namespace railyard
