// config.json of Hugging Face's transformers: the shape of a model. What is not in the file but in the Python
// class of its model_type is said beside the value.

#include <fmt/format.h>

#include <algorithm>

#include "tools/import/huggingface_families.h"
#include "tools/import/huggingface_vision.h"
#include "tools/import/importers.h"
#include "tools/import/json_tree.h"
#include "tools/import/text_file.h"

namespace railyard {

namespace {

class HuggingFace : private Importer {
  public:
    using Importer::Importer;

    void run() {
        document_ = file_as_json();
        root_ = &document_.root;
        if (root_->kind != Value::Kind::table) {
            error(nullptr, "", fmt::format("expected an object, found {}", root_->describe()));
        }
        if (diagnostics_.ok()) find_family();
        diagnostics_.raise_if_any();
        part_.section("model." + options_.name);
        const bool experts = family_->experts != nullptr || find("n_routed_experts") != nullptr;
        const char* kind = family_->latent ? "moe_mla" : experts ? "moe" : "dense";
        part_.value("kind", fmt::format("\"{}\"", kind),
                    fmt::format("{} = {}", origin("model_type"), family_->type));
        add_attention();
        add_feed_forward();
        if (find("linear_num_value_heads") || find("hybrid_override_pattern") ||
            family_->lightning) {
            part_.note(
                "Layers with states are a roofline, whose rate is an estimate with a wide range.");
        }
        add_embedding();
        add_length();
        add_window();
        if (root_ != &document_.root || find("vision_config") != nullptr) {
            add_vision(document_.root, file_, options_.image_patches, count("hidden_size"), part_);
        } else if (options_.image_patches) {
            Importer::error(Position{}, "vision_config",
                            "is missing: --image-patches means nothing");
        }
        if (options_.files.size() > 1) check_weights(options_.files[1]);
        say_left_out();
    }

  private:
    void find_family() {
        const Value* inner = find("text_config");
        if (inner == nullptr) inner = find("llm_config");
        if (inner != nullptr && inner->kind == Value::Kind::table) root_ = inner;
        const Value* type = find("model_type");
        if (type == nullptr || type->kind != Value::Kind::string) {
            return error(type, "model_type", "is missing: it says what the other keys mean",
                         "is this the config.json of a transformers model?");
        }
        std::vector<std::string> known;
        for (const HuggingFaceFamily& family : huggingface_families) {
            known.emplace_back(family.type);
            if (type->text == family.type) family_ = &family;
        }
        refuse_foreign_layers();
        if (family_ == nullptr && diagnostics_.ok()) {
            error(type, "model_type", fmt::format("'{}' is not known here", type->text),
                  suggest(type->text, known));
        }
    }

    // The formulas of a step are a transformer's.
    void refuse_foreign_layers() {
        const auto refuse = [&](const Value& at, const char* key, const std::string& what) {
            error(&at, key,
                  what + ": the model is no plain transformer, and no entry can say its layers",
                  "give job.step.time, which you have measured, in place of job.model");
        };
        for (const char* key : huggingface_foreign_keys) {
            if (const Value* found = find(key)) {
                return refuse(*found, key, "is of layers with states of another kind");
            }
        }
        const Value* layers = find("layer_types");
        if (layers == nullptr) return;
        const bool linear =
            family_ == nullptr || family_->lightning || find("linear_num_value_heads") != nullptr;
        for (const Value& layer : layers->items) {
            if (layer.text != "full_attention" && layer.text != "sliding_attention" &&
                layer.text != "chunked_attention" &&
                !(linear && layer.text == "linear_attention")) {
                return refuse(*layers, "layer_types",
                              fmt::format("layers of type '{}'", layer.text));
            }
        }
    }

