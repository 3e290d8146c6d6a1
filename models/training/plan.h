#pragma once
// How a job splits a model over GPUs, and what that needs of a GPU's memory.

#include <algorithm>
#include <compare>
#include <string>
#include <vector>

#include "models/hardware/hardware.h"
#include "models/training/model_shape.h"
#include "models/training/pipeline_schedule.h"

namespace railyard {

enum class Recompute : std::uint8_t {
    none,         // everything is kept, attention scores included
    selective,    // the attention core is computed again (what fused attention kernels do)
    elementwise,  // and so are norms and the activation function
    alternate,    // and so is every second matrix multiplication (PyTorch's selective "op")
    full,         // only each layer's input is kept
};

// Their words in scenarios, in order.
extern const std::vector<std::string> recompute_names;

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
extern const std::vector<std::string> rank_order_names;

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
extern const std::vector<std::string> recompute_part_names;  // in the order of the bits

// Who carries tokens to their experts.
enum class ExpertDispatch : std::uint8_t {
    all_to_all,  // NCCL's: a copy for each expert
    two_stage,   // one copy for each node, over its rail, and there for each GPU (DeepEP, HybridEP)
};
extern const std::vector<std::string> expert_dispatch_names;

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
    std::int64_t expert = 1;       // ranks that share out the experts
    std::int64_t shard_ranks = 0;  // ranks that ZeRO shares among; 0: all that hold the same
    std::int64_t interleave = 1;   // virtual pipeline stages per GPU
    PipelineSchedule schedule = PipelineSchedule::one_forward_one_backward;
    std::int64_t first_stage_layers = 0;     // 0: as many as layers_per_stage() says, or one less
    std::int64_t last_stage_layers = 0;      // likewise
    std::vector<std::int64_t> stage_layers;  // of each, where they are all said
    std::int64_t microbatch = 1;             // sequences
    std::int64_t global_batch = 1;           // sequences per step, all replicas
    std::int64_t sequence_length = 0;        // tokens
    double images = 0;                       // of a sequence, in the mean
    double images_spread = 0;                // their standard deviation
    bool freeze_vision = false;              // the encoder is not trained, its projector is
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
    std::int64_t holders() const { return replica_ranks() * weight_copies(schedule); }  // in all
    // Ranks that share out the experts, or hold the same ones; how far apart neighbours are; and ranks that
    // split one expert.
    std::int64_t expert_replica_ranks() const {
        return replica_ranks() * (fold_experts ? tensor : 1);
    }
    std::int64_t expert_stride() const;
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
    double bucket_parameters() const { return std::max(40e6, 1e6 * real(replica_ranks())); }
    // Adapters leave it alone, too, and its projector with it.
    bool vision_frozen() const { return freeze_vision || adapter_rank > 0; }
    // Images of one microbatch, and how many of `count` the context-parallel rank with most has: they share
    // them out whole.
    double microbatch_images() const { return real(microbatch) * images; }
    std::int64_t rank_images(std::int64_t count) const { return (count + context - 1) / context; }
    // What `of` gives for that rank, in the mean over the two whole numbers around a microbatch's images.
    template <class Of>
    auto over_images(Of of) const {
        const double all = microbatch_images();
        const auto whole = static_cast<std::int64_t>(all);
        const double more = all - real(whole);
        return more > 0 ? (1 - more) * of(rank_images(whole)) + more * of(rank_images(whole + 1))
                        : of(rank_images(whole));
    }
    // What a vision encoder's layers do with so many images on a rank, as a plan of their own: in 16 bits.
    ParallelPlan of_images(const VisionEncoder& vision, std::int64_t count) const;
    // Whether gradients leave for their shards in every backward pass. Between pipeline stages they are
    // added up whole and leave behind the last one, as PyTorch's schedules do.
    bool scatters_each_pass() const { return zero >= 3 || (zero == 2 && pipeline == 1); }
    std::int64_t shards() const { return shard_ranks > 0 ? shard_ranks : holders(); }
    // The same of the experts' weights; as many of the ranks as hold the same experts.
    double expert_shards() const {
        const auto ranks = real(shards() * (tensor / expert_tensor()));
        return ranks > real(expert) ? ranks / real(expert) : 1;
    }
    // Tokens of one microbatch on one rank.
    double rank_tokens() const { return real(microbatch) * real(sequence_length) / real(context); }
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
    LayerCounts layers;  // of each; the vision encoder is on the first stage
    double outputs = 0;  // of the output matrix and the loss
};
// All stages, in order; the last, which has the output matrix, apart.
std::vector<StageRun> stage_runs(const TransformerModel& model, const ParallelPlan& plan);
// What ranks do of them in the mean over microbatches. With DualPipe every rank has two stages, as far
// from one end as from the other, for half of the microbatches each; else it is as above.
std::vector<StageRun> rank_runs(const TransformerModel& model, const ParallelPlan& plan);

// Parameters of one GPU on a stage: of the routed experts, of what looks at images, trained or not, and all
// others. Embeddings are spread evenly over the stages, as splits with one layer less at the ends do.
// `layers` are those of a stage, of which a rank of DualPipe has two.
struct RankParameters {
    double common = 0;
    double routed = 0;
    double vision = 0;
    double frozen_vision = 0;
};
RankParameters rank_parameters(const TransformerModel& model, const ParallelPlan& plan,
                               const LayerCounts& layers);

}  // namespace railyard
