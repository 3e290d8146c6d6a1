#include "models/scheduler/gpu_request.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

namespace railyard {

namespace {

struct RequestPart {
    bool met = true;
    std::string wanted;
    std::string found;
};

std::vector<RequestPart> demands(const GpuRequest& request, const GpuAttributes& gpus) {
    std::vector<RequestPart> out;
    if (!request.kind.empty()) out.push_back({gpus.kind == request.kind, request.kind, gpus.kind});
    if (!request.slice.empty()) {
        const bool has = std::ranges::find(gpus.slices, request.slice) != gpus.slices.end();
        out.push_back({has, fmt::format("a slice {}", request.slice),
                       gpus.slices.empty()
                           ? std::string("no slices")
                           : fmt::format("slices {}", fmt::join(gpus.slices, ", "))});
    }
    if (request.memory) {
        out.push_back({gpus.memory >= *request.memory,
                       fmt::format("at least {} of GPU memory", to_text(*request.memory)),
                       fmt::format("{} of GPU memory", to_text(gpus.memory))});
    }
    if (request.nvlink_domain) {
        out.push_back({gpus.nvlink_domain >= *request.nvlink_domain,
                       fmt::format("NVLink among {} GPUs", *request.nvlink_domain),
                       gpus.nvlink_domain > 1 ? fmt::format("NVLink among {}", gpus.nvlink_domain)
                                              : std::string("no NVLink")});
    }
    if (request.compute_capability10) {
        const auto text = [](std::int64_t times_ten) {
            return fmt::format("compute capability {}.{}", times_ten / 10, times_ten % 10);
        };
        out.push_back({gpus.compute_capability10 >= *request.compute_capability10,
                       "at least " + text(*request.compute_capability10),
                       gpus.compute_capability10 > 0 ? text(gpus.compute_capability10)
                                                     : std::string("no CUDA")});
    }
    return out;
}

}  // namespace

int count_unmet(const GpuRequest& request, const GpuAttributes& gpus) {
    int unmet = 0;
    for (const RequestPart& demand : demands(request, gpus)) unmet += demand.met ? 0 : 1;
    return unmet;
}

std::string describe(const GpuRequest& request) {
    std::vector<std::string> parts;
    for (const RequestPart& demand : demands(request, {})) parts.push_back(demand.wanted);
    return fmt::format("{}", fmt::join(parts, " and "));
}

std::string describe_unmet(const GpuRequest& request, const GpuAttributes& gpus) {
    std::vector<std::string> parts;
    for (const RequestPart& demand : demands(request, gpus)) {
        if (!demand.met) parts.push_back(demand.found);
    }
    return fmt::format("{}", fmt::join(parts, " and "));
}

}  // namespace railyard
