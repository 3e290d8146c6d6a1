#pragma once
// A step that is given as a graph: execution traces of what the job's ranks compute and say to each other.
//
// Model. The traces of all ranks are one graph of tasks: a collective is one task of its group's ranks, a
// send and its receive are one of both. A task begins when all that it depends on, on all of its ranks, has
// ended and its lanes are free; of several that wait for a lane the one that has waited longest is next, then
// the one that stands first. The lanes of a rank are its host, its GPU's kernels, its sends and its receives;
// each group has one for its collectives. A collective or a send takes what the model of collectives gives a
// communicator of its kind, all groups of the kind talking at once, as in a step that is modelled. A kernel
// takes the time that the trace has for it, in proportion longer on a GPU that is slower than the job's; one
// without a time takes what the GPU sustains of its FLOPs or its bytes. Chains of zero length cost nothing.
//
// The split is the mean over ranks: computing while a kernel runs, or the host does and nothing is sent;
// exposed communication while only that is under way; the rest, waiting for other ranks, is the bubble.
// Ignored: what collectives of different kinds that overlap take from each other, as in a modelled step; what
// kernels without a time lose to collectives beside them (measured times have it in them); stragglers.

#include <cstdint>
#include <vector>

#include "models/training/communicators.h"
#include "models/training/step.h"

namespace railyard {

// What is asked of the network: the kind of communicator, and bytes as nccl-tests counts them.
struct TraceMessage {
    Collective collective = Collective::all_reduce;
    std::int64_t stride = 1;
    std::int64_t ranks = 1;
    double bytes = 0;

    auto operator<=>(const TraceMessage&) const = default;
};

struct TraceTask {
    enum class Kind : std::uint8_t { nothing, host, kernel, message };
    Kind kind = Kind::nothing;
    Duration length{};  // of the host, or of a kernel that was measured
    double flops = 0;   // of a kernel, where they are known
    double bytes = 0;   // that it moves
    TraceMessage message;
    std::vector<std::uint32_t> ranks;  // that it keeps busy, as places among those with traces
    std::vector<std::uint32_t> lanes;
    std::vector<std::uint32_t> after;  // tasks that depend on it
};

struct StepTrace {
    std::vector<TraceTask> tasks;
    std::uint32_t lanes = 0;
    std::uint32_t ranks = 1;    // with traces
    std::int64_t modelled = 0;  // kernels without a time
    Gpu measured_on;            // the GPU that the kernels' times are of

    // A task that waits for itself, or the count of tasks.
    std::size_t in_a_circle() const;
};

// The step of these traces over these groups, and on their node's GPUs. Throws NoPath.
StepTime trace_step(const StepTrace& trace, Communicators& groups);

// Seconds that messages take in a step of a rank, in the mean, one after another.
double trace_message_seconds(const StepTrace& trace, Communicators& groups);

}  // namespace railyard
