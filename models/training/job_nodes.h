#pragma once
// The nodes that a job has, those that it lacks, and the slow ones among them.

#include <optional>
#include <vector>

#include "models/failure/failure.h"
#include "models/training/job_description.h"
#include "models/training/node_pool.h"

namespace railyard {

class JobNodes {
  public:
    using Slots = std::vector<std::int64_t>;

    // `owner` hears of slow parts. All references must outlive it.
    JobNodes(CampaignEngine& engine, const JobSpec& spec, const std::vector<FailureCause>& causes,
             NodePool& pool, SlowParts::Owner& owner);

    std::int64_t count() const { return all_ - static_cast<std::int64_t>(missing_.size()); }
    std::size_t size() const { return size_; }  // 0: full; then as JobSteps::smaller
    const SmallerJob* smaller() const { return size_ == 0 ? nullptr : &spec_.smaller[size_ - 1]; }
    std::int64_t gpus() const { return count() * spec_.gpus_per_node; }
    std::int64_t replicas() const { return size_ == 0 ? spec_.replicas : smaller()->replicas; }

    // To be changed at a stop: slow ones, or a smaller job's for more. True: with the spares of now it grows.
    bool change_planned() const { return change_planned_; }
    bool plan_growth();

    // Struck nodes leave, or sound ones that are blamed. These return the slots of nodes that worked: what
    // only they had goes with them.
    [[nodiscard]] Slots part_with(const NodePool::Struck& struck);
    [[nodiscard]] Slots part_with_slow();
    // Those that a job of so many nodes has no use for become spares.
    [[nodiscard]] Slots keep_first(std::int64_t nodes) { return release(nodes, 0); }
    // Spares for the first so many slots; true: all are filled.
    bool fill(std::int64_t nodes);
    // To the largest size that its nodes make; nothing when they make none.
    [[nodiscard]] std::optional<Slots> shrink();

    void slow_down(const Strike& strike);
    void found_slow(std::size_t part) {
        found_slow_.push_back(part);
        change_planned_ = true;
    }
    std::uint32_t conditions() const { return conditions_; }  // of the slow parts, bits
    bool conditions_changed();                                // since it was asked before
    SlowPartCounts slow_parts() const { return slow_ ? slow_->counts() : SlowPartCounts{}; }
    std::int64_t blamed() const { return blamed_; }  // sound ones
    std::int64_t shrinks() const { return shrinks_; }

  private:
    void left(std::int64_t slot);
    // From the last slot down to this one, while there are more nodes than that.
    Slots release(std::int64_t slot, std::int64_t nodes);

    const JobSpec& spec_;
    const std::int64_t all_;
    const std::vector<FailureCause>& causes_;
    NodePool& pool_;
    Slots missing_;  // slots without a node
    std::size_t size_ = 0;
    bool change_planned_ = false;
    std::optional<SlowParts> slow_;
    std::vector<std::size_t> found_slow_;  // their numbers
    std::uint32_t conditions_ = 0;
    std::int64_t blamed_ = 0;
    std::int64_t shrinks_ = 0;
};

}  // namespace railyard
