#include "models/failure/renewals.h"

#include <fmt/format.h>

namespace railyard {

Renewals::Renewals(CampaignEngine& engine, Target& target, std::size_t cause,
                   const std::string& name, const Hazard& hazard, std::int64_t units, Duration age,
                   std::uint64_t seed, std::uint64_t replica)
    : engine_(engine),
      target_(target),
      id_(engine.add(*this, "failure/" + name)),
      cause_(cause),
      hazard_(hazard),
      age_(age) {
    streams_.reserve(static_cast<std::size_t>(units));
    for (std::int64_t unit = 0; unit < units; ++unit) {
        streams_.emplace_back(seed, replica, fmt::format("failure/{}/{}", name, unit));
    }
}

void Renewals::start() {
    for (std::uint32_t unit = 0; unit < streams_.size(); ++unit) live(unit, age_);
}

void Renewals::live(std::uint32_t unit, Duration age) {
    const Duration left = hazard_.rest_of_life(streams_[unit], age);
    if (left > Instant::max() - engine_.now()) return;  // after the end of the clock
    engine_.schedule(engine_.now() + left, id_, unit);
}

void Renewals::handle(std::uint32_t unit) {
    Strike strike;
    strike.cause = cause_;
    strike.slot = unit;
    strike.draw_consequences(streams_[unit]);
    strike.draw_diagnosis(streams_[unit]);
    live(unit, Duration{});
    target_.failed(strike);
}

}  // namespace railyard
