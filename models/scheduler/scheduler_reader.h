#pragma once
// Reads who shares a cluster and by which rules: [scheduler], [[node_group]], [[partition]], [[reservation]].

#include <cstdint>
#include <string>
#include <vector>

#include "models/fabric/fabric.h"
#include "models/hardware/hardware.h"
#include "models/scheduler/job_source.h"
#include "models/scheduler/world.h"
#include "models/scheduler/world_spec.h"
#include "sim/config.h"

namespace railyard {

// Where the jobs run.
struct WorldSite {
    std::int64_t nodes = 0;
    const Node& node;         // each of them, where there are no groups
    const Topology& network;  // of the compute network; empty: it was not built
};

// `nodes`: what each group's are.
void read_scheduler(Section& top, Catalogue& catalogue, const WorldSite& site, WorldSpec& spec,
                    std::vector<Node>& nodes);

// ---- what Slurm takes beyond what every scheduler does ----

extern const std::vector<std::string> topology_aware_names;  // in the order of SlurmTopology
extern const std::vector<std::string> preempt_mode_names;    // in the order of PreemptMode

// Reads from [scheduler] its intervals and depths, topology, backfill, priority, QOS, accounts.
void read_slurm(Section& scheduler, Catalogue& catalogue, WorldSpec& spec);

// ---- what Kubernetes, Volcano and Kueue take beyond it ----

// [scheduler.kubernetes], [scheduler.volcano], [scheduler.kueue], [[scheduler.queue]]. Groups of nodes must
// be known.
void read_kube_scheduler(Section& scheduler, WorldSpec& spec);

// Reads from a [[jobs.kind]], after its sizes and its partition.
void read_kube_jobs(Section& section, const WorldSpec& spec, WorldJobKind& kind, JobSource& source);

// ---- how a group of nodes is cut into slices (MIG), and the slice that a job asks for ----

// Reads from a [[node_group]], whose GPUs must be known.
void read_slices(Section& section, Catalogue& catalogue, NodeGroup& group);

// Profiles that the cluster's GPUs have, cut or not.
std::vector<std::string> slices_of(const WorldSpec& spec);

// That the scheduler can place them.
void check_slices(Section& top, const WorldSpec& spec);

// slice of [jobs.kind.requires]; `kind_section` is its kind's.
void read_slice_request(Section& section, Section& kind_section, const WorldSpec& spec,
                        GpuRequest& request);

}  // namespace railyard
