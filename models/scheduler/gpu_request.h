#pragma once
// What a job may ask of the GPUs that it gets, as a ResourceClaim of Kubernetes' DRA does: by attributes, not
// by name.

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "sim/units.h"

namespace railyard {

// What the GPUs of a node are.
struct GpuAttributes {
    std::string kind{};  // in the catalogue
    Bytes memory{};
    std::int64_t nvlink_domain = 1;         // GPUs that reach each other over NVLink
    std::int64_t compute_capability10 = 0;  // CUDA's, times ten; 0: not CUDA
    std::vector<std::string> slices{};      // MIG profiles that they are cut into; empty: whole
};

// Empty: of any.
struct GpuRequest {
    std::string kind{};
    std::string slice{};  // an instance of this MIG profile, instead of a whole GPU
    // At least so much of each.
    std::optional<Bytes> memory{};
    std::optional<std::int64_t> nvlink_domain{};
    std::optional<std::int64_t> compute_capability10{};

    bool operator==(const GpuRequest&) const = default;
};

// How many of the things that are asked for these GPUs lack.
int count_unmet(const GpuRequest& request, const GpuAttributes& gpus);
// "at least 80 GB of GPU memory and NVLink among 8 GPUs".
std::string describe(const GpuRequest& request);
// What these GPUs have of what they lack: "40 GB of GPU memory".
std::string describe_unmet(const GpuRequest& request, const GpuAttributes& gpus);

}  // namespace railyard
