#pragma once
// The door of this folder: what one training job does.

#include "models/training/data_feed.h"
#include "models/training/data_loader.h"
#include "models/training/job.h"
#include "models/training/ledger.h"
#include "models/training/network_parts.h"
#include "models/training/node_supply.h"
#include "models/training/plan.h"
#include "models/training/plan_check.h"
#include "models/training/plan_search.h"
#include "models/training/shared_links.h"
#include "models/training/software.h"
#include "models/training/stages.h"
#include "models/training/step.h"
#include "models/training/step_model.h"
#include "models/training/step_traffic.h"
