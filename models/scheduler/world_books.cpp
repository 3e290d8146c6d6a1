#include "models/scheduler/world_books.h"

#include <algorithm>
#include <bit>

namespace railyard {

WorldBooks::WorldBooks(const WorldSpec& spec, const WorldCluster& cluster, WorldLedger& ledger)
    : cluster_(cluster),
      ledger_(ledger),
      any_slices_(spec.parts_per_gpu() > 1),
      home_(cluster.nodes().size(), static_cast<std::uint32_t>(spec.partitions.size())),
      unheld_(spec.groups.size()),
      reservations_(cluster.nodes().size()),
      under_maintenance_(cluster.nodes().size()),
      parts_in_use_(spec.groups.size()),
      node_busy_(spec.groups.size()) {
    for (Unheld& unheld : unheld_) unheld.free.resize(spec.partitions.size() + 1);
    for (const NodeGroup& group : spec.groups) {
        parts_of_node_.push_back(group.gpus_per_node * spec.parts_per_gpu());
    }
    for (std::size_t p = spec.partitions.size(); p-- > 0;) {
        for (std::int64_t i = 0; i < spec.partitions[p].nodes; ++i) {
            home_[spec.partitions[p].first_node + static_cast<std::size_t>(i)] =
                static_cast<std::uint32_t>(p);
        }
    }
    for (NodeIndex node = 0; node < home_.size(); ++node) {
        std::vector<std::uint32_t>& homes = unheld_[cluster.node(node).group].homes;
        if (std::ranges::find(homes, home_[node]) == homes.end()) homes.push_back(home_[node]);
        count(node, 1);
    }
}

std::int64_t& WorldBooks::class_of(NodeIndex index) {
    const WorldNode& node = cluster_.node(index);
    Unheld& unheld = unheld_[node.group];
    if (node.state == NodeState::repair) return unheld.repair;
    if (node.state == NodeState::drained) return unheld.drained;
    if (under_maintenance_.has(index)) return unheld.maintenance;
    if (node.broken) return unheld.undetected;
    return unheld.free[home_[index]];
}

void WorldBooks::count(NodeIndex node, int sign) {
    std::int64_t& unheld = class_of(node);
    if (cluster_.in_use(node)) {
        const std::uint32_t group = cluster_.node(node).group;
        parts_in_use_[group] += sign * parts_of_node_[group];
    }
    if (!any_slices_) {  // what every start and end of a large job does to each of its nodes
        unheld += sign * cluster_.free(node, 0);
        return;
    }
    const std::int64_t stranded = cluster_.stranded_parts_of(node);
    unheld += sign * cluster_.free_parts_of(node);
    std::int64_t& out_of_reach = unheld_[cluster_.node(node).group].stranded;
    const bool in_service = !cluster_.ailing().has(node) && !under_maintenance_.has(node);
    (in_service ? out_of_reach : unheld) += sign * stranded;
}

void WorldBooks::set_maintenance(NodeIndex node, bool begins) {
    count(node, -1);
    begins ? ++reservations_[node] : --reservations_[node];
    if (reservations_[node] > 0) {
        under_maintenance_.add(node);
    } else {
        under_maintenance_.remove(node);
    }
    count(node, 1);
}

void WorldBooks::moved_whole(const NodeRun& run, int sign) {
    const std::uint32_t group = cluster_.node(run.first).group;
    const std::int64_t each = sign * parts_of_node_[group];
    std::int64_t in_service = run.count;
    each_word(run, [&](std::size_t w, std::uint64_t nodes) {
        std::uint64_t others = nodes & (cluster_.ailing().word(w) | under_maintenance_.word(w));
        in_service -= std::popcount(others);
        for (; others != 0; others &= others - 1) {
            const auto bit = static_cast<std::size_t>(std::countr_zero(others));
            class_of(static_cast<NodeIndex>(w * 64 + bit)) += each;
        }
    });
    unheld_[group].free[home_[run.first]] += in_service * each;
    parts_in_use_[group] -= run.count * each;
}

void WorldBooks::book(Instant now, const Needs& needs) {
    const Duration span = now - booked_until_;
    if (span == Duration::zero()) return;
    booked_until_ = now;
    for (std::size_t g = 0; g < unheld_.size(); ++g) {
        const Unheld& unheld = unheld_[g];
        node_busy_[g] += GpuNanoseconds{parts_in_use_[g]} * span.count();
        const auto book_parts = [&](Category category, std::int64_t parts) {
            ledger_.book(g, ledger_.no_kind(), category, parts, span);
        };
        for (const std::uint32_t p : unheld.homes) {
            Category category = Category::idle;
            if (p < needs.size() && needs[p].parts > 0) {
                category = needs[p].parts <= cluster_.free_parts(needs[p].pool)
                               ? Category::fragmentation
                               : Category::gang_wait;
            }
            book_parts(category, unheld.free[p]);
        }
        book_parts(Category::fragmentation, unheld.stranded);
        stranded_time_ += GpuNanoseconds{unheld.stranded} * span.count();
        book_parts(Category::detection, unheld.undetected);
        book_parts(Category::drained, unheld.drained);
        book_parts(Category::repair, unheld.repair);
        book_parts(Category::planned_maintenance, unheld.maintenance);
    }
}

}  // namespace railyard
