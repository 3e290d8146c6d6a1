#include "models/training/plan.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <tuple>
#include <utility>

namespace railyard {

const std::vector<std::string>& rank_order_names() {
    static const std::vector<std::string> names = {"tensor_data_pipeline", "tensor_pipeline_data",
                                                   "data_tensor_pipeline", "data_pipeline_tensor",
                                                   "pipeline_tensor_data", "pipeline_data_tensor"};
    return names;
}

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

std::int64_t ParallelPlan::pipeline_stride() const {
    using enum RankOrder;
    const bool after_tensor = order == tensor_data_pipeline || order == tensor_pipeline_data ||
                              order == data_tensor_pipeline;
    const bool after_data = order == tensor_data_pipeline || order == data_tensor_pipeline ||
                            order == data_pipeline_tensor;
    return (after_tensor ? tensor : 1) * (after_data ? replica_ranks() : 1);
}

const std::vector<std::string>& recompute_names() {
    static const std::vector<std::string> names = {"none", "selective", "elementwise", "alternate",
                                                   "full"};
    return names;
}

const std::vector<std::string>& recompute_part_names() {
    static const std::vector<std::string> names = {"norms",         "activation", "latent_up",
                                                   "feed_forward",  "experts",    "attention",
                                                   "shared_experts"};
    return names;
}

const std::vector<std::string>& expert_dispatch_names() {
    static const std::vector<std::string> names = {"all_to_all", "two_stage"};
    return names;
}

namespace {

constexpr double count_tolerance = 0.01;

// False when it has said what is wrong with the letters.
bool check_pattern(Catalogue& c, const TransformerModel& m) {
    const auto wrong = [&](std::initializer_list<const char*> keys, const std::string& message) {
        c.error("model", m.name, keys, message);
        return false;
    };
    const std::string& pattern = m.layer_pattern;
    const std::size_t other = pattern.find_first_not_of("M*-E");
    if (other != std::string::npos) {
        return wrong(
            {"layer_pattern"},
            fmt::format("expected a letter for each layer: M for a state, * attention, - a "
                        "dense feed-forward, E experts; found '{}'",
                        pattern[other]));
    }
    if (std::ssize(pattern) != m.layers) {
        return wrong({"layer_pattern", "layers"},
                     fmt::format("{} letters for {} layers", pattern.size(), m.layers));
    }
    for (const auto& [letter, key, missing] : {std::tuple('M', "state_heads", m.state.heads == 0),
                                               std::tuple('E', "experts", m.experts == 0)}) {
        if (missing && pattern.find(letter) != std::string::npos) {
            return wrong({"layer_pattern", key},
                         fmt::format("has '{}', but there are none", letter));
        }
    }
    for (const char* key : {"attention_every", "experts_every", "dense_layers"}) {
        if (c.has("model", m.name, key)) {
            return wrong({key, "layer_pattern"}, "the letters say which layers these are");
        }
    }
    return true;
}

// What no model's shape is, and what the entry's own count of parameters says against its shape.
void check_shape(Catalogue& c, const TransformerModel& m) {
    const std::string& name = m.name;
    const auto wrong = [&](std::initializer_list<const char*> keys, const std::string& message) {
        c.error("model", name, keys, message);
    };
    const bool own_width = c.has("model", name, "head_dim") || m.kv_rank > 0;
    if (!own_width && m.hidden % m.heads != 0) {
        return wrong({"heads", "hidden"},
                     fmt::format("a hidden size of {} has no {} equal heads", m.hidden, m.heads));
    }
    if (m.heads % m.kv_heads != 0) {
        return wrong(
            {"kv_heads", "heads"},
            fmt::format("{} heads don't divide into {} groups, one for each key-value head",
                        m.heads, m.kv_heads));
    }
    if (m.topk > m.experts) {
        return wrong({"topk", "experts"}, fmt::format("a token goes to {} experts, of which there "
                                                      "are {}",
                                                      m.topk, m.experts));
    }
    if (m.dense_layers > m.layers) {
        return wrong({"dense_layers", "layers"},
                     fmt::format("{} dense layers, of {} in all", m.dense_layers, m.layers));
    }
    if (m.state.heads > 0 && m.state.heads % m.state.groups != 0) {
        return wrong({"state_groups", "state_heads"},
                     fmt::format("{} heads with a state don't divide into {} groups", m.state.heads,
                                 m.state.groups));
    }
    if (!m.layer_pattern.empty() && !check_pattern(c, m)) return;
    const std::pair<const char*, double> counts[] = {{"params", parameter_count(m)},
                                                     {"active_params", active_parameter_count(m)}};
    for (const auto& [key, derived] : counts) {
        // The count of an entry whose shape is another now is that of another model.
        const bool of_this = c.overrides("model", name, key) || !c.overrides("model", name);
        if (!c.has("model", name, key) || !of_this) continue;
        const auto printed = static_cast<double>(c.integer("model", name, key));
        if (std::abs(printed - derived) <= count_tolerance * derived) continue;
        wrong({key}, fmt::format("{:.6g} parameters, but the model's shape has {:.6g}: layers, "
                                 "hidden, ffn, experts and the like decide, the count is a check",
                                 printed, derived));
    }
}

}  // namespace

TransformerModel read_model(Catalogue& c, const std::string& name) {
    const auto count = [&](const char* key, std::int64_t otherwise) {
        return c.has("model", name, key) ? c.integer("model", name, key) : otherwise;
    };
    const auto flag = [&](const char* key) {
        return c.has("model", name, key) && c.flag("model", name, key);
    };
    TransformerModel m;
    m.name = name;
    m.layers = c.integer("model", name, "layers");
    m.hidden = c.integer("model", name, "hidden");
    m.heads = c.integer("model", name, "heads");
    m.kv_heads = count("kv_heads", m.heads);
    m.query_rank = count("q_lora_rank", 0);
    m.kv_rank = count("kv_lora_rank", 0);
    m.rotary_dim = count("qk_rope_head_dim", 0);
    m.head_dim = c.has("model", name, "qk_nope_head_dim")
                     ? c.integer("model", name, "qk_nope_head_dim") + m.rotary_dim
                     : count("head_dim", m.hidden / std::max<std::int64_t>(1, m.heads));
    m.value_dim = count("v_head_dim", m.head_dim);
    m.vocab = c.integer("model", name, "vocab");
    m.sequence_length = c.integer("model", name, "sequence_length");
    m.glu = c.flag("model", name, "glu");
    m.tied_embedding = c.flag("model", name, "tied_embedding");
    m.linear_bias = flag("linear_bias");
    m.norm_bias = flag("norm_bias");
    m.learned_positions = count("learned_positions", 0);
    m.parallel_block = flag("parallel_block");
    m.window = count("window", 0);
    m.full_attention_every = count("full_attention_every", 0);
    m.attention_gate = flag("attention_gate");
    if (c.has("model", name, "state_heads")) {
        m.state = {.heads = c.integer("model", name, "state_heads"),
                   .head_dim = c.integer("model", name, "state_head_dim"),
                   .size = c.integer("model", name, "state_size"),
                   .groups = c.integer("model", name, "state_groups"),
                   .conv = count("state_conv", 0),
                   .chunk = c.integer("model", name, "state_chunk"),
                   .delta_rule = flag("delta_rule"),
                   .kernel_efficiency = c.number("step_model", "all", "state_kernel_efficiency")};
        m.attention_every = count("attention_every", 0);
    }
    if (c.has("model", name, "layer_pattern")) {
        m.layer_pattern = c.text("model", name, "layer_pattern");
    }
    m.mtp_layers = count("mtp_layers", 0);
    m.experts = count("experts", 0);
    m.ffn = count("ffn", count("dense_ffn", 0));
    if (m.experts > 0) {
        m.topk = c.integer("model", name, "topk");
        m.nodes_per_token = count("nodes_per_token_limit", 0);
        m.shared_experts = count("shared_experts", 0);
        m.expert_ffn = count("expert_ffn", m.ffn);
        m.dense_layers = count("dense_layers", 0);
        m.experts_every = count("experts_every", 1);
    }
    check_shape(c, m);
    return m;
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

LayerParameters layer_parameters(const TransformerModel& m) {
    const double h = static_cast<double>(m.hidden);
    const double gates = m.glu ? 2 : 1;
    const double experts = static_cast<double>(m.experts);
    const double query = static_cast<double>(m.query_rank);
    const double latent = static_cast<double>(m.kv_rank);
    LayerParameters out;
    out.attention = m.value_width() * h;
    if (m.kv_rank > 0) {
        out.attention += query > 0 ? (h + m.query_width()) * query : h * m.query_width();
        out.attention += h * (latent + static_cast<double>(m.rotary_dim));
        out.attention +=
            latent * (static_cast<double>(m.heads * (m.head_dim - m.rotary_dim)) + m.value_width());
    } else {
        out.attention += h * ((m.attention_gate ? 2 : 1) * m.query_width() + 2 * m.kv_width());
    }
    const StateMixer& state = m.state;
    // Each head has its decay, the step in front of it and, without the delta rule, what it adds of its input.
    // A convolution has a bias where it joins all that is written.
    out.state = h * (state.inputs() + state.width()) +
                state.conv_width() * static_cast<double>(state.conv + (state.delta_rule ? 0 : 1)) +
                static_cast<double>(state.heads) * (state.delta_rule ? 2 : 3) + state.width();
    out.ffn = (gates + 1) * h * static_cast<double>(m.ffn);
    const double expert_ffn = static_cast<double>(m.expert_ffn);
    const double expert = (gates + 1) * h * expert_ffn;
    out.routed = experts * expert;
    out.shared = static_cast<double>(m.shared_experts) * expert + h * experts;

    const double norms = (m.norm_bias ? 2 : 1) * (2 * h + query + latent);
    out.dense_vectors = out.expert_vectors = norms;
    if (m.linear_bias) {
        const auto feed_forward = [&](double width) { return gates * width + h; };
        const double attention = m.query_width() + 2 * m.kv_width() + h;
        out.dense_vectors += attention + feed_forward(static_cast<double>(m.ffn));
        out.expert_vectors +=
            attention + experts + static_cast<double>(m.shared_experts) * feed_forward(expert_ffn);
        out.routed += experts * feed_forward(expert_ffn);
    }
    return out;
}

double outer_parameters(const TransformerModel& m) {
    const double rows = (m.tied_embedding ? 1 : 2) * static_cast<double>(m.vocab) +
                        static_cast<double>(m.learned_positions) + (m.norm_bias ? 2 : 1);
    return rows * static_cast<double>(m.hidden);
}

double common_parameters(const LayerParameters& each, LayerKind kind) {
    const double mixers[] = {each.attention, each.state, 0};
    const double feed_forward[] = {each.ffn, each.shared, 0};
    const double vectors = kind.experts() ? each.expert_vectors : each.dense_vectors;
    return mixers[static_cast<std::size_t>(kind.mixer)] +
           feed_forward[static_cast<std::size_t>(kind.feed_forward)] + vectors * kind.parts() / 2;
}

namespace {

double common_parameters(const LayerParameters& each, const LayerCounts& layers) {
    double sum = 0;
    for (std::size_t i = 0; i < LayerKind::kinds; ++i) {
        if (layers.of[i] > 0) sum += layers.of[i] * common_parameters(each, LayerKind::of(i));
    }
    return sum;
}

}  // namespace

double parameter_count(const TransformerModel& m) {
    const LayerParameters layer = layer_parameters(m);
    const LayerCounts layers = count_layers(m);
    return common_parameters(layer, layers) + layers.with(FeedForward::experts) * layer.routed +
           outer_parameters(m);
}

double active_parameter_count(const TransformerModel& m) {
    if (m.experts == 0) return parameter_count(m);
    const double unused = layer_parameters(m).routed * static_cast<double>(m.experts - m.topk) /
                          static_cast<double>(m.experts);
    return parameter_count(m) - count_layers(m).with(FeedForward::experts) * unused;
}

LayerKind TransformerModel::layer(std::int64_t number) const {
    if (!layer_pattern.empty()) {
        switch (layer_pattern[static_cast<std::size_t>(number)]) {
            case 'M':
                return {Mixer::state, FeedForward::none};
            case '*':
                return {Mixer::attention, FeedForward::none};
            case 'E':
                return {Mixer::none, FeedForward::experts};
            default:
                return {Mixer::none, FeedForward::dense};
        }
    }
    const auto due = [&](std::int64_t every) { return every > 0 && (number + 1) % every == 0; };
    return {state.heads > 0 && !due(attention_every) ? Mixer::state : Mixer::attention,
            experts > 0 && number >= dense_layers && due(experts_every) ? FeedForward::experts
                                                                        : FeedForward::dense};
}

double LayerCounts::with(Mixer mixer) const {
    const std::size_t first = LayerKind{mixer, FeedForward::dense}.index();
    return of[first] + of[first + 1] + of[first + 2];
}

double LayerCounts::with(FeedForward feed_forward) const {
    const std::size_t first = LayerKind{Mixer::attention, feed_forward}.index();
    return of[first] + of[first + 3] + of[first + 6];
}

LayerCounts count_layers(const TransformerModel& m, std::int64_t first, std::int64_t count) {
    LayerCounts out;
    if (m.alike()) {
        const std::int64_t dense =
            m.experts == 0 ? count : std::clamp<std::int64_t>(m.dense_layers - first, 0, count);
        out[{Mixer::attention, FeedForward::dense}] = static_cast<double>(dense);
        out[{Mixer::attention, FeedForward::experts}] = static_cast<double>(count - dense);
        return out;
    }
    for (std::int64_t i = first; i < first + count; ++i) ++out[m.layer(i)];
    return out;
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
    if (!p.stage_layers.empty()) return p.stage_layers[static_cast<std::size_t>(stage)];
    if (first && p.first_stage_layers > 0) return p.first_stage_layers;
    if (last && p.last_stage_layers > 0) return p.last_stage_layers;
    return layers_per_stage(m, p) - ((first || last) && shorter_ends(m, p) ? 1 : 0);
}

}  // namespace

std::int64_t layers_per_stage(const TransformerModel& m, const ParallelPlan& p) {
    if (!p.stage_layers.empty()) {
        return *std::max_element(p.stage_layers.begin(), p.stage_layers.end());
    }
    const std::int64_t stages = open_stages(p);
    return stages > 0 ? (open_layers(m, p) + stages - 1) / stages : 0;
}

std::vector<std::int64_t> even_stages(std::int64_t layers, std::int64_t stages) {
    std::vector<std::int64_t> out(static_cast<std::size_t>(stages), layers / stages);
    for (std::int64_t i = 0; i < layers % stages; ++i) {
        ++out[static_cast<std::size_t>(stages - 2 - i)];
    }
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
        const LayerCounts layers = count_layers(m, before, count);
        before += count;
        const bool last = stage == p.pipeline - 1;
        if (!last && !out.empty() && out.back().layers == layers) {
            ++out.back().count;
        } else {
            out.push_back({stage, 1, layers});
        }
    }
    return out;
}

