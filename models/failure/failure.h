#pragma once
// The door of the folder: what breaks, how often, who notices, and how long the part is gone.

#include <optional>
#include <string>
#include <vector>

#include "models/catalogue/catalogue.h"
#include "models/failure/clock.h"
#include "models/failure/domains.h"
#include "models/failure/failure_history.h"
#include "models/failure/hazard.h"
#include "models/failure/renewals.h"
#include "models/failure/repair_shop.h"
#include "models/failure/strike.h"
#include "sim/rng.h"

namespace railyard {

// What a failure does to the node that it strikes.
enum class Remedy : std::uint8_t {
    restart,  // nothing is broken: the job starts again where it was
    reset,    // the node leaves for a fixed time (reset, reboot, checks) and comes back
    replace,  // the node leaves for repair, a random time with the mean below
};

// A NIC that pauses the network, as the job feels it: all of it waits, then goes on, or a connection
// gives up.
struct Storm {
    Duration stall{};
    bool fatal = false;           // it ends with the job's error
    bool stalls_storage = false;  // what is on its way to or from the store stands still too
};

struct FailureCause {
    std::string name;
    Rate rate_per_node;  // while the node runs the job
    Duration detection{};
    Remedy remedy = Remedy::restart;
    Duration reset_time{};
    Duration repair_time{};       // mean
    double replace_fraction = 1;  // with Remedy::replace: the rest is cured by a reset
    bool silences = false;        // the node's host is gone: it answers nobody
    // Of a storm. What is said above of detection and remedy then holds for what follows a fatal one.
    std::optional<Storm> storm;
};

// Nodes that fail more often than others, until a repair finds out why.
struct LemonNodes {
    double fraction = 0;
    double rate_multiplier = 1;
    double cured_by_repair = 0;  // probability that going through repair makes it a good node
};

// Names of the catalogue's failure profiles, and the causes of one, rates from its published
// counts.
std::vector<std::string> failure_profiles();
std::vector<FailureCause> read_failure_profile(Catalogue& catalogue, const std::string& profile,
                                               std::int64_t gpus_per_node);

// A Poisson stream of strikes on the job's nodes, one stream per cause. Its instants depend on the
// seed, the replica and the cause alone. It runs at the rate of the worst node, and each node accepts
// its share of the strikes (thinning), so that curing a lemon moves no other strike.
class FailureSource : public CampaignEngine::Component {
  public:
    class Target {
      public:
        virtual ~Target() = default;
        virtual void strike(const Strike& strike) = 0;
    };

    FailureSource(CampaignEngine& engine, Target& target, std::size_t cause_index,
                  const FailureCause& cause, std::int64_t slots, double worst_multiplier,
                  std::uint64_t seed, std::uint64_t replica);
    void start();
    void handle(std::uint32_t kind) override;

  private:
    void schedule_next();

    CampaignEngine& engine_;
    Target& target_;
    CampaignEngine::ComponentId id_;
    RandomStream stream_;
    RandomStream diagnosis_;
    std::size_t cause_;
    std::int64_t slots_;
    Rate rate_;
};

}  // namespace railyard
