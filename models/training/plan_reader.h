#pragma once
// How a job's model is split over its GPUs, and what runs it: job.software, [job.parallel] and [job.step].

#include <optional>
#include <string>
#include <vector>

#include "models/training/plan.h"
#include "models/training/software.h"
#include "sim/config.h"

namespace railyard {

// [job.step]: a step that was measured, if one was.
std::optional<Duration> read_given_step(Section& job);

// What the plan is for.
struct PlanContext {
    const TransformerModel& model;  // without a name: there is none
    std::int64_t nodes = 1;
    std::int64_t gpus_per_node = 1;
    std::vector<std::string> own_software{};  // stacks of the scenario's own
    std::optional<ParallelPlan> instead{};    // the plan, whatever the section says
    bool must_run = true;                     // it must fit into memory
    bool staged = false;                      // of a job whose stages may each have another plan
    std::int64_t gpus() const { return nodes * gpus_per_node; }
};

struct PlanSpec {
    ParallelPlan plan;
    StepError step_error;            // of a step that is modelled
    ParameterBytes parameter_bytes;  // with a model, as are these:
    std::vector<MemoryUse> memory;   // per GPU
};

// Reads the sections and reports what doesn't divide, or doesn't fit. `node` gets the software's kernels.
PlanSpec read_plan(Section& job, ValueReader& values, Catalogue& catalogue,
                   const PlanContext& context, Node& node);

}  // namespace railyard
