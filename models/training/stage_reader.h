#pragma once
// [[job.stage]], [[job.pause]] and [maintenance]: plans that follow each other, and when the job stands
// still.

#include <cstdint>
#include <optional>
#include <vector>

#include "models/training/job.h"
#include "models/training/plan.h"
#include "sim/config.h"

namespace railyard {

// A rise in equal parts of the stage's length, from below what the plan says up to it.
struct StageRamp {
    const char* from_key = "";
    const char* by_key = "";
    std::optional<std::int64_t> from;
    std::optional<std::int64_t> by;
};

struct StageLength {
    std::optional<double> tokens;
    std::optional<std::int64_t> steps;
    std::optional<Duration> until;
};

struct StageContext {
    std::int64_t job_nodes = 0;
    std::size_t number = 1;  // from 1
    bool last = false;
    Duration campaign{};  // its length; zero: it has none
};

// A stage as it is written. Its levels follow from its plan.
struct StageKeys {
    StageSpec spec;
    const Value* parallel = nullptr;  // its own keys of [job.parallel]
    StageLength length;
    StageRamp batch;
    StageRamp sequence;
};
// `until`: the date that ends the stages so far.
StageKeys read_stage(Section& stage, const StageContext& context, std::optional<Duration>& until);
void settle_levels(Section& stage, const ParallelPlan& plan, StageKeys& keys);

// [job] as a stage has it: its own keys of [job.parallel], which may be null, in place of the job's. With
// another split or other nodes it has as many replicas as then fit, unless the stage says how many.
Value job_of_stage(const Value& job, const Section& stage, const Value* own);

void read_maintenance(Section& top, MaintenanceSpec& out);
void read_pauses(Section& job, Duration campaign, std::vector<PauseSpec>& pauses);

// What a planned stop needs of the job's other sections. All of them must be read.
void check_planned_stops(Section& section, const JobSpec& job);

}  // namespace railyard
