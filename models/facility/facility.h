#pragma once
// The door of the folder: what nodes draw, what feeds and cools them, when that fails, and money.

#include "models/facility/breaker.h"
#include "models/facility/cooling.h"
#include "models/facility/cost.h"
#include "models/facility/cost_keys.h"
#include "models/facility/energy.h"
#include "models/facility/gpu_heat.h"
#include "models/facility/node_power.h"
#include "models/facility/power_keys.h"
#include "models/facility/power_profile.h"
#include "models/facility/price_book.h"
#include "models/facility/quote_book.h"
