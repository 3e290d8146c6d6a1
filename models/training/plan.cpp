#include "models/training/plan.h"

#include <fmt/format.h>

#include <cmath>
#include <numeric>
#include <utility>

namespace railyard {

const std::vector<std::string> rank_order_names = {"tensor_data_pipeline", "tensor_pipeline_data",
                                                   "data_tensor_pipeline", "data_pipeline_tensor",
                                                   "pipeline_tensor_data", "pipeline_data_tensor"};

std::int64_t ParallelPlan::tensor_stride() const {
    using enum RankOrder;
    const bool after_data = order == data_tensor_pipeline || order == data_pipeline_tensor ||
                            order == pipeline_data_tensor;
    const bool after_pipeline = order == data_pipeline_tensor || order == pipeline_tensor_data ||
                                order == pipeline_data_tensor;
    return (after_data ? replica_ranks() : 1) * (after_pipeline ? pipeline : 1);
}

std::int64_t ParallelPlan::replica_stride() const {
    using enum RankOrder;
    const bool after_tensor = order == tensor_data_pipeline || order == tensor_pipeline_data ||
                              order == pipeline_tensor_data;
    const bool after_pipeline = order == tensor_pipeline_data || order == pipeline_tensor_data ||
                                order == pipeline_data_tensor;
    return (after_tensor ? tensor : 1) * (after_pipeline ? pipeline : 1);
}

std::int64_t ParallelPlan::expert_stride() const {
    if (!fold_experts || tensor == 1) return replica_stride();
    if (replica_ranks() == 1) return tensor_stride();
    return std::min(tensor_stride(), replica_stride());
}

std::int64_t ParallelPlan::pipeline_stride() const {
    using enum RankOrder;
    const bool after_tensor = order == tensor_data_pipeline || order == tensor_pipeline_data ||
                              order == data_tensor_pipeline;
    const bool after_data = order == tensor_data_pipeline || order == data_tensor_pipeline ||
                            order == data_pipeline_tensor;
    return (after_tensor ? tensor : 1) * (after_data ? replica_ranks() : 1);
}

const std::vector<std::string> recompute_names = {"none", "selective", "elementwise", "alternate",
                                                  "full"};

const std::vector<std::string> recompute_part_names = {
    "norms", "activation", "latent_up", "feed_forward", "experts", "attention", "shared_experts"};

const std::vector<std::string> expert_dispatch_names = {"all_to_all", "two_stage"};

ParallelPlan ParallelPlan::of_images(const VisionEncoder& vision, std::int64_t count) const {
    ParallelPlan out = *this;
    out.data *= out.context;
    out.context = out.expert = 1;
    out.microbatch = count;
    out.sequence_length = vision.patches;
    out.precision = Precision::bf16;
    out.attention_in_fp8 = false;
    out.adapter_rank = 0;
    out.recompute_parts &= ~static_cast<unsigned>(recompute_latent_up);  // it has no latents
    return out;
}

std::string split_text(const ParallelPlan& p) {
    return fmt::format("TP {}{} x PP {} x DP {}{}", p.tensor,
                       p.context > 1 ? fmt::format(" x CP {}", p.context) : "", p.pipeline, p.data,
                       p.expert > 1 ? fmt::format(" (EP {})", p.expert) : "");
}

ParameterBytes read_parameter_bytes(Catalogue& c) {
    ParameterBytes b;
    b.weight = c.number("bytes_per_param", "", "weight_bf16");
    b.gradient = c.number("bytes_per_param", "", "gradient_fp32");
    b.optimizer = c.number("bytes_per_param", "", "master_fp32") +
                  c.number("bytes_per_param", "", "adam_m") +
                  c.number("bytes_per_param", "", "adam_v");
    return b;
}

namespace {

// Stages whose layers are what the plan leaves open.
std::int64_t open_stages(const ParallelPlan& p) {
    return p.pipeline - (p.first_stage_layers > 0 ? 1 : 0) - (p.last_stage_layers > 0 ? 1 : 0);
}

std::int64_t open_layers(const TransformerModel& m, const ParallelPlan& p) {
    return m.layers - p.first_stage_layers - p.last_stage_layers;
}

// One layer less than the others', on the first and the last.
bool shorter_ends(const TransformerModel& m, const ParallelPlan& p) {
    return open_stages(p) == p.pipeline && m.layers % p.pipeline != 0;
}

std::int64_t layers_of_stage(const TransformerModel& m, const ParallelPlan& p, std::int64_t stage) {
    const bool first = stage == 0;
    const bool last = stage == p.pipeline - 1;
    if (p.pipeline == 1) return m.layers;
    if (!p.stage_layers.empty()) return p.stage_layers[stage];
    if (first && p.first_stage_layers > 0) return p.first_stage_layers;
    if (last && p.last_stage_layers > 0) return p.last_stage_layers;
    return layers_per_stage(m, p) - ((first || last) && shorter_ends(m, p) ? 1 : 0);
}

}  // namespace

std::int64_t layers_per_stage(const TransformerModel& m, const ParallelPlan& p) {
    if (!p.stage_layers.empty()) return *std::ranges::max_element(p.stage_layers);
    const std::int64_t stages = open_stages(p);
    return stages > 0 ? (open_layers(m, p) + stages - 1) / stages : 0;
}

std::vector<std::int64_t> even_stages(std::int64_t layers, std::int64_t stages) {
    std::vector<std::int64_t> out(static_cast<std::size_t>(stages), layers / stages);
    for (std::int64_t i = 0; i < layers % stages; ++i) ++out[stages - 2 - i];
    return out;
}

bool layers_split(const TransformerModel& m, const ParallelPlan& p) {
    if (!p.stage_layers.empty()) {
        return std::ssize(p.stage_layers) == p.pipeline &&
               std::accumulate(p.stage_layers.begin(), p.stage_layers.end(), std::int64_t{0}) ==
                   m.layers;
    }
    const std::int64_t stages = open_stages(p);
    const std::int64_t layers = open_layers(m, p);
    if (stages == 0) return layers == 0;
    if (stages < p.pipeline) return layers > 0 && layers % stages == 0;
    return layers % stages == 0 || (layers + 2) % stages == 0;
}

std::vector<StageRun> stage_runs(const TransformerModel& m, const ParallelPlan& p) {
    std::vector<StageRun> out;
    std::int64_t before = 0;  // layers
    for (std::int64_t stage = 0; stage < p.pipeline; ++stage) {
        const std::int64_t count = layers_of_stage(m, p, stage);
        LayerCounts layers = count_layers(m, before, count);
        layers.vision = stage == 0 && m.vision.layers > 0;
        before += count;
        const bool last = stage == p.pipeline - 1;
        if (!last && !out.empty() && out.back().layers == layers) {
            ++out.back().count;
        } else {
            out.push_back({stage, 1, layers, last ? 1.0 : 0.0});
        }
    }
    return out;
}

std::vector<StageRun> rank_runs(const TransformerModel& m, const ParallelPlan& p) {
    const std::vector<StageRun> runs = stage_runs(m, p);
    if (weight_copies(p.schedule) == 1) return runs;
    const auto run_of = [&](std::int64_t stage) {
        return *std::ranges::find_if(
            runs, [&](const StageRun& run) { return stage < run.first + run.count; });
    };
    std::vector<StageRun> out;
    for (std::int64_t rank = 0; rank < p.pipeline / 2; ++rank) {
        StageRun both = run_of(rank);
        const StageRun other = run_of(p.pipeline - 1 - rank);
        for (std::size_t i = 0; i < LayerKind::kinds; ++i) {
            both.layers.of[i] = (both.layers.of[i] + other.layers.of[i]) / 2;
        }
        out.push_back({rank, 2, both.layers, (both.outputs + other.outputs) / 2});
    }
    return out;
}

RankParameters rank_parameters(const TransformerModel& m, const ParallelPlan& p,
                               const LayerCounts& layers) {
    const LayerParameters each = layer_parameters(m);
    const double t = real(p.tensor);
    RankParameters out;
    out.common = (common_parameters(each, layers) + outer_parameters(m) / real(p.pipeline)) / t;
    out.routed =
        layers.with(FeedForward::experts) * each.routed / real(p.expert_tensor() * p.expert);
    if (layers.vision) {
        const VisionParameters vision = vision_parameters(m.vision, m.hidden);
        (p.vision_frozen() ? out.frozen_vision : out.vision) += vision.layers / t;
        (p.adapter_rank > 0 ? out.frozen_vision : out.vision) += vision.projector / t;
    }
    const double stages = real(weight_copies(p.schedule));
    out.common *= stages;
    out.routed *= stages;
    return out;
}

namespace {

double share_of_layers(std::int64_t some, const LayerCounts& layers) {
    return std::min(1.0, real(some) / std::max(1.0, layers.all()));
}

// What of a layer is kept for its backward pass, by the plan.
struct Kept {
    explicit Kept(const ParallelPlan& plan) : p(plan) {}
    bool again(unsigned part) const { return (p.recompute_parts & part) != 0; }

