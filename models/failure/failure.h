#pragma once
// What breaks, how often, who notices, and how long the part is gone.

#include <string>
#include <vector>

#include "models/catalogue/catalogue.h"
#include "sim/engine.h"
#include "sim/rng.h"

namespace railyard {

using CampaignEngine = Engine<Nanoseconds>;
using Instant = CampaignEngine::Instant;

// What a failure does to the node that it strikes.
enum class Remedy : std::uint8_t {
    restart,  // nothing is broken: the job starts again where it was
    reset,    // the node leaves for a fixed time (reset, reboot, checks) and comes back
    replace,  // the node leaves for repair, a random time with the mean below
};

struct FailureCause {
    std::string name;
    Rate rate_per_node;  // while the node runs the job
    Duration detection{};
    Remedy remedy = Remedy::restart;
    Duration reset_time{};
    Duration repair_time{};       // mean
    double replace_fraction = 1;  // with Remedy::replace: the rest is cured by a reset
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
// seed, the replica and the cause alone: not on what the strikes lead to. It runs at the rate of
// the worst node, and each strike carries a uniform number by which the struck node accepts it
// (thinning), so that curing a lemon moves no other strike.
class FailureSource : public CampaignEngine::Component {
  public:
    class Target {
      public:
        virtual ~Target() = default;
        // A strike on the node in `slot` of the job; it hurts when u < multiplier(node) / the
        // worst.
        virtual void strike(std::size_t cause, std::int64_t slot, double u) = 0;
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
    std::size_t cause_;
    std::int64_t slots_;
    Rate rate_;
};

}  // namespace railyard
