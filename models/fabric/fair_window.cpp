#include "models/fabric/fair_window.h"

#include <map>
#include <utility>

#include "models/fabric/flow_level.h"
#include "models/fabric/routing.h"

namespace railyard {

namespace {

// The flows of a window as transfers. A joint is one transfer of nothing for each that joins it, which waits
// for that and for the one before.
class FairTransfers {
  public:
    FairTransfers(std::vector<double> capacities, std::size_t flows)
        : shares_(std::move(capacities), flows) {}

    void add(const PacketFlow& flow, Transfer transfer) {
        transfer.after = flow.after_joint >= 0 ? joints_.at(flow.after_joint) : of(flow.after);
        transfer.behind = of(flow.continues);
        transfers_.push_back(number(shares_.add(std::move(transfer))));
        if (flow.joins < 0) return;
        Transfer joint;
        joint.behind = transfers_.back();
        const auto before = joints_.find(flow.joins);
        if (before != joints_.end()) joint.after = before->second;
        joints_[flow.joins] = number(shares_.add(std::move(joint)));
    }
    void run() { shares_.run(); }
    Picoseconds end(std::size_t flow) const {
        return shares_.end(static_cast<std::size_t>(transfers_[flow]));
    }

  private:
    static std::int64_t number(std::size_t transfer) { return static_cast<std::int64_t>(transfer); }
    std::int64_t of(std::int64_t flow) const { return flow < 0 ? -1 : transfers_[flow]; }

    FlowSimulation shares_;
    std::vector<std::int64_t> transfers_;          // of each flow
    std::map<std::int64_t, std::int64_t> joints_;  // the last transfer of each
};

}  // namespace

std::optional<std::vector<Picoseconds>> fair_ends(Catalogue& catalogue, const Topology& t,
                                                  const PacketProfile& profile,
                                                  const PacketWindow& window) {
    const std::vector<PacketFlow>& flows = window.flows;
    if (!window.faults.empty() || !window.aggregating.empty()) return std::nullopt;
    const PacketSpec& spec = profile.spec;
    const double on_wire = real(spec.payload_bytes + spec.header_bytes) / real(spec.payload_bytes);
    RoutingSpec of_queue_pair = window.routing;
    of_queue_pair.queue_pairs = 1;
    Router router(t, of_queue_pair);
    // What a core pushes through a TCP connection is a link that each flow has to itself.
    const bool tcp = profile.congestion == "tcp";
    std::vector<double> rates = capacities(t);
    const auto links = static_cast<LinkId>(rates.size());
    if (tcp) rates.resize(links + flows.size(), read_tcp(catalogue).stream_bits_per_s / 8);
    FairTransfers shares(std::move(rates), flows.size());
    std::vector<Picoseconds> back;
    for (const PacketFlow& f : flows) {
        Transfer transfer;
        const VertexId from = t.links()[f.path.front()].from;
        const VertexId to = t.links()[f.path.back()].to;
        if (f.routing == PacketRouting::path) {
            for (const LinkId l : f.path) transfer.usages.push_back({l, 1});
        } else if (!router.route(from, to, f.queue_pair, transfer.usages)) {
            return std::nullopt;
        }
        transfer.bytes = real(f.bytes) * on_wire;
        transfer.start = f.start;
        transfer.latency = router.latency(transfer.usages);
        if (tcp) transfer.usages.push_back({static_cast<LinkId>(links + back.size()), 1});
        back.push_back(transfer.latency);
        shares.add(f, std::move(transfer));
    }
    shares.run();
    std::vector<Picoseconds> ends;
    for (std::size_t f = 0; f < flows.size(); ++f) {
        if (shares.end(f) == FlowSimulation::never) return std::nullopt;
        ends.push_back(shares.end(f) + back[f]);
    }
    return ends;
}

}  // namespace railyard
