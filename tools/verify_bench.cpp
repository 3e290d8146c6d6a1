#include "tools/verify_bench.h"

#include <fmt/format.h>

namespace railyard {

void check_plan(const TransformerModel& m, const ParallelPlan& p) {
    const std::pair<const char*, std::int64_t> sizes[] = {
        {"layers", m.layers},       {"hidden", m.hidden}, {"heads", m.heads},
        {"seq", p.sequence_length}, {"tp", p.tensor},     {"pp", p.pipeline},
        {"cp", p.context},          {"dp", p.data},       {"microbatch", p.microbatch}};
    for (const auto& [column, size] : sizes) {
        if (size < 1) throw RowError{column, fmt::format("expected 1 or more, found {}", size)};
    }
    if (m.heads % p.tensor != 0) {
        throw RowError{
            "tp", fmt::format("{} attention heads don't divide by {} ranks", m.heads, p.tensor)};
    }
    if (p.pipeline > 1 && !layers_split(m, p)) {
        throw RowError{"pp",
                       fmt::format("{} layers don't divide by {} ranks, nor with one layer less on "
                                   "the first and last",
                                   m.layers, p.pipeline)};
    }
    if (p.global_batch % (p.data * p.microbatch) != 0) {
        throw RowError{"global_batch",
                       fmt::format("{} sequences don't divide by data {} x microbatch {}",
                                   p.global_batch, p.data, p.microbatch)};
    }
}

std::int64_t data_ranks(const ParallelPlan& p, std::int64_t gpus) {
    const std::int64_t replica = p.tensor * p.context * p.pipeline;
    if (replica < 1 || gpus < replica || gpus % replica != 0) {
        throw RowError{"gpus", fmt::format("{} GPUs don't divide by tensor {} x context {} x "
                                           "pipeline {}",
                                           gpus, p.tensor, p.context, p.pipeline)};
    }
    return gpus / replica;
}

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

double hardware_flops(const TransformerModel& m, const ParallelPlan& p) {
    const double logits = 2.0 * static_cast<double>(m.hidden) * static_cast<double>(m.vocab) *
                          static_cast<double>(p.global_batch * p.sequence_length);
    return (model_flops(m, p) - 3 * logits) * 4 / 3 + 3 * logits;
}

}  // namespace railyard
