#include "models/fabric/link_failover.h"

#include <algorithm>
#include <map>

#include "models/fabric/aggregation_tree.h"

namespace railyard {

namespace {

bool has_cable(std::span<const LinkId> cables, LinkId link) {
    return std::ranges::any_of(cables,
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
            const std::optional<Absence> gone = absence(o, after);
            if (!gone) continue;
            due_.push_back(gone->from);
            if (gone->until != PacketEngine::never) due_.push_back(gone->until);
        }
    }
    std::ranges::sort(due_);
    due_.erase(std::unique(due_.begin(), due_.end()), due_.end());
}

Picoseconds LinkFailover::next() const {
    return done_ < due_.size() ? due_[done_] : PacketEngine::never;
}

std::optional<LinkFailover::Absence> LinkFailover::absence(const CableOutage& o,
                                                           Picoseconds after) const {
    if (o.up == PacketEngine::never) return Absence{o.down + after, o.up};
    if (o.up <= o.down + after) return std::nullopt;
    return Absence{o.down + after, o.up + times_.taken_up(o.up - o.down)};
}

LinkFailover::Known LinkFailover::known(Picoseconds now) const {
    Known known;
    for (const CableOutage& o : outages_) {
        const auto is_out = [&](Picoseconds after) {
            const std::optional<Absence> gone = absence(o, after);
            return gone && now >= gone->from && now < gone->until;
        };
        if (is_out(times_.local)) known.at_its_ends.push_back(o.link);
        if (is_out(times_.everywhere)) known.everywhere.push_back(o.link);
    }
    return known;
}

void LinkFailover::act(PacketEngine& engine) {
    ++done_;
    const Known now = known(engine.now());
    const bool chooses = std::ranges::any_of(
        flows_, [](const PacketFlow& f) { return f.routing != PacketRouting::path; });
    if (chooses) {
        engine.choose_from(NextHops(without(topology_, now.everywhere), seed_, now.at_its_ends));
    }
    reroute(engine, now);
}

// The network without some cables, and paths on it.
class LinkFailover::Views {
  public:
    Views(const Topology& topology, RoutingSpec routing) : topology_(topology), routing_(routing) {}

    // Empty: none is left.
    std::vector<LinkId> path(const PacketFlow& flow, std::vector<LinkId> out) {
        std::ranges::sort(out);
        std::unique_ptr<View>& view = views_[out];
        if (!view) view = std::make_unique<View>(without(topology_, out), routing_);
        const auto& links = topology_.links();
        std::vector<Usage> usages;
        view->router.route_queue_pair(links[flow.path.front()].from, links[flow.path.back()].to,
                                      flow.queue_pair, usages);
        std::vector<LinkId> path;
        for (const Usage& u : usages) path.push_back(u.link);
        return path;
    }

  private:
    struct View {
        View(Topology left, RoutingSpec routing)
            : topology(std::move(left)), router(topology, routing) {}
        Topology topology;
        Router router;
    };
    const Topology& topology_;
    RoutingSpec routing_;
    std::map<std::vector<LinkId>, std::unique_ptr<View>> views_;
};

void LinkFailover::reroute(PacketEngine& engine, const Known& known) {
    Views views(topology_, routing_);
    for (std::size_t i = 0; i < flows_.size(); ++i) {
        const PacketFlow& flow = flows_[i];
        if (flow.continues >= 0 || flow.routing != PacketRouting::path) continue;
        // A branch of an aggregation tree stays where it is.
        if (aggregation_node_of(topology_, flow.path.front()) ||
            aggregation_node_of(topology_, flow.path.back())) {
            continue;
        }
        std::vector<LinkId> path = path_now(flow, known, views);
        if (path == flow.path) path.clear();
        if (path == detour_[i]) continue;
        detour_[i] = std::move(path);
        engine.reroute(i, detour_[i].empty() ? flow.path : detour_[i]);
    }
}

// Switch by switch: each leaves out what everybody knows of, and the cables of its own.
std::vector<LinkId> LinkFailover::path_now(const PacketFlow& flow, const Known& known,
                                           Views& views) const {
    std::vector<LinkId> path = flow.path;
    const auto takes = [&](const std::vector<LinkId>& other, std::size_t same) {
        const bool parts_later = other.size() > same && path[0] == other[0] &&
                                 std::equal(path.begin(), path.begin() + same, other.begin());
        if (parts_later) path = other;
        return parts_later;
    };
    const auto is_known = [&](LinkId l) { return has_cable(known.everywhere, l); };
    if (std::ranges::any_of(path, is_known) && !takes(views.path(flow, known.everywhere), 0)) {
        return flow.path;
    }
    std::vector<LinkId> out = known.everywhere;
    for (std::size_t i = 0; i < path.size(); ++i) {
        if (!has_cable(known.at_its_ends, path[i])) continue;
        const VertexId here = topology_.links()[path[i]].from;
        for (const LinkId l : known.at_its_ends) {
            const auto& link = topology_.links()[l];
            if ((link.from == here || link.to == here) && !has_cable(out, l)) out.push_back(l);
        }
        if (!takes(views.path(flow, out), i)) return path;  // it is lost here
    }
    return path;
}

}  // namespace railyard
