#include "models/scheduler/world_repair.h"

#include <algorithm>

#include "sim/check.h"

namespace railyard {

WorldRepair::WorldRepair(CampaignEngine& engine, const WorldSpec& spec,
                         const std::vector<FailureCause>& causes, WorldCluster& cluster,
                         Owner& owner, Runs& runs, std::uint64_t seed, std::uint64_t replica)
    : NodeFaults(engine, spec, causes, std::ssize(cluster.nodes()), seed, replica),
      spec_(spec),
      cluster_(cluster),
      owner_(owner),
      runs_(runs),
      ails_(cluster.nodes().size()),
      silence_(cluster.nodes().size()) {
    for (std::size_t i = 0; i < causes.size(); ++i) {
        sources_.push_back(std::make_unique<FailureSource>(
            engine, *this, i, causes[i], std::ssize(cluster.nodes()), spec.lemons.rate_multiplier,
            seed, replica));
    }
    if (std::ranges::any_of(causes, [](const FailureCause& c) { return c.slow.has_value(); })) {
        slow_.emplace(engine, spec.search, causes, *this, cluster.nodes().size());
    }
}

void WorldRepair::start(Duration heartbeat) {
    heartbeat_ = heartbeat;
    for (const auto& source : sources_) source->start();
    start_faults();
}

// ---- strikes ----

bool WorldRepair::strike(const Strike& strike) {
    const auto node = static_cast<NodeIndex>(strike.slot);
    if (strike.acceptance >= acceptance_of(node)) return false;
    failed(strike);
    return true;
}

void WorldRepair::strike_node(const Strike& strike) {
    const FailureCause& cause = cause_of(strike);
    const auto node = static_cast<NodeIndex>(strike.slot);
    if (cause.silent) return corrupt(node, strike);
    if (!cause.slow && !cause.storm) {
        break_down(node, strike);
        return;
    }
    const WorldNode& struck = cluster_.node(node);
    if (struck.broken || struck.state == NodeState::repair) return;
    if (cause.storm) return runs_.storm(node, strike);
    slow_->strike(node, strike, cluster_.in_use(node));
}

bool WorldRepair::break_down(NodeIndex node, const Strike& strike) {
    if (!breaks(node, {strike, false})) return false;
    owner_.struck(node, strike);
    settle(node);
    return true;
}

// False when there is nothing left to break.
bool WorldRepair::breaks(NodeIndex node, const Ailment& ailment) {
    if (cluster_.node(node).broken || cluster_.node(node).state == NodeState::repair) return false;
    const FailureCause& cause = causes_[ailment.strike.cause];
    if (cause.remedy == Remedy::restart) return true;
    owner_.before_node_changes(node);
    cluster_.set_broken(node, true);
    ails_[node] = ailment;
    owner_.after_node_changed(node);
    expect_to_be_found(node);
    return true;
}

// Where nothing is broken the jobs' new start is the cure; else the node leaves when it is empty.
void WorldRepair::slow_part_found(std::size_t part) {
    const Strike strike = slow_->part(part).strike;
    const auto node = static_cast<NodeIndex>(slow_->part(part).place);
    if (causes_[strike.cause].remedy == Remedy::restart) {
        runs_.leave_slow_node(node);
        slow_->cure(part);
        return;
    }
    if (cluster_.node(node).broken || cluster_.node(node).state == NodeState::repair) return;
    known_slow_[node] = strike;
    drain(node);
    runs_.leave_slow_node(node);
}

// One at a time: a second one before the first shows changes nothing.
void WorldRepair::corrupt(NodeIndex node, const Strike& strike) {
    if (cluster_.node(node).broken || cluster_.node(node).state == NodeState::repair) return;
    const std::size_t number = corruptions_.size();
    if (!corrupting_.try_emplace(node, number).second) return;
    corruptions_.push_back({node, strike});
    const Duration shows = causes_[strike.cause].detection;
    if (shows <= Instant::max() - engine_.now()) schedule(shows, corruption_shows, number);
    runs_.corrupted(node, number);
}

// Found by its numbers, wherever they have got to meanwhile: the node may have been replaced for something
// else.
void WorldRepair::find_corruption(std::size_t number) {
    const Corruption found = corruptions_[number];
    const auto at = corrupting_.find(found.node);
    const bool goes_on = at != corrupting_.end() && at->second == number;
    if (goes_on) {
        corrupting_.erase(at);
        breaks(found.node, {found.strike, false});
        check(found.node);
    }
    owner_.corruption_found(number, goes_on ? found.node : no_node, found.strike);
}

// By the heartbeat, if its host is gone, and by the next periodic check.
void WorldRepair::expect_to_be_found(NodeIndex node) {
    if (causes_[cause(node)].silences) silence_[node] = schedule(heartbeat_, fell_silent, node);
    const Duration every = spec_.health.interval;
    if (every == Duration::zero()) return;
    const Duration now = engine_.now().time_since_epoch();
    schedule(every - now % every, periodic_check, node);
}

bool WorldRepair::domain_breaks(std::size_t node, const Strike& strike) {
    return breaks(static_cast<NodeIndex>(node), {strike, true});
}

void WorldRepair::domain_is_felt(const Strike& strike, const std::vector<std::size_t>& broken) {
    for (const std::size_t node : broken) owner_.struck(static_cast<NodeIndex>(node), strike);
    for (const std::size_t node : broken) settle(static_cast<NodeIndex>(node));
}

// ---- finding out ----

bool WorldRepair::check(NodeIndex node) {
    if (!cluster_.node(node).broken) return false;
    drain(node);
    return true;
}

// The n-th guess is wrong with the n-th power of the probability that one is.
NodeIndex WorldRepair::diagnose_first(Allocation together) {
    for (const NodeIndex node : cluster_.ailing(together)) {
        if (const NodeIndex found = diagnose(node, together); found != no_node) return found;
    }
    return no_node;
}

NodeIndex WorldRepair::diagnose(NodeIndex node, const Allocation& together) {
    if (!cluster_.node(node).broken) return no_node;
    if (cluster_.node(node).state != NodeState::up) return node;  // somebody has found it already
    Ailment& ailment = ails_[node];
    const bool searched =  // once a failure
        together.has(ailment.blamed) && cluster_.node(ailment.blamed).state != NodeState::up;
    if (searched) return ailment.blamed;
    std::vector<NodeIndex> sound;
    if (!ailment.shared && ailment.strike.misleads(spec_.misdiagnosis)) {
        for (const NodeShare& share : together) {
            const WorldNode& other = cluster_.node(share.node);
            if (!other.broken && other.state == NodeState::up) sound.push_back(share.node);
        }
    }
    NodeIndex guess = node;
    if (!sound.empty()) {
        const double place = ailment.strike.bystander * real(sound.size());
        guess = sound[static_cast<std::size_t>(place)];
        blamed_[guess] = causes_[ailment.strike.cause].reset_time;
        ailment.blamed = guess;
        ++ailment.strike.guesses;
        ++nodes_blamed_;
    }
    drain(guess);
    return guess;
}

void WorldRepair::drain(NodeIndex node) {
    if (cluster_.node(node).state != NodeState::up) return;
    owner_.before_node_changes(node);
    cluster_.set_state(node, NodeState::drained);
    owner_.after_node_changed(node);
    settle(node);
}

void WorldRepair::settle(NodeIndex index) {
    const WorldNode& node = cluster_.node(index);
    if (node.state != NodeState::drained || cluster_.in_use(index)) return;
    owner_.before_node_changes(index);
    const auto slow = known_slow_.find(index);
    bool goes_by_itself = false;  // no strike has taken it
    if (slow != known_slow_.end() && !node.broken) {
        cluster_.set_broken(index, true);
        ails_[index] = {slow->second, false};
        goes_by_itself = true;
    }
    if (node.broken) {
        cluster_.set_state(index, NodeState::repair);
        engine_.cancel(silence_[index]);
        go_out(index);
    } else if (const auto blamed = blamed_.extract(index)) {
        cluster_.set_state(index, NodeState::repair);
        send_away_sound(index, blamed.mapped());
        goes_by_itself = true;
    } else {
        cluster_.set_state(index, NodeState::up);
    }
    owner_.after_node_changed(index);
    if (goes_by_itself) owner_.memory_lost(index);
}

// ---- out of service ----

void WorldRepair::go_out(NodeIndex node) {
    if (slow_) slow_->mend(node);
    known_slow_.erase(node);
    corrupting_.erase(node);
    blamed_.erase(node);
    const Ailment& ailment = ails_[node];
    send_away(node, ailment.strike, ailment.shared);
}

// One that is not sound fails the job that gets it, unless a check comes first, or makes its numbers wrong.
void WorldRepair::come_back(std::size_t index, bool sound) {
    const auto node = static_cast<NodeIndex>(index);
    const bool corrupts = !sound && causes_[cause(node)].silent;
    owner_.before_node_changes(node);
    cluster_.set_broken(node, !sound && !corrupts);
    cluster_.set_state(node, NodeState::up);
    owner_.after_node_changed(node);
    if (corrupts) {
        corrupt(node, ails_[node].strike);
    } else if (!sound) {
        expect_to_be_found(node);
    }
}

// A node that nobody uses is sound again. On one in use jobs have failed: whoever looks finds it broken, and
// it is back at once.
void WorldRepair::outages_over(std::size_t index) {
    const auto node = static_cast<NodeIndex>(index);
    const WorldNode& n = cluster_.node(node);
    const bool out = n.state == NodeState::repair || cluster_.in_use(node);
    if (out || !n.broken || !ails_[node].shared) return;
    owner_.before_node_changes(node);
    cluster_.set_broken(node, false);
    engine_.cancel(silence_[node]);
    owner_.after_node_changed(node);
}

void WorldRepair::handle_own(std::uint32_t kind, std::size_t index) {
    const auto node = static_cast<NodeIndex>(index);
    switch (kind) {
        case fell_silent:
            if (cluster_.node(node).state != NodeState::repair) owner_.silent(node);
            break;
        case periodic_check:
            check(node);
            break;
        case corruption_shows:
            find_corruption(index);
            break;
        default:
            RY_UNREACHABLE("a kind of event that repair schedules");
    }
}

}  // namespace railyard
