#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <optional>

#include "models/campaign/sections.h"
#include "sim/check.h"

namespace railyard {

namespace {

// All streams of one collective at once. A ring's pieces go from NIC to NIC, each on when the one before
// it has come in: so a slow hop holds up the whole ring, as in NCCL, and no more.
//
// A collective ends with its slowest stream, which goes faster once others have ended. So its rate is not
// measured in the middle of a run, but between two: what twice the pieces take longer, from begin to end.
// They are doubled until that rate stays: marks come late, cut deep at first, and senders take long to find
// their rates. Or until the budget is spent, which is noted in the scenario's limits.
class PacketRates final : public NetworkModel {
  public:
    PacketRates(const Scenario& scenario, bool burst)
        : scenario_(scenario),
          burst_(burst),
          network_(scenario.networks[0]),
          own_(scenario.open_catalogue()) {
        // What NCCL hands to the network at once: a slot of a connection's buffer.
        piece_ = real(own_.catalogue.data("nccl_net", "", "buffer").count()) /
                 own_.catalogue.number("nccl_net", "", "steps");
    }

    std::vector<double> rates(const std::vector<NetworkStream>& streams, StreamKind kind) override {
        if (!scenario_.windows) return unhindered(streams);
        const WindowSpec& budget = scenario_.window;
        std::optional<Measurement> half;
        std::vector<double> before;
        double change = 0;
        std::int64_t steps = steps_first;
        for (; steps <= budget.pieces_max; steps *= 2) {
            Measurement now = measure(streams, kind, steps);
            if (now.ending != WindowEnding::resolved) {
                cut_off(streams, now.ending);
                return before.empty() ? now.so_far : before;
            }
            if (half) {
                const std::vector<double> rates = rates_between(*half, now);
                if (!before.empty()) {
                    change = change_of_slowest(before, rates);
                    if (change <= budget.settled_within) return rates;
                }
                before = rates;
            }
            half = std::move(now);
        }
        scenario_.limits->add(
            fmt::format("{}: {} pieces instead of {} still changed the slowest stream's rate by "
                        "{:.2g} %, the rate that is taken may be as far off",
                        who(streams), steps / 2, steps / 4, 100 * change),
            fmt::format("window.pieces_max = {}, or a larger window.settled_within", steps));
        return before;
    }

  private:
    static constexpr std::int64_t steps_first = 3;

    // A stream's flows: `bytes` of its progress, which are through when the last of them have ended.
    struct StreamFlows {
        double bytes = 0;
        double flows = 0;  // that carry each byte of it
        std::vector<std::int64_t> last;
    };

    // By stream.
    struct Measurement {
        WindowEnding ending = WindowEnding::resolved;
        std::vector<double> bytes;
        std::vector<double> seconds;  // until it was through
        std::vector<double> so_far;   // bytes/s until the window's end
    };

    // Where windows are not run. Fair shares have found the streams' paths, but not the checkpoint's.
    std::vector<double> unhindered(const std::vector<NetworkStream>& streams) const {
        if (burst_) {
            MessageFlows flows(network_.topology, network_.routing);
            add_checkpoint(steps_first, flows);
        }
        return std::vector<double>(streams.size(), std::numeric_limits<double>::infinity());
    }

    // The slowest stream's as said above; the others' in proportion to when they end.
    static std::vector<double> rates_between(const Measurement& half, const Measurement& whole) {
        const double end = *std::ranges::max_element(whole.seconds);
        const double half_end = *std::ranges::max_element(half.seconds);
        std::vector<double> rates;
        for (std::size_t i = 0; i < whole.bytes.size(); ++i) {
            const double share = (whole.bytes[i] - half.bytes[i]) * end / whole.seconds[i];
            rates.push_back(end > half_end ? share / (end - half_end) : whole.so_far[i]);
        }
        return rates;
    }

    static double change_of_slowest(const std::vector<double>& a, const std::vector<double>& b) {
        const double slowest_a = *std::ranges::min_element(a);
        const double slowest_b = *std::ranges::min_element(b);
        return std::abs(slowest_a - slowest_b) / slowest_b;
    }

    std::string who(const std::vector<NetworkStream>& streams) const {
        const Topology& t = network_.topology;
        return fmt::format("run.fidelity: the packets of a collective between {} and {}",
                           t.name(streams[0][0].from), t.name(streams[0][0].to));
    }
    void cut_off(const std::vector<NetworkStream>& streams, WindowEnding ending) const {
        const bool time = ending == WindowEnding::out_of_time;
        scenario_.limits->add(fmt::format("{} were not through when window.{} was reached, the "
                                          "rate that is taken is that until then",
                                          who(streams), time ? "time_max" : "events_max"),
                              "railyard window shows what holds packets up");
    }

