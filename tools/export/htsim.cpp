// The files of csg-htsim: a .topo of a regular tree of leaves and spines, and a .cm of flows.

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <map>

#include "tools/export/export.h"

namespace railyard {

namespace {

[[noreturn]] void irregular(const std::string& why) {
    throw ScenarioError(fmt::format("csg-htsim has regular trees of two tiers only: {}", why),
                        "topology = \"fat_tree\" with as many NICs as fill its leaves; 'railyard "
                        "export ns3' takes any network");
}

// What all leaves, or all spines, have alike.
struct TierShape {
    std::int64_t switches = 0;
    std::int64_t down = 0;
    std::int64_t up = 0;
    std::int64_t bundle = 1;  // parallel cables to each switch above
    double gbps = 0;          // of links down
    double down_ns = 0;
    double switch_ns = 0;
};

TierShape shape_of(const Topology& t, int level) {
    TierShape out;
    for (std::size_t i = t.nic_count(); i < t.vertex_count(); ++i) {
        const auto v = static_cast<VertexId>(i);
        if (t.level(v) != level) continue;
        const std::int64_t down = std::ssize(t.down_links(v));
        const std::int64_t up = std::ssize(t.up_links(v));
        if (out.switches++ == 0) {
            out.down = down;
            out.up = up;
            if (down == 0) irregular(t.name(v) + " has nothing below it");
            const LinkId first = t.down_links(v)[0];
            out.gbps = static_cast<double>(t.line_rate(first).bits_per_second()) / 1e9;
            out.switch_ns =
                std::chrono::duration<double, std::nano>(t.switch_model(v).latency).count();
            const double both =
                static_cast<double>(
                    (t.links()[first].latency + t.links()[reverse_link(first)].latency).count()) /
                1e3;
            const double switches = out.switch_ns + (level > 1 ? out.switch_ns : 0);
            out.down_ns = std::max(0.0, (both - switches) / 2);
        }
        if (down != out.down || up != out.up) {
            irregular(fmt::format("{} has {} links down and {} up, others {} and {}", t.name(v),
                                  down, up, out.down, out.up));
        }
        std::map<VertexId, std::int64_t> above;
        for (const LinkId l : t.up_links(v)) ++above[t.links()[l].to];
        for (const auto& [spine, cables] : above) {
            if (out.switches == 1) out.bundle = cables;
            if (cables != out.bundle) {
                irregular(fmt::format("{} has {} cables to {}, others {}", t.name(v), cables,
                                      t.name(spine), out.bundle));
            }
        }
        for (const LinkId l : t.down_links(v)) {
            if (static_cast<double>(t.line_rate(l).bits_per_second()) / 1e9 != out.gbps) {
                irregular(fmt::format("{} has links of two rates", t.name(v)));
            }
        }
    }
    return out;
}

std::string htsim_topology(const Topology& t) {
    if (t.levels() != 2) irregular(fmt::format("this network has {} tiers", t.levels()));
    const TierShape leaf = shape_of(t, 1);
    const TierShape spine = shape_of(t, 2);
    const auto nics = static_cast<std::int64_t>(t.nic_count());
    if (leaf.switches * leaf.down != nics || leaf.up != leaf.bundle * spine.switches ||
        spine.down != leaf.bundle * leaf.switches) {
        irregular(fmt::format("{} leaves with {} NICs, {} spines with {} leaves", leaf.switches,
                              leaf.down, spine.switches, spine.down));
    }
    std::string out = fmt::format("# {} NICs\nNodes {}\nTiers 2\nPodsize {}\n", nics, nics, nics);
    out += fmt::format(
        "\nTier 0\nDownlink_speed_Gbps {:.0f}\nRadix_Down {}\nRadix_Up {}\n"
        "Downlink_Latency_ns {:.0f}\nSwitch_Latency_ns {:.0f}\n",
        leaf.gbps, leaf.down, leaf.up, leaf.down_ns, leaf.switch_ns);
    const double ratio =
        static_cast<double>(leaf.down) * leaf.gbps / (static_cast<double>(leaf.up) * spine.gbps);
    if (ratio > 1) out += fmt::format("Oversubscribed {:.0f}\n", ratio);
    out += fmt::format(
        "\nTier 1\nDownlink_speed_Gbps {:.0f}\nRadix_Down {}\nDownlink_Latency_ns {:.0f}\n"
        "Switch_Latency_ns {:.0f}\nBundle {}\n",
        spine.gbps, spine.down, spine.down_ns, spine.switch_ns, leaf.bundle);
    return out;
}

// Hosts are counted leaf by leaf. Times are picoseconds there, sizes less than 2^31.
std::string htsim_flows(const Topology& t, const PacketWindow& window) {
    constexpr std::int64_t size_max = 2'000'000'000;
    std::string rows;
    std::int64_t count = 0;
    for (const PacketFlow& flow : window.flows) {
        const std::uint32_t from = t.position(t.links()[flow.path.front()].from);
        const std::uint32_t to = t.position(t.links()[flow.path.back()].to);
        for (std::int64_t left = flow.bytes; left > 0; left -= size_max) {
            rows += fmt::format("{}->{} id {} start {} size {}\n", from, to, ++count,
                                flow.start.count(), std::min(left, size_max));
        }
    }
    return fmt::format("Nodes {}\nConnections {}\n{}", t.nic_count(), count, rows);
}

}  // namespace

std::vector<ExportedFile> export_htsim(const Scenario& s, std::int64_t /*replica*/) {
    const NetworkWindow window = compute_window(s, "csg-htsim");
    const Topology& topology = window.network->topology;
    return {{"", htsim_topology(topology)}, {".cm", htsim_flows(topology, window.window)}};
}

}  // namespace railyard
