#pragma once
// The door of the folder: what a collective costs, by NCCL's algorithms and protocols.

#include "models/collective/algorithm.h"
#include "models/collective/communicator.h"
#include "models/collective/cost.h"
#include "models/collective/gpu_network.h"
#include "models/collective/tuner.h"
