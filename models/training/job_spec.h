#pragma once
// What a scenario says of its job, and what that comes to on its cluster: [job].

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "models/training/data_reader.h"
#include "models/training/job.h"
#include "models/training/network_parts.h"
#include "models/training/plan.h"
#include "models/training/software.h"
#include "models/training/step.h"
#include "models/training/step_trace.h"

namespace railyard {

// Who writes a checkpoint, and into how many files.
struct CheckpointWriters {
    std::int64_t ranks = 1;
    std::int64_t nodes = 1;
    std::int64_t files = 1;
    Bandwidth serialization;  // of one rank
};

// The plan of one of the job's stages.
struct StagePlan {
    std::string name;
    ParallelPlan plan;
    std::int64_t nodes = 0;
    std::vector<MemoryUse> memory;  // per GPU
};

struct TrainingSpec {
    JobSpec job;
    NetworkFaults network_faults;         // of the compute network, in mid-campaign
    std::vector<PartFault> slow_parts;    // what the conditions of causes are, by bit
    std::vector<double> given_slowdowns;  // of a step that was given: by these, as shares

    bool given_step = false;                 // job.step.time: nothing models a step
    std::shared_ptr<const StepTrace> trace;  // job.trace: the step, instead of the model's
    TransformerModel model;                  // name empty: the step was given, not modelled
    ParallelPlan plan;
    std::vector<StagePlan> stages;  // of JobSpec::stages
    CollectiveConstants collective_constants;
    StepError step_error;               // of a modelled step
    StepTime analytic_step;             // of the same plan and faults, whatever the fidelity
    std::optional<StepTime> fair_step;  // likewise by fair shares; fidelity = "packet" only
    ParameterBytes parameter_bytes;
    double optimizer_traffic = 0;     // bytes per parameter and step
    std::vector<MemoryUse> memory;    // per GPU; empty without a model
    std::optional<DataLoading> data;  // what the job trains on; none: nothing is read
    std::int64_t tokens_per_step = 0;

    Bytes image;          // that each node reads as it starts; 0: every node has it
    Bytes dataset_index;  // that each rank reads as it starts
    Bytes checkpoint_size;
    CheckpointWriters checkpoint_writers;
    std::string checkpoint_description;
    Duration checkpoint_upload{};  // until it is safe, with the store to itself
    // Set when checkpoints come at an interval of time: the name of the clock that counts it.
    std::string checkpoint_clock;
};

}  // namespace railyard
