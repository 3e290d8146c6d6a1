#include "models/training/step.h"

#include <algorithm>
#include <cmath>

#include "models/collective/collective.h"

namespace railyard {

namespace {

constexpr double activation_element_bytes = 2;

struct Pass {
    double compute = 0;
    double communication = 0;
};

RingLink nvlink_ring(const Node& node) {
    return {seconds(node.nvlink_latency),
            node.gpu.nvlink_bandwidth.bytes_per_second() * node.nvlink_efficiency};
}

double node_network_bytes_per_second(const Node& node) {
    return node.nic_bandwidth.bytes_per_second() * static_cast<double>(node.nics);
}

// The ring of a group of `ranks`, of which each node holds `ranks_in_node`: over NVLink while all of
// them are in one domain; else as fast as the slower of NVLink and the group's share of the node's NICs,
// which the groups that leave the node share evenly.
RingLink group_ring(const Node& node, bool in_one_domain, std::int64_t ranks_in_node) {
    const RingLink inside = nvlink_ring(node);
    if (in_one_domain) return inside;
    const double groups = static_cast<double>(node.gpus) / static_cast<double>(ranks_in_node);
    const double network = node_network_bytes_per_second(node) / groups;
    if (ranks_in_node == 1) return {seconds(node.net_step_latency), network};
    // Most steps of such a ring stay inside a node.
    const double outside = 1.0 / static_cast<double>(ranks_in_node);
    return {(1 - outside) * inside.alpha_s + outside * seconds(node.net_step_latency),
            std::min(network, inside.bytes_per_s)};
}

RingLink tensor_ring(const Node& node, std::int64_t tensor) {
    return group_ring(node, tensor <= node.nvlink_domain, std::min(tensor, node.gpus));
}

// Ranks are numbered tensor first, then data: a node holds gpus / tensor ranks of each data-parallel
// group.
RingLink data_ring(const Node& node, const ParallelPlan& plan) {
    const std::int64_t in_node = std::clamp<std::int64_t>(node.gpus / plan.tensor, 1, plan.data);
    return group_ring(node, plan.tensor * plan.data <= node.nvlink_domain, in_node);
}

// One layer's passes over one microbatch on one GPU.
struct Layer {
    Pass forward;
    Pass backward;
    double attention = 0;    // the core's part of forward.compute
    double elementwise = 0;  // likewise
};

struct Attention {
    double forward = 0;
    double backward = 0;
};

Attention attention_seconds(const TransformerModel& m, const ParallelPlan& p, const Gpu& gpu) {
    const double sequence = static_cast<double>(p.sequence_length);
    const double sequences = static_cast<double>(p.microbatch);
    const double t = static_cast<double>(p.tensor);
    // Scores and their product with the values, over whole sequences.
    const double flops = 4 * sequence * sequence * sequences * m.query_width() / t;
    if (p.fused_attention) {
        // Skips the masked half; the backward pass computes the scores again: five products, not
        // two.
        const double forward =
            flops / 2 / (gpu.sustained_flops() * gpu.fused_attention_efficiency) +
            seconds(gpu.kernel_gap);
        return {forward, 2.5 * forward};
    }
    const double products = flops / (gpu.sustained_flops() * gpu.batched_gemm_efficiency);
    const double scores = static_cast<double>(m.heads) / t * sequence * sequence * sequences;
    const double traffic = memory_seconds(gpu, scores * gpu.score_traffic);
    const double gaps = 4 * seconds(gpu.kernel_gap);
    return {products + traffic + gaps, 2 * products + 1.5 * traffic + 2 * gaps};
}

Layer layer_times(const TransformerModel& m, const ParallelPlan& p, const Node& node) {
    const Gpu& gpu = node.gpu;
    const double t = static_cast<double>(p.tensor);
    const double tokens =
        static_cast<double>(p.microbatch) * static_cast<double>(p.sequence_length);
    const double h = static_cast<double>(m.hidden);
    const double f = static_cast<double>(m.ffn);
    const double q = m.query_width();
    const double up = (m.glu ? 2 : 1) * f;

    Layer layer;
    double multiplications = 0;
    const auto linear = [&](double n, double k) {  // [tokens, k] x [k, n]
        multiplications += gemm_seconds(gpu, tokens, n, k);
        layer.backward.compute += gemm_seconds(gpu, tokens, k, n) + gemm_seconds(gpu, k, n, tokens);
    };
    linear((q + 2 * m.kv_width()) / t, h);
    linear(h, q / t);
    linear(up / t, h);
    linear(h, f / t);
    const Attention attention = attention_seconds(m, p, gpu);
    layer.attention = attention.forward;
    const double moved = gpu.elementwise_traffic * h / (p.sequence_parallel ? t : 1) + (up + f) / t;
    constexpr double kernels = 8;
    const double elementwise = memory_seconds(gpu, activation_element_bytes * tokens * moved) +
                               kernels * seconds(gpu.kernel_gap);
    layer.elementwise = elementwise;
    layer.forward.compute = multiplications + attention.forward + elementwise;
    layer.backward.compute += attention.backward + 1.5 * elementwise;
    // A GPU that finishes a layer before the framework has launched the next one waits for it.
    layer.forward.compute = std::max(layer.forward.compute, seconds(gpu.layer_launch_forward));
    layer.backward.compute = std::max(layer.backward.compute, seconds(gpu.layer_launch_backward));
    if (p.tensor > 1) {
        // Two all-gathers and two reduce-scatters each way; without sequence parallelism two
        // all-reduces, which move the same.
        const double bytes = tokens * h * activation_element_bytes;
        double each_way = 2 * ring_all_reduce_seconds(p.tensor, bytes, tensor_ring(node, p.tensor));
        if (p.overlap_tensor) {
            each_way = std::max(each_way / gpu.tensor_overlap_chunks, each_way - multiplications);
        }
        layer.forward.communication = each_way;
        layer.backward.communication = each_way;
    }
    return layer;
}

struct StageTimes {
    Pass forward;
    Pass backward;
};

// The slowest stage: a full one, or the last with its logits.
StageTimes slowest_stage(const TransformerModel& m, const ParallelPlan& p, const Node& node) {
    const Layer layer = layer_times(m, p, node);
    const double tokens =
        static_cast<double>(p.microbatch) * static_cast<double>(p.sequence_length);
    const double words = static_cast<double>(m.vocab) / static_cast<double>(p.tensor);
    constexpr double loss_traffic = 8;  // bytes per logit: fp32 softmax over bf16 logits
    const double logits = gemm_seconds(node.gpu, tokens, words, static_cast<double>(m.hidden)) +
                          memory_seconds(node.gpu, loss_traffic * tokens * words);
    const std::int64_t full = layers_per_stage(m, p.pipeline);
    const bool ends_lighter = m.layers % p.pipeline != 0;

    const auto stage = [&](double layers, double head) {
        StageTimes out;
        out.forward = {layers * layer.forward.compute + head, layers * layer.forward.communication};
        out.backward = {layers * layer.backward.compute + 2 * head,
                        layers * layer.backward.communication};
        if (p.recompute == Recompute::full) {
            out.backward.compute += layers * layer.forward.compute;
            out.backward.communication += layers * layer.forward.communication;
        } else if (p.recompute != Recompute::none) {
            if (!p.fused_attention) out.backward.compute += layers * layer.attention;
            if (p.recompute == Recompute::elementwise) {
                out.backward.compute += layers * layer.elementwise;
            }
        }
        return out;
    };
    const auto whole = [](const StageTimes& s) {
        return s.forward.compute + s.forward.communication + s.backward.compute +
               s.backward.communication;
    };
    const StageTimes last = stage(static_cast<double>(ends_lighter ? full - 1 : full), logits);
    if (p.pipeline == 1) return last;
    const StageTimes middle = stage(static_cast<double>(full), 0);
    return whole(last) > whole(middle) ? last : middle;
}

// Data-parallel communication that computation does not hide.
double exposed_data_parallel(const TransformerModel& m, const ParallelPlan& p, const Node& node,
                             const ParameterBytes& bytes, const StageTimes& stage) {
    if (p.data == 1) return 0;
    const RingLink ring = data_ring(node, p);
    const double params = m.params / static_cast<double>(p.tensor * p.pipeline);
    const double gradients = params * bytes.gradient;
    const double weights = params * bytes.weight;
    const double scatter = ring_reduce_scatter_seconds(p.data, gradients, ring);
    const double gather = ring_all_gather_seconds(p.data, p.zero == 0 ? gradients : weights, ring);
    // Gradients go out behind the last microbatch's backward, parameters come in behind a forward.
    const double behind_backward = p.overlap_data ? stage.backward.compute : 0;
    const double behind_forward = p.overlap_data ? stage.forward.compute : 0;
    const double passes = static_cast<double>(p.microbatches());
    if (p.zero >= 3) {
        // Parameters are gathered in every forward and again in every backward pass, and gradients
        // scattered in each of these.
        return passes * (std::max(0.0, gather - behind_forward) +
                         std::max(0.0, gather + scatter - behind_backward));
    }
    // Gradients that each rank keeps its share of are scattered in every backward pass, others once.
    double exposed = (p.zero == 2 ? passes : 1) * std::max(0.0, scatter - behind_backward);
    exposed += std::max(0.0, gather - (p.zero == 0 ? 0 : behind_forward));
    return exposed;
}

}  // namespace

StepTime model_step(const TransformerModel& m, const ParallelPlan& p, const Node& node,
                    const ParameterBytes& bytes, double optimizer_traffic) {
    const StageTimes stage = slowest_stage(m, p, node);
    const double count = static_cast<double>(p.microbatches());
    const double compute = stage.forward.compute + stage.backward.compute;
    const double communication = stage.forward.communication + stage.backward.communication;
    const double stages = static_cast<double>(p.pipeline);

    double exposed = count * communication;
    if (p.pipeline > 1) {
        // Filling and draining the pipeline waits for one send per boundary each way.
        const double boundary = static_cast<double>(p.microbatch) *
                                static_cast<double>(p.sequence_length * m.hidden) *
                                activation_element_bytes / static_cast<double>(p.tensor);
        const RingLink link{seconds(node.nic_latency),
                            node_network_bytes_per_second(node) / static_cast<double>(node.gpus)};
        exposed += 2 * (stages - 1) * send_seconds(boundary, link);
    }
    exposed += exposed_data_parallel(m, p, node, bytes, stage);

    const double params = m.params / static_cast<double>(p.tensor * p.pipeline) /
                          (p.zero >= 1 ? static_cast<double>(p.data) : 1.0);
    const double optimizer = memory_seconds(node.gpu, params * optimizer_traffic);
    const double bubble =
        (stages - 1) / static_cast<double>(p.interleave) * (compute + communication);

    const auto part = [](double s) {
        return std::isnan(s) ? step_part_max : std::min(from_seconds(s), step_part_max);
    };
    StepTime step;
    step.compute = part(count * compute + optimizer);
    step.exposed_communication = part(exposed);
    step.bubble = part(bubble);
    step.model_flops = 3 * forward_flops_per_token(m, p.sequence_length) *
                       static_cast<double>(p.global_batch * p.sequence_length);
    return step;
}

}  // namespace railyard
