#pragma once
// Parts of the compute network that die, or work below their rate, in mid-campaign until they are mended.
//
// A part is a cable, a NIC or a switch; with it go its cables, both directions of each. Parts of a cause
// live, fail and are renewed each on its own, whatever runs, and nobody is short of crews for them.

#include <algorithm>
#include <compare>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "models/fabric/fabric.h"
#include "models/failure/failure.h"
#include "models/storage/storage.h"

namespace railyard {

struct BrokenCable {
    std::uint32_t cable = 0;  // its links are 2 x this, and one more
    double speed = 0;         // of a sound one's; 0: dead

    auto operator<=>(const BrokenCable&) const = default;
};
// Ascending by cable, each once; empty: all are sound.
using NetworkState = std::vector<BrokenCable>;

// A network as it is at an instant.
struct NetworkNow {
    HashSeed hashes{};
    NetworkState broken{};
};

// Those of `broken` that routes meet which go round what they have met. `passed_by`: the cables, by number,
// that they pass then; none when no way is left.
NetworkState met_by_routes(
    const NetworkState& broken,
    const std::function<const std::vector<bool>&(const NetworkState& met)>& passed_by);

// What a job's nodes move together to and from the shared store while its routes meet these broken parts.
struct StoreWay {
    Bandwidth read = unlimited;  // no less than over a sound network
    Bandwidth write = unlimited;
    NetworkState broken{};

    bool closed(Direction direction) const {
        return (direction == Direction::read ? read : write) == Bandwidth{};
    }
    bool closed() const { return closed(Direction::read) || closed(Direction::write); }
};

struct NetworkPart {
    std::string name;  // "spine-0"
    std::vector<std::uint32_t> cables;
};
struct NetworkCause {
    FailureCause cause;              // its life, and who mends it
    std::vector<std::size_t> parts;  // of NetworkFaults::parts: what it strikes
    double speed = 0;                // that is left
};
struct NetworkOutage {
    Duration at{};
    std::optional<Duration> duration{};  // none: for ever
    std::size_t part = 0;
    double speed = 0;
};
struct NetworkFaults {
    std::vector<NetworkPart> parts;
    std::vector<NetworkCause> causes;
    std::vector<NetworkOutage> injected;
    double repair_sigma = 0;  // of the logarithm of a repair time

    bool any() const { return !causes.empty() || !injected.empty(); }
};

// What is broken of the network, on the campaign's clock.
class NetworkParts : public CampaignEngine::Component, public Renewals::Target {
  public:
    class Owner {
      public:
        virtual ~Owner() = default;
        virtual void network_changed() = 0;
    };

    // References must outlive it.
    NetworkParts(CampaignEngine& engine, const NetworkFaults& faults, Owner& owner,
                 std::uint64_t seed, std::uint64_t replica);
    void start();

    const NetworkState& broken() const { return broken_; }
    std::int64_t outages() const { return std::ssize(outages_); }  // so far
    // The broken parts that have one of these cables: "spine-0, leaf-3 to spine-1".
    std::string names(const NetworkState& of) const;

    void failed(const Strike& strike) override;  // strike.slot: which of the cause's parts
    void handle(std::uint32_t event) override;

  private:
    enum Kind : std::uint32_t { breaks, mended, kinds };
    struct Outage {
        std::size_t part = 0;
        double speed = 0;
        bool over = false;
    };
    void begin(std::size_t part, double speed, std::optional<Duration> lasts);
    void take_stock();

    CampaignEngine& engine_;
    const NetworkFaults& faults_;
    Owner& owner_;
    CampaignEngine::ComponentId id_;
    std::vector<std::unique_ptr<Renewals>> lives_;
    std::vector<Outage> outages_;  // all that ever were
    NetworkState broken_;
};

// One client's way to the shared store, as the network is.
class WayToStore {
  public:
    // The stores must outlive it.
    WayToStore(StoreService& stores, std::size_t client) : stores_(stores), client_(client) {}
    // All that it moves to and from there shares this, from now on.
    void take(StoreWay way, const NetworkParts& network) {
        way_ = std::move(way);
        parts_ = way_.closed() ? network.names(way_.broken) : "";
        stores_.limit_way(client_, shared_store, way_.read, way_.write);
    }
    const StoreWay& now() const { return way_; }
    const std::string& parts() const { return parts_; }  // for people: what closes it

  private:
    StoreService& stores_;
    std::size_t client_;
    StoreWay way_;
    std::string parts_;
};

}  // namespace railyard
