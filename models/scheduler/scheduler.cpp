#include "models/scheduler/scheduler.h"

#include <algorithm>
#include <utility>

#include "sim/check.h"

namespace railyard {

// What the pool schedules for itself: a node or an outage (numbered after the nodes) comes back, an
// injected strike (numbered from the end) falls.
namespace {

constexpr std::uint32_t first_injected = 1U << 31;
constexpr std::uint32_t first_staged = 3U << 30;

}  // namespace

NodePool::NodePool(CampaignEngine& engine, const Spec& spec,
                   const std::vector<FailureCause>& causes, Ledger& ledger, std::uint64_t seed,
                   std::uint64_t replica)
    : engine_(engine),
      spec_(spec),
      causes_(causes),
      ledger_(ledger),
      id_(engine.add(*this, "nodes")),
      history_(spec.quarantine, spec.nodes) {
    RY_CHECK(spec.job_nodes > 0 && spec.job_nodes <= spec.nodes);
    for (std::int64_t i = 0; i < spec.job_nodes; ++i) {
        slots_.push_back(static_cast<std::uint32_t>(i));
        place_.push_back(static_cast<std::int32_t>(i));
    }
    place_.resize(static_cast<std::size_t>(spec.nodes), spare);
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
    if (spec.repair.limited()) shop_.emplace(engine, spec.repair, *this, seed, replica);
    for (std::size_t i = 0; i < causes.size(); ++i) {
        const FailureCause& cause = causes[i];
        if (cause.life.rate.per_second <= 0) continue;
        const bool of_nodes = cause.domain == DomainKind::node;
        const std::int64_t units =
            of_nodes ? spec.nodes : spec.domains[static_cast<std::size_t>(cause.domain)].count();
        lives_.push_back(std::make_unique<Renewals>(engine, *this, i, cause.name, cause.life, units,
                                                    cause.age, seed, replica));
    }
}

void NodePool::start() {
    for (const auto& lives : lives_) lives->start();
    for (std::uint32_t i = 0; i < spec_.injected.size(); ++i) {
        engine_.schedule(Instant(spec_.injected[i].at), id_, first_injected + i);
    }
}

// ---- the job's side ----

double NodePool::acceptance(std::int64_t slot) const {
    const std::uint32_t node = slots_[static_cast<std::size_t>(slot)];
    if (node == no_node) return 0;
    const bool lemon = !lemon_.empty() && lemon_[node];
    return lemon ? 1.0 : 1.0 / spec_.lemons.rate_multiplier;
}

std::int64_t NodePool::node_in(std::int64_t slot) const {
    const std::uint32_t node = slots_[static_cast<std::size_t>(slot)];
    return node == no_node ? -1 : std::int64_t{node};
}

void NodePool::leave_job(std::int64_t slot) {
    place_[slots_[static_cast<std::size_t>(slot)]] = out;
    slots_[static_cast<std::size_t>(slot)] = no_node;
    if (moves_ != nullptr) moves_->push_back({engine_.now(), slot, -1});
}

void NodePool::remove(const Strike& strike, const FailureCause& cause) {
    book();
    const std::uint32_t node = slots_[static_cast<std::size_t>(strike.slot)];
    leave_job(strike.slot);
    broken_.erase(node);
    go_out(node, cause);
    const auto shaded = shaded_.find(node);
    if (shaded == shaded_.end()) {
        send_away(node, strike, cause);
        return;
    }
    Outage& outage = outages_[shaded->second];
    shaded_.erase(shaded);
    outage.out.push_back(node);
    if (outage.over) schedule({}, node);
}

void NodePool::misjudge(const Strike& strike, std::int64_t blamed, const FailureCause& cause) {
    const std::uint32_t struck = slots_[static_cast<std::size_t>(strike.slot)];
    Strike again = strike;
    ++again.guesses;
    if (struck != no_node) broken_[struck] = again;
    book();
    const std::uint32_t node = slots_[static_cast<std::size_t>(blamed)];
    leave_job(blamed);
    go_out(node, cause);
    ++outcome_.blamed;
    if (history_.too_many(node, engine_.now())) ++outcome_.quarantined;
    schedule(cause.reset_time, node);  // nothing is found
}

bool NodePool::fill(std::int64_t slot) {
    if (spares_.empty()) return false;
    book();
    const std::uint32_t node = spares_.back();
    spares_.pop_back();
    slots_[static_cast<std::size_t>(slot)] = node;
    place_[node] = static_cast<std::int32_t>(slot);
    if (moves_ != nullptr) moves_->push_back({engine_.now(), slot, node});
    return true;
}

void NodePool::release(std::int64_t slot) {
    book();
    const std::uint32_t node = slots_[static_cast<std::size_t>(slot)];
    leave_job(slot);
    place_[node] = spare;
    spares_.push_front(node);
}

NodeSupply::Struck NodePool::still_broken() {
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
        for (const std::int64_t slot : struck.slots) {
            broken_.erase(slots_[static_cast<std::size_t>(slot)]);
        }
        return struck;
    }
    for (const auto& [node, outage] : shaded_) {
        if (outages_[outage].over || outages_[outage].noticed) continue;
        add(node, outages_[outage].strike);
    }
    for (const std::int64_t slot : struck.slots) {
        const auto shaded = shaded_.find(slots_[static_cast<std::size_t>(slot)]);
        if (shaded != shaded_.end()) outages_[shaded->second].noticed = true;
    }
    return struck;
}

