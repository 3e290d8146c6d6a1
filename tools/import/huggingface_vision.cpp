#include "tools/import/huggingface_vision.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <utility>
#include <vector>

namespace railyard {

namespace {

// What a model_type does with the patches, as remembered of its class. Keys; null: the class has none.
struct VisionFamily {
    const char* type;
    const char* layers = "num_hidden_layers";
    const char* hidden = "hidden_size";
    const char* heads = "num_attention_heads";
    const char* ffn = "intermediate_size";  // "mlp_ratio": so many times its width
    const char* merged_side = nullptr;      // patches along each side of a token
    const char* downsampled = nullptr;      // of the whole file: tokens along a side over patches
    const char* pooled = nullptr;  // of the whole file: tokens of an image, means of patches
    bool any_size = false;         // an image keeps its size
    bool positions = false;        // learned ones
    std::int64_t more_positions = 0;
    bool gated = false;
    bool frames = false;  // a patch has so many: temporal_patch_size
    bool own_inner =
        false;  // the projector is as wide inside as what it reads, else as the decoder
    bool two_matrices = true;  // in the projector
};

constexpr VisionFamily qwen(const char* type, const char* hidden, const char* ffn, bool gated) {
    return {.type = type,
            .layers = "depth",
            .hidden = hidden,
            .heads = "num_heads",
            .ffn = ffn,
            .merged_side = "spatial_merge_size",
            .any_size = true,
            .gated = gated,
            .frames = true,
            .own_inner = true};
}
constexpr VisionFamily internvl(const char* type) {
    return {
        .type = type, .downsampled = "downsample_ratio", .positions = true, .more_positions = 1};
}

constexpr VisionFamily vision_families[] = {
    qwen("qwen2_vl", "embed_dim", "mlp_ratio", false),
    qwen("qwen2_5_vl", "hidden_size", "intermediate_size", true),
    {.type = "gemma3", .pooled = "mm_tokens_per_image", .positions = true, .two_matrices = false},
    {.type = "llava", .positions = true, .more_positions = 1},
    internvl("internvl_chat"),
    internvl("internvl"),
};

class Vision {
  public:
    Vision(const Value& root, std::string file, std::int64_t hidden, ImportedPart& part)
        : root_(root), file_(std::move(file)), hidden_(hidden), part_(part) {}

    // Empty, or why it can't be said.
    std::string add(std::optional<std::int64_t> image_patches) {
        const Value* type = root_.find("model_type");
        const VisionFamily* family = nullptr;
        for (const VisionFamily& each : vision_families) {
            if (type != nullptr && type->text == each.type) family = &each;
        }
        encoder_ = root_.find("vision_config");
        if (family == nullptr || encoder_ == nullptr || encoder_->kind != Value::Kind::table) {
            return "how it looks at images is not known here";
        }
        copy("vision_layers", family->layers);
        const std::int64_t width = copy("vision_hidden", family->hidden);
        if (std::string_view(family->ffn) == "mlp_ratio") {
            whole("vision_ffn", count("mlp_ratio") * width, origin("mlp_ratio"));
        } else {
            copy("vision_ffn", family->ffn);
        }
        copy("vision_heads", family->heads);
        const std::int64_t patch = count("patch_size");
        const std::int64_t colours = encoder_->find("in_chans") ? count("in_chans") : 3;
        const std::int64_t frames = family->frames ? count("temporal_patch_size") : 1;
        whole("vision_patch_values", colours * frames * patch * patch, origin("patch_size"));
        add_windows(patch, image_patches);
        if (why_.empty() && family->any_size && !image_patches) {
            return "its images keep their size, and --image-patches would say it";
        }
        if (!family->any_size && image_patches) {
            return fmt::format("it means nothing for {}, whose images have one size", family->type);
        }
        std::int64_t patches = image_patches.value_or(0);
        std::string from = "--image-patches";
        if (!image_patches) {
            const std::int64_t size = count("image_size");
            patches = patch > 0 ? (size / patch) * (size / patch) : 0;
            from = origin("image_size");
        }
        whole("vision_patches", patches, from);
        if (family->positions) whole("vision_positions", patches + family->more_positions, from);
        const std::int64_t merge = merged(*family, patches);
        const std::string every = fmt::format("every {}", family->type);
        if (merge > 1) {
            const char* key = family->pooled        ? family->pooled
                              : family->downsampled ? family->downsampled
                                                    : family->merged_side;
            whole("vision_merge", merge, origin(key));
        }
        if (family->two_matrices) {
            whole("vision_projector", family->own_inner ? merge * width : hidden_, every);
        }
        if (!why_.empty()) return why_;
        for (const Row& row : rows_) part_.whole(row.key, row.value, row.from);
        if (family->gated) part_.value("vision_glu", "true", every);
        if (family->pooled != nullptr) part_.value("vision_pool", "true", every);
        part_.left_out("how many images a sequence has: job.parallel.images");
        return {};
    }

