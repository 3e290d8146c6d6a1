#pragma once
// What the rest of a network makes of cables that go down and come back in a window.
//
// The two switches at a cable's ends see it first: after `local` they take it out of their groups of
// equal-cost outputs, and what can go another way from there does. A spine whose only cable to a leaf is
// gone has no other way; for that, those further away must stop sending to it, which takes until
// `everywhere`: a subnet manager has computed routes anew, or routers have withdrawn theirs. A cable that
// is back before that is taken up by its ends after `local`. Later nobody has routes by it: all take it up
// after `everywhere`. A flow keeps its path while all of it works, as resilient hashing has it, and returns
// to it; one that is left without a way, or only with one by another port of its NIC, stays where it is and
// loses its packets.

#include <optional>
#include <vector>

#include "models/fabric/packet_engine.h"
#include "models/fabric/routing.h"

namespace railyard {

struct FailoverTimes {
    Picoseconds local{};
    Picoseconds everywhere{};

    // From the end of an outage of so long until switches send by the cable again.
    Picoseconds taken_up(Picoseconds outage) const {
        return outage > everywhere ? everywhere : local;
    }
};
// The catalogue's: of InfiniBand, or of routed Ethernet.
FailoverTimes read_failover_times(Catalogue& catalogue, bool infiniband);

struct CableOutage {
    LinkId link = 0;  // either direction
    Picoseconds down{};
    Picoseconds up = PacketEngine::never;
};

class LinkFailover {
  public:
    // All must outlive this. `seed`: of NextHops.
    LinkFailover(const Topology& topology, RoutingSpec routing, FailoverTimes times,
                 std::vector<CableOutage> outages, const std::vector<PacketFlow>& flows,
                 std::uint64_t seed);

    // When something is due next; never: nothing is any more.
    Picoseconds next() const;
    // Does what is due at `next()`, with the engine's clock there.
    void act(PacketEngine& engine);

  private:
    // Cables that switches have taken out at this instant, by who knows.
    struct Known {
        std::vector<LinkId> at_its_ends;  // those that everybody knows of among them
        std::vector<LinkId> everywhere;
    };
    struct Absence {
        Picoseconds from;
        Picoseconds until;
    };
    class Views;

    // For whom it is gone `after` it is down. None: it is back before that.
    std::optional<Absence> absence(const CableOutage& outage, Picoseconds after) const;
    Known known(Picoseconds now) const;
    void reroute(PacketEngine& engine, const Known& known);
    std::vector<LinkId> path_now(const PacketFlow& flow, const Known& known, Views& views) const;

    const Topology& topology_;
    RoutingSpec routing_;
    FailoverTimes times_;
    std::vector<CableOutage> outages_;
    const std::vector<PacketFlow>& flows_;
    std::uint64_t seed_;
    std::vector<Picoseconds> due_;  // sorted
    std::size_t done_ = 0;
    std::vector<std::vector<LinkId>> detour_;  // of each flow that is off its own path; else empty
};

}  // namespace railyard