// ---- strikes on nodes ----

void NodePool::failed(const Strike& strike) {
    if (causes_[strike.cause].domain == DomainKind::node) {
        strike_node(static_cast<std::uint32_t>(strike.slot), strike);
    } else {
        strike_domain(strike, causes_[strike.cause].staged.further);
    }
}

void NodePool::strike_node(std::uint32_t node, Strike strike) {
    if (place_[node] == out) return;
    if (place_[node] == spare) {
        ++outcome_.spares_failed;
        take_spare(node);
        go_out(node, causes_[strike.cause]);
        send_away(node, strike, causes_[strike.cause]);
        return;
    }
    strike.slot = place_[node];
    const bool noticed = waiter_->nodes_failed({strike, {strike.slot}});
    const bool stays_broken = causes_[strike.cause].remedy != Remedy::restart;
    if (!noticed && stays_broken) broken_[node] = strike;
}

void NodePool::strike_domain(Strike strike, std::int64_t waves_left) {
    const FailureCause& cause = causes_[strike.cause];
    const FailureDomains& domains = spec_.domains[static_cast<std::size_t>(cause.domain)];
    const std::int64_t domain = strike.slot;
    ++outcome_.domain_failures;
    if (waves_left > 0 && domain + 1 < domains.count()) {
        Strike next = strike;
        ++next.slot;
        staged_.push_back({next, waves_left - 1});
        engine_.schedule(engine_.now() + cause.staged.every, id_,
                         first_staged + static_cast<std::uint32_t>(staged_.size() - 1));
    }
    const bool nodes_leave = cause.remedy != Remedy::restart;
    const std::size_t number = outages_.size();
    if (nodes_leave) outages_.push_back({.strike = strike, .out = {}});
    Struck struck{strike, {}};
    for (const std::int64_t member : domains.nodes(domain)) {
        const auto node = static_cast<std::uint32_t>(member);
        if (place_[node] >= 0) {
            struck.slots.push_back(place_[node]);
            if (nodes_leave) shaded_[node] = number;
        } else if (place_[node] == spare && nodes_leave) {
            take_spare(node);
            go_out(node, cause);
            outages_[number].out.push_back(node);
        }
    }
    if (nodes_leave) {
        const std::int64_t item = spec_.nodes + static_cast<std::int64_t>(number);
        const OutOfService service = out_of_service(strike, cause, spec_.repair_sigma);
        if (shop_ && service.repaired && !strike.out_for) {
            shop_->admit(item, {service.time, true});
        } else {
            schedule(service.time, item);
        }
    }
    if (struck.slots.empty()) return;
    struck.strike.slot = struck.slots.front();
    const bool noticed = waiter_->nodes_failed(struck);
    if (nodes_leave) outages_[number].noticed = noticed;
}

