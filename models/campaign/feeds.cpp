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

}  // namespace

PowerProfile steady(Watts power) {
    return PowerProfile({{std::chrono::seconds(1), power}});
}

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

Breakers::Breakers(CampaignEngine& engine, Renewals::Target& target, std::size_t cause,
                   const BreakerSpec& spec, std::int64_t nodes, const PowerProfile& highest,
                   std::uint64_t seed, std::uint64_t replica)
    : engine_(engine), target_(target), cause_(cause), id_(engine.add(*this, "breakers")) {
    for (std::int64_t first = 0, number = 0; first < nodes; first += spec.nodes, ++number) {
        RandomStream stream(seed, replica, fmt::format("breaker/{}", number));
        constexpr double least = 0.5;  // of the rating: no factory lets worse ones out
        const Watts trips_at{spec.rating.value *
                             std::max(least, 1 + spec.tolerance * stream.normal())};
        const std::int64_t behind = std::min(spec.nodes, nodes - first);
        const Breaker breaker(spec.curve, trips_at);
        const PowerProfile most = highest.times(static_cast<double>(behind));
        const bool could = breaker.until_trip(breaker.load(most)).has_value();
        if (could) watched_.push_back({number, behind, breaker});
    }
}

void Breakers::set_load(std::size_t watched, Breaker::Load load) {
    Watched& w = watched_[watched];
    w.breaker.carry(w.load, engine_.now() - w.since);
    w.load = std::move(load);
    w.since = engine_.now();
    engine_.cancel(w.trip);
    const std::optional<Duration> trips = w.breaker.until_trip(w.load);
    if (!trips || *trips > Instant::max() - engine_.now()) return;
    w.trip = engine_.schedule_cancellable(engine_.now() + *trips, id_,
                                          static_cast<std::uint32_t>(watched));
}

void Breakers::handle(std::uint32_t watched) {
    Watched& w = watched_[watched];
    w.breaker.reset();
    w.load = {};
    ++trips_;
    Strike strike;
    strike.cause = cause_;
    strike.slot = w.number;
    target_.failed(strike);
}

BreakerWatch::BreakerWatch(CampaignEngine& engine, Renewals::Target& target, std::size_t cause,
                           const PowerSpec& power, std::int64_t nodes, JobNodesBehind job_nodes,
                           std::uint64_t seed, std::uint64_t replica)
    : power_(power),
      job_nodes_(std::move(job_nodes)),
      breakers_(engine, target, cause, *power.breaker, nodes, power.node_step, seed, replica),
      loads_(breakers_.count()) {}

const Breaker::Load& BreakerWatch::load_of(std::size_t watched, JobPhase phase,
                                           std::int64_t in_job) {
    const auto [found, is_new] = loads_[watched].try_emplace({phase, in_job});
    if (is_new) {
        const double others = static_cast<double>(breakers_.nodes(watched) - in_job);
        found->second =
            breakers_.load(watched, node_load(power_, phase)
                                        .times(static_cast<double>(in_job),
                                               {others * power_.node.at(Activity::idle).value}));
    }
    return found->second;
}

void BreakerWatch::phase_changed(JobPhase now) {
    if (breakers_.count() == 0) return;
    const std::vector<std::int64_t> job_nodes = job_nodes_();
    for (std::size_t i = 0; i < breakers_.count(); ++i) {
        const auto number = static_cast<std::size_t>(breakers_.number(i));
        breakers_.set_load(i, load_of(i, now, job_nodes[number]));
    }
}

PumpWatch::PumpWatch(CampaignEngine& engine, Renewals::Target& target, const PowerSpec& power,
                     GpuMean gpu_mean, std::uint64_t seed, std::uint64_t replica)
    : engine_(engine),
      target_(target),
      power_(power),
      id_(engine.add(*this, "pumps")),
      pumps_(engine, *this, power.pump->cause, "pump_loss", Hazard{power.pump->failure_rate},
             power.pump->loops, {}, seed, replica),
      gpu_mean_(std::move(gpu_mean)) {}

void PumpWatch::start() {
    pumps_.start();
    const std::vector<InjectedStrike>& injected = power_.injected_pump_losses;
    for (std::uint32_t i = 0; i < injected.size(); ++i) {
        engine_.schedule(Instant(injected[i].at), id_, first_injected + i);
    }
}

void PumpWatch::failed(const Strike& strike) {
    ++losses_;
    const PumpSpec& pump = *power_.pump;
    const CoolingLoss loss = lose_cooling(power_.node.gpu, power_.cooling.gpu, power_.throttle,
                                          pump.heat_capacity, gpu_mean_(strike.slot));
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
        const InjectedStrike& injected = power_.injected_pump_losses[loop - first_injected];
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
    if (!power.pump) return;
    const auto gpu_mean = [this, &power](std::int64_t) {
        return running_ ? power.gpu_mean : power.node.gpu.idle;
    };
    pumps_.emplace(engine, nodes, power, gpu_mean, seed, replica);
}

void Feeds::start() {
    if (pumps_) pumps_->start();
}

void Feeds::phase_changed(JobPhase now) {
    running_ = now == JobPhase::running;
    if (breakers_) breakers_->phase_changed(now);
}

FeedCounts Feeds::counts() const {
    return count_feeds(breakers_ ? &breakers_->breakers() : nullptr, pumps_ ? &*pumps_ : nullptr);
}

FeedCounts count_feeds(const Breakers* breakers, const PumpWatch* pumps) {
    FeedCounts out;
    if (breakers != nullptr) out.breaker_trips = breakers->trips();
    if (pumps != nullptr) {
        out.pump_losses = pumps->losses();
        out.pump_losses_ridden_through = pumps->ridden_through();
    }
    return out;
}

}  // namespace railyard
