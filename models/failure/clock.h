#pragma once
// The campaign's clock: nanoseconds, for jobs, failures, repair and stores.

#include "sim/engine.h"
#include "sim/units.h"

namespace railyard {

using CampaignEngine = Engine<Nanoseconds>;
using Instant = CampaignEngine::Instant;

}  // namespace railyard
