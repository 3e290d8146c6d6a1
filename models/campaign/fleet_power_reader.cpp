// Power under many jobs: what of [power] and [facility] they take, and what their nodes draw.

#include <fmt/format.h>

#include <algorithm>

#include "models/campaign/fleet.h"
#include "models/campaign/fleet_steps.h"
#include "models/campaign/power_reader.h"

namespace railyard {

void PowerReader::check_fleet() {
    if (s_.fleet->nodes.size() < 2) return;
    const auto one_kind = [](Section& section, std::initializer_list<const char*> keys) {
        for (const char* key : keys) {
            if (!section.has(key)) continue;
            section.error(key, "speaks of one kind of nodes, and the [[node_group]]s are several");
        }
    };
    one_kind(sections_.power,
             {"gpu_cap", "cap_exponent", "supplies", "supply_rating", "redundancy"});
    if (throttles()) one_kind(sections_.power, {"budget"});
    one_kind(sections_.facility, {"cooling", "inlet_temperature", "thermal_resistance",
                                  "throttle_temperature", "rack_power_max", "breaker", "pump"});
}

NodePower PowerReader::node_power(const Node& node) {
    Catalogue& c = p_.given ? catalogue_ : aside_.catalogue;
    const Watts gpu_max = c.power("gpu", node.gpu.id, "max_power");
    const double liquid = read_cooling(c, cooling_of_node(c, node.name), gpu_max).liquid_fraction;
    return read_node_power(c, node_power_spec(node), liquid);
}

// What heat slows of a kind's jobs, on nodes that are all of one kind.
std::vector<PartFault> PowerReader::throttled_parts(const FleetJobKind& kind, NodeDraw& draw) {
    if (!p_.facility_given && !throttles()) return {};
    draw.heat = settled(draw.node.gpu, draw.step);
    const std::vector<PartFault> parts = slowed_parts(draw.heat, "the GPUs of " + kind.name);
    if (!parts.empty() && s_.fleet->nodes.size() > 1) {
        sections_.facility.error(
            "inlet_temperature",
            fmt::format("the GPUs of {} throttle: what that takes is not modelled for "
                        "[[node_group]]s of several kinds",
                        kind.name),
            "a cooler inlet, or nodes of one kind");
    }
    return parts;
}

// The cluster's own draw is that of the jobs that draw most.
void PowerReader::finish_fleet() {
    const auto fleet = std::make_shared<FleetScenario>(*s_.fleet);
    fleet->power.work_factor = 1 / p_.node.gpu.speed_at(p_.node.gpu.cap);
    NodeDraw most;
    for (const Node& node : fleet->nodes) {
        std::vector<NodeDraw>& draws = fleet->power.draws.emplace_back();
        for (std::size_t k = 0; k < fleet->spec.kinds.size(); ++k) {
            FleetJobKind& kind = fleet->spec.kinds[k];
            const Scenario& job = fleet->models[k] ? *fleet->models[k] : s_;
            NodeDraw draw;
            draw.node = fleet->nodes.size() == 1 ? p_.node : node_power(node);
            draw.repairing = p_.repairing;
            draw.step = gpu_step(job, usual_step(kind, job.job.nodes, 0));
            fleet->throttled[k] = throttled_parts(kind, draw);
            if (!kind.step) {
                kind.throttled = 1 / draw.heat.speed - 1;
            } else if (!fleet->throttled[k].empty()) {
                kind.step = steps_by_placement(fleet->models[k], {}, fleet->throttled[k]).step;
            }
            draw.run(draw.step);
            if (most.node_step.peak() < draw.node_step.peak()) most = draw;
            draws.push_back(std::move(draw));
        }
    }
    static_cast<NodeDraw&>(p_) = most;
    const Watts idle = idle_nodes(fleet->power, fleet->spec);
    if (holds_jobs()) fleet->spec.power = jobs_budget(fleet->power, fleet->spec);
    s_.fleet = fleet;
    check_breaker();
    check_budget(idle);
}

}  // namespace railyard