    const ParallelPlan& p;
    const bool all_elementwise =
        p.recompute == Recompute::elementwise || p.recompute == Recompute::alternate;
    const bool elementwise = !all_elementwise && !again(recompute_norms);
    const bool activation = !all_elementwise && !again(recompute_activation);
    const bool attention = !again(recompute_attention);
    // The inputs of products with weights that need gradients are kept as they are read.
    const double input_bytes = p.adapter_rank > 0
                                   ? 0
                                   : std::min(2.0, std::ceil(element_bytes(p.precision)));
    // "alternate" keeps the outputs of every second product.
    const double output_bytes = p.recompute == Recompute::alternate ? 1 : 2;
};

// Bytes that attention or states keep of a token, which tensor-parallel ranks share out.
double mixer_bytes(const TransformerModel& m, const Kept& kept, Mixer mixer) {
    if (mixer == Mixer::none) return 0;
    if (mixer == Mixer::state) {
        return kept.output_bytes * m.state.inputs() +
               (kept.attention ? 2 : 0) * m.state.width() +  // which a norm reads
               (kept.elementwise ? kept.input_bytes : 0) * m.state.width();
    }
    double out = kept.attention ? 2 * m.value_width() : 0;
    if (m.kv_rank == 0 || !kept.again(recompute_latent_up)) {
        out += (kept.p.attention_in_fp8 ? 0.5 : 1) * kept.output_bytes *
               (m.query_width() + m.kv_width() + real(m.kv_heads * m.value_dim));
        if (m.attention_gate) out += kept.output_bytes * m.query_width();
    }
    if (kept.p.recompute == Recompute::none && !kept.p.fused_attention) {
        // Scores, softmax, its mask.
        out += 5 * real(m.heads * kept.p.sequence_length);
    }
    return out;
}

// Bytes of activations that one layer keeps for one microbatch, on one GPU. With a GPT layer (f =
// 4h, as many key-value heads as heads) this is Korthikanti et al.'s sbh(34 + 5as/h)/t;
// arXiv:2205.05198. A layer with experts keeps, for each expert that a token goes to, the copy of the
// token that was sent there and the expert's inner activations.
double activation_bytes_per_layer(const TransformerModel& m, const ParallelPlan& p,
                                  LayerKind kind) {
    const double tokens = p.rank_tokens();
    const double h = real(m.hidden);
    const double t = real(p.tensor);
    if (p.recompute == Recompute::full) return 2 * tokens * h / (p.sequence_parallel ? t : 1);

    const Kept kept(p);
    const bool experts = kind.experts();
    const bool feeds = kind.feed_forward != FeedForward::none;
    const bool mixes = kind.mixer != Mixer::none;
    const bool narrow = p.keep_in_fp8 && p.precision != Precision::bf16;
    // Bytes for each width of a feed-forward: what its activation function reads, and what it writes.
    double inner = (narrow ? 1 : kept.output_bytes) * (m.glu ? 2 : 1) +
                   (kept.activation ? kept.input_bytes : 0);
    const double shared_inner = inner;
    if (kept.again(experts ? recompute_experts : recompute_feed_forward)) inner = 0;
    // The residual inputs.
    double replicated =
        (mixes ? 2 * h : 0) + (!feeds || m.parallel_block || !kept.attention ? 0 : 2 * h);
    // Norms' outputs are inputs of products; those of attention have adapters.
    if (kept.elementwise) {
        replicated += (mixes ? (p.adapter_rank > 0 ? 2 : kept.input_bytes) * h : 0) +
                      (!feeds || m.parallel_block ? 0 : kept.input_bytes * h);
    }
    if (!m.glu) replicated += kind.parts() * h;  // dropout masks, one byte each
    double split = mixer_bytes(m, kept, kind.mixer);
    double whole = 0;  // what no rank of the tensor group leaves to another
    if (kind.mixer == Mixer::attention && m.kv_rank > 0) {
        const double norms = kept.elementwise ? 2 : 1;
        whole += 2 * (norms * real(m.query_rank + m.kv_rank) + real(m.rotary_dim));
    }
    if (experts) {
        split += (kept.again(recompute_shared) ? 0 : shared_inner) *
                 real(m.shared_experts * m.expert_ffn);
        whole +=
            real(m.topk) * p.imbalance() *
            (kept.input_bytes * h * real(p.expert_tensor()) / t + inner * real(m.expert_ffn) / t);
    } else if (feeds) {
        split += inner * real(m.ffn);
    }
    return tokens * (split / t + replicated / (p.sequence_parallel ? t : 1) + whole);
}

// Bytes that the vision encoder keeps of one microbatch: its layers what the decoder's do, unless they are
// frozen; its projector what it reads, and its inner width before and behind the activation.
double vision_activations(const TransformerModel& m, const ParallelPlan& p) {
    const VisionEncoder& v = m.vision;
    if (v.layers == 0 || p.adapter_rank > 0) return 0;
    const double inner = real(v.projector) / real(p.tensor);
    double image = 2 * v.tokens() * (v.projected_width() + 2 * inner);
    if (!p.vision_frozen()) {
        image += real(v.layers) *
                 activation_bytes_per_layer(vision_layers(v), p.of_images(v, 1), LayerKind{});
    }
    return p.over_images([&](std::int64_t count) { return real(count) * image; });
}

// Bytes that a stage's layers keep of one microbatch.
double kept_activations(const TransformerModel& m, const ParallelPlan& p,
                        const LayerCounts& layers) {
    const auto kept = [&](const ParallelPlan& plan) {
        double sum = 0;
        for (std::size_t i = 0; i < LayerKind::kinds; ++i) {
            if (layers.of[i] == 0) continue;
            sum += layers.of[i] * activation_bytes_per_layer(m, plan, LayerKind::of(i));
        }
        return sum;
    };
    if (p.recompute != Recompute::full || p.recompute_layers == 0) return kept(p);
    ParallelPlan others = p;
    others.recompute = Recompute::selective;
    const double share = share_of_layers(p.recompute_layers, layers);
    return share * kept(p) + (1 - share) * kept(others);
}

// What the largest of the layers keeps while it is computed again and its gradients are made, beside its
// input and scores of attention that is not fused (models/training/README.md).
double recomputed_layer(const TransformerModel& m, const ParallelPlan& p,
                        const LayerCounts& layers) {
    if (p.recompute != Recompute::full) return 0;
    ParallelPlan whole = p;
    whole.recompute = Recompute::selective;
    double most = 0;
    for (std::size_t i = 0; i < LayerKind::kinds; ++i) {
        if (layers.of[i] == 0) continue;
        const LayerKind kind = LayerKind::of(i);
        most = std::max(most, activation_bytes_per_layer(m, whole, kind) -
                                  activation_bytes_per_layer(m, p, kind));
    }
    return most;
}

// Microbatches whose activations a stage keeps at once.
double microbatches_in_flight(const ParallelPlan& p, const StageRun& run) {
    return std::min(
        real(p.microbatches()),
        microbatches_kept(p.schedule, real(run.first), real(p.pipeline), real(p.interleave)));
}
// Those of them in the first of its parts, which has the vision encoder.
double microbatches_of_images(const ParallelPlan& p) {
    const double in_flight = real(p.interleave > 1 ? 2 * p.pipeline - 1 : p.pipeline);
    return std::min(real(p.microbatches()), in_flight);
}

struct StageMemory {
    RankParameters params;
    double weights = 0;
    double gradients = 0;
    double optimizer = 0;
    double gathered = 0;
    double in_flight = 0;  // microbatches
    double activations = 0;
    double logits = 0;
    double again = 0;  // what a layer that is computed again needs beside that, for a while
    double reserved = 0;

