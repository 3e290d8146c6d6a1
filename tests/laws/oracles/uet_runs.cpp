#include "tests/laws/oracles/uet_runs.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "sim/check.h"
#include "tests/bench/fat_tree.h"
#include "tools/program/csv_table.h"

namespace railyard {

namespace {

constexpr int hosts = 128;
constexpr double mib = 1 << 20;

// Reads the file's columns `src`, `dst`, `bytes`.
std::vector<Flow> listed(const std::string& path) {
    std::vector<Flow> flows;
    std::vector<Diagnostic> wrong;
    each_row(read_csv_table(path), wrong, [&](const Fields& f) {
        flows.push_back({static_cast<int>(f.integer("src")), static_cast<int>(f.integer("dst")),
                         f.number("bytes")});
    });
    if (!wrong.empty()) throw ScenarioError(wrong);
    return flows;
}

std::vector<Flow> flows_of(const std::string& name, const std::string& folder) {
    if (name == "one") return {{16, 0, 8 * mib}};
    if (name == "two") return {{16, 0, 8 * mib}, {32, 0, 8 * mib, 50e-6}};
    if (name == "incast16") {
        std::vector<Flow> flows;
        for (int i = 0; i < 16; ++i) flows.push_back({8 + 7 * i, 0, 2 * mib});
        return flows;
    }
    if (name == "incast128" || name == "perm128") {
        return listed(folder + "/traces/uet_" + name + ".csv");
    }
    if (name == "a2aflat64of128") {
        // As listed there: each sends to the next one first, so that nobody receives from two at once.
        constexpr int members = 64;
        std::vector<Flow> flows;
        for (int i = 0; i < members; ++i) {
            for (int step = 1; step < members; ++step) {
                flows.push_back({2 * i, 2 * ((i + step) % members), mib / 4});
            }
        }
        return flows;
    }
    if (name == "ring64of128") return traffic("128_ring64").flows;
    return {};
}

// Completion times of all flows.
Metrics metrics_of(const PacketEngine& engine, const std::vector<Flow>& flows) {
    std::vector<double> completion;
    for (std::size_t f = 0; f < flows.size(); ++f) {
        const Picoseconds begun =
            flows[f].after < 0 ? Picoseconds(static_cast<std::int64_t>(flows[f].start_s * 1e12))
                               : engine.end(static_cast<std::size_t>(flows[f].after));
        completion.push_back(static_cast<double>((engine.end(f) - begun).count()) * 1e-6);
    }
    return {{"fct_mean", mean(completion)},
            {"fct_last", *std::max_element(completion.begin(), completion.end())},
            {"retransmitted", static_cast<double>(engine.totals().retransmitted)},
            {"lost", static_cast<double>(engine.totals().lost_lossy)},
            {"timeouts", static_cast<double>(engine.totals().timeouts)}};
}

// The queue that the case has, its entropy, and what finds losses. Gives what its packets choose by.
PacketRouting choose_paths(const UetCase& given, PacketSpec& spec) {
    PacketRouting routing = PacketRouting::entropy;
    if (given.path == "switch_ar_queue") {
        routing = PacketRouting::adaptive;
    } else if (given.path == "single_path_ecmp") {
        spec.entropy.values = 1;
    } else {
        spec.entropy.choice = given.path;
    }
    constexpr std::int64_t short_queue = 153;  // packets of it
    if (given.trimming.starts_with("off_q1bdp")) {
        spec.lossy_queue_bytes = short_queue * (spec.payload_bytes + 64);
    }
    return routing;
}

}  // namespace

Metrics uet_run(const UetCase& given, const std::string& folder, std::uint64_t seed) {
    const std::size_t variant = given.traffic.find("_mtu4160");
    const std::vector<Flow> flows = flows_of(given.traffic.substr(0, variant), folder);
    const bool receivers = given.control.ends_with("rccc");
    if (flows.empty() || (given.control != "nscc" && !receivers)) return {};
    const bool trims = given.trimming == "on";
    const bool by_order = given.trimming == "off_q1bdp_sleek";
    if (!trims && !by_order && given.trimming != "off_q1bdp" && given.trimming != "off_q5bdp") {
        return {};
    }
    StandaloneCatalogue own;
    Traffic shape;
    shape.half = 4;
    shape.pods = hosts / 16;
    const Topology topology = fat_tree(shape);
    PacketProfile profile;
    profile.spec.seed = seed;
    profile.spec.payload_bytes = variant == std::string::npos ? 4032 : 4096;
    const PacketRouting routing = choose_paths(given, profile.spec);
    profile.spec.trimming.enabled = trims;
    profile.spec.order_loss.enabled = by_order;
    profile.spec.header_bytes = own.catalogue.data("ultra_ethernet", "", "header").count();
    profile.spec.classes = {{FlowControl::none, false, 0}, {FlowControl::none, true, 1}};
    constexpr Picoseconds link_latency(1'000'000);
    PacketNetwork network = PacketNetwork::of(topology, 1'000'000'000);
    for (PacketLink& l : network.links) l.latency = link_latency;
    // Six links there and back: a packet one way, an acknowledgement the other.
    const std::int64_t bytes =
        profile.spec.payload_bytes + profile.spec.header_bytes + profile.spec.ack_bytes;
    const Picoseconds round_trip = 12 * link_latency + Picoseconds(6 * 20 * bytes);
    set_up_ultra_ethernet(own.catalogue, topology.line_rate(0), round_trip, profile);
    profile.spec.timeout_growth = 1;  // as there, where no sender gives up
    profile.spec.retries = INT64_MAX;
    for (PacketLink& l : network.links) {
        // Receivers that give credits see their own last link: nothing is marked there.
        const bool receiver_knows = receivers && network.is_nic(l.to);
        if (!network.is_nic(l.from) && !receiver_knows) l.ecn = profile.ecn->at(l.rate);
    }
    profile.spec.queue_step_bytes =
        std::llround(own.catalogue.number("adaptive_routing", "", "queue_step") *
                     static_cast<double>(profile.spec.lossy_queue_bytes));
    profile.spec.buffer.alpha =
        1024;  // a queue of one bandwidth-delay product and no shared buffer
    const CongestionGiven ends = {"", topology.line_rate(0), round_trip, trims};
    std::unique_ptr<Congestion> control;
    if (given.control != "rccc") control = nscc(read_nscc(own.catalogue, ends));
    if (receivers) control = receiver_credits(read_rccc(own.catalogue, ends), std::move(control));
    PacketEngine engine(network, profile.spec, std::move(control));
    engine.choose_from(NextHops(topology));
    add_flows(flows, topology, routing, engine);
    RY_CHECK(engine.run(PacketEngine::never) && engine.audit().empty());
    return metrics_of(engine, flows);
}

}  // namespace railyard
