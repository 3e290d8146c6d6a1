#include <fmt/format.h>

#include <algorithm>
#include <numeric>

#include "models/campaign/sections.h"
#include "models/campaign/store_traffic.h"
#include "models/campaign/store_ways.h"
#include "models/campaign/world_steps.h"

namespace railyard {

namespace {

bool any_step_modelled(const Scenario& s) {
    if (!s.world) return !s.given_step;
    return std::ranges::any_of(s.world->models, [](const auto& model) { return model != nullptr; });
}

// Somebody saves to the shared store over it, comes back from there or reads data.
bool any_way_to_store(const Scenario& s) {
    if (!shares_network_with_store(s)) return false;
    if (s.world) {
        return std::ranges::any_of(s.world->spec.kinds, [](const WorldJobKind& kind) {
            return static_cast<bool>(kind.store_way);
        });
    }
    const CheckpointSpec& c = s.job.checkpoint;
    const bool reads = s.job.data && s.job.data->reads(shared_store);
    return reads || c.read_at_start.bytes > Bytes{} ||
           std::ranges::any_of(c.tiers,
                               [](const TierSpec& tier) { return tier.place == Place::storage; });
}

// What jobs without a model send takes no routes.
void warn_of_services(Section& section, const char* key, const Scenario& s) {
    if (!s.world) return;
    for (const WorldJobKind& kind : s.world->spec.kinds) {
        if (kind.step || !kind.traffic) continue;
        section.warning(key, fmt::format("has no effect on jobs of the kind '{}': their "
                                         "fabric_share is sent as on a sound network",
                                         kind.name));
    }
}

bool saves_to_peers(const Scenario& s) {
    const auto to_peers = [](const CheckpointSpec& c) {
        return std::ranges::any_of(
            c.tiers, [](const TierSpec& tier) { return tier.place == Place::peer_memory; });
    };
    if (!s.world) return to_peers(s.job.checkpoint);
    // Tiers are the same on any number of nodes.
    return std::ranges::any_of(s.world->spec.kinds, [&](const WorldJobKind& kind) {
        return kind.saving && to_peers(*kind.saving->checkpoint(1, 1));
    });
}

// What goes on as if the network were sound.
void warn_of_the_rest(Section& section, const char* key, const Scenario& s) {
    if (!any_step_modelled(s)) {
        section.warning(key, "has no effect on steps: no job has a model, whose steps are routed");
    }
    warn_of_services(section, key, s);
    if (saves_to_peers(s)) {
        section.warning(key,
                        "has no effect on copies in peer_memory: they go as over a sound network");
    }
    if (!s.world && any_way_to_store(s) && s.job.checkpoint.upload_on_links > Duration{}) {
        section.warning(key,
                        "does not change what an upload and the steps beside it cost each other: "
                        "they are as over a sound network");
    }
}

// Whether anything is routed at all. If it is not, a key that names a part is warned about or refused.
bool routed(Section& section, const char* key, const Scenario& s) {
    if (!any_step_modelled(s) && (s.fidelity != Fidelity::flow || !any_way_to_store(s))) {
        section.warning(key, "has no effect: no job has a model, whose steps would be routed");
        return false;
    }
    if (s.fidelity == Fidelity::packet) {
        section.error(key, "is not modelled for steps on packets", "run.fidelity = \"flow\"");
        return false;
    }
    if (s.fidelity == Fidelity::analytic) {
        section.warning(key,
                        "has no effect on an ideal network: run.fidelity = \"flow\" has links");
        return false;
    }
    warn_of_the_rest(section, key, s);
    return true;
}

// With its cables.
NetworkPart part_at(const Topology& t, VertexId v) {
    NetworkPart out{t.name(v), {}};
    for (const std::span<const LinkId> links : {t.up_links(v), t.down_links(v)}) {
        for (const LinkId link : links) out.cables.push_back(link / 2);
    }
    return out;
}

NetworkPart cable_part(const Topology& t, LinkId link) {
    const Link& cable = t.links()[link];
    return {fmt::format("{} to {}", t.name(cable.from), t.name(cable.to)), {link / 2}};
}

// "plane-1": the second port of each NIC, with all the switches above it. None: it is no plane's name.
std::optional<NetworkPart> plane_part(const Topology& t, const std::string& name) {
    const std::size_t planes = t.up_links(0).size();
    std::size_t plane = 0;
    while (plane < planes && name != fmt::format("plane-{}", plane)) ++plane;
    if (t.spec().kind == "custom" || planes == 1 || plane == planes) return std::nullopt;
    NetworkPart out{name, {}};
    std::vector<bool> inside(t.vertex_count(), false);
    for (VertexId v = 0; v < t.vertex_count(); ++v) {  // what is below comes first
        const auto ups = t.up_links(v);
        const bool nic = v < t.nic_count();
        if (!nic && !inside[v]) continue;
        for (const LinkId up : nic ? ups.subspan(plane, 1) : ups) {
            inside[t.links()[up].to] = true;
            out.cables.push_back(up / 2);
        }
    }
    return out;
}

constexpr int cable_kind = 0;  // each other kind is the level of its switches, plus one

}  // namespace

const std::vector<std::string> network_part_kinds = {"cable", "nic", "leaf", "spine", "core"};

void add_network_cause(Section& section, const FailureCause& cause, std::size_t kind, double speed,
                       Scenario& s) {
    if (!routed(section, "network_part", s)) return;
    const Topology& t = s.networks[0].topology;
    NetworkCause out{cause, {}, speed};
    const auto add = [&](NetworkPart part) {
        out.parts.push_back(s.network_faults.parts.size());
        s.network_faults.parts.push_back(std::move(part));
    };
    const int level = static_cast<int>(kind) - 1;
    for (VertexId v = 0; v < t.vertex_count() && kind != cable_kind; ++v) {
        if (t.level(v) == level) add(part_at(t, v));
    }
    for (LinkId link = 0; link < t.links().size() && kind == cable_kind; link += 2) {
        const Link& cable = t.links()[link];
        if (t.level(cable.from) > 0 && t.level(cable.to) > 0) add(cable_part(t, link));
    }
    if (out.parts.empty()) {
        section.error("network_part",
                      fmt::format("the compute network has no {}", network_part_kinds[kind]));
        return;
    }
    s.network_faults.causes.push_back(std::move(out));
}

namespace {

// All cables from NICs to leaves, or all between switches; their places among the parts.
std::vector<std::size_t> add_cables(bool endpoint, Scenario& s) {
    const Topology& t = s.networks[0].topology;
    const auto nodes_nics = static_cast<VertexId>(t.nodes() * t.nics_per_node());
    std::vector<std::size_t> places;
    for (LinkId link = 0; link < t.links().size(); link += 2) {
        const VertexId low = std::min(t.links()[link].from, t.links()[link].to);
        if ((t.level(low) == 0) != endpoint || (endpoint && low >= nodes_nics)) continue;
        places.push_back(s.network_faults.parts.size());
        s.network_faults.parts.push_back(cable_part(t, link));
    }
    return places;
}

// The share of its rate that a dirty cable of this kind has left.
double share_left_dirty(const Optics& optics, LinkId link, const ClusterNetwork& network) {
    const Topology& t = network.topology;
    const PacketSpec& packets = network.packets.spec;
    const Picoseconds round_trip = t.links()[link].latency + t.links()[reverse_link(link)].latency;
    return share_left(packets, rate_after_correction(optics.dirty_bit_error_rate),
                      t.line_rate(link), round_trip, unloaded_round_trip(t, packets));
}

void add_causes_of(const Optics& optics, bool endpoint, Catalogue& catalogue, Scenario& s) {
    const std::vector<std::size_t> cables = add_cables(endpoint, s);
    if (cables.empty()) return;
    const std::string whose = endpoint ? "endpoint_cable" : "switch_cable";
    const auto add = [&](const char* what, Rate rate, Duration lasts, double speed) {
        NetworkCause of{{}, cables, speed};
        of.cause.name = fmt::format("{}_{}", whose, what);
        of.cause.life.rate = rate;
        of.cause.remedy = Remedy::reset;
        of.cause.reset_time = lasts;
        if (rate.per_second > 0) s.network_faults.causes.push_back(std::move(of));
    };
    const PacketSpec& packets = s.networks[0].packets.spec;
    const auto end_job = [&](const char* what, Rate rate, Remedy remedy, Duration repair_time) {
        FailureCause of;
        of.name = fmt::format("{}_{}", whose, what);
        of.rate_per_node = {rate.per_second * real(s.networks[0].topology.nics_per_node())};
        of.remedy = remedy;
        of.repair_time = repair_time;
        of.detection =
            packets.retransmission_timeout.count() > 0
                ? std::chrono::ceil<Duration>(timeouts_take(packets, packets.retries + 1))
                : catalogue.time("detection", "nccl_ib_error", "time");
        s.causes.push_back(std::move(of));
    };
    // A NIC with other ports sends by them meanwhile, a switch by other cables.
    const bool alone = endpoint && s.networks[0].topology.up_links(0).size() == 1;
    const auto until = alone ? stands_still(catalogue, s.networks[0].packets, optics.flap_time)
                             : std::optional<Picoseconds>(optics.flap_time);
    if (until) {
        add("flap", optics.flap_rate, std::chrono::ceil<Duration>(*until), 0);
    } else {
        end_job("flap", optics.flap_rate, Remedy::restart, {});
    }
    const LinkId one = 2 * s.network_faults.parts[cables[0]].cables[0];
    add("dirty", optics.dirty_rate, optics.dirty_time,
        share_left_dirty(optics, one, s.networks[0]));
    if (!endpoint) return add("dead", optics.failure_rate, optics.repair_time, 0);
    // The job takes another node instead of waiting for a new cable.
    end_job("dead", optics.failure_rate, Remedy::replace, optics.repair_time);
}

}  // namespace

void add_optics_causes(Catalogue& catalogue, Scenario& s) {
    if (s.networks.empty() || s.networks[0].topology.vertex_count() == 0) return;
    if (s.fidelity != Fidelity::flow || !any_step_modelled(s)) return;
    const ClusterNetwork& network = s.networks[0];
    if (network.endpoint_optics) add_causes_of(*network.endpoint_optics, true, catalogue, s);
    if (network.switch_optics) add_causes_of(*network.switch_optics, false, catalogue, s);
}

void add_outage(Section& section, const InjectionSpec& spec, Scenario& s) {
    const bool cable = !spec.from.empty() || !spec.to.empty();
    if (cable == !spec.part.empty() || spec.from.empty() != spec.to.empty()) {
        section.error("",
                      "what fails is a cause, a part, or a cable with both its ends: from and to");
        return;
    }
    if (section.has("node")) section.error("node", "has no meaning without cause");
    const char* const key = cable ? "from" : "part";
    if (!routed(section, key, s) || !section.ok()) return;
    const Topology& t = s.networks[0].topology;
    NetworkFaults& faults = s.network_faults;
    if (auto plane = cable ? std::nullopt : plane_part(t, spec.part)) {
        faults.injected.push_back({spec.at, spec.duration, faults.parts.size(), spec.speed});
        faults.parts.push_back(std::move(*plane));
        return;
    }
    const std::optional<VertexId> first =
        find_place(section, key, t, cable ? spec.from : spec.part);
    const std::optional<VertexId> second = cable ? find_place(section, "to", t, spec.to) : first;
    if (!first || !second) return;
    const std::optional<LinkId> link =
        cable ? find_cable(section, "to", t, *first, *second) : std::optional<LinkId>(0);
    if (!link) return;
    if (cable) warn_of_parallel(section, t, *first, *second);
    if (!cable && *first < t.nic_count() && !spec.duration && spec.speed == 0) {
        section.warning(
            key,
            "is dead until the end, and nobody replaces it: a job that has no other way stands "
            "still",
            "duration = \"48 h\", or cause = \"nic\" and its node: that node is replaced");
    }
    faults.injected.push_back({spec.at, spec.duration, faults.parts.size(), spec.speed});
    faults.parts.push_back(cable ? cable_part(t, *link) : part_at(t, *first));
}

namespace {

// On the first of these nodes.
OverNetwork over_network_on(std::shared_ptr<const std::vector<PlacedSteps>> by_size,
                            std::vector<std::int64_t> sizes, std::vector<NodeIndex> nodes,
                            HashSeed hashes) {
    return [=](const NetworkState& broken, std::size_t size,
               std::uint32_t conditions) -> std::optional<Duration> {
        const PlacedSteps& steps = (*by_size)[size];
        const std::vector<NodeIndex> on(nodes.begin(), nodes.begin() + sizes[size]);
        const NetworkNow met{hashes, steps.routes(on, {hashes, broken})};
        if (met.broken.empty()) return Duration{};
        const Duration sound = steps.step(on, conditions, {hashes, {}}).duration();
        try {
            return std::max(Duration{}, steps.step(on, conditions, met).duration() - sound);
        } catch (const NoPath&) {
            return std::nullopt;
        }
    };
}

}  // namespace

void route_job(Scenario& s) {
    if (!s.network_faults.any() || !s.no_path.empty()) return;
    std::vector<NodeIndex> first(static_cast<std::size_t>(s.job.nodes));
    std::iota(first.begin(), first.end(), NodeIndex{0});
    if (any_way_to_store(s)) {
        // By the network's own hashes, as its rates over the sound network are.
        s.job.store_ways =
            [first, ways = store_ways(std::make_shared<Scenario>(s))](const NetworkState& broken) {
                return ways(first, {{}, broken});
            };
    }
    if (!any_step_modelled(s)) return;
    const auto by_size = std::make_shared<std::vector<PlacedSteps>>();
    std::vector<std::int64_t> sizes;
    const auto add = [&](const ParallelPlan& plan, std::int64_t nodes) {
        const auto view = std::make_shared<Scenario>(s);
        view->plan = plan;
        view->job.nodes = nodes;
        by_size->push_back(steps_by_placement(view, s.slow_parts, {}));
        sizes.push_back(nodes);
    };
    add(s.plan, s.job.nodes);
    for (const SmallerJob& size : s.job.smaller) {
        add(with_replicas(s.plan, size.replicas), size.nodes);
    }
    s.job.over_network = over_network_on(by_size, sizes, first, {});
    for (NetworkDraw& draw : s.draws) {
        const std::vector<NodeIndex> drawn(draw.nodes.begin(), draw.nodes.end());
        draw.over_network =
            over_network_on(by_size, sizes, drawn.empty() ? first : drawn, draw.hash_seed);
    }
}

}  // namespace railyard
