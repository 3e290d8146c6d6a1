#pragma once
// What a model_type of transformers is, beyond what its config.json says: its Python class, as remembered.

#include <cstdint>

namespace railyard {

struct HuggingFaceFamily {
    const char* type;
    // Keys; null: the type has none. Of a mixture without `dense_first` every layer has experts.
    const char* experts = nullptr;
    const char* expert_ffn = nullptr;
    const char* topk = "num_experts_per_tok";
    const char* shared = nullptr;        // how many shared experts
    const char* shared_width = nullptr;  // or how wide all of them are together
    const char* dense_first = nullptr;   // layers without experts
    const char* positions = nullptr;     // learned ones
    std::int64_t more_positions = 0;
    // Where the file does not say.
    bool tied = false;
    std::int64_t full_every = 0;  // with a sliding window
    std::int64_t ffn_over_hidden = 0;
    std::int64_t vocab = 0;
    // True of all models of the type.
    bool latent = false;         // multi-head latent attention
    bool head_dim = false;       // the file says it: it is not hidden / heads
    bool window_on_all = false;  // layers, not on some
    bool bias = false;           // of all linear layers
    bool norm_bias = false;
    bool gated = true;       // a feed-forward has three matrices
    bool parallel = false;   // attention and feed-forward read the same norm
    bool one_key = false;    // all heads share one, unless the file says otherwise
    bool lightning = false;  // attention without softmax on most layers, with as many heads
};

// DeepSeek and its like: latent attention, the first layers dense, shared experts.
constexpr HuggingFaceFamily deepseek_like(const char* type) {
    return {.type = type,
            .experts = "n_routed_experts",
            .expert_ffn = "moe_intermediate_size",
            .shared = "n_shared_experts",
            .dense_first = "first_k_dense_replace",
            .latent = true};
}

// GPT-2 and its like: two matrices, biases everywhere, one embedding. Null: it learns no positions.
constexpr HuggingFaceFamily gpt_like(const char* type, const char* positions) {
    return {.type = type,
            .positions = positions,
            .tied = true,
            .ffn_over_hidden = 4,
            .bias = true,
            .norm_bias = true,
            .gated = false};
}

constexpr HuggingFaceFamily bigcode() {
    HuggingFaceFamily out = gpt_like("gpt_bigcode", "n_positions");
    out.one_key = true;
    return out;
}

// Mixtral and its like: experts in every layer.
constexpr HuggingFaceFamily mixtral_like(const char* type,
                                         const char* experts = "num_local_experts") {
    return {.type = type, .experts = experts, .expert_ffn = "intermediate_size"};
}
constexpr HuggingFaceFamily minimax_01(const char* type) {
    HuggingFaceFamily out = mixtral_like(type);
    out.head_dim = out.lightning = true;
    return out;
}

inline constexpr HuggingFaceFamily huggingface_families[] = {
    // Llama and its like: gated feed-forward, no biases that count.
    {.type = "llama"},
    {.type = "mistral", .window_on_all = true},
    {.type = "phi3", .window_on_all = true},
    {.type = "qwen2"},
    {.type = "qwen2_vl"},
    {.type = "qwen2_5_vl"},
    {.type = "qwen3", .head_dim = true},
    {.type = "gemma", .tied = true, .head_dim = true},
    {.type = "gemma2", .tied = true, .full_every = 2, .head_dim = true},
    {.type = "gemma3_text", .tied = true, .full_every = 6, .vocab = 262208, .head_dim = true},
    {.type = "olmo"},
    {.type = "olmo2"},
    {.type = "olmo3", .full_every = 4},
    {.type = "smollm3", .tied = true},
    {.type = "glm"},
    {.type = "glm4"},
    {.type = "granite"},
    {.type = "exaone"},
    {.type = "exaone4", .full_every = 4},
    {.type = "seed_oss", .head_dim = true},
    {.type = "internlm2"},
    {.type = "internlm3"},
    {.type = "baichuan"},
    {.type = "stablelm", .norm_bias = true},
    {.type = "cohere", .tied = true, .parallel = true},
    {.type = "cohere2", .tied = true, .full_every = 4, .parallel = true},
    // Two matrices.
    {.type = "apertus", .gated = false},
    {.type = "nemotron", .norm_bias = true, .gated = false},
    {.type = "nemotron_h", .head_dim = true, .gated = false},
    {.type = "falcon",
     .tied = true,
     .ffn_over_hidden = 4,
     .norm_bias = true,
     .gated = false,
     .parallel = true,
     .one_key = true},
    {.type = "mpt", .tied = true, .ffn_over_hidden = 4, .gated = false},
    gpt_like("gpt2", "n_positions"),
    bigcode(),
    {.type = "gpt_neox", .bias = true, .norm_bias = true, .gated = false, .parallel = true},
    {.type = "opt",
     .positions = "max_position_embeddings",
     .more_positions = 2,
     .tied = true,
     .bias = true,
     .norm_bias = true,
     .gated = false},
    gpt_like("bloom", nullptr),
    {.type = "starcoder2",
     .tied = true,
     .window_on_all = true,
     .bias = true,
     .norm_bias = true,
     .gated = false},
    // Mixtures.
    {.type = "mixtral",
     .experts = "num_local_experts",
     .expert_ffn = "intermediate_size",
     .window_on_all = true},
    mixtral_like("phimoe"),
    mixtral_like("granitemoe"),
    {.type = "minimax_m2",
     .experts = "num_local_experts",
     .expert_ffn = "intermediate_size",
     .head_dim = true},
    minimax_01("minimax"),
    minimax_01("minimax_text_01"),
    {.type = "grok-1", .experts = "num_experts", .expert_ffn = "intermediate_size", .tied = true},
    mixtral_like("olmoe", "num_experts"),
    {.type = "dbrx",
     .experts = "moe_num_experts",
     .expert_ffn = "ffn_hidden_size",
     .topk = "moe_top_k"},
    {.type = "qwen2_moe",
     .experts = "num_experts",
     .expert_ffn = "moe_intermediate_size",
     .shared_width = "shared_expert_intermediate_size"},
    {.type = "qwen3_moe",
     .experts = "num_experts",
     .expert_ffn = "moe_intermediate_size",
     .head_dim = true},
    {.type = "qwen3_next",
     .experts = "num_experts",
     .expert_ffn = "moe_intermediate_size",
     .shared_width = "shared_expert_intermediate_size",
     .head_dim = true},
    {.type = "gpt_oss",
     .experts = "num_local_experts",
     .expert_ffn = "intermediate_size",
     .full_every = 2,
     .head_dim = true,
     .bias = true},
    {.type = "llama4_text",
     .experts = "num_local_experts",
     .expert_ffn = "intermediate_size",
     .shared_width = "intermediate_size",
     .full_every = 4,
     .head_dim = true},
    {.type = "glm4_moe",
     .experts = "n_routed_experts",
     .expert_ffn = "moe_intermediate_size",
     .shared = "n_shared_experts",
     .dense_first = "first_k_dense_replace",
     .head_dim = true},
    {.type = "ernie4_5_moe",
     .experts = "moe_num_experts",
     .expert_ffn = "moe_intermediate_size",
     .topk = "moe_k",
     .shared = "moe_num_shared_experts",
     .dense_first = "moe_layer_start_index",
     .tied = true},
    deepseek_like("deepseek_v2"),
    deepseek_like("deepseek_v3"),
    deepseek_like("kimi_k2"),
};

// What older types call what others have: transformers' attribute_map.
struct HuggingFaceAlias {
    const char* key;
    const char* alias;
};
inline constexpr HuggingFaceAlias huggingface_aliases[] = {
    {"hidden_size", "n_embd"},           {"hidden_size", "n_embed"},
    {"hidden_size", "d_model"},          {"num_hidden_layers", "n_layer"},
    {"num_hidden_layers", "n_layers"},   {"num_attention_heads", "n_head"},
    {"num_attention_heads", "n_heads"},  {"intermediate_size", "n_inner"},
    {"intermediate_size", "ffn_dim"},    {"num_key_value_heads", "kv_n_heads"},
    {"num_hidden_layers", "num_layers"}, {"head_dim", "attention_head_dim"},
};

// Keys of layers that are not read: states whose steps are no products (Mamba 1, LRU, RWKV), and mixes of
// layers that say their states in other words.
inline constexpr const char* huggingface_foreign_keys[] = {
    "mamba_d_state",     "mamba_d_conv",       "ssm_cfg",     "state_size",  "lru_width",
    "attn_layer_period", "attn_layer_indices", "block_types", "mamba_expand"};

}  // namespace railyard