    double total() const {
        return weights + gradients + optimizer + gathered + activations + logits + again + reserved;
    }
};

// As multiplied, and in fp32 for a loss that is not one kernel.
double logit_bytes(const ParallelPlan& p) {
    return p.fused_loss ? 2 : 2 + 4;
}
// With gradients that travel in the weights' precision they are added up in it.
double gradient_bytes(const ParallelPlan& p, const ParameterBytes& bytes) {
    return p.reduce_in_fp32 ? bytes.gradient : bytes.weight;
}
// Frozen weights of 8-bit products are kept as these read them.
double weight_bytes(const ParallelPlan& p, const ParameterBytes& bytes) {
    const bool narrow = p.adapter_rank > 0 && p.gather_in_fp8 && p.precision != Precision::bf16;
    return narrow ? 1 : bytes.weight;
}
constexpr double output_gradient_bytes = 4;  // of the output matrix, before it is added up
constexpr double gathered_layers = 2;        // the one in use and the one that is prefetched

StageMemory stage_memory(const TransformerModel& m, const ParallelPlan& p,
                         const ParameterBytes& bytes, const Gpu& gpu, const StageRun& run) {
    const LayerCounts& layers = run.layers;
    const double t = real(p.tensor);
    const double shards = real(p.shards());
    const double of_experts = p.expert_shards();
    StageMemory out;
    out.params = rank_parameters(m, p, layers);
    const auto held = [&](double each, bool shared) {
        return each * (out.params.common / (shared ? shards : 1) +
                       out.params.routed / (shared ? of_experts : 1));
    };
    const double vision = out.params.vision + out.params.frozen_vision;  // in 16 bits
    out.weights = held(weight_bytes(p, bytes), p.zero >= 3) +
                  bytes.weight * vision / (p.zero >= 3 ? shards : 1);
    if (p.adapter_rank == 0) {
        const auto trained = [&](double each, bool shared) {
            return held(each, shared) + each * out.params.vision / (shared ? shards : 1);
        };
        out.gradients = trained(gradient_bytes(p, bytes), p.scatters_each_pass());
        out.optimizer = trained(bytes.optimizer, p.zero >= 1);
    }
    if (p.zero >= 3) {
        // What a rank has whole anyway is not gathered.
        const double layer =
            ((shards > 1 ? out.params.common : 0) + (of_experts > 1 ? out.params.routed : 0)) /
            std::max(1.0, layers.all());
        const double of_vision = shards > 1 && layers.vision ? vision / real(m.vision.layers) : 0;
        out.gathered = gathered_layers * bytes.weight * std::max(layer, of_vision);
    }
    out.in_flight = microbatches_in_flight(p, run);
    // The fullest moment is the end of a forward pass: what leaves has left, and what comes back takes the
    // place of what the backward pass no longer needs.
    out.activations =
        out.in_flight * (kept_activations(m, p, layers) - offloaded_bytes(m, p, layers));
    if (layers.vision) out.activations += microbatches_of_images(p) * vision_activations(m, p);
    if (run.outputs > 0) {
        const double words = real(m.vocab) / t;
        out.logits =
            words * (p.rank_tokens() * logit_bytes(p) + real(m.hidden) * output_gradient_bytes);
    }
    // The logits are gone when the first layer is computed again.
    out.again = std::max(0.0, recomputed_layer(m, p, layers) - out.logits);
    out.reserved = real(gpu.reserved_memory.count());
    return out;
}

// Among stages with the same layers, the first has the most microbatches in flight.
std::pair<StageRun, StageMemory> fullest_stage(const TransformerModel& m, const ParallelPlan& p,
                                               const ParameterBytes& bytes, const Gpu& gpu) {
    std::pair<StageRun, StageMemory> out;
    for (const StageRun& run : rank_runs(m, p)) {
        const StageMemory memory = stage_memory(m, p, bytes, gpu, run);
        if (memory.total() > out.second.total()) out = {run, memory};
    }
    return out;
}

}  // namespace

double offloaded_bytes(const TransformerModel& m, const ParallelPlan& p,
                       const LayerCounts& layers) {
    if (p.offload_layers == 0) return 0;
    return share_of_layers(p.offload_layers, layers) * kept_activations(m, p, layers);
}

double host_bytes_per_gpu(const TransformerModel& m, const ParallelPlan& p) {
    double most = 0;
    for (const StageRun& run : rank_runs(m, p)) {
        most = std::max(most, microbatches_in_flight(p, run) * offloaded_bytes(m, p, run.layers));
    }
    return most;
}

double memory_bytes_per_gpu(const TransformerModel& m, const ParallelPlan& p,
                            const ParameterBytes& bytes, const Gpu& gpu) {
    return fullest_stage(m, p, bytes, gpu).second.total();
}

std::vector<MemoryUse> memory_per_gpu(const TransformerModel& m, const ParallelPlan& p,
                                      const ParameterBytes& bytes, const Gpu& gpu) {
    const auto [run, use] = fullest_stage(m, p, bytes, gpu);
    const double params = use.params.common + use.params.routed;
    const auto shared = [&](double each, double images, double of_image, bool split) {
        const std::string over = split ? fmt::format(" / {} ranks", p.shards()) : "";
        return fmt::format("{:.4g} parameters x {:g} B{}{}", params, each, over,
                           images > 0 ? fmt::format("; {:.4g} that look at images x {:g} B{}",
                                                    images, of_image, over)
                                      : "");
    };
    const double count = run.layers.all();
    std::vector<MemoryUse> out = {
        {"weights", use.weights,
         shared(weight_bytes(p, bytes), use.params.vision + use.params.frozen_vision, bytes.weight,
                p.zero >= 3)},
        {"gradients", use.gradients,
         shared(gradient_bytes(p, bytes), use.params.vision, gradient_bytes(p, bytes),
                p.scatters_each_pass())},
        {"optimizer state", use.optimizer,
         shared(bytes.optimizer, use.params.vision, bytes.optimizer, p.zero >= 1)},
    };
    if (use.gathered > 0) {
        out.push_back({"gathered layers", use.gathered,
                       fmt::format("{:g} of {:g} layers, one in use, one prefetched",
                                   gathered_layers, count)});
    }
    out.push_back(
        {"activations", use.activations,
         fmt::format("stage {}: {:g} layers{} x {:.4g} microbatches in flight x {:.4g} GB",
                     run.first, count, run.layers.vision ? " with the vision encoder" : "",
                     use.in_flight,
                     use.activations / std::max(1.0, count * use.in_flight) * 1e-9)});
    out.push_back(
        {"logits", use.logits,
         run.outputs > 0
             ? fmt::format("{} words x ({:g} tokens x {:g} B + {} x {:g} B of gradient) / {}",
                           m.vocab, p.rank_tokens(), logit_bytes(p), m.hidden,
                           output_gradient_bytes, p.tensor)
             : "on the last stage only, which needs less in all"});
    if (use.again > 0) {
        out.push_back({"recomputed layer", use.again,
                       run.outputs > 0
                           ? "the largest of the stage, beside its input and the logits' room"
                           : "the largest of the stage, beside its input"});
    }
    out.push_back({"CUDA and NCCL", use.reserved, "context and communicator buffers"});
    return out;
}

double total_bytes(const std::vector<MemoryUse>& uses) {
    double sum = 0;
    for (const MemoryUse& use : uses) sum += use.bytes;
    return sum;
}

}  // namespace railyard
