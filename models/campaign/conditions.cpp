#include <algorithm>

#include "models/campaign/sections.h"
#include "sim/parallel.h"

namespace railyard {

StepModel steps_of(const Scenario& s, Fidelity fidelity, const NetworkDraw* draw,
                   GpuNetwork* sound) {
    return StepModel(step_work(s), [&s, fidelity, draw, sound](const auto& faults) {
        return communicators(s, fidelity, faults, false, draw, sound);
    });
}

Duration held_up(StepModel& steps, const ParallelPlan& plan, const std::vector<PartFault>& faults,
                 const std::vector<PartFault>& everywhere) {
    const Duration sound = steps.step(plan).duration();
    return std::max(Duration{}, steps.step(plan, faults, everywhere).duration() - sound);
}

ParallelPlan with_replicas(const ParallelPlan& plan, std::int64_t data) {
    ParallelPlan smaller = plan;
    smaller.global_batch = plan.global_batch / plan.data * data;
    smaller.data = data;
    return smaller;
}

// A synchronous job waits for its slowest part: several of one kind are as one, and so the conditions are
// the sets of kinds. Each kind is tried on the job's first node.
std::vector<Duration> slowed_steps(const Scenario& s, StepModel& steps, const ParallelPlan& plan) {
    std::vector<Duration> slowed(std::size_t{1} << s.slow_parts.size());
    const Duration usual = steps.step(plan, s.faults).duration();
    for (std::size_t set = 1; set < slowed.size(); ++set) {
        std::vector<PartFault> faults = s.faults;
        for (std::size_t i = 0; i < s.slow_parts.size(); ++i) {
            if (set >> i & 1) faults.push_back(s.slow_parts[i]);
        }
        slowed[set] = std::max(Duration{}, steps.step(plan, faults).duration() - usual);
    }
    return slowed;
}

namespace {

std::vector<Duration> given_slowdowns(const Scenario& s) {
    const double step_s = seconds(s.job.step.beside_data());
    std::vector<Duration> slowed;
    for (std::uint32_t set = 0; set < 1U << s.given_slowdowns.size(); ++set) {
        slowed.push_back(from_seconds(step_s * worst_slowdown(s.given_slowdowns, set)));
    }
    return slowed;
}

void model_conditions_on(const Scenario& s, const NetworkDraw* draw, JobSteps& of) {
    StepModel whole = steps_of(s, s.fidelity, draw);
    of.slowed = slowed_steps(s, whole, s.plan);
    for (SmallerJob& size : of.smaller) {
        const ParallelPlan plan = with_replicas(s.plan, size.replicas);
        // On a network the ranks that are left are on the first nodes.
        std::optional<Scenario> with_fewer;
        if (s.fidelity != Fidelity::analytic) {
            with_fewer = s;
            with_fewer->job.nodes = size.nodes;
        }
        StepModel steps = steps_of(with_fewer ? *with_fewer : s, s.fidelity, draw);
        size.step = steps.step(plan);
        size.step.degraded = held_up(steps, plan, s.faults);
        size.step.data_wait = s.job.step.data_wait;
        size.slowed = slowed_steps(s, steps, plan);
    }
}

}  // namespace

void model_conditions(Scenario& s, unsigned threads) {
    if (s.given_step) {
        s.job.slowed = given_slowdowns(s);
        return;
    }
    if (s.slow_parts.empty() && s.job.smaller.empty()) return;
    try {
        for (NetworkDraw& draw : s.draws) draw.smaller = s.job.smaller;
        // s.job is set last: all draws read it.
        parallel_for(s.draws.size(), threads, nullptr,
                     [&](std::size_t k) { model_conditions_on(s, &s.draws[k], s.draws[k]); });
        if (const NetworkDraw* const usual = usual_draw(s)) {
            s.job.smaller = usual->smaller;
            s.job.slowed = usual->slowed;
        } else {
            model_conditions_on(s, nullptr, s.job);
        }
    } catch (const NoPath& no_path) {
        s.no_path = no_path.what();
    }
}

void leave_out_failures(Scenario& s) {
    s.causes.clear();
    s.nodes.injected.clear();
    s.network_faults = {};
    s.power.breaker.reset();
    s.power.pump.reset();
    for (StoreSetup& store : s.stores) store.failures.reset();
}

}  // namespace railyard
