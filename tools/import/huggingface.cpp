// config.json of Hugging Face's transformers: the shape of a model. Facts that are not in the file but in
// the Python class of its model_type are written here by type, and said beside the value.

#include <fmt/format.h>

#include <algorithm>

#include "tools/import/importers.h"
#include "tools/import/json_tree.h"

namespace railyard {

namespace {

// What a model_type is, beyond what its file says.
struct Family {
    const char* type;
    const char* experts = nullptr;     // the key that counts them; none: dense
    const char* expert_ffn = nullptr;  // their width
    bool dense_ffn = true;             // intermediate_size is the width of dense layers
    bool latent = false;               // multi-head latent attention
    bool head_dim = false;             // the file must say it: it is not hidden / heads
    bool tied = false;                 // tie_word_embeddings, where the file does not say
    bool bias = false;                 // all linear layers have one
};
constexpr Family families[] = {
    {.type = "llama"},
    {.type = "mistral"},
    {.type = "qwen2"},
    {.type = "qwen3", .head_dim = true},
    {.type = "gemma", .head_dim = true, .tied = true},
    {.type = "gemma2", .head_dim = true, .tied = true},
    {.type = "gemma3_text", .head_dim = true, .tied = true},
    {.type = "mixtral",
     .experts = "num_local_experts",
     .expert_ffn = "intermediate_size",
     .dense_ffn = false},
    {.type = "qwen3_moe",
     .experts = "num_experts",
     .expert_ffn = "moe_intermediate_size",
     .dense_ffn = false,
     .head_dim = true},
    {.type = "deepseek_v3",
     .experts = "n_routed_experts",
     .expert_ffn = "moe_intermediate_size",
     .latent = true},
    {.type = "gpt_oss",
     .experts = "num_local_experts",
     .expert_ffn = "intermediate_size",
     .dense_ffn = false,
     .head_dim = true,
     .bias = true},
};

// Keys of layers that are no transformer's.
constexpr const char* foreign_keys[] = {"linear_num_key_heads",
                                        "full_attention_interval",
                                        "mamba_d_state",
                                        "mamba_d_conv",
                                        "mamba_num_heads",
                                        "ssm_cfg",
                                        "ssm_state_size",
                                        "state_size",
                                        "attn_layer_period",
                                        "attn_layer_indices",
                                        "block_types",
                                        "hybrid_override_pattern",
                                        "lru_width",
                                        "layers_block_type",
                                        "mamba_expand"};

class HuggingFace : private Importer {
  public:
    using Importer::Importer;
    void run();

  private:
    void find_family();
    void refuse_foreign_layers();
    void add_attention();
    void add_feed_forward();
    void add_experts();
    void add_deepseek_layers();
    void add_embedding();
    void add_length();
    void add_window();
    std::int64_t full_layer_every() const;
    void check_weights(const std::string& path);
    void say_left_out();

    const Value* find(const char* key) const {
        const Value* value = root_->find(key);
        return value != nullptr && value->kind != Value::Kind::other ? value : nullptr;
    }
    std::string origin(const char* key) const {
        return fmt::format("{}:{}: {}", file_, root_->find(key)->at.line, key);
    }
    void error(const Value* at, const char* key, const std::string& message,
               const std::string& help = {}) {
        diagnostics_.error(file_, at ? at->at : Position{}, key, message, help);
    }
    // A count that the file must have; 0, and reported, when it has not.
    std::int64_t count(const char* key, bool zero_too = false);
    // The same, written under the catalogue's key.
    void copy(const char* ours, const char* key, bool zero_too = false);
    bool is_set(const char* key) const {
        const Value* value = find(key);
        return value != nullptr && value->kind == Value::Kind::boolean && value->integer != 0;
    }

