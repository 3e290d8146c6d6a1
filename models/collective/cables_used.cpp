#include "models/collective/cables_used.h"

#include <algorithm>

namespace railyard {

CablesUsed::CablesUsed(const Topology& topology, Routing policy)
    : topology_(topology),
      sprayed_(policy == Routing::adaptive || policy == Routing::spray ||
               policy == Routing::random_spray || policy == Routing::entropy),
      used_(topology.links().size() / 2) {}

void CablesUsed::add(VertexId from, VertexId to, std::span<const Usage> route) {
    add(route);
    if (!sprayed_) return;
    int height = 0;
    for (const Usage& usage : route) {
        const Link& link = topology_.links()[usage.link];
        height = std::max({height, topology_.level(link.from), topology_.level(link.to)});
    }
    for (const VertexId nic : {from, to}) {
        int& highest = height_[nic];
        highest = std::max(highest, height);
    }
}

void CablesUsed::add(std::span<const Usage> links) {
    for (const Usage& usage : links) used_[usage.link / 2] = true;
}

void CablesUsed::add(const std::vector<bool>& cables) {
    for (std::size_t i = 0; i < cables.size(); ++i) used_[i] = used_[i] || cables[i];
}

std::vector<bool> CablesUsed::take() const {
    std::vector<bool> out = used_;
    std::map<VertexId, int> seen;  // how high the ways from there went
    std::vector<std::pair<VertexId, int>> open(height_.begin(), height_.end());
    while (!open.empty()) {
        const auto [at, height] = open.back();
        open.pop_back();
        int& known = seen[at];
        if (topology_.level(at) >= height || known >= height) continue;
        known = height;
        for (const LinkId up : topology_.up_links(at)) {
            out[up / 2] = true;
            open.emplace_back(topology_.links()[up].to, height);
        }
    }
    return out;
}

}  // namespace railyard
