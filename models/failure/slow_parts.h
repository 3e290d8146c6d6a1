#pragma once
// Parts of nodes that work below their speed: what runs on them goes on, slower, until somebody sees it.

#include <cstdint>
#include <vector>

#include "models/failure/clock.h"
#include "models/failure/failure_spec.h"
#include "models/failure/strike.h"

namespace railyard {

struct SlowPartCounts {
    std::int64_t slow = 0;
    std::int64_t found = 0;
};

// A synchronous job waits for its slowest part: the largest of the slowdowns, by condition, of these (bits).
double worst_slowdown(const std::vector<double>& slowdowns, std::uint32_t conditions);

// A place is where a part is, and stays with what runs there: a node of a cluster, a slot of a job.
class SlowParts : public CampaignEngine::Component {
  public:
    class Owner {
      public:
        virtual ~Owner() = default;
        // What runs there is slower, or faster, from now on.
        virtual void pace_changed(std::size_t place) = 0;
        // A part has been found. It is slow still, until it is cured or its place mended.
        virtual void slow_part_found(std::size_t part) = 0;
        // What a step takes longer under a condition, as a comparison of ranks sees it.
        virtual double slowdown(std::uint32_t condition) const = 0;
    };
    struct Part {
        std::size_t place = 0;
        Strike strike{};
        bool there = true;
        bool known = false;
        bool comparing = false;
    };

    // References must outlive it.
    SlowParts(CampaignEngine& engine, const SearchSpec& search,
              const std::vector<FailureCause>& causes, Owner& owner, std::size_t places);

    void strike(std::size_t place, const Strike& strike, bool in_use);
    // A job has begun to run there: a comparison of its ranks may show what is slow.
    void compare(std::size_t place);
    void cure(std::size_t part);
    // All parts there are sound again.
    void mend(std::size_t place);
    // By number, all that ever were.
    const Part& part(std::size_t number) const { return parts_[number]; }
    // The conditions of the slow parts there, or of all, as bits.
    std::uint32_t conditions(std::size_t place) const { return conditions_[place]; }
    std::uint32_t conditions() const;
    const SlowPartCounts& counts() const { return counts_; }

    void handle(std::uint32_t event) override;

  private:
    enum Kind : std::uint32_t { found, over, compared, kinds };
    void schedule(Duration after, Kind kind, std::size_t part);
    void find(std::size_t part);
    void recount(std::size_t place);

    CampaignEngine& engine_;
    const SearchSpec& search_;
    const std::vector<FailureCause>& causes_;
    Owner& owner_;
    CampaignEngine::ComponentId id_;
    std::vector<Part> parts_;
    std::vector<std::vector<std::size_t>> here_;  // by place: those that are there
    std::vector<std::uint32_t> conditions_;       // by place
    SlowPartCounts counts_;
};

}  // namespace railyard
