#pragma once
// The shape of a model: its layers, and what follows from them, parameters and FLOPs.

#include <array>
#include <numeric>
#include <string>

#include "models/catalogue/catalogue.h"
#include "models/training/vision.h"

namespace railyard {

// Layers that keep a state in place of keys and values: Mamba 2, lightning attention, the gated delta rule.
// Each head has a state of `size` x `head_dim`. Counts, no units.
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

    double width() const { return real(heads * head_dim); }
    double key_width() const { return real(groups * size); }
    double conv_width() const { return conv > 0 ? width() + 2 * key_width() : 0; }
    // Outputs of the product in front: what is written, its gate, keys and queries, each head's own steps.
    double inputs() const {
        return 2 * width() + 2 * key_width() + (delta_rule ? 2 : 1) * real(heads);
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
    // How many of its two parts it has.
    double parts() const {
        return (mixer != Mixer::none ? 1 : 0) + (feed_forward != FeedForward::none ? 1 : 0);
    }
    bool experts() const { return feed_forward == FeedForward::experts; }
    bool operator==(const LayerKind&) const = default;
};

// A decoder-only transformer, and what looks at images in front of it. Counts, no units.
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
    bool masked = true;           // attention looks back only
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
    std::int64_t dense_layers = 0;  // the first ones, which have no experts
    std::int64_t experts_every =
        1;                        // behind them each layer whose number, from 1, divides by it has
    std::int64_t mtp_layers = 0;  // that predict tokens after the next, with a loss each
    // Layers of one part: M a state, * attention, - a dense feed-forward, E experts. Empty: all have two.
    std::string layer_pattern{};
    VisionEncoder vision{};

    double query_width() const { return real(heads * head_dim); }
    double kv_width() const { return real(kv_heads * head_dim); }
    double value_width() const { return real(heads * value_dim); }
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
    bool vision = false;  // and the vision encoder in front of them

    double& operator[](LayerKind kind) { return of[kind.index()]; }
    double operator[](LayerKind kind) const { return of[kind.index()]; }
    double all() const {  // but for those of the vision encoder
        return std::accumulate(of.begin(), of.end(), 0.0);
    }
    double with(Mixer mixer) const;
    double with(FeedForward feed_forward) const;
    bool operator==(const LayerCounts&) const = default;
};
// So many of the model's layers, from the one on that is numbered `first`, from 0.
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
double common_parameters(const LayerParameters& each, const LayerCounts& layers);  // of all these
// Outside the layers: embedding, positions, output matrix, last norm.
double outer_parameters(const TransformerModel& model);
// With the vision encoder and its projector.
double parameter_count(const TransformerModel& model);
// Those that one token meets: of the routed experts, topk; none of the vision encoder.
double active_parameter_count(const TransformerModel& model);

// The vision encoder's layers as a model of their own, without embedding and output.
TransformerModel vision_layers(const VisionEncoder& encoder);

// FLOPs of one token's forward pass in the decoder, attention over the whole sequence counted (Megatron's
// convention; half of it is masked).
double forward_flops_per_token(const TransformerModel& model, std::int64_t sequence_length);
// The FLOPs among these that no weight has a part in: scores of attention and updates of states.
double mixing_flops_per_token(const TransformerModel& model, std::int64_t sequence_length);
// The mean number of tokens that one looks at, over layers with attention, the masked half counted as above.
double attended_tokens(const TransformerModel& model, std::int64_t sequence_length);

}  // namespace railyard
