#include "models/fabric/topology.h"

#include <fmt/format.h>

#include <algorithm>
#include <boost/graph/adjacency_list.hpp>
#include <boost/graph/push_relabel_max_flow.hpp>
#include <boost/pending/disjoint_sets.hpp>
#include <numeric>

#include "sim/check.h"

namespace railyard {

Topology::Topology() = default;
Topology::Topology(const Topology&) = default;
Topology::Topology(Topology&&) noexcept = default;
Topology& Topology::operator=(const Topology&) = default;
Topology& Topology::operator=(Topology&&) noexcept = default;
Topology::~Topology() = default;

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
    const auto can = [&](const char* key) {
        return c.has("switch", name, key) && c.flag("switch", name, key);
    };
    s.adaptive_routing = can("adaptive_routing");
    s.sharp = c.has("switch", name, "sharp");
    s.trims = can("trimming");
    s.link_level_retry = can("link_level_retry");
    return s;
}

void Topology::start(const TopologySpec& spec) {
    kind_ = spec.kind;
    endpoint_optics_ = spec.endpoint_optics;
    switch_optics_ = spec.switch_optics;
    propagation_s_per_m_ = spec.propagation_s_per_m;
    sites_ = spec.sites;
    site_distance_ = spec.site_distance;
    switch_cable_ = spec.switch_cable;
    site_pauses_ = spec.site_lossless;
    nodes_ = spec.nodes;
    nics_per_node_ = spec.nics_per_node;
    servers_ = spec.servers;
    nics_per_server_ = spec.nics_per_server;
    models_.emplace_back();  // a NIC has none
    level_.assign(nic_count(), 0);
    model_.assign(nic_count(), 0);
    position_.resize(nic_count());
    for (std::size_t i = 0; i < nic_count(); ++i) {
        number_.push_back(static_cast<std::uint32_t>(i));
        position_[i] = static_cast<std::uint32_t>(i);
    }
}

VertexId Topology::add_switch(int level, const SwitchModel& model) {
    auto known = std::find_if(models_.begin() + 1, models_.end(),
                              [&](const SwitchModel& m) { return m.name == model.name; });
    if (known == models_.end()) known = models_.insert(models_.end(), model);
    if (static_cast<std::size_t>(level) >= count_.size()) {
        count_.resize(static_cast<std::size_t>(level) + 1);
    }
    level_.push_back(static_cast<std::uint8_t>(level));
    model_.push_back(static_cast<std::uint8_t>(known - models_.begin()));
    number_.push_back(count_[static_cast<std::size_t>(level)]++);
    return static_cast<VertexId>(level_.size() - 1);
}

void Topology::add_cable(VertexId low, VertexId high, Bandwidth bandwidth, Metres length) {
    const auto latency = [&](VertexId to) {
        const Picoseconds in_switch = level_[to] == 0 ? Picoseconds{} : switch_model(to).latency;
        return in_switch + propagation(length);
    };
    const double rate = bandwidth.bytes_per_second();
    links_.push_back({low, high, rate, latency(high)});
    links_.push_back({high, low, rate, latency(low)});
    rate_.push_back(bandwidth);
    length_.push_back(length);
    const int low_level = level_[low];
    for (CableKind& kind : cables_) {
        if (kind.low_level == low_level && kind.bandwidth == bandwidth && kind.length == length) {
            ++kind.count;
            return;
        }
    }
    cables_.push_back({low_level, length, bandwidth, 1});
}

void Topology::finish() {
    // The cables above a vertex side by side: routes look at all of them.
    std::vector<LinkId> order(rate_.size());
    std::iota(order.begin(), order.end(), 0);
    std::stable_sort(order.begin(), order.end(), [&](LinkId a, LinkId b) {
        return links_[2 * std::size_t{a}].from < links_[2 * std::size_t{b}].from;
    });
    std::vector<Link> links;
    std::vector<Bandwidth> rates;
    std::vector<Metres> lengths;
    links.reserve(links_.size());
    rates.reserve(rate_.size());
    for (const LinkId cable : order) {
        links.push_back(links_[2 * std::size_t{cable}]);
        links.push_back(links_[2 * std::size_t{cable} + 1]);
        rates.push_back(rate_[cable]);
        lengths.push_back(length_[cable]);
    }
    links_ = std::move(links);
    rate_ = std::move(rates);
    length_ = std::move(lengths);
    const auto index = [&](std::vector<LinkId>& all, std::vector<std::uint32_t>& first, bool up) {
        first.assign(vertex_count() + 1, 0);
        const auto counts = [&](const Link& l) { return (level_[l.to] > level_[l.from]) == up; };
        for (const Link& l : links_) {
            if (counts(l)) ++first[l.from + 1];
        }
        for (std::size_t v = 0; v < vertex_count(); ++v) first[v + 1] += first[v];
        all.resize(first.back());
        std::vector<std::uint32_t> next(first.begin(), first.end() - 1);
        for (LinkId l = 0; l < links_.size(); ++l) {
            if (counts(links_[l])) all[next[links_[l].from]++] = l;
        }
    };
    index(up_, up_first_, true);
    index(down_, down_first_, false);
}

