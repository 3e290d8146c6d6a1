#include "models/training/pipeline_schedule.h"

#include <algorithm>

namespace railyard {

const std::vector<std::string> pipeline_schedule_names = {"1f1b", "zero_bubble", "zero_bubble_v",
                                                          "dualpipe", "dualpipe_v"};

double stage_bubble(PipelineSchedule schedule, const StagePasses& s, double stages,
                    double microbatches) {
    const double others = stages - 1;
    const auto with_few = [&](double bubble) {
        const double after = microbatches - stages;
        return std::max(bubble, s.inputs() - after / others * (after > 0 ? s.weights : s.forward));
    };
    switch (schedule) {
        case PipelineSchedule::one_forward_one_backward:
            break;
        case PipelineSchedule::zero_bubble: {
            const double filled = s.weights * std::min(1.0, (microbatches - 1) / others);
            return std::max(s.inputs(), s.forward + s.inputs() - filled);
        }
        case PipelineSchedule::zero_bubble_v:
            return with_few(std::max(s.inputs() / 2, s.inputs() - s.weights));
        case PipelineSchedule::dualpipe:
            return with_few((s.forward + 2 * s.inputs() - s.weights) * (stages - 2) / (2 * others));
        case PipelineSchedule::dualpipe_v:
            return with_few((s.forward + 2 * s.inputs() - s.weights) / 2);
    }
    return s.all;
}

double sends_waited_for(PipelineSchedule schedule, double stages) {
    const bool slack = schedule == PipelineSchedule::one_forward_one_backward;
    return (slack ? 1 : 2) * (stages - 1);
}

double microbatches_kept(PipelineSchedule schedule, double stage, double stages, double parts) {
    const double after = stages - 1 - stage;
    switch (schedule) {
        case PipelineSchedule::one_forward_one_backward:
            return parts > 1 ? (2 * after + (parts - 1) * stages + 1) / parts : after + 1;
        case PipelineSchedule::
            zero_bubble:  // those behind the first wait for their weights' gradients
        case PipelineSchedule::zero_bubble_v:
            return stages;
        case PipelineSchedule::dualpipe:
            return stages + 1;
        case PipelineSchedule::dualpipe_v:
            return stages + 0.5;
    }
    return 0;
}

}  // namespace railyard
