#include "models/training/step_traffic.h"

#include <algorithm>
#include <cmath>
#include <utility>

namespace railyard {

namespace {

double communication_seconds(const CriticalPath& path) {
    double sum = 0;
    for (const PathPart& part : path) {
        if (part.kind == StepKind::communication) sum += part.seconds;
    }
    return sum;
}

// The same plan with nothing beside its collectives, so that all of their time is seen.
ParallelPlan without_overlap(ParallelPlan plan) {
    plan.overlap_data = plan.overlap_tensor = plan.overlap_context = plan.overlap_pipeline = false;
    plan.overlap_expert = false;
    return plan;
}

}  // namespace

const std::vector<double>& traffic_slowdowns() {
    static const std::vector<double> slowdowns = {1, 1.1, 1.25, 1.5, 1.75, 2, 2.5, 3, 4, 6, 8, 16};
    return slowdowns;
}

double TrafficPart::longer_at(double slowdown) const {
    const std::vector<double>& at = traffic_slowdowns();
    std::size_t i = 1;
    while (i + 1 < at.size() && at[i] < slowdown) ++i;
    const double into = (slowdown - at[i - 1]) / (at[i] - at[i - 1]);
    return longer_s[i - 1] + into * (longer_s[i] - longer_s[i - 1]);
}

StepTraffic endless_traffic(LinkLoads loads) {
    StepTraffic out;
    out.step_s = 1;
    out.endless = true;
    TrafficPart part;
    part.loads = std::move(loads);
    part.busy_s = 1;
    for (const double slowdown : traffic_slowdowns()) part.longer_s.push_back(slowdown - 1);
    out.parts.push_back(std::move(part));
    return out;
}

Bandwidth beside_others(Bandwidth alone, double longer_s) {
    const double left = real(alone.bits_per_second()) / (1 + longer_s);
    return Bandwidth::bits_per_second(
        std::min(alone.bits_per_second(), static_cast<std::int64_t>(std::ceil(left)) + 1));
}

StepTraffic step_traffic(const StepWork& work, const ParallelPlan& plan, Communicators& groups) {
    const auto step = [&] { return seconds(step_of(work, plan, groups).duration()); };
    const ParallelPlan bare = without_overlap(plan);
    const auto communication = [&] {
        if (work.trace) return trace_message_seconds(*work.trace, groups);
        return communication_seconds(
            critical_path(work.model, bare, groups, work.bytes, work.optimizer_traffic));
    };
    StepTraffic out;
    out.step_s = step();
    for (Communicator* c : groups.between_switches()) {
        const Communicator alone = *c;
        TrafficPart part;
        for (const double slowdown : traffic_slowdowns()) {
            *c = alone.with_network_slowed(slowdown);
            part.longer_s.push_back(std::max(0.0, step() - out.step_s));
        }
        // Slowed so far that the network alone sets the pace, time is in proportion to its bytes.
        const double most = traffic_slowdowns().back();
        const double slow = communication();
        *c = alone.with_network_slowed(most / 2);
        part.busy_s = (slow - communication()) / (most / 2);
        *c = alone;
        if (part.busy_s <= 0) continue;  // asked for, and not used
        part.loads = alone.loads;
        out.parts.push_back(std::move(part));
    }
    return out;
}

}  // namespace railyard