const SwitchModel& Topology::switch_model(VertexId v) const {
    RY_CHECK(level_[v] > 0);
    return models_[model_[v]];
}

std::string Topology::name(VertexId v) const {
    if (v < nic_count()) {
        const VertexId first_server = server_nic(0, 0);
        if (v < first_server) {
            return fmt::format("node-{}.nic-{}", v / nics_per_node_, v % nics_per_node_);
        }
        return fmt::format("server-{}.nic-{}", (v - first_server) / nics_per_server_,
                           (v - first_server) % nics_per_server_);
    }
    if (!given_name_.empty()) return given_name_[v - nic_count()];
    return fmt::format("{}-{}", level_name(level_[v]), number_[v]);
}

std::vector<std::string> Topology::vertex_names() const {
    std::vector<std::string> names;
    for (VertexId v = 0; v < vertex_count(); ++v) names.push_back(name(v));
    return names;
}

std::optional<VertexId> Topology::find(const std::string& wanted) const {
    for (VertexId v = 0; v < vertex_count(); ++v) {
        if (name(v) == wanted) return v;
    }
    return std::nullopt;
}

std::optional<LinkId> Topology::cable_between(VertexId a, VertexId b) const {
    std::optional<LinkId> broken;
    for (const auto& links : {up_links(a), down_links(a)}) {
        for (const LinkId l : links) {
            if (links_[l].to != b) continue;
            if (links_[l].bytes_per_s == line_rate(l).bytes_per_second()) return l;
            broken = l;
        }
    }
    return broken;
}

std::vector<double> Topology::capacities() const {
    std::vector<double> out;
    out.reserve(links_.size());
    for (const Link& l : links_) out.push_back(l.bytes_per_s);
    return out;
}

void Topology::degrade(LinkId link, double factor) {
    links_[link].bytes_per_s *= factor;
    links_[reverse_link(link)].bytes_per_s *= factor;
}

std::vector<VertexId> Topology::unreachable() const {
    std::vector<VertexId> part(vertex_count());
    std::vector<VertexId> rank(vertex_count());
    boost::disjoint_sets<VertexId*, VertexId*> parts(rank.data(), part.data());
    for (VertexId v = 0; v < vertex_count(); ++v) parts.make_set(v);
    for (LinkId l = 0; l < links_.size(); l += 2) {
        if (links_[l].bytes_per_s > 0) parts.union_set(links_[l].from, links_[l].to);
    }
    for (VertexId v = 0; v < vertex_count(); ++v) part[v] = parts.find_set(v);
    // Other rails of a rail-only network are reached through a node, over NVLink: a part is cut off when
    // no node has NICs in it and in node 0's part.
    std::vector<bool> joined(vertex_count(), false);
    for (bool grew = true; grew;) {
        grew = false;
        for (std::int64_t node = 0; node < nodes_; ++node) {
            bool any = node == 0;
            for (std::int64_t i = 0; i < nics_per_node_; ++i) {
                any = any || joined[part[nic(node, i)]];
            }
            for (std::int64_t i = 0; any && i < nics_per_node_; ++i) {
                const VertexId p = part[nic(node, i)];
                grew = grew || !joined[p];
                joined[p] = true;
            }
        }
    }
    std::vector<VertexId> out;
    for (VertexId v = 0; v < nic_count(); ++v) {
        const VertexId p = part[v];
        if (joined[p]) continue;
        out.push_back(v);
        joined[p] = true;
    }
    return out;
}

double Topology::bisection_bytes_per_s() const {
    using Traits = boost::adjacency_list_traits<boost::vecS, boost::vecS, boost::directedS>;
    using Graph = boost::adjacency_list<
        boost::vecS, boost::vecS, boost::directedS, boost::no_property,
        boost::property<
            boost::edge_capacity_t, std::int64_t,
            boost::property<boost::edge_residual_capacity_t, std::int64_t,
                            boost::property<boost::edge_reverse_t, Traits::edge_descriptor>>>>;
    // NICs, and parallel cables, are joined into one edge each: the flow is between switches.
    const std::size_t switches = vertex_count() - nic_count();
    const std::size_t source = switches;
    const std::size_t sink = switches + 1;
    std::vector<std::pair<std::pair<std::size_t, std::size_t>, std::int64_t>> edges;
    for (const Link& l : links_) {
        const auto rate = static_cast<std::int64_t>(l.bytes_per_s);
        if (rate == 0 || level_[l.to] == 0) continue;
        if (level_[l.from] > 0) {
            edges.push_back({{l.from - nic_count(), l.to - nic_count()}, rate});
        } else if (static_cast<std::int64_t>(l.from) / nics_per_node_ < nodes_ / 2) {
            edges.push_back({{source, l.to - nic_count()}, rate});
        } else {
            edges.push_back({{l.to - nic_count(), sink}, rate});
        }
    }
    std::sort(edges.begin(), edges.end());
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
    return static_cast<double>(boost::push_relabel_max_flow(graph, source, sink));
}

}  // namespace railyard
