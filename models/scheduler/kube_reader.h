#pragma once
// Reads what a fleet under Kubernetes, Volcano or Kueue is given beyond what every fleet is.

#include "models/scheduler/fleet_spec.h"
#include "models/scheduler/job_source.h"
#include "sim/config.h"

namespace railyard {

// [scheduler.kubernetes], [scheduler.volcano], [scheduler.kueue], [[scheduler.queue]]. Groups of nodes must
// be known.
void read_kube_scheduler(Section& scheduler, FleetSpec& spec);

// Reads from a [[jobs.kind]], after its sizes and its partition.
void read_kube_jobs(Section& section, const FleetSpec& spec, FleetJobKind& kind, JobSource& source);

}  // namespace railyard
