#pragma once
// A model, how a job splits it over GPUs, and what that needs of a GPU's memory.

#include <algorithm>
#include <array>
#include <compare>
#include <numeric>
#include <string>
#include <vector>

#include "models/hardware/hardware.h"

namespace railyard {

// Layers that keep a state in place of keys and values: Mamba 2, lightning attention, the gated delta rule. Each
// head has a state of `size` x `head_dim`. Counts, no units.
struct StateMixer {
    std::int64_t heads = 0;  // 0: the model has no such layers
    std::int64_t head_dim = 0;
    std::int64_t size = 0;
    std::int64_t groups =
        0;                  // of heads that share what writes to their states, and what reads them
    std::int64_t conv = 0;  // tokens that a convolution in front of them joins; 0: there is none
    std::int64_t chunk =
        0;  // tokens that are multiplied with each other; states pass between chunks
    bool delta_rule = false;       // a token overwrites what the state has in its place
    double kernel_efficiency = 0;  // of the sustained rate of multiplications

    double width() const { return static_cast<double>(heads * head_dim); }
    double key_width() const { return static_cast<double>(groups * size); }
    double conv_width() const { return conv > 0 ? width() + 2 * key_width() : 0; }
    // Of the product in front: what is written, its gate, keys and queries, and each head's own steps.
    double inputs() const {
        return 2 * width() + 2 * key_width() + (delta_rule ? 2 : 1) * static_cast<double>(heads);
    }
};

// The two parts of a layer; a layer of some models has one alone.
enum class Mixer : std::uint8_t { attention, state, none };
enum class FeedForward : std::uint8_t { dense, experts, none };
struct LayerKind {
    Mixer mixer = Mixer::attention;
    FeedForward feed_forward = FeedForward::dense;

    static constexpr std::size_t kinds = 9;
    constexpr std::size_t index() const {
        return static_cast<std::size_t>(mixer) * 3 + static_cast<std::size_t>(feed_forward);
    }
    static constexpr LayerKind of(std::size_t index) {
        return {static_cast<Mixer>(index / 3), static_cast<FeedForward>(index % 3)};
    }
    // Of its two parts, those that it has.
    double parts() const {
        return (mixer != Mixer::none ? 1 : 0) + (feed_forward != FeedForward::none ? 1 : 0);
    }
    bool experts() const { return feed_forward == FeedForward::experts; }
    bool operator==(const LayerKind&) const = default;
};

// A decoder-only transformer. Counts, no units.
struct TransformerModel {
    std::string name;
    std::int64_t layers = 0;
    std::int64_t hidden = 0;
    std::int64_t ffn = 0;  // of a layer without experts
    std::int64_t heads = 0;
    std::int64_t kv_heads = 0;
    std::int64_t head_dim = 0;  // of queries and keys, rotary part included
    std::int64_t value_dim = 0;
    std::int64_t vocab = 0;
    std::int64_t sequence_length = 0;
    bool glu = false;                    // gated feed-forward: three matrices, not two
    bool tied_embedding = false;         // the output matrix is the embedding
    bool linear_bias = false;            // matrices add a bias
    bool norm_bias = false;              // norms shift, besides scaling
    std::int64_t learned_positions = 0;  // 0: none, or computed ones
    bool parallel_block = false;  // attention and feed-forward read the same norm, add up in one
    std::int64_t window = 0;      // tokens that attention looks back; 0: all
    std::int64_t full_attention_every = 0;  // with a window: each so many-th layer looks at all
    bool attention_gate = false;            // queries bring a gate for what attention writes
    StateMixer state{};
    std::int64_t attention_every =
        0;  // with states: each so many-th layer has attention instead; 0: none
    // Latent attention (DeepSeek): queries, and keys with values, pass through these ranks. 0: none.
    std::int64_t query_rank = 0;
    std::int64_t kv_rank = 0;
    std::int64_t rotary_dim = 0;  // of a key, shared by its heads, beside the latent
    // Mixture of experts. 0 experts: every layer is dense.
    std::int64_t experts = 0;
    std::int64_t topk = 0;
    std::int64_t nodes_per_token = 0;  // the router picks experts on so many nodes at most; 0: any
    std::int64_t shared_experts = 0;
    std::int64_t expert_ffn = 0;
    std::int64_t dense_layers = 0;   // the first ones, which have no experts
    std::int64_t experts_every = 1;  // of the others each so many-th has
    std::int64_t mtp_layers = 0;     // that predict tokens after the next, with a loss each
    // Layers of one part: M a state, * attention, - a dense feed-forward, E experts. Empty: all have two.
    std::string layer_pattern{};

