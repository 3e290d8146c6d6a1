#pragma once
// What runs a training job: the framework, its kernels and its habits, as one entry of the catalogue.

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

struct Software {
    std::string id;                  // in the catalogue
    std::string name;                // as people call it
    std::string attention_kernel;    // in the catalogue
    double elementwise = 1;          // bytes, over those of fused elementwise kernels
    Precision fp8 = Precision::fp8;  // the recipe that it calls fp8
    StackKernels kernels;            // on this GPU
    StackHabits habits;
};

// The stacks as scenarios call them, in the catalogue's order: a version has its dot, "nemo_25.09", where the
// catalogue's ids have "_".
const std::vector<std::string>& software_names();
// The catalogue's entry for a stack that nobody named.
inline constexpr const char* unnamed_software = "unnamed";
// The catalogue's id of one of these; another name is a scenario's own entry, and its own id.
std::string software_id(const std::string& name);

// `id` must be an entry of kind "software"; `gpu` is what it runs on.
Software read_software(Catalogue& catalogue, const std::string& id, const Gpu& gpu);

// How far steps of this kind are from published ones, by how far the job is from what was validated: a stack
// of the catalogue on a GPU whose kind was measured, any stack on such a GPU, or a GPU that nobody has
// measured.
struct StepError : ModelError {
    bool named = false;    // the stack is
    bool shown = false;    // and there are published runs of it on this kind of GPU
    bool measured = true;  // the kind of GPU was

    const char* runs() const { return shown ? "of named software" : "whatever their software"; }
};
// `software` as software_id() has it; empty: none is named.
StepError read_step_error(Catalogue& catalogue, bool experts, const std::string& software,
                          const Gpu& gpu);

// The node, with what the software makes of its GPUs.
void run_software(const Software& software, Node& node);

}  // namespace railyard
