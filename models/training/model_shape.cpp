#include "models/training/model_shape.h"

#include <fmt/format.h>

#include <cmath>
#include <tuple>
#include <utility>

namespace railyard {

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
        return wrong({"layer_pattern"},
                     fmt::format("expected a letter for each layer: M for a state, * attention, - "
                                 "a dense feed-forward, E experts; found '{}'",
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
    if (m.parallel_block) {
        return wrong({"parallel_block", "layer_pattern"},
                     "a layer of one part has no other beside it");
    }
    return true;
}

// False when it has said which key has no effect.
bool check_used(Catalogue& c, const TransformerModel& m) {
    const auto unused = [&](const char* key, const char* why) {
        if (!c.has("model", m.name, key)) return false;
        c.error("model", m.name, {key}, fmt::format("has no effect {}", why));
        return true;
    };
    constexpr const char* of_experts[] = {"topk",          "shared_experts",
                                          "expert_ffn",    "dense_layers",
                                          "experts_every", "nodes_per_token_limit"};
    if (m.experts == 0 && std::ranges::any_of(of_experts, [&](const char* key) {
            return unused(key, "without experts");
        })) {
        return false;
    }
    if (m.window == 0 && unused("full_attention_every", "without window")) return false;
    if (m.attention_gate && m.kv_rank > 0 && unused("attention_gate", "beside latent attention")) {
        return false;
    }
    if (count_layers(m).with(Mixer::state) > 0) return true;
    constexpr const char* of_states[] = {"state_heads", "attention_every", "state_head_dim",
                                         "state_size",  "state_groups",    "state_conv",
                                         "state_chunk", "delta_rule"};
    return std::ranges::none_of(
        of_states, [&](const char* key) { return unused(key, "where no layer has a state"); });
}

// What no model's shape is, and what the entry's own count of parameters says against its shape.
void check_shape(Catalogue& c, const TransformerModel& m) {
    const std::string& name = m.name;
    const auto wrong = [&](std::initializer_list<const char*> keys, const std::string& message) {
        c.error("model", name, keys, message);
    };
    const std::string kind = c.text("model", name, "kind", "");
    if (m.experts == 0 && kind.find("moe") != std::string::npos) {
        return wrong({"kind"}, "a mixture of experts has experts, of which each token meets topk");
    }
    if (m.kv_rank == 0 && kind.find("mla") != std::string::npos) {
        return wrong({"kind"}, "latent attention has a kv_lora_rank and the like");
    }
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
        return wrong(
            {"topk", "experts"},
            fmt::format("a token goes to {} experts, of which there are {}", m.topk, m.experts));
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
    if (!check_used(c, m)) return;
    if (m.ffn == 0 && count_layers(m).with(FeedForward::dense) > 0) {
        return wrong({m.experts > 0 ? "experts" : "layers"},
                     "layers without experts have no width: give ffn, or dense_ffn");
    }
    const std::pair<const char*, double> counts[] = {{"params", parameter_count(m)},
                                                     {"active_params", active_parameter_count(m)}};
    for (const auto& [key, derived] : counts) {
        // The count of an entry whose shape is another now is that of another model.
        const bool of_this = c.overrides("model", name, key) || !c.overrides("model", name);
        if (!c.has("model", name, key) || !of_this) continue;
        const auto printed = real(c.integer("model", name, key));
        if (std::abs(printed - derived) <= count_tolerance * derived) continue;
        wrong({key}, fmt::format("{:.6g} parameters, but the model's shape has {:.6g}: layers, "
                                 "hidden, ffn, experts and the like decide, the count is a check",
                                 printed, derived));
    }
}

}  // namespace

TransformerModel read_model(Catalogue& c, const std::string& name) {
    const auto count = [&](const char* key, std::int64_t otherwise) {
        return c.integer("model", name, key, otherwise);
    };
    const auto flag = [&](const char* key) { return c.flag("model", name, key, false); };
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
    m.vision = read_vision_encoder(c, name);
    check_shape(c, m);
    return m;
}

LayerParameters layer_parameters(const TransformerModel& m) {
    const double h = real(m.hidden);
    const double gates = m.glu ? 2 : 1;
    const double experts = real(m.experts);
    const double query = real(m.query_rank);
    const double latent = real(m.kv_rank);
    LayerParameters out;
    out.attention = m.value_width() * h;
    if (m.kv_rank > 0) {
        out.attention += query > 0 ? (h + m.query_width()) * query : h * m.query_width();
        out.attention += h * (latent + real(m.rotary_dim));
        out.attention += latent * (real(m.heads * (m.head_dim - m.rotary_dim)) + m.value_width());
    } else {
        out.attention += h * ((m.attention_gate ? 2 : 1) * m.query_width() + 2 * m.kv_width());
    }
    const StateMixer& state = m.state;
    // A head has its decay, the step in front of it and, without the delta rule, what it adds of its input.
    // The convolution has a bias without it, too.
    out.state = h * (state.inputs() + state.width()) +
                state.conv_width() * real(state.conv + (state.delta_rule ? 0 : 1)) +
                real(state.heads) * (state.delta_rule ? 2 : 3) + state.width();
    out.ffn = (gates + 1) * h * real(m.ffn);
    const double expert_ffn = real(m.expert_ffn);
    const double expert = (gates + 1) * h * expert_ffn;
    out.routed = experts * expert;
    out.shared = real(m.shared_experts) * expert + h * experts;

    const double norms = (m.norm_bias ? 2 : 1) * (2 * h + query + latent);
    out.dense_vectors = out.expert_vectors = norms;
    if (m.linear_bias) {
        const auto feed_forward = [&](double width) { return gates * width + h; };
        const double attention = m.query_width() + 2 * m.kv_width() + h;
        out.dense_vectors += attention + feed_forward(real(m.ffn));
        out.expert_vectors +=
            attention + experts + real(m.shared_experts) * feed_forward(expert_ffn);
        out.routed += experts * feed_forward(expert_ffn);
    }
    return out;
}

double outer_parameters(const TransformerModel& m) {
    const double rows = (m.tied_embedding ? 1 : 2) * real(m.vocab) + real(m.learned_positions) +
                        (m.norm_bias ? 2 : 1);
    return rows * real(m.hidden);
}

double common_parameters(const LayerParameters& each, LayerKind kind) {
    const double mixers[] = {each.attention, each.state, 0};
    const double feed_forward[] = {each.ffn, each.shared, 0};
    const double vectors = kind.experts() ? each.expert_vectors : each.dense_vectors;
    return mixers[static_cast<std::size_t>(kind.mixer)] +
           feed_forward[static_cast<std::size_t>(kind.feed_forward)] + vectors * kind.parts() / 2;
}

double common_parameters(const LayerParameters& each, const LayerCounts& layers) {
    double sum = 0;
    for (std::size_t i = 0; i < LayerKind::kinds; ++i) {
        if (layers.of[i] > 0) sum += layers.of[i] * common_parameters(each, LayerKind::of(i));
    }
    return sum;
}

double parameter_count(const TransformerModel& m) {
    const LayerParameters layer = layer_parameters(m);
    const LayerCounts layers = count_layers(m);
    return common_parameters(layer, layers) + layers.with(FeedForward::experts) * layer.routed +
           outer_parameters(m) + vision_parameters(m.vision, m.hidden).all();
}

double active_parameter_count(const TransformerModel& m) {
    const double decoder = parameter_count(m) - vision_parameters(m.vision, m.hidden).all();
    if (m.experts == 0) return decoder;
    const double unused = layer_parameters(m).routed * real(m.experts - m.topk) / real(m.experts);
    return decoder - count_layers(m).with(FeedForward::experts) * unused;
}

LayerKind TransformerModel::layer(std::int64_t number) const {
    if (!layer_pattern.empty()) {
        switch (layer_pattern[number]) {
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
        out[{Mixer::attention, FeedForward::dense}] = real(dense);
        out[{Mixer::attention, FeedForward::experts}] = real(count - dense);
        return out;
    }
    for (std::int64_t i = first; i < first + count; ++i) ++out[m.layer(i)];
    return out;
}

double attended_tokens(const TransformerModel& m, std::int64_t sequence_length) {
    const double s = real(sequence_length);
    const double w = real(m.window);
    if (w == 0 || w >= s) return s;
    const double full = m.full_attention_every > 0 ? 1 / real(m.full_attention_every) : 0;
    return full * s + (1 - full) * (m.masked ? 2 * w - w * w / s : w);
}

double forward_flops_per_token(const TransformerModel& m, std::int64_t sequence_length) {
    const LayerParameters layer = layer_parameters(m);
    const double h = real(m.hidden);
    const LayerCounts layers = count_layers(m);
    const double attends = layers.with(Mixer::attention);
    const double active = layer.shared + real(m.topk) * (m.glu ? 3 : 2) * h * real(m.expert_ffn);
    const double matrices = h * (m.state.inputs() + m.state.width());
    return 2 * (attends * layer.attention + layers.with(FeedForward::dense) * layer.ffn +
                layers.with(FeedForward::experts) * active + layers.with(Mixer::state) * matrices +
                h * real(m.vocab)) +
           mixing_flops_per_token(m, sequence_length);
}

double mixing_flops_per_token(const TransformerModel& m, std::int64_t sequence_length) {
    const LayerCounts layers = count_layers(m);
    const StateMixer& state = m.state;
    // Megatron's counts of a state's update, as remembered of its source.
    const double update = (state.delta_rule ? 8 : 7) * state.width() * real(state.size);
    return layers.with(Mixer::state) * update + layers.with(Mixer::attention) * 2 *
                                                    attended_tokens(m, sequence_length) *
                                                    (m.query_width() + m.value_width());
}

TransformerModel vision_layers(const VisionEncoder& v) {
    TransformerModel m;
    m.layers = v.layers;
    m.hidden = v.hidden;
    m.ffn = v.ffn;
    m.heads = m.kv_heads = v.heads;
    m.head_dim = m.value_dim = v.hidden / std::max<std::int64_t>(1, v.heads);
    m.sequence_length = v.patches;
    m.glu = v.glu;
    m.linear_bias = m.norm_bias = true;
    m.masked = false;
    m.window = v.window;
    m.full_attention_every = v.full_attention_every;
    return m;
}

}  // namespace railyard
