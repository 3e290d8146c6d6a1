// GPUs are counted and nodes are not: what no packing can beat.

#include <fmt/format.h>

#include <algorithm>

#include "models/scheduler/placement.h"
#include "sim/check.h"

namespace railyard {

namespace {

// One node that has all the GPUs.
class Pool : public Placement {
  public:
    explicit Pool(std::int64_t gpus) : gpus_(gpus), free_(gpus) {}

    std::int64_t largest() const override { return free_; }
    Allocation place(std::int64_t gpus) override {
        Allocation out(NodeShare{0, gpus});
        take(out);
        return out;
    }
    bool holds(const Allocation& allocation) const override {
        return allocation.front().gpus <= free_;
    }
    void take(const Allocation& allocation) override {
        free_ -= allocation.front().gpus;
        RY_CHECK(free_ >= 0);
    }
    void release(const Allocation& allocation) override {
        free_ += allocation.front().gpus;
        RY_CHECK(free_ <= gpus_);
    }
    void limit_to(const Placement& other) override { free_ = std::min(free_, other.free_gpus()); }

    std::int64_t free_gpus() const override { return free_; }
    std::int64_t busy_nodes() const override { return 0; }
    std::optional<std::string> never(std::int64_t gpus) const override {
        if (gpus <= gpus_) return std::nullopt;
        return fmt::format("wants {} GPUs of {}", gpus, gpus_);
    }
    std::unique_ptr<Placement> clone() const override { return std::make_unique<Pool>(*this); }

  private:
    std::int64_t gpus_;
    std::int64_t free_;
};

}  // namespace

std::unique_ptr<Placement> make_pool(std::int64_t nodes, std::int64_t gpus_per_node) {
    return std::make_unique<Pool>(nodes * gpus_per_node);
}

}  // namespace railyard
