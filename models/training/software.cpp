#include "models/training/software.h"

#include <algorithm>
#include <cctype>

#include "sim/text.h"

namespace railyard {

namespace {

const std::vector<std::string>& ids() {
    static const std::vector<std::string> all = [] {
        std::vector<std::string> names = Catalogue::names("software");
        std::erase(names, unnamed_software);
        return names;
    }();
    return all;
}

StackHabits read_habits(Catalogue& c, const std::string& id) {
    StackHabits h;
    const auto flag = [&](const char* key, bool& value) {
        if (c.has("software", id, key)) value = c.flag("software", id, key);
    };
    flag("fused_attention", h.fused_attention);
    flag("fused_loss", h.fused_loss);
    flag("sequence_parallel", h.sequence_parallel);
    flag("overlap_data", h.overlap_data);
    flag("overlap_tensor", h.overlap_tensor);
    flag("overlap_pipeline", h.overlap_pipeline);
    flag("cuda_graphs", h.cuda_graphs);
    flag("launch_blocking", h.launch_blocking);
    flag("fold_experts", h.fold_experts);
    bool two_stages = false;
    flag("two_stage_dispatch", two_stages);
    if (two_stages) h.dispatch = ExpertDispatch::two_stage;
    flag("gather_in_fp8", h.gather_in_fp8);
    flag("keep_in_fp8", h.keep_in_fp8);
    flag("quantize_before_gather", h.quantize_before_gather);
    flag("reduce_in_fp32", h.reduce_in_fp32);
    flag("buckets", h.buckets);
    flag("recompute_stops_early", h.recompute_stops_early);
    return h;
}

}  // namespace

const std::vector<std::string>& software_names() {
    static const std::vector<std::string> names = [] {
        std::vector<std::string> out = ids();
        for (std::string& name : out) {
            const std::size_t last = name.rfind('_');
            const bool version =
                last != std::string::npos && last > 0 && std::isdigit(name[last - 1]) != 0;
            if (version) name[last] = '.';
        }
        return out;
    }();
    return names;
}

std::string software_id(const std::string& name) {
    const auto known = std::ranges::find(software_names(), name);
    return known == software_names().end() ? name : ids()[known - software_names().begin()];
}

Software read_software(Catalogue& c, const std::string& id, const Gpu& gpu) {
    Software s;
    StackKernels& k = s.kernels;
    const auto number = [&](const char* key) { return c.number("software", id, key); };
    s.id = id;
    s.name = c.text("software", id, "name");
    k.layer_launch_forward = c.time("software", id, "layer_launch_forward");
    k.layer_launch_backward = c.time("software", id, "layer_launch_backward");
    k.step_overhead = c.time("software", id, "step_overhead");
    const double eight_bits = number("matmul_fp8");
    k.kernel_quality = {number("matmul_bf16"),
                        eight_bits,
                        eight_bits,
                        number("matmul_fp8_rowwise"),
                        number("matmul_mxfp8"),
                        number("matmul_nvfp4")};
    s.attention_kernel = c.text("software", id, "attention_kernel");
    k.fused_attention_efficiency = c.number("attention_kernel", s.attention_kernel, gpu.generation);
    s.elementwise = number("elementwise");
    k.expert_traffic = number("expert_traffic");
    k.loss_traffic = number("loss_traffic");
    k.accumulation_traffic = number("accumulation_traffic");
    k.piecewise_overlap = number("piecewise_overlap");
    // What is common to all, but for stacks that were fitted apart.
    const auto own = [&](const char* key) { return c.has("software", id, key); };
    const auto common = [&](const char* key) {
        return own(key) ? number(key) : c.number("step_model", "all", key);
    };
    k.tile_prologue = common("tile_prologue");
    k.overlap_tax = common("overlap_tax");
    k.grouped_efficiency = common("grouped_efficiency");
    k.kernel_gap = own("kernel_gap") ? c.time("software", id, "kernel_gap")
                                     : c.time("step_model", "all", "kernel_gap");
    if (c.has("software", id, "fp8_recipe")) {
        const std::string recipe = c.text("software", id, "fp8_recipe");
        const auto& names = precision_names;
        s.fp8 = static_cast<Precision>(std::ranges::find(names, recipe) - names.begin());
    }
    s.habits = read_habits(c, id);
    return s;
}

StepError read_step_error(Catalogue& c, bool experts, const std::string& software, const Gpu& gpu) {
    const bool named = !software.empty();
    const std::string stacks = c.text("step_model", gpu.generation, "stacks", "");
    const bool shown = named && std::ranges::count(split_text(stacks, ' '), software) > 0;
    const bool measured = c.flag("step_model", gpu.generation, "measured", false);
    const std::string kind = std::string(experts ? "experts" : "dense") + (!measured ? "_new_gpu"
                                                                           : shown   ? "_named"
                                                                                     : "");
    return {read_model_error(c, kind), named, shown, measured};
}

void run_software(const Software& s, Node& node) {
    static_cast<StackKernels&>(node.gpu) = s.kernels;
    node.gpu.elementwise_traffic *= s.elementwise;
}

}  // namespace railyard