    double query_width() const { return static_cast<double>(heads * head_dim); }
    double kv_width() const { return static_cast<double>(kv_heads * head_dim); }
    double value_width() const { return static_cast<double>(heads * value_dim); }
    LayerKind layer(std::int64_t number) const;
    // A layer that predicts a further token.
    LayerKind further_layer() const {
        return {Mixer::attention, experts > 0 ? FeedForward::experts : FeedForward::dense};
    }
    bool alike() const {  // but for the first, dense ones
        return state.heads == 0 && experts_every == 1 && layer_pattern.empty();
    }
};

// How many layers there are of each kind.
struct LayerCounts {
    std::array<double, LayerKind::kinds> of{};

    double& operator[](LayerKind kind) { return of[kind.index()]; }
    double operator[](LayerKind kind) const { return of[kind.index()]; }
    double all() const { return std::accumulate(of.begin(), of.end(), 0.0); }
    double with(Mixer mixer) const;
    double with(FeedForward feed_forward) const;
    bool operator==(const LayerCounts&) const = default;
};
// Of the model's layers, `count` from the one on that is numbered `first`, from 0.
LayerCounts count_layers(const TransformerModel& model, std::int64_t first, std::int64_t count);
inline LayerCounts count_layers(const TransformerModel& model) {
    return count_layers(model, 0, model.layers);
}

// `name` must be an entry of kind "model". Reports a shape that no model has (heads that don't divide), and
// a printed count of parameters that is more than 1 % off what the shape has; the count of an entry whose
// shape the scenario overrides is of another model, and not looked at.
TransformerModel read_model(Catalogue& catalogue, const std::string& name);

// Parameters of one layer, all from the model's shape. Norms of single heads, some millionths, are left out.
struct LayerParameters {
    double attention = 0;       // matrices
    double state = 0;           // matrices, convolution and what each head has
    double ffn = 0;             // those of a dense layer
    double shared = 0;          // shared experts and router of a layer with experts
    double routed = 0;          // all routed experts of such a layer, biases included
    double dense_vectors = 0;   // norms and biases of a dense layer
    double expert_vectors = 0;  // of a layer with experts, but for those of its routed experts
};
LayerParameters layer_parameters(const TransformerModel& model);
// All of one layer but its routed experts.
double common_parameters(const LayerParameters& each, LayerKind kind);
// Outside the layers: embedding, positions, output matrix, last norm.
double outer_parameters(const TransformerModel& model);
double parameter_count(const TransformerModel& model);
// Those that one token meets: of the routed experts, topk.
double active_parameter_count(const TransformerModel& model);

enum class Recompute : std::uint8_t {
    none,         // everything is kept, attention scores included
    selective,    // the attention core is computed again (what fused attention kernels do)
    elementwise,  // and so are norms and the activation function
    alternate,    // and so is every second matrix multiplication (PyTorch's selective "op")
    full,         // only each layer's input is kept
};

// Their words in scenarios, in order.
const std::vector<std::string>& recompute_names();

// Which ranks are neighbours: those of the first word are numbered first, and so share nodes.
// Context-parallel ranks come just before data-parallel ones; an expert-parallel group is made of
// neighbours among both.
enum class RankOrder : std::uint8_t {
    tensor_data_pipeline,
    tensor_pipeline_data,
    data_tensor_pipeline,
    data_pipeline_tensor,
    pipeline_tensor_data,
    pipeline_data_tensor,
};
const std::vector<std::string>& rank_order_names();

// Parts of a layer that are computed again besides what Recompute says: a set of bits.
enum RecomputePart : unsigned {
    recompute_norms = 1,
    recompute_activation = 2,  // of the feed-forward, dense or of experts
    recompute_latent_up = 4,   // queries, keys and values out of latents
    recompute_feed_forward = 8,
    recompute_experts = 16,  // all of them, with their all-to-all
    // All after queries, keys and values: the core and the output product.
    recompute_attention = 32,
    recompute_shared = 64,  // shared experts
};
const std::vector<std::string>& recompute_part_names();  // in the order of the bits

// Who carries tokens to their experts.
enum class ExpertDispatch : std::uint8_t {
    all_to_all,  // NCCL's: a copy for each expert
    two_stage,   // one copy for each node, over its rail, and there for each GPU (DeepEP, HybridEP)
};
const std::vector<std::string>& expert_dispatch_names();

// What a training stack does unless its job says otherwise.
struct StackHabits {
    bool sequence_parallel = true;
    bool overlap_data = true;      // gradient and parameter collectives behind computation
    bool overlap_tensor = false;   // tensor-parallel collectives behind matrix multiplications
    bool overlap_pipeline = true;  // sends between stages behind computation
    bool fused_attention = true;   // scores never reach memory
    bool fused_loss = false;       // one kernel over the logits
    bool cuda_graphs = false;      // kernels are launched by replay
    bool launch_blocking = false;  // the host waits until each kernel that it launches has ended
    bool reduce_in_fp32 = true;    // false: gradients travel in the weights' precision
    bool buckets = false;          // gradients and weights travel in Megatron's buckets
    bool recompute_stops_early = false;   // full: as soon as the backward pass has what it needs
    bool gather_in_fp8 = false;           // weights of 8-bit products are gathered as 8 bits
    bool quantize_before_gather = false;  // what tensor-parallel ranks gather for such products
    bool keep_in_fp8 = false;   // with 8-bit products, what an activation function reads too
    bool fold_experts = false;  // expert ranks are tensor ranks too, and none splits an expert
    ExpertDispatch dispatch = ExpertDispatch::all_to_all;

