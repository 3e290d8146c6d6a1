#pragma once
// The door of the fabric: networks, routes, and flows that share links.

#include "models/fabric/flow_level.h"
#include "models/fabric/materials.h"
#include "models/fabric/routing.h"
#include "models/fabric/topology.h"
