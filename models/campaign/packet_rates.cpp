#include "models/campaign/packet_rates.h"

#include <fmt/format.h>

#include <algorithm>

namespace railyard {

namespace {

// All streams of one collective at once. A ring's pieces go from NIC to NIC, each on when the one before
// it has come in: so a slow hop holds up the whole ring, as in NCCL, and no more. Rates are those of the
// last third, with more and more pieces until twice as many give the same: marks come late, cut deep at
// first, and senders take long to find their rates.
class PacketRates final : public NetworkModel {
  public:
    PacketRates(const Scenario& scenario, bool burst)
        : scenario_(scenario),
          burst_(burst),
          network_(scenario.networks[0]),
          reader_(diagnostics_, scenario.file, scenario.perturbation),
          catalogue_(reader_, scenario.values, &scenario.overrides) {
        // What NCCL hands to the network at once: a slot of a connection's buffer.
        piece_ = static_cast<double>(catalogue_.data("nccl_net", "", "buffer").count()) /
                 catalogue_.number("nccl_net", "", "steps");
    }

    std::vector<double> rates(const std::vector<NetworkStream>& streams, bool chained) override {
        std::vector<double> before;
        for (std::int64_t steps = steps_first; steps <= steps_max; steps *= 2) {
            std::vector<double> now = measure(streams, chained, steps);
            if (!before.empty() && settled(before, now)) return now;
            before = std::move(now);
        }
        return before;
    }

  private:
    static constexpr std::int64_t steps_first = 6;
    static constexpr std::int64_t steps_max = 384;

    static bool settled(const std::vector<double>& a, const std::vector<double>& b) {
        constexpr double close = 0.05;
        const double slowest_a = *std::min_element(a.begin(), a.end());
        const double slowest_b = *std::min_element(b.begin(), b.end());
        return std::abs(slowest_a - slowest_b) <= close * slowest_b;
    }

    // Progress of each stream, bytes/s.
    std::vector<double> measure(const std::vector<NetworkStream>& streams, bool chained,
                                std::int64_t steps) {
        MessageFlows flows(network_.topology, network_.routing);
        std::vector<Lap> laps;
        for (const NetworkStream& stream : streams) {
            laps.push_back(chained ? add_ring(stream, steps, flows)
                                   : add_fan(stream, steps, flows));
        }
        PacketWindow window;
        if (burst_) {
            window.background_from = flows.size();
            add_checkpoint(steps, flows);
            window.faults = busy_servers();
        }
        window.flows = flows.take();
        window.routing = network_.routing;
        window.time_max = scenario_.window.time_max;
        window.events_max = static_cast<std::uint64_t>(scenario_.window.events_max);
        const auto result =
            run_window_once(catalogue_, network_.topology, network_.packets, window);
        if (result->ending != WindowEnding::resolved || result->failures > 0) {
            throw ScenarioError(
                fmt::format("run.fidelity: the packets of a collective did not come through "
                            "({} of {} messages failed)",
                            result->failures, window.flows.size()),
                "railyard window shows what holds them up; window.time_max and window.events_max "
                "bound it");
        }
        if (result->totals.lost_lossless > 0 && !scenario_.window.allow_loss) {
            throw ScenarioError(
                fmt::format("run.fidelity: {} packets of a lossless class found no room while a "
                            "collective ran",
                            result->totals.lost_lossless),
                "more headroom, pauses on every switch, or window.allow_loss = true");
        }
        std::vector<double> out;
        for (const Lap& lap : laps) {
            Picoseconds from{};
            Picoseconds to{};
            for (const std::int64_t f : lap.first) from = std::max(from, result->ends[index(f)]);
            for (const std::int64_t f : lap.last) to = std::max(to, result->ends[index(f)]);
            out.push_back(lap.bytes / (static_cast<double>((to - from).count()) * 1e-12));
        }
        return out;
    }

    static std::size_t index(std::int64_t flow) { return static_cast<std::size_t>(flow); }

    // What is measured: `bytes` of the stream's progress between the ends of two sets of flows.
    struct Lap {
        double bytes = 0;
        std::vector<std::int64_t> first;  // empty: from the beginning
        std::vector<std::int64_t> last;
    };

    // Two pieces of each hop are under way: one moves while the other's acknowledgement travels.
    static constexpr std::int64_t lanes = 2;

