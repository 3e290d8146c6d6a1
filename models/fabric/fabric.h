#pragma once
// The door of the fabric: networks, routes, flows that share links, and packets.

#include "models/fabric/fair_window.h"
#include "models/fabric/flow_level.h"
#include "models/fabric/headroom.h"
#include "models/fabric/materials.h"
#include "models/fabric/message_flows.h"
#include "models/fabric/network_reader.h"
#include "models/fabric/packet_limits.h"
#include "models/fabric/packet_window.h"
#include "models/fabric/places.h"
#include "models/fabric/routing.h"
#include "models/fabric/topology.h"
#include "models/fabric/traffic_file.h"
#include "models/fabric/window_cache.h"
#include "models/fabric/window_reader.h"
