#include "models/training/layer_work.h"

#include <algorithm>
#include <cmath>

namespace railyard {

double exposed_seconds(const Gpu& gpu, double collective, Cover cover, double share) {
    const double window = cover.work + cover.idle;
    const double hidden = std::min(share * collective, window);
    if (hidden <= 0) return collective;
    return collective - hidden + gpu.overlap_tax * hidden * cover.work / window;
}

namespace {

constexpr double plain_kernels = 16;  // of a dense layer in 16 bits, multiplications apart

// The end of a layer's forward pass, which its backward pass needs nothing of: the last product, whose input
// is needed and whose output is not, the collective behind it and the sum with the residual.
struct LayerEnd {
    double multiplications = 0;
    double elementwise = 0;
    double tensor = 0;
};

// What a token's state is multiplied with, by tensor cores, and what is moved for that. Tokens of a chunk
// meet each other in products as in attention, without exponentials; a chunk's state is written, summed up
// with those before it, and read.
void state_seconds(const StateMixer& state, const ParallelPlan& p, const Gpu& gpu, LayerWork& out) {
    constexpr double kernels = 5;
    constexpr double state_bytes = 12;  // of an element in 32 bits: written, summed up, read
    const double chunk = real(state.chunk);
    const double size = real(state.size);
    // Multiply-adds of a token.
    double products = chunk * state.key_width() + (chunk + 2 * size) * state.width();
    if (state.delta_rule) {
        // Each token's values and keys are solved for those of the tokens before it, in a triangle.
        const double heads = real(state.heads);
        products = heads * chunk * (3 * size + chunk / 3) + (2 * chunk + 3 * size) * state.width();
    }
    const double t = real(p.tensor);
    const double tokens = p.rank_tokens() / t;
    const double flops = 2 * products * tokens;
    const double bytes = (activation_element_bytes * 2 * (state.width() + state.key_width()) +
                          state_bytes * size * state.width() / chunk) *
                         tokens;
    const double rate = gpu.sustained_flops() * state.kernel_efficiency;
    const double forward =
        std::max(flops / rate, memory_seconds(gpu, bytes)) + kernels * seconds(gpu.kernel_gap);
    out.forward.attention = forward;
    out.backward.attention = 2.5 * forward;  // the states once more, and two products for each
}

void attention_seconds(const TransformerModel& m, const ParallelPlan& p, const Gpu& gpu,
                       LayerWork& out) {
    const double t = real(p.tensor);
    const double tokens = p.rank_tokens();
    // Scores and their product with the values, over whole sequences.
    const double flops = 2 * tokens * attended_tokens(m, p.sequence_length) *
                         (m.query_width() + m.value_width()) / t;
    const double gap = seconds(gpu.kernel_gap);
    if (p.fused_attention) {
        // Skips the masked half, if any; the backward pass computes the scores again: five products, not two.
        // Each score has one exponential, which narrow heads have few multiplications to hide behind.
        constexpr double usual_width = 128;
        // 8 bits are multiplied in half the time; exponentials take as long as before.
        const double width = real(m.head_dim + m.value_dim) / 2;
        const double rate = gpu.sustained_flops() * gpu.fused_attention_efficiency *
                            (1 + gpu.exponential_width / usual_width) /
                            ((p.attention_in_fp8 ? 0.5 : 1) + gpu.exponential_width / width);
        const double forward = flops / (m.masked ? 2 : 1) / rate + gap;
        double casts = 0;  // of queries, keys and values, and what attention gives back
        if (p.attention_in_fp8) {
            constexpr double bytes = 3;  // 2 and 1: one of them is read, one written
            const double elements = m.query_width() + m.kv_width() + 2 * m.value_width();
            casts = memory_seconds(gpu, bytes * tokens * elements / t) + 2 * gap;
        }
        out.forward.attention = forward + casts;
        out.backward.attention = 2.5 * forward + casts;
        return;
    }
    // Tensor cores load 16 bytes at a time: heads that begin anywhere else do without them.
    const bool aligned = m.head_dim * static_cast<std::int64_t>(activation_element_bytes) % 16 == 0;
    const double products = flops / (gpu.sustained_flops() * gpu.batched_gemm_efficiency *
                                     (aligned ? 1 : gpu.unaligned_efficiency));
    const double scores = real(m.heads) / t * real(p.sequence_length) * tokens;
    const double traffic = memory_seconds(gpu, scores * gpu.score_traffic);
    out.forward.attention = products + traffic + 4 * gap;
    out.backward.attention = 2 * products + 1.5 * traffic + 2 * gap;
}

// What is left of the rate where rows of a matrix begin at addresses that are multiples of so few bytes.
double alignment(double elements, Precision precision) {
    const auto bytes = static_cast<std::int64_t>(elements * element_bytes(precision));
    if (bytes % 32 == 0) return 1;
    return bytes % 16 == 0 ? 0.85 : 0.6;
}

// Multiplications of tokens with matrices: each once forward, twice backward, once where the matrix is
// frozen. `n` is split over the tensor-parallel ranks where it is an output, `k` where it is an input.
class Linear {
  public:
    Linear(const Gpu& gpu, const ParallelPlan& plan, LayerWork& out)
        : gpu_(gpu), precision_(plan.precision), frozen_(plan.adapter_rank > 0), out_(out) {}
    // Gives the seconds of the forward pass.
    double operator()(double tokens, double n, double k, double groups = 1) {
        const double aligned = std::min(alignment(n, precision_), alignment(k, precision_));
        const auto time = [&](double height, double width, double depth) {
            return gemm_seconds(gpu_, {height, width, depth, groups, precision_}) / aligned;
        };
        const double forward = time(tokens, n, k);
        out_.forward.multiplications += forward;
        const double weights = frozen_ ? 0 : time(k, n, tokens);
        out_.backward.multiplications += time(tokens, k, n) + weights;
        out_.weight_gradients += weights;
        inputs_ += groups * tokens * k;
        return forward;
    }
    // The two narrow matrices beside one of n outputs and k inputs, in 16 bits.
    void adapter(double rank, double tokens, double n, double k) {
        const auto time = [&](double height, double width, double depth) {
            return gemm_seconds(gpu_, {height, width, depth});
        };
        out_.forward.multiplications += time(tokens, rank, k) + time(tokens, n, rank);
        out_.backward.multiplications += time(tokens, k, rank) + time(k, rank, tokens) +
                                         time(tokens, rank, n) + time(rank, n, tokens);
    }
    double inputs() const { return inputs_; }  // elements

