#pragma once
// The most that a job can keep and the least that its cluster can draw, in closed form: bounds on means over
// luck that hold whatever else a campaign has in it.
//
// The job works tau between saves, each stalls it for S, failures that lose all since the last save come
// with a rate of at least lambda, and it is down for D after each. Of a process that has these and nothing
// else the share of time in steps that are kept is, by renewal, in the long run
//
//     f = tau lambda / ((exp(lambda (tau + S)) - 1) (1 + lambda D))
//
// (Daly 2006 has it as a time to solution). Let v(x) be the relative value of being x into a cycle, v(0) = 0.
// What is kept + v(x) - f t is then a martingale of that process, and of every one with more failures, longer
// stalls, longer ways back and slower steps a supermartingale: a failure is never a gain, since
// w(x) + v(x) + f D starts at f D and only grows along a cycle, w being what is not saved. And
// -v(x) <= S + (1 - exp(-lambda (tau + S))) (tau + S + D). So a campaign that begins with its state just
// restored keeps f T plus that at most, in the mean.

#include <optional>

#include "models/campaign/scenario.h"

namespace railyard {

struct KeptBound {
    Duration step{};  // in which intervals of time are counted
    std::int64_t interval_steps = 0;
    double step_s = 0;          // the shortest that it can be
    double stall_s = 0;         // of a save, at least
    double failures_per_s = 0;  // that lose what is not saved, at least
    double down_s = 0;          // after one, at least, in their mean
    double campaign_s = 0;

    // An upper bound on the share of the campaign's time in kept steps, each at its shortest.
    double share(std::int64_t steps_between_saves) const;
};
// None: the job may save at other times than these, has no interval in steps, or no given end; nothing is
// known then but that no share is more than 1.
std::optional<KeptBound> kept_bound(const Scenario& scenario);

// At the meter, at least.
struct LeastEnergy {
    double idle_watts = 0;       // at all times
    double joules_per_step = 0;  // more, of each step that is kept
};
LeastEnergy least_energy(const Scenario& scenario);

}  // namespace railyard
