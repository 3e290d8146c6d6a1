#include "models/scheduler/fleet_repair.h"

#include <algorithm>

#include "sim/check.h"

namespace railyard {

OutOfService out_of_service(const Strike& strike, const FailureCause& cause, double repair_sigma) {
    if (cause.remedy != Remedy::replace || strike.replacement >= cause.replace_fraction) {
        return {cause.reset_time, false};
    }
    constexpr double repair_seconds_max = 3e8;  // ten years: the log-normal's tail ends there
    const double drawn = lognormal(seconds(cause.repair_time), repair_sigma, strike.repair_spread);
    return {from_seconds(std::min(drawn, repair_seconds_max)), true};
}

FleetRepair::FleetRepair(CampaignEngine& engine, const FleetSpec& spec,
                         const std::vector<FailureCause>& causes, FleetCluster& cluster,
                         Owner& owner, std::uint64_t seed, std::uint64_t replica)
    : engine_(engine),
      spec_(spec),
      causes_(causes),
      cluster_(cluster),
      owner_(owner),
      id_(engine.add(*this, "nodes")),
      ails_(cluster.nodes().size()),
      silence_(cluster.nodes().size()) {
    for (std::size_t i = 0; i < causes.size(); ++i) {
        sources_.push_back(std::make_unique<FailureSource>(
            engine, *this, i, causes[i], static_cast<std::int64_t>(cluster.nodes().size()),
            spec.lemons.rate_multiplier, seed, replica));
    }
    if (spec.lemons.fraction > 0) {
        RandomStream stream(seed, replica, "lemon");
        lemon_.resize(cluster.nodes().size());
        for (std::size_t i = 0; i < lemon_.size(); ++i) {
            lemon_[i] = stream.chance(spec.lemons.fraction);
        }
    }
}

void FleetRepair::start(Duration heartbeat) {
    heartbeat_ = heartbeat;
    for (const auto& source : sources_) source->start();
}

void FleetRepair::schedule(Duration after, Kind kind, NodeIndex node) {
    const EventId event =
        engine_.schedule_cancellable(engine_.now() + after, id_, node * kinds + kind);
    if (kind == fell_silent) silence_[node] = event;
}

void FleetRepair::strike(const Strike& strike) {
    const auto node = static_cast<NodeIndex>(strike.slot);
    const FleetNode& struck = cluster_.node(node);
    if (strike.acceptance >= (lemon(node) ? 1.0 : 1.0 / spec_.lemons.rate_multiplier)) return;
    if (struck.broken || struck.state == NodeState::repair)
        return;  // there is nothing left to break
    const FailureCause& cause = causes_[strike.cause];
    if (cause.remedy != Remedy::restart) {
        owner_.before_node_changes(node);
        cluster_.set_broken(node, true);
        ails_[node] = strike;
        owner_.after_node_changed(node);
        if (cause.silences) schedule(heartbeat_, fell_silent, node);
        const Duration every = spec_.health.interval;
        if (every > Duration::zero()) {
            const Duration now = engine_.now().time_since_epoch();
            schedule(every - now % every, periodic_check, node);
        }
    }
    owner_.struck(node, strike);
    settle(node);
}

bool FleetRepair::check(NodeIndex node) {
    if (!cluster_.node(node).broken) return false;
    drain(node);
    return true;
}

void FleetRepair::drain(NodeIndex node) {
    if (cluster_.node(node).state != NodeState::up) return;
    owner_.before_node_changes(node);
    cluster_.set_state(node, NodeState::drained);
    owner_.after_node_changed(node);
    settle(node);
}

void FleetRepair::settle(NodeIndex index) {
    const FleetNode& node = cluster_.node(index);
    if (node.state != NodeState::drained || !node.jobs.empty()) return;
    owner_.before_node_changes(index);
    if (node.broken) {
        const Strike& strike = ails_[index];
        const OutOfService out = out_of_service(strike, causes_[strike.cause], spec_.repair_sigma);
        if (out.repaired && !lemon_.empty() && strike.cure < spec_.lemons.cured_by_repair) {
            lemon_[index] = false;
        }
        cluster_.set_state(index, NodeState::repair);
        engine_.cancel(silence_[index]);
        schedule(out.time, repaired, index);
    } else {
        cluster_.set_state(index, NodeState::up);
    }
    owner_.after_node_changed(index);
}

void FleetRepair::handle(std::uint32_t event) {
    const NodeIndex node = event / kinds;
    switch (event % kinds) {
        case fell_silent:
            if (cluster_.node(node).state != NodeState::repair) owner_.silent(node);
            break;
        case periodic_check:
            check(node);
            break;
        case repaired:
            owner_.before_node_changes(node);
            cluster_.set_broken(node, false);
            cluster_.set_state(node, NodeState::up);
            owner_.after_node_changed(node);
            break;
        default:
            RY_UNREACHABLE("a kind of event that repair schedules");
    }
}

}  // namespace railyard