    Lap add_ring(const NetworkStream& hops, std::int64_t steps, MessageFlows& flows) const {
        Lap lap;
        const std::int64_t warm = steps * 2 / 3;
        lap.bytes = piece_ * static_cast<double>(lanes * (steps - warm));
        std::vector<MessageFlows::Handle> connections(hops.size(), MessageFlows::nothing);
        for (std::int64_t lane = 0; lane < lanes; ++lane) {
            std::vector<MessageFlows::Handle> before;
            for (std::int64_t step = 0; step < steps; ++step) {
                std::vector<MessageFlows::Handle> now;
                for (std::size_t h = 0; h < hops.size(); ++h) {
                    const NetworkHop& hop = hops[h];
                    MessageFlows::Message m{hop.from, hop.to,
                                            static_cast<std::int64_t>(piece_ * double{hop.share})};
                    m.label = hop.label;
                    m.continues = connections[h];
                    if (step > 0) m.after = before[(h + hops.size() - 1) % hops.size()];
                    connections[h] = flows.send(m);
                    now.push_back(connections[h]);
                    if (step == warm - 1) flows.each(now.back(), lap.first);
                    if (step == steps - 1) flows.each(now.back(), lap.last);
                }
                before = std::move(now);
            }
        }
        return lap;
    }

    Lap add_fan(const NetworkStream& hops, std::int64_t steps, MessageFlows& flows) const {
        Lap lap;
        lap.bytes = piece_ * static_cast<double>(steps);
        for (const NetworkHop& hop : hops) {
            MessageFlows::Message m{hop.from, hop.to,
                                    static_cast<std::int64_t>(lap.bytes * double{hop.share})};
            m.label = hop.label;
            flows.each(flows.send(m), lap.last);
        }
        return lap;
    }

    // As much as the node's NICs could send while the collective moves: more than it can in truth.
    void add_checkpoint(std::int64_t steps, MessageFlows& flows) const {
        const Topology& t = network_.topology;
        const double bytes = piece_ * static_cast<double>(lanes * steps * t.nics_per_node());
        const std::int64_t servers = t.servers();
        for (std::int64_t node = 0; node < scenario_.job.nodes; ++node) {
            for (std::int64_t k = 0; k < servers; ++k) {
                const VertexId there =
                    t.server_nic((node + k) % servers, (node + k) % t.nics_per_server());
                MessageFlows::Message m{
                    nic_towards(node, there, node + k, flows), there,
                    static_cast<std::int64_t>(bytes / static_cast<double>(servers))};
                m.traffic_class = scenario_.own_class ? 2 : 1;
                flows.send(m);
            }
        }
    }

    // The node's NIC number `preferred`, or the next one with a path there: rails may not meet.
    VertexId nic_towards(std::int64_t node, VertexId there, std::int64_t preferred,
                         MessageFlows& flows) const {
        const Topology& t = network_.topology;
        for (std::int64_t i = 0; i < t.nics_per_node(); ++i) {
            const VertexId nic = t.nic(node, (preferred + i) % t.nics_per_node());
            if (flows.reaches(nic, there)) return nic;
        }
        throw NoPath(t.name(t.nic(node, 0)), t.name(there));
    }

    // A server takes what its drives take.
    std::vector<WindowFault> busy_servers() const {
        const Topology& t = network_.topology;
        std::vector<WindowFault> faults;
        for (VertexId nic = t.server_nic(0, 0); nic < t.nic_count(); ++nic) {
            for (const LinkId up : t.up_links(nic)) {
                WindowFault slow;
                slow.kind = WindowFault::Kind::slow_receiver;
                slow.link = reverse_link(up);
                slow.rate = scenario_.server_write_bandwidth *
                            (1.0 / static_cast<double>(t.nics_per_server()));
                if (slow.rate < t.line_rate(up)) faults.push_back(slow);
            }
        }
        return faults;
    }

    const Scenario& scenario_;
    bool burst_;
    const ClusterNetwork& network_;
    Diagnostics diagnostics_;
    ValueReader reader_;
    Catalogue catalogue_;
    double piece_;
};

}  // namespace

std::shared_ptr<NetworkModel> packet_rates(const Scenario& scenario, bool burst) {
    return std::make_shared<PacketRates>(scenario, burst);
}

}  // namespace railyard
