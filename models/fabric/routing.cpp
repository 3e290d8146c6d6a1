#include "models/fabric/routing.h"

#include <algorithm>
#include <limits>
#include <map>

#include "sim/fingerprint.h"

namespace railyard {

namespace {

// What stands for a switch's hash function.
std::uint64_t mix(std::uint64_t z) {
    return mix_bits(z + 0x9e3779b97f4a7c15ULL);
}

// How many switches these cables lead to; those to one are next to each other.
std::size_t ends_of(const Topology& topology, std::span<const LinkId> links) {
    std::size_t ends = 1;
    for (std::size_t i = 1; i < links.size(); ++i) {
        ends += topology.links()[links[i]].to != topology.links()[links[i - 1]].to;
    }
    return ends;
}

}  // namespace

void merge_usages(std::vector<Usage>& usages, std::size_t first) {
    std::sort(usages.begin() + first, usages.end(),
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

const std::vector<std::string> routing_names = {"destination",  "ecmp",    "adaptive", "spray",
                                                "random_spray", "flowlet", "entropy"};

Router::Router(const Topology& topology, RoutingSpec spec)
    : topology_(topology), spec_(spec), paths_(topology) {
    if (spec_.policy == Routing::random_spray || spec_.policy == Routing::entropy) {
        spec_.policy = Routing::spray;
    }
    const bool adaptive = spec_.policy == Routing::adaptive;
    if (adaptive || spec_.policy == Routing::spray) way_of_.resize(topology.vertex_count(), no_way);
    // Where all ways are alike, packets that choose load all of them alike, and there is nothing to remember.
    if (spec_.policy == Routing::flowlet || (adaptive && !paths_.all_alike())) {
        load_.resize(topology.links().size());
    }
}

void Router::let_one_stand_for_all() {
    if (spec_.policy == Routing::spray && paths_.all_alike()) spec_.policy = Routing::adaptive;
}

void Router::forget_loads() {
    std::fill(load_.begin(), load_.end(), 0.0);
}

// Digit by digit: the NIC's position in mixed radix, a digit per tier, names the cable above each tier on its
// way down, and every switch on the way up takes the cable of the same number.
LinkId Router::choose_by_destination(VertexId v, int height) {
    const std::uint32_t position = topology_.position(paths_.target());
    const auto count = static_cast<std::uint32_t>(candidates_.size());
    const auto level = static_cast<std::size_t>(topology_.level(v));
    if (height >= 0) {
        stride_[level + 1] = stride_[level] * count;
        return candidates_[position / stride_[level] % count];
    }
    // Which of the cables above a vertex its digit names.
    const auto cable_above = [&](VertexId below, std::size_t its_level) {
        const auto above = topology_.up_links(below);
        return above[position / std::max(1U, stride_[its_level]) % above.size()];
    };
    // A core switch may join several spines of a pod: then the one that the target's leaf names.
    const auto ports = topology_.up_links(paths_.target());
    const auto is_named = [&](VertexId spine) {
        return std::ranges::any_of(ports, [&](LinkId port) {
            const VertexId leaf = topology_.links()[port].to;
            if (topology_.up_links(leaf).empty()) return false;
            return topology_.links()[cable_above(leaf, 1)].to == spine;
        });
    };
    LinkId chosen = candidates_[position % count];
    for (const LinkId l : candidates_) {
        const VertexId below = topology_.links()[l].to;
        if (cable_above(below, level - 1) != reverse_link(l)) continue;
        chosen = l;
        if (level < 3 || is_named(below)) break;
    }
    return chosen;
}

LinkId Router::choose(VertexId v, std::uint64_t queue_pair, float share) const {
    const auto count = static_cast<std::uint32_t>(candidates_.size());
    if (count == 1) return candidates_[0];
    const std::uint64_t own = spec_.hash_polarized ? 0 : static_cast<std::uint64_t>(v) << 32;
    const std::uint64_t here = mix(mix(queue_pair) ^ own ^ spec_.hash_seed);
    if (spec_.policy != Routing::flowlet) return candidates_[here % count];
    // The one that is least loaded for its rate with this one on it; of equals the hash decides.
    std::uint32_t best = 0;
    double best_load = 0;
    for (std::uint32_t i = 0; i < count; ++i) {
        const auto turn = static_cast<std::uint32_t>((here + i) % count);
        const LinkId l = candidates_[turn];
        const double load = (load_[l] + double{share}) / topology_.links()[l].bytes_per_s;
        if (i == 0 || load < best_load) {
            best = turn;
            best_load = load;
        }
    }
    return candidates_[best];
}

void Router::walk(VertexId from, int height, std::uint64_t queue_pair, float share,
                  std::vector<Usage>& usages) {
    stride_.fill(0);
    stride_[0] = stride_[1] = 1;
    for (VertexId v = from; v != paths_.target(); --height) {
        candidates_ = paths_.next_links(v, height);
        LinkId l = 0;
        if (v < topology_.nic_count() && spec_.policy != Routing::flowlet) {
            l = candidates_[queue_pair %
                            candidates_.size()];  // a NIC binds queue pairs to its ports in turn
        } else if (spec_.policy == Routing::destination) {
            l = choose_by_destination(v, height);
        } else {
            l = choose(v, queue_pair, share);
        }
        usages.push_back({l, share});
        if (!load_.empty()) load_[l] += double{share};
        v = topology_.links()[l].to;
    }
}

// Each link once, sorted: they come in a few runs that are.
void Router::spray(VertexId from, int height, float share, std::vector<Usage>& usages) {
    ways_.clear();
    outputs_.clear();
    ways_.push_back({from, 0, 0, double{share}, 0});
    find_ways(height);
    const auto begin = std::ssize(usages);
    for (const Way& way : ways_) {
        // A NIC sends by the port that is free: by their rates. A switch has all equal outputs in turn.
        const bool of_nic = way.at < topology_.nic_count();
        const auto weight = [&](std::uint32_t o) {
            return of_nic ? topology_.links()[outputs_[o]].bytes_per_s : 1.0;
        };
        double all = 0;
        for (std::uint32_t o = way.first; o < way.end; ++o) all += weight(o);
        for (std::uint32_t o = way.first; o < way.end; ++o) {
            const double part = way.share * (weight(o) / all);
            usages.push_back({outputs_[o], static_cast<float>(part)});
            ways_[way_of_[topology_.links()[outputs_[o]].to]].share += part;
        }
        way_of_[way.at] = no_way;
    }
    const auto by_link = [](const Usage& a, const Usage& b) { return a.link < b.link; };
    const auto first = usages.begin() + begin;
    for (auto sorted = std::is_sorted_until(first, usages.end(), by_link);
         sorted != usages.end();) {
        const auto next = std::is_sorted_until(sorted, usages.end(), by_link);
        std::inplace_merge(first, sorted, next, by_link);
        sorted = next;
    }
}

// Packets that choose at each switch: over all shortest ways at once. Where these are alike, one cable of
// each hop stands for all that carry as much, the same one for all connections that share them; of a NIC's
// ports each for itself. What a cable carries on the way down is counted from the target up.
void Router::spread(VertexId from, int height, std::vector<Usage>& usages) {
    if (load_.empty()) {
        candidates_ = paths_.next_links(from, height);
        const std::size_t ports = candidates_.size();
        for (std::size_t port = 0; port < ports; ++port) {
            spread_from_port(from, height, port, 1 / static_cast<float>(ports), usages);
        }
        return;
    }
    ways_.clear();
    outputs_.clear();
    ways_.push_back({from, 0, 0, 1, 0});
    find_ways(height);
    // From the target back: what a way carries, its slowest part has.
    for (std::size_t i = ways_.size(); i-- > 0;) {
        Way& way = ways_[i];
        if (way.at == paths_.target()) {
            way.bytes_per_s = std::numeric_limits<double>::infinity();
            continue;
        }
        for (std::uint32_t o = way.first; o < way.end; ++o) {
            const Link& link = topology_.links()[outputs_[o]];
            way.bytes_per_s += std::min(link.bytes_per_s, ways_[way_of_[link.to]].bytes_per_s);
        }
    }
    pour(usages);
    for (const Way& way : ways_) way_of_[way.at] = no_way;
}

void Router::spread_from_port(VertexId from, int height, std::size_t port, float share,
                              std::vector<Usage>& usages) {
    const std::size_t first = usages.size();
    std::size_t switches = 1;  // that the packets cross at this level
    for (VertexId v = from; v != paths_.target(); --height) {
        candidates_ = paths_.next_links(v, height);
        const LinkId l = candidates_[v == from ? port : 0];
        usages.push_back({l, share});
        if (v != from && height >= 0) {
            usages.back().share = share / static_cast<float>(switches * candidates_.size());
            switches *= ends_of(topology_, candidates_);
        }
        v = topology_.links()[l].to;
    }
    switches = 1;
    for (std::size_t i = usages.size() - 1; i > first; --i) {
        const Link& link = topology_.links()[usages[i].link];
        if (topology_.level(link.to) > topology_.level(link.from)) break;
        if (link.to == paths_.target()) continue;
        const auto above = topology_.up_links(link.to);
        usages[i].share = share / static_cast<float>(switches * above.size());
        switches *= ends_of(topology_, above);
    }
}

// From ways_[0] on, hop by hop: shortest ways to a vertex are all as long.
void Router::find_ways(int height) {
    std::size_t level_ends = 1;  // ways_ of the hop under way
    for (std::uint32_t i = 0; i < ways_.size(); ++i) {
        if (i == level_ends) {
            --height;
            level_ends = ways_.size();
        }
        const VertexId at = ways_[i].at;
        if (at == paths_.target()) continue;
        candidates_ = paths_.next_links(at, height);
        ways_[i].first = static_cast<std::uint32_t>(outputs_.size());
        outputs_.insert(outputs_.end(), candidates_.begin(), candidates_.end());
        ways_[i].end = static_cast<std::uint32_t>(outputs_.size());
        for (std::uint32_t o = ways_[i].first; o < ways_[i].end; ++o) {
            const VertexId next = topology_.links()[outputs_[o]].to;
            if (way_of_[next] != no_way) continue;
            way_of_[next] = static_cast<std::uint32_t>(ways_.size());
            ways_.push_back({next, 0, 0, 0, 0});
        }
    }
}

void Router::pour(std::vector<Usage>& usages) {
    for (const Way& way : ways_) {
        if (way.first == way.end) continue;
        fill(way);
        for (const Output& output : filling_) {
            const double more = output.level * output.bytes_per_s - output.load;
            if (more <= 0) continue;
            usages.push_back({output.link, static_cast<float>(more)});
            load_[output.link] += more;
            ways_[way_of_[topology_.links()[output.link].to]].share += more;
        }
    }
}

// As water finds its level: over the least loaded for their rate, until all that carry any of it are loaded
// alike.
void Router::fill(const Way& way) {
    filling_.clear();
    for (std::uint32_t o = way.first; o < way.end; ++o) {
        const LinkId l = outputs_[o];
        const Link& link = topology_.links()[l];
        const double rate = std::min(link.bytes_per_s, ways_[way_of_[link.to]].bytes_per_s);
        filling_.push_back({l, rate, load_[l], load_[l] / rate});
    }
    std::ranges::sort(filling_, [](const Output& a, const Output& b) {
        return a.level != b.level ? a.level < b.level : a.link < b.link;
    });
    double load = way.share;  // with what was there before
    double bytes_per_s = 0;
    std::size_t wet = 0;
    for (; wet < filling_.size(); ++wet) {
        const Output& next = filling_[wet];
        if (wet > 0 && next.level * bytes_per_s >= load) break;
        load += next.load;
        bytes_per_s += next.bytes_per_s;
    }
    filling_.resize(wet);
    for (Output& output : filling_) output.level = load / bytes_per_s;
}

bool Router::route(VertexId from, VertexId to, std::uint64_t label, std::vector<Usage>& usages) {
    if (from == to) return true;
    paths_.aim_at(to);
    const int height = paths_.height_from(from);
    if (height < 0) return false;
    const std::size_t first = usages.size();
    if (spec_.policy == Routing::spray) {
        spray(from, height, 1, usages);
        return true;
    } else if (spec_.policy == Routing::adaptive) {
        spread(from, height, usages);
    } else {
        const float share = 1 / static_cast<float>(spec_.queue_pairs);
        for (std::int64_t q = 0; q < spec_.queue_pairs; ++q) {
            walk(from, height, queue_pair(from, to, label, q), share, usages);
        }
        if (spec_.queue_pairs == 1) return true;
    }
    merge_usages(usages, first);
    return true;
}

std::uint64_t Router::queue_pair(VertexId from, VertexId to, std::uint64_t label,
                                 std::int64_t number) {
    return mix(mix((static_cast<std::uint64_t>(from) << 32) | to) ^ label) +
           static_cast<std::uint64_t>(number);
}

bool Router::route_queue_pair(VertexId from, VertexId to, std::uint64_t queue_pair,
                              std::vector<Usage>& usages) {
    paths_.aim_at(to);
    const int height = paths_.height_from(from);
    if (height < 0) return false;
    walk(from, height, queue_pair, 1 / static_cast<float>(spec_.queue_pairs), usages);
    return true;
}

std::vector<LinkId> Router::ports_towards(VertexId from, VertexId to) {
    paths_.aim_at(to);
    const int height = paths_.height_from(from);
    if (height < 0) return {};
    candidates_ = paths_.next_links(from, height);
    return {candidates_.begin(), candidates_.end()};
}

bool Router::reaches(VertexId from, VertexId to) {
    paths_.aim_at(to);
    return paths_.height_from(from) >= 0;
}

// Between buildings: a core that is near one end of the path is far from the other. The slowest of them.
Picoseconds Router::latency_by_cores(std::span<const Usage> usages) const {
    std::map<VertexId, std::array<Picoseconds, 2>> of_core;  // up to it, and down from it
    for (const Usage& u : usages) {
        const Link& link = topology_.links()[u.link];
        const bool up = topology_.level(link.to) > topology_.level(link.from);
        if (std::max(topology_.level(link.from), topology_.level(link.to)) != topology_.levels()) {
            continue;
        }
        Picoseconds& slowest = of_core[up ? link.to : link.from][up ? 0 : 1];
        slowest = std::max(slowest, link.latency);
    }
    Picoseconds slowest{};
    for (const auto& [core, ways] : of_core) slowest = std::max(slowest, ways[0] + ways[1]);
    return slowest;
}

Picoseconds Router::latency(std::span<const Usage> usages) const {
    // Paths of a connection have the same number of hops up and down; of each level's links the slowest.
    std::array<Picoseconds, 8> slowest{};
    for (const Usage& u : usages) {
        const Link& link = topology_.links()[u.link];
        const int below = std::min(topology_.level(link.from), topology_.level(link.to));
        const bool up = topology_.level(link.to) > topology_.level(link.from);
        if (topology_.spec().sites > 1 && below + 1 == topology_.levels()) continue;
        auto& slot = slowest[2 * std::min(below, 3) + (up ? 1 : 0)];
        slot = std::max(slot, link.latency);
    }
    Picoseconds sum = topology_.spec().sites > 1 ? latency_by_cores(usages) : Picoseconds{};
    for (const Picoseconds p : slowest) sum += p;
    return sum;
}

}  // namespace railyard