    auto operator<=>(const StackHabits&) const = default;
};

struct ParallelPlan : StackHabits {
    std::int64_t tensor = 1;
    std::int64_t context = 1;  // ranks that share out each sequence
    std::int64_t pipeline = 1;
    std::int64_t data = 1;
    std::int64_t expert = 1;              // ranks that share out the experts
    std::int64_t shard_ranks = 0;         // ranks that ZeRO shares among; 0: all that hold the same
    std::int64_t interleave = 1;          // virtual pipeline stages per GPU
    std::int64_t first_stage_layers = 0;  // 0: as many as layers_per_stage() says, or one less
    std::int64_t last_stage_layers = 0;   // likewise
    std::vector<std::int64_t> stage_layers;  // of each, where they are all said
    std::int64_t microbatch = 1;             // sequences
    std::int64_t global_batch = 1;           // sequences per step, all replicas
    std::int64_t sequence_length = 0;        // tokens
    int zero = 1;                            // ZeRO stage: what data-parallel ranks share out
    bool overlap_context = true;             // keys and values pass around a ring behind attention
    bool flat_parameters = true;    // ZeRO-3 gathers a layer at once, not parameter by parameter
    bool attention_in_fp8 = false;  // fused attention's products are of 8 bits
    Recompute recompute = Recompute::selective;
    std::int64_t recompute_layers = 0;  // full: the first ones of a stage; 0: all
    unsigned recompute_parts = 0;       // RecomputePart
    std::int64_t offload_layers = 0;    // of a stage, whose activations wait in the host's memory
    std::int64_t adapter_rank = 0;  // LoRA: the model's own weights are frozen. 0: all are trained
    bool overlap_expert = false;    // all-to-all behind another microbatch's computation
    RankOrder order = RankOrder::tensor_data_pipeline;
    Precision precision = Precision::bf16;
    double expert_imbalance = 1;  // see imbalance()
    double jitter = 0;            // standard deviation of a rank's step time over its mean

    auto operator<=>(const ParallelPlan&) const = default;

