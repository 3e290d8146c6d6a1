#include "models/scheduler/kueue_topology.h"

#include <algorithm>
#include <map>

namespace railyard {

namespace {

using Nodes = std::vector<NodeIndex>;

class TopologyPlacement {
  public:
    TopologyPlacement(const WorldCluster& cluster, const FreeGpus& free, const PodRequest& pods)
        : cluster_(cluster), free_(free), pods_(pods) {
        const NodeSet& members = cluster.members(pods.pool);
        for (NodeIndex n = 0; n < free.size(); ++n) {
            const bool flavored = pods.flavor == any_flavor || cluster.node(n).group == pods.flavor;
            if (members.has(n) && flavored) nodes_.push_back(n);
        }
    }

    std::optional<Allocation> required(TopologyLevel level) {
        return best_fit(pods_, split(nodes_, level), level);
    }
    std::optional<Allocation> preferred(TopologyLevel level) {
        if (auto one = required(level)) return one;
        return fill(pods_, split(nodes_, TopologyLevel::block), TopologyLevel::block);
    }
    std::optional<Allocation> anywhere() { return within(pods_, nodes_); }

  private:
    std::vector<Nodes> split(const Nodes& nodes, TopologyLevel level) const {
        std::map<std::uint32_t, Nodes> domains;
        for (const NodeIndex n : nodes) {
            const NodePlace& place = cluster_.node(n).place;
            domains[level == TopologyLevel::leaf ? place.leaf : place.block].push_back(n);
        }
        std::vector<Nodes> out;
        for (auto& [id, members] : domains) out.push_back(std::move(members));
        return out;
    }
    std::int64_t free_in(const Nodes& nodes) const {
        std::int64_t sum = 0;
        for (const NodeIndex n : nodes) sum += free_[n];
        return sum;
    }
    std::int64_t pods_in(const Nodes& nodes) const {
        std::int64_t sum = 0;
        for (const NodeIndex n : nodes) sum += free_[n] / pods_.size;
        return sum;
    }
    std::optional<Allocation> within(const PodRequest& pods, const Nodes& nodes) const {
        NodeSet allowed(free_.size());
        for (const NodeIndex n : nodes) allowed.add(n);
        return place_pods(cluster_, pods, free_, allowed, PodScoring::most_allocated);
    }
    std::optional<Allocation> in_domain(const PodRequest& pods, const Nodes& nodes,
                                        TopologyLevel level) {
        if (level == TopologyLevel::leaf) return within(pods, nodes);
        return fill(pods, split(nodes, TopologyLevel::leaf), TopologyLevel::leaf);
    }
    std::optional<Allocation> best_fit(const PodRequest& pods, std::vector<Nodes> domains,
                                       TopologyLevel level);
    std::optional<Allocation> fill(PodRequest pods, std::vector<Nodes> domains,
                                   TopologyLevel level);

    const WorldCluster& cluster_;
    FreeGpus free_;
    PodRequest pods_;
    Nodes nodes_;
};

// All of it in the domain with the fewest free GPUs that holds it.
std::optional<Allocation> TopologyPlacement::best_fit(const PodRequest& pods,
                                                      std::vector<Nodes> domains,
                                                      TopologyLevel level) {
    std::ranges::stable_sort(
        domains, [this](const Nodes& a, const Nodes& b) { return free_in(a) < free_in(b); });
    for (const Nodes& nodes : domains) {
        if (free_in(nodes) < pods.gpus() || !within(pods, nodes)) continue;
        if (auto found = in_domain(pods, nodes, level)) return found;
    }
    return std::nullopt;
}

// As long as no domain holds what is left, the one that holds most takes all it can.
std::optional<Allocation> TopologyPlacement::fill(PodRequest pods, std::vector<Nodes> domains,
                                                  TopologyLevel level) {
    Allocation out;
    const FreeGpus before = free_;
    const auto add = [&](const Allocation& more) {
        for (const NodeShare& share : more) {
            free_[share.node] -= share.gpus;
            out.push_back(share);
        }
    };
    while (true) {
        if (const auto last = best_fit(pods, domains, level)) {
            add(*last);
            break;
        }
        const auto largest = std::ranges::max_element(
            domains, [this](const Nodes& a, const Nodes& b) { return pods_in(a) < pods_in(b); });
        PodRequest part = pods;
        part.rest = 0;
        if (largest != domains.end()) part.pods = std::min(pods.pods, pods_in(*largest));
        const bool some = largest != domains.end() && part.pods > 0;
        const auto found = some ? in_domain(part, *largest, level) : std::nullopt;
        if (!found) {
            out.clear();
            break;
        }
        add(*found);
        pods.pods -= part.pods;
        domains.erase(largest);
    }
    free_ = before;
    if (out.empty()) return std::nullopt;
    return out;
}

}  // namespace

std::optional<Allocation> place_in_topology(const WorldCluster& cluster, const PodRequest& pods,
                                            const FreeGpus& free, const KubeJobKind& kind) {
    TopologyPlacement placement(cluster, free, pods);
    switch (kind.topology) {
        case TopologyRequest::required:
            return placement.required(kind.topology_level);
        case TopologyRequest::preferred:
            return placement.preferred(kind.topology_level);
        case TopologyRequest::none:
        case TopologyRequest::unconstrained:
            break;
    }
    return placement.anywhere();
}

std::optional<Allocation> replace_in_topology(const WorldCluster& cluster, const PodRequest& pods,
                                              const FreeGpus& free, const KubeJobKind& kind,
                                              const Allocation& rest) {
    FreeGpus near = free;
    if (!rest.empty() && kind.topology != TopologyRequest::unconstrained) {
        const bool leaf = kind.topology_level == TopologyLevel::leaf;
        const NodePlace& home = cluster.node(rest.front().node).place;
        for (NodeIndex n = 0; n < near.size(); ++n) {
            const NodePlace& place = cluster.node(n).place;
            if (leaf ? place.leaf != home.leaf : place.block != home.block) near[n] = 0;
        }
    }
    KubeJobKind anywhere = kind;
    anywhere.topology = TopologyRequest::unconstrained;
    auto found = place_in_topology(cluster, pods, near, anywhere);
    if (!found && kind.topology != TopologyRequest::required) {
        found = place_in_topology(cluster, pods, free, anywhere);
    }
    return found;
}

}  // namespace railyard
