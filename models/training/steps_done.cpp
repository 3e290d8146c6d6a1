#include "models/training/steps_done.h"

namespace railyard {

void upload_changes(StepTime& step, Duration partial, bool uploads, Duration penalty) {
    const Duration left = step.duration() - partial;
    if (left <= Duration{}) return;
    const Duration bare = step.duration() - step.upload;
    using Wide = __int128;
    const auto whole = [&](bool slowed) {
        return Wide{(bare + (slowed ? penalty : Duration{})).count()};
    };
    const Wide before = whole(!uploads);
    const Wide scaled = (Wide{left.count()} * whole(uploads) + before - 1) / before;
    step.upload += Duration(static_cast<std::int64_t>(scaled)) - left;
}

}  // namespace railyard
