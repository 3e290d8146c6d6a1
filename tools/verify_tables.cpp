#include "tools/verify_tables.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <cmath>
#include <map>
#include <regex>

#include "models/campaign/campaign.h"
#include "models/collective/collective.h"
#include "sim/statistics.h"
#include "tools/options.h"
#include "tools/queueing.h"
#include "tools/verify_fleets.h"
#include "tools/verify_megatron_text.h"
#include "tools/verify_networks.h"
#include "tools/verify_packets.h"
#include "tools/verify_reliability.h"
#include "tools/verify_schedules.h"
#include "tools/verify_storage.h"
#include "tools/verify_stores.h"
#include "tools/verify_streams.h"

namespace railyard {

namespace {

// What every evaluation needs: the catalogue, without a scenario.
class Bench {
  public:
    explicit Bench(const Value* overrides) : overrides_(overrides) {}
    Node node(const char* name) { return read_node(own_.catalogue, name); }
    ParameterBytes bytes() { return read_parameter_bytes(own_.catalogue); }
    // With the jitter of the catalogue: measured runs have it.
    double step_seconds(const TransformerModel& m, ParallelPlan p, const Node& n) {
        p.jitter = own_.catalogue.number("jitter", "", "step_sigma");
        const double traffic =
            own_.catalogue.number("bytes_per_param", "", "optimizer_step_traffic");
        Communicators all = groups(n);
        return seconds(model_step(m, p, all, bytes(), traffic).duration());
    }
    Communicators groups(const Node& n) {
        const auto [found, is_new] = constants_.try_emplace(n.name + n.nic);
        if (is_new) found->second = read_collective_constants(own_.catalogue, n);
        return Communicators(found->second, n);
    }
    TransformerModel model(const std::string& name) { return read_model(own_.catalogue, name); }
    Catalogue& catalogue() { return own_.catalogue; }
    QueueRuns& queues() { return queues_; }
    void check() const { own_.diagnostics.raise_if_any(); }

