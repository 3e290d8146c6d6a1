#include "tools/verify_networks.h"

#include <fmt/format.h>

#include <cctype>
#include <string>

#include "tools/dcqcn_runs.h"
#include "tools/network_runs.h"
#include "tools/ns3_runs.h"

namespace railyard {

namespace {

// The number behind `key`, as in "N=2", "cable 10 m", "MTU 1024"; "m=n=8" is m = 8 as well. `otherwise` when
// there is none.
double number_after(const std::string& text, const std::string& key, double otherwise = 0) {
    const std::size_t at = text.find(key);
    if (at == std::string::npos) return otherwise;
    const char* begin = text.c_str() + at + key.size();
    if (std::isalpha(static_cast<unsigned char>(begin[0])) != 0 && begin[1] == '=') begin += 2;
    char* end = nullptr;
    const double value = std::strtod(begin, &end);
    return end == begin ? otherwise : value;
}

std::int64_t integer_after(const std::string& text, const std::string& key,
                           std::int64_t otherwise = 0) {
    return std::llround(number_after(text, key, static_cast<double>(otherwise)));
}

Bandwidth rate_of(const std::string& config) {
    return Bandwidth::bits_per_second(std::llround(number_after(config, "C=") * 1e9));
}

struct Oracle {
    const std::string& name;
    const std::string& config;
    const std::string& quantity;
    const Fields& fields;
    std::vector<VerifiedRow>& out;

