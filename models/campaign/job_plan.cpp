#include "models/campaign/sections.h"

namespace railyard {

void read_job_plan(Section& job, ValueReader& values, Catalogue& catalogue,
                   const ScenarioChanges& changes, bool staged, Scenario& s) {
    PlanContext context{.model = s.model,
                        .nodes = s.job.nodes,
                        .gpus_per_node = s.job.gpus_per_node,
                        .instead = changes.plan,
                        .must_run = changes.must_run,
                        .staged = staged};
    if (s.own_entries != nullptr) context.own_software = s.own_entries->names("software");
    PlanSpec spec = read_plan(job, values, catalogue, context, s.node);
    s.plan = spec.plan;
    s.step_error = spec.step_error;
    s.parameter_bytes = spec.parameter_bytes;
    s.memory = std::move(spec.memory);
}

}  // namespace railyard
