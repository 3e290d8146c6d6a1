#include "models/failure/slow_parts.h"

#include <algorithm>
#include <utility>

namespace railyard {

double worst_slowdown(const std::vector<double>& slowdowns, std::uint32_t conditions) {
    double most = 0;
    for (std::size_t i = 0; i < slowdowns.size(); ++i) {
        if (conditions >> i & 1) most = std::max(most, slowdowns[i]);
    }
    return most;
}

SlowParts::SlowParts(CampaignEngine& engine, const SearchSpec& search,
                     const std::vector<FailureCause>& causes, Owner& owner, std::size_t places)
    : engine_(engine),
      search_(search),
      causes_(causes),
      owner_(owner),
      id_(engine.add(*this, "slow parts")),
      here_(places),
      conditions_(places) {}

void SlowParts::schedule(Duration after, Kind kind, std::size_t part) {
    if (after > Instant::max() - engine_.now()) return;
    engine_.schedule(engine_.now() + after, id_, static_cast<std::uint32_t>(part * kinds + kind));
}

// Health checks look at all nodes, comparisons at those that run.
void SlowParts::strike(std::size_t place, const Strike& strike, bool in_use) {
    const SlowPart& slow = *causes_[strike.cause].slow;
    const std::size_t number = parts_.size();
    ++counts_.slow;
    parts_.push_back({place, strike});
    here_[place].push_back(number);
    SearchSpec checks = search_;
    checks.compare = Duration{};
    schedule(checks.found_after(strike, engine_.now(), 0), found, number);
    if (slow.lasts > Duration{}) schedule(slow.lasts, over, number);
    recount(place);
    if (in_use) compare(place);
}

void SlowParts::compare(std::size_t place) {
    if (search_.compare == Duration{}) return;
    for (const std::size_t number : here_[place]) {
        Part& part = parts_[number];
        const double slowdown = owner_.slowdown(causes_[part.strike.cause].slow->condition);
        if (slowdown < search_.compare_above || std::exchange(part.comparing, true)) continue;
        schedule(search_.compare, compared, number);
    }
}

void SlowParts::cure(std::size_t part) {
    const std::size_t place = parts_[part].place;
    parts_[part].there = false;
    std::erase(here_[place], part);
    recount(place);
}

void SlowParts::mend(std::size_t place) {
    for (const std::size_t number : std::exchange(here_[place], {})) parts_[number].there = false;
    recount(place);
}

std::uint32_t SlowParts::conditions() const {
    std::uint32_t all = 0;
    for (const std::uint32_t each : conditions_) all |= each;
    return all;
}

void SlowParts::recount(std::size_t place) {
    std::uint32_t conditions = 0;
    for (const std::size_t number : here_[place]) {
        conditions |= 1U << causes_[parts_[number].strike.cause].slow->condition;
    }
    if (std::exchange(conditions_[place], conditions) != conditions) owner_.pace_changed(place);
}

void SlowParts::find(std::size_t part) {
    if (std::exchange(parts_[part].known, true)) return;
    ++counts_.found;
    owner_.slow_part_found(part);
}

void SlowParts::handle(std::uint32_t event) {
    const std::size_t part = event / kinds;
    if (!parts_[part].there) return;
    switch (event % kinds) {
        case compared:
            parts_[part].comparing = false;
            find(part);
            break;
        case over:
            cure(part);
            break;
        default:
            find(part);
    }
}

}  // namespace railyard
