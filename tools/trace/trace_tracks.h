#pragma once
// Assigns what happens in a simulation to the tracks of a trace.

#include "models/campaign/campaign.h"
#include "tools/trace/perfetto_trace.h"

namespace railyard {

// One replica: the job's phases, which cover its time without a gap; checkpoints, interruptions; nodes while
// they are out of service; what the stores move. `result` has its log.
void trace_replica(PerfettoTrace& trace, const Scenario& scenario, const ReplicaResult& result,
                   const ReplicaTrace& record);

// One replica of many jobs: how many run and wait, the GPUs that they hold, each run of a job beside others
// of its size, failures and what the scheduler did. `result` has its log. Of runs those with the most GPU
// time; returns how many others there were, too.
std::size_t trace_world(PerfettoTrace& trace, const Scenario& scenario,
                        const ReplicaResult& result);

// One training step: where its time goes, and the critical path if a model was given.
void trace_step(PerfettoTrace& trace, const Scenario& scenario);

// One network's packet window: flows by their sender, links while they are paused, queues, faults. Of links
// those that were paused or queued most; returns how many others were, too.
std::size_t trace_window(PerfettoTrace& trace, const Scenario& scenario,
                         const NetworkWindow& window, const WindowResult& result,
                         const WindowRecord& record);

}  // namespace railyard
