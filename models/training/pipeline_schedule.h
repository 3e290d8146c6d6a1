#pragma once
// In what order pipeline stages take the microbatches, and what each order leaves them to wait for.
//
// A stage works on a microbatch for F seconds forward, I backward for the gradients of its inputs
// (recomputation included) and W for the gradients of its weights, which nobody waits for: a stage may
// do those where it would stand idle. With p stages of v parts each the bubble is the sum of
// stage_bubble() / v over all stages but the slowest.
//
//     1f1b           F + I + W                  one forward, one backward (interleaved: v > 1); W with I
//     zero_bubble    max(I, F + I - W)          ZB-H1 (Qi et al., ICLR 2024), and PyTorch's interleaved one
//     zero_bubble_v  max(I / 2, I - W)          ZB-V: two parts for each stage, there and back
//     dualpipe       (F + 2 I - W)(p - 2) / (2 p - 2)   from both ends at once; ranks have two stages each
//     dualpipe_v     (F + 2 I - W) / 2          the same cut in half: parts as in ZB-V
//
// Few microbatches leave a stage less to fill its waits with: zero_bubble then has W (m - 1) / (p - 1)
// in place of W; those below it are at least I - W (m - p) / (p - 1), with m < p I + F (p - m) / (p - 1).
//
// The first three are what their schedules come to, operation by operation (pipeline_schedule_test), for
// I >= F and I >= W. The last two are DeepSeek's own formulas (README of DualPipe, 2025:
// (PP/2 - 1)(F&B + B - 3W), as remembered); with few microbatches they are taken for ZB-V. Ignored:
// optimizers that begin before the slowest stage has ended (post-validation), with which ZB-V has no
// bubble where F = I = W.

#include <cstdint>
#include <string>
#include <vector>

namespace railyard {

enum class PipelineSchedule : std::uint8_t {
    one_forward_one_backward,
    zero_bubble,
    zero_bubble_v,
    dualpipe,
    dualpipe_v,
};

// Their words in scenarios, in order.
extern const std::vector<std::string> pipeline_schedule_names;

// A microbatch on a stage, in seconds.
struct StagePasses {
    double all = 0;      // forward and backward, recomputation included
    double forward = 0;  // of it
    double weights = 0;  // of it, for their gradients

    double inputs() const { return all - forward - weights; }
};

// What a stage that is not the slowest adds to the bubble, in seconds, where stages have one part each.
double stage_bubble(PipelineSchedule schedule, const StagePasses& passes, double stages,
                    double microbatches);

// Sends between stages, each way, that a step waits for though sends are hidden: while its pipeline fills and
// drains. 1F1B has slack for half of those that the others wait for (pipeline_schedule_test: ZB-H1
// exactly 2 (p - 1) each way, ZB-V up to an eighth more).
double sends_waited_for(PipelineSchedule schedule, double stages);

// Each rank has the weights of so many stages.
constexpr std::int64_t weight_copies(PipelineSchedule schedule) {
    return schedule == PipelineSchedule::dualpipe ? 2 : 1;
}
// Its stages have two parts each, whatever is said of virtual stages.
constexpr bool in_two_parts(PipelineSchedule schedule) {
    return schedule == PipelineSchedule::zero_bubble_v || schedule == PipelineSchedule::dualpipe_v;
}

// Microbatches whose activations a stage keeps at once, if there are so many: of a whole stage, where it has
// parts. `stage` counts from 0.
double microbatches_kept(PipelineSchedule schedule, double stage, double stages, double parts);

}  // namespace railyard
