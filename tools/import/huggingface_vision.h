#pragma once
// The vision encoder of a config.json: what its `vision_config` says of it.

#include <cstdint>
#include <optional>
#include <string>

#include "tools/import/import.h"
#include "tools/import/json_tree.h"

namespace railyard {

// Adds the encoder's keys to the open [model.NAME], or notes why the part is the text's alone. `root`: the
// whole file. `image_patches`: of images that keep their size. `hidden`: the decoder's.
void add_vision(const Value& root, const std::string& file,
                std::optional<std::int64_t> image_patches, std::int64_t hidden, ImportedPart& part);

}  // namespace railyard
