#pragma once
// What a scenario would be without one of the things that keep its goodput from 100 %.
//
// Each is taken away where it enters the simulation, so that everything behind it follows: without stragglers
// the steps are shorter, and a checkpoint every 10 minutes comes after more of them. Random streams have
// names of their own, so what is left happens at the same instants as before. job.length is training time in
// every world.

#include <bitset>
#include <cstddef>
#include <cstdint>
#include <string_view>

namespace railyard {

enum class LossCause : std::uint8_t {
    failures,  // nothing breaks in the nodes, and no node is a lemon
    recovery,  // detection, replacement, repair, restart and restore take no time
    storage,   // states and batches move in no time, no store breaks, no neighbour uses it
    network,   // nothing but the nodes' own NICs bounds traffic: no contention, dead links, storms
    stragglers,      // all ranks are as fast as the mean
    degraded_parts,  // no part is slower than it should be
    throttling,      // heat slows no clocks and no memory; a power cap is the design's and stays
    feeds,           // breakers hold and pumps run
    maintenance,     // nothing is planned
};
constexpr std::size_t loss_cause_count = 9;
using LossCauses = std::bitset<loss_cause_count>;

std::string_view loss_cause_name(LossCause cause);  // snake_case
std::string_view loss_cause_doc(LossCause cause);   // the world without it, in one line

inline bool has(const LossCauses& causes, LossCause cause) {
    return causes[static_cast<std::size_t>(cause)];
}

struct Scenario;
struct StepTime;

// The causes that are in the scenario: taking another one away would change nothing.
LossCauses loss_causes(const Scenario& scenario);

// Takes away what needs nothing of the scenario to be read again. `network` and `degraded_parts` must have
// been left out before its step was modelled.
void remove_from_step(Scenario& scenario, const LossCauses& without);
void remove_from_step(StepTime& step, const LossCauses& without);
void remove_from_data(Scenario& scenario, const LossCauses& without);
void remove_from_campaign(Scenario& scenario, const LossCauses& without);

}  // namespace railyard
