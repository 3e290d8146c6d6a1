#include "models/scheduler/slurm_placement.h"

#include <algorithm>
#include <bit>
#include <utility>

#include "sim/integers.h"

namespace railyard {

namespace {

constexpr std::int64_t any_block = -1;

// Calls visit(node) for the nodes of `a` that are in `b`, in order, until it returns false.
template <class Visit>
bool each_in_both(const NodeSet& a, const NodeSet& b, const Visit& visit) {
    for (std::size_t w = 0; w < a.words(); ++w) {
        for (std::uint64_t word = a.word(w) & b.word(w); word != 0; word &= word - 1) {
            const auto bit = static_cast<std::size_t>(std::countr_zero(word));
            if (!visit(static_cast<NodeIndex>(w * 64 + bit))) return false;
        }
    }
    return true;
}

// The first nodes, as many at once as lie side by side. False: `pods` are still to be placed.
bool pick_any(std::int64_t& pods, std::int64_t gpus, const NodeSet& level, const NodeSet& allowed,
              Allocation& out) {
    for (std::size_t w = 0; w < level.words(); ++w) {
        for (std::uint64_t nodes = level.word(w) & allowed.word(w); nodes != 0;) {
            const int first = std::countr_zero(nodes);
            const auto count = std::min<std::int64_t>(std::countr_one(nodes >> first), pods);
            out.push_back(NodeRun{static_cast<NodeIndex>(w * 64) + static_cast<NodeIndex>(first),
                                  static_cast<NodeIndex>(count), gpus});
            pods -= count;
            if (pods == 0) return true;
            nodes &= nodes + (std::uint64_t{1} << first);
        }
    }
    return false;
}

}  // namespace

SlurmPlacement::SlurmPlacement(const WorldCluster& cluster, SlurmTopology topology)
    : cluster_(cluster), topology_(topology) {
    for (const WorldNode& node : cluster.nodes()) {
        leaves_ = std::max<std::size_t>(leaves_, node.place.leaf + 1);
    }
    block_of_leaf_.resize(leaves_);
    leaf_nodes_.resize(leaves_);
    for (const WorldNode& node : cluster.nodes()) {
        block_of_leaf_[node.place.leaf] = node.place.block;
        ++leaf_nodes_[node.place.leaf];
    }
}

std::int64_t SlurmPlacement::leaves_of(const Allocation& allocation) const {
    std::vector<std::uint32_t> leaves;
    for (const NodeShare& share : allocation)
        leaves.push_back(cluster_.node(share.node).place.leaf);
    std::ranges::sort(leaves);
    return std::unique(leaves.begin(), leaves.end()) - leaves.begin();
}

SlurmPlacement::Levels SlurmPlacement::with_at_least(std::int64_t gpus, std::size_t device) const {
    Levels out;
    for (std::int64_t g = gpus; g > 0 && g <= cluster_.device_max(device); ++g) {
        out.push_back(&cluster_.with_free(g, device));
    }
    return out;
}

void SlurmPlacement::count_by_leaf(const Levels& levels, const NodeSet& allowed,
                                   LeafCounts& count) const {
    count.assign(leaves_, 0);
    for (const NodeSet* level : levels) {
        each_in_both(*level, allowed, [&](NodeIndex node) {
            ++count[cluster_.node(node).place.leaf];
            return true;
        });
    }
}

// Shares the pods among the leaves of a block, or of all: the leaf with the fewest candidates that are
// enough, best with a node more for what is left over, else the one with the most, and again.
bool SlurmPlacement::take_leaves(std::int64_t pods, std::int64_t block) {
    quota_.assign(leaves_, 0);
    const auto fits_better = [&](std::size_t leaf, std::size_t best, std::int64_t need) {
        const int a = holds(candidates_[leaf], for_rest_[leaf], need);
        const int b = holds(candidates_[best], for_rest_[best], need);
        if (a != b) return a > b;
        return a > 0 ? candidates_[leaf] < candidates_[best]
                     : candidates_[leaf] > candidates_[best];
    };
    for (std::int64_t need = pods; need > 0;) {
        std::size_t best = leaves_;
        for (std::size_t leaf = 0; leaf < leaves_; ++leaf) {
            if (candidates_[leaf] == 0 || quota_[leaf] > 0) continue;
            if (block != any_block && block_of_leaf_[leaf] != block) continue;
            if (best == leaves_ || fits_better(leaf, best, need)) best = leaf;
        }
        if (best == leaves_) return false;
        quota_[best] = std::min(need, candidates_[best]);
        need -= quota_[best];
    }
    return true;
}

int SlurmPlacement::holds(std::int64_t candidates, std::int64_t for_rest, std::int64_t pods) const {
    if (candidates < pods) return 0;
    return !any_rest_ || for_rest > pods ? 2 : 1;
}

// How many blocks its pods would fill, were they the largest.
std::int64_t SlurmPlacement::blocks_filled(std::int64_t pods) const {
    return ceil_div(pods, *std::ranges::max_element(leaf_nodes_));
}

bool SlurmPlacement::choose_leaves(std::int64_t pods) {
    if (topology_ == SlurmTopology::block) {
        return take_leaves(pods, any_block) &&
               leaves_used() <= blocks_filled(pods + (any_rest_ ? 1 : 0));
    }
    std::vector<std::int64_t> in_block;
    std::vector<std::int64_t> rest_in_block;
    int in_leaf = 0;
    for (std::size_t leaf = 0; leaf < leaves_; ++leaf) {
        const std::size_t block = block_of_leaf_[leaf];
        in_block.resize(std::max(in_block.size(), block + 1));
        rest_in_block.resize(in_block.size());
        in_block[block] += candidates_[leaf];
        rest_in_block[block] += for_rest_[leaf];
        in_leaf = std::max(in_leaf, holds(candidates_[leaf], for_rest_[leaf], pods));
    }
    if (in_leaf == 2) return take_leaves(pods, any_block);
    std::size_t best = in_block.size();
    int most = 0;
    for (std::size_t block = 0; block < in_block.size(); ++block) {
        const int all = holds(in_block[block], rest_in_block[block], pods);
        if (all > most || (all > 0 && all == most && in_block[block] < in_block[best])) {
            best = block;
            most = all;
        }
    }
    if (most <= in_leaf) return take_leaves(pods, any_block);  // or all are apart
    return take_leaves(pods, static_cast<std::int64_t>(best));
}

std::int64_t SlurmPlacement::leaves_used() const {
    return std::ranges::count_if(quota_, [](std::int64_t quota) { return quota > 0; });
}

// What is left over goes to a leaf of the pods; else to another of their block; else anywhere.
bool SlurmPlacement::pick_rest(std::int64_t gpus, const Levels& levels, const NodeSet& allowed,
                               Allocation& out) const {
    const auto of_block = [&](std::uint32_t block) {
        for (std::size_t leaf = 0; leaf < leaves_; ++leaf) {
            if (quota_[leaf] > 0 && block_of_leaf_[leaf] == block) return true;
        }
        return false;
    };
    std::int64_t pods = 0;
    for (const std::int64_t quota : quota_) pods += quota;
    const bool other_leaf =
        topology_ != SlurmTopology::block || leaves_used() + 1 <= blocks_filled(pods + 1);
    for (const int near : {2, 1, 0}) {
        if (near < 2 && !other_leaf) return false;
        for (const NodeSet* level : levels) {
            const bool none = each_in_both(*level, allowed, [&](NodeIndex node) {
                const std::uint32_t leaf = cluster_.node(node).place.leaf;
                const bool there =
                    near == 2 ? quota_[leaf] > 0 : near == 0 || of_block(block_of_leaf_[leaf]);
                if (!there || out.has(node)) return true;
                out.push_back(NodeShare{node, gpus});
                return false;
            });
            if (!none) return true;
        }
    }
    return false;
}

bool SlurmPlacement::pick(std::int64_t pods, std::int64_t gpus, const Levels& levels,
                          const NodeSet& allowed, bool by_leaf, Allocation& out) const {
    if (pods == 0) return true;
    LeafCounts left = by_leaf ? quota_ : LeafCounts();
    const bool beside = !out.empty();
    for (const NodeSet* level : levels) {
        if (!by_leaf && !beside) {
            if (pick_any(pods, gpus, *level, allowed, out)) return true;
            continue;
        }
        const bool more = each_in_both(*level, allowed, [&](NodeIndex node) {
            if (by_leaf && left[cluster_.node(node).place.leaf]-- <= 0) return true;
            if (beside && out.has(node)) return true;
            out.push_back(NodeShare{node, gpus});
            return --pods > 0;
        });
        if (!more) return true;
    }
    return false;
}

std::optional<Allocation> SlurmPlacement::place(const WorldJob& job, const Allowed& allowed,
                                                const Levels& pods, const Levels& rest) {
    const std::int64_t full = job.gpus / job.gpus_per_pod;
    const std::int64_t left_over = job.gpus % job.gpus_per_pod;
    const bool by_leaf = topology_ != SlurmTopology::none;
    if (by_leaf) {
        any_rest_ = left_over > 0;
        count_by_leaf(pods, allowed.pods, candidates_);
        for_rest_.assign(leaves_, 0);
        if (any_rest_) count_by_leaf(rest, allowed.rest, for_rest_);
        if (!choose_leaves(full)) return std::nullopt;
    }
    Allocation out;
    if (!pick(full, job.gpus_per_pod, pods, allowed.pods, by_leaf, out)) return std::nullopt;
    if (left_over == 0) return out;
    const bool found = by_leaf ? pick_rest(left_over, rest, allowed.rest, out)
                               : pick(1, left_over, rest, allowed.rest, false, out);
    return found ? std::optional(std::move(out)) : std::nullopt;
}

std::optional<Allocation> SlurmPlacement::place(const WorldJob& job, const Allowed& allowed) {
    return place(job, allowed, with_at_least(job.gpus_per_pod, allowed.device),
                 with_at_least(job.gpus % job.gpus_per_pod, allowed.device));
}

std::optional<Allocation> SlurmPlacement::place_later(const WorldJob& job, const Allowed& allowed) {
    return place(job, allowed, {&allowed.pods}, {&allowed.rest});
}

bool SlurmPlacement::possible(const WorldJob& job) const {
    if (topology_ != SlurmTopology::block) return true;
    LeafCounts sizes = leaf_nodes_;
    std::ranges::sort(sizes, std::greater<>());
    const std::int64_t pods = job.pods();
    const std::int64_t blocks = blocks_filled(pods);
    std::int64_t nodes = 0;
    for (std::int64_t i = 0; i < blocks && i < static_cast<std::int64_t>(sizes.size()); ++i) {
        nodes += sizes[i];
    }
    return nodes >= pods;
}

}  // namespace railyard
