#include "tools/verify/bench.h"

#include <fmt/format.h>

namespace railyard {

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
    m.tied_embedding = m.linear_bias = m.norm_bias = true;
    m.learned_positions = sequence;
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
