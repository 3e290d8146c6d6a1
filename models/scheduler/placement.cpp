#include "models/scheduler/placement.h"

namespace railyard {

const std::vector<PlacementKind>& placement_kinds() {
    static const std::vector<PlacementKind> kinds = {
        {"pool", "any free GPUs, on whatever nodes", make_pool},
        {"consolidate", "on as few nodes as can be: the fullest that fits, or empty ones",
         make_consolidate},
    };
    return kinds;
}

}  // namespace railyard
