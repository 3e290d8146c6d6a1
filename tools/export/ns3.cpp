// The files of HPCC's ns-3 (alibaba-edu/High-Precision-Congestion-Control) and of SimAI, which is built on
// it: topology, flows, and what of the switches' set-up its configuration has.

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cctype>
#include <map>
#include <numeric>

#include "tools/export/export.h"

namespace railyard {

namespace {

std::int64_t gigabits(Bandwidth rate) {
    return (rate.bits_per_second() + 500'000'000) / 1'000'000'000;
}

std::string numbers_from(std::int64_t first, std::int64_t count) {
    std::vector<std::int64_t> out(static_cast<std::size_t>(count));
    std::iota(out.begin(), out.end(), first);
    return fmt::format("{}\n", fmt::join(out, " "));
}

// A link there has one delay: the mean of both directions, one of which has the switch's own. Switches are
// numbered `shift` higher than the topology's vertices are.
std::string cable_rows(const Topology& t, std::int64_t shift) {
    const auto number = [&](VertexId v) {
        return std::int64_t{v} + (v < t.nic_count() ? 0 : shift);
    };
    std::string out;
    for (LinkId l = 0; l < t.links().size(); l += 2) {
        const Link& link = t.links()[l];
        const std::int64_t both = (link.latency + t.links()[reverse_link(l)].latency).count();
        out += fmt::format("{} {} {}Gbps {:.4f}us 0\n", number(link.from), number(link.to),
                           gigabits(t.line_rate(l)), static_cast<double>(both) / 2e6);
    }
    return out;
}

// NICs are hosts 0 to n - 1, switches follow: a vertex's number is its node's.
std::string ns3_topology(const Topology& t) {
    const auto hosts = static_cast<std::int64_t>(t.nic_count());
    const std::int64_t switches = static_cast<std::int64_t>(t.vertex_count()) - hosts;
    return fmt::format("{} {} {}\n", t.vertex_count(), switches, t.links().size() / 2) +
           numbers_from(hosts, switches) + cable_rows(t, 0);
}

// SimAI's hosts are GPUs, each with the cable of its NIC and one to the NVSwitch of its domain. GPUs come
// first, then NVSwitches, then the network's own.
std::string simai_topology(const Scenario& s, const Topology& t) {
    constexpr double nvlink_delay_us = 0.025;  // an estimate: the wire and a SerDes at either end
    const Node& node = s.node;
    const auto gpus = static_cast<std::int64_t>(t.nic_count());
    const std::int64_t domain = node.nvlink ? node.nvlink_domain : 1;
    if (node.nics != node.gpus || gpus != t.nodes() * node.gpus || gpus % domain != 0) {
        throw ScenarioError(
            fmt::format("{}: SimAI's network has one NIC for each GPU, no other hosts, and whole "
                        "domains of NVLink: found {} NICs on a node of {} GPUs, and {} NICs in all",
                        s.file, node.nics, node.gpus, gpus),
            "cluster.nics_per_node as the node has GPUs, and storage on a network of its own");
    }
    const std::int64_t nvswitches = domain > 1 ? gpus / domain : 0;
    const std::int64_t switches = static_cast<std::int64_t>(t.vertex_count()) - gpus;
    const std::int64_t links = std::ssize(t.links()) / 2 + (nvswitches > 0 ? gpus : 0);
    std::string type = node.gpu.id.substr(0, node.gpu.id.find('_'));
    std::ranges::transform(type, type.begin(), [](unsigned char c) { return std::toupper(c); });
    std::string out =
        fmt::format("{} {} {} {} {} {}\n", gpus + nvswitches + switches,
                    domain > 1 ? domain : node.gpus, nvswitches, switches, links, type) +
        numbers_from(gpus, nvswitches + switches);
    for (std::int64_t gpu = 0; nvswitches > 0 && gpu < gpus; ++gpu) {
        out += fmt::format("{} {} {}Gbps {:.4f}us 0\n", gpu, gpus + gpu / domain,
                           gigabits(node.gpu.nvlink_bandwidth), nvlink_delay_us);
    }
    return out + cable_rows(t, nvswitches);
}

// Sorted by start: it starts those whose time has come, and never one that it has passed. A size is 32 bits
// there.
std::string ns3_flows(const Topology& t, const PacketWindow& window) {
    constexpr std::int64_t size_max = 4'000'000'000;
    constexpr int priority = 3;
    std::vector<const PacketFlow*> flows;
    for (const PacketFlow& flow : window.flows) flows.push_back(&flow);
    std::ranges::stable_sort(flows, {}, &PacketFlow::start);
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

std::vector<ExportedFile> export_simai(const Scenario& s, std::int64_t /*replica*/) {
    const ClusterNetwork& network = s.networks[0];
    if (network.topology.vertex_count() == 0) {
        throw ScenarioError(fmt::format("{}: an ideal network has no topology", s.file),
                            "fabric.compute.topology = \"fat_tree\", and run.fidelity = \"flow\"");
    }
    std::vector<ExportedFile> out = {{"", simai_topology(s, network.topology)},
                                     {".config.txt", ns3_config(network)}};
    if (std::string step = simai_workload(s); !step.empty()) {
        out.push_back({".workload.txt", std::move(step)});
    }
    return out;
}

}  // namespace railyard
