#include "tools/cli/network_luck.h"

#include <fmt/format.h>

#include "tools/study/trials.h"

namespace railyard {

std::string ends_text(const DrawRange& range) {
    return fmt::format("{} to {}", to_text(from_seconds(range.low)),
                       to_text(from_seconds(range.high)));
}

std::string draws_text(const Scenario& s) {
    if (!s.draws.empty()) {
        const DrawRange range = range_of_steps(s);
        return fmt::format("luck of the network, {} draws: a step takes {}, {} in the middle",
                           range.draws, ends_text(range), to_text(from_seconds(range.median)));
    }
    const bool one = s.networks[0].hash_given || s.network_draws == 1;
    if (!one || !hashes(s.networks[0].flow_routing().policy)) return "";
    return fmt::format("one draw of the network's hashes (seed {}): others give other steps",
                       s.networks[0].routing.hash_seed);
}

nlohmann::ordered_json range_json(const DrawRange& range) {
    return {
        {"draws", range.draws}, {"median", range.median}, {"low", range.low}, {"high", range.high}};
}

nlohmann::ordered_json draws_json(const Scenario& s) {
    if (s.world) return {{"draws", s.draws.size()}};
    return range_json(range_of_steps(s));
}

}  // namespace railyard
