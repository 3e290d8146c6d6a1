#include "models/campaign/store_ways.h"

#include <functional>
#include <map>
#include <mutex>
#include <tuple>
#include <utility>

#include "models/campaign/store_traffic.h"

namespace railyard {

namespace {

class WayMemo {
  public:
    explicit WayMemo(std::shared_ptr<const Scenario> job) : job_(std::move(job)) {}

    StoreWay on(const std::vector<NodeIndex>& nodes, const NetworkNow& network) {
        if (network.broken.empty()) return {};
        const std::lock_guard lock(mutex_);
        StoreWay out;
        out.broken =
            met_by_routes(network.broken, [&](const NetworkState& met) -> const std::vector<bool>& {
                return cables({nodes, network.hashes, met});
            });
        if (out.broken.empty()) return out;
        const ReachedRates sound = reached({nodes, network.hashes, {}});
        const ReachedRates now = reached({nodes, network.hashes, out.broken});
        out.read = left(now.read, sound.read);
        out.write = left(now.write, sound.write);
        return out;
    }

  private:
    using Place = std::tuple<std::vector<NodeIndex>, HashSeed, NetworkState>;

    static Bandwidth left(Bandwidth now, Bandwidth sound) {
        return now < sound * (1 - step_tolerance) ? now : unlimited;
    }

    Topology topology(const NetworkState& broken) const {
        Topology out = with_slow_nics(*job_, job_->networks[0]);
        for (const BrokenCable& each : broken) out.degrade(each.cable * 2, each.speed);
        return out;
    }

    const std::vector<bool>& cables(const Place& place) {
        const auto [known, is_new] = cables_.try_emplace(place);
        const auto& [nodes, hashes, broken] = place;
        if (is_new) known->second = cables_to_store(*job_, nodes, topology(broken), hashes);
        return known->second;
    }

    const ReachedRates& reached(const Place& place) {
        const auto [known, is_new] = reached_.try_emplace(place);
        const auto& [nodes, hashes, broken] = place;
        if (is_new) known->second = reach_over(*job_, nodes, topology(broken), hashes);
        return known->second;
    }

    std::shared_ptr<const Scenario> job_;
    std::mutex mutex_;
    std::map<Place, std::vector<bool>> cables_;
    std::map<Place, ReachedRates> reached_;
};

}  // namespace

PlacedWay store_ways(std::shared_ptr<const Scenario> job) {
    return std::bind_front(&WayMemo::on, std::make_shared<WayMemo>(std::move(job)));
}

}  // namespace railyard
