#include "models/training/vision.h"

#include <fmt/format.h>

#include "models/training/model_shape.h"

namespace railyard {

namespace {

// Reports what no encoder is.
void check_encoder(Catalogue& c, const std::string& model, const VisionEncoder& v) {
    const auto wrong = [&](std::initializer_list<const char*> keys, const std::string& message) {
        c.error("model", model, keys, message);
    };
    if (v.hidden % v.heads != 0) {
        wrong({"vision_heads", "vision_hidden"},
              fmt::format("a width of {} has no {} equal heads", v.hidden, v.heads));
    }
    if (v.merge > v.patches) {
        wrong({"vision_merge", "vision_patches"},
              fmt::format("an image of {} patches has no {} to put together", v.patches, v.merge));
    }
    if (v.positions > 0 && v.positions < v.patches) {
        wrong({"vision_positions", "vision_patches"},
              fmt::format("{} positions for {} patches", v.positions, v.patches));
    }
    if (v.window >= v.patches) wrong({"vision_window"}, "has no effect: it is all of an image");
    if (v.full_attention_every > 0 && v.window == 0) {
        wrong({"vision_full_attention_every"}, "has no effect without vision_window");
    }
    if (v.full_attention_every > v.layers) {
        wrong({"vision_full_attention_every", "vision_layers"},
              fmt::format("no layer of {} is the {}th", v.layers, v.full_attention_every));
    }
    if (v.pool && v.merge == 1) wrong({"vision_pool"}, "has no effect without vision_merge");
}

}  // namespace

VisionEncoder read_vision_encoder(Catalogue& c, const std::string& model) {
    constexpr const char* others[] = {
        "vision_hidden",    "vision_ffn",     "vision_heads",        "vision_glu",
        "vision_window",    "vision_patches", "vision_patch_values", "vision_full_attention_every",
        "vision_positions", "vision_merge",   "vision_pool",         "vision_projector"};
    if (!c.has("model", model, "vision_layers")) {
        for (const char* key : others) {
            if (!c.has("model", model, key)) continue;
            c.error("model", model, {key}, "has no effect without vision_layers");
            break;
        }
        return {};
    }
    const auto count = [&](const char* key, std::int64_t otherwise) {
        return c.integer("model", model, key, otherwise);
    };
    const auto flag = [&](const char* key) { return c.flag("model", model, key, false); };
    VisionEncoder v;
    v.layers = c.integer("model", model, "vision_layers");
    v.hidden = c.integer("model", model, "vision_hidden");
    v.ffn = c.integer("model", model, "vision_ffn");
    v.heads = c.integer("model", model, "vision_heads");
    v.glu = flag("vision_glu");
    v.window = count("vision_window", 0);
    v.full_attention_every = count("vision_full_attention_every", 0);
    v.patch_values = c.integer("model", model, "vision_patch_values");
    v.positions = count("vision_positions", 0);
    v.patches = c.integer("model", model, "vision_patches");
    v.merge = count("vision_merge", 1);
    v.pool = flag("vision_pool");
    v.projector = count("vision_projector", 0);
    check_encoder(c, model, v);
    return v;
}

VisionParameters vision_parameters(const VisionEncoder& v, std::int64_t hidden) {
    if (v.layers == 0) return {};
    const TransformerModel model = vision_layers(v);
    const double width = real(v.hidden);
    VisionParameters out;
    out.layers = real(v.layers) * common_parameters(layer_parameters(model), LayerKind{}) +
                 width * real(v.patch_values + v.positions + 2);
    const double in = v.projected_width();
    const double inner = real(v.projector);
    const double h = real(hidden);
    out.projector = inner > 0 ? (in + 1) * inner + (inner + 1) * h : (in + 1) * h;
    return out;
}

VisionFlops vision_flops(const VisionEncoder& v, std::int64_t hidden) {
    if (v.layers == 0) return {};
    const double embedding = 2 * real(v.hidden) * real(v.patch_values);
    return {real(v.patches) * (forward_flops_per_token(vision_layers(v), v.patches) + embedding),
            v.tokens() * 2 * vision_parameters(v, hidden).projector};
}

}  // namespace railyard
