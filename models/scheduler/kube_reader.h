#pragma once
// Reads what Kubernetes, Volcano and Kueue take beyond what every scheduler does.

#include "models/scheduler/job_source.h"
#include "models/scheduler/world_spec.h"
#include "sim/config.h"

namespace railyard {

// [scheduler.kubernetes], [scheduler.volcano], [scheduler.kueue], [[scheduler.queue]]. Groups of nodes must
// be known.
void read_kube_scheduler(Section& scheduler, WorldSpec& spec);

// Reads from a [[jobs.kind]], after its sizes and its partition.
void read_kube_jobs(Section& section, const WorldSpec& spec, WorldJobKind& kind, JobSource& source);

}  // namespace railyard
