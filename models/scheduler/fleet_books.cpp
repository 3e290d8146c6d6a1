#include "models/scheduler/fleet_books.h"

namespace railyard {

FleetBooks::FleetBooks(const FleetSpec& spec, const FleetCluster& cluster, Ledger& ledger)
    : cluster_(cluster),
      ledger_(ledger),
      home_(cluster.nodes().size(), static_cast<std::uint32_t>(spec.partitions.size())),
      free_(spec.partitions.size() + 1),
      under_maintenance_(cluster.nodes().size()) {
    for (std::size_t p = spec.partitions.size(); p-- > 0;) {
        for (std::int64_t i = 0; i < spec.partitions[p].nodes; ++i) {
            home_[spec.partitions[p].first_node + static_cast<std::size_t>(i)] =
                static_cast<std::uint32_t>(p);
        }
    }
    for (NodeIndex node = 0; node < home_.size(); ++node) count(node, 1);
}

bool FleetBooks::in_service(NodeIndex index) const {
    const FleetNode& node = cluster_.node(index);
    return node.state == NodeState::up && !under_maintenance_[index] && !node.broken;
}

std::int64_t& FleetBooks::class_of(NodeIndex index) {
    const FleetNode& node = cluster_.node(index);
    if (node.state == NodeState::repair) return repair_;
    if (node.state == NodeState::drained) return drained_;
    if (under_maintenance_[index]) return maintenance_;
    if (node.broken) return undetected_;
    return free_[home_[index]];
}

void FleetBooks::count(NodeIndex node, int sign) {
    const std::int64_t stranded = cluster_.stranded_parts_of(node);
    class_of(node) += sign * cluster_.free_parts_of(node);
    (in_service(node) ? stranded_ : class_of(node)) += sign * stranded;
    nodes_in_use_ += cluster_.node(node).jobs.empty() ? 0 : sign;
}

void FleetBooks::set_maintenance(NodeIndex node, bool under) {
    count(node, -1);
    under_maintenance_[node] = under;
    count(node, 1);
}

void FleetBooks::book(Instant now, const Needs& needs) {
    const Duration span = now - booked_until_;
    if (span == Duration::zero()) return;
    booked_until_ = now;
    for (std::uint32_t p = 0; p < free_.size(); ++p) {
        Category category = Category::idle;
        if (p < needs.size() && needs[p].parts > 0) {
            category = needs[p].parts <= cluster_.free_parts(needs[p].pool)
                           ? Category::fragmentation
                           : Category::gang_wait;
        }
        ledger_.book(category, free_[p], span);
    }
    ledger_.book(Category::fragmentation, stranded_, span);
    stranded_time_ += GpuNanoseconds{stranded_} * span.count();
    node_busy_ += __int128{nodes_in_use_} * span.count();
    ledger_.book(Category::detection, undetected_, span);
    ledger_.book(Category::drained, drained_, span);
    ledger_.book(Category::repair, repair_, span);
    ledger_.book(Category::planned_maintenance, maintenance_, span);
}

}  // namespace railyard
