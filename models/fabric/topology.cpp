#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <boost/graph/adjacency_list.hpp>
#include <boost/graph/push_relabel_max_flow.hpp>
#include <boost/pending/disjoint_sets.hpp>
#include <mutex>
#include <numeric>

#include "models/fabric/topology_builder.h"
#include "sim/check.h"
#include "sim/fingerprint.h"
#include "sim/integers.h"

namespace railyard {

Topology::Topology() : wiring_(std::make_shared<Wiring>()) {}

const char* level_name(int level) {
    constexpr const char* names[] = {"NIC", "leaf", "spine", "core"};
    return names[std::min(level, 3)];
}

SwitchModel read_switch(Catalogue& c, const std::string& name) {
    SwitchModel s;
    s.name = name;
    s.ports = c.integer("switch", name, "ports");
    s.port_bandwidth = c.bandwidth("switch", name, "port_bandwidth");
    s.latency = c.time("switch", name, "latency");
    s.infiniband = c.text("switch", name, "tech") == "infiniband";
    const auto can = [&](const char* key) { return c.flag("switch", name, key, false); };
    s.adaptive_routing = can("adaptive_routing");
    s.sharp = c.has("switch", name, "sharp");
    s.trims = can("trimming");
    s.link_level_retry = can("link_level_retry");
    return s;
}

double ports_taken(const SwitchModel& model, Bandwidth cable) {
    const std::int64_t own = model.port_bandwidth.bits_per_second();
    const std::int64_t rate = cable.bits_per_second();
    if (rate > own) return real(ceil_div(rate, own));
    return rate > 0 ? 1 / real(own / rate) : 0;
}

void TopologyBuilder::start(const TopologySpec& spec) {
    wiring_->spec = spec;
    wiring_->models.emplace_back();  // a NIC has none
    wiring_->level.assign(nic_count(), 0);
    wiring_->model.assign(nic_count(), 0);
    wiring_->position.resize(nic_count());
    for (std::size_t i = 0; i < nic_count(); ++i) {
        wiring_->number.push_back(static_cast<std::uint32_t>(i));
        wiring_->position[i] = static_cast<std::uint32_t>(i);
    }
}

VertexId TopologyBuilder::add_switch(int level, const SwitchModel& model) {
    auto known = std::find_if(wiring_->models.begin() + 1, wiring_->models.end(),
                              [&](const SwitchModel& m) { return m.name == model.name; });
    if (known == wiring_->models.end())
        known = wiring_->models.insert(wiring_->models.end(), model);
    if (static_cast<std::size_t>(level) >= wiring_->count.size()) {
        wiring_->count.resize(static_cast<std::size_t>(level) + 1);
    }
    wiring_->level.push_back(static_cast<std::uint8_t>(level));
    wiring_->model.push_back(static_cast<std::uint8_t>(known - wiring_->models.begin()));
    wiring_->number.push_back(wiring_->count[level]++);
    return static_cast<VertexId>(wiring_->level.size() - 1);
}

void TopologyBuilder::add_cable(VertexId low, VertexId high, Bandwidth bandwidth, Metres length) {
    const auto latency = [&](VertexId to) {
        const Picoseconds in_switch =
            wiring_->level[to] == 0 ? Picoseconds{} : switch_model(to).latency;
        return in_switch + spec().propagation(length);
    };
    const double rate = bandwidth.bytes_per_second();
    wiring_->links.push_back({low, high, rate, latency(high)});
    wiring_->links.push_back({high, low, rate, latency(low)});
    wiring_->rate.push_back(bandwidth);
    wiring_->length.push_back(length);
    const int low_level = wiring_->level[low];
    for (CableKind& kind : wiring_->cables) {
        if (kind.low_level == low_level && kind.bandwidth == bandwidth && kind.length == length) {
            ++kind.count;
            return;
        }
    }
    wiring_->cables.push_back({low_level, length, bandwidth, 1});
}

void TopologyBuilder::finish() {
    // The cables above a vertex side by side, in the order in which they came: routes look at all of them.
    std::vector<std::uint32_t> place(vertex_count() + 1);
    for (std::size_t l = 0; l < wiring_->links.size(); l += 2) ++place[wiring_->links[l].from + 1];
    std::partial_sum(place.begin(), place.end(), place.begin());
    std::vector<LinkId> order(wiring_->rate.size());
    for (LinkId cable = 0; cable < order.size(); ++cable) {
        order[place[wiring_->links[2 * std::size_t{cable}].from]++] = cable;
    }
    std::vector<Link> links;
    std::vector<Bandwidth> rates;
    std::vector<Metres> lengths;
    links.reserve(wiring_->links.size());
    rates.reserve(wiring_->rate.size());
    for (const LinkId cable : order) {
        links.push_back(wiring_->links[2 * std::size_t{cable}]);
        links.push_back(wiring_->links[2 * std::size_t{cable} + 1]);
        rates.push_back(wiring_->rate[cable]);
        lengths.push_back(wiring_->length[cable]);
    }
    wiring_->links = std::move(links);
    wiring_->rate = std::move(rates);
    wiring_->length = std::move(lengths);
    const auto index = [&](std::vector<LinkId>& all, std::vector<std::uint32_t>& first, bool up) {
        first.assign(vertex_count() + 1, 0);
        const auto counts = [&](const Link& l) {
            return (wiring_->level[l.to] > wiring_->level[l.from]) == up;
        };
        for (const Link& l : wiring_->links) {
            if (counts(l)) ++first[l.from + 1];
        }
        for (std::size_t v = 0; v < vertex_count(); ++v) first[v + 1] += first[v];
        all.resize(first.back());
        std::vector<std::uint32_t> next(first.begin(), first.end() - 1);
        for (LinkId l = 0; l < wiring_->links.size(); ++l) {
            if (counts(wiring_->links[l])) all[next[wiring_->links[l].from]++] = l;
        }
    };
    index(wiring_->up, wiring_->up_first, true);
    index(wiring_->down, wiring_->down_first, false);
}

const SwitchModel& Topology::switch_model(VertexId v) const {
    RY_CHECK(wiring_->level[v] > 0);
    return wiring_->models[wiring_->model[v]];
}

std::int64_t Topology::site_cables(VertexId v) const {
    const auto leads_away = [&](LinkId link) { return between_sites(link); };
    return std::ranges::count_if(up_links(v), leads_away) +
           std::ranges::count_if(down_links(v), leads_away);
}

std::string Topology::name(VertexId v) const {
    if (v < nic_count()) {
        const VertexId first_server = server_nic(0, 0);
        if (v < first_server) {
            return fmt::format("node-{}.nic-{}", v / wiring_->spec.nics_per_node,
                               v % wiring_->spec.nics_per_node);
        }
        return fmt::format("server-{}.nic-{}", (v - first_server) / wiring_->spec.nics_per_server,
                           (v - first_server) % wiring_->spec.nics_per_server);
    }
    if (!wiring_->given_name.empty()) return wiring_->given_name[v - nic_count()];
    return fmt::format("{}-{}", level_name(wiring_->level[v]), wiring_->number[v]);
}

std::optional<VertexId> Topology::find(const std::string& wanted) const {
    for (VertexId v = 0; v < vertex_count(); ++v) {
        if (name(v) == wanted) return v;
    }
    return std::nullopt;
}

std::optional<LinkId> cable_between(const Topology& topology, VertexId a, VertexId b) {
    std::optional<LinkId> broken;
    for (const auto& links : {topology.up_links(a), topology.down_links(a)}) {
        for (const LinkId l : links) {
            if (topology.links()[l].to != b) continue;
            if (topology.links()[l].bytes_per_s == topology.line_rate(l).bytes_per_second())
                return l;
            broken = l;
        }
    }
    return broken;
}

std::vector<double> capacities(const Topology& topology) {
    std::vector<double> out;
    out.reserve(topology.links().size());
    for (const Link& l : topology.links()) out.push_back(l.bytes_per_s);
    return out;
}

Topology::Likeness Topology::likeness() const {
    static std::mutex mutex;
    const std::lock_guard lock(mutex);
    if (wiring_->likeness) return *wiring_->likeness;
    Fingerprint shape;
    Fingerprint speed;
    for (VertexId v = 0; v < vertex_count(); ++v) {
        shape.add(std::int64_t{level(v)});
        shape.add(v < nic_count() ? std::int64_t{position(v)} : switch_model(v).sharp_trees);
    }
    for (const Link& link : links()) {
        shape.add((std::uint64_t{link.from} << 32U) | link.to);
        speed.add(link.bytes_per_s);
        speed.add(link.latency);
    }
    shape.add(nodes());
    wiring_->likeness = {shape.value(), speed.value()};
    return *wiring_->likeness;
}

void Topology::degrade(LinkId link, double factor) {
    RY_CHECK(link < links().size() && factor >= 0);
    if (wiring_.use_count() > 1) wiring_ = std::make_shared<Wiring>(*wiring_);
    std::atomic_thread_fence(std::memory_order_acquire);  // after the last look of who shared it
    wiring_->likeness.reset();
    wiring_->links[link].bytes_per_s *= factor;
    wiring_->links[reverse_link(link)].bytes_per_s *= factor;
}

std::vector<VertexId> unreachable(const Topology& topology) {
    std::vector<VertexId> part(topology.vertex_count());
    std::vector<VertexId> rank(topology.vertex_count());
    boost::disjoint_sets<VertexId*, VertexId*> parts(rank.data(), part.data());
    for (VertexId v = 0; v < topology.vertex_count(); ++v) parts.make_set(v);
    for (LinkId l = 0; l < topology.links().size(); l += 2) {
        if (topology.links()[l].bytes_per_s > 0)
            parts.union_set(topology.links()[l].from, topology.links()[l].to);
    }
    for (VertexId v = 0; v < topology.vertex_count(); ++v) part[v] = parts.find_set(v);
    // Other rails of a rail-only network are reached through a node, over NVLink: a part is cut off when
    // no node has NICs in it and in node 0's part.
    std::vector<bool> joined(topology.vertex_count(), false);
    for (bool grew = true; grew;) {
        grew = false;
        for (std::int64_t node = 0; node < topology.spec().nodes; ++node) {
            bool any = node == 0;
            for (std::int64_t i = 0; i < topology.spec().nics_per_node; ++i) {
                any = any || joined[part[topology.nic(node, i)]];
            }
            for (std::int64_t i = 0; any && i < topology.spec().nics_per_node; ++i) {
                const VertexId p = part[topology.nic(node, i)];
                grew = grew || !joined[p];
                joined[p] = true;
            }
        }
    }
    std::vector<VertexId> out;
    for (VertexId v = 0; v < topology.nic_count(); ++v) {
        const VertexId p = part[v];
        if (joined[p]) continue;
        out.push_back(v);
        joined[p] = true;
    }
    return out;
}

double bisection_bytes_per_s(const Topology& topology) {
    using Traits = boost::adjacency_list_traits<boost::vecS, boost::vecS, boost::directedS>;
    using Graph = boost::adjacency_list<
        boost::vecS, boost::vecS, boost::directedS, boost::no_property,
        boost::property<
            boost::edge_capacity_t, std::int64_t,
            boost::property<boost::edge_residual_capacity_t, std::int64_t,
                            boost::property<boost::edge_reverse_t, Traits::edge_descriptor>>>>;
    // NICs, and parallel cables, are joined into one edge each: the flow is between switches.
    const std::size_t switches = topology.vertex_count() - topology.nic_count();
    const std::size_t source = switches;
    const std::size_t sink = switches + 1;
    std::vector<std::pair<std::pair<std::size_t, std::size_t>, std::int64_t>> edges;
    for (const Link& l : topology.links()) {
        const auto rate = static_cast<std::int64_t>(l.bytes_per_s);
        if (rate == 0 || topology.level(l.to) == 0) continue;
        if (topology.level(l.from) > 0) {
            edges.push_back({{l.from - topology.nic_count(), l.to - topology.nic_count()}, rate});
        } else if (static_cast<std::int64_t>(l.from) / topology.spec().nics_per_node <
                   topology.spec().nodes / 2) {
            edges.push_back({{source, l.to - topology.nic_count()}, rate});
        } else {
            edges.push_back({{l.to - topology.nic_count(), sink}, rate});
        }
    }
    std::ranges::sort(edges);
    Graph graph(switches + 2);
    auto capacity = get(boost::edge_capacity, graph);
    auto reverse = get(boost::edge_reverse, graph);
    for (std::size_t i = 0; i < edges.size();) {
        const auto ends = edges[i].first;
        std::int64_t total = 0;
        for (; i < edges.size() && edges[i].first == ends; ++i) total += edges[i].second;
        const auto forward = add_edge(ends.first, ends.second, graph).first;
        const auto backward = add_edge(ends.second, ends.first, graph).first;
        capacity[forward] = total;
        capacity[backward] = 0;
        reverse[forward] = backward;
        reverse[backward] = forward;
    }
    return real(boost::push_relabel_max_flow(graph, source, sink));
}

}  // namespace railyard