  private:
    const Gpu& gpu_;
    Precision precision_;
    bool frozen_;
    LayerWork& out_;
    double inputs_ = 0;
};

// What each rank of an expert-parallel group sends to the experts, or gets back from them.
double expert_exchange_seconds(const TransformerModel& m, const ParallelPlan& p,
                               Communicators& groups, double token_bytes) {
    const Communicator& group = groups.of(Collective::all_to_all, p.expert_stride(), p.expert);
    const double tokens = p.rank_tokens() * p.imbalance();
    const double k = real(m.topk);
    if (p.dispatch == ExpertDispatch::all_to_all) {
        const double bytes = tokens * k * token_bytes;
        groups.note(
            {CallPurpose::expert, Collective::all_to_all, p.expert_stride(), p.expert, bytes, 2});
        return seconds(Collective::all_to_all, group, bytes);
    }
    // How many of `places`, all equally likely, have at least one of a token's experts.
    const auto met = [&](double places) { return places * (1 - std::pow(1 - 1 / places, k)); };
    const double domains = real(group.domains);
    const double limit = m.nodes_per_token > 0 ? real(m.nodes_per_token) : domains;
    const double elsewhere = std::min(met(domains), limit) * (domains - 1) / domains;
    const double peers = met(real(group.ranks)) * (group.per_domain - 1) / group.per_domain;
    const double network = group.domains > 1 ? tokens * elsewhere * token_bytes * group.per_domain /
                                                   group.all_to_all_network
                                             : 0;
    const double nvlink =
        tokens * peers * token_bytes / (group.nvlink * group.measured.pairwise_efficiency);
    return std::max(network, nvlink) + seconds(Collective::all_to_all, group, 1);
}

// Keys and values of the other ranks; backward again, and their gradients home.
double context_gather_seconds(const TransformerModel& m, const ParallelPlan& p,
                              Communicators& groups) {
    const double keys_values = real(m.kv_heads * (m.head_dim + m.value_dim)) / real(p.tensor);
    const double bytes = real(p.context) * p.rank_tokens() * keys_values * activation_element_bytes;
    groups.note(
        {CallPurpose::context, Collective::all_gather, p.replica_stride(), p.context, bytes});
    return seconds(Collective::all_gather,
                   groups.of(Collective::all_gather, p.replica_stride(), p.context), bytes);
}

// Bytes of an element that tensor-parallel ranks gather before a product, forward its input and backward its
// output's gradient. Adapters read the input too, in 16 bits; scales of rows are made after the gather.
double gathered_width(const ParallelPlan& p) {
    const bool narrow =
        p.quantize_before_gather && p.adapter_rank == 0 && p.precision != Precision::fp8_rowwise;
    return narrow ? element_bytes(p.precision) : activation_element_bytes;
}

// Ranks of a context split a state's heads instead of its tokens: there by all-to-all, and back. Forward;
// backward as often.
double context_exchange_seconds(const StateMixer& state, const ParallelPlan& p,
                                Communicators& groups) {
    double sum = 0;
    for (const double width : {state.inputs(), state.width()}) {
        const double bytes = p.rank_tokens() * width / real(p.tensor) * activation_element_bytes;
        groups.note(
            {CallPurpose::context, Collective::all_to_all, p.replica_stride(), p.context, bytes});
        sum += seconds(Collective::all_to_all,
                       groups.of(Collective::all_to_all, p.replica_stride(), p.context), bytes);
    }
    return sum;
}

void expert_collectives(const TransformerModel& m, const ParallelPlan& p, Communicators& groups,
                        LayerWork& out) {
    const double t = real(p.tensor);
    // To the experts and back.
    const double both =
        2 * expert_exchange_seconds(m, p, groups, real(m.hidden) * activation_element_bytes / t);
    const auto visible = [&](const Pass& pass) {
        return p.overlap_expert ? exposed_seconds(groups.node().gpu, both, {pass.kernels()}) : both;
    };
    out.forward.expert = visible(out.forward);
    out.backward.expert = visible(out.backward);
}

void collectives_of_layer(const TransformerModel& m, const ParallelPlan& p, Communicators& groups,
                          LayerKind kind, LayerWork& out, LayerEnd& ending) {
    const Gpu& gpu = groups.node().gpu;
    const bool experts = kind.experts();
    const double tokens = p.rank_tokens();
    const double bytes = tokens * real(m.hidden) * activation_element_bytes;
    const double copies = real(m.topk) * p.imbalance();
    if (p.tensor > 1) {
        // Attention and feed-forward each gather their input and scatter their output; without
        // sequence parallelism an all-reduce, which moves the same. Experts gather every copy.
        const Communicator& group = groups.of(Collective::all_reduce, p.tensor_stride(), p.tensor);
        const auto note = [&](Collective collective, double size) {
            groups.note({CallPurpose::tensor, collective, p.tensor_stride(), p.tensor, size});
        };
        const auto exchange = [&](double size, double gathered) {
            note(p.sequence_parallel ? Collective::all_gather : Collective::all_reduce,
                 p.sequence_parallel ? gathered : size);
            if (p.sequence_parallel) note(Collective::reduce_scatter, size);
            return p.sequence_parallel ? seconds(Collective::all_gather, group, gathered) +
                                             seconds(Collective::reduce_scatter, group, size)
                                       : seconds(Collective::all_reduce, group, size);
        };
        const double gathered = bytes * gathered_width(p) / activation_element_bytes;
        double each_way = kind.mixer != Mixer::none ? exchange(bytes, gathered) : 0;
        const bool feeds = kind.feed_forward != FeedForward::none;
        if (feeds && !m.parallel_block && !(experts && p.fold_experts)) {
            each_way +=
                experts ? exchange(copies * bytes, copies * bytes) : exchange(bytes, gathered);
        }
        const auto visible = [&](double multiplications) {
            return p.overlap_tensor
                       ? exposed_seconds(gpu, each_way, {multiplications}, gpu.piecewise_overlap)
                       : each_way;
        };
        out.forward.tensor = visible(out.forward.multiplications);
        // The last collective hides as much as all do.
        const double last =
            seconds(p.sequence_parallel ? Collective::reduce_scatter : Collective::all_reduce,
                    group, bytes);
        if (each_way > 0) ending.tensor = out.forward.tensor * last / each_way;
        out.backward.tensor = visible(out.backward.multiplications);
    }
    if (p.context > 1 && kind.mixer == Mixer::state) {
        out.forward.context = out.backward.context = context_exchange_seconds(m.state, p, groups);
    } else if (p.context > 1 && kind.mixer == Mixer::attention) {
        const double gather = context_gather_seconds(m, p, groups);
        const auto visible = [&](double time, double attention) {
            return p.overlap_context ? exposed_seconds(gpu, time, {attention}) : time;
        };
        out.forward.context = visible(gather, out.forward.attention);
        out.backward.context = visible(2 * gather, out.backward.attention);
    }
    if (experts && p.expert > 1) expert_collectives(m, p, groups, out);
}

// What the matrices and the elementwise kernels of a layer come to, before the latter become time.
struct LayerSum {
    LayerSum(const Gpu& gpu, const ParallelPlan& plan, LayerWork& out)
        : linear(gpu, plan, out), parts(plan.recompute_parts) {}
    void part(RecomputePart which, double forward) {
        if ((parts & which) != 0) again += forward;
    }