    void add_attention() {
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
        const Value* grouped = find("new_decoder_architecture");  // Falcon's
        if (grouped != nullptr && grouped->integer != 0) {
            copy("kv_heads", "num_kv_heads");
        } else if (is_set("multi_query") || (family_->one_key && find("multi_query") == nullptr)) {
            part_.whole("kv_heads", 1,
                        find("multi_query")
                            ? origin("multi_query")
                            : fmt::format("every {} that says nothing else", family_->type));
        } else if (find("num_key_value_heads") != nullptr) {
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

    void add_feed_forward() {
        if (find("linear_num_value_heads") != nullptr) add_delta_rule();
        if (family_->lightning) add_lightning();
        if (std::string_view(family_->type) == "nemotron_h") add_mamba();
        if (family_->experts != nullptr) {
            add_experts();
        } else if (find("expansion_ratio") != nullptr) {
            part_.whole("ffn", count("expansion_ratio") * count("hidden_size"),
                        origin("expansion_ratio"));
        } else if (family_->ffn_over_hidden > 0 && find("intermediate_size") == nullptr) {
            part_.whole("ffn", family_->ffn_over_hidden * count("hidden_size"),
                        fmt::format("{} hidden sizes, as in the class", family_->ffn_over_hidden));
        } else {
            copy("ffn", "intermediate_size");
        }
        const Value* act = find("hidden_act");
        if (act == nullptr) act = find("hidden_activation");
        const char* gated = family_->gated ? "gated" : "ungated";
        const std::string from =
            act != nullptr ? fmt::format("{}:{}: {}, {}", file_, act->at.line, act->text, gated)
                           : fmt::format("every {} has {} layers", family_->type, gated);
        part_.value("glu", family_->gated ? "true" : "false", from);
    }

    void add_experts() {
        copy("experts", family_->experts);
        copy("topk", family_->topk);
        copy("expert_ffn", family_->expert_ffn);
        if (family_->shared_width != nullptr) add_shared_experts();
        if (family_->shared != nullptr) copy("shared_experts", family_->shared, true);
        const Value* dense = find("mlp_only_layers");
        if (dense != nullptr && !dense->items.empty()) {
            error(dense, "mlp_only_layers", "expected none: experts in every layer");
        }
        refuse_latent_experts();
        const Value* frequency = find("moe_layer_freq");
        if (frequency != nullptr && frequency->integer != 1) {
            error(frequency, "moe_layer_freq",
                  "expected 1: experts in every layer after the first dense ones");
        }
        const Value* step = find("decoder_sparse_step");
        const Value* interval = find("moe_layer_interval");
        if (interval != nullptr && interval->integer != 1)
            copy("experts_every", "moe_layer_interval");
        if (find("interleave_moe_layer_step") != nullptr) {
            copy("experts_every", "interleave_moe_layer_step");
            copy("dense_ffn", "intermediate_size_mlp");
        } else if (step != nullptr && step->integer != 1) {
            copy("experts_every", "decoder_sparse_step");
            copy("dense_ffn", "intermediate_size");
        } else if (family_->dense_first != nullptr) {
            copy("dense_layers", family_->dense_first, true);
            copy("dense_ffn", "intermediate_size");
        } else if (std::string_view(family_->expert_ffn) != "intermediate_size" &&
                   find("intermediate_size")) {
            part_.note("{} is not used: every layer has experts.", origin("intermediate_size"));
        }
        const Value* predicted = find("num_nextn_predict_layers");
        if (predicted != nullptr && predicted->integer > 0) {
            part_.note(
                "{} = {}: these layers beside the model's own are left out, and so are their "
                "parameters; mtp_layers = {} trains them, too.",
                origin("num_nextn_predict_layers"), predicted->integer, predicted->integer);
        }
    }

    // As so many of the others.
    void add_shared_experts() {
        const std::int64_t width = count(family_->shared_width);
        const std::int64_t each = count(family_->expert_ffn);
        if (width == 0 || each == 0) return;
        if (width % each != 0) {
            return error(find(family_->shared_width), family_->shared_width,
                         fmt::format("expected a multiple of {} = {}", family_->expert_ffn, each));
        }
        part_.whole("shared_experts", width / each, origin(family_->shared_width));
    }

    // Qwen3-Next: the gated delta rule, and each so many-th layer with gated attention.
    void add_delta_rule() {
        copy("state_heads", "linear_num_value_heads");
        copy("state_head_dim", "linear_value_head_dim");
        copy("state_size", "linear_key_head_dim");
        copy("state_groups", "linear_num_key_heads");
        copy("state_conv", "linear_conv_kernel_dim");
        part_.value("state_chunk", "64", "the kernels' own, as in flash-linear-attention");
        part_.value("delta_rule", "true", fmt::format("every {}", family_->type));
        part_.value("attention_gate", "true", fmt::format("every {}", family_->type));
        add_attention_every("full_attention_interval");
    }

    // Nemotron-H: Mamba 2, attention, feed-forward and experts as layers of their own.
    void add_mamba() {
        add_pattern();
        copy("state_heads", "mamba_num_heads");
        copy("state_head_dim", "mamba_head_dim");
        copy("state_size", "ssm_state_size");
        copy("state_groups", "n_groups");
        copy("state_conv", "conv_kernel");
        copy("state_chunk", "chunk_size");
    }

    // MiniMax-01: each head has a state as wide as its keys.
    void add_lightning() {
        for (const char* ours : {"state_heads", "state_groups"}) copy(ours, "num_attention_heads");
        for (const char* ours : {"state_head_dim", "state_size"}) copy(ours, "head_dim");
        part_.value("state_chunk", "256", "block_size of the class");
        add_attention_every("attn_type_list");
    }

    // By its list, else as `key` says.
    void add_attention_every(const char* key) {
        const char* list = find("layer_types") ? "layer_types" : "attn_type_list";
        if (const std::int64_t every = full_layer_every(); every > 0) {
            part_.whole("attention_every", every, origin(list));
        } else if (find(list) != nullptr) {
            error(find(list), list,
                  "expected full attention in each so many-th layer, and no other");
        } else {
            copy("attention_every", key);
        }
    }

    void add_pattern() {
        refuse_latent_experts();
        constexpr const char* key = "hybrid_override_pattern";
        const Value* pattern = find(key);
        if (pattern == nullptr || pattern->kind != Value::Kind::string) {
            return error(pattern, key, "is missing: it says what each layer is");
        }
        const std::size_t other = pattern->text.find_first_not_of("M*-E");
        if (other != std::string::npos) {
            return error(pattern, key,
                         fmt::format("expected M, *, - and E, found '{}'", pattern->text[other]));
        }
        part_.value("layer_pattern", fmt::format("\"{}\"", pattern->text), origin(key));
        if (pattern->text.find('E') == std::string::npos) return;
        copy("experts", "n_routed_experts");
        copy("topk", "num_experts_per_tok");
        copy("expert_ffn", "moe_intermediate_size");
        const std::int64_t each = count("moe_intermediate_size");
        const std::int64_t width =
            count("moe_shared_expert_intermediate_size", true) * count("n_shared_experts", true);
        if (each > 0 && width % each != 0) {
            return error(find("moe_shared_expert_intermediate_size"),
                         "moe_shared_expert_intermediate_size",
                         fmt::format("expected a multiple of moe_intermediate_size = {}", each));
        }
        if (each > 0 && width > 0) {
            part_.whole("shared_experts", width / each,
                        origin("moe_shared_expert_intermediate_size"));
        }
    }

    void refuse_latent_experts() {
        const Value* latent = find("moe_latent_size");
        if (latent == nullptr) return;
        error(latent, "moe_latent_size", "experts that read another width can't be said");
    }

    void add_embedding() {
        if (family_->vocab > 0 && find("vocab_size") == nullptr) {
            part_.whole("vocab", family_->vocab, fmt::format("the default of {}", family_->type));
        } else {
            copy("vocab", "vocab_size");
        }
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
        const auto of_type = [&](bool has, const char* ours, const char* what) {
            if (has) part_.value(ours, "true", fmt::format("every {} has {}", family_->type, what));
        };
        of_type(family_->norm_bias, "norm_bias", "norms that shift");
        const Value* residual = find("use_parallel_residual");
        if (residual == nullptr) residual = find("parallel_attn");
        if (residual != nullptr ? residual->integer != 0 : family_->parallel) {
            part_.value(
                "parallel_block", "true",
                residual != nullptr
                    ? origin(find("parallel_attn") ? "parallel_attn" : "use_parallel_residual")
                    : fmt::format("every {}", family_->type));
        }
        if (family_->positions != nullptr) {
            part_.whole("learned_positions", count(family_->positions) + family_->more_positions,
                        origin(family_->positions));
        }
        if (family_->bias) {
            of_type(true, "linear_bias", "biases");
        } else if (family_->one_key && is_set("bias")) {
            part_.value("linear_bias", "true", origin("bias"));
        } else if (is_set("attention_bias") || is_set("mlp_bias")) {
            part_.note("Biases of some linear layers only are not counted: far less than 1 %.");
        }
    }

    void add_length() {
        if (options_.sequence_length) {
            part_.whole("sequence_length", *options_.sequence_length, "--sequence-length");
            return;
        }
        const Value* most = find("max_position_embeddings");
        error(most, "max_position_embeddings",
              most != nullptr
                  ? fmt::format("{} is what the model can take, not what it is trained on",
                                most->integer)
                  : "is missing, and the training length is in no config.json",
              "give --sequence-length 8192, or what one sequence of the training has");
    }

    void add_window() {
        if (find("attention_chunk_size") != nullptr) {
            copy("window", "attention_chunk_size");
            const std::int64_t chunk = count("attention_chunk_size");
            if (options_.sequence_length && *options_.sequence_length > chunk) {
                part_.note(
                    "{} = {} is written as a window: of longer sequences it looks at up to twice "
                    "as many tokens.",
                    origin("attention_chunk_size"), chunk);
            }
            if (const std::int64_t every = full_layer_every(); every > 0) {
                part_.whole("full_attention_every", every, origin_or_class("layer_types"));
            }
            return;
        }
        const Value* window = find("sliding_window");
        const Value* used = find("use_sliding_window");
        if (window == nullptr || window->kind != Value::Kind::integer) return;
        if (used != nullptr && used->integer == 0) return;
        if (family_->window_on_all) return copy("window", "sliding_window");
        if (const std::int64_t every = full_layer_every(); every > 1) {
            copy("window", "sliding_window");
            const char* said = find("layer_types") ? "layer_types" : "sliding_window_pattern";
            return part_.whole("full_attention_every", every, origin_or_class(said));
        }
        warning(
            window->at, "sliding_window",
            fmt::format("{} tokens on some layers only, which no entry can say: every layer "
                        "attends to all tokens, so attention is taken to cost more than it does",
                        window->integer));
        part_.note("{} = {} on some layers: not expressed, every layer attends to all tokens.",
                   origin("sliding_window"), window->integer);
    }

    // Every so-many-th layer looks at all tokens and no other; 0: they are not so regular, or not said.
    std::int64_t full_layer_every() const {
        const Value* layers = find("layer_types");
        if (layers == nullptr) layers = find("attn_type_list");
        const Value* pattern = find("sliding_window_pattern");
        if (layers == nullptr && pattern != nullptr && pattern->kind == Value::Kind::integer) {
            return pattern->integer;
        }
        if (layers == nullptr) return family_->full_every;
        const auto is_full = [](const Value& layer) {
            return layer.text == "full_attention" || layer.integer == 1;
        };
        const auto first = std::ranges::find_if(layers->items, is_full);
        const std::int64_t every = 1 + (first - layers->items.begin());
        for (std::size_t i = 0; i < layers->items.size(); ++i) {
            const bool due = (static_cast<std::int64_t>(i) + 1) % every == 0;
            if (is_full(layers->items[i]) != due) return 0;
        }
        return first != layers->items.end() ? every : 0;
    }

    // Bytes of all weights over those of one.
    void check_weights(const std::string& path) {
        const Document index = parse_json(read_input(path), path, diagnostics_);
        if (!diagnostics_.ok()) return;
        const Value* metadata = index.root.find("metadata");
        const Value* size = metadata != nullptr ? metadata->find("total_size") : nullptr;
        if (size == nullptr || size->real <= 0) {
            return diagnostics_.error(path, {}, "metadata.total_size", "is missing",
                                      "expected model.safetensors.index.json");
        }
        const Value* type = find("torch_dtype") ? find("torch_dtype") : find("dtype");
        const bool two_bytes =
            type != nullptr && (type->text == "bfloat16" || type->text == "float16");
        const bool four_bytes = type != nullptr && type->text == "float32";
        const Value* predicted = find("num_nextn_predict_layers");
        const bool more_layers = predicted != nullptr && predicted->integer > 0;
        if (find("quantization_config") != nullptr || more_layers || (!two_bytes && !four_bytes)) {
            part_.note(
                "{} is no check: its weights are not this model's alone, each of one known size.",
                path);
            return;
        }
        part_.value("params", fmt::format("{:.0f}", size->real / (two_bytes ? 2 : 4)),
                    fmt::format("{}:{}: total_size / {} bytes, a check", path, size->at.line,
                                two_bytes ? 2 : 4));
    }

    void say_left_out() {
        part_.left_out(
            "how it is trained: job.parallel, job.checkpoint and all else of a scenario");
        if (find("quantization_config") != nullptr) {
            part_.note("{} says how weights are stored, not what training computes in.",
                       origin("quantization_config"));
        }
        if (options_.files.size() < 2) {
            part_.left_out(
                "params: no model.safetensors.index.json was given to check the shape with");
        }
    }

    // By its own name or an older one, on the top or in a part's table. A null is none.
    const Member* member(const char* key) const {
        const auto in = [](const Value& table, std::string_view name) -> const Member* {
            const auto found = std::ranges::find(table.members, name, &Member::key);
            const bool there =
                found != table.members.end() && found->value.kind != Value::Kind::other;
            return there ? &*found : nullptr;
        };
        std::vector<const Value*> tables = {root_};
        for (const char* part : {"attn_config", "ffn_config"}) {
            if (const Value* table = root_->find(part)) tables.push_back(table);
        }
        for (const Value* table : tables) {
            if (const Member* found = in(*table, key)) return found;
            for (const HuggingFaceAlias& each : huggingface_aliases) {
                if (std::string_view(each.key) != key) continue;
                if (const Member* found = in(*table, each.alias)) return found;
            }
        }
        return nullptr;
    }

    const Value* find(const char* key) const {
        const Member* found = member(key);
        return found != nullptr ? &found->value : nullptr;
    }
    std::string origin(const char* key) const {
        const Member& found = *member(key);
        return fmt::format("{}:{}: {}", file_, found.value.at.line, found.key);
    }
    std::string origin_or_class(const char* key) const {
        return find(key) != nullptr ? origin(key) : fmt::format("every {}", family_->type);
    }
    void error(const Value* at, const char* key, const std::string& message,
               const std::string& help = {}) {
        diagnostics_.error(file_, at ? at->at : Position{}, key, message, help);
    }

    // A count that the file must have; 0, and reported, when it has not.
    std::int64_t count(const char* key, bool zero_too = false) {
        const Value* value = find(key);
        if (value == nullptr) {
            std::vector<std::string> keys;
            for (const Member& member : root_->members) keys.push_back(member.key);
            const std::string near = nearest_name(key, keys);
            if (!near.empty() && near != key) {
                error(
                    root_->find(near), key,
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

    // The same, written under the catalogue's key.
    void copy(const char* ours, const char* key, bool zero_too = false) {
        const std::int64_t found = count(key, zero_too);
        if (found > 0) part_.whole(ours, found, origin(key));
    }

    bool is_set(const char* key) const {
        const Value* value = find(key);
        return value != nullptr && value->kind == Value::Kind::boolean && value->integer != 0;
    }

    Document document_;
    const Value* root_ = nullptr;
    const HuggingFaceFamily* family_ = nullptr;
};

}  // namespace

Import import_huggingface = run_importer<HuggingFace>;

}  // namespace railyard
