#include "models/failure/node_faults.h"

#include "models/failure/failure.h"

namespace railyard {

NodeFaults::NodeFaults(CampaignEngine& engine, const NodeFailures& spec,
                       const std::vector<FailureCause>& causes, std::int64_t nodes,
                       std::uint64_t seed, std::uint64_t replica)
    : engine_(engine),
      causes_(causes),
      spec_(spec),
      id_(engine.add(*this, "nodes")),
      nodes_(static_cast<std::size_t>(nodes)),
      history_(spec.quarantine, nodes),
      outages_on_(nodes_),
      mended_(nodes_),
      repairs_(causes.size()) {
    if (spec.lemons.fraction > 0) {
        RandomStream stream(seed, replica, "lemon");
        lemon_.resize(nodes_);
        for (std::size_t i = 0; i < nodes_; ++i) lemon_[i] = stream.chance(spec.lemons.fraction);
    }
    for (const InjectedStrike& each : spec.injected) injected_.push_back(each.drawn(seed, replica));
    if (spec.repair.limited()) shop_.emplace(engine, spec.repair, *this, seed, replica);
    for (std::size_t i = 0; i < causes.size(); ++i) {
        const FailureCause& cause = causes[i];
        if (cause.life.rate.per_second <= 0) continue;
        const bool of_nodes = cause.domain == DomainKind::node;
        const std::int64_t units =
            of_nodes ? nodes : spec.domains[static_cast<std::size_t>(cause.domain)].count();
        lives_.push_back(std::make_unique<Renewals>(engine, *this, i, cause.name, cause.life, units,
                                                    cause.age, seed, replica));
    }
}

void NodeFaults::start_faults() {
    for (const auto& lives : lives_) lives->start();
    for (std::size_t i = 0; i < spec_.injected.size(); ++i) {
        schedule(spec_.injected[i].at, injected, i);
    }
}

EventId NodeFaults::schedule(Duration after, std::uint32_t kind, std::size_t index) {
    const Instant at = engine_.now() + after;
    if (kind == node_is_back) back_at(index, at);
    return engine_.schedule_cancellable(at, id_, static_cast<std::uint32_t>(index * kinds + kind));
}

std::span<const std::int64_t> NodeFaults::nodes_of(const Outage& outage) const {
    const auto kind = static_cast<std::size_t>(cause_of(outage.strike).domain);
    return spec_.domains[kind].nodes(outage.strike.slot);
}

// ---- strikes ----

void NodeFaults::failed(const Strike& strike) {
    const FailureCause& cause = cause_of(strike);
    if (cause.domain == DomainKind::node) return strike_node(strike);
    strike_domain(strike, cause.staged.further);
}

void NodeFaults::strike_domain(const Strike& strike, std::int64_t waves_left) {
    const FailureCause& cause = cause_of(strike);
    const std::size_t number = outages_.size();
    ++counts_.domain_failures;
    outages_.push_back({strike, waves_left});
    const FailureDomains& domains = spec_.domains[static_cast<std::size_t>(cause.domain)];
    if (waves_left > 0 && strike.slot + 1 < domains.count()) {
        schedule(cause.staged.every, next_wave, number);
    }
    const std::span<const std::int64_t> members = nodes_of(outages_[number]);
    if (takes_nodes(strike)) {
        for (const std::int64_t node : members) ++outages_on_[node];
    }
    std::vector<std::size_t> broken;
    for (const std::int64_t member : members) {
        const auto node = static_cast<std::size_t>(member);
        if (domain_breaks(node, strike)) broken.push_back(node);
    }
    if (takes_nodes(strike)) mend(nodes_ + number, strike);
    if (!broken.empty()) domain_is_felt(strike, broken);
}

void NodeFaults::end_outage(std::size_t number) {
    for (const std::int64_t member : nodes_of(outages_[number])) {
        const auto node = static_cast<std::size_t>(member);
        if (--outages_on_[node] > 0) continue;
        if (mended_[node]) {
            mended(node, *mended_[node]);
        } else {
            outages_over(node);
        }
    }
}

// ---- out of service ----

void NodeFaults::send_away(std::size_t node, const Strike& strike, bool outage) {
    if (outage) {
        mended_[node] = true;
        if (outages_on_[node] == 0) schedule({}, node_is_back, node);
        return;
    }
    if (lock_out(node)) return;
    const bool repair = out_of_service(strike, cause_of(strike), spec_.repair_sigma).repaired;
    if (repair) ++repairs_[strike.cause];
    if (repair && !lemon_.empty() && strike.cure < spec_.lemons.cured_by_repair) {
        lemon_[node] = false;
    }
    mend(node, strike);
}

void NodeFaults::send_away_sound(std::size_t node, Duration reset_time) {
    if (!lock_out(node)) schedule(reset_time, node_is_back, node);
}

// It is back as soon as no outage is on it.
void NodeFaults::mended(std::size_t node, bool sound) {
    mended_[node] = sound;
    if (outages_on_[node] > 0) return;
    mended_[node].reset();
    come_back(node, sound);
}

bool NodeFaults::lock_out(std::size_t node) {
    if (!history_.too_many(static_cast<std::int64_t>(node), engine_.now())) return false;
    ++counts_.quarantined;
    if (!spec_.quarantine.inspection) return true;
    if (!lemon_.empty()) lemon_[node] = false;
    schedule(*spec_.quarantine.inspection, node_is_back, node);
    return true;
}

void NodeFaults::mend(std::size_t item, const Strike& strike) {
    const OutOfService service = out_of_service(strike, cause_of(strike), spec_.repair_sigma);
    if (shop_ && service.repaired && !strike.out_for) {
        if (item < nodes_) in_shop(item, strike);
        shop_->admit(static_cast<std::int64_t>(item), {service.time, true});
    } else if (item < nodes_) {
        schedule(service.time, node_is_back, item);
    } else {
        schedule(service.time, outage_is_over, item - nodes_);
    }
}

void NodeFaults::repaired(std::int64_t item, bool sound) {
    const auto number = static_cast<std::size_t>(item);
    if (number >= nodes_) return end_outage(number - nodes_);
    mended(number, sound);
}

NodeFailureCounts NodeFaults::counts() const {
    NodeFailureCounts all = counts_;
    if (shop_) all.repair = shop_->outcome();
    return all;
}

void NodeFaults::handle(std::uint32_t event) {
    const std::size_t index = event / kinds;
    switch (event % kinds) {
        case node_is_back:
            mended(index, true);
            break;
        case outage_is_over:
            end_outage(index);
            break;
        case next_wave: {
            Strike next = outages_[index].strike;
            ++next.slot;
            strike_domain(next, outages_[index].waves_left - 1);
            break;
        }
        case injected:
            failed(injected_[index]);
            break;
        default:
            handle_own(event % kinds, index);
    }
}

}  // namespace railyard
