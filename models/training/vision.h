#pragma once
// The part of a model that looks at images: README.md, "Images".

#include <cstdint>
#include <string>

#include "models/catalogue/catalogue.h"

namespace railyard {

// Layers over an image's patches, and a projector to the decoder's width. Counts, no units.
struct VisionEncoder {
    std::int64_t layers = 0;  // 0: the model reads text alone
    std::int64_t hidden = 0;
    std::int64_t ffn = 0;
    std::int64_t heads = 0;
    bool glu = false;
    std::int64_t window = 0;  // patches that a layer's attention sees; 0: all of the image
    std::int64_t full_attention_every = 0;  // with a window: each so many-th layer sees all
    std::int64_t patch_values = 0;          // numbers in a patch: its pixels, by their colours
    std::int64_t positions = 0;             // learned ones
    std::int64_t patches = 0;               // of an image
    std::int64_t merge = 1;                 // patches that become one token of the decoder
    bool pool = false;           // their mean is that token; false: they are put side by side
    std::int64_t projector = 0;  // width between its two matrices; 0: it has one

    double tokens() const { return real(patches) / real(merge); }
    double projected_width() const { return real(hidden) * (pool ? 1 : real(merge)); }
};

// What `model` has of one; no layers where it has none. Reports a shape that no encoder has.
VisionEncoder read_vision_encoder(Catalogue& catalogue, const std::string& model);

struct VisionParameters {
    double layers = 0;  // all of them, with the patches' embedding, positions and the last norm
    double projector = 0;
    double all() const { return layers + projector; }
};
// `hidden`: the decoder's.
VisionParameters vision_parameters(const VisionEncoder& encoder, std::int64_t hidden);
// FLOPs of an image's forward pass.
struct VisionFlops {
    double layers = 0;
    double projector = 0;
};
VisionFlops vision_flops(const VisionEncoder& encoder, std::int64_t hidden);

}  // namespace railyard