RankParameters rank_parameters(const TransformerModel& m, const ParallelPlan& p,
                               const LayerCounts& layers) {
    const LayerParameters each = layer_parameters(m);
    const double t = static_cast<double>(p.tensor);
    RankParameters out;
    out.common =
        (common_parameters(each, layers) + outer_parameters(m) / static_cast<double>(p.pipeline)) /
        t;
    out.routed = layers.with(FeedForward::experts) * each.routed /
                 static_cast<double>(p.expert_tensor() * p.expert);
    return out;
}

namespace {

double share_of_layers(std::int64_t some, const LayerCounts& layers) {
    return std::min(1.0, static_cast<double>(some) / std::max(1.0, layers.all()));
}

// Bytes of activations that one layer keeps for one microbatch, on one GPU. With a GPT layer (f =
// 4h, as many key-value heads as heads) this is Korthikanti et al.'s sbh(34 + 5as/h)/t;
// arXiv:2205.05198. A layer with experts keeps, for each expert that a token goes to, the copy of the
// token that was sent there and the expert's inner activations.
double activation_bytes_per_layer(const TransformerModel& m, const ParallelPlan& p,
                                  LayerKind kind) {
    const double tokens = p.rank_tokens();
    const double h = static_cast<double>(m.hidden);
    const double t = static_cast<double>(p.tensor);
    if (p.recompute == Recompute::full) return 2 * tokens * h / (p.sequence_parallel ? t : 1);

    const bool experts = kind.experts();
    const bool attends = kind.mixer == Mixer::attention;
    const bool feeds = kind.feed_forward != FeedForward::none;
    const bool mixes = kind.mixer != Mixer::none;
    const bool all_elementwise =
        p.recompute == Recompute::elementwise || p.recompute == Recompute::alternate;
    const auto again = [&](unsigned part) { return (p.recompute_parts & part) != 0; };
    const bool elementwise_kept = !all_elementwise && !again(recompute_norms);
    const bool activation_kept = !all_elementwise && !again(recompute_activation);
    // The inputs of products with weights that need gradients are kept as they are read.
    const double input_bytes =
        p.adapter_rank > 0 ? 0 : std::min(2.0, std::ceil(element_bytes(p.precision)));
    // "alternate" keeps the outputs of every second product.
    const double output_bytes = p.recompute == Recompute::alternate ? 1 : 2;
    const bool narrow = p.keep_in_fp8 && p.precision != Precision::bf16;
    // Bytes for each width of a feed-forward: what its activation function reads, and what it writes.
    double inner =
        (narrow ? 1 : output_bytes) * (m.glu ? 2 : 1) + (activation_kept ? input_bytes : 0);
    const double shared_inner = inner;
    if (again(experts ? recompute_experts : recompute_feed_forward)) inner = 0;
    const bool attention_kept = !again(recompute_attention);
    // The residual inputs.
    double replicated =
        (mixes ? 2 * h : 0) + (!feeds || m.parallel_block || !attention_kept ? 0 : 2 * h);
    // Norms' outputs are inputs of products; those of attention have adapters.
    if (elementwise_kept) {
        replicated += (mixes ? (p.adapter_rank > 0 ? 2 : input_bytes) * h : 0) +
                      (!feeds || m.parallel_block ? 0 : input_bytes * h);
    }
    if (!m.glu) replicated += kind.parts() * h;  // dropout masks, one byte each
    double split = attends && attention_kept ? 2 * m.value_width() : 0;
    if (attends && !again(recompute_latent_up)) {
        split += (p.attention_in_fp8 ? 0.5 : 1) * output_bytes *
                 (m.query_width() + m.kv_width() + static_cast<double>(m.kv_heads * m.value_dim));
        if (m.attention_gate) split += output_bytes * m.query_width();
    }
    if (kind.mixer == Mixer::state) {
        // What the convolution reads is computed from again; what the states give is read by a norm.
        split += output_bytes * m.state.inputs();
        if (attention_kept) split += 2 * m.state.width();
        if (elementwise_kept) split += input_bytes * m.state.width();
    }
    double whole = 0;  // what no rank of the tensor group leaves to another
    if (attends && m.kv_rank > 0) {
        const double norms = elementwise_kept ? 2 : 1;
        whole += 2 * (norms * static_cast<double>(m.query_rank + m.kv_rank) +
                      static_cast<double>(m.rotary_dim));
    }
    if (experts) {
        split += (again(recompute_shared) ? 0 : shared_inner) *
                 static_cast<double>(m.shared_experts * m.expert_ffn);
        whole += static_cast<double>(m.topk) * p.imbalance() *
                 (input_bytes * h * static_cast<double>(p.expert_tensor()) / t +
                  inner * static_cast<double>(m.expert_ffn) / t);
    } else if (feeds) {
        split += inner * static_cast<double>(m.ffn);
    }
    if (attends && p.recompute == Recompute::none && !p.fused_attention) {
        split += 5 * static_cast<double>(m.heads * p.sequence_length);  // scores, softmax, its mask
    }
    return tokens * (split / t + replicated / (p.sequence_parallel ? t : 1) + whole);
}

// What a stage with these layers keeps of one microbatch.
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

// Microbatches whose activations a stage keeps at once.
double microbatches_in_flight(const ParallelPlan& p, const StageRun& run) {
    const double pp = static_cast<double>(p.pipeline);
    const double v = static_cast<double>(p.interleave);
    const double after = pp - 1 - static_cast<double>(run.first);
    const double in_flight = p.interleave > 1 ? (2 * after + (v - 1) * pp + 1) / v : after + 1;
    return std::min(static_cast<double>(p.microbatches()), in_flight);
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
    double reserved = 0;

    double total() const {
        return weights + gradients + optimizer + gathered + activations + logits + reserved;
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
    const double t = static_cast<double>(p.tensor);
    const double shards = static_cast<double>(p.shards());
    const double expert_shards =
        std::max(1.0, shards * static_cast<double>(p.tensor / p.expert_tensor()) /
                          static_cast<double>(p.expert));
    StageMemory out;
    out.params = rank_parameters(m, p, layers);
    const auto held = [&](double each, bool shared) {
        return each * (out.params.common / (shared ? shards : 1) +
                       out.params.routed / (shared ? expert_shards : 1));
    };
    out.weights = held(weight_bytes(p, bytes), p.zero >= 3);
    if (p.adapter_rank == 0) {
        out.gradients = held(gradient_bytes(p, bytes), p.zero >= 2);
        out.optimizer = held(bytes.optimizer, p.zero >= 1);
    }
    if (p.zero >= 3) {
        // What a rank has whole anyway is not gathered.
        out.gathered =
            gathered_layers * bytes.weight *
            ((shards > 1 ? out.params.common : 0) + (expert_shards > 1 ? out.params.routed : 0)) /
            std::max(1.0, layers.all());
    }
    out.in_flight = microbatches_in_flight(p, run);
    // The fullest moment is the end of a forward pass: what leaves has left, and what comes back takes the
    // place of what the backward pass no longer needs.
    out.activations =
        out.in_flight * (kept_activations(m, p, layers) - offloaded_bytes(m, p, layers));
    if (run.first == p.pipeline - 1) {
        const double words = static_cast<double>(m.vocab) / t;
        out.logits = words * (p.rank_tokens() * logit_bytes(p) +
                              static_cast<double>(m.hidden) * output_gradient_bytes);
    }
    out.reserved = static_cast<double>(gpu.reserved_memory.count());
    return out;
}

// Among stages with the same layers, the first has the most microbatches in flight.
std::pair<StageRun, StageMemory> fullest_stage(const TransformerModel& m, const ParallelPlan& p,
                                               const ParameterBytes& bytes, const Gpu& gpu) {
    std::pair<StageRun, StageMemory> out;
    for (const StageRun& run : stage_runs(m, p)) {
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
    for (const StageRun& run : stage_runs(m, p)) {
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
    const auto shared = [&](double each, bool split) {
        return fmt::format("{:.4g} parameters x {:g} B{}", params, each,
                           split ? fmt::format(" / {} ranks", p.shards()) : "");
    };
    const double count = run.layers.all();
    std::vector<MemoryUse> out = {
        {"weights", use.weights, shared(weight_bytes(p, bytes), p.zero >= 3)},
        {"gradients", use.gradients, shared(gradient_bytes(p, bytes), p.zero >= 2)},
        {"optimizer state", use.optimizer, shared(bytes.optimizer, p.zero >= 1)},
    };
    if (use.gathered > 0) {
        out.push_back({"gathered layers", use.gathered,
                       fmt::format("{:g} of {:g} layers, one in use, one prefetched",
                                   gathered_layers, count)});
    }
    out.push_back({"activations", use.activations,
                   fmt::format("stage {}: {:g} layers x {:.4g} microbatches in flight x {:.4g} GB",
                               run.first, count, use.in_flight,
                               use.activations / std::max(1.0, count * use.in_flight) * 1e-9)});
    out.push_back(
        {"logits", use.logits,
         run.first == p.pipeline - 1
             ? fmt::format("{} words x ({:g} tokens x {:g} B + {} x {:g} B of gradient) / {}",
                           m.vocab, p.rank_tokens(), logit_bytes(p), m.hidden,
                           output_gradient_bytes, p.tensor)
             : "on the last stage only, which needs less in all"});
    out.push_back({"CUDA and NCCL", use.reserved, "context and communicator buffers"});
    return out;
}

double total_bytes(const std::vector<MemoryUse>& uses) {
    double sum = 0;
    for (const MemoryUse& use : uses) sum += use.bytes;
    return sum;
}

double attended_tokens(const TransformerModel& m, std::int64_t sequence_length) {
    const double s = static_cast<double>(sequence_length);
    const double w = static_cast<double>(m.window);
    if (w == 0 || w >= s) return s;
    const double full =
        m.full_attention_every > 0 ? 1 / static_cast<double>(m.full_attention_every) : 0;
    return full * s + (1 - full) * (2 * w - w * w / s);
}

double forward_flops_per_token(const TransformerModel& m, std::int64_t sequence_length) {
    const LayerParameters layer = layer_parameters(m);
    const double h = static_cast<double>(m.hidden);
    const LayerCounts layers = count_layers(m);
    const double attends = layers.with(Mixer::attention);
    const double active = layer.shared + static_cast<double>(m.topk) * (m.glu ? 3 : 2) * h *
                                             static_cast<double>(m.expert_ffn);
    const double attention =
        2 * attended_tokens(m, sequence_length) * (m.query_width() + m.value_width());
    const StateMixer& state = m.state;
    // Megatron's counts of a state's update, as remembered of its source.
    const double update =
        (state.delta_rule ? 8 : 7) * state.width() * static_cast<double>(state.size);
    const double matrices = h * (state.inputs() + state.width());
    return 2 * (attends * layer.attention + layers.with(FeedForward::dense) * layer.ffn +
                layers.with(FeedForward::experts) * active) +
           layers.with(Mixer::state) * (2 * matrices + update) + attends * attention +
           2 * h * static_cast<double>(m.vocab);
}

}  // namespace railyard
