#pragma once
// Chakra's execution traces (mlcommons/chakra, schema 0.0.4) as the step of a job.
//
// A folder has a trace of each of the job's ranks, NAME.0.et, NAME.1.et and so on, and the ranks of its
// process groups in groups.json, as ASTRA-sim's --comm-group-configuration has them: {"tp": [0, 1]}.
// One file is the trace of all ranks, which do the same: its groups stand for all of their kind, and what
// it sends is not waited for.
//
// comm_size is what a rank puts in: Chakra's converter for PyTorch makes it of Kineto's "In msg nelems" and
// the size of their type. So the output of a gather is as many times larger as the group has ranks. The
// k-th collective of a group is the same one on all of its ranks, in the order of the nodes' ids; likewise
// the k-th send from one rank to another with a tag, and its receive.

#include <memory>

#include "models/training/step_trace.h"
#include "sim/config.h"

namespace railyard {

// Reads the key `trace` of the section; null when it is absent or wrong. `gpus` are the job's, on nodes that
// are like `node`; the kernels' times are of `measured_on`.
std::shared_ptr<const StepTrace> read_step_trace(Section& job, ValueReader& values,
                                                 const Node& node, std::int64_t gpus,
                                                 const Gpu& measured_on);

// Warns of what has no effect on a step from these traces.
void warn_of_idle_beside(const StepTrace& trace, const std::vector<PartFault>& faults,
                         Section& job);

}  // namespace railyard
