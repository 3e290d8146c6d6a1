#include "models/fabric/routing.h"

#include <algorithm>
#include <array>

namespace railyard {

namespace {

// splitmix64's finaliser: what stands for a switch's hash function.
std::uint64_t mix(std::uint64_t z) {
    z += 0x9e3779b97f4a7c15ULL;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ULL;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebULL;
    return z ^ (z >> 31);
}

}  // namespace

void merge_usages(std::vector<Usage>& usages, std::size_t first) {
    std::sort(usages.begin() + static_cast<std::ptrdiff_t>(first), usages.end(),
              [](const Usage& a, const Usage& b) { return a.link < b.link; });
    std::size_t kept = first;
    for (std::size_t i = first; i < usages.size(); ++i) {
        if (kept > first && usages[kept - 1].link == usages[i].link) {
            usages[kept - 1].share += usages[i].share;
        } else {
            usages[kept++] = usages[i];
        }
    }
    usages.resize(kept);
}

const std::vector<std::string>& routing_names() {
    static const std::vector<std::string> names = {"destination", "ecmp", "adaptive", "spray"};
    return names;
}

Router::Router(const Topology& topology, RoutingSpec spec)
    : topology_(topology),
      spec_(spec),
      down_stamp_(topology.vertex_count()),
      up_stamp_(topology.vertex_count()),
      down_hops_(topology.vertex_count()),
      up_hops_(topology.vertex_count()) {
    if (spec_.policy == Routing::adaptive) load_.resize(topology.links().size());
}

void Router::forget_loads() {
    std::fill(load_.begin(), load_.end(), 0.0);
    target_ = UINT32_MAX;
}

void Router::aim_at(VertexId to) {
    if (to == target_) return;
    target_ = to;
    ++stamp_;
    frontier_.assign(1, to);
    down_stamp_[to] = stamp_;
    down_hops_[to] = 0;
    for (std::size_t i = 0; i < frontier_.size(); ++i) {
        const VertexId v = frontier_[i];
        for (const LinkId l : topology_.up_links(v)) {
            const VertexId above = topology_.links()[l].to;
            if (topology_.links()[reverse_link(l)].bytes_per_s <= 0 ||
                down_stamp_[above] == stamp_) {
                continue;
            }
            down_stamp_[above] = stamp_;
            down_hops_[above] = static_cast<std::uint8_t>(down_hops_[v] + 1);
            frontier_.push_back(above);
        }
    }
}

std::uint8_t Router::hops_up_from(VertexId v) {
    if (down_stamp_[v] == stamp_) return down_hops_[v];
    if (up_stamp_[v] == stamp_) return up_hops_[v];
    std::uint8_t least = never;
    // An ancestor of the target just above is nearest; only without one is it worth looking further up.
    for (const LinkId l : topology_.up_links(v)) {
        const Link& link = topology_.links()[l];
        if (link.bytes_per_s > 0 && down_stamp_[link.to] == stamp_) {
            least = std::min(least, static_cast<std::uint8_t>(down_hops_[link.to] + 1));
        }
    }
    if (least == never) {
        for (const LinkId l : topology_.up_links(v)) {
            const Link& link = topology_.links()[l];
            if (link.bytes_per_s <= 0) continue;
            const std::uint8_t above = hops_up_from(link.to);
            if (above != never) least = std::min(least, static_cast<std::uint8_t>(above + 1));
        }
    }
    up_stamp_[v] = stamp_;
    up_hops_[v] = least;
    return least;
}

void Router::find_candidates(VertexId v) {
    candidates_.clear();
    const bool down = down_stamp_[v] == stamp_;
    const std::uint8_t here = hops_up_from(v);
    for (const LinkId l : down ? topology_.down_links(v) : topology_.up_links(v)) {
        const Link& link = topology_.links()[l];
        if (link.bytes_per_s <= 0) continue;
        if (down ? down_stamp_[link.to] == stamp_ && down_hops_[link.to] + 1 == here
                 : hops_up_from(link.to) + 1 == here) {
            candidates_.push_back(l);
        }
    }
}

// Digit by digit: the NIC's position in mixed radix, a digit per tier, names the cable above each tier on its
// way down, and every switch on the way up takes the cable of the same number.
LinkId Router::choose_by_destination(VertexId v) {
    const std::uint32_t position = topology_.position(target_);
    const auto count = static_cast<std::uint32_t>(candidates_.size());
    const auto level = static_cast<std::size_t>(topology_.level(v));
    if (down_stamp_[v] != stamp_) {
        stride_[level + 1] = stride_[level] * count;
        return candidates_[position / stride_[level] % count];
    }
    for (const LinkId l : candidates_) {
        const auto above = topology_.up_links(topology_.links()[l].to);
        const std::uint32_t digit = position / std::max(1U, stride_[level - 1]);
        if (above[digit % above.size()] == reverse_link(l)) return l;
    }
    return candidates_[position % count];
}

LinkId Router::choose(VertexId v, std::uint64_t hash) const {
    const auto count = static_cast<std::uint32_t>(candidates_.size());
    const std::uint64_t here = mix(hash ^ (static_cast<std::uint64_t>(v) << 32) ^ spec_.hash_seed);
    if (spec_.policy == Routing::ecmp) return candidates_[here % count];
    // Adaptive: the least loaded for its rate; of equals the hash decides.
    std::uint32_t best = 0;
    double best_load = 0;
    for (std::uint32_t i = 0; i < count; ++i) {
        const auto turn = static_cast<std::uint32_t>((here + i) % count);
        const double load =
            load_[candidates_[turn]] / topology_.links()[candidates_[turn]].bytes_per_s;
        if (i == 0 || load < best_load) {
            best = turn;
            best_load = load;
        }
    }
    return candidates_[best];
}

bool Router::walk(VertexId from, std::uint64_t hash, float share, std::vector<Usage>& usages) {
    stride_.fill(0);
    stride_[0] = 1;
    for (VertexId v = from; v != target_;) {
        find_candidates(v);
        if (candidates_.empty()) return false;
        const LinkId l =
            spec_.policy == Routing::destination ? choose_by_destination(v) : choose(v, hash);
        usages.push_back({l, share});
        if (!load_.empty()) load_[l] += share;
        v = topology_.links()[l].to;
    }
    return true;
}

void Router::spray(VertexId v, float share, std::vector<Usage>& usages) {
    if (v == target_) return;
    find_candidates(v);
    const std::vector<LinkId> out = candidates_;
    for (const LinkId l : out) {
        const float part = share / static_cast<float>(out.size());
        usages.push_back({l, part});
        spray(topology_.links()[l].to, part, usages);
    }
}

bool Router::route(VertexId from, VertexId to, std::uint64_t label, std::vector<Usage>& usages) {
    if (from == to) return true;
    aim_at(to);
    if (hops_up_from(from) == never) return false;
    const std::size_t first = usages.size();
    if (spec_.policy == Routing::spray) {
        spray(from, 1, usages);
    } else {
        const float share = 1 / static_cast<float>(spec_.queue_pairs);
        const std::uint64_t connection =
            mix(mix((static_cast<std::uint64_t>(from) << 32) | to) ^ label);
        for (std::int64_t q = 0; q < spec_.queue_pairs; ++q) {
            walk(from, mix(connection + static_cast<std::uint64_t>(q)), share, usages);
        }
        if (spec_.queue_pairs == 1) return true;
    }
    merge_usages(usages, first);
    return true;
}

Picoseconds Router::latency(std::span<const Usage> usages) const {
    // Paths of a connection have the same number of hops up and down; of each level's links the slowest.
    std::array<Picoseconds, 8> slowest{};
    for (const Usage& u : usages) {
        const Link& link = topology_.links()[u.link];
        const int below = std::min(topology_.level(link.from), topology_.level(link.to));
        const bool up = topology_.level(link.to) > topology_.level(link.from);
        auto& slot = slowest[static_cast<std::size_t>(2 * std::min(below, 3) + (up ? 1 : 0))];
        slot = std::max(slot, link.latency);
    }
    Picoseconds sum{};
    for (const Picoseconds p : slowest) sum += p;
    return sum;
}

}  // namespace railyard
