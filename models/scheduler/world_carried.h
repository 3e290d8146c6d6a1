#pragma once
// What a job takes along into a campaign that goes on with it: the steps that it has done and not saved,
// which can still be lost there, and how far its run has come.

#include <cstdint>
#include <limits>
#include <optional>
#include <vector>

#include "models/scheduler/allocation.h"
#include "models/scheduler/mig.h"
#include "models/training/training.h"

namespace railyard {

// Steps that are alike, booked by an earlier campaign as if they were kept.
struct BookedSteps {
    static constexpr std::size_t by_this_one = std::numeric_limits<std::size_t>::max();

    std::size_t campaign = by_this_one;  // numbered by whoever runs one after another
    std::vector<std::int64_t> gpus{};    // parts, by its groups of nodes
    StepTime each{};
    std::int64_t steps = 0;

    Duration time() const { return each.duration() * steps; }
};
Duration time_of(const std::vector<BookedSteps>& booked);

// Open steps, as the campaign counts them that has them now.
struct CarriedSteps {
    std::int64_t steps = 0;
    std::vector<BookedSteps> booked{};

    // The share of so many of them, which leave.
    std::vector<BookedSteps> take(std::int64_t some);
};

struct CarriedJob {
    std::vector<CarriedSteps> open{};  // the oldest first
    // If it ran: the GPUs that it held, and where on its node's GPUs a slice was. None: they are gone.
    Allocation held{};
    std::optional<MigPlace> slice{};
    std::int64_t fewer_nodes = 0;  // that it ran on, of all that it asked for; 0: on all
    // What is left of its start, and what has passed of the stall under way.
    Duration prolog{}, restart{}, restore{};
    Duration stalled{};
    // The step under way, and what has been done of it: as parts of one step.
    StepTime step{};
    std::vector<BookedSteps> begun{};
    // One that saves to stores or tiers: steps since its last save began, when the next is due, and how many
    // each tier was offered.
    std::int64_t since_save = 0;
    Duration due_in{};
    std::vector<std::int64_t> offered{};

    // Another campaign counts `to` steps where this one counts `from`, and has done so many of them.
    void count_in(std::int64_t from, std::int64_t to, std::int64_t done);
};

// The first parts of a step, in their order, up to this time; and what is left of it after others.
StepTime first_of(const StepTime& step, Duration time);
StepTime rest_of(const StepTime& step, const StepTime& gone);

}  // namespace railyard
