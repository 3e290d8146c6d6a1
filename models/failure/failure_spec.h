#pragma once
// What breaks nodes, as a scenario has it: causes, their remedies, who looks for slow parts and who repairs.

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "models/failure/domains.h"
#include "models/failure/failure_history.h"
#include "models/failure/hazard.h"
#include "models/failure/repair_shop.h"
#include "models/failure/strike.h"
#include "sim/units.h"

namespace railyard {

// What a failure does to the node that it strikes.
enum class Remedy : std::uint8_t {
    restart,  // nothing is broken: the job starts again where it was
    reset,    // the node leaves for a fixed time (reset, reboot, checks) and comes
              // back
    replace,  // the node leaves for repair, a random time with the mean below
};

// What a repair puts in, by whose price it goes.
enum class SparePart : std::uint8_t { other, gpu, nic };
extern const std::vector<std::string> spare_part_names;  // in the order of SparePart

// A NIC that pauses the network, as the job feels it: all of it waits, then goes on, or a connection
// gives up.
struct Storm {
    Duration stall{};
    bool fatal = false;           // it ends with the job's error
    bool stalls_storage = false;  // what is on its way to or from the store stands still too
};

// One event after the other, as a rollout goes from wave to wave until somebody stops it.
struct Staged {
    std::int64_t further = 0;  // domains after the first, in order of their number
    Duration every{};
};

// A strike brings more of its kind: on average so many, at any time within.
struct Burst {
    double further = 0;
    Duration within{};
};

// A part that works below its speed. Its condition is a bit in the table of step times.
struct SlowPart {
    std::uint32_t condition = 0;
    Duration lasts{};  // zero: until it is found
};

// Who looks for slow parts.
struct SearchSpec {
    Duration check_every{};    // zero: no health checks
    double check_finds = 1;    // of the slow parts, how many each finds
    Duration compare{};        // slow ranks show so long after they became slow; zero:
                               // nobody compares
    double compare_above = 0;  // when they slow the step by at least this share

    // From the strike on, until the part is found; Duration::max(): never.
    Duration found_after(const Strike& strike, Instant now, double slowdown) const;
};

// One failure at a known time.
struct InjectedStrike {
    Duration at{};
    std::size_t cause = 0;
    std::int64_t unit = 0;  // node, or domain of the cause's kind
    std::optional<Duration> duration{};
    std::size_t number = 0;  // among the scenario's: what follows is drawn from `inject/number`

    Strike drawn(std::uint64_t seed, std::uint64_t replica) const;
};

struct FailureCause {
    std::string name;
    Rate rate_per_node;  // while the node runs the job
    Rate rate_per_job;   // of many jobs: of each while it runs, on one of its nodes
    Duration detection{};
    Remedy remedy = Remedy::restart;
    Duration reset_time{};
    Duration repair_time{};       // mean
    double replace_fraction = 1;  // with Remedy::replace: the rest is cured by a reset
    SparePart spare_part = SparePart::other;
    Hazard life;     // of a part in each node, when its shape is not 1; of a domain,
                     // if it is one's
    Duration age{};  // of these at the campaign's start
    DomainKind domain = DomainKind::node;  // all nodes of one fail together
    Staged staged;
    Burst burst;
    // Numbers are wrong from the strike on and nobody knows; found after `detection`, which costs no time
    // by itself: what was saved since is worth nothing.
    bool silent = false;
    std::optional<SlowPart> slow;  // the job goes on, slower, until somebody finds the part
    bool silences = false;         // the node's host is gone: it answers nobody
    // Set for a storm. What is said above of detection and remedy then holds for what follows a fatal one.
    std::optional<Storm> storm;
};

// Nodes that fail more often than others, until a repair finds out why.
struct LemonNodes {
    double fraction = 0;
    double rate_multiplier = 1;
    double cured_by_repair = 0;  // probability that going through repair makes it a good node
};

// What breaks nodes besides their causes' rates, and who repairs them.
struct NodeFailures {
    LemonNodes lemons;
    double repair_sigma = 0;  // of the logarithm of a repair time
    RepairShopSpec repair;
    QuarantineSpec quarantine;
    std::vector<FailureDomains> domains;  // by DomainKind; those that no cause names are empty
    std::vector<InjectedStrike> injected;
};

}  // namespace railyard
