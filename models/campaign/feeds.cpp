#include "models/campaign/feeds.h"

#include <fmt/format.h>

#include <algorithm>

#include "sim/check.h"
#include "sim/rng.h"

namespace railyard {

namespace {

constexpr std::uint32_t first_injected = 1U << 31;  // below: the number of a loop

}  // namespace

PowerProfile steady(Watts power) {
    return PowerProfile({{std::chrono::seconds(1), power}});
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
        const PowerProfile most = highest.times(real(behind));
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

PumpWatch::PumpWatch(CampaignEngine& engine, Renewals::Target& target, const PowerSpec& power,
                     GpuMean gpu_mean, std::uint64_t seed, std::uint64_t replica)
    : engine_(engine),
      target_(target),
      power_(power),
      id_(engine.add(*this, "pumps")),
      pumps_(engine, *this, power.pump->cause, "pump_loss", Hazard{power.pump->failure_rate},
             power.pump->loops, {}, seed, replica),
      gpu_mean_(std::move(gpu_mean)) {
    for (const InjectedStrike& each : power.injected_pump_losses) {
        injected_.push_back(each.drawn(seed, replica));
    }
}

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
    const Duration shutdown = lose_cooling(power_.node.gpu, power_.cooling.gpu, power_.throttle,
                                           pump.heat_capacity, gpu_mean_(strike.slot));
    if (pump.standby && pump.failover < shutdown) {
        ++ridden_through_;
        return;
    }
    const auto loop = static_cast<std::uint32_t>(strike.slot);
    if (!warming_.emplace(loop, strike).second) return;  // it already stands
    engine_.schedule(engine_.now() + shutdown, id_, loop);
}

void PumpWatch::handle(std::uint32_t loop) {
    if (loop >= first_injected) {
        return failed(injected_[loop - first_injected]);
    }
    const auto found = warming_.find(loop);
    RY_CHECK(found != warming_.end());
    const Strike strike = found->second;
    warming_.erase(found);
    target_.failed(strike);
}

Feeds::Feeds(CampaignEngine& engine, Renewals::Target& target, const PowerSpec& power,
             const FailureDomains& loops, std::int64_t nodes, std::int64_t parts_per_node,
             const PowerProfile& highest, std::uint64_t seed, std::uint64_t replica)
    : power_(power),
      loops_(loops),
      parts_per_node_(real(parts_per_node)),
      breaker_of_node_(static_cast<std::size_t>(nodes)),
      loop_of_node_(static_cast<std::size_t>(nodes)) {
    if (power.breaker) {
        breakers_.emplace(engine, target, power.breaker->cause, *power.breaker, nodes, highest,
                          seed, replica);
        behind_.resize(breakers_->count());
        alone_.resize(breakers_->count());
        for (std::size_t i = 0; i < behind_.size(); ++i) {
            const std::int64_t first = breakers_->number(i) * power.breaker->nodes;
            for (std::int64_t n = 0; n < breakers_->nodes(i); ++n) breaker_of_node_[first + n] = i;
            breakers_->set_load(i, load_of(i));
        }
    }
    if (!power.pump) return;
    for (std::int64_t loop = 0; loop < loops.count(); ++loop) {
        for (const std::int64_t node : loops.nodes(loop)) loop_of_node_[node] = loop;
    }
    const auto mean = [this](std::int64_t loop) { return gpu_mean(loop); };
    pumps_.emplace(engine, target, power, mean, seed, replica);
    pumps_->start();
}

double Feeds::nodes_of(const Running& job, const NodeShare& share) const {
    return real(share.gpus * job.parts) / parts_per_node_;
}

void Feeds::set(JobIndex job, const JobDraw& draw, const Allocation& gpus, std::int64_t parts) {
    const auto known = running_.find(job);
    if (known != running_.end() && known->second.parts == parts &&
        known->second.gpus.runs() == gpus.runs()) {
        known->second.draw = draw;
        return renew(known->second.breakers);
    }
    Touched touched = take_out(job);
    Running& now = running_[job] = {draw, gpus, parts, {}};
    for (const NodeShare& share : gpus) {
        const auto breaker = breaker_of_node_[share.node];
        if (!breaker) continue;
        behind_[*breaker][job] += nodes_of(now, share);
        now.breakers.insert(*breaker);
    }
    touched.insert(now.breakers.begin(), now.breakers.end());
    renew(touched);
}

void Feeds::leave(JobIndex job) {
    renew(take_out(job));
}

Feeds::Touched Feeds::take_out(JobIndex job) {
    const auto was = running_.extract(job);
    if (was.empty()) return {};
    for (const std::size_t breaker : was.mapped().breakers) behind_[breaker].erase(job);
    return was.mapped().breakers;
}

// One job alone goes back and forth between a few loads: they are worked out once.
void Feeds::renew(const Touched& touched) {
    for (const std::size_t breaker : touched) {
        const auto& jobs = behind_[breaker];
        if (jobs.size() != 1) {
            breakers_->set_load(breaker, load_of(breaker));
            continue;
        }
        const auto& [job, nodes] = *jobs.begin();
        const auto [known, is_new] =
            alone_[breaker].try_emplace({running_.at(job).draw.node, nodes});
        if (is_new) known->second = load_of(breaker);
        breakers_->set_load(breaker, known->second);
    }
}

// Each job's nodes swing together, and no job knows of another's steps.
Breaker::Load Feeds::load_of(std::size_t watched) {
    const Watts idle = power_.node.at(Activity::idle);
    double beside = real(breakers_->nodes(watched)) * idle.value;
    std::vector<PowerProfile> swinging;
    for (const auto& [job, nodes] : behind_[watched]) {
        const PowerProfile& step = *running_.at(job).draw.node;
        beside -= nodes * idle.value;
        if (step.levels().size() > 1) {
            swinging.push_back(step.times(nodes));
        } else {
            beside += step.times(nodes).peak().value;
        }
    }
    if (swinging.empty()) return breakers_->load(watched, steady({beside}));
    if (swinging.size() == 1) return breakers_->load(watched, swinging[0].times(1, {beside}));
    constexpr double grains = 1000;  // of the rating: far finer than breakers differ
    const Watts grain{power_.breaker->rating.value / grains};
    return breakers_->load(watched, independent_sum(swinging, {beside}, grain));
}

Watts Feeds::gpu_mean(std::int64_t loop) const {
    const Watts idle = power_.node.gpu.idle;
    double over_idle = 0;  // of its nodes
    for (const auto& [job, running] : running_) {
        for (const NodeShare& share : running.gpus) {
            if (loop_of_node_[share.node] != loop) continue;
            over_idle += nodes_of(running, share) * (running.draw.gpu_mean.value - idle.value);
        }
    }
    return {idle.value + over_idle / real(loops_.nodes(loop).size())};
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
