#include "models/failure/repair_shop.h"

#include <fmt/format.h>

#include <algorithm>

#include "sim/check.h"

namespace railyard {

RepairShop::RepairShop(CampaignEngine& engine, const RepairShopSpec& spec, Customer& customer,
                       std::uint64_t seed, std::uint64_t replica)
    : engine_(engine),
      spec_(spec),
      customer_(customer),
      seed_(seed),
      replica_(replica),
      id_(engine.add(*this, "repair")),
      parts_(spec.parts.value_or(0)) {}

RepairShop::Item& RepairShop::item(std::int64_t number) {
    const auto index = static_cast<std::size_t>(number);
    if (index >= items_.size()) items_.resize(index + 1);
    return items_[index];
}

void RepairShop::schedule(Duration after, Kind kind, std::int64_t number) {
    RY_CHECK(number >= 0 && number < std::int64_t{UINT32_MAX} / kinds);
    engine_.schedule(engine_.now() + after, id_, static_cast<std::uint32_t>(number) * kinds + kind);
}

void RepairShop::admit(std::int64_t number, const RepairOrder& order) {
    item(number).order = order;
    queue(number);
    start_what_can();
}

void RepairShop::queue(std::int64_t number) {
    queue_.push_back({.item = number, .since = engine_.now()});
    if (spec_.parts && item(number).order.takes_part) schedule(spec_.lead_time, part_arrives, 0);
}

void RepairShop::start_what_can() {
    for (auto next = queue_.begin(); next != queue_.end();) {
        if (spec_.crews > 0 && at_work_ == spec_.crews) break;
        const bool part_missing = spec_.parts && item(next->item).order.takes_part && parts_ == 0;
        if (part_missing) {
            if (!next->part_short) next->short_since = engine_.now();
            next->part_short = true;
            ++next;
        } else {
            start(*next);
            next = queue_.erase(next);
        }
    }
    outcome_.queue_max = std::max(outcome_.queue_max, queue_.size());
}

void RepairShop::start(const Waiting& waiting) {
    const RepairOrder& order = item(waiting.item).order;
    outcome_.waited_s += seconds(engine_.now() - waiting.since);
    if (waiting.part_short) {
        outcome_.waited_for_part_s += seconds(engine_.now() - waiting.short_since);
    }
    ++at_work_;
    if (spec_.parts && order.takes_part) --parts_;
    schedule(order.work, work_done, waiting.item);
}

// Whether the repair has helped, and whether burn-in sees that it has not.
void RepairShop::judge(std::int64_t number) {
    Item& it = item(number);
    it.sound = true;
    if (spec_.fails_again == 0) return;
    RandomStream stream(seed_, replica_, fmt::format("repair/{}/{}", number, it.visits++));
    it.sound = !stream.chance(spec_.fails_again);
    it.found = stream.chance(spec_.burn_in_finds) && spec_.burn_in > Duration{};
}

void RepairShop::handle(std::uint32_t kind) {
    const std::int64_t number = kind / kinds;
    switch (kind % kinds) {
        case part_arrives:
            ++parts_;
            break;
        case work_done:
            ++outcome_.repairs;
            --at_work_;
            judge(number);
            if (spec_.burn_in > Duration{}) {
                schedule(spec_.burn_in, burned_in, number);
                break;
            }
            [[fallthrough]];
        case burned_in:
            if (item(number).sound) {
                customer_.repaired(number, true);
            } else if (item(number).found) {
                ++outcome_.came_back;
                queue(number);
            } else {
                ++outcome_.let_out;
                customer_.repaired(number, false);
            }
            break;
        default:
            RY_UNREACHABLE("a kind of event that the shop schedules");
    }
    start_what_can();
}

}  // namespace railyard
