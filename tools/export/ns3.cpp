// The files of HPCC's ns-3 (alibaba-edu/High-Precision-Congestion-Control) and its heirs: topology, flows,
// and what of the switches' set-up its configuration has.

#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "tools/export/export.h"

namespace railyard {

namespace {

std::int64_t gigabits(Bandwidth rate) {
    return (rate.bits_per_second() + 500'000'000) / 1'000'000'000;
}

// NICs are hosts 0 to n - 1, switches follow: a vertex's number is its node's. A link there has one delay:
// the mean of both directions, one of which has the switch's own.
std::string ns3_topology(const Topology& t) {
    std::string out = fmt::format("{} {} {}\n", t.vertex_count(), t.vertex_count() - t.nic_count(),
                                  t.links().size() / 2);
    std::string separator;
    for (std::size_t v = t.nic_count(); v < t.vertex_count(); ++v) {
        out += fmt::format("{}{}", separator, v);
        separator = " ";
    }
    out += "\n";
    for (LinkId l = 0; l < t.links().size(); l += 2) {
        const Link& link = t.links()[l];
        const std::int64_t both = (link.latency + t.links()[reverse_link(l)].latency).count();
        out += fmt::format("{} {} {}Gbps {:.4f}us 0\n", link.from, link.to,
                           gigabits(t.line_rate(l)), static_cast<double>(both) / 2e6);
    }
    return out;
}

// Sorted by start: it starts those whose time has come, and never one that it has passed. A size is 32 bits
// there.
std::string ns3_flows(const Topology& t, const PacketWindow& window) {
    constexpr std::int64_t size_max = 4'000'000'000;
    constexpr int priority = 3;
    std::vector<const PacketFlow*> flows;
    for (const PacketFlow& flow : window.flows) flows.push_back(&flow);
    std::stable_sort(flows.begin(), flows.end(),
                     [](const PacketFlow* a, const PacketFlow* b) { return a->start < b->start; });
    std::string rows;
    std::int64_t count = 0;
    for (const PacketFlow* flow : flows) {
        for (std::int64_t left = flow->bytes; left > 0; left -= size_max) {
            rows += fmt::format("{} {} {} {} {} {:.12f}\n", t.links()[flow->path.front()].from,
                                t.links()[flow->path.back()].to, priority, 10000 + count % 50000,
                                std::min(left, size_max),
                                static_cast<double>(flow->start.count()) * 1e-12);
            ++count;
        }
    }
    return fmt::format("{}\n{}", count, rows);
}

// Thresholds are in kB and by rate, buffers in MiB.
std::string ns3_config(const ClusterNetwork& network) {
    const PacketProfile& packets = network.packets;
    std::map<std::string, int> modes = {{"dcqcn", 1}, {"hpcc", 3}, {"timely", 7}, {"dctcp", 8}};
    const auto mode = modes.find(packets.congestion);
    if (mode == modes.end()) {
        throw ScenarioError(
            fmt::format("HPCC's ns-3 has no congestion control '{}'", packets.congestion),
            "fabric.compute.congestion.control = \"dcqcn\" or \"hpcc\"");
    }
    std::string out = fmt::format(
        "ENABLE_QCN 1\nUSE_DYNAMIC_PFC_THRESHOLD 1\nPACKET_PAYLOAD_SIZE {}\nCC_MODE {}\n",
        packets.spec.payload_bytes, mode->second);
    std::map<std::int64_t, Bandwidth> rates;
    for (const CableKind& cable : network.topology.cables()) {
        rates[cable.bandwidth.bits_per_second()] = cable.bandwidth;
    }
    if (packets.ecn) {
        std::string kmin;
        std::string kmax;
        std::string pmax;
        for (const auto& [bits, rate] : rates) {
            const EcnProfile at = packets.ecn->at(rate);
            kmin += fmt::format(" {} {}", bits, at.kmin_bytes / 1000);
            kmax += fmt::format(" {} {}", bits, at.kmax_bytes / 1000);
            pmax += fmt::format(" {} {:g}", bits, at.pmax);
        }
        out += fmt::format("KMAX_MAP {0}{1}\nKMIN_MAP {0}{2}\nPMAX_MAP {0}{3}\n", rates.size(),
                           kmax, kmin, pmax);
    }
    if (packets.buffer) {
        out += fmt::format("BUFFER_SIZE {}\n", packets.buffer->count() / (1024 * 1024));
    }
    return out;
}

}  // namespace

std::vector<ExportedFile> export_ns3(const Scenario& s, std::int64_t /*replica*/) {
    const NetworkWindow window = compute_window(s, "ns-3");
    const Topology& topology = window.network->topology;
    return {{"", ns3_topology(topology)},
            {".flow.txt", ns3_flows(topology, window.window)},
            {".config.txt", ns3_config(*window.network)}};
}

}  // namespace railyard