  private:
    const Value* overrides_;
    StandaloneCatalogue own_{ValueChoice::corrected, overrides_};
    std::map<std::string, CollectiveConstants> constants_;  // by node and NIC
    QueueRuns queues_;
};

// A GPT by its dimensions; parameters by Megatron's formula (arXiv:2104.04473, eq. 2).
TransformerModel gpt(std::int64_t layers, std::int64_t hidden, std::int64_t heads,
                     std::int64_t vocab, std::int64_t sequence) {
    TransformerModel m;
    m.layers = layers;
    m.hidden = hidden;
    m.ffn = 4 * hidden;
    m.heads = heads;
    m.kv_heads = heads;
    m.head_dim = heads > 0 ? hidden / heads : 0;
    m.value_dim = m.head_dim;
    m.vocab = vocab;
    m.sequence_length = sequence;
    const double l = static_cast<double>(layers);
    const double h = static_cast<double>(hidden);
    m.params =
        12 * l * h * h * (1 + 13 / (12 * h) + static_cast<double>(vocab + sequence) / (12 * l * h));
    return m;
}

double model_flops(const TransformerModel& m, const ParallelPlan& p) {
    return 3 * forward_flops_per_token(m, p.sequence_length) *
           static_cast<double>(p.global_batch * p.sequence_length);
}

// Megatron counts the recomputed forward pass as work too: its "96 B s l h^2".
double hardware_flops(const TransformerModel& m, const ParallelPlan& p) {
    const double logits = 2.0 * static_cast<double>(m.hidden) * static_cast<double>(m.vocab) *
                          static_cast<double>(p.global_batch * p.sequence_length);
    return (model_flops(m, p) - 3 * logits) * 4 / 3 + 3 * logits;
}

// Microbatch and virtual stages that a table does not print: the fastest that divide and fit.
double fastest_step(Bench& bench, const TransformerModel& m, ParallelPlan p, const Node& node,
                    bool choose_microbatch) {
    double best = 0;
    const std::int64_t stage = layers_per_stage(m, p.pipeline);
    for (const std::int64_t microbatch : {1, 2, 4, 8}) {
        if (choose_microbatch) p.microbatch = microbatch;
        if (p.global_batch % (p.data * p.microbatch) != 0) continue;
        for (std::int64_t interleave = 1; interleave <= (p.pipeline > 1 ? stage : 1);
             ++interleave) {
            if (stage % interleave != 0) continue;
            if (interleave > 1 && p.microbatches() % p.pipeline != 0) continue;
            p.interleave = interleave;
            const double memory = memory_bytes_per_gpu(m, p, bench.bytes(), node.gpu);
            if (memory > static_cast<double>(node.gpu.hbm_capacity.count())) continue;
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

using RowResult = std::optional<VerifiedRow>;

// 01: Megatron-LM SC'21, weak scaling on A100.
RowResult megatron_weak(Bench& bench, const Fields& f) {
    const TransformerModel m = gpt(f.integer("layers"), f.integer("hidden"), f.integer("heads"),
                                   f.integer("vocab"), f.integer("seq"));
    ParallelPlan p = plan_of(f, f.integer("seq"));
    p.reduce_in_fp32 = false;  // fp16 runs exchanged gradients as the backward pass computed them
    const double step = fastest_step(bench, m, p, bench.node("dgx_a100"), true);
    if (step == 0) return std::nullopt;
    return VerifiedRow{fmt::format("{}B on {}", f.text("params_B"), f.text("gpus")),
                       "TFLOP/s per GPU", f.number("tflops_per_gpu"),
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
    p.data = gpus / (p.tensor * p.pipeline);
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
                       "TFLOP/s per GPU", f.number("tflops_per_gpu"),
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
                       f.number("tflops_per_gpu"),
                       model_flops(m, p) / step / f.number("gpus") * 1e-12};
}

// 05: Megatron-Core, 177B, strong scaling on H100 at TP 8 x PP 6.
RowResult megatron_core_strong(Bench& bench, const Fields& f) {
    const TransformerModel m = gpt(96, 12288, 96, 131072, 4096);
    ParallelPlan p = megatron_core_plan(f);
    p.tensor = 8;
    p.pipeline = 6;
    p.data = f.integer("gpus") / 48;
    p.global_batch = 1152;
    const double step = fastest_step(bench, m, p, bench.node("dgx_h100"), true);
    if (step == 0) return std::nullopt;
    return VerifiedRow{fmt::format("177B on {}", f.text("gpus")), "TFLOP/s per GPU",
                       f.number("tflops_per_gpu"),
                       model_flops(m, p) / step / f.number("gpus") * 1e-12};
}

// 06: Llama 3 405B. Interleaving is not printed; context parallelism gathers keys and values.
RowResult llama3(Bench& bench, const Fields& f) {
    const TransformerModel m = bench.model("llama3_405b");
    ParallelPlan p = plan_of(f, f.integer("seq_len"));
    p.context = f.integer("cp");
    p.data = f.integer("gpus") / (p.tensor * p.context * p.pipeline);
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
                       "TFLOP/s per GPU", f.number("tflops_per_gpu"),
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
                       f.number("iter_time_s"), bench.step_seconds(m, p, bench.node("dgx_a100"))};
}

// 10: MegaScale's 530B.
RowResult megascale_530b(Bench& bench, const Fields& f) {
    TransformerModel m = gpt(105, 20480, 160, 64000, 2048);
    ParallelPlan p = megascale_plan(f);
    p.pipeline = 35;
    p.data = f.integer("gpus") / 280;
    p.global_batch = f.integer("gpus");
    p.interleave = 3;
    if (f.text("method") != "Megatron-LM") apply_megascale(MegaScale::batch, m, p);
    const Node node = bench.node("dgx_a100");
    return VerifiedRow{fmt::format("{} 530B on {}", f.text("method"), f.text("gpus")), "% MFU",
                       f.number("mfu_pct"),
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
    return VerifiedRow{f.text("step"), "% MFU", f.number("mfu_pct"),
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
                       f.number("iter_time_s_measured"),
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
                       f.number("paper_value"), simulated};
}

// 15 and 16: vTrain's measured runs of Megatron-DeepSpeed on A100, four HDR NICs a node.
RowResult vtrain(Bench& bench, const Fields& f) {
    const TransformerModel m =
        gpt(f.integer("layers"), f.integer("hidden"), f.integer("heads"), 50257, f.integer("seq"));
    ParallelPlan p = plan_of(f, f.integer("seq"));
    p.reduce_in_fp32 = false;  // fp16 runs exchanged gradients as the backward pass computed them
    if (p.global_batch % (p.data * p.microbatch) != 0) return std::nullopt;
    Node node = bench.node("dgx_a100");
    node.nics = 4;
    return VerifiedRow{fmt::format("h{} l{} t{} d{} p{} b{}/{}", m.hidden, m.layers, p.tensor,
                                   p.data, p.pipeline, p.microbatch, p.global_batch),
                       "ms per step", f.number("iter_time_ms"),
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
        m.params = parameter_count(m, false);
    }
    p.global_batch = microbatches * p.data * p.microbatch;
    return out;
}

RowResult simumax_time(Bench& bench, const Fields& f) {
    const std::optional<SimuMaxCase> c = simumax_case(bench, f.text("case"));
    if (!c) return std::nullopt;
    return VerifiedRow{f.text("case"), "ms per step", f.number("real_ms"),
                       1e3 * bench.step_seconds(c->model, c->plan, bench.node("dgx_b200"))};
}

// What the framework's allocator held: without the CUDA context.
RowResult simumax_memory(Bench& bench, const Fields& f) {
    const std::optional<SimuMaxCase> c = simumax_case(bench, f.text("case"));
    if (!c) return std::nullopt;
    Gpu gpu = bench.node("dgx_b200").gpu;
    gpu.reserved_memory = {};
    return VerifiedRow{
        f.text("case"), "GiB allocated", f.number("real_alloc_GiB"),
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
                       f.number("value"), step};
}

// The numbers in a text, in order: "p=4 m=8 v=6" gives 4, 8, 6.
std::vector<double> numbers_in(const std::string& text) {
    std::vector<double> out;
    const char* at = text.c_str();
    while (*at != 0) {
        char* end = nullptr;
        const bool starts = std::isdigit(static_cast<unsigned char>(*at)) != 0;
        const double value = starts ? std::strtod(at, &end) : 0;
        if (starts) out.push_back(value);
        at = starts ? end : at + 1;
    }
    return out;
}

// 74: training arithmetic, exact.
RowResult training_arithmetic(Bench& bench, const Fields& f) {
    const std::string& oracle = f.text("oracle");
    const std::string& config = f.text("config");
    const std::vector<double> n = numbers_in(config);
    const auto is = [&](const char* word) { return oracle.find(word) != std::string::npos; };
    const auto row = [&](double simulated) {
        return VerifiedRow{fmt::format("{}, {}", oracle, config), "", f.number("value"), simulated};
    };
    if (is("pipeline bubble") && n.size() == 3) {
        // A model of equal stages, whose logits cost nothing, over a network that costs nothing.
        ParallelPlan p;
        p.pipeline = std::llround(n[0]);
        p.global_batch = std::llround(n[1]);
        p.interleave = std::llround(n[2]);
        p.sequence_length = 2048;
        TransformerModel m = gpt(p.pipeline * 6, 8192, 64, 0, 2048);
        Node node = bench.node("dgx_h100");
        node.gpu.kernel_gap = {};
        node.gpu.step_overhead = {};
        Communicators groups = bench.groups(node);
        const StepTime step = model_step(m, p, groups, bench.bytes(), 0);
        return row(seconds(step.bubble) / seconds(step.compute));
    }
    if (is("FLOPs/iteration") || is("parameter count")) {
        struct Dimensions {
            const char* name;
            std::int64_t layers, hidden, heads;
        };
        const Dimensions models[] = {{"22B", 48, 6144, 64},
                                     {"175B", 96, 12288, 96},
                                     {"530B", 105, 20480, 128},
                                     {"1T", 128, 25600, 160}};
        for (const Dimensions& d : models) {
            if (config.find(d.name) == std::string::npos) continue;
            const TransformerModel m = gpt(d.layers, d.hidden, d.heads, 51200, 2048);
            if (is("parameter count")) return row(m.params);
            const std::size_t batch = config.find("B=");
            if (batch == std::string::npos) return std::nullopt;
            ParallelPlan p;
            p.sequence_length = 2048;
            p.global_batch = std::atoll(config.c_str() + batch + 2);
            return row(is("no recompute") ? model_flops(m, p) : hardware_flops(m, p));
        }
    }
    if (is("E[max of n iid N(0,1)]") && n.size() == 1) {
        return row(expected_max_normal(std::llround(n[0])));
    }
    if (is("E[max of n iid exp(1)") && n.size() == 1) {
        double sum = 0;
        for (double i = 1; i <= n[0]; ++i) sum += 1 / i;
        return row(sum);
    }
    if (is("k-of-n availability") && n.size() == 3) {
        // P(at most n - need down), each down with probability n[2].
        double probability = std::pow(1 - n[2], n[0]);
        double sum = probability;
        for (double down = 1; down <= n[0] - n[1]; ++down) {
            probability *= (n[0] - down + 1) / down * n[2] / (1 - n[2]);
            sum += probability;
        }
        return row(sum);
    }
    if (is("MTTF of gang") && n.size() == 3) return row(24 / (n[0] * n[1] / n[2]));
    if (is("Weibull mean") && n.size() == 1) return row(1 / std::tgamma(1 + 1 / n[0]));
    return std::nullopt;
}

// 70: expected time under exponential failures. Simulated, so the error is a sample's.
RowResult renewal(Bench&, const Fields& f) {
    constexpr int segments = 2000;
    const std::string text = fmt::format(
        "[run]\nreplicas = 100\n[cluster]\nnodes = 1\n[storage]\nserver_write_bandwidth = \"1 "
        "GB/s\"\n"
        "[job]\nlength = \"{:.6f} s\"\n[job.step]\ntime = \"{} s\"\n[job.checkpoint]\nsize = \"{} "
        "GB\"\n"
        "interval = \"1 step\"\n[job.recovery]\nrestart = \"0 s\"\nrestore = \"{} s\"\n"
        "[[failures.cause]]\nname = \"any\"\nmtbf_job = \"{} s\"\ndetection = \"{} s\"\n",
        f.number("W_opt_s") * segments, f.text("W_opt_s"), f.text("C_s"), f.text("R_s"),
        f.text("M_s"), f.text("D_s"));
    const CampaignResult result = run_campaign(load_scenario(text, "oracle row"), {});
    // The last segment's checkpoint is not written: the job is done.
    const double wall = result.metric("wall_time").summary.mean + f.number("C_s");
    return VerifiedRow{fmt::format("M {} C {} D {} R {}", f.text("M_s"), f.text("C_s"),
                                   f.text("D_s"), f.text("R_s")),
                       "s per segment", f.number("e_segment_at_opt_s"), wall / segments};
}

// 71: queues, as streams of jobs of one GPU. Simulated, so the error is a sample's.
RowResult queueing(Bench& bench, const Fields& f) {
    const std::optional<Summary> simulated = bench.queues().simulate(f);
    if (!simulated) return std::nullopt;
    return VerifiedRow{fmt::format("{} c {} rho {} {}, {}", f.text("system"), f.text("servers"),
                                   f.text("rho"), f.text("service"), f.text("quantity")),
                       "",
                       f.number("value"),
                       simulated->mean,
                       Published::figure,
                       simulated->ci95};
}

// 72: collectives by alpha-beta.
RowResult alpha_beta(Bench&, const Fields& f) {
    const RingLink link{f.number("alpha_s"), f.number("bandwidth_Bps")};
    const std::int64_t n = f.integer("n");
    const double bytes = f.number("bytes");
    const std::string& name = f.text("collective");
    double time = 0;
    if (name == "ring all_reduce") {
        time = ring_all_reduce_seconds(n, bytes, link);
    } else if (name == "ring all_gather / reduce_scatter") {
        time = ring_all_gather_seconds(n, bytes, link);
    } else if (name == "recursive halving-doubling all_reduce") {
        time = halving_doubling_all_reduce_seconds(n, bytes, link);
    } else if (name == "pairwise alltoall") {
        time = pairwise_all_to_all_seconds(n, bytes, link);
    } else {
        return std::nullopt;
    }
    return VerifiedRow{fmt::format("{} n {} {} B", name, n, f.text("bytes")), "s",
                       f.number("time_s"), time};
}

// A run of nccl-tests, in the words of its table.
struct NcclRun {
    std::string device, network, collective, algorithm;
    std::int64_t nodes = 1;
    std::int64_t gpus = 1;
    double bytes = 0;
};

std::string lower(std::string text) {
    std::transform(text.begin(), text.end(), text.begin(),
                   [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
    return text;
}

bool mentions(const std::string& text, std::string_view word) {
    return text.find(word) != std::string::npos;
}

// The first kind of node in the catalogue whose GPU is named, and of those the longest name; the
// name of a system in the network's column ("DGX H100 8x400G") comes before a list of devices.
std::string node_of(const NcclRun& run) {
    for (const std::string& text : {lower(run.network), lower(run.device)}) {
        std::string best;
        std::size_t length = 0;
        for (const std::string& node : Catalogue::names("node")) {
            const std::string gpu = Catalogue::entry("node", node)->find("gpu")->text;
            const std::string family = gpu.substr(0, gpu.find('_'));
            if (family.size() > length && mentions(text, family)) {
                best = node;
                length = family.size();
            }
        }
        if (!best.empty()) return best;
    }
    return "";
}

// The NIC that stands for a transport; the rate decides between generations of one.
const char* nic_of(const std::string& network, double gbit) {
    if (mentions(network, "tcpxo")) return "gcp_tcpxo_200";
    if (mentions(network, "tcpx")) return "gcp_tcpx_200";
    if (mentions(network, "efa")) {
        // AWS p4 nodes have the first version, whether or not that is said.
        if (mentions(network, "efa v1") || mentions(network, "p4d")) return "efa_v1_100";
        return gbit < 200 ? "efa_v2_100" : gbit < 400 ? "efa_v3_200" : "efa_v4_400";
    }
    if (mentions(network, "roce")) return "generic_400g_roce";
    if (mentions(network, "tcp") || mentions(network, "gbe")) return "eth100_tcp";
    return gbit < 400 ? "cx6_hdr200" : "cx7_ndr400";
}

// Sets the NICs that the network's column counts, "8x NDR400 IB" or "4x100G".
void read_network(Bench& bench, const std::string& column, Node& node) {
    const std::string network = lower(column);
    std::smatch found;
    static const std::regex NICs(R"((\d+)\s*x\s*[a-z]*\s*(\d+))");
    if (!std::regex_search(network, found, NICs)) return;
    const double gbit = std::stod(found[2]);
    node.nics = std::stoll(found[1]);
    set_nic(bench.catalogue(), node, nic_of(network, gbit));
    const Bandwidth printed = Bandwidth::bits_per_second(std::llround(gbit * 1e9));
    node.nic_bandwidth =
        printed * (node.nic_bandwidth.bytes_per_second() / node.nic_line_rate.bytes_per_second());
    node.nic_line_rate = printed;
}

// An algorithm's name says that it was forced, unless it explains a default.
Wish wish_of(const std::string& column) {
    const std::string text = lower(column);
    Wish wish;
    if (mentions(text, "default")) return wish;
    if (text.starts_with("ring")) wish.algorithm = Algorithm::ring;
    if (text.starts_with("tree")) wish.algorithm = Algorithm::tree;
    if (text.starts_with("nvls")) wish.algorithm = Algorithm::nvls;
    if (text.starts_with("nvlstree")) wish.algorithm = Algorithm::nvls_tree;
    if (mentions(text, "simple")) wish.protocol = Protocol::simple;
    return wish;
}

std::optional<double> nccl_seconds(Bench& bench, const NcclRun& run) {
    const std::string kind = node_of(run);
    const std::optional<Collective> collective = parse_collective(run.collective);
    if (kind.empty() || !collective || run.gpus < 2 || run.nodes < 1 || run.bytes <= 0) {
        return std::nullopt;
    }
    Node node = bench.node(kind.c_str());
    // A rack that is one NVLink domain is one node here, whatever the number of its trays.
    const bool rack = node.nvlink_domain > 8;
    if (!rack && run.nodes > 1) read_network(bench, run.network, node);
    const Communicator c = read_communicator(
        bench.catalogue(), node,
        {run.gpus, rack ? node.gpus : (run.gpus + run.nodes - 1) / run.nodes, false});
    const auto choice = choose(c, *collective, run.bytes, wish_of(run.algorithm));
    if (!choice) return std::nullopt;
    return collective_cost(c, *collective, run.bytes, *choice)->seconds;
}

std::string size_class(const char* unit, double bytes) {
    return fmt::format("{}, {} 1 MiB", unit, bytes < 1048576 ? "below" : "from");
}

// 30: published outputs of nccl-tests. What stas00's tables hold was measured through PyTorch.
RowResult nccl_published(Bench& bench, const Fields& f) {
    if (mentions(f.text("flag"), "misconfigured") || mentions(f.text("flag"), "not stated")) {
        return std::nullopt;
    }
    const NcclRun run{f.text("device"),   f.text("network"), f.text("op"),     f.text("algo"),
                      f.integer("nodes"), f.integer("gpus"), f.number("bytes")};
    std::optional<double> time = nccl_seconds(bench, run);
    if (!time || f.number("time_oop_us") <= 0) return std::nullopt;
    if (f.text("source").starts_with("stas00")) *time += read_framework_launch(bench.catalogue());
    return VerifiedRow{fmt::format("{} {} {} B", f.text("id"), run.collective, f.text("bytes")),
                       size_class("us", run.bytes), f.number("time_oop_us"), 1e6 * *time};
}

// 31: nccl-tests in one NVLink domain.
RowResult nccl_intranode(Bench& bench, const Fields& f) {
    const NcclRun run{f.text("device"), "", f.text("op"), "default", 1, f.integer("num_gpus"),
                      f.number("bytes")};
    const std::optional<double> time = nccl_seconds(bench, run);
    if (!time) return std::nullopt;
    return VerifiedRow{
        fmt::format("{} {} {} B on {}", run.device, run.collective, f.text("bytes"), run.gpus),
        size_class("us", run.bytes), f.number("median_us"), 1e6 * *time};
}

// 32: peaks, taken as 16 GiB. Where the table says "multi", four nodes of eight: at its peak a ring
// is as fast as its NICs, on any number of nodes.
RowResult nccl_peak(Bench& bench, const Fields& f) {
    const auto whole = [](const std::string& text) {
        double value = 0;
        char* end = nullptr;
        value = std::strtod(text.c_str(), &end);
        return end != text.c_str() && *end == 0 ? value : 0;
    };
    const bool multi = f.text("num_gpus") == "multi";
    NcclRun run{f.text("device"),
                f.text("network"),
                f.text("op"),
                f.text("algo"),
                multi ? 4 : f.integer("nodes"),
                multi ? 32 : f.integer("num_gpus"),
                0};
    const double size = f.number("size");
    run.bytes = (size > 0 ? size : 16) * 1073741824;
    const double published = whole(f.text("busbw_GBps"));
    const std::optional<double> time = nccl_seconds(bench, run);
    if (!time || published == 0) return std::nullopt;
    return VerifiedRow{
        fmt::format("{} {} {} on {}", run.device, run.network, run.algorithm, f.text("num_gpus")),
        "GB/s busbw", published,
        run.bytes * bus_factor(*parse_collective(run.collective), run.gpus) / *time * 1e-9};
}

struct Format {
    const char* number;
    const char* what;
    RowResult (*row)(Bench&, const Fields&);
};

constexpr Format formats[] = {
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
    {"30", "nccl-tests, published outputs", nccl_published},
    {"31", "nccl-tests, one NVLink domain", nccl_intranode},
    {"32", "nccl-tests, peaks by algorithm", nccl_peak},
    {"70", "checkpoint and restart, renewal formula", renewal},
    {"71", "queues, as streams of jobs of one GPU", queueing},
    {"72", "collectives by alpha-beta", alpha_beta},
    {"74", "training arithmetic", training_arithmetic},
};

}  // namespace

std::vector<VerifiedTable> verify_table(const CsvTable& table, const Value* overrides) {
    // A run's limits are known from others of the same table.
    if (table.name.starts_with("50")) return {verify_mlperf_storage(table, overrides)};
    if (table.name.starts_with("03")) return {verify_megatron_text(table, overrides)};
    if (auto stores = verify_stores(table, overrides)) return {std::move(*stores)};
    if (auto schedules = verify_schedules(table)) return {std::move(*schedules)};
    if (auto fleets = verify_fleets(table, overrides)) return {std::move(*fleets)};
    if (auto streams = verify_streams(table, overrides)) return {std::move(*streams)};
    if (auto networks = verify_networks(table)) return {std::move(*networks)};
    if (auto packets = verify_packets(table)) return {std::move(*packets)};
    if (auto reliability = verify_reliability(table)) return {std::move(*reliability)};
    std::vector<VerifiedTable> out;
    for (const Format& format : formats) {
        if (!table.name.starts_with(format.number)) continue;
        // A table with a second quantity is two tables: errors of unlike things don't average.
        const std::string name = out.empty() ? table.name : table.name + " (2)";
        VerifiedTable each{name, format.what, table.rows.size()};
        Bench bench(overrides);
        for (const CsvRow& row : table.rows) {
            if (const RowResult result = format.row(bench, Fields(row)))
                each.expressed.push_back(*result);
        }
        bench.check();
        out.push_back(std::move(each));
    }
    return out;
}

}  // namespace railyard
