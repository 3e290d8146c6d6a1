#include "models/training/plan.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

namespace railyard {

const std::vector<std::string>& recompute_names() {
    static const std::vector<std::string> names = {"none", "selective", "elementwise", "full"};
    return names;
}

bool is_dense(const std::string& model_name) {
    const Value* entry = Catalogue::entry("model", model_name);
    const Value* kind = entry ? entry->find("kind") : nullptr;
    return kind != nullptr && kind->text == "dense";
}

TransformerModel read_model(Catalogue& c, const std::string& name) {
    TransformerModel m;
    m.name = name;
    m.layers = c.integer("model", name, "layers");
    m.hidden = c.integer("model", name, "hidden");
    m.ffn = c.integer("model", name, "ffn");
    m.heads = c.integer("model", name, "heads");
    m.kv_heads = c.integer("model", name, "kv_heads");
    m.head_dim = c.has("model", name, "head_dim") ? c.integer("model", name, "head_dim")
                                                  : m.hidden / std::max<std::int64_t>(1, m.heads);
    m.vocab = c.integer("model", name, "vocab");
    m.sequence_length = c.integer("model", name, "sequence_length");
    m.glu = c.flag("model", name, "glu");
    m.params = static_cast<double>(c.integer("model", name, "params"));
    return m;
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

// Bytes of activations that one layer keeps for one microbatch, on one GPU. With a GPT layer (f =
// 4h, as many key-value heads as heads) this is Korthikanti et al.'s sbh(34 + 5as/h)/t;
// arXiv:2205.05198.
double activation_bytes_per_layer(const TransformerModel& m, const ParallelPlan& p) {
    const double tokens = static_cast<double>(p.microbatch * p.sequence_length);
    const double h = static_cast<double>(m.hidden);
    const double f = static_cast<double>(m.ffn);
    if (p.recompute == Recompute::full) return 2 * tokens * h;

    const bool elementwise_kept = p.recompute != Recompute::elementwise;
    double replicated = 2 * h + 2 * h;                  // the two residual inputs
    if (elementwise_kept) replicated += 2 * h + 2 * h;  // outputs of the two norms
    if (!m.glu) replicated += 2 * h;                    // dropout masks, one byte each
    double split = 2 * (m.query_width() + 2 * m.kv_width()) + 2 * m.query_width();
    split += 2 * (m.glu ? 2 : 1) * f;      // outputs of the first feed-forward matrices
    if (elementwise_kept) split += 2 * f;  // output of the activation function
    if (p.recompute == Recompute::none && !p.fused_attention) {
        split += 5 * static_cast<double>(m.heads * p.sequence_length);  // scores, softmax, its mask
    }
    const double t = static_cast<double>(p.tensor);
    return tokens * (split / t + replicated / (p.sequence_parallel ? t : 1));
}

}  // namespace

std::vector<MemoryUse> memory_per_gpu(const TransformerModel& m, const ParallelPlan& p,
                                      const ParameterBytes& bytes, const Gpu& gpu) {
    const double t = static_cast<double>(p.tensor);
    const double pp = static_cast<double>(p.pipeline);
    const double d = static_cast<double>(p.data);
    const double params = m.params / (t * pp);
    const double in_flight_limit = static_cast<double>(p.microbatches());
    const double in_flight_pipeline =
        p.interleave > 1 ? pp + (pp - 1) / static_cast<double>(p.interleave) : pp;
    const double in_flight = std::min(in_flight_limit, in_flight_pipeline);
    const double layers = static_cast<double>(layers_per_stage(m, p.pipeline));
    const double logits = p.pipeline == 1 ? static_cast<double>(p.microbatch * p.sequence_length) *
                                                static_cast<double>(m.vocab) * (2 + 4) / t
                                          : 0;
    const auto shared = [&](double each, bool split) {
        const double bytes_held = params * each / (split ? d : 1);
        return std::pair(bytes_held, fmt::format("{:.4g} parameters x {:g} B{}", params, each,
                                                 split ? fmt::format(" / {} ranks", p.data) : ""));
    };
    const auto [weights, weights_formula] = shared(bytes.weight, p.zero >= 3);
    const auto [gradients, gradients_formula] = shared(bytes.gradient, p.zero >= 2);
    const auto [optimizer, optimizer_formula] = shared(bytes.optimizer, p.zero >= 1);
    const double layer = activation_bytes_per_layer(m, p);
    return {
        {"weights", weights, weights_formula},
        {"gradients", gradients, gradients_formula},
        {"optimizer state", optimizer, optimizer_formula},
        {"activations", layers * in_flight * layer,
         fmt::format("{:g} layers x {:.4g} microbatches in flight x {:.4g} GB", layers, in_flight,
                     layer * 1e-9)},
        {"logits", logits,
         fmt::format("{} tokens x {} words x {} B / {}{}", p.microbatch * p.sequence_length,
                     m.vocab, 2 + 4, p.tensor, p.pipeline == 1 ? "" : ", on the last stage only")},
        {"CUDA and NCCL", static_cast<double>(gpu.reserved_memory.count()),
         "context and communicator buffers"},
    };
}

double total_bytes(const std::vector<MemoryUse>& uses) {
    double sum = 0;
    for (const MemoryUse& use : uses) sum += use.bytes;
    return sum;
}

std::int64_t layers_per_stage(const TransformerModel& m, std::int64_t pipeline) {
    return (m.layers + pipeline - 1) / pipeline;
}

bool layers_split(const TransformerModel& m, std::int64_t pipeline) {
    return m.layers % pipeline == 0 || (m.layers + 2) % pipeline == 0;
}

double forward_flops_per_token(const TransformerModel& m, std::int64_t sequence_length) {
    const double h = static_cast<double>(m.hidden);
    const double f = static_cast<double>(m.ffn);
    const double q = m.query_width();
    const double matrices = 2 * (h * q + 2 * h * m.kv_width() + q * h + (m.glu ? 3 : 2) * h * f);
    const double attention = 4 * static_cast<double>(sequence_length) * q;
    return static_cast<double>(m.layers) * (matrices + attention) +
           2 * h * static_cast<double>(m.vocab);
}

}  // namespace railyard
