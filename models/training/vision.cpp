#include "models/training/vision.h"

#include <fmt/format.h>

#include "models/training/model_shape.h"

namespace railyard {

VisionEncoder read_vision_encoder(Catalogue& c, const std::string& model) {
    if (!c.has("model", model, "vision_layers")) return {};
    const auto count = [&](const char* key, std::int64_t otherwise) {
        return c.has("model", model, key) ? c.integer("model", model, key) : otherwise;
    };
    const auto flag = [&](const char* key) {
        return c.has("model", model, key) && c.flag("model", model, key);
    };
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
    if (v.hidden % v.heads != 0) {
        c.error("model", model, {"vision_heads", "vision_hidden"},
                fmt::format("a width of {} has no {} equal heads", v.hidden, v.heads));
    }
    if (v.merge > v.patches) {
        c.error(
            "model", model, {"vision_merge", "vision_patches"},
            fmt::format("an image of {} patches has no {} to put together", v.patches, v.merge));
    }
    if (v.window == 0 && v.full_attention_every > 0) {
        c.error("model", model, {"vision_full_attention_every"},
                "has no effect without vision_window");
    }
    return v;
}

VisionParameters vision_parameters(const VisionEncoder& v, std::int64_t hidden) {
    if (v.layers == 0) return {};
    const TransformerModel model = vision_layers(v);
    const double width = static_cast<double>(v.hidden);
    VisionParameters out;
    out.layers =
        static_cast<double>(v.layers) * common_parameters(layer_parameters(model), LayerKind{}) +
        width * static_cast<double>(v.patch_values + v.positions + 2);
    const double in = v.projected_width();
    const double inner = static_cast<double>(v.projector);
    const double h = static_cast<double>(hidden);
    out.projector = inner > 0 ? (in + 1) * inner + (inner + 1) * h : (in + 1) * h;
    return out;
}

double vision_flops_per_image(const VisionEncoder& v, std::int64_t hidden) {
    if (v.layers == 0) return 0;
    const double patches = static_cast<double>(v.patches);
    const double width = static_cast<double>(v.hidden);
    const double embedding = 2 * width * static_cast<double>(v.patch_values);
    return patches * (forward_flops_per_token(vision_layers(v), v.patches) + embedding) +
           v.tokens() * 2 * vision_parameters(v, hidden).projector;
}

}  // namespace railyard
