#include "models/training/saved_states.h"

#include <algorithm>
#include <cmath>

#include "sim/check.h"

namespace railyard {

using State = SavedStates::State;
using Copy = SavedStates::State::Copy;

const std::vector<std::string> place_names = {"host_memory", "peer_memory", "local_nvme", "storage",
                                              "object_store"};

bool on_nodes(Place place) {
    return place <= Place::local_nvme;
}

std::size_t CheckpointSpec::safe_tier() const {
    const auto safe = std::ranges::find_if(tiers, [](const TierSpec& tier) {
        return tier.place == Place::peer_memory || !on_nodes(tier.place);
    });
    return safe == tiers.end() ? 0 : static_cast<std::size_t>(safe - tiers.begin());
}

std::size_t CheckpointSpec::lasting_tier() const {
    const auto from = tiers.begin() + safe_tier();
    const auto lasting = std::find_if(from, tiers.end(), [](const TierSpec& tier) {
        return tier.place != Place::host_memory && tier.place != Place::peer_memory;
    });
    return static_cast<std::size_t>((lasting == tiers.end() ? from : lasting) - tiers.begin());
}

SavedStates::SavedStates(const CheckpointSpec& spec, std::int64_t nodes)
    : spec_(spec), nodes_(nodes), bytes_(spec.tiers.size()) {
    // What the campaign opens with lies in the coldest tier, for ever.
    State initial;
    initial.bytes = spec.size;
    initial.safe = true;
    if (!spec.tiers.empty()) initial.copies[spec.tiers.size() - 1] = Copy::complete;
    states_.push_back(std::move(initial));
}

State& SavedStates::begin(std::int64_t steps, Instant now) {
    State& state = states_.emplace_back();
    const bool whole = begun_ % spec_.full_every == 0;
    state.number = ++begun_;
    state.steps = steps;
    state.bytes = spec_.size;
    if (!whole) {
        state.base = last_;
        state.bytes = Bytes::of(std::llround(real(spec_.size.count()) * spec_.changed_fraction));
    }
    last_ = state.number;
    state.begun = now;
    return state;
}

bool SavedStates::all_complete(std::size_t tier) const {
    return std::ranges::all_of(states_, [&](const State& state) {
        return state.number == 0 || (state.base < 0 && state.copies[tier] == Copy::complete);
    });
}

// What it makes room for is the oldest, whose place it takes.
void SavedStates::add_complete(std::int64_t steps, Instant now) {
    TierBytes& bytes = bytes_[0];
    const auto oldest = states_.begin() + 1;
    if (static_cast<std::int64_t>(states_.size()) > spec_.tiers[0].keep) {
        bytes.safe = bytes.safe - oldest->bytes;
        bytes.expired = bytes.expired + oldest->bytes;
        std::move(oldest + 1, states_.end(), oldest);  // the last one is written anew
    } else {
        states_.emplace_back();
    }
    State& state = states_.back();
    state.number = ++begun_;
    state.steps = steps;
    state.bytes = spec_.size;
    state.begun = now;
    state.before_stop = false;
    state.safe = true;
    state.copies[0] = Copy::complete;
    state.lost_slots.clear();
    last_ = state.number;
    bytes.written = bytes.written + state.bytes;
    bytes.safe = bytes.safe + state.bytes;
}

const State* SavedStates::find(std::int64_t number) const {
    const auto found = std::lower_bound(
        states_.begin(), states_.end(), number,
        [](const State& state, std::int64_t wanted) { return state.number < wanted; });
    return found != states_.end() && found->number == number ? &*found : nullptr;
}

State* SavedStates::find(std::int64_t number) {
    return const_cast<State*>(static_cast<const SavedStates*>(this)->find(number));
}

std::optional<Bytes> SavedStates::readable(const State& state, std::size_t tier) const {
    Bytes sum;
    for (const State* each = &state;; each = find(each->base)) {
        if (each == nullptr || each->copies[tier] != Copy::complete) return std::nullopt;
        sum = sum + each->bytes;
        if (each->base < 0) return sum;
    }
}

std::int64_t SavedStates::newest_steps(std::size_t from) const {
    for (auto state = states_.rbegin(); state != states_.rend(); ++state) {
        for (std::size_t tier = from; tier < state->copies.size(); ++tier) {
            if (restorable(*state, tier)) return state->steps;
        }
    }
    return 0;
}

SavedStates::Choice SavedStates::newest() const {
    for (auto state = states_.rbegin(); state != states_.rend(); ++state) {
        for (std::size_t tier = 0; tier < spec_.tiers.size(); ++tier) {
            if (const std::optional<Bytes> bytes = readable(*state, tier)) {
                return {state->number, tier, *bytes, state->steps};
            }
        }
    }
    return {};
}

// ---- copies come and go ----

void SavedStates::complete(State& state, std::size_t tier) {
    RY_CHECK(state.copies[tier] != Copy::complete);
    state.copies[tier] = Copy::complete;
    bytes_[tier].written = bytes_[tier].written + state.bytes;
    bytes_[tier].safe = bytes_[tier].safe + state.bytes;
    expire(tier);
    if (tier > 0) expire(tier - 1);  // whose copy has been read now
}

void SavedStates::break_off(State& state, std::size_t tier, Bytes moved) {
    state.copies[tier] = Copy::gone;
    bytes_[tier].written = bytes_[tier].written + moved;
    bytes_[tier].lost = bytes_[tier].lost + moved;
}

void SavedStates::drop(State& state, std::size_t tier, Bytes TierBytes::*into) {
    if (state.copies[tier] == Copy::complete && state.number > 0) {
        bytes_[tier].safe = bytes_[tier].safe - state.bytes;
        bytes_[tier].*into = bytes_[tier].*into + state.bytes;
    }
    state.copies[tier] = Copy::gone;
}

// Keeps the newest few that can be read back, what these hold the changes since, what the next tier reads or
// will, and what has just come.
void SavedStates::expire(std::size_t tier) {
    std::int64_t kept = 0;
    std::int64_t needed = -1;  // the base of a state that stays
    bool newest = true;
    for (auto state = states_.rbegin(); state != states_.rend() && state->number > 0; ++state) {
        if (state->copies[tier] != Copy::complete) continue;
        const Copy below = tier + 1 < state->copies.size() ? state->copies[tier + 1] : Copy::none;
        const bool read = below == Copy::moving || below == Copy::waiting;
        if (state->number == needed ||
            (kept < spec_.tiers[tier].keep && restorable(*state, tier))) {
            ++kept;
            needed = state->base;
        } else if (!read && !newest) {
            drop(*state, tier, &TierBytes::expired);
        }
        newest = false;
    }
}

// ---- failures ----

void SavedStates::lose(const StateLoss& loss) {
    if (loss.scope == StateLoss::Scope::processes) return;
    const bool node = loss.scope == StateLoss::Scope::node;
    const bool drives = node || loss.scope == StateLoss::Scope::all_nodes;
    for (State& state : states_) {
        bool neighbour_lost = false;
        if (node) {
            for (const std::int64_t slot : state.lost_slots) {
                const std::int64_t apart = std::abs(slot - loss.slot);
                neighbour_lost |= apart == 1 || apart == nodes_ - 1;
            }
            if (state.number > 0) state.lost_slots.push_back(loss.slot);
        }
        for (std::size_t tier = 0; tier < state.copies.size(); ++tier) {
            if (state.copies[tier] != Copy::complete) continue;
            const Place place = spec_.tiers[tier].place;
            const bool gone = place == Place::host_memory ||
                              (place == Place::peer_memory && (neighbour_lost || !node)) ||
                              (place == Place::local_nvme && drives);
            if (gone) drop(state, tier, &TierBytes::lost);
        }
    }
}

void SavedStates::lose_store(std::size_t tier) {
    for (State& state : states_) {
        if (state.number > 0 && state.copies[tier] == Copy::complete) {
            drop(state, tier, &TierBytes::lost);
        }
    }
}

std::int64_t SavedStates::forget_after(std::int64_t number) {
    std::int64_t never_safe = 0;
    last_ = number;
    while (states_.back().number > number) {
        State& state = states_.back();
        for (std::size_t tier = 0; tier < state.copies.size(); ++tier) {
            drop(state, tier, &TierBytes::lost);
        }
        never_safe += state.safe ? 0 : 1;
        states_.pop_back();
    }
    return never_safe;
}

std::int64_t SavedStates::newest_before(std::int64_t steps) const {
    for (auto state = states_.rbegin(); state != states_.rend(); ++state) {
        if (state->steps <= steps) return state->number;
    }
    return 0;
}

std::int64_t SavedStates::forget_gone() {
    const auto gone = [](const State& state) {
        return state.number != 0 && std::ranges::none_of(state.copies, [](Copy copy) {
                   return copy == Copy::complete || copy == Copy::moving || copy == Copy::waiting;
               });
    };
    const auto first = std::ranges::find_if(states_, gone);
    if (first == states_.end()) return 0;
    std::int64_t never_safe = 0;
    const auto left = std::remove_if(first, states_.end(), [&](const State& state) {
        const bool goes = gone(state);
        never_safe += goes && !state.safe ? 1 : 0;
        return goes;
    });
    states_.erase(left, states_.end());
    return never_safe;
}

}  // namespace railyard
