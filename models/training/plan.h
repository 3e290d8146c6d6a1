#pragma once
// A model, how a job splits it over GPUs, and what that needs of a GPU's memory.

#include <string>
#include <vector>

#include "models/hardware/hardware.h"

namespace railyard {

// A decoder-only transformer. Counts, no units.
struct TransformerModel {
    std::string name;
    std::int64_t layers = 0;
    std::int64_t hidden = 0;
    std::int64_t ffn = 0;
    std::int64_t heads = 0;
    std::int64_t kv_heads = 0;
    std::int64_t head_dim = 0;
    std::int64_t vocab = 0;
    std::int64_t sequence_length = 0;
    bool glu = false;  // gated feed-forward: three matrices, not two
    double params = 0;

    double query_width() const { return static_cast<double>(heads * head_dim); }
    double kv_width() const { return static_cast<double>(kv_heads * head_dim); }
};

// `name` must be a dense entry of kind "model".
TransformerModel read_model(Catalogue& catalogue, const std::string& name);
bool is_dense(const std::string& model_name);

enum class Recompute : std::uint8_t {
    none,         // everything is kept, attention scores included
    selective,    // the attention core is computed again (what fused attention kernels do)
    elementwise,  // and so are norms and the activation function
    full,         // only each layer's input is kept
};

// Their words in scenarios, in order.
const std::vector<std::string>& recompute_names();

struct ParallelPlan {
    std::int64_t tensor = 1;
    std::int64_t pipeline = 1;
    std::int64_t data = 1;
    std::int64_t interleave = 1;       // virtual pipeline stages per GPU
    std::int64_t microbatch = 1;       // sequences
    std::int64_t global_batch = 1;     // sequences per step, all replicas
    std::int64_t sequence_length = 0;  // tokens
    int zero = 1;                      // ZeRO stage: what data-parallel ranks share out
    bool sequence_parallel = true;
    bool overlap_data = true;     // gradient and parameter collectives behind computation
    bool overlap_tensor = false;  // tensor-parallel collectives behind matrix multiplications
    bool fused_attention = true;  // scores never reach memory
    Recompute recompute = Recompute::selective;

    std::int64_t gpus() const { return tensor * pipeline * data; }
    std::int64_t microbatches() const { return global_batch / (data * microbatch); }
};

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
// Per GPU, on the first pipeline stage, which holds the most microbatches. In the order of a table.
std::vector<MemoryUse> memory_per_gpu(const TransformerModel& model, const ParallelPlan& plan,
                                      const ParameterBytes& bytes, const Gpu& gpu);
double total_bytes(const std::vector<MemoryUse>& uses);

// Layers of a full pipeline stage; and whether the layers split over the stages at all: evenly, or with
// one layer less on the first and the last.
std::int64_t layers_per_stage(const TransformerModel& model, std::int64_t pipeline);
bool layers_split(const TransformerModel& model, std::int64_t pipeline);

// FLOPs of one token's forward pass, attention over the whole sequence counted (Megatron's
// convention; half of it is masked).
double forward_flops_per_token(const TransformerModel& model, std::int64_t sequence_length);

}  // namespace railyard