  private:
    // A whole number above 0 of the encoder, or of the whole file; 0, and noted as wrong, where it is none.
    // A list of equal ones is one.
    std::int64_t count(const char* key, bool of_file = false) {
        constexpr std::int64_t most = 50'000;
        const Value* found = (of_file ? root_ : *encoder_).find(key);
        if (found != nullptr && !found->items.empty() &&
            std::ranges::all_of(found->items, [&](const Value& each) {
                return each.integer == found->items.front().integer;
            })) {
            found = &found->items.front();
        }
        if (found != nullptr && found->kind == Value::Kind::integer && found->integer > 0 &&
            found->integer <= most) {
            return found->integer;
        }
        wrong(key, found == nullptr ? "is missing" : "is no whole number that it could be");
        return 0;
    }

    std::int64_t copy(const char* ours, const char* key) {
        const std::int64_t found = count(key);
        whole(ours, found, origin(key));
        return found;
    }
    std::string origin(const char* key) const {
        const Value* found = encoder_->find(key);
        if (found == nullptr) found = root_.find(key);
        return found != nullptr ? fmt::format("{}:{}: {}", file_, found->at.line, key)
                                : fmt::format("{}: {}", file_, key);
    }
    void whole(const char* ours, std::int64_t value, std::string from) {
        rows_.push_back({ours, value, std::move(from)});
    }

    // Some layers see windows, each so many-th sees all.
    void add_windows(std::int64_t patch, std::optional<std::int64_t> patches) {
        constexpr const char* key = "fullatt_block_indexes";
        const Value* full = encoder_->find(key);
        if (full == nullptr || patch == 0) return;
        for (const Value& each : full->items) {
            if (each.kind != Value::Kind::integer || each.integer < 0 || each.integer > 1000) {
                return wrong(key, "is no list of layers");
            }
        }
        const std::int64_t every = full->items.empty() ? 0 : full->items.front().integer + 1;
        for (std::size_t i = 0; i < full->items.size(); ++i) {
            if (full->items[i].integer + 1 != every * static_cast<std::int64_t>(i + 1)) {
                return wrong(key, "is not each so many-th layer");
            }
        }
        if (every <= 0) return wrong(key, "is no list of layers");
        const std::int64_t side = count("window_size") / patch;
        if (side == 0) return wrong("window_size", "is smaller than a patch");
        if (patches && side * side >= *patches) return;  // a window is all of an image
        whole("vision_window", side * side, origin("window_size"));
        whole("vision_full_attention_every", every, origin(key));
    }

    // Patches that become one token.
    std::int64_t merged(const VisionFamily& family, std::int64_t patches) {
        if (family.pooled != nullptr) {
            const std::int64_t tokens = count(family.pooled, true);
            return tokens > 0 ? std::max<std::int64_t>(1, patches / tokens) : 1;
        }
        if (family.downsampled != nullptr) {
            const Value* ratio = root_.find(family.downsampled);
            if (ratio != nullptr && ratio->real > 0.05 && ratio->real <= 1) {
                return std::llround(1 / (ratio->real * ratio->real));
            }
            wrong(family.downsampled, "is no share of the patches along a side");
            return 1;
        }
        if (family.merged_side == nullptr) return 1;
        const std::int64_t side = count(family.merged_side);
        return side * side;
    }

    void wrong(const char* key, const char* what) {
        if (why_.empty()) why_ = fmt::format("{} {}", origin(key), what);
    }

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
    std::string why_;
};

}  // namespace

void add_vision(const Value& root, const std::string& file,
                std::optional<std::int64_t> image_patches, std::int64_t hidden,
                ImportedPart& part) {
    const std::string why = Vision(root, file, hidden, part).add(image_patches);
    if (why.empty()) return;
    if (image_patches) throw ScenarioError("--image-patches: " + why);
    part.note("The model has more than text; this is its text part alone: {}.", why);
}

}  // namespace railyard
