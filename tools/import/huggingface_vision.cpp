#include "tools/import/huggingface_vision.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <utility>
#include <vector>

namespace railyard {

namespace {

// What a model_type does with the patches, as remembered of its class.
struct VisionFamily {
    const char* type;
    bool any_size = false;   // an image keeps its size
    bool positions = false;  // learned ones
    std::int64_t more_positions = 0;
    bool gated = false;
    std::int64_t frames = 1;       // in a patch
    const char* tokens = nullptr;  // key: tokens of an image, each the mean of its patches
    bool own_inner =
        false;  // its projector's inner width is that of what it reads, else the decoder's
    bool projects = true;  // its projector has two matrices
};
constexpr VisionFamily vision_families[] = {
    {.type = "qwen2_vl", .any_size = true, .frames = 2, .own_inner = true},
    {.type = "qwen2_5_vl", .any_size = true, .gated = true, .frames = 2, .own_inner = true},
    {.type = "gemma3", .positions = true, .tokens = "mm_tokens_per_image", .projects = false},
    {.type = "llava", .positions = true, .more_positions = 1},
    {.type = "internvl_chat", .positions = true, .more_positions = 1},
    {.type = "internvl", .positions = true, .more_positions = 1},
};

class Vision {
  public:
    Vision(const Value& root, std::string file, std::int64_t hidden, ImportedPart& part)
        : root_(root), file_(std::move(file)), hidden_(hidden), part_(part) {}
    // Empty, or why it can't be said.
    std::string add(std::optional<std::int64_t> image_patches);

  private:
    // The first of these keys that the encoder has; nullptr, and noted as missing, where it has none.
    const Member* need(std::initializer_list<const char*> keys);
    std::int64_t need_count(std::initializer_list<const char*> keys) {
        const Member* found = need(keys);
        return found != nullptr ? found->value.integer : 0;
    }
    void copy(const char* ours, std::initializer_list<const char*> keys) {
        if (const Member* found = need(keys)) {
            rows_.push_back({ours, found->value.integer, origin(*found)});
        }
    }
    std::string origin(const Member& found) const {
        return fmt::format("{}:{}: {}", file_, found.value.at.line, found.key);
    }
    void whole(const char* ours, std::int64_t value, std::string from) {
        rows_.push_back({ours, value, std::move(from)});
    }
    void add_layers(const VisionFamily& family);
    void add_windows(std::int64_t patch);
    void add_image(const VisionFamily& family, std::int64_t patch,
                   std::optional<std::int64_t> image_patches);
    std::int64_t merged(const VisionFamily& family, std::int64_t patches);