    Linear linear;
    unsigned parts;    // RecomputePart
    double again = 0;  // multiplications of the parts that are computed again
    double last = 0;   // the last product
    // Activations that elementwise kernels move, by element: those of each token, then those that the
    // tensor-parallel ranks share out.
    double moved = 0;
    double kernels = plain_kernels;
};

void attention_matrices(const TransformerModel& m, const ParallelPlan& p, LayerSum& sum) {
    const double t = real(p.tensor);
    const double tokens = p.rank_tokens();
    const double h = real(m.hidden);
    const double q = m.query_width();
    Linear& linear = sum.linear;
    if (m.kv_rank > 0) {
        const double query = real(m.query_rank);
        const double latent = real(m.kv_rank);
        const double rotary = real(m.rotary_dim);
        if (query > 0) linear(tokens, query, h);
        sum.part(recompute_latent_up, linear(tokens, q / t, query > 0 ? query : h));
        linear(tokens, latent + rotary, h);
        sum.part(recompute_latent_up,
                 linear(tokens, (real(m.heads * (m.head_dim - m.rotary_dim)) + m.value_width()) / t,
                        latent));
        sum.moved +=
            2 * (query + latent) + 4 * q / t;  // their norms; queries and keys put together
        sum.kernels += 8;
    } else {
        linear(tokens, ((m.attention_gate ? 2 : 1) * q + 2 * m.kv_width()) / t, h);
    }
    if (m.attention_gate) {
        sum.moved += 3 * q / t;
        sum.kernels += 1;
    }
    sum.part(recompute_attention, linear(tokens, h, m.value_width() / t));
    if (p.adapter_rank > 0) {
        const double rank = real(p.adapter_rank);
        linear.adapter(rank, tokens, (q + 2 * m.kv_width()) / t, h);
        linear.adapter(rank, tokens, h, m.value_width() / t);
        sum.moved += 4 * h;  // their inputs go through dropout, their outputs are added
        sum.kernels += 8;
    }
}

void state_matrices(const StateMixer& state, double hidden, const ParallelPlan& p, LayerSum& sum) {
    const double t = real(p.tensor);
    const double tokens = p.rank_tokens();
    sum.linear(tokens, state.inputs() / t, hidden);
    sum.part(recompute_attention, sum.linear(tokens, hidden, state.width() / t));
    // The convolution reads and writes; a norm reads what the states give and its gate.
    sum.moved += (2 * state.conv_width() + 3 * state.width()) / t;
    sum.kernels += 4;
}

void feed_forward_matrices(const TransformerModel& m, const ParallelPlan& p, const Gpu& gpu,
                           bool experts, LayerSum& sum) {
    const double t = real(p.tensor);
    const double tokens = p.rank_tokens();
    const double h = real(m.hidden);
    const double gates = m.glu ? 2 : 1;
    Linear& linear = sum.linear;
    if (experts) {
        const double f = real(m.expert_ffn);
        const double shared = real(m.shared_experts) * f;
        const double copies = real(m.topk) * p.imbalance();
        const double local = real(m.experts) / real(p.expert);
        const double split = real(p.expert_tensor());  // of one expert
        const double copied = tokens * copies / local * split / t;
        const double products =
            linear(copied, gates * f / split, h, local) + linear(copied, h, f / split, local);
        sum.part(recompute_experts, products);
        if (shared > 0) {
            const double first = linear(tokens, gates * shared / t, h);
            sum.part(recompute_shared, first + linear(tokens, h, shared / t));
        }
        sum.moved += gpu.expert_traffic * copies * h / t + (gates + 1) * (copies * f + shared) / t;
        sum.kernels += 30;
        if (m.linear_bias) {
            // A router weighs what experts give, so their bias is weighed too and no product adds it: expert
            // after expert it is weighed (written), added (two read, one written) and all put together.
            sum.moved += 6 * copies * split / t * h;
            sum.kernels += 2 * local + 1;
        }
    } else {
        const double f = real(m.ffn);
        const double first = linear(tokens, gates * f / t, h);
        sum.last = linear(tokens, h, f / t);
        sum.part(recompute_feed_forward, first + sum.last);
        sum.moved += (gates + 1) * f / t;
    }
}

// Gradients of shared weights leave at once; others are added to those of the microbatches before.
double accumulation_seconds(const TransformerModel& m, const ParallelPlan& p, const Gpu& gpu,
                            LayerKind kind) {
    if (p.zero >= 3 || p.adapter_rank > 0) return 0;
    LayerParameters parameters = layer_parameters(m);
    parameters.dense_vectors = parameters.expert_vectors = 0;
    double weights = common_parameters(parameters, kind) / real(p.tensor);
    if (kind.experts()) weights += parameters.routed / real(p.expert * p.expert_tensor());
    return memory_seconds(gpu, gpu.accumulation_traffic * weights);
}

// `again`: multiplications of the parts that are computed again.
void recompute(const ParallelPlan& p, const Gpu& gpu, bool experts, double again,
               const LayerEnd& ending, LayerWork& out) {
    if (p.recompute == Recompute::full) {
        // Entering a layer again restores its random state, which lets the queue of kernels run dry.
        out.recompute = out.forward;
        // What experts give is needed: the gradient of their weights in the sum is made of it.
        if (p.recompute_stops_early && !experts) {
            out.recompute.multiplications -= ending.multiplications;
            out.recompute.elementwise -= ending.elementwise;
            out.recompute.tensor -= ending.tensor;
        }
        if (!p.cuda_graphs) {
            out.recompute.launch_wait =
                std::max(out.forward.launch_wait, seconds(gpu.recompute_overhead));
        }
        return;
    }
    const bool core = p.recompute != Recompute::none && !p.fused_attention;
    if (core || (p.recompute_parts & recompute_attention) != 0) {
        out.recompute.attention = out.forward.attention;
    }
    const bool whole = p.recompute == Recompute::elementwise || p.recompute == Recompute::alternate;
    // Norms are half of it, activation functions the other; parts with matrices bring their own.
    const double share = ((p.recompute_parts & recompute_norms) != 0 ? 0.5 : 0) +
                         ((p.recompute_parts & recompute_activation) != 0 ? 0.5 : 0);
    out.recompute.elementwise = (whole ? 1 : share) * out.forward.elementwise;
    out.recompute.multiplications =
        again + (p.recompute == Recompute::alternate ? 0.5 * out.forward.multiplications : 0);
    if (experts && (p.recompute_parts & recompute_experts) != 0) {
        out.recompute.elementwise = out.forward.elementwise;
        out.recompute.expert = out.forward.expert;
    }
}

}  // namespace

LayerWork layer_work(const TransformerModel& m, const ParallelPlan& p, Communicators& groups,
                     LayerKind kind) {
    const Gpu& gpu = groups.node().gpu;
    const bool experts = kind.experts();
    LayerWork out;
    LayerSum sum(gpu, p, out);
    const double width = real(m.hidden) / (p.sequence_parallel ? real(p.tensor) : 1);
    const double share = kind.parts() / 2;  // of a whole layer's norms and sums
    sum.moved = gpu.elementwise_traffic * width * (m.parallel_block ? 0.5 : share);
    sum.kernels = share * plain_kernels;
    if (kind.mixer == Mixer::attention) attention_matrices(m, p, sum);
    if (kind.mixer == Mixer::state) state_matrices(m.state, real(m.hidden), p, sum);
    if (kind.feed_forward != FeedForward::none) feed_forward_matrices(m, p, gpu, experts, sum);
    // Scales and casts are kernels of their own, two for each product.
    if (p.precision != Precision::bf16) sum.kernels += 2 * (experts ? 2 + 4 * share : 4 * share);
    double elementwise = activation_element_bytes * p.rank_tokens() * sum.moved;
    elementwise += cast_bytes(p.precision, p.adapter_rank == 0) * sum.linear.inputs();
    out.forward.elementwise =
        memory_seconds(gpu, elementwise) + sum.kernels * seconds(gpu.kernel_gap);
    const double accumulation = accumulation_seconds(m, p, gpu, kind);
    out.backward.elementwise = 1.5 * out.forward.elementwise + accumulation;
    out.weight_gradients += accumulation;
    if (kind.mixer == Mixer::attention) attention_seconds(m, p, gpu, out);
    if (kind.mixer == Mixer::state) state_seconds(m.state, p, gpu, out);
    // A sum reads two activations and writes one.
    LayerEnd ending{sum.last,
                    memory_seconds(gpu, 3 * activation_element_bytes * p.rank_tokens() * width)};
    collectives_of_layer(m, p, groups, kind, out, ending);
    // A GPU that finishes a layer before the framework has launched the next one waits for it.
    // Its launch time is that of a plain layer; one with more kernels takes as much longer. Where launches
    // block, none is made while a kernel runs, and all of that time is waited for.
    const double launches = sum.kernels / plain_kernels;
    const auto wait = [&](Pass& pass, Duration launch) {
        if (p.cuda_graphs) return;
        const double hidden = p.launch_blocking ? 0 : pass.total();
        pass.launch_wait = std::max(0.0, launches * seconds(launch) - hidden);
    };
    wait(out.forward, gpu.layer_launch_forward);
    wait(out.backward, gpu.layer_launch_backward);
    recompute(p, gpu, experts, sum.again, ending, out);
    return out;
}

namespace {

// So many images of a rank, whole ones.
LayerWork images_work(const TransformerModel& m, const ParallelPlan& p, Communicators& groups,
                      std::int64_t images) {
    if (images == 0) return {};
    const VisionEncoder& v = m.vision;
    const ParallelPlan plan = p.of_images(v, images);
    LayerWork out;
    out.add(real(v.layers), layer_work(vision_layers(v), plan, groups, LayerKind{}));
    const auto product = [&](double height, double width, double depth) {
        return gemm_seconds(groups.node().gpu, {height, width, depth});
    };
    // Nothing asks for a patch's own gradient. Each rank embeds all patches.
    const double hidden = real(v.hidden);
    const double values = real(v.patch_values);
    const double patches = plan.rank_tokens();
    out.forward.multiplications += product(patches, hidden, values);
    out.backward.multiplications += product(hidden, values, patches);
    if (p.vision_frozen()) out.recompute = out.backward = {};

    const double t = real(p.tensor);
    const double tokens = v.tokens() * real(images);
    const double inner = real(v.projector);
    const double h = real(m.hidden);
    const auto matrix = [&](double n, double k, bool asks_below) {
        out.forward.multiplications += product(tokens, n, k);
        if (p.adapter_rank > 0) return;
        out.backward.multiplications +=
            product(n, k, tokens) + (asks_below ? product(tokens, k, n) : 0);
    };
    if (inner > 0) matrix(h, inner / t, true);
    matrix((inner > 0 ? inner : h) / t, v.projected_width(), !p.vision_frozen());
    return out;
}

}  // namespace

LayerWork operator*(double n, const LayerWork& each) {
    return LayerWork{}.add(n, each);
}
LayerWork operator+(LayerWork a, const LayerWork& b) {
    return a.add(1, b);
}

LayerWork vision_work(const TransformerModel& m, const ParallelPlan& p, Communicators& groups) {
    if (m.vision.layers == 0) return {};
    return p.over_images([&](std::int64_t images) { return images_work(m, p, groups, images); });
}

double image_seconds(const TransformerModel& m, const ParallelPlan& p, Communicators& groups) {
    if (m.vision.layers == 0) return 0;
    const std::int64_t images = p.rank_images(static_cast<std::int64_t>(p.microbatch_images()));
    return (images_work(m, p, groups, images + 1).total() -
            images_work(m, p, groups, images).total()) /
           real(p.context);
}

}  // namespace railyard
