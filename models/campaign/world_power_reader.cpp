// Power under many jobs: what of [power] and [facility] they take, and what their nodes draw.

#include <fmt/format.h>

#include "models/campaign/power_reader.h"
#include "models/campaign/world.h"
#include "models/campaign/world_steps.h"
#include "sim/integers.h"

namespace railyard {

void PowerReader::check_world() {
    if (s_.world->nodes.size() < 2) return;
    const char* one = "speaks of one kind of nodes, and the [[node_group]]s are several";
    refuse_keys(sections_.power,
                {"gpu_cap", "cap_exponent", "supplies", "supply_rating", "redundancy"}, one);
    if (throttles()) refuse_keys(sections_.power, {"budget"}, one);
    refuse_keys(sections_.facility,
                {"cooling", "inlet_temperature", "thermal_resistance", "throttle_temperature",
                 "rack_power_max", "breaker", "pump"},
                one);
}

NodePower PowerReader::node_power(const Node& node) {
    Catalogue& c = p_.given ? catalogue_ : aside_.catalogue;
    const Watts gpu_max = c.power("gpu", node.gpu.id, "max_power");
    const double liquid = read_cooling(c, cooling_of_node(c, node.name), gpu_max).liquid_fraction;
    return read_node_power(c, node_power_spec(node), liquid);
}

// What heat slows of a kind's jobs, on nodes that are all of one kind.
std::vector<PartFault> PowerReader::throttled_parts(const WorldJobKind& kind, NodeDraw& draw) {
    if (!p_.facility_given && !throttles()) return {};
    draw.heat = settled(draw.node.gpu, draw.step);
    const std::vector<PartFault> parts = slowed_parts(draw.heat, "the GPUs of " + kind.name);
    if (!parts.empty() && s_.world->nodes.size() > 1) {
        sections_.facility.error("inlet_temperature",
                                 fmt::format("the GPUs of {} throttle: what that takes is not "
                                             "modelled for [[node_group]]s of several kinds",
                                             kind.name),
                                 "a cooler inlet, or nodes of one kind");
    }
    return parts;
}

namespace {

// So long, and a save so often, with the slower steps.
void throttle(std::size_t k, const HeatState& heat, WorldScenario& world) {
    WorldJobKind& kind = world.spec.kinds[k];
    Duration step;
    if (kind.step) {
        place_steps(world.models[k], {}, world.throttled[k], kind);
        step = usual_step(kind, world.models[k]->job.nodes, 0).duration();
        const JobSource& source = world.sources[k];
        if (source.like.timed) kind.steps = ceil_div(source.mean.count(), step.count());
    } else {
        kind.throttled = 1 / heat.speed - 1;
        step = world.spec.sound_step(kind);
    }
    if (kind.checkpoint_steps > 0 && kind.checkpoint_training > Duration{}) {
        kind.checkpoint_steps = ceil_div(kind.checkpoint_training.count(), step.count());
    }
}

// Beside a step of usual_step().
Duration idle_for_data(const WorldSpec& spec, const WorldJobKind& kind, std::int64_t nodes) {
    if (kind.step) return usual_step(kind, nodes, 0).data_wait;
    if (kind.data_wait == Duration{}) return {};
    const double tick_s = seconds(spec.tick(kind));
    const Duration computing = from_seconds(tick_s * (1 + kind.duty * kind.throttled));
    return from_seconds(seconds(wait_for_batch(kind.late(computing))) / tick_s);
}

}  // namespace

// The cluster's own draw is that of the jobs that draw most.
void PowerReader::finish_world() {
    const auto world = std::make_shared<WorldScenario>(*s_.world);
    world->power.work_factor = 1 / p_.node.gpu.speed_at(p_.node.gpu.cap);
    NodeDraw most;
    for (const Node& node : world->nodes) {
        std::vector<NodeDraw>& draws = world->power.draws.emplace_back();
        for (std::size_t k = 0; k < world->spec.kinds.size(); ++k) {
            WorldJobKind& kind = world->spec.kinds[k];
            const Scenario& job = world->models[k] ? *world->models[k] : s_;
            NodeDraw draw;
            draw.node = world->nodes.size() == 1 ? p_.node : node_power(node);
            draw.repairing = p_.repairing;
            StepTime at_hand = usual_step(kind, job.job.nodes, 0);
            if (kind.step) at_hand.data_wait = {};
            draw.step = gpu_step(job, at_hand);
            world->throttled[k] = throttled_parts(kind, draw);
            if (!world->throttled[k].empty()) throttle(k, draw.heat, *world);
            draw.step.idle += idle_for_data(world->spec, kind, job.job.nodes);
            draw.run(draw.step);
            if (most.node_step.peak() < draw.node_step.peak()) most = draw;
            draws.push_back(std::move(draw));
        }
    }
    static_cast<NodeDraw&>(p_) = most;
    const Watts idle = idle_nodes(world->power, world->spec);
    if (holds_jobs()) world->spec.power = jobs_budget(world->power, world->spec);
    s_.world = world;
    check_breaker();
    check_budget(idle);
}

}  // namespace railyard
