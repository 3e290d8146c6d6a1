#pragma once
// Units that live, fail and are renewed, each on its own: parts with an age, or domains.
//
// A unit's failures depend on the seed, the replica, the name and its number alone: more units move nobody's,
// and neither does anything that becomes of a failure.

#include <string>
#include <vector>

#include "models/failure/clock.h"
#include "models/failure/hazard.h"
#include "models/failure/strike.h"

namespace railyard {

class Renewals : public CampaignEngine::Component {
  public:
    class Target {
      public:
        virtual ~Target() = default;
        // strike.slot is the unit's number. Its next life has begun.
        virtual void failed(const Strike& strike) = 0;
    };

    // `age`: of all units at the start. `target` must outlive this.
    Renewals(CampaignEngine& engine, Target& target, std::size_t cause, const std::string& name,
             const Hazard& hazard, std::int64_t units, Duration age, std::uint64_t seed,
             std::uint64_t replica);
    void start();
    void handle(std::uint32_t unit) override;

  private:
    void live(std::uint32_t unit, Duration age);

    CampaignEngine& engine_;
    Target& target_;
    CampaignEngine::ComponentId id_;
    std::size_t cause_;
    Hazard hazard_;
    Duration age_;
    std::vector<RandomStream> streams_;  // by unit
};

}  // namespace railyard