    struct Row {
        const char* key;
        std::int64_t value;
        std::string from;
    };
    const Value& root_;
    std::string file_;
    std::int64_t hidden_;
    ImportedPart& part_;
    const Value* encoder_ = nullptr;
    std::vector<Row> rows_;
    std::string missing_;
};

const Member* Vision::need(std::initializer_list<const char*> keys) {
    for (const char* key : keys) {
        const auto found = std::ranges::find(encoder_->members, key, &Member::key);
        if (found != encoder_->members.end() && found->value.kind == Value::Kind::integer &&
            found->value.integer > 0) {
            return &*found;
        }
    }
    if (missing_.empty()) missing_ = fmt::format("vision_config has no {}", *keys.begin());
    return nullptr;
}

void Vision::add_layers(const VisionFamily& family) {
    copy("vision_layers", {"num_hidden_layers", "depth"});
    copy("vision_hidden", {"embed_dim", "hidden_size"});
    if (const Value* ratio = encoder_->find("mlp_ratio")) {
        whole("vision_ffn",
              std::llround(ratio->real *
                           static_cast<double>(need_count({"embed_dim", "hidden_size"}))),
              fmt::format("{}:{}: mlp_ratio", file_, ratio->at.line));
    } else {
        copy("vision_ffn", {"intermediate_size"});
    }
    copy("vision_heads", {"num_attention_heads", "num_heads"});
    const std::int64_t patch = need_count({"patch_size"});
    whole("vision_patch_values", 3 * family.frames * patch * patch,
          fmt::format("{}: patch_size, 3 colours{}", file_, family.frames > 1 ? ", 2 frames" : ""));
    add_windows(patch);
}

void Vision::add_windows(std::int64_t patch) {
    const Value* full = encoder_->find("fullatt_block_indexes");
    if (full == nullptr || full->items.empty() || patch == 0) return;
    const std::int64_t side = need_count({"window_size"}) / patch;
    whole("vision_window", side * side, fmt::format("{}: window_size / patch_size", file_));
    whole("vision_full_attention_every", full->items.front().integer + 1,
          fmt::format("{}:{}: fullatt_block_indexes", file_, full->at.line));
}

// Patches that become one token.
std::int64_t Vision::merged(const VisionFamily& family, std::int64_t patches) {
    if (family.tokens != nullptr) {
        const Value* tokens = root_.find(family.tokens);
        return tokens != nullptr && tokens->integer > 0 ? patches / tokens->integer : 1;
    }
    if (const Value* ratio = root_.find("downsample_ratio")) {
        return ratio->real > 0 ? std::llround(1 / (ratio->real * ratio->real)) : 1;
    }
    const Value* side = encoder_->find("spatial_merge_size");
    return side != nullptr ? side->integer * side->integer : 1;
}

void Vision::add_image(const VisionFamily& family, std::int64_t patch,
                       std::optional<std::int64_t> image_patches) {
    std::int64_t patches = image_patches.value_or(0);
    std::string from = "--image-patches";
    if (!image_patches) {
        const std::int64_t size = need_count({"image_size"});
        patches = patch > 0 ? (size / patch) * (size / patch) : 0;
        from = fmt::format("{}: (image_size / patch_size)^2", file_);
    }
    whole("vision_patches", patches, from);
    if (family.positions) whole("vision_positions", patches + family.more_positions, from);
    const std::int64_t merge = merged(family, patches);
    if (merge > 1) whole("vision_merge", merge, fmt::format("every {}, or its file", family.type));
    if (!family.projects) return;
    const std::int64_t inner =
        family.own_inner ? merge * need_count({"embed_dim", "hidden_size"}) : hidden_;
    whole("vision_projector", inner, fmt::format("as every {}", family.type));
}

std::string Vision::add(std::optional<std::int64_t> image_patches) {
    const Value* type = root_.find("model_type");
    const VisionFamily* family = nullptr;
    for (const VisionFamily& each : vision_families) {
        if (type != nullptr && type->text == each.type) family = &each;
    }
    encoder_ = root_.find("vision_config");
    if (family == nullptr || encoder_ == nullptr || encoder_->kind != Value::Kind::table) {
        return "its other part is not known here";
    }
    add_layers(*family);
    if (missing_.empty() && family->any_size && !image_patches) {
        return "its images keep their size, and --image-patches would say it";
    }
    add_image(*family, need_count({"patch_size"}), family->any_size ? image_patches : std::nullopt);
    if (!missing_.empty()) return missing_;
    for (const Row& row : rows_) part_.whole(row.key, row.value, row.from);
    const std::string every = fmt::format("every {}", family->type);
    if (family->gated) part_.value("vision_glu", "true", every);
    if (family->tokens != nullptr) part_.value("vision_pool", "true", every);
    part_.left_out("how many images a sequence has: job.parallel.images");
    return {};
}

}  // namespace

void add_vision(const Value& root, const std::string& file,
                std::optional<std::int64_t> image_patches, std::int64_t hidden,
                ImportedPart& part) {
    const std::string why = Vision(root, file, hidden, part).add(image_patches);
    if (why.empty()) return;
    part.note("The model has more than text; this is its text part alone: {}.", why);
}

}  // namespace railyard
