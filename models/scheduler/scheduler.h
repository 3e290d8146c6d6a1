#pragma once
// The door of the folder: which nodes a job gets. In world.h many jobs on a cluster that fails; in
// job_stream.h many on one that does not. One job alone has its pool of nodes in training/node_pool.h.

#include "models/scheduler/dedicated.h"
#include "models/scheduler/job_kind_reader.h"
#include "models/scheduler/job_source.h"
#include "models/scheduler/job_stream.h"
#include "models/scheduler/job_trace.h"
#include "models/scheduler/published_stream.h"
#include "models/scheduler/reader_names.h"
#include "models/scheduler/scheduler_reader.h"
#include "models/scheduler/stream_report.h"
#include "models/scheduler/world.h"
#include "models/training/training.h"
#include "sim/rng.h"
