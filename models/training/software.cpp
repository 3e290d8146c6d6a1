#include "models/training/software.h"

#include <algorithm>
#include <cctype>

namespace railyard {

namespace {

const std::vector<std::string>& ids() {
    static const std::vector<std::string> all = Catalogue::names("software");
    return all;
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
    const auto known = std::find(software_names().begin(), software_names().end(), name);
    return known == software_names().end()
               ? name
               : ids()[static_cast<std::size_t>(known - software_names().begin())];
}

Software read_software(Catalogue& c, const std::string& id, const Gpu& gpu) {
    Software s;
    const auto number = [&](const char* key) { return c.number("software", id, key); };
    const auto flag = [&](const char* key, bool& value) {
        if (c.has("software", id, key)) value = c.flag("software", id, key);
    };
    s.id = id;
    s.name = c.text("software", id, "name");
    s.layer_launch_forward = c.time("software", id, "layer_launch_forward");
    s.layer_launch_backward = c.time("software", id, "layer_launch_backward");
    s.step_overhead = c.time("software", id, "step_overhead");
    const double eight_bits = number("matmul_fp8");
    s.matmul = {number("matmul_bf16"),
                eight_bits,
                eight_bits,
                number("matmul_fp8_rowwise"),
                number("matmul_mxfp8"),
                number("matmul_nvfp4")};
    s.attention_kernel = c.text("software", id, "attention_kernel");
    s.attention = c.number("attention_kernel", s.attention_kernel, gpu.generation);
    s.elementwise = number("elementwise");
    s.expert_traffic = number("expert_traffic");
    s.loss_traffic = number("loss_traffic");
    s.accumulation_traffic = number("accumulation_traffic");
    s.overlap = number("piecewise_overlap");
    // What is common to all, but for stacks that were fitted apart.
    const auto own = [&](const char* key) { return c.has("software", id, key); };
    const auto common = [&](const char* key) {
        return own(key) ? number(key) : c.number("step_model", "all", key);
    };
    s.tile_prologue = common("tile_prologue");
    s.overlap_tax = common("overlap_tax");
    s.kernel_gap = own("kernel_gap") ? c.time("software", id, "kernel_gap")
                                     : c.time("step_model", "all", "kernel_gap");
    if (c.has("software", id, "fp8_recipe")) {
        const std::string recipe = c.text("software", id, "fp8_recipe");
        const auto& names = precision_names();
        s.fp8 =
            static_cast<Precision>(std::find(names.begin(), names.end(), recipe) - names.begin());
    }
    flag("fused_attention", s.fused_attention);
    flag("fused_loss", s.fused_loss);
    flag("sequence_parallel", s.sequence_parallel);
    flag("overlap_data", s.overlap_data);
    flag("overlap_tensor", s.overlap_tensor);
    flag("overlap_pipeline", s.overlap_pipeline);
    flag("cuda_graphs", s.cuda_graphs);
    flag("launch_blocking", s.launch_blocking);
    flag("fold_experts", s.fold_experts);
    flag("two_stage_dispatch", s.two_stage_dispatch);
    flag("gather_in_fp8", s.gather_in_fp8);
    flag("keep_in_fp8", s.keep_in_fp8);
    flag("quantize_before_gather", s.quantize_before_gather);
    flag("reduce_in_fp32", s.reduce_in_fp32);
    flag("buckets", s.buckets);
    flag("recompute_stops_early", s.recompute_stops_early);
    return s;
}

StepError read_step_error(Catalogue& c, bool experts, bool named, const Gpu& gpu) {
    const bool measured = c.has("step_model", gpu.generation, "measured") &&
                          c.flag("step_model", gpu.generation, "measured");
    const std::string kind = std::string(experts ? "experts" : "dense") + (!measured ? "_new_gpu"
                                                                           : named   ? "_named"
                                                                                     : "");
    return {read_model_error(c, kind), named, measured};
}

void run_software(const Software& s, Node& node) {
    Gpu& gpu = node.gpu;
    gpu.kernel_quality = s.matmul;
    gpu.fused_attention_efficiency = s.attention;
    gpu.elementwise_traffic *= s.elementwise;
    gpu.expert_traffic = s.expert_traffic;
    gpu.loss_traffic = s.loss_traffic;
    gpu.accumulation_traffic = s.accumulation_traffic;
    gpu.piecewise_overlap = s.overlap;
    gpu.tile_prologue = s.tile_prologue;
    gpu.overlap_tax = s.overlap_tax;
    gpu.kernel_gap = s.kernel_gap;
    gpu.layer_launch_forward = s.layer_launch_forward;
    gpu.layer_launch_backward = s.layer_launch_backward;
    gpu.step_overhead = s.step_overhead;
}

void take_habits(const Software& s, ParallelPlan& p) {
    p.fused_attention = s.fused_attention;
    p.fused_loss = s.fused_loss;
    p.sequence_parallel = s.sequence_parallel;
    p.overlap_data = s.overlap_data;
    p.overlap_tensor = s.overlap_tensor;
    p.overlap_pipeline = s.overlap_pipeline;
    p.cuda_graphs = s.cuda_graphs;
    p.launch_blocking = s.launch_blocking;
    p.gather_in_fp8 = s.gather_in_fp8;
    p.keep_in_fp8 = s.keep_in_fp8;
    p.quantize_before_gather = s.quantize_before_gather;
    p.reduce_in_fp32 = s.reduce_in_fp32;
    p.buckets = s.buckets;
    p.recompute_stops_early = s.recompute_stops_early;
    p.fold_experts = s.fold_experts;
    p.dispatch = s.two_stage_dispatch ? ExpertDispatch::two_stage : ExpertDispatch::all_to_all;
}

}  // namespace railyard