    Document document_;
    const Value* root_ = nullptr;
    const Family* family_ = nullptr;
};

std::int64_t HuggingFace::count(const char* key, bool zero_too) {
    const Value* value = find(key);
    if (value == nullptr) {
        std::vector<std::string> keys;
        for (const Member& member : root_->members) keys.push_back(member.key);
        const std::string near = nearest_name(key, keys);
        if (!near.empty() && near != key) {
            error(root_->find(near), key,
                  fmt::format("is missing: every {} has one; here is '{}'", family_->type, near),
                  "an edited config.json? The model's own repository has the whole one");
            return 0;
        }
        error(root_->find(key), key, fmt::format("is missing: every {} has one", family_->type),
              "an edited config.json? The model's own repository has the whole one");
        return 0;
    }
    constexpr std::int64_t most = 1'000'000'000;
    if (value->kind != Value::Kind::integer || value->integer < (zero_too ? 0 : 1) ||
        value->integer > most) {
        error(value, key, fmt::format("expected a whole number, found {}", value->describe()));
        return 0;
    }
    return value->integer;
}

void HuggingFace::copy(const char* ours, const char* key, bool zero_too) {
    const std::int64_t found = count(key, zero_too);
    if (found > 0) part_.whole(ours, found, origin(key));
}

void HuggingFace::find_family() {
    const Value* inner = find("text_config");
    if (inner != nullptr && inner->kind == Value::Kind::table) {
        part_.note("Of a model of text and other things, its text part alone.");
        root_ = inner;
    }
    refuse_foreign_layers();
    const Value* type = find("model_type");
    if (type == nullptr || type->kind != Value::Kind::string) {
        return error(type, "model_type", "is missing: it says what the other keys mean",
                     "is this the config.json of a transformers model?");
    }
    std::vector<std::string> known;
    for (const Family& family : families) {
        known.emplace_back(family.type);
        if (type->text == family.type) family_ = &family;
    }
    if (family_ == nullptr && diagnostics_.ok()) {
        error(type, "model_type", fmt::format("'{}' is not known here", type->text),
              suggest(type->text, known));
    }
}

// The formulas of a step are a transformer's.
void HuggingFace::refuse_foreign_layers() {
    const auto refuse = [&](const Value& at, const char* key, const std::string& what) {
        error(&at, key,
              what + ": the model is no plain transformer, and no entry can say its layers",
              "give job.step.time, which you have measured, in place of job.model");
    };
    for (const char* key : foreign_keys) {
        if (const Value* found = find(key)) {
            return refuse(*found, key, "is of layers with states or linear attention");
        }
    }
    const Value* layers = find("layer_types");
    if (layers == nullptr) return;
    for (const Value& layer : layers->items) {
        if (layer.text != "full_attention" && layer.text != "sliding_attention") {
            return refuse(*layers, "layer_types", fmt::format("layers of type '{}'", layer.text));
        }
    }
}

void HuggingFace::add_attention() {
    copy("layers", "num_hidden_layers");
    copy("hidden", "hidden_size");
    copy("heads", "num_attention_heads");
    if (family_->latent) {
        // Every head has keys of its own, whatever num_key_value_heads says.
        if (find("q_lora_rank") != nullptr) copy("q_lora_rank", "q_lora_rank");
        for (const char* key :
             {"kv_lora_rank", "qk_nope_head_dim", "qk_rope_head_dim", "v_head_dim"}) {
            copy(key, key);
        }
        return;
    }
    if (find("num_key_value_heads") != nullptr) {
        copy("kv_heads", "num_key_value_heads");
    } else {
        part_.left_out("num_key_value_heads: each head has keys of its own, as in the class");
    }
    if (find("head_dim") != nullptr || family_->head_dim) {
        copy("head_dim", "head_dim");
    } else {
        part_.left_out("head_dim: hidden_size / num_attention_heads, as in the class");
    }
}

void HuggingFace::add_feed_forward() {
    if (family_->experts != nullptr) {
        add_experts();
    } else {
        copy("ffn", "intermediate_size");
    }
    const Value* act = find("hidden_act");
    if (act == nullptr) act = find("hidden_activation");
    const std::string from = act != nullptr
                                 ? fmt::format("{}:{}: {}, gated", file_, act->at.line, act->text)
                                 : fmt::format("every {} has gated layers", family_->type);
    part_.value("glu", "true", from);
}

void HuggingFace::add_experts() {
    copy("experts", family_->experts);
    copy("topk", "num_experts_per_tok");
    copy("expert_ffn", family_->expert_ffn);
    if (family_->latent) return add_deepseek_layers();
    // A layer here and there without experts is nothing that an entry can say.
    const Value* step = find("decoder_sparse_step");
    if (step != nullptr && step->integer != 1) {
        error(step, "decoder_sparse_step", "expected 1: experts in every layer");
    }
    const Value* dense = find("mlp_only_layers");
    if (dense != nullptr && !dense->items.empty()) {
        error(dense, "mlp_only_layers", "expected none: experts in every layer");
    }
    if (std::string_view(family_->expert_ffn) != "intermediate_size" && find("intermediate_size")) {
        part_.note("{} is not used: every layer has experts.", origin("intermediate_size"));
    }
}

void HuggingFace::add_deepseek_layers() {
    copy("shared_experts", "n_shared_experts", true);
    copy("dense_layers", "first_k_dense_replace", true);
    copy("dense_ffn", "intermediate_size");
    const Value* every = find("moe_layer_freq");
    if (every != nullptr && every->integer != 1) {
        error(every, "moe_layer_freq",
              "expected 1: experts in every layer after the first dense ones");
    }
    const Value* predicted = find("num_nextn_predict_layers");
    if (predicted != nullptr && predicted->integer > 0) {
        part_.note(
            "{} = {}: these layers beside the model's own are left out, and so are their "
            "parameters; mtp_layers = {} trains them, too.",
            origin("num_nextn_predict_layers"), predicted->integer, predicted->integer);
    }
}

void HuggingFace::add_embedding() {
    copy("vocab", "vocab_size");
    const Value* tied = find("tie_word_embeddings");
    if (tied != nullptr && tied->kind == Value::Kind::boolean) {
        part_.value("tied_embedding", tied->integer != 0 ? "true" : "false",
                    origin("tie_word_embeddings"));
    } else {
        part_.value("tied_embedding", family_->tied ? "true" : "false",
                    fmt::format("not in the file: the default of {}", family_->type));
        part_.left_out("tie_word_embeddings: {}, the default of {}",
                       family_->tied ? "true" : "false", family_->type);
    }
    if (family_->bias) {
        part_.value("linear_bias", "true", fmt::format("every {} has biases", family_->type));
    } else if (is_set("attention_bias") || is_set("mlp_bias")) {
        part_.note("Biases of some linear layers only are not counted: far less than 1 %.");
    }
}

void HuggingFace::add_length() {
    if (options_.sequence_length) {
        part_.whole("sequence_length", *options_.sequence_length, "--sequence-length");
        return;
    }
    const Value* most = find("max_position_embeddings");
    error(most, "max_position_embeddings",
          most != nullptr ? fmt::format("{} is what the model can take, not what it is trained on",
                                        most->integer)
                          : "is missing, and the training length is in no config.json",
          "give --sequence-length 8192, or what one sequence of the training has");
}

// Every so-many-th layer looks at all tokens and no other; 0: they are not so regular, or not said.
std::int64_t HuggingFace::full_layer_every() const {
    const Value* layers = find("layer_types");
    if (layers == nullptr) return 0;
    const auto is_full = [](const Value& layer) { return layer.text == "full_attention"; };
    const auto first = std::find_if(layers->items.begin(), layers->items.end(), is_full);
    const std::int64_t every = 1 + (first - layers->items.begin());
    for (std::size_t i = 0; i < layers->items.size(); ++i) {
        const bool due = (static_cast<std::int64_t>(i) + 1) % every == 0;
        if (is_full(layers->items[i]) != due) return 0;
    }
    return first != layers->items.end() ? every : 0;
}

void HuggingFace::add_window() {
    const Value* window = find("sliding_window");
    const Value* used = find("use_sliding_window");
    if (window == nullptr || window->kind != Value::Kind::integer) return;
    if (used != nullptr && used->integer == 0) return;
    if (std::string_view(family_->type) == "mistral" ||
        std::string_view(family_->type) == "mixtral") {
        return copy("window", "sliding_window");
    }
    if (const std::int64_t every = full_layer_every(); every > 1) {
        copy("window", "sliding_window");
        return part_.whole("full_attention_every", every, origin("layer_types"));
    }
    diagnostics_.warning(
        file_, window->at, "sliding_window",
        fmt::format(
            "{} tokens on some layers only, which no entry can say: every layer attends to all "
            "tokens, so attention is taken to cost more than it does",
            window->integer));
    part_.note("{} = {} on some layers: not expressed, every layer attends to all tokens.",
               origin("sliding_window"), window->integer);
}

// Bytes of all weights over those of one.
void HuggingFace::check_weights(const std::string& path) {
    const Document index = parse_json(read_file(path), path, diagnostics_);
    if (!diagnostics_.ok()) return;
    const Value* metadata = index.root.find("metadata");
    const Value* size = metadata != nullptr ? metadata->find("total_size") : nullptr;
    if (size == nullptr || size->real <= 0) {
        return diagnostics_.error(path, {}, "metadata.total_size", "is missing",
                                  "expected model.safetensors.index.json");
    }
    const Value* type = find("torch_dtype") ? find("torch_dtype") : find("dtype");
    const bool two_bytes = type != nullptr && (type->text == "bfloat16" || type->text == "float16");
    const bool four_bytes = type != nullptr && type->text == "float32";
    const Value* predicted = find("num_nextn_predict_layers");
    const bool more_layers = predicted != nullptr && predicted->integer > 0;
    if (find("quantization_config") != nullptr || more_layers || (!two_bytes && !four_bytes)) {
        part_.note(
            "{} is no check: its weights are not this model's alone, each of one "
            "known size.",
            path);
        return;
    }
    part_.value("params", fmt::format("{:.0f}", size->real / (two_bytes ? 2 : 4)),
                fmt::format("{}:{}: total_size / {} bytes, a check", path, size->at.line,
                            two_bytes ? 2 : 4));
}

void HuggingFace::say_left_out() {
    part_.left_out("how it is trained: job.parallel, job.checkpoint and all else of a scenario");
    if (find("quantization_config") != nullptr) {
        part_.note("{} says how weights are stored, not what training computes in.",
                   origin("quantization_config"));
    }
    if (options_.files.size() < 2) {
        part_.left_out("params: no model.safetensors.index.json was given to check the shape with");
    }
}

void HuggingFace::run() {
    document_ = file_as_json();
    root_ = &document_.root;
    if (root_->kind != Value::Kind::table) {
        error(nullptr, "", fmt::format("expected an object, found {}", root_->describe()));
    }
    if (diagnostics_.ok()) find_family();
    diagnostics_.raise_if_any();
    part_.section("model." + options_.name);
    const char* kind = family_->latent ? "moe_mla" : family_->experts ? "moe" : "dense";
    part_.value("kind", fmt::format("\"{}\"", kind),
                fmt::format("{} = {}", origin("model_type"), family_->type));
    add_attention();
    add_feed_forward();
    add_embedding();
    add_length();
    add_window();
    if (options_.files.size() > 1) check_weights(options_.files[1]);
    say_left_out();
}

}  // namespace

Import import_huggingface = run_importer<HuggingFace>;

}  // namespace railyard
