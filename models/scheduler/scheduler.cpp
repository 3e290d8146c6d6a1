#include "models/scheduler/scheduler.h"

#include <algorithm>

#include "sim/check.h"

namespace railyard {

NodePool::NodePool(CampaignEngine& engine, const Spec& spec, Ledger& ledger, std::uint64_t seed,
                   std::uint64_t replica)
    : engine_(engine), spec_(spec), ledger_(ledger), id_(engine.add(*this, "nodes")) {
    RY_CHECK(spec.job_nodes > 0 && spec.job_nodes <= spec.nodes);
    for (std::int64_t i = 0; i < spec.job_nodes; ++i) {
        slots_.push_back(static_cast<std::uint32_t>(i));
    }
    for (std::int64_t i = spec.nodes; i-- > spec.job_nodes;) {
        spares_.push_back(static_cast<std::uint32_t>(i));
    }
    if (spec.lemons.fraction > 0) {
        RandomStream stream(seed, replica, "lemon");
        lemon_.resize(static_cast<std::size_t>(spec.nodes));
        for (std::size_t i = 0; i < lemon_.size(); ++i) {
            lemon_[i] = stream.chance(spec.lemons.fraction);
        }
    }
}

double NodePool::acceptance(std::int64_t slot) const {
    const bool lemon = !lemon_.empty() && lemon_[slots_[static_cast<std::size_t>(slot)]];
    return lemon ? 1.0 : 1.0 / spec_.lemons.rate_multiplier;
}

void NodePool::remove(const Strike& strike, const FailureCause& cause) {
    book();
    ++in_repair_;
    const std::uint32_t node = slots_[static_cast<std::size_t>(strike.slot)];
    Duration out = cause.reset_time;
    if (cause.remedy == Remedy::replace && strike.replacement < cause.replace_fraction) {
        constexpr double repair_seconds_max = 3e8;  // ten years: the log-normal's tail ends there
        const double mean = seconds(cause.repair_time);
        out = from_seconds(std::min(lognormal(mean, spec_.repair_sigma, strike.repair_spread),
                                    repair_seconds_max));
        if (repairs_.size() <= strike.cause) repairs_.resize(strike.cause + 1);
        ++repairs_[strike.cause];
        if (!lemon_.empty() && strike.cure < spec_.lemons.cured_by_repair) lemon_[node] = false;
    }
    engine_.schedule(engine_.now() + out, id_, node);
    if (absences_ != nullptr) {
        absences_->push_back({node, engine_.now(), engine_.now() + out, cause.name});
    }
}

bool NodePool::fill(std::int64_t slot) {
    if (spares_.empty()) return false;
    book();
    slots_[static_cast<std::size_t>(slot)] = spares_.back();
    spares_.pop_back();
    return true;
}

void NodePool::handle(std::uint32_t node) {
    book();
    --in_repair_;
    spares_.push_front(node);  // the node that has rested longest goes first
    if (waiter_ != nullptr) waiter_->node_available();
}

void NodePool::end() {
    book();
}

void NodePool::book() {
    const Duration span = engine_.now() - booked_until_;
    booked_until_ = engine_.now();
    ledger_.book(Category::spare, static_cast<std::int64_t>(spares_.size()) * spec_.gpus_per_node,
                 span);
    ledger_.book(Category::repair, in_repair_ * spec_.gpus_per_node, span);
}

}  // namespace railyard
