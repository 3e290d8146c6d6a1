#include "sim/cancel.h"

namespace railyard {

namespace {

std::atomic<const std::atomic<bool>*> cancelled{nullptr};

}  // namespace

void cancel_when(const std::atomic<bool>& flag) {
    cancelled = &flag;
}

void heed_cancel() {
    const std::atomic<bool>* flag = cancelled.load(std::memory_order_relaxed);
    if (flag != nullptr && flag->load(std::memory_order_relaxed)) throw Interrupted();
}

}  // namespace railyard
