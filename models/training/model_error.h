#pragma once
// How far published figures are from what the models say, learned by leaving out what they were fitted on.

#include <string>

#include "models/catalogue/catalogue.h"

namespace railyard {

// Shares that half of the published figures, and nine in ten, are within. 0: nothing is known of it.
struct ModelError {
    double half = 0;
    double nine_tenths = 0;
};

// `kind` is an entry of [model_error] in step_model.toml.
inline ModelError read_model_error(Catalogue& catalogue, const std::string& kind) {
    return {catalogue.number("model_error", kind, "half"),
            catalogue.number("model_error", kind, "nine_tenths")};
}

}  // namespace railyard
