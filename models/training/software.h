#pragma once
// What runs a training job: the framework, its kernels and its habits, as one entry of the catalogue.

#include <array>
#include <string>
#include <vector>

#include "models/catalogue/catalogue.h"
#include "models/hardware/hardware.h"
#include "models/training/plan.h"

namespace railyard {

// How far published figures are from what the models say, learned by leaving out what they were fitted on:
// shares that half of the published figures, and nine in ten, are within. 0: nothing is known of it.
struct ModelError {
    double half = 0;
    double nine_tenths = 0;
};

// `kind` is an entry of [model_error] in step_model.toml.
inline ModelError read_model_error(Catalogue& catalogue, const std::string& kind) {
    return {catalogue.number("model_error", kind, "half"),
            catalogue.number("model_error", kind, "nine_tenths")};
}

// Shares are of what the best known kernels of a GPU sustain in a training run.
struct Software {
    std::string id;    // in the catalogue
    std::string name;  // as people call it
    // What a CPU needs to launch one layer, kernel by kernel, and a step besides.
    Duration layer_launch_forward{};
    Duration layer_launch_backward{};
    Duration step_overhead{};
    std::array<double, precisions> matmul{};  // share, by precision
    std::string attention_kernel;             // in the catalogue
    double attention = 0;                     // its share of the sustained rate, on this GPU
    double elementwise = 1;                   // bytes, over those of fused elementwise kernels
    double expert_traffic = 0;                // see Gpu::expert_traffic
    double loss_traffic = 0;                  // bytes per logit, unfused
    double accumulation_traffic = 0;          // bytes per parameter and microbatch
    double tile_prologue = 0;                 // the parameters of kernels: see Gpu
    double overlap_tax = 0;
    Duration kernel_gap{};
    double overlap = 0;  // of a collective cut into pieces beside work, what can hide
    // What a job has unless it says otherwise.
    Precision fp8 = Precision::fp8;  // the recipe that it calls fp8
    bool fused_attention = true;
    bool fused_loss = false;
    bool sequence_parallel = true;
    bool overlap_data = true;
    bool overlap_tensor = false;
    bool overlap_pipeline = true;
    bool cuda_graphs = false;
    bool launch_blocking = false;
    bool fold_experts = false;
    bool two_stage_dispatch = false;
    bool gather_in_fp8 = false;  // weights of fp8 products are gathered in 8 bits
    bool keep_in_fp8 =
        false;  // beside fp8 products, inputs of activation functions are kept in 8 bits
    bool quantize_before_gather = false;  // what tensor-parallel ranks gather for fp8 products
    bool reduce_in_fp32 = true;
    bool buckets = false;
    bool recompute_stops_early = false;
};

// The stacks as scenarios call them, in the catalogue's order: a version has its dot, "nemo_25.09", where the
// catalogue's ids have "_".
const std::vector<std::string>& software_names();
// What stands for a stack that nobody named: the one that other stacks' published steps are nearest to.
inline constexpr const char* unnamed_software = "megatron_core_0.12";
// The catalogue's id of one of these; another name is a scenario's own entry, and its own id.
std::string software_id(const std::string& name);

// `id` must be an entry of kind "software"; `gpu` is what it runs on.
Software read_software(Catalogue& catalogue, const std::string& id, const Gpu& gpu);

// How far steps of this kind are from published ones, by how far the job is from what was validated: a stack
// of the catalogue on a GPU whose kind was measured, any stack on such a GPU, or a GPU that nobody has
// measured.
struct StepError : ModelError {
    bool named = false;    // the stack is
    bool measured = true;  // the kind of GPU was
};
StepError read_step_error(Catalogue& catalogue, bool experts, bool named, const Gpu& gpu);

// The node, with what the software makes of its GPUs.
void run_software(const Software& software, Node& node);
// The plan, with what the software does unless it is told otherwise.
void take_habits(const Software& software, ParallelPlan& plan);

}  // namespace railyard
