#include "models/scheduler/world_slow_parts.h"

#include <utility>

namespace railyard {

WorldSlowParts::WorldSlowParts(CampaignEngine& engine, const WorldSpec& spec,
                               const std::vector<FailureCause>& causes, Owner& owner,
                               std::size_t nodes)
    : engine_(engine),
      spec_(spec),
      causes_(causes),
      owner_(owner),
      id_(engine.add(*this, "slow parts")),
      here_(nodes),
      conditions_(nodes) {}

void WorldSlowParts::schedule(Duration after, Kind kind, std::size_t part) {
    if (after > Instant::max() - engine_.now()) return;
    engine_.schedule(engine_.now() + after, id_, static_cast<std::uint32_t>(part * kinds + kind));
}

// Health checks look at all nodes, comparisons at those that run.
void WorldSlowParts::strike(NodeIndex node, const Strike& strike, bool in_use) {
    const SlowPart& slow = *causes_[strike.cause].slow;
    const std::size_t number = parts_.size();
    ++counts_.slow;
    parts_.push_back({node, strike});
    here_[node].push_back(number);
    SearchSpec checks = spec_.search;
    checks.compare = Duration{};
    schedule(checks.found_after(strike, engine_.now(), 0), found, number);
    if (slow.lasts > Duration{}) schedule(slow.lasts, over, number);
    recount(node);
    if (in_use) compare(node);
}

void WorldSlowParts::compare(NodeIndex node) {
    if (spec_.search.compare == Duration{}) return;
    for (const std::size_t number : here_[node]) {
        Part& part = parts_[number];
        const double slowdown = spec_.slowdowns[causes_[part.strike.cause].slow->condition];
        if (slowdown < spec_.search.compare_above || std::exchange(part.comparing, true)) continue;
        schedule(spec_.search.compare, compared, number);
    }
}

void WorldSlowParts::mend(NodeIndex node) {
    for (const std::size_t number : std::exchange(here_[node], {})) parts_[number].there = false;
    recount(node);
}

void WorldSlowParts::recount(NodeIndex node) {
    std::uint32_t conditions = 0;
    for (const std::size_t number : here_[node]) {
        conditions |= 1U << causes_[parts_[number].strike.cause].slow->condition;
    }
    if (std::exchange(conditions_[node], conditions) != conditions) owner_.pace_changed(node);
}

void WorldSlowParts::find(Part& part) {
    if (std::exchange(part.known, true)) return;
    ++counts_.found;
    owner_.slow_part_found(part.node, Strike(part.strike));
}

void WorldSlowParts::handle(std::uint32_t event) {
    Part& part = parts_[event / kinds];
    if (!part.there) return;
    switch (event % kinds) {
        case compared:
            part.comparing = false;
            find(part);
            break;
        case over:
            part.there = false;
            std::erase(here_[part.node], event / kinds);
            recount(part.node);
            break;
        default:
            find(part);
    }
}

}  // namespace railyard
