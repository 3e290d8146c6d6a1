#pragma once
// The clock of a part of a job. Parts of many jobs share one component of the engine; each part has
// a few kinds of events.

#include "models/failure/failure.h"

namespace railyard {

struct PartClock {
    CampaignEngine& engine;
    CampaignEngine::ComponentId component;
    std::uint32_t first = 0;  // of its kinds

    Instant now() const { return engine.now(); }
    EventId schedule(Instant at, std::uint32_t kind) const {
        return engine.schedule_cancellable(at, component, first + kind);
    }
    void cancel(EventId event) const { engine.cancel(event); }
};

}  // namespace railyard
