#include "models/scheduler/power_room.h"

#include <fmt/format.h>

#include "sim/check.h"

namespace railyard {

std::int64_t PowerRoom::need(JobIndex index) const {
    const WorldJob& job = jobs_[index];
    return job.gpus * spec_.parts_of(job) * spec_.power->per_part[job.kind];
}

std::optional<std::string> PowerRoom::never(JobIndex index) const {
    if (!spec_.power || need(index) <= spec_.power->room) return std::nullopt;
    const auto watts = [](std::int64_t milliwatts) {
        return to_text(Watts{real(milliwatts) * 1e-3});
    };
    return fmt::format(
        "draws up to {} more than its GPUs do while they are idle; the power budget leaves {}",
        watts(need(index)), watts(spec_.power->room));
}

bool PowerRoom::fits(JobIndex index) const {
    return !spec_.power || has_[index] || taken_ + need(index) <= spec_.power->room;
}

void PowerRoom::take(JobIndex index) {
    if (!spec_.power || has_[index]) return;
    has_[index] = true;
    taken_ += need(index);
    RY_CHECK(taken_ <= spec_.power->room);
}

void PowerRoom::give_back(JobIndex index) {
    if (!spec_.power || !has_[index]) return;
    has_[index] = false;
    taken_ -= need(index);
}

}  // namespace railyard
