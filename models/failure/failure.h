#pragma once
// The door of the folder: what breaks, how often, who notices, and how long the part is gone.

#include <string>
#include <vector>

#include "models/catalogue/catalogue.h"
#include "models/failure/cause_reader.h"
#include "models/failure/clock.h"
#include "models/failure/domains.h"
#include "models/failure/failure_history.h"
#include "models/failure/failure_spec.h"
#include "models/failure/hazard.h"
#include "models/failure/node_faults.h"
#include "models/failure/renewals.h"
#include "models/failure/repair_shop.h"
#include "models/failure/slow_parts.h"
#include "models/failure/strike.h"
#include "sim/rng.h"

namespace railyard {

// How long a strike takes out what it breaks, if nobody is short of crews: as injected, a reset, or the
// repair that it drew, at most ten years.
struct OutOfService {
    Duration time{};
    bool repaired = false;  // it needs repair; a reset would not cure it
};
OutOfService out_of_service(const Strike& strike, const FailureCause& cause, double repair_sigma);

// A cause by its name in the catalogue, without a rate.
FailureCause read_failure_cause(Catalogue& catalogue, const std::string& name);

// Names of the catalogue's failure profiles, and the causes of one on such nodes, rates from its published
// counts; on GPUs of a generation that no profile is of, by analogy.
std::vector<std::string> failure_profiles();
std::vector<FailureCause> read_failure_profile(Catalogue& catalogue, const std::string& profile,
                                               const std::string& generation,
                                               std::int64_t gpus_per_node);

// [failures], but for what its nodes have.
struct FailuresSpec {
    bool failures = true;             // false: nothing fails
    bool of_another_cluster = false;  // rates of a profile
    std::vector<FailureCause> causes;
};

// A Poisson stream of strikes on the job's nodes, one stream per cause. Its instants depend on the
// seed, the replica and the cause alone. It runs at the rate of the worst node, and each node accepts
// its share of the strikes (thinning), so that curing a lemon moves no other strike.
class FailureSource : public CampaignEngine::Component {
  public:
    class Target {
      public:
        virtual ~Target() = default;
        // False: the node's own rate is lower than the worst one's, and this one is not among its strikes.
        virtual bool strike(const Strike& strike) = 0;
    };

    FailureSource(CampaignEngine& engine, Target& target, std::size_t cause_index,
                  const FailureCause& cause, std::int64_t slots, double worst_multiplier,
                  std::uint64_t seed, std::uint64_t replica);
    void start();
    void handle(std::uint32_t kind) override;

  private:
    enum Kind : std::uint32_t { first_of_burst, one_more };
    void schedule_next();
    void schedule_burst();
    void strike_once_more();
    Strike draw(RandomStream& stream, RandomStream& diagnosis);

    CampaignEngine& engine_;
    Target& target_;
    CampaignEngine::ComponentId id_;
    RandomStream stream_;
    RandomStream diagnosis_;
    RandomStream further_;  // strikes of a burst
    Burst burst_;
    std::size_t cause_;
    std::int64_t slots_;
    Rate rate_;
};

}  // namespace railyard
