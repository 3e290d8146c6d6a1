#include "models/campaign/feeds.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "sim/check.h"
#include "sim/integers.h"
#include "sim/rng.h"

namespace railyard {

namespace {

constexpr std::uint32_t first_injected = 1U << 31;  // below: the number of a loop

PowerProfile steady(Watts power) {
    return PowerProfile({{std::chrono::seconds(1), power}});
}

}  // namespace

PowerProfile node_load(const PowerSpec& power, JobPhase phase) {
    switch (phase) {
        case JobPhase::running:
            return power.node_step;
        case JobPhase::storm_stall:
        case JobPhase::detection:
            return steady(power.node.at(Activity::communication));
        default:
            return steady(power.node.at(Activity::idle));
    }
}

BreakerWatch::BreakerWatch(CampaignEngine& engine, Renewals::Target& target, std::size_t cause,
                           const PowerSpec& power, std::int64_t nodes, JobNodesBehind job_nodes,
                           std::uint64_t seed, std::uint64_t replica)
    : engine_(engine),
      target_(target),
      cause_(cause),
      power_(power),
      job_nodes_(std::move(job_nodes)),
      id_(engine.add(*this, "breakers")) {
    const BreakerSpec& spec = *power.breaker;
    for (std::int64_t first = 0, number = 0; first < nodes; first += spec.nodes, ++number) {
        RandomStream stream(seed, replica, fmt::format("breaker/{}", number));
        constexpr double least = 0.5;  // of the rating: no factory lets worse ones out
        const Watts trips_at{spec.rating.value *
                             std::max(least, 1 + spec.tolerance * stream.normal())};
        const std::int64_t behind = std::min(spec.nodes, nodes - first);
        const Breaker breaker(spec.curve, trips_at);
        const PowerProfile step = power.node_step.times(static_cast<double>(behind));
        const bool could = breaker.until_trip(breaker.load(step)).has_value();
        if (could) watched_.push_back({number, behind, breaker, nullptr, {}});
    }
}

void BreakerWatch::carry() {
    const Duration span = engine_.now() - carried_until_;
    carried_until_ = engine_.now();
    for (Watched& w : watched_) {
        if (w.load != nullptr) w.breaker.carry(*w.load, span);
    }
}

const Breaker::Load& BreakerWatch::load_of(Watched& w, JobPhase phase, std::int64_t in_job) const {
    const auto [found, is_new] = w.loads.try_emplace({phase, in_job});
    if (is_new) {
        const double others = static_cast<double>(w.nodes - in_job);
        found->second = w.breaker.load(node_load(power_, phase)
                                           .times(static_cast<double>(in_job),
                                                  {others * power_.node.at(Activity::idle).value}));
    }
    return found->second;
}

void BreakerWatch::phase_changed(JobPhase now) {
    if (watched_.empty()) return;
    carry();
    const std::vector<std::int64_t> job_nodes = job_nodes_();
    for (Watched& w : watched_) {
        w.load = &load_of(w, now, job_nodes[static_cast<std::size_t>(w.number)]);
    }
    look_ahead();
}

void BreakerWatch::look_ahead() {
    engine_.cancel(next_);
    std::optional<Duration> soonest;
    std::uint32_t which = 0;
    for (std::uint32_t i = 0; i < watched_.size(); ++i) {
        const Watched& w = watched_[i];
        if (w.load == nullptr) continue;
        const std::optional<Duration> trips = w.breaker.until_trip(*w.load);
        if (!trips || (soonest && *soonest <= *trips)) continue;
        soonest = trips;
        which = i;
    }
    if (!soonest || *soonest > Instant::max() - engine_.now()) return;
    next_ = engine_.schedule_cancellable(engine_.now() + *soonest, id_, which);
}

void BreakerWatch::handle(std::uint32_t watched) {
    carry();
    Watched& w = watched_[watched];
    w.breaker.reset();
    w.load = nullptr;
    ++trips_;
    Strike strike;
    strike.cause = cause_;
    strike.slot = w.number;
    target_.failed(strike);
    look_ahead();
}

PumpWatch::PumpWatch(CampaignEngine& engine, Renewals::Target& target, const PowerSpec& power,
                     std::uint64_t seed, std::uint64_t replica)
    : engine_(engine),
      target_(target),
      power_(power),
      id_(engine.add(*this, "pumps")),
      pumps_(engine, *this, power.pump->cause, "pump_loss", Hazard{power.pump->failure_rate},
             power.pump->loops, {}, seed, replica) {}

void PumpWatch::start() {
    pumps_.start();
    const std::vector<InjectedStrike>& injected = power_.pump->injected;
    for (std::uint32_t i = 0; i < injected.size(); ++i) {
        engine_.schedule(Instant(injected[i].at), id_, first_injected + i);
    }
}

void PumpWatch::failed(const Strike& strike) {
    ++losses_;
    const PumpSpec& pump = *power_.pump;
    const Watts gpu = running_ ? power_.gpu_mean : power_.node.gpu.idle;
    const CoolingLoss loss =
        lose_cooling(power_.node.gpu, power_.cooling.gpu, power_.throttle, pump.heat_capacity, gpu);
    if (pump.standby && pump.failover < loss.shuts_down_after) {
        ++ridden_through_;
        return;
    }
    const auto loop = static_cast<std::uint32_t>(strike.slot);
    if (!warming_.emplace(loop, strike).second) return;  // it already stands
    engine_.schedule(engine_.now() + loss.shuts_down_after, id_, loop);
}

void PumpWatch::handle(std::uint32_t loop) {
    if (loop >= first_injected) {
        const InjectedStrike& injected = power_.pump->injected[loop - first_injected];
        Strike strike;
        strike.cause = injected.cause;
        strike.slot = injected.unit;
        strike.out_for = injected.duration;
        failed(strike);
        return;
    }
    const auto found = warming_.find(loop);
    RY_CHECK(found != warming_.end());
    const Strike strike = found->second;
    warming_.erase(found);
    target_.failed(strike);
}

Feeds::Feeds(CampaignEngine& engine, NodePool& nodes, const PowerSpec& power,
             const NodePool::Spec& cluster, std::uint64_t seed, std::uint64_t replica) {
    if (power.breaker) {
        const auto job_nodes = [&nodes, &cluster, each = power.breaker->nodes] {
            std::vector<std::int64_t> out(static_cast<std::size_t>(ceil_div(cluster.nodes, each)));
            for (std::int64_t slot = 0; slot < cluster.job_nodes; ++slot) {
                const std::int64_t node = nodes.node_in(slot);
                if (node >= 0) ++out[static_cast<std::size_t>(node / each)];
            }
            return out;
        };
        breakers_.emplace(engine, nodes, power.breaker->cause, power, cluster.nodes, job_nodes,
                          seed, replica);
    }
    if (power.pump) pumps_.emplace(engine, nodes, power, seed, replica);
}

void Feeds::start() {
    if (pumps_) pumps_->start();
}

void Feeds::phase_changed(JobPhase now) {
    if (breakers_) breakers_->phase_changed(now);
    if (pumps_) pumps_->phase_changed(now);
}

FeedCounts Feeds::counts() const {
    FeedCounts out;
    if (breakers_) out.breaker_trips = breakers_->trips();
    if (pumps_) {
        out.pump_losses = pumps_->losses();
        out.pump_losses_ridden_through = pumps_->ridden_through();
    }
    return out;
}

}  // namespace railyard
