#pragma once
// Lets Ctrl-C end long loops.

#include <algorithm>
#include <atomic>
#include <cstdint>

#include "sim/error.h"

namespace railyard {

// From here on `flag`, which outlives everything, says whether somebody has pressed Ctrl-C.
void cancel_when(const std::atomic<bool>& flag);

// Throws Interrupted when somebody has. Cheap: for loops.
void heed_cancel();

// As engine.run(end, events_max), but that it heeds Ctrl-C.
template <class Engine>
typename Engine::Outcome run_cancellable(Engine& engine, typename Engine::Instant end,
                                         std::uint64_t events_max = UINT64_MAX) {
    constexpr std::uint64_t stretch = 1024;  // some events take a millisecond
    for (;;) {
        heed_cancel();
        const std::uint64_t until =
            engine.events() + std::min(stretch, events_max - engine.events());
        const auto outcome = engine.run(end, until);
        if (outcome != Engine::Outcome::limit || until == events_max) return outcome;
    }
}

}  // namespace railyard
