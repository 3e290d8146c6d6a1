#include "models/fabric/link_failover.h"

#include <algorithm>

#include "models/fabric/aggregation_tree.h"

namespace railyard {

namespace {

bool has_cable(std::span<const LinkId> cables, LinkId link) {
    return std::any_of(cables.begin(), cables.end(),
                       [&](LinkId l) { return l == link || l == reverse_link(link); });
}

Topology without(Topology topology, std::span<const LinkId> cables) {
    for (const LinkId l : cables) topology.degrade(l, 0);
    return topology;
}

}  // namespace

FailoverTimes read_failover_times(Catalogue& catalogue, bool infiniband) {
    if (infiniband) {
        return {catalogue.time("infiniband", "", "fast_recovery_time"),
                catalogue.time("infiniband", "", "sm_reroute_time")};
    }
    return {catalogue.time("ethernet_failover", "", "local_time"),
            catalogue.time("ethernet_failover", "", "reroute_time")};
}

LinkFailover::LinkFailover(const Topology& topology, RoutingSpec routing, FailoverTimes times,
                           std::vector<CableOutage> outages, const std::vector<PacketFlow>& flows,
                           std::uint64_t seed)
    : topology_(topology),
      routing_(routing),
      times_(times),
      outages_(std::move(outages)),
      flows_(flows),
      seed_(seed),
      detour_(flows.size()) {
    for (const CableOutage& o : outages_) {
        for (const Picoseconds after : {times_.local, times_.everywhere}) {
            // One that is over before it is noticed is not.
            if (o.up != PacketEngine::never && o.up <= o.down + after) continue;
            due_.push_back(o.down + after);
            if (o.up != PacketEngine::never) due_.push_back(o.up + after);
        }
    }
    std::sort(due_.begin(), due_.end());
    due_.erase(std::unique(due_.begin(), due_.end()), due_.end());
}

Picoseconds LinkFailover::next() const {
    return done_ < due_.size() ? due_[done_] : PacketEngine::never;
}

LinkFailover::Known LinkFailover::known(Picoseconds now) const {
    Known known;
    for (const CableOutage& o : outages_) {
        const auto out = [&](Picoseconds after) {
            if (o.up == PacketEngine::never) return now >= o.down + after;
            return o.up > o.down + after && now >= o.down + after && now < o.up + after;
        };
        if (out(times_.local)) known.at_its_ends.push_back(o.link);
        if (out(times_.everywhere)) known.everywhere.push_back(o.link);
    }
    return known;
}

void LinkFailover::act(PacketEngine& engine) {
    ++done_;
    const Known now = known(engine.now());
    const bool chooses = std::any_of(flows_.begin(), flows_.end(), [](const PacketFlow& f) {
        return f.routing != PacketRouting::path;
    });
    if (chooses) {
        engine.choose_from(NextHops(without(topology_, now.everywhere), seed_, now.at_its_ends));
    }
    reroute(engine, now);
}

// Queue pairs whose own path has a cable that is out.
void LinkFailover::reroute(PacketEngine& engine, const Known& known) {
    const Topology left = without(without(topology_, known.everywhere), known.at_its_ends);
    Router router(left, routing_);
    std::vector<Usage> usages;
    for (std::size_t i = 0; i < flows_.size(); ++i) {
        const PacketFlow& flow = flows_[i];
        if (flow.continues >= 0 || flow.routing != PacketRouting::path) continue;
        // A branch of an aggregation tree stays where it is.
        if (aggregation_node_of(topology_, flow.path.front()) ||
            aggregation_node_of(topology_, flow.path.back())) {
            continue;
        }
        std::vector<LinkId> path;
        const bool out = std::any_of(flow.path.begin(), flow.path.end(),
                                     [&](LinkId l) { return left.links()[l].bytes_per_s <= 0; });
        if (out) {
            usages.clear();
            const auto& links = topology_.links();
            if (!router.route_queue_pair(links[flow.path.front()].from, links[flow.path.back()].to,
                                         flow.queue_pair, usages)) {
                continue;
            }
            for (const Usage& u : usages) path.push_back(u.link);
            if (!may_take(flow.path, path, known)) continue;
        }
        if (path == detour_[i]) continue;
        detour_[i] = std::move(path);
        engine.reroute(i, detour_[i].empty() ? flow.path : detour_[i]);
    }
}

// Only where somebody on it knows of every cable that made it leave its own.
bool LinkFailover::may_take(const std::vector<LinkId>& old_path, const std::vector<LinkId>& path,
                            const Known& known) const {
    std::size_t same = 0;
    while (same < std::min(path.size(), old_path.size()) && path[same] == old_path[same]) ++same;
    if (same == 0) return false;
    for (std::size_t i = 0; i < old_path.size(); ++i) {
        if (has_cable(known.everywhere, old_path[i])) return true;
        if (has_cable(known.at_its_ends, old_path[i])) return same >= i;
    }
    return true;
}

}  // namespace railyard
