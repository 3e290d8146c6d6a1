#include "models/fabric/next_hops.h"

#include <algorithm>
#include <map>

#include "sim/fingerprint.h"

namespace railyard {

namespace {

constexpr std::uint8_t out_of_reach = UINT8_MAX;

bool works(const Topology& topology, LinkId l) {
    return topology.links()[l].bytes_per_s > 0;
}

}  // namespace

NextHops::NextHops(const Topology& topology, std::uint64_t seed, std::span<const LinkId> withdrawn)
    : nics_(topology.nic_count()), hops_max_(2 * static_cast<std::uint32_t>(topology.levels())) {
    blocks_ = {0, 0};  // first that of no links
    find_destinations(topology);
    fill_rows(topology, seed, withdrawn);
    for (const Link& link : topology.links()) {
        end_.push_back(link.to);
        row_.push_back(link.to < nics_ ? 0 : (link.to - nics_) * leaves_.size());
    }
}

void NextHops::find_destinations(const Topology& topology) {
    std::map<std::vector<VertexId>, std::uint32_t> known;
    for (VertexId nic = 0; nic < nics_; ++nic) {
        to_nic_first_.push_back(static_cast<std::uint32_t>(to_nic_.size()));
        std::vector<VertexId> leaves;
        for (const LinkId up : topology.up_links(nic)) {
            if (!works(topology, reverse_link(up))) continue;
            to_nic_.push_back(reverse_link(up));
            leaves.push_back(topology.links()[up].to);
        }
        std::ranges::sort(leaves);
        leaves.erase(std::unique(leaves.begin(), leaves.end()), leaves.end());
        const auto [place, added] =
            known.try_emplace(leaves, static_cast<std::uint32_t>(leaves_.size()));
        if (added) leaves_.push_back(leaves);
        destination_.push_back(place->second);
    }
    to_nic_first_.push_back(static_cast<std::uint32_t>(to_nic_.size()));
}

// For each switch: how many levels a shortest way to the destination still goes up.
std::vector<std::uint8_t> NextHops::heights_to(const Topology& topology,
                                               std::uint32_t destination) const {
    std::vector<std::uint8_t> height(topology.vertex_count() - nics_, out_of_reach);
    for (const VertexId leaf : leaves_[destination]) height[leaf - nics_] = 0;
    const auto each = [&](int level, const auto& visit) {
        for (auto v = static_cast<VertexId>(nics_); v < topology.vertex_count(); ++v) {
            if (topology.level(v) == level) visit(v);
        }
    };
    for (int level = 2; level <= topology.levels(); ++level) {
        each(level, [&](VertexId v) {
            for (const LinkId l : topology.down_links(v)) {
                if (works(topology, l) && height[topology.links()[l].to - nics_] == 0) {
                    height[v - nics_] = 0;
                }
            }
        });
    }
    for (int level = topology.levels() - 1; level >= 1; --level) {
        each(level, [&](VertexId v) {
            if (height[v - nics_] == 0) return;
            for (const LinkId l : topology.up_links(v)) {
                const std::uint8_t above = height[topology.links()[l].to - nics_];
                if (!works(topology, l) || above == out_of_reach) continue;
                height[v - nics_] =
                    std::min(height[v - nics_], static_cast<std::uint8_t>(above + 1));
            }
        });
    }
    return height;
}

void NextHops::fill_rows(const Topology& topology, std::uint64_t seed,
                         std::span<const LinkId> withdrawn) {
    std::vector<std::uint8_t> is_withdrawn(topology.links().size());
    for (const LinkId l : withdrawn) is_withdrawn[l] = is_withdrawn[reverse_link(l)] = 1;
    const std::size_t switches = topology.vertex_count() - nics_;
    table_.resize(switches * leaves_.size());
    std::vector<std::vector<std::uint32_t>> known(switches);
    std::vector<LinkId> links;
    for (std::uint32_t d = 0; d < leaves_.size(); ++d) {
        const std::vector<std::uint8_t> height = heights_to(topology, d);
        for (std::size_t s = 0; s < switches; ++s) {
            const auto v = static_cast<VertexId>(nics_ + s);
            Entry& entry = table_[s * leaves_.size() + d];
            if (std::binary_search(leaves_[d].begin(), leaves_[d].end(), v)) {
                entry.block = last_hop;
                continue;
            }
            if (height[s] == out_of_reach) continue;
            links.clear();
            const bool down = height[s] == 0;
            for (const LinkId l : down ? topology.down_links(v) : topology.up_links(v)) {
                const VertexId to = topology.links()[l].to;
                if (!works(topology, l) || to < nics_) continue;
                if (height[to - nics_] == (down ? 0 : height[s] - 1)) links.push_back(l);
            }
            const auto kept = std::stable_partition(links.begin(), links.end(),
                                                    [&](LinkId l) { return is_withdrawn[l] == 0; });
            if (kept != links.begin()) links.erase(kept, links.end());
            entry.block = block_of(links, known[s]);
            // Switches that all began with the same output would meet at the same next one.
            entry.turn = static_cast<std::uint32_t>(
                mix_bits(mix_bits(seed + 1) ^ (static_cast<std::uint64_t>(v) << 32) ^ d) %
                links.size());
        }
    }
}

// Where the links stand in blocks_. `known`: of those of this switch, the last one found at the end.
std::uint32_t NextHops::block_of(const std::vector<LinkId>& links,
                                 std::vector<std::uint32_t>& known) {
    for (std::size_t i = known.size(); i-- > 0;) {
        const std::uint32_t* block = &blocks_[known[i]];
        if (!std::equal(links.begin(), links.end(), block + 1, block + 1 + *block)) continue;
        std::swap(known[i], known.back());
        return known.back();
    }
    known.push_back(static_cast<std::uint32_t>(blocks_.size()));
    blocks_.push_back(static_cast<std::uint32_t>(links.size()));
    blocks_.insert(blocks_.end(), links.begin(), links.end());
    return known.back();
}

// From the leaf at the end of `in`. Of cables side by side to one NIC the first.
std::span<const LinkId> NextHops::links_to(LinkId in, VertexId to) const {
    for (std::uint32_t i = to_nic_first_[to]; i < to_nic_first_[to + 1]; ++i) {
        // The reverse of a link to the NIC ends at the leaf that it comes from.
        if (end_[reverse_link(to_nic_[i])] == end_[in]) return {&to_nic_[i], 1};
    }
    return {};
}

}  // namespace railyard
