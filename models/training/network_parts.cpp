#include "models/training/network_parts.h"

#include <algorithm>
#include <iterator>
#include <map>
#include <utility>

namespace railyard {

NetworkState met_by_routes(
    const NetworkState& broken,
    const std::function<const std::vector<bool>&(const NetworkState& met)>& passed_by) {
    NetworkState met;
    while (met.size() < broken.size()) {
        const std::vector<bool>& passed = passed_by(met);
        NetworkState all;
        std::ranges::copy_if(broken, std::back_inserter(all), [&](const BrokenCable& each) {
            return (!passed.empty() && passed[each.cable]) ||
                   std::ranges::find(met, each) != met.end();
        });
        if (all == met) break;
        met = std::move(all);
    }
    return met;
}

NetworkParts::NetworkParts(CampaignEngine& engine, const NetworkFaults& faults, Owner& owner,
                           std::uint64_t seed, std::uint64_t replica)
    : engine_(engine), faults_(faults), owner_(owner), id_(engine.add(*this, "network parts")) {
    for (std::size_t i = 0; i < faults.causes.size(); ++i) {
        const NetworkCause& of = faults.causes[i];
        lives_.push_back(std::make_unique<Renewals>(engine, *this, i, of.cause.name, of.cause.life,
                                                    std::ssize(of.parts), of.cause.age, seed,
                                                    replica));
    }
}

void NetworkParts::start() {
    for (const auto& life : lives_) life->start();
    for (std::size_t i = 0; i < faults_.injected.size(); ++i) {
        engine_.schedule(Instant(faults_.injected[i].at), id_,
                         static_cast<std::uint32_t>(i * kinds + breaks));
    }
}

void NetworkParts::failed(const Strike& strike) {
    const NetworkCause& of = faults_.causes[strike.cause];
    begin(of.parts[strike.slot], of.speed,
          out_of_service(strike, of.cause, faults_.repair_sigma).time);
}

void NetworkParts::handle(std::uint32_t event) {
    const std::size_t index = event / kinds;
    if (event % kinds == breaks) {
        const NetworkOutage& outage = faults_.injected[index];
        begin(outage.part, outage.speed, outage.duration);
        return;
    }
    outages_[index].over = true;
    take_stock();
}

void NetworkParts::begin(std::size_t part, double speed, std::optional<Duration> lasts) {
    if (lasts && *lasts < Instant::max() - engine_.now()) {
        engine_.schedule(engine_.now() + *lasts, id_,
                         static_cast<std::uint32_t>(outages_.size() * kinds + mended));
    }
    outages_.push_back({part, speed, false});
    take_stock();
}

// Where outages overlap, the worst counts.
void NetworkParts::take_stock() {
    std::map<std::uint32_t, double> speeds;
    for (const Outage& outage : outages_) {
        if (outage.over) continue;
        for (const std::uint32_t cable : faults_.parts[outage.part].cables) {
            const auto [known, is_new] = speeds.emplace(cable, outage.speed);
            if (!is_new) known->second = std::min(known->second, outage.speed);
        }
    }
    NetworkState now;
    for (const auto& [cable, speed] : speeds) now.push_back({cable, speed});
    if (now == broken_) return;
    broken_ = std::move(now);
    owner_.network_changed();
}

std::string NetworkParts::names(const NetworkState& of) const {
    std::vector<std::size_t> parts;
    for (const Outage& outage : outages_) {
        const std::vector<std::uint32_t>& cables = faults_.parts[outage.part].cables;
        if (!outage.over && std::ranges::any_of(of, [&](const BrokenCable& broken) {
                return std::ranges::find(cables, broken.cable) != cables.end();
            })) {
            parts.push_back(outage.part);
        }
    }
    std::ranges::sort(parts);
    parts.erase(std::unique(parts.begin(), parts.end()), parts.end());
    std::string out;
    for (const std::size_t part : parts) {
        if (!out.empty()) out += ", ";
        out += faults_.parts[part].name;
    }
    return out;
}

}  // namespace railyard
