#include "models/training/job_nodes.h"

#include <algorithm>
#include <utility>

namespace railyard {

JobNodes::JobNodes(CampaignEngine& engine, const JobSpec& spec,
                   const std::vector<FailureCause>& causes, NodePool& pool, SlowParts::Owner& owner)
    : spec_(spec), all_(spec.nodes), causes_(causes), pool_(pool) {
    if (std::ranges::any_of(causes, [](const FailureCause& c) { return c.slow.has_value(); })) {
        slow_.emplace(engine, spec.recovery.search, causes, owner,
                      static_cast<std::size_t>(spec.nodes));
    }
}

bool JobNodes::plan_growth() {
    if (size_ == 0) return false;
    const std::int64_t next = size_ == 1 ? spec_.nodes : spec_.smaller[size_ - 2].nodes;
    if (count() + pool_.spares() < next) return false;
    return change_planned_ = true;
}

JobNodes::Slots JobNodes::part_with(const NodePool::Struck& struck) {
    const FailureCause& cause = causes_[struck.strike.cause];
    if (struck.slots.size() == 1 && count() > 1 &&
        struck.strike.misleads(spec_.recovery.misdiagnosis)) {
        auto blamed = static_cast<std::int64_t>(struck.strike.bystander * real(spec_.nodes));
        while (blamed == struck.slots[0] || pool_.node_in(blamed) < 0) {
            blamed = (blamed + 1) % spec_.nodes;
        }
        Strike strike = struck.strike;
        strike.slot = struck.slots[0];
        ++blamed_;
        pool_.misjudge(strike, blamed, cause);
        left(blamed);
        return {blamed};
    }
    for (const std::int64_t slot : struck.slots) {
        Strike strike = struck.strike;
        strike.slot = slot;
        pool_.remove(strike, cause);
        left(slot);
    }
    return {};
}

// All that were found. Where nothing is broken the stop itself is the cure.
JobNodes::Slots JobNodes::part_with_slow() {
    change_planned_ = false;
    Slots out;
    for (const std::size_t number : std::vector<std::size_t>(found_slow_)) {
        const Strike strike = slow_->part(number).strike;
        if (!slow_->part(number).there) continue;
        if (causes_[strike.cause].remedy == Remedy::restart) {
            slow_->cure(number);
        } else if (pool_.node_in(strike.slot) >= 0) {
            const Slots blamed = part_with({strike, {strike.slot}});
            out.insert(out.end(), blamed.begin(), blamed.end());
            out.push_back(strike.slot);
        }
    }
    std::erase_if(found_slow_, [&](std::size_t number) { return !slow_->part(number).there; });
    return out;
}

void JobNodes::left(std::int64_t slot) {
    if (slow_) slow_->mend(static_cast<std::size_t>(slot));
    missing_.push_back(slot);
}

JobNodes::Slots JobNodes::release(std::int64_t slot, std::int64_t nodes) {
    Slots out;
    for (std::int64_t last = spec_.nodes; last-- > slot && count() > nodes;) {
        if (pool_.node_in(last) < 0) continue;
        pool_.release(last);
        left(last);
        out.push_back(last);
    }
    return out;
}

bool JobNodes::fill(std::int64_t nodes) {
    std::erase_if(missing_, [&](std::int64_t slot) { return slot < nodes && pool_.fill(slot); });
    if (count() < nodes) return false;
    size_ = 0;
    return true;
}

std::optional<JobNodes::Slots> JobNodes::shrink() {
    const auto fits = std::ranges::find_if(
        spec_.smaller, [&](const SmallerJob& smaller) { return smaller.nodes <= count(); });
    if (fits == spec_.smaller.end()) return std::nullopt;
    const auto size = static_cast<std::size_t>(fits - spec_.smaller.begin()) + 1;
    if (size > size_) ++shrinks_;
    size_ = size;
    return release(0, fits->nodes);
}

void JobNodes::slow_down(const Strike& strike) {
    slow_->strike(static_cast<std::size_t>(strike.slot), strike, true);
}

bool JobNodes::conditions_changed() {
    const std::uint32_t now = slow_->conditions();
    return std::exchange(conditions_, now) != now;
}

}  // namespace railyard
