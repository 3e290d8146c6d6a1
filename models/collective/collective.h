#pragma once
// The door of the folder: what a collective costs. Two fidelities:
// alpha_beta.h  textbook times of one ring, exact against the oracle of table 72;
// cost.h        NCCL's algorithms and protocols on a communicator, against published nccl-tests.

#include "models/collective/algorithm.h"
#include "models/collective/alpha_beta.h"
#include "models/collective/communicator.h"
#include "models/collective/cost.h"
#include "models/collective/gpu_network.h"
#include "models/collective/tuner.h"