    void put(const char* what, double published, double simulated) const {
        out.push_back(
            {fmt::format("{}, {}: {}", name, config, quantity), what, published, simulated});
    }
    double value() const { return fields.leading_number("value"); }  // "0.5 C"
};

// "hosts / switches", or either.
void tree(const Oracle& o) {
    const std::int64_t k = integer_after(o.config, "k=");
    constexpr std::int64_t ports_most = 128;  // half a million NICs
    if (k < 2 || k > ports_most || k % 2 != 0) return;
    const bool leaf_spine = o.name.starts_with("2-tier");
    const TreeSize size = largest_tree(k, leaf_spine ? 2 : 3);
    const std::string& value = o.fields.text("value");
    const std::size_t slash = value.find('/');
    if (o.quantity.find("hosts") != std::string::npos) {
        o.put("NICs", o.value(), static_cast<double>(size.nics));
    }
    if (o.quantity.find("switches") == std::string::npos) return;
    const double switches =
        slash == std::string::npos ? o.value() : std::strtod(value.c_str() + slash + 1, nullptr);
    o.put("switches", switches, static_cast<double>(size.switches));
}

void ecmp(const Oracle& o) {
    const std::int64_t flows = integer_after(o.config, "m=");
    const std::int64_t links = integer_after(o.config, "n=");
    constexpr std::int64_t most = 4096;
    if (flows < 1 || links < 1 || flows > most || links > most) return;
    HashedLinks hashed(flows, links);
    if (o.name.starts_with("ECMP hash") && o.quantity.starts_with("E[max")) {
        o.put("fullest link / mean", o.value(), hashed.most_over_mean());
    } else if (o.name.starts_with("ECMP no collision") && flows <= links) {
        o.put("P(no collision)", o.value(), hashed.no_collision());
    } else if (o.name.starts_with("ECMP utilisation")) {
        o.put("links used", o.value(), hashed.links_used());
    }
}

// "N=2, S=1e6 B payload, 1036 B on the wire per 1000 B (as in the ns-3 fork), C=100 Gb/s"
void incast_row(const Oracle& o) {
    const auto wire_at = o.config.find(" B on the wire per ");
    const std::int64_t flows = integer_after(o.config, "N=");
    const std::int64_t bytes = integer_after(o.config, "S=");
    const Bandwidth rate = rate_of(o.config);
    if (wire_at == std::string::npos || flows < 1 || bytes < 1 || rate.bits_per_second() == 0)
        return;
    const std::size_t wire_begin = o.config.rfind(' ', wire_at - 1) + 1;
    const std::int64_t wire = std::llround(std::strtod(o.config.c_str() + wire_begin, nullptr));
    const std::int64_t payload = integer_after(o.config, "on the wire per ");
    if (payload < 1 || wire < payload || flows * bytes < 2 * payload) return;
    const Picoseconds drain = incast_drain(static_cast<int>(flows), bytes, payload, wire, rate);
    o.put("drain, us", o.value(), static_cast<double>(drain.count()) / us);
}

// "C=100 Gb/s, cable 10 m (5 ns/m), MTU 1024"
void headroom(const Oracle& o) {
    const double metres = number_after(o.config, "cable ");
    const double ns_per_m = number_after(o.config, "(", 5);
    const std::int64_t mtu = integer_after(o.config, "MTU ");
    const Bandwidth rate = rate_of(o.config);
    if (rate.bits_per_second() == 0 || mtu < 1) return;
    const Picoseconds propagation(std::llround(metres * ns_per_m * 1e3));
    o.put("headroom, bytes", o.value(),
          static_cast<double>(headroom_needed(rate, propagation, mtu)));
}

void pause(const Oracle& o) {
    const std::int64_t quanta = integer_after(o.name, "PFC pause ");
    const Bandwidth rate = rate_of(o.config);
    if (quanta < 2 || rate.bits_per_second() == 0) return;
    o.put("pause, us", o.value(), static_cast<double>(pause_of(quanta, rate).count()) / us);
}

// "N=10, C=40G, R_AI=40 Mb/s, tau_prime=50 us, B=10 MB, T=55 us, 1 KB packets"
void fluid_point(const Oracle& o) {
    FluidPoint point;
    point.flows = static_cast<int>(integer_after(o.config, "N="));
    point.gbits = integer_after(o.config, "C=");
    if (point.flows < 1 || point.gbits < 1) return;
    point.additive_bits_per_s = number_after(o.config, "R_AI=", 40) * 1e6;
    point.cnp_interval = Picoseconds(integer_after(o.config, "tau_prime=", 50) * us);
    point.byte_counter = std::llround(number_after(o.config, " B=", 10) * 1e6);
    point.increase_timer = Picoseconds(integer_after(o.config, " T=", 55) * us);
    o.put("marked share", o.value(), settle(point).marked_share);
}

// "long flow + 1 cross flow per hop, C" of "parking lot, 3 hops, max-min": "0.5 C"
void parking(const Oracle& o) {
    const std::int64_t hops = integer_after(o.name, "parking lot, ");
    const std::int64_t cross = integer_after(o.config, "long flow + ");
    if (hops < 1 || cross < 0) return;
    o.put("share of C", o.value(), parking_lot_share(hops, cross));
}

// "k=1 extra local senders", "Gb/s goodput at 100G"
void victim(const Oracle& o) {
    const auto control = Ns3Control::of("pfc_only");
    const Metrics ran = pfc_victim(*control, static_cast<int>(integer_after(o.config, "k=")), 1);
    if (ran.empty()) return;
    o.put("victim, Gbit/s", o.value(), ran.at("victim_gbps"));
    o.put("B, Gbit/s", o.value(), ran.at("B_gbps"));
}

struct Kind {
    const char* begins;
    void (*add)(const Oracle&);
};

constexpr Kind kinds[] = {
    {"k-ary 3-tier fat tree", tree},
    {"2-tier leaf-spine", tree},
    {"ECMP", ecmp},
    {"N-to-1 incast", incast_row},
    {"PFC headroom lower bound", headroom},
    {"PFC pause", pause},
    {"DCQCN fluid fixed point", fluid_point},
    {"parking lot", parking},
    {"PFC victim", victim},
};

}  // namespace

std::optional<VerifiedTable> verify_networks(const CsvTable& table) {
    if (!table.name.starts_with("73")) return std::nullopt;
    VerifiedTable out{table.name, "closed forms of networks", table.rows.size()};
    each_row(table, out.unused, [&](const Fields& f) {
        const Oracle oracle{f.text("oracle"), f.text("config"), f.text("quantity"), f,
                            out.expressed};
        for (const Kind& kind : kinds) {
            if (!oracle.name.starts_with(kind.begins)) continue;
            kind.add(oracle);
            break;
        }
    });
    return out;
}

}  // namespace railyard
