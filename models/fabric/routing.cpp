#include "models/fabric/routing.h"

#include <algorithm>
#include <limits>
#include <map>

#include "sim/check.h"
#include "sim/fingerprint.h"

namespace railyard {

namespace {

// What stands for a switch's hash function.
std::uint64_t mix(std::uint64_t z) {
    return mix_bits(z + 0x9e3779b97f4a7c15ULL);
}

// As built by rule, and nothing in it is slow.
bool all_links_alike(const Topology& topology) {
    if (topology.kind() == "custom") return false;
    std::array<double, 8> rates{};  // of the cables above each level
    return std::all_of(topology.links().begin(), topology.links().end(), [&](const Link& link) {
        double& rate = rates[static_cast<std::size_t>(
            std::min(topology.level(link.from), topology.level(link.to)))];
        if (rate == 0) rate = link.bytes_per_s;
        return link.bytes_per_s == rate && rate > 0;
    });
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
    static const std::vector<std::string> names = {"destination",  "ecmp",    "adaptive", "spray",
                                                   "random_spray", "flowlet", "entropy"};
    return names;
}

Router::Router(const Topology& topology, RoutingSpec spec)
    : topology_(topology),
      spec_(spec),
      leaves_(topology.vertex_count() - topology.nic_count()),
      shapes_(leaves_.size()),
      leaf_number_(topology.vertex_count()) {
    RY_CHECK(topology.levels() <= heights);
    if (spec_.policy == Routing::random_spray || spec_.policy == Routing::entropy) {
        spec_.policy = Routing::spray;
    }
    find_leaves();
    find_shapes();
    const bool adaptive = spec_.policy == Routing::adaptive;
    if (adaptive || spec_.policy == Routing::spray) {
        way_of_.resize(topology.vertex_count(), whole);
    }
    // Where all ways are alike, packets that choose load all of them alike, and there is nothing to remember.
    if (spec_.policy == Routing::flowlet || (adaptive && !all_ways_alike())) {
        load_.resize(topology.links().size());
    }
}

bool Router::all_ways_alike() const {
    return all_links_alike(topology_) &&
           std::all_of(shapes_.begin(), shapes_.end(), [&](const Shape& s) {
               const auto v = static_cast<VertexId>(topology_.nic_count() +
                                                    static_cast<std::size_t>(&s - shapes_.data()));
               return std::all_of(s.even_up.begin(), s.even_up.end(),
                                  [](bool even) { return even; }) &&
                      (topology_.level(v) == 1 || s.down_leaves > 0);
           });
}

void Router::let_one_stand_for_all() {
    if (spec_.policy == Routing::spray && all_ways_alike()) spec_.policy = Routing::adaptive;
}

// The union over working links of what their far ends reach.
Router::Leaves Router::join(std::span<const LinkId> links, int height) {
    Ranges all;
    const auto take = [&](const Range& r) {
        // Neighbours in a tree cover neighbouring leaves, or the same: most unions are one range.
        if (!all.empty() && r.first >= all.back().first && r.first <= all.back().end) {
            all.back().end = std::max(all.back().end, r.end);
        } else if (r.first < r.end) {
            all.push_back(r);
        }
    };
    for (const LinkId l : links) {
        const Link& link = topology_.links()[l];
        if (link.bytes_per_s <= 0) continue;
        const Leaves& far =
            leaves_[link.to - topology_.nic_count()][static_cast<std::size_t>(height)];
        if (far.pieces == whole) {
            take(far.hull);
        } else {
            for (const Range& r : pieces_[far.pieces]) take(r);
        }
    }
    if (all.empty()) return {};
    Ranges unsorted = std::move(all);
    all.clear();
    std::sort(unsorted.begin(), unsorted.end(),
              [](const Range& a, const Range& b) { return a.first < b.first; });
    for (const Range& r : unsorted) take(r);
    Leaves out{{all.front().first, all.back().end}, whole};
    if (all.size() > 1) {
        out.pieces = static_cast<std::uint32_t>(pieces_.size());
        pieces_.push_back(std::move(all));
    }
    return out;
}

void Router::find_leaves() {
    const auto first = static_cast<VertexId>(topology_.nic_count());
    std::uint32_t number = 0;
    for (VertexId v = first; v < topology_.vertex_count(); ++v) {
        if (topology_.level(v) != 1) continue;
        leaf_number_[v] = number;
        leaves_[v - first][0].hull = {number, number + 1};
        ++number;
    }
    for (int level = 2; level <= topology_.levels(); ++level) {
        for (VertexId v = first; v < topology_.vertex_count(); ++v) {
            if (topology_.level(v) == level)
                leaves_[v - first][0] = join(topology_.down_links(v), 0);
        }
    }
    for (int height = 1; height < topology_.levels(); ++height) {
        for (VertexId v = first; v < topology_.vertex_count(); ++v) {
            leaves_[v - first][static_cast<std::size_t>(height)] =
                join(topology_.up_links(v), height - 1);
        }
    }
}

void Router::find_shapes() {
    const auto first = static_cast<VertexId>(topology_.nic_count());
    const auto far = [&](LinkId l, std::size_t height) -> const Leaves& {
        return leaves_[topology_.links()[l].to - first][height];
    };
    for (VertexId v = first; v < topology_.vertex_count(); ++v) {
        Shape& shape = shapes_[v - first];
        const auto up = topology_.up_links(v);
        for (std::size_t height = 0; height < heights; ++height) {
            shape.even_up[height] = std::all_of(up.begin(), up.end(), [&](LinkId l) {
                const Leaves& leaves = far(l, height);
                const Range& same = far(up[0], height).hull;
                return topology_.links()[l].bytes_per_s > 0 && leaves.pieces == whole &&
                       leaves.hull.first == same.first && leaves.hull.end == same.end;
            });
        }
        const auto down = topology_.down_links(v);
        shape.ordered_down = topology_.level(v) > 1 &&
                             std::is_sorted(down.begin(), down.end(), [&](LinkId a, LinkId b) {
                                 const Range& left = far(a, 0).hull;
                                 const Range& right = far(b, 0).hull;
                                 return left.first < right.first || left.end < right.end;
                             });
        if (shape.ordered_down) find_even_down(v);
    }
}

void Router::find_even_down(VertexId v) {
    const auto first = static_cast<VertexId>(topology_.nic_count());
    const auto far = [&](LinkId l) -> const Leaves& {
        return leaves_[topology_.links()[l].to - first][0];
    };
    const auto down = topology_.down_links(v);
    const Range all = leaves_[v - first][0].hull;
    const Range one = far(down[0]).hull;
    const auto leaves = one.end - one.first;
    const auto cables = static_cast<std::uint32_t>(std::count_if(
        down.begin(), down.end(), [&](LinkId l) { return far(l).hull.first == one.first; }));
    if (down.size() % cables != 0) return;  // fewer to the last of them
    for (std::uint32_t i = 0; i < down.size(); ++i) {
        const Leaves& there = far(down[i]);
        const std::uint32_t begin = all.first + i / cables * leaves;
        const bool even = topology_.links()[down[i]].bytes_per_s > 0 && there.pieces == whole &&
                          there.hull.first == begin &&
                          there.hull.end == std::min(begin + leaves, all.end);
        if (!even) return;
    }
    shapes_[v - first].down_cables = cables;
    shapes_[v - first].down_leaves = leaves;
}

void Router::forget_loads() {
    std::fill(load_.begin(), load_.end(), 0.0);
}

void Router::aim_at(VertexId to) {
    target_ = to;
    target_leaves_.clear();
    for (const LinkId l : topology_.up_links(to)) {
        if (topology_.links()[reverse_link(l)].bytes_per_s > 0) {
            target_leaves_.push_back(leaf_number_[topology_.links()[l].to]);
        }
    }
}

// Is one of the target's leaves reached from switch `v` by going up so many levels and then down?
bool Router::covers(VertexId v, int height) const {
    const Leaves& leaves = leaves_[v - topology_.nic_count()][static_cast<std::size_t>(height)];
    for (const std::uint32_t leaf : target_leaves_) {
        if (leaf < leaves.hull.first || leaf >= leaves.hull.end) continue;
        if (leaves.pieces == whole) return true;
        const Ranges& pieces = pieces_[leaves.pieces];
        const auto after =
            std::upper_bound(pieces.begin(), pieces.end(), leaf,
                             [](std::uint32_t value, const Range& r) { return value < r.first; });
        if (after != pieces.begin() && leaf < std::prev(after)->end) return true;
    }
    return false;
}

// How many levels above its leaf a route from this NIC turns round; -1: there is none.
int Router::height_from(VertexId nic) const {
    for (int height = 0; height < topology_.levels(); ++height) {
        for (const LinkId l : topology_.up_links(nic)) {
            const Link& link = topology_.links()[l];
            if (link.bytes_per_s > 0 && covers(link.to, height)) return height;
        }
    }
    return -1;
}

// The only one of the target's leaves that a switch may have below it: its own plane's.
std::optional<std::uint32_t> Router::target_leaf_below(VertexId v) const {
    const Range hull = leaves_[v - topology_.nic_count()][0].hull;
    std::optional<std::uint32_t> only;
    for (const std::uint32_t leaf : target_leaves_) {
        if (leaf < hull.first || leaf >= hull.end) continue;
        if (only) return std::nullopt;
        only = leaf;
    }
    return only;
}

// Those that can lead to the target's leaves, by bisection where they are in order.
std::span<const LinkId> Router::down_links_near_target(VertexId v) const {
    const auto all = topology_.down_links(v);
    if (!shapes_[v - topology_.nic_count()].ordered_down) return all;
    const auto ends = std::minmax_element(target_leaves_.begin(), target_leaves_.end());
    const auto only = target_leaf_below(v);
    const std::uint32_t low = only.value_or(*ends.first);
    const std::uint32_t high = only.value_or(*ends.second);
    const auto hull = [&](LinkId l) {
        return leaves_[topology_.links()[l].to - topology_.nic_count()][0].hull;
    };
    const auto first =
        std::partition_point(all.begin(), all.end(), [&](LinkId l) { return hull(l).end <= low; });
    const auto end =
        std::partition_point(first, all.end(), [&](LinkId l) { return hull(l).first <= high; });
    return {first, end};
}

// Links out of v on shortest paths that still go up `height` levels: -1 on the way down.
void Router::find_candidates(VertexId v, int height) {
    found_.clear();
    if (height < 0 && topology_.level(v) == 1) {  // the last hop: the target knows its leaves
        for (const LinkId l : topology_.up_links(target_)) {
            const LinkId down = reverse_link(l);
            if (topology_.links()[l].to == v && topology_.links()[down].bytes_per_s > 0) {
                found_.push_back(down);
            }
        }
        candidates_ = found_;
        return;
    }
    if (height >= 0 && v >= topology_.nic_count() &&
        shapes_[v - topology_.nic_count()].even_up[static_cast<std::size_t>(height)]) {
        candidates_ = topology_.up_links(v);
        return;
    }
    const auto leaf = height < 0 ? target_leaf_below(v) : std::nullopt;
    if (leaf && shapes_[v - topology_.nic_count()].down_leaves > 0) {
        const Shape& shape = shapes_[v - topology_.nic_count()];
        const std::uint32_t first = leaves_[v - topology_.nic_count()][0].hull.first;
        const std::uint32_t place = (*leaf - first) / shape.down_leaves;
        candidates_ = topology_.down_links(v).subspan(place * shape.down_cables, shape.down_cables);
        return;
    }
    for (const LinkId l : height < 0 ? down_links_near_target(v) : topology_.up_links(v)) {
        const Link& link = topology_.links()[l];
        if (link.bytes_per_s <= 0) continue;
        if (covers(link.to, std::max(0, height))) found_.push_back(l);
    }
    candidates_ = found_;
}

// Digit by digit: the NIC's position in mixed radix, a digit per tier, names the cable above each tier on its
// way down, and every switch on the way up takes the cable of the same number.
LinkId Router::choose_by_destination(VertexId v, int height) {
    const std::uint32_t position = topology_.position(target_);
    const auto count = static_cast<std::uint32_t>(candidates_.size());
    const auto level = static_cast<std::size_t>(topology_.level(v));
    if (height >= 0) {
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
    for (VertexId v = from; v != target_; --height) {
        find_candidates(v, height);
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
        way_of_[way.at] = whole;
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
// ports each for itself.
void Router::spread(VertexId from, int height, std::vector<Usage>& usages) {
    if (load_.empty()) {
        find_candidates(from, height);
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
        if (way.at == target_) {
            way.bytes_per_s = std::numeric_limits<double>::infinity();
            continue;
        }
        for (std::uint32_t o = way.first; o < way.end; ++o) {
            const Link& link = topology_.links()[outputs_[o]];
            way.bytes_per_s += std::min(link.bytes_per_s, ways_[way_of_[link.to]].bytes_per_s);
        }
    }
    pour(usages);
    for (const Way& way : ways_) way_of_[way.at] = whole;
}

void Router::spread_from_port(VertexId from, int height, std::size_t port, float share,
                              std::vector<Usage>& usages) {
    std::array<std::size_t, heights + 1> switches{1, 1};  // by level: those that the packets cross
    for (VertexId v = from; v != target_; --height) {
        find_candidates(v, height);
        const auto level = static_cast<std::size_t>(topology_.level(v));
        const std::size_t cables = v == from ? 1 : candidates_.size();
        if (height >= 0 && v != from) {
            switches[level + 1] = switches[level] * ends_of(topology_, candidates_);
        }
        const LinkId l = candidates_[v == from ? port : 0];
        usages.push_back({l, share / static_cast<float>(switches[level] * cables)});
        v = topology_.links()[l].to;
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
        if (at == target_) continue;
        find_candidates(at, height);
        ways_[i].first = static_cast<std::uint32_t>(outputs_.size());
        outputs_.insert(outputs_.end(), candidates_.begin(), candidates_.end());
        ways_[i].end = static_cast<std::uint32_t>(outputs_.size());
        for (std::uint32_t o = ways_[i].first; o < ways_[i].end; ++o) {
            const VertexId next = topology_.links()[outputs_[o]].to;
            if (way_of_[next] != whole) continue;
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
    std::sort(filling_.begin(), filling_.end(), [](const Output& a, const Output& b) {
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
    aim_at(to);
    const int height = height_from(from);
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
    aim_at(to);
    const int height = height_from(from);
    if (height < 0) return false;
    walk(from, height, queue_pair, 1 / static_cast<float>(spec_.queue_pairs), usages);
    return true;
}

std::vector<LinkId> Router::ports_towards(VertexId from, VertexId to) {
    aim_at(to);
    const int height = height_from(from);
    if (height < 0) return {};
    find_candidates(from, height);
    return {candidates_.begin(), candidates_.end()};
}

bool Router::reaches(VertexId from, VertexId to) {
    aim_at(to);
    return height_from(from) >= 0;
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
        if (topology_.sites() > 1 && below + 1 == topology_.levels()) continue;
        auto& slot = slowest[static_cast<std::size_t>(2 * std::min(below, 3) + (up ? 1 : 0))];
        slot = std::max(slot, link.latency);
    }
    Picoseconds sum = topology_.sites() > 1 ? latency_by_cores(usages) : Picoseconds{};
    for (const Picoseconds p : slowest) sum += p;
    return sum;
}

}  // namespace railyard