    Measurement measure(const std::vector<NetworkStream>& streams, StreamKind kind,
                        std::int64_t steps) {
        MessageFlows flows(network_.topology, network_.routing);
        std::vector<StreamFlows> of_stream;
        std::vector<std::int64_t> until;  // flow, of each stream
        for (const NetworkStream& stream : streams) {
            of_stream.push_back(kind == StreamKind::ring  ? add_ring(stream, steps, flows)
                                : kind == StreamKind::fan ? add_fan(stream, steps, flows)
                                                          : add_tree(stream, steps, flows));
            until.push_back(static_cast<std::int64_t>(flows.size()));
        }
        PacketWindow window;
        if (burst_) {
            window.background_from = flows.size();
            add_checkpoint(steps, flows);
            window.faults = busy_servers();
        }
        window.flows = flows.take();
        window.aggregating = flows.aggregating();
        window.routing = network_.routing;
        window.time_max = scenario_.window.time_max;
        window.events_max = static_cast<std::uint64_t>(scenario_.window.events_max);
        const auto result =
            scenario_.windows->run(own_.catalogue, network_.topology, network_.packets, window);
        Measurement out;
        out.ending = result->ending;
        for (std::size_t i = 0; i < streams.size(); ++i) {
            out.bytes.push_back(of_stream[i].bytes);
            out.seconds.push_back(end_of(of_stream[i], *result));
            out.so_far.push_back(
                rate_so_far(of_stream[i], i == 0 ? 0 : until[i - 1], until[i], *result));
        }
        const bool none = std::ranges::any_of(out.so_far, [](double rate) { return !(rate > 0); });
        if (result->failures > 0 || none) {
            throw ScenarioError(fmt::format("{} did not come through ({} of {} messages failed)",
                                            who(streams), result->failures, window.flows.size()),
                                "railyard window shows what holds them up; window.time_max and "
                                "window.events_max bound it");
        }
        if (result->totals.lost_lossless > 0 && !scenario_.window.allow_loss) {
            throw ScenarioError(
                fmt::format("run.fidelity: {} packets of a lossless class found no room while a "
                            "collective ran",
                            result->totals.lost_lossless),
                "more headroom, pauses on every switch, or window.allow_loss = true");
        }
        return out;
    }

    static double end_of(const StreamFlows& stream, const WindowResult& result) {
        Picoseconds end{};
        for (const std::int64_t f : stream.last) end = std::max(end, result.ends[index(f)]);
        return real(end.count()) * 1e-12;
    }
    // The rate of a stream whose flows are [first, last).
    static double rate_so_far(const StreamFlows& stream, std::int64_t first, std::int64_t last,
                              const WindowResult& result) {
        double received = 0;
        for (std::int64_t f = first; f < last; ++f) {
            received += real(result.received_bytes[index(f)]);
        }
        return received / stream.flows / (real(result.end.count()) * 1e-12);
    }

    static double shares(const NetworkStream& hops) {
        double sum = 0;
        for (const NetworkHop& hop : hops) sum += double{hop.share};
        return sum;
    }
    static std::size_t index(std::int64_t flow) { return static_cast<std::size_t>(flow); }

    // Two pieces of each hop are under way: one moves while the other's acknowledgement travels.
    static constexpr std::int64_t lanes = 2;

    StreamFlows add_ring(const NetworkStream& hops, std::int64_t steps, MessageFlows& flows) const {
        StreamFlows out;
        out.bytes = piece_ * real(lanes * steps);
        out.flows = shares(hops);
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
                    if (step == steps - 1) flows.each(now.back(), out.last);
                }
                before = std::move(now);
            }
        }
        return out;
    }

    StreamFlows add_fan(const NetworkStream& hops, std::int64_t steps, MessageFlows& flows) const {
        StreamFlows out;
        out.bytes = piece_ * real(steps);
        out.flows = shares(hops);
        for (const NetworkHop& hop : hops) {
            MessageFlows::Message m{hop.from, hop.to,
                                    static_cast<std::int64_t>(out.bytes * double{hop.share})};
            m.label = hop.label;
            flows.each(flows.send(m), out.last);
        }
        return out;
    }

    StreamFlows add_tree(const NetworkStream& leaves, std::int64_t steps,
                         MessageFlows& flows) const {
        std::vector<VertexId> nics;
        for (const NetworkHop& leaf : leaves) nics.push_back(leaf.from);
        const auto tree = aggregation_tree(network_.topology, nics, leaves[0].label);
        RY_CHECK(tree);  // fair shares have found it
        const std::vector<std::int64_t> arrivals =
            flows.all_reduce(*tree, static_cast<std::int64_t>(piece_), steps, {});
        StreamFlows out;
        out.bytes = piece_ * real(steps);
        out.flows = 2 * real(tree->branches.size());
        const auto nic_count = static_cast<std::int64_t>(nics.size());
        out.last.assign(arrivals.end() - nic_count, arrivals.end());
        return out;
    }

    // As much as the node's NICs could send while the collective moves: more than it can in truth.
    void add_checkpoint(std::int64_t steps, MessageFlows& flows) const {
        const Topology& t = network_.topology;
        const double bytes = piece_ * real(lanes * steps * t.nics_per_node());
        const std::int64_t servers = t.spec().servers;
        for (std::int64_t node = 0; node < scenario_.job.nodes; ++node) {
            for (std::int64_t k = 0; k < servers; ++k) {
                // Each server has a stripe of every node.
                const VertexId there =
                    t.server_nic((node + k) % servers, node % t.spec().nics_per_server);
                MessageFlows::Message m{flows.nic_towards(node, there, node + k), there,
                                        static_cast<std::int64_t>(bytes / real(servers))};
                m.traffic_class = scenario_.own_class ? 2 : 1;
                flows.send(m);
            }
        }
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
                slow.rate =
                    scenario_.server_write_bandwidth * (1.0 / real(t.spec().nics_per_server));
                if (slow.rate < t.line_rate(up)) faults.push_back(slow);
            }
        }
        return faults;
    }

    const Scenario& scenario_;
    bool burst_;
    const ClusterNetwork& network_;
    StandaloneCatalogue own_;
    double piece_;
};

}  // namespace

std::shared_ptr<NetworkModel> packet_rates(const Scenario& scenario, bool burst) {
    return std::make_shared<PacketRates>(scenario, burst);
}

}  // namespace railyard
