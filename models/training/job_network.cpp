#include "models/training/job_network.h"

#include "sim/check.h"

namespace railyard {

const GroupRate& JobNetwork::rate(Collective collective, std::int64_t stride, std::int64_t ranks) {
    const auto [found, is_new] = rates_.try_emplace({collective, stride, ranks});
    if (!is_new) return found->second;
    const auto all = static_cast<std::int64_t>(gpu_of_rank_.size());
    RY_CHECK(all % (stride * ranks) == 0);
    std::vector<GpuGroup> groups;
    for (std::int64_t base = 0; base < all; base += stride * ranks) {
        for (std::int64_t offset = 0; offset < stride; ++offset) {
            GpuGroup& group = groups.emplace_back();
            for (std::int64_t k = 0; k < ranks; ++k) {
                group.push_back(gpu_of_rank_[static_cast<std::size_t>(base + offset + k * stride)]);
            }
        }
    }
    found->second = collective == Collective::all_to_all  ? network_.all_to_all(groups)
                    : collective == Collective::send_recv ? network_.send(groups)
                                                          : network_.ring(groups);
    return found->second;
}

}  // namespace railyard
