#include "models/campaign/kept_bound.h"

#include <algorithm>

#include "sim/rng.h"

namespace railyard {

double KeptBound::share(std::int64_t steps_between_saves) const {
    const double tau = real(steps_between_saves) * step_s;
    const double cycle = tau + stall_s;
    const double expected = failures_per_s * cycle;  // failures in it
    constexpr double small = 1e-6;                   // e^x - 1 is then x or a little more
    const double lost = expected < small ? expected : portable_exp(expected) - 1;
    const double in_long_run =
        expected > 0 ? tau * failures_per_s / (lost * (1 + failures_per_s * down_s)) : tau / cycle;
    const double at_ends = stall_s + (1 - portable_exp(-expected)) * (cycle + down_s);
    return std::min(1.0, in_long_run + at_ends / campaign_s);
}

namespace {

// It saves every so many steps, and never because it is about to stop.
bool saves_by_steps_alone(const Scenario& s) {
    const CheckpointSpec& save = s.job.checkpoint;
    const bool stops = s.job.maintenance.every > Duration{} || !s.job.stages.empty() ||
                       !s.job.pauses.empty() || s.job.recovery.policy == RecoveryPolicy::shrink ||
                       std::ranges::any_of(s.causes, [](const FailureCause& cause) {
                           return cause.slow.has_value();
                       });
    return !s.world && !stops && save.mode != CheckpointMode::none && save.interval_steps > 0 &&
           s.job.recovery.recompute;
}

double shortest_step(const Scenario& s) {
    Duration step = s.job.step.duration();
    for (const NetworkDraw& draw : s.draws) step = std::min(step, draw.step.duration());
    if (s.job.data) step -= s.job.step.data_wait;  // while the store is faster than usual
    return seconds(step);
}

// Strikes any of the job's nodes as a Poisson stream, and ends its processes.
bool always_interrupts(const FailureCause& cause) {
    return cause.domain == DomainKind::node && !cause.silent && !cause.slow && !cause.storm &&
           cause.rate_per_node.per_second > 0;
}

}  // namespace

std::optional<KeptBound> kept_bound(const Scenario& s) {
    if (!saves_by_steps_alone(s) || s.duration <= Duration{} || s.job.target_steps > 0) return {};
    KeptBound out;
    out.step = s.job.step.duration();
    out.interval_steps = s.job.checkpoint.interval_steps;
    out.step_s = shortest_step(s);
    out.campaign_s = seconds(s.duration);
    if (s.job.checkpoint.full_every == 1) out.stall_s = seconds(s.job.checkpoint.stall_alone);
    if (out.step_s <= 0) return {};
    if (!s.failures) return out;
    double down = 0;
    for (const FailureCause& cause : s.causes) {
        if (!always_interrupts(cause)) continue;
        const double rate = cause.rate_per_node.per_second * real(s.job.nodes);
        Duration back =
            cause.detection + s.job.recovery.restart + s.job.recovery.restore.value_or(Duration{});
        if (cause.remedy != Remedy::restart) back += s.job.recovery.replacement;
        out.failures_per_s += rate;
        down += rate * seconds(back);
    }
    if (out.failures_per_s > 0) out.down_s = down / out.failures_per_s;
    return out;
}

LeastEnergy least_energy(const Scenario& s) {
    if (s.world) return {};
    const double low =
        std::min(s.power.of(Category::idle).value, s.power.of(Category::repair).value);
    const double pue = s.power.cooling.pue;
    LeastEnergy out;
    out.idle_watts =
        pue * (real(s.nodes.nodes) * low + s.power.network.value + s.power.storage.value);
    if (!s.draws.empty() || !s.job.stages.empty()) return out;  // steps of other parts
    const StepTime& step = s.job.step;
    const auto more = [&](Category category, Duration part) {
        return (s.power.of(category).value - low) * seconds(part);
    };
    out.joules_per_step =
        pue * real(s.job.nodes) *
        std::max(0.0, more(Category::productive, step.compute) +
                          more(Category::exposed_communication, step.exposed_communication) +
                          more(Category::pipeline_bubble, step.bubble) +
                          more(Category::straggler_wait, step.straggler_wait));
    return out;
}

}  // namespace railyard
