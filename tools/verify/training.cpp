#include "tools/verify/training.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <cmath>

namespace railyard {

namespace {

// Microbatch and virtual stages that a table does not print: the fastest that divide and fit.
double fastest_step(Bench& bench, const TransformerModel& m, ParallelPlan p, const Node& node,
                    bool choose_microbatch) {
    check_plan(m, p);
    double best = 0;
    const std::int64_t stage = layers_per_stage(m, p);
    for (const std::int64_t microbatch : {1, 2, 4, 8}) {
        if (choose_microbatch) p.microbatch = microbatch;
        if (p.global_batch % (p.data * p.microbatch) != 0) continue;
        for (std::int64_t interleave = 1; interleave <= (p.pipeline > 1 ? stage : 1);
             ++interleave) {
            if (stage % interleave != 0) continue;
            if (interleave > 1 && p.microbatches() % p.pipeline != 0) continue;
            p.interleave = interleave;
            const double memory = memory_bytes_per_gpu(m, p, bench.bytes(), node.gpu);
            if (memory > static_cast<double>(node.gpu.usable_memory.count())) continue;
            const double step = bench.step_seconds(m, p, node);
            if (best == 0 || step < best) best = step;
        }
        if (!choose_microbatch) break;
    }
    return best;
}

ParallelPlan plan_of(const Fields& f, std::int64_t sequence) {
    ParallelPlan p;
    p.tensor = f.integer("tp");
    p.pipeline = f.integer("pp");
    p.data = f.integer("dp");
    p.global_batch = f.integer("global_batch");
    p.microbatch = std::max<std::int64_t>(1, f.integer("microbatch"));
    p.sequence_length = sequence;
    p.fused_attention = false;
    p.overlap_data = false;
    p.overlap_pipeline = false;
    p.sequence_parallel = false;
    p.recompute = Recompute::full;
    p.zero = 0;
    return p;
}

// 01: Megatron-LM SC'21, weak scaling on A100.
RowResult megatron_weak(Bench& bench, const Fields& f) {
    const TransformerModel m = gpt(f.integer("layers"), f.integer("hidden"), f.integer("heads"),
                                   f.integer("vocab"), f.integer("seq"));
    ParallelPlan p = plan_of(f, f.integer("seq"));
    p.reduce_in_fp32 = false;  // fp16 runs exchanged gradients as the backward pass computed them
    const double step = fastest_step(bench, m, p, bench.node("dgx_a100"), true);
    if (step == 0) return std::nullopt;
    return VerifiedRow{fmt::format("{}B on {}", f.text("params_B"), f.text("gpus")),
                       "TFLOP/s per GPU", f.figure("tflops_per_gpu"),
                       hardware_flops(m, p) / step / f.number("gpus") * 1e-12};
}

// 02: PTD-P against ZeRO-3, 175B and 530B on A100.
RowResult megatron_zero3(Bench& bench, const Fields& f) {
    const bool large = f.number("params_B") > 300;
    const TransformerModel m =
        large ? gpt(105, 20480, 128, 51200, 2048) : gpt(96, 12288, 96, 51200, 2048);
    ParallelPlan p = plan_of(f, 2048);
    p.reduce_in_fp32 = false;  // fp16 runs exchanged gradients as the backward pass computed them
    const std::int64_t gpus = f.integer("gpus");
    const bool zero3 = f.text("scheme") == "ZeRO-3";
    p.tensor = zero3 ? 1 : 8;
    p.pipeline = zero3 ? 1 : f.integer("model_parallel_size") / 8;
    p.data = data_ranks(p, gpus);
    if (zero3) {
        p.zero = 3;
        p.overlap_data = true;
        p.flat_parameters = false;  // DeepSpeed of 2021
    }
    const Node node = bench.node("dgx_a100");
    const double step =
        zero3 ? bench.step_seconds(m, p, node) : fastest_step(bench, m, p, node, false);
    if (step == 0) return std::nullopt;
    return VerifiedRow{fmt::format("{} {}B on {}", f.text("scheme"), f.text("params_B"), gpus),
                       "TFLOP/s per GPU", f.figure("tflops_per_gpu"),
                       hardware_flops(m, p) / step / static_cast<double>(gpus) * 1e-12};
}

ParallelPlan megatron_core_plan(const Fields& f) {
    ParallelPlan p = plan_of(f, 4096);
    p.fused_attention = true;
    p.overlap_data = true;
    p.overlap_tensor = true;
    p.overlap_pipeline = true;
    p.sequence_parallel = true;
    p.recompute = Recompute::selective;
    p.zero = 1;
    return p;
}

// 04: Megatron-Core, weak scaling on H100, with its overlaps on.
RowResult megatron_core(Bench& bench, const Fields& f) {
    const TransformerModel m =
        gpt(f.integer("layers"), f.integer("hidden"), f.integer("heads"), 131072, 4096);
    const ParallelPlan p = megatron_core_plan(f);
    const double step = fastest_step(bench, m, p, bench.node("dgx_h100"), true);
    if (step == 0) return std::nullopt;
    return VerifiedRow{fmt::format("{} on {}", f.text("model"), f.text("gpus")), "TFLOP/s per GPU",
                       f.figure("tflops_per_gpu"),
                       model_flops(m, p) / step / f.number("gpus") * 1e-12};
}

// 05: Megatron-Core, 177B, strong scaling on H100 at TP 8 x PP 6.
RowResult megatron_core_strong(Bench& bench, const Fields& f) {
    const TransformerModel m = gpt(96, 12288, 96, 131072, 4096);
    ParallelPlan p = megatron_core_plan(f);
    p.tensor = 8;
    p.pipeline = 6;
    p.data = data_ranks(p, f.integer("gpus"));
    p.global_batch = 1152;
    const double step = fastest_step(bench, m, p, bench.node("dgx_h100"), true);
    if (step == 0) return std::nullopt;
    return VerifiedRow{fmt::format("177B on {}", f.text("gpus")), "TFLOP/s per GPU",
                       f.figure("tflops_per_gpu"),
                       model_flops(m, p) / step / f.number("gpus") * 1e-12};
}

// 06: Llama 3 405B. Interleaving is not printed; context parallelism gathers keys and values.
RowResult llama3(Bench& bench, const Fields& f) {
    const TransformerModel m = bench.model("llama3_405b");
    ParallelPlan p = plan_of(f, f.integer("seq_len"));
    p.context = f.integer("cp");
    p.data = data_ranks(p, f.integer("gpus"));
    p.global_batch = f.integer("batch_per_dp") * p.data;
    p.interleave = 8;
    p.fused_attention = true;
    p.overlap_data = true;
    p.overlap_context = false;
    p.overlap_pipeline = true;
    p.sequence_parallel = true;
    p.recompute = Recompute::elementwise;
    p.zero = 1;
    const double step = bench.step_seconds(m, p, bench.node("dgx_h100"));
    return VerifiedRow{fmt::format("405B on {} cp {}", f.text("gpus"), p.context),
                       "TFLOP/s per GPU", f.figure("tflops_per_gpu"),
                       model_flops(m, p) / step / f.number("gpus") * 1e-12};
}

// MegaScale's changes, in the order of its ablation (table 11); each includes those before.
enum class MegaScale : std::uint8_t {
    baseline,
    parallel_block,
    window,
    tensor_overlap,
    pipeline_overlap,
    data_overlap,
    operators,
    batch,
};

void apply_megascale(MegaScale upto, TransformerModel& m, ParallelPlan& p) {
    m.parallel_block = upto >= MegaScale::parallel_block;
    // The paper prints no window; a quarter of the sequence is an estimate that moves little.
    if (upto >= MegaScale::window) m.window = p.sequence_length / 4;
    p.overlap_tensor = upto >= MegaScale::tensor_overlap;
    p.overlap_pipeline = upto >= MegaScale::pipeline_overlap;
    p.overlap_data = upto >= MegaScale::data_overlap;
    p.fused_attention = upto >= MegaScale::operators;
    p.fused_loss = upto >= MegaScale::operators;
}

ParallelPlan megascale_plan(const Fields& f) {
    ParallelPlan p = plan_of(f, 2048);
    p.tensor = 8;
    p.sequence_parallel = true;
    p.recompute = Recompute::selective;
    p.zero = 1;
    return p;
}

// MFU counts attention over the whole sequence, window or not.
double megascale_mfu(TransformerModel m, const ParallelPlan& p, const Node& node, double step) {
    m.window = 0;
    return 100 * model_flops(m, p) / step / static_cast<double>(p.gpus()) /
           node.gpu.bf16_dense.per_second;
}

// 09: MegaScale's 175B.
RowResult megascale_175b(Bench& bench, const Fields& f) {
    TransformerModel m = gpt(96, 12288, 128, 64000, 2048);
    ParallelPlan p = megascale_plan(f);
    p.interleave = 6;
    if (f.text("method") != "Megatron-LM") apply_megascale(MegaScale::batch, m, p);
    return VerifiedRow{fmt::format("{} 175B on {}", f.text("method"), f.text("gpus")), "s per step",
                       f.figure("iter_time_s"), bench.step_seconds(m, p, bench.node("dgx_a100"))};
}

// 10: MegaScale's 530B.
RowResult megascale_530b(Bench& bench, const Fields& f) {
    TransformerModel m = gpt(105, 20480, 160, 64000, 2048);
    ParallelPlan p = megascale_plan(f);
    p.pipeline = 35;
    p.data = data_ranks(p, f.integer("gpus"));
    p.global_batch = f.integer("gpus");
    p.interleave = 3;
    if (f.text("method") != "Megatron-LM") apply_megascale(MegaScale::batch, m, p);
    const Node node = bench.node("dgx_a100");
    return VerifiedRow{fmt::format("{} 530B on {}", f.text("method"), f.text("gpus")),
                       "% MFU (bf16)", f.figure("mfu_pct"),
                       megascale_mfu(m, p, node, bench.step_seconds(m, p, node))};
}

// 11: MegaScale's changes one after another, 175B on 256 GPUs.
RowResult megascale_ablation(Bench& bench, const Fields& f) {
    const std::pair<const char*, MegaScale> words[] = {
        {"baseline", MegaScale::baseline},
        {"parallel transformer", MegaScale::parallel_block},
        {"sliding window", MegaScale::window},
        {"TP overlap", MegaScale::tensor_overlap},
        {"PP overlap", MegaScale::pipeline_overlap},
        {"DP overlap", MegaScale::data_overlap},
        {"efficient operators", MegaScale::operators},
        {"LAMB", MegaScale::batch},
    };
    const auto word = std::find_if(std::begin(words), std::end(words), [&](const auto& each) {
        return f.text("step").find(each.first) != std::string::npos;
    });
    if (word == std::end(words)) return std::nullopt;
    TransformerModel m = gpt(96, 12288, 128, 64000, 2048);
    ParallelPlan p = megascale_plan(f);
    p.pipeline = 8;
    p.data = 4;
    p.interleave = 6;
    p.global_batch = word->second == MegaScale::batch ? 768 : 256;
    apply_megascale(word->second, m, p);
    const Node node = bench.node("dgx_a100");
    return VerifiedRow{f.text("step"), "% MFU (bf16)", f.figure("mfu_pct"),
                       megascale_mfu(m, p, node, bench.step_seconds(m, p, node))};
}

// 13: Korthikanti et al., Table 5.
RowResult korthikanti(Bench& bench, const Fields& f) {
    const TransformerModel m = gpt(f.integer("layers"), f.integer("hidden"), f.integer("heads"),
                                   f.integer("vocab"), f.integer("seq"));
    ParallelPlan p = plan_of(f, f.integer("seq"));
    p.reduce_in_fp32 = false;  // fp16 runs exchanged gradients as the backward pass computed them
    p.interleave = f.integer("interleave");
    if (f.text("mode") != "full_recompute") {
        p.sequence_parallel = true;
        p.recompute = Recompute::selective;
    }
    return VerifiedRow{fmt::format("{} {}", f.text("model"), f.text("mode")), "s per step",
                       f.figure("iter_time_s_measured"),
                       bench.step_seconds(m, p, bench.node("dgx_a100"))};
}

// 14: memory of Korthikanti et al., Figures 1 and 7, for the configurations of their Table 5.
RowResult korthikanti_memory(Bench& bench, const Fields& f) {
    struct Config {
        const char* name;
        TransformerModel model;
        std::int64_t pipeline, interleave, microbatch;
    };
    const Config configs[] = {{"22B", gpt(48, 6144, 64, 51200, 2048), 1, 1, 4},
                              {"175B", gpt(96, 12288, 96, 51200, 2048), 8, 3, 1},
                              {"530B", gpt(105, 20480, 128, 51200, 2048), 35, 3, 1},
                              {"1T", gpt(128, 25600, 160, 51200, 2048), 64, 1, 1}};
    const auto config = std::find_if(std::begin(configs), std::end(configs),
                                     [&](const Config& c) { return f.text("model") == c.name; });
    if (config == std::end(configs)) return std::nullopt;
    const Node node = bench.node("dgx_a100");
    const auto bytes_of = [&](const std::string& mode, const std::vector<std::string>& components) {
        ParallelPlan p;
        p.tensor = 8;
        p.pipeline = config->pipeline;
        p.interleave = config->interleave;
        p.microbatch = config->microbatch;
        p.global_batch = 128 * p.microbatch;
        p.sequence_length = 2048;
        p.zero = 0;
        p.fused_attention = false;
        p.sequence_parallel = mode.starts_with("seq");
        p.recompute = mode == "full"                          ? Recompute::full
                      : mode.find("sel") != std::string::npos ? Recompute::selective
                                                              : Recompute::none;
        double sum = 0;
        for (const MemoryUse& use : memory_per_gpu(config->model, p, bench.bytes(), node.gpu)) {
            if (std::find(components.begin(), components.end(), use.component) !=
                components.end()) {
                sum += use.bytes;
            }
        }
        return sum;
    };
    constexpr double gib = 1024.0 * 1024 * 1024;
    const std::string& mode = f.text("mode");
    const std::string& quantity = f.text("quantity");
    double simulated = 0;
    if (quantity == "activations_GiB") {
        simulated = bytes_of(mode, {"activations"}) / gib;
    } else if (quantity == "params_optimizer_GiB") {
        simulated = bytes_of(mode, {"weights", "gradients", "optimizer state"}) / gib;
    } else if (quantity == "activation_mem_pct_of_baseline") {
        simulated = 100 * bytes_of(mode, {"activations"}) / bytes_of("none", {"activations"});
    } else {
        return std::nullopt;
    }
    return VerifiedRow{fmt::format("{} {}", f.text("model"), mode), quantity,
                       f.figure("paper_value"), simulated};
}

// 15 and 16: vTrain's measured runs of Megatron-DeepSpeed on A100, four HDR NICs a node.
RowResult vtrain(Bench& bench, const Fields& f) {
    const TransformerModel m =
        gpt(f.integer("layers"), f.integer("hidden"), f.integer("heads"), 50257, f.integer("seq"));
    ParallelPlan p = plan_of(f, f.integer("seq"));
    p.reduce_in_fp32 = false;  // fp16 runs exchanged gradients as the backward pass computed them
    Node node = bench.node("dgx_a100");
    node.nics = 4;
    return VerifiedRow{fmt::format("h{} l{} t{} d{} p{} b{}/{}", m.hidden, m.layers, p.tensor,
                                   p.data, p.pipeline, p.microbatch, p.global_batch),
                       "ms per step", f.figure("iter_time_ms"),
                       1e3 * bench.step_seconds(m, p, node)};
}

// 17: SimuMax's runs of Megatron-LM on one node of B200. The case's name says it all:
// llama3_70b_l12_tp1_pp2_dp4_mbc4_cef.
struct SimuMaxCase {
    TransformerModel model;
    ParallelPlan plan;
};

std::optional<SimuMaxCase> simumax_case(Bench& bench, const std::string& name) {
    SimuMaxCase out;
    ParallelPlan& p = out.plan;
    p.sequence_length = 4096;
    p.overlap_data = false;
    p.overlap_pipeline = false;
    std::string model;
    std::int64_t layers = 0;
    std::int64_t microbatches = 1;
    const std::pair<const char*, std::int64_t*> keys[] = {
        {"mbc", &microbatches}, {"mbs", &p.microbatch}, {"seq", &p.sequence_length},
        {"tp", &p.tensor},      {"pp", &p.pipeline},    {"dp", &p.data},
        {"ep", &p.expert},      {"cp", &p.context},     {"l", &layers}};
    std::size_t from = 0;
    while (from < name.size()) {
        const std::size_t end = std::min(name.find('_', from), name.size());
        const std::string word = name.substr(from, end - from);
        from = end + 1;
        const auto key = std::find_if(std::begin(keys), std::end(keys), [&](const auto& each) {
            const std::string prefix = each.first;
            return word.size() > prefix.size() && word.starts_with(prefix) &&
                   word.find_first_not_of("0123456789", prefix.size()) == std::string::npos;
        });
        if (key != std::end(keys)) {
            *key->second = std::stoll(word.substr(std::string(key->first).size()));
        } else if (word == "cef") {
            p.fused_loss = true;
        } else {
            model += word;
        }
    }
    for (const std::string& entry : Catalogue::names("model")) {
        std::string letters = entry;
        std::erase(letters, '_');
        if (letters == model) out.model = bench.model(entry);
    }
    TransformerModel& m = out.model;
    if (m.name.empty()) return std::nullopt;
    if (layers > 0) {
        m.layers = layers;
        // The cut models keep one dense layer: what their memory says.
        m.dense_layers = std::min<std::int64_t>(m.dense_layers, 1);
    }
    p.global_batch = microbatches * p.data * p.microbatch;
    return out;
}

RowResult simumax_time(Bench& bench, const Fields& f) {
    const std::optional<SimuMaxCase> c = simumax_case(bench, f.text("case"));
    if (!c) return std::nullopt;
    Node node = bench.node("dgx_b200");
    const auto launch = [&](const char* pass) {
        return bench.catalogue().time("software", "transformer_engine", pass);
    };
    node.gpu.layer_launch_forward = launch("layer_launch_forward");
    node.gpu.layer_launch_backward = launch("layer_launch_backward");
    return VerifiedRow{f.text("case"), "ms per step", f.figure("real_ms"),
                       1e3 * bench.step_seconds(c->model, c->plan, node)};
}

// What the framework's allocator held: without the CUDA context.
RowResult simumax_memory(Bench& bench, const Fields& f) {
    const std::optional<SimuMaxCase> c = simumax_case(bench, f.text("case"));
    if (!c) return std::nullopt;
    check_plan(c->model, c->plan);
    Gpu gpu = bench.node("dgx_b200").gpu;
    gpu.reserved_memory = {};
    return VerifiedRow{
        f.text("case"), "GiB allocated", f.figure("real_alloc_GiB"),
        memory_bytes_per_gpu(c->model, c->plan, bench.bytes(), gpu) / (1024.0 * 1024 * 1024)};
}

// 19: of the other measurements the one with a full plan, MLPerf's GPT-3 on 10,752 H100 in fp8.
RowResult other_training(Bench& bench, const Fields& f) {
    if (f.text("metric") != "iter_time_s" || f.integer("tp") == 0) return std::nullopt;
    if (f.text("model") != "GPT-3 175B") return std::nullopt;
    const TransformerModel m = gpt(96, 12288, 96, 51200, 2048);
    ParallelPlan p = megatron_core_plan(f);
    p.sequence_length = 2048;
    p.cuda_graphs = true;
    p.fused_loss = true;
    if (f.text("method").find("FP8") != std::string::npos) p.precision = Precision::fp8;
    const double step = fastest_step(bench, m, p, bench.node("dgx_h100"), true);
    if (step == 0) return std::nullopt;
    return VerifiedRow{fmt::format("{} on {}", f.text("source"), f.text("gpus")), "s per step",
                       f.figure("value"), step};
}

constexpr TableFormat training_formats[] = {
    {"01", "Megatron-LM SC'21, weak scaling, A100", megatron_weak},
    {"02", "Megatron-LM SC'21, PTD-P against ZeRO-3, A100", megatron_zero3},
    {"04", "Megatron-Core, weak scaling, H100", megatron_core},
    {"05", "Megatron-Core, strong scaling, H100", megatron_core_strong},
    {"06", "Llama 3 405B, H100", llama3},
    {"09", "MegaScale 175B, A100", megascale_175b},
    {"10", "MegaScale 530B, A100", megascale_530b},
    {"11", "MegaScale's changes one by one, A100", megascale_ablation},
    {"13", "Korthikanti et al., step time, A100", korthikanti},
    {"14", "Korthikanti et al., memory per GPU", korthikanti_memory},
    {"15", "vTrain, many nodes, A100", vtrain},
    {"16", "vTrain, one node, A100", vtrain},
    {"17", "SimuMax's runs, step time, B200", simumax_time},
    {"17", "SimuMax's runs, memory per GPU, B200", simumax_memory},
    {"19", "MLPerf GPT-3 in fp8, H100", other_training},
};

}  // namespace

std::span<const TableFormat> training_tables() {
    return training_formats;
}

}  // namespace railyard
