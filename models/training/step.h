#pragma once
// How long one training step takes, and where the time goes. A pure function of its arguments, so
// its results can be remembered for as long as nothing about the job or its nodes changes.

#include <algorithm>
#include <array>
#include <string_view>
#include <vector>

#include "models/training/communicators.h"
#include "models/training/plan.h"

namespace railyard {

// How much later than the rest of a step its batch is there; less than 0: so much before. A step that waits
// so long, and whose rest takes `longer` than then: the batch comes no later.
constexpr Duration batch_late(Duration wait, Duration longer) {
    return wait - std::max(Duration{}, longer);
}
constexpr Duration wait_for_batch(Duration late) {
    return std::max(Duration{}, late);
}

// One step of a synchronous job, on the campaign clock. The parts sum to duration() exactly.
struct StepTime {
    Duration compute{};
    Duration exposed_communication{};
    Duration bubble{};
    Duration straggler_wait{};
    Duration degraded{};     // waiting for a part that is slower than it should be
    Duration throttled{};    // waiting for clocks or memory that heat has slowed
    Duration data_wait{};    // waiting for the next batch
    Duration contention{};   // waiting for other jobs' traffic on the same links
    Duration upload{};       // longer for a checkpoint that is uploaded beside it
    double model_flops = 0;  // of the whole step on all GPUs, recomputation not counted

    Duration duration() const {
        return compute + exposed_communication + bubble + straggler_wait + degraded + throttled +
               data_wait + contention + upload;
    }
    Duration beside_data() const { return duration() - data_wait; }
    // How late its batch is where the rest takes so long.
    Duration late(Duration rest) const { return batch_late(data_wait, rest - beside_data()); }
    bool operator==(const StepTime&) const = default;
};

constexpr Duration step_part_max = std::chrono::hours(24 * 365);

// The chain of work that makes up the step: what the slowest pipeline stage does, one after another,
// and what it waits for. What runs beside something longer is not on it.
enum class StepKind : std::uint8_t { compute, communication, bubble, straggler };
struct PathPart {
    std::string_view name;
    StepKind kind = StepKind::compute;
    double count = 0;           // times a step
    double seconds = 0;         // of all of them
    bool memory_bound = false;  // computing that waits for HBM or for launches, not for multipliers
};
constexpr std::size_t path_parts = 16;
using CriticalPath = std::array<PathPart, path_parts>;

// The step of `plan` on the nodes of `groups`; README.md has the equations. `optimizer_traffic` is bytes
// moved per parameter and step. The plan's memory is checked by memory_per_gpu.
CriticalPath critical_path(const TransformerModel& model, const ParallelPlan& plan,
                           Communicators& groups, const ParameterBytes& bytes,
                           double optimizer_traffic);

// The same work before it is added up: what a rank does in a pass of one microbatch through one layer, and
// in an exchange of gradients and weights. What may hide behind what is the plan's to say.
struct PassOutline {
    double attention_s = 0;
    double other_s = 0;  // its other kernels, and waiting for launches
    std::vector<CollectiveCall> calls;
};
struct LayerOutline {
    PassOutline forward;
    PassOutline recompute;
    PassOutline backward;
};
struct StageOutline {
    StageRun run;
    std::vector<CollectiveCall> exchanges;  // each once; with ZeRO-3 `count` over all layers
    double optimizer_s = 0;
    double to_host_s = 0;  // a microbatch's wait for activations to leave, behind its forward pass
    double from_host_s = 0;  // and to come back, behind its backward pass
};
struct StepOutline {
    // By LayerKind::index(), where the model has such layers.
    std::array<LayerOutline, LayerKind::kinds> layers;
    const LayerOutline& layer(LayerKind kind) const { return layers[kind.index()]; }
    LayerOutline vision;  // the whole encoder, on the first stage
    double head_s = 0;    // of the last stage, there and back; once more for each further token
    double boundary_bytes = 0;
    std::vector<StageOutline> stages;
};
StepOutline step_outline(const TransformerModel& model, const ParallelPlan& plan,
                         Communicators& groups, const ParameterBytes& bytes,
                         double optimizer_traffic);

// Forward, and twice that backward; once that of weights that adapters leave frozen, whose gradients nobody
// asks for; of a frozen vision encoder forward alone.
double model_flops(const TransformerModel& model, const ParallelPlan& plan);

// The same, summed by kind. A sum longer than step_part_max, or not a number because a rate in the
// catalogue is zero, is cut to that.
StepTime model_step(const TransformerModel& model, const ParallelPlan& plan, Communicators& groups,
                    const ParameterBytes& bytes, double optimizer_traffic);

// The step with one slow stage, from that with all as slow and that with all sound: every microbatch waits
// for the slow one, but the pipeline fills and drains through the others as before.
StepTime with_one_slow_stage(StepTime all_slow, const StepTime& sound);

}  // namespace railyard
