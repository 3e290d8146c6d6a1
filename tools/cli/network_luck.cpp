#include "tools/cli/network_luck.h"

#include <fmt/format.h>

namespace railyard {

DrawRange range_of_steps(const Scenario& s) {
    std::vector<double> steps;
    for (const NetworkDraw& draw : s.draws) steps.push_back(seconds(draw.step.duration()));
    return range_of_draws(steps);
}

std::string draws_text(const Scenario& s) {
    if (!s.draws.empty()) {
        const DrawRange range = range_of_steps(s);
        return fmt::format("luck of the network, {} draws: a step takes {} to {}, {} in the middle",
                           range.draws, to_text(from_seconds(range.low)),
                           to_text(from_seconds(range.high)), to_text(from_seconds(range.median)));
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
