#include "models/scheduler/world_carried.h"

#include <algorithm>
#include <utility>

#include "sim/integers.h"

namespace railyard {

Duration time_of(const std::vector<BookedSteps>& booked) {
    Duration sum{};
    for (const BookedSteps& each : booked) sum += each.time();
    return sum;
}

std::vector<BookedSteps> CarriedSteps::take(std::int64_t some) {
    std::vector<BookedSteps> out = booked;
    for (std::size_t i = 0; i < out.size(); ++i) {
        out[i].steps = in_proportion(some, steps, booked[i].steps);
        booked[i].steps -= out[i].steps;
    }
    steps -= some;
    return out;
}

void CarriedJob::count_in(std::int64_t from, std::int64_t to, std::int64_t done) {
    if (from != to) {
        step = {};  // the one under way begins anew
        begun.clear();
    }
    since_save = in_proportion(since_save, from, to);
    std::vector<CarriedSteps> out;
    std::vector<BookedSteps> of_none;  // that come to less than one step
    std::int64_t before = 0;           // as it was counted
    std::int64_t counted = 0;
    for (CarriedSteps& each : open) {
        before += each.steps;
        const std::int64_t now = std::min(done, in_proportion(before, from, to));
        of_none.insert(of_none.end(), each.booked.begin(), each.booked.end());
        if (now == counted) continue;
        out.push_back({now - std::exchange(counted, now), std::exchange(of_none, {})});
    }
    if (!out.empty()) {
        std::vector<BookedSteps>& last = out.back().booked;
        last.insert(last.end(), of_none.begin(), of_none.end());
    }
    open = std::move(out);
}

StepTime first_of(const StepTime& step, Duration time) {
    StepTime out;
    for (const auto& [category, part] : step_parts) {
        out.*part = std::min(step.*part, time);
        time -= out.*part;
    }
    return out;
}

StepTime rest_of(const StepTime& step, const StepTime& gone) {
    StepTime out = step;
    Duration more{};  // than there is of a part
    for (const auto& [category, part] : step_parts) {
        const Duration of_it = std::min(step.*part, gone.*part);
        out.*part -= of_it;
        more += gone.*part - of_it;
    }
    for (const auto& [category, part] : step_parts) {
        const Duration of_it = std::min(out.*part, more);
        out.*part -= of_it;
        more -= of_it;
    }
    return out;
}

}  // namespace railyard
