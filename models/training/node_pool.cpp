#include "models/training/node_pool.h"

#include <algorithm>

#include "models/training/job.h"
#include "sim/check.h"

namespace railyard {

NodePool::NodePool(CampaignEngine& engine, const Spec& spec,
                   const std::vector<FailureCause>& causes, Ledger& ledger, std::uint64_t seed,
                   std::uint64_t replica)
    : NodeFaults(engine, spec, causes, spec.nodes, seed, replica), spec_(spec), ledger_(ledger) {
    RY_CHECK(spec.job_nodes > 0 && spec.job_nodes <= spec.nodes);
    for (std::int64_t i = 0; i < spec.job_nodes; ++i) {
        slots_.push_back(static_cast<std::uint32_t>(i));
        place_.push_back(static_cast<std::int32_t>(i));
    }
    place_.resize(static_cast<std::size_t>(spec.nodes), spare);
    for (std::int64_t i = spec.nodes; i-- > spec.job_nodes;) {
        spares_.push_back(static_cast<std::uint32_t>(i));
    }
}

// ---- the job's side ----

double NodePool::acceptance(std::int64_t slot) const {
    const std::uint32_t node = slots_[slot];
    return node == no_node ? 0 : acceptance_of(node);
}

std::int64_t NodePool::node_in(std::int64_t slot) const {
    const std::uint32_t node = slots_[slot];
    return node == no_node ? -1 : std::int64_t{node};
}

void NodePool::leave_job(std::int64_t slot) {
    place_[slots_[slot]] = out;
    slots_[slot] = no_node;
    if (moves_ != nullptr) moves_->push_back({engine_.now(), slot, -1});
}

void NodePool::remove(const Strike& strike, const FailureCause& cause) {
    book();
    const std::uint32_t node = slots_[strike.slot];
    leave_job(strike.slot);
    broken_.erase(node);
    go_out(node, cause);
    send_away(node, strike, shaded_.erase(node) > 0);
}

void NodePool::misjudge(const Strike& strike, std::int64_t blamed, const FailureCause& cause) {
    const std::uint32_t struck = slots_[strike.slot];
    Strike again = strike;
    ++again.guesses;
    if (struck != no_node) broken_[struck] = again;
    book();
    const std::uint32_t node = slots_[blamed];
    leave_job(blamed);
    go_out(node, cause);
    send_away_sound(node, cause.reset_time);
}

bool NodePool::fill(std::int64_t slot) {
    if (spares_.empty()) return false;
    book();
    const std::uint32_t node = spares_.back();
    spares_.pop_back();
    slots_[slot] = node;
    place_[node] = static_cast<std::int32_t>(slot);
    if (moves_ != nullptr) moves_->push_back({engine_.now(), slot, node});
    return true;
}

void NodePool::release(std::int64_t slot) {
    book();
    const std::uint32_t node = slots_[slot];
    leave_job(slot);
    place_[node] = spare;
    spares_.push_front(node);
}

void NodePool::stays_broken(const Strike& strike) {
    const std::uint32_t node = slots_[strike.slot];
    if (node != no_node && takes_nodes(strike)) broken_[node] = strike;
}

NodePool::Struck NodePool::still_broken() {
    Struck struck;
    const auto add = [&](std::uint32_t node, const Strike& strike) {
        if (place_[node] < 0) return;
        if (struck.slots.empty()) {
            struck.strike = strike;
            struck.strike.slot = place_[node];
        }
        if (struck.strike.cause == strike.cause) struck.slots.push_back(place_[node]);
    };
    for (const auto& [node, strike] : broken_) add(node, strike);
    if (!struck.slots.empty()) {
        for (const std::int64_t slot : struck.slots) broken_.erase(slots_[slot]);
        return struck;
    }
    for (const auto& [node, shaded] : shaded_) {
        if (!shaded.noticed) add(node, shaded.strike);
    }
    for (const std::int64_t slot : struck.slots) shaded_.at(slots_[slot]).noticed = true;
    return struck;
}

// ---- strikes on nodes ----

void NodePool::strike_node(const Strike& strike) {
    const auto node = static_cast<std::uint32_t>(strike.slot);
    if (place_[node] == out) return;
    if (place_[node] == spare) return spare_leaves(node, strike, false);
    Strike of_job = strike;
    of_job.slot = place_[node];
    const bool noticed = job_->nodes_failed({of_job, {of_job.slot}});
    if (!noticed && takes_nodes(strike)) broken_[node] = of_job;
}

bool NodePool::domain_breaks(std::size_t member, const Strike& strike) {
    const auto node = static_cast<std::uint32_t>(member);
    if (takes_nodes(strike)) {
        if (place_[node] == spare) spare_leaves(node, strike, true);
        if (place_[node] >= 0 && !shaded_[node].noticed) shaded_[node].strike = strike;
    }
    return place_[node] >= 0;
}

void NodePool::domain_is_felt(const Strike& strike, const std::vector<std::size_t>& broken) {
    Struck struck{strike, {}};
    for (const std::size_t node : broken) struck.slots.push_back(place_[node]);
    struck.strike.slot = struck.slots.front();
    if (!job_->nodes_failed(struck)) return;
    for (const std::size_t node : broken) {
        const auto shaded = shaded_.find(static_cast<std::uint32_t>(node));
        if (shaded != shaded_.end()) shaded->second.noticed = true;
    }
}

// ---- out of service ----

void NodePool::spare_leaves(std::uint32_t node, const Strike& strike, bool outage) {
    book();
    spares_.erase(std::ranges::find(spares_, node));
    place_[node] = out;
    broken_.erase(node);
    go_out(node, cause_of(strike));
    send_away(node, strike, outage);
}

// It is broken until the repair has helped.
void NodePool::in_shop(std::size_t node, const Strike& strike) {
    broken_[static_cast<std::uint32_t>(node)] = strike;
}

void NodePool::repaired(std::int64_t item, bool sound) {
    if (sound) broken_.erase(static_cast<std::uint32_t>(item));
    NodeFaults::repaired(item, sound);
}

// A job that was down meanwhile never knew.
void NodePool::outages_over(std::size_t node) {
    const auto shaded = shaded_.find(static_cast<std::uint32_t>(node));
    if (shaded != shaded_.end() && !shaded->second.noticed) shaded_.erase(shaded);
}

void NodePool::handle_own(std::uint32_t, std::size_t) {
    RY_UNREACHABLE("the pool has no events of its own");
}

void NodePool::go_out(std::uint32_t node, const FailureCause& cause) {
    ++in_repair_;
    if (absences_ == nullptr) return;
    absences_->push_back({node, engine_.now(), Instant(time_max), cause.name});
    absence_of_[node] = absences_->size() - 1;
}

void NodePool::back_at(std::size_t node, Instant at) {
    const auto absence = absence_of_.find(node);
    if (absence != absence_of_.end()) (*absences_)[absence->second].until = at;
}

void NodePool::come_back(std::size_t node, bool) {
    back_at(node, engine_.now());
    absence_of_.erase(node);
    book();
    --in_repair_;
    place_[node] = spare;
    spares_.push_front(static_cast<std::uint32_t>(node));  // the one that has rested longest first
    if (job_ != nullptr) job_->node_available();
}

// ---- the end ----

void NodePool::end() {
    book();
}

NodePool::Outcome NodePool::outcome() const {
    Outcome all = outcome_;
    static_cast<NodeFailureCounts&>(all) = counts();
    return all;
}

void NodePool::book() {
    const Duration span = engine_.now() - booked_until_;
    booked_until_ = engine_.now();
    ledger_.book(Category::spare, static_cast<std::int64_t>(spares_.size()) * spec_.gpus_per_node,
                 span);
    ledger_.book(Category::repair, in_repair_ * spec_.gpus_per_node, span);
}

}  // namespace railyard