// ---- out of service ----

void NodePool::schedule(Duration after, std::int64_t item) {
    if (item < spec_.nodes) expect_back(item, engine_.now() + after);
    engine_.schedule(engine_.now() + after, id_, static_cast<std::uint32_t>(item));
}

void NodePool::take_spare(std::uint32_t node) {
    book();
    spares_.erase(std::find(spares_.begin(), spares_.end(), node));
    place_[node] = out;
    broken_.erase(node);
}

void NodePool::send_away(std::uint32_t node, const Strike& strike, const FailureCause& cause) {
    const OutOfService service = out_of_service(strike, cause, spec_.repair_sigma);
    if (service.repaired) {
        if (repairs_.size() <= strike.cause) repairs_.resize(strike.cause + 1);
        ++repairs_[strike.cause];
    }
    if (service.repaired && !lemon_.empty() && strike.cure < spec_.lemons.cured_by_repair) {
        lemon_[node] = false;
    }
    if (history_.too_many(node, engine_.now())) {
        ++outcome_.quarantined;
        if (!spec_.quarantine.inspection) return;
        if (!lemon_.empty()) lemon_[node] = false;
        schedule(*spec_.quarantine.inspection, node);
    } else if (shop_ && service.repaired && !strike.out_for) {
        broken_[node] = strike;  // until the repair has helped
        shop_->admit(node, {service.time, true});
    } else {
        schedule(service.time, node);
    }
}

void NodePool::repaired(std::int64_t item, bool sound) {
    if (item >= spec_.nodes) return end_outage(static_cast<std::size_t>(item - spec_.nodes));
    const auto node = static_cast<std::uint32_t>(item);
    if (sound) broken_.erase(node);
    come_back(node);
}

void NodePool::end_outage(std::size_t number) {
    outages_[number].over = true;
    for (const std::uint32_t node : std::exchange(outages_[number].out, {})) come_back(node);
    // A job that was down meanwhile never knew.
    if (outages_[number].noticed) return;
    std::erase_if(shaded_, [&](const auto& shaded) { return shaded.second == number; });
}

void NodePool::handle(std::uint32_t kind) {
    if (kind >= first_staged) {
        const NextWave next = staged_[kind - first_staged];
        strike_domain(next.strike, next.waves_left);
    } else if (kind >= first_injected) {
        const InjectedStrike& injected = spec_.injected[kind - first_injected];
        Strike strike;
        strike.cause = injected.cause;
        strike.slot = injected.unit;
        strike.out_for = injected.duration;
        failed(strike);
    } else if (kind >= spec_.nodes) {
        end_outage(kind - static_cast<std::size_t>(spec_.nodes));
    } else {
        come_back(kind);
    }
}

void NodePool::go_out(std::uint32_t node, const FailureCause& cause) {
    ++in_repair_;
    if (absences_ == nullptr) return;
    absences_->push_back({node, engine_.now(), Instant(time_max), cause.name});
    absence_of_[node] = absences_->size() - 1;
}

void NodePool::expect_back(std::int64_t node, Instant at) {
    const auto absence = absence_of_.find(static_cast<std::uint32_t>(node));
    if (absence != absence_of_.end()) (*absences_)[absence->second].until = at;
}

void NodePool::come_back(std::uint32_t node) {
    expect_back(node, engine_.now());
    absence_of_.erase(node);
    book();
    --in_repair_;
    place_[node] = spare;
    spares_.push_front(node);  // the node that has rested longest goes first
    if (waiter_ != nullptr) waiter_->node_available();
}

// ---- the end ----

void NodePool::end() {
    book();
}

NodePool::Outcome NodePool::outcome() const {
    Outcome all = outcome_;
    if (shop_) all.repair = shop_->outcome();
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