    std::int64_t gpus() const { return tensor * context * pipeline * data; }
    std::int64_t microbatches() const { return global_batch / (data * microbatch); }
    std::int64_t replica_ranks() const { return context * data; }  // that hold the same weights
    // Ranks that share out the experts, or hold the same ones; how far apart neighbours are; and ranks that
    // split one expert.
    std::int64_t expert_replica_ranks() const {
        return replica_ranks() * (fold_experts ? tensor : 1);
    }
    std::int64_t expert_stride() const { return fold_experts ? tensor_stride() : replica_stride(); }
    std::int64_t expert_tensor() const { return fold_experts ? 1 : tensor; }
    // How far apart the neighbours of a group are, in ranks.
    std::int64_t tensor_stride() const;
    std::int64_t replica_stride() const;  // and of a context-parallel group
    std::int64_t pipeline_stride() const;
    // Tokens of the busiest expert-parallel rank over the mean: one rank alone has the mean.
    double imbalance() const { return expert > 1 ? expert_imbalance : 1; }
    // Passes of a microbatch through a virtual stage that gradients, or weights, may travel beside. A
    // virtual stage's buckets leave as soon as its last microbatch is done, and microbatches go through the
    // others in groups of as many as there are stages.
    std::int64_t passes_beside() const {
        const bool once = buckets && zero < 2 && interleave > 1;  // a step
        return once ? std::min(pipeline, microbatches()) * (interleave - 1) : interleave;
    }
    // A bucket, Megatron's default: all of it, of which each rank has its share.
    double bucket_parameters() const {
        return std::max(40e6, 1e6 * static_cast<double>(replica_ranks()));
    }
    std::int64_t shards() const { return shard_ranks > 0 ? shard_ranks : replica_ranks(); }
    // Tokens of one microbatch on one rank.
    double rank_tokens() const {
        return static_cast<double>(microbatch) * static_cast<double>(sequence_length) /
               static_cast<double>(context);
    }
};

// The ranks, those above one and always TP, PP and DP: "TP 8 x PP 4 x DP 16".
std::string split_text(const ParallelPlan& plan);

// Bytes that training keeps per parameter.
struct ParameterBytes {
    double weight = 2;
    double gradient = 4;
    double optimizer = 12;  // master weights and Adam's two moments, fp32
};
ParameterBytes read_parameter_bytes(Catalogue& catalogue);

struct MemoryUse {
    std::string component;
    double bytes = 0;
    std::string formula;  // with the numbers filled in
};
// Per GPU, on the stage that needs most: among equal ones the first, which holds the most microbatches;
// the last also holds the logits. In the order of a table.
std::vector<MemoryUse> memory_per_gpu(const TransformerModel& model, const ParallelPlan& plan,
                                      const ParameterBytes& bytes, const Gpu& gpu);
double total_bytes(const std::vector<MemoryUse>& uses);
// Activations of one microbatch that a GPU with these layers sends to its host, and gets back.
double offloaded_bytes(const TransformerModel& model, const ParallelPlan& plan,
                       const LayerCounts& layers);
// What a host holds of one GPU's activations, on the stage that sends most.
double host_bytes_per_gpu(const TransformerModel& model, const ParallelPlan& plan);
// The same total without the table.
double memory_bytes_per_gpu(const TransformerModel& model, const ParallelPlan& plan,
                            const ParameterBytes& bytes, const Gpu& gpu);

// Layers of a stage between the ends; and whether the layers split over the stages at all: what the
// plan says of its ends apart, evenly, or with one layer less on the first and the last.
std::int64_t layers_per_stage(const TransformerModel& model, const ParallelPlan& plan);
// As many layers on each stage, or one less: on the last, which has the loss too, and then on the first ones.
std::vector<std::int64_t> even_stages(std::int64_t layers, std::int64_t stages);
bool layers_split(const TransformerModel& model, const ParallelPlan& plan);

// Neighbouring stages that hold the same.
struct StageRun {
    std::int64_t first = 0;
    std::int64_t count = 0;
    LayerCounts layers;  // of each
};
// All stages, in order; the last, which has the output matrix, apart.
std::vector<StageRun> stage_runs(const TransformerModel& model, const ParallelPlan& plan);

// Parameters of one GPU on a stage: of the routed experts, and all others. Embeddings are spread evenly
// over the stages, as splits with one layer less at the ends do.
struct RankParameters {
    double common = 0;
    double routed = 0;
};
RankParameters rank_parameters(const TransformerModel& model, const ParallelPlan& plan,
                               const LayerCounts& layers);

// FLOPs of one token's forward pass, attention over the whole sequence counted (Megatron's
// convention; half of it is masked).
double forward_flops_per_token(const TransformerModel& model, std::int64_t sequence_length);
// The mean number of tokens that one looks at, over layers with attention and the masked half counted as above.
double attended_tokens(const TransformerModel& model, std::int64_t sequence_length);

}  // namespace railyard
