#include "models/fabric/packet_profile.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <map>
#include <numeric>
#include <set>
#include <tuple>

#include "models/fabric/headroom.h"
#include "models/fabric/link_failover.h"

namespace railyard {

namespace {

constexpr std::int64_t gbit = 1'000'000'000;

const DeviatingSwitch* deviation(const PacketProfile& profile, VertexId at) {
    const auto found = std::ranges::find_if(profile.deviating,
                                            [&](const DeviatingSwitch& d) { return d.at == at; });
    return found == profile.deviating.end() ? nullptr : &*found;
}

Bytes buffer_of(Catalogue& catalogue, const Topology& topology, const PacketProfile& profile,
                VertexId at) {
    if (profile.buffer) return *profile.buffer;
    const std::string& model = topology.switch_model(at).name;
    return catalogue.data("switch", model, "buffer");
}

// The shipped headroom of the shortest listed cable that is long enough.
std::optional<Bytes> shipped_headroom(Catalogue& catalogue, const std::string& model,
                                      Bandwidth rate, Metres length) {
    const std::string shipped = catalogue.built_in_root("switch", model);
    std::optional<Bytes> best;
    double best_length = 0;
    for (const std::string& name : Catalogue::names("headroom")) {
        if (catalogue.text("headroom", name, "switch") != shipped) continue;
        if (catalogue.bandwidth("headroom", name, "speed") != rate) continue;
        const double listed = catalogue.metres("headroom", name, "cable_length").value;
        if (listed < length.value || (best && listed >= best_length)) continue;
        best = catalogue.data("headroom", name, "xoff");
        best_length = listed;
    }
    return best;
}

// What the link of this length needs.
Bytes headroom_at(Catalogue& catalogue, const Topology& topology, LinkId link, Metres length) {
    const SwitchModel& model = topology.switch_model(topology.links()[link].to);
    const Bandwidth rate = topology.line_rate(link);
    const std::int64_t speed = rate.bits_per_second() / gbit;
    if (catalogue.has("switch", model.name, "cell") &&
        catalogue.has("headroom_formula", "", fmt::format("pause_quanta_{}g", speed))) {
        constexpr std::int64_t eight_lane_speed = 800;
        return sonic_headroom(catalogue, model.name, rate, length, speed == eight_lane_speed).xoff;
    }
    if (const auto shipped = shipped_headroom(catalogue, model.name, rate, length)) return *shipped;
    // Beside the cable's content, a full packet at either end.
    const Bytes mtu = catalogue.data("headroom_formula", "", "port_mtu");
    return headroom_by_delay(catalogue, rate, topology.latency_at(link, length)) +
           Bytes::of(2 * mtu.count());
}

// Headroom is the same wherever switch, rate and cable are: asked for once each.
class Headrooms {
  public:
    // `site_distance`: as if buildings were so far from each other.
    Headrooms(Catalogue& catalogue, const Topology& topology,
              std::optional<Metres> site_distance = std::nullopt)
        : catalogue_(catalogue), topology_(topology), site_distance_(site_distance) {}

    Bytes needed(LinkId link) {
        const VertexId at = topology_.links()[link].to;
        const Metres length = site_distance_ && topology_.between_sites(link)
                                  ? *site_distance_
                                  : topology_.cable_length(link);
        const auto key = std::tuple(topology_.switch_model(at).name,
                                    topology_.line_rate(link).bits_per_second(), length.value);
        const auto known = known_.find(key);
        if (known != known_.end()) return known->second;
        return known_.emplace(key, headroom_at(catalogue_, topology_, link, length)).first->second;
    }
    // What the profile gives.
    Bytes given(const PacketProfile& profile, LinkId link) {
        const VertexId at = topology_.links()[link].to;
        if (!profile.has_pfc(at) || !topology_.pauses(link)) return {};
        const DeviatingSwitch* d = deviation(profile, at);
        if (d != nullptr && d->headroom) return *d->headroom;
        return profile.headroom ? *profile.headroom : needed(link);
    }

  private:
    Catalogue& catalogue_;
    const Topology& topology_;
    std::optional<Metres> site_distance_;
    std::map<std::tuple<std::string, std::int64_t, double>, Bytes> known_;
};

// The links that end at a switch.
std::vector<LinkId> links_into(const Topology& topology, VertexId at) {
    std::vector<LinkId> links;
    for (const auto& out : {topology.up_links(at), topology.down_links(at)}) {
        for (const LinkId l : out) links.push_back(reverse_link(l));
    }
    return links;
}

}  // namespace

const std::vector<std::string> flow_control_names = {"none", "pfc", "credits"};

EcnProfile EcnRule::at(Bandwidth rate) const {
    const double scale = per_25_gbit ? real(rate.bits_per_second()) / (25.0 * gbit) : 1;
    return {static_cast<std::int64_t>(kmin_bytes * scale),
            static_cast<std::int64_t>(kmax_bytes * scale), pmax, beyond};
}

EcnRule read_ecn(Catalogue& catalogue, const std::string& name) {
    EcnRule rule;
    rule.per_25_gbit = catalogue.has("ecn", name, "kmin_per_25_gbit");
    const char* suffix = rule.per_25_gbit ? "_per_25_gbit" : "";
    const auto threshold = [&](const char* key) {
        return real(catalogue.data("ecn", name, fmt::format("{}{}", key, suffix)).count());
    };
    rule.kmin_bytes = threshold("kmin");
    rule.kmax_bytes = threshold("kmax");
    rule.pmax = catalogue.number("ecn", name, "pmax");
    return rule;
}

bool PacketProfile::has_pfc(VertexId at) const {
    const DeviatingSwitch* d = deviation(*this, at);
    return flow_control == FlowControl::pfc && (d == nullptr || d->pfc);
}

std::uint8_t PacketProfile::pausing(VertexId at) const {
    if (!has_pfc(at)) return 0;
    const DeviatingSwitch* d = deviation(*this, at);
    unsigned mask = 0;
    for (std::size_t c = 0; c < spec.classes.size(); ++c) {
        if (spec.classes[c].flow_control != FlowControl::pfc) continue;
        const bool its = d == nullptr || !d->pfc_priority || *d->pfc_priority == priorities[c];
        mask |= unsigned{its} << c;
    }
    return static_cast<std::uint8_t>(mask);
}

std::int64_t PacketProfile::headrooms(VertexId at) const {
    const DeviatingSwitch* d = deviation(*this, at);
    if (!has_pfc(at)) return 0;
    return d != nullptr && d->pfc_priority ? 1 : std::popcount(pausing(at));
}

Bytes needed_headroom(Catalogue& catalogue, const Topology& topology, LinkId link) {
    return headroom_at(catalogue, topology, link, topology.cable_length(link));
}

Bytes lane_buffer(const Topology& topology, const PacketProfile& profile, LinkId link) {
    const VertexId at = topology.links()[link].to;
    if (topology.level(at) == 0) return profile.vl_buffer;
    const SwitchModel& model = topology.switch_model(at);
    const std::int64_t in_cage = model.ports_at(topology.line_rate(link)) / model.ports;
    const CreditSpec& credits = profile.spec.credits;
    const Bytes packet =
        Bytes::of(credits.blocks(profile.spec.payload_bytes + profile.spec.header_bytes) *
                  credits.block_bytes);
    const Bytes part = Bytes::of(profile.vl_buffer.count() / std::max<std::int64_t>(1, in_cage));
    return std::min(profile.vl_buffer, std::max(part, packet));
}

namespace {

// What a switch's ports set apart: reserves or lane buffers, and headroom.
std::int64_t set_apart(const Topology& topology, const PacketProfile& profile, VertexId at,
                       Headrooms& headrooms) {
    const auto classes = static_cast<std::int64_t>(profile.spec.classes.size());
    const bool credits = profile.flow_control == FlowControl::credits;
    std::int64_t of_ports = 0;
    std::int64_t headroom = 0;
    for (const LinkId l : links_into(topology, at)) {
        of_ports += classes * (credits ? lane_buffer(topology, profile, l).count()
                                       : profile.spec.buffer.reserve_bytes);
        headroom += profile.headrooms(at) * headrooms.given(profile, l).count();
    }
    return of_ports + headroom / profile.spec.buffer.headroom_oversubscription;
}

}  // namespace

std::optional<Metres> site_distance_max(Catalogue& catalogue, const Topology& topology,
                                        const PacketProfile& profile, VertexId at) {
    constexpr double step_m = 100;
    const std::int64_t buffer = buffer_of(catalogue, topology, profile, at).count();
    std::int64_t fits = -1;
    auto beyond = static_cast<std::int64_t>(topology.spec().site_distance.value / step_m) + 1;
    while (beyond - fits > 1) {
        const std::int64_t steps = fits + (beyond - fits) / 2;
        Headrooms headrooms(catalogue, topology, Metres{real(steps) * step_m});
        (set_apart(topology, profile, at, headrooms) < buffer ? fits : beyond) = steps;
    }
    if (fits <= 0) return std::nullopt;
    return Metres{real(fits) * step_m};
}

std::vector<BufferPlan> plan_buffers(Catalogue& catalogue, const Topology& topology,
                                     const PacketProfile& profile) {
    Headrooms headrooms(catalogue, topology);
    std::vector<BufferPlan> plans;
    std::set<std::tuple<std::string, const DeviatingSwitch*, std::int64_t, std::int64_t,
                        std::int64_t, std::int64_t, std::int64_t, std::int64_t>>
        known;
    for (auto v = static_cast<VertexId>(topology.nic_count()); v < topology.vertex_count(); ++v) {
        BufferPlan plan;
        plan.at = v;
        plan.buffer = buffer_of(catalogue, topology, profile, v);
        const std::int64_t reserved = set_apart(topology, profile, v, headrooms);
        std::int64_t least_left = INT64_MAX;
        Bandwidth fastest;
        for (const LinkId l : links_into(topology, v)) {
            const Bytes given = headrooms.given(profile, l);
            fastest = std::max(fastest, topology.line_rate(l));
            if (!profile.has_pfc(v) || !topology.pauses(l)) continue;
            const Bytes need = headrooms.needed(l);
            if (given.count() - need.count() >= least_left) continue;
            least_left = given.count() - need.count();
            plan.headroom = given;
            plan.headroom_need = need;
        }
        plan.reserved = Bytes::of(reserved);
        const std::int64_t pool = plan.buffer.count() - reserved;
        if (profile.has_pfc(v) && pool > 0) {
            const double alpha = profile.spec.buffer.alpha;
            plan.xoff_threshold =
                Bytes::of(static_cast<std::int64_t>(alpha * real(pool) / (1 + alpha)));
        }
        const DeviatingSwitch* d = deviation(profile, v);
        if (profile.ecn && (d == nullptr || d->ecn)) plan.ecn = profile.ecn->at(fastest);
        const auto key = std::tuple(topology.switch_model(v).name, d, plan.buffer.count(), reserved,
                                    plan.headroom.count(), plan.headroom_need.count(),
                                    plan.ecn.kmin_bytes, plan.ecn.kmax_bytes);
        if (known.insert(key).second) plans.push_back(plan);
    }
    return plans;
}

PacketNetwork packet_network(Catalogue& catalogue, const Topology& topology,
                             const PacketProfile& profile) {
    PacketNetwork network = PacketNetwork::of(topology, 0);
    for (auto v = static_cast<VertexId>(topology.nic_count()); v < topology.vertex_count(); ++v) {
        network.buffer_bytes[v] = buffer_of(catalogue, topology, profile, v).count();
    }
    Headrooms headrooms(catalogue, topology);
    // What a switch sets apart for priorities that carry nothing is out of reach.
    std::vector<std::int64_t> idle_headroom(network.buffer_bytes.size());
    for (LinkId l = 0; l < network.links.size(); ++l) {
        PacketLink& link = network.links[l];
        // Receivers that give credits see their own last link: nothing is marked there.
        const bool receiver_knows = profile.congestion.ends_with("rccc") && network.is_nic(link.to);
        if (profile.ecn && !network.is_nic(link.from) && !receiver_knows) {
            const DeviatingSwitch* d = deviation(profile, link.from);
            if (d == nullptr || d->ecn) link.ecn = profile.ecn->at(topology.line_rate(l));
        }
        link.vl_buffer_bytes = lane_buffer(topology, profile, l).count();
        if (network.is_nic(link.to)) continue;
        link.headroom_bytes = headrooms.given(profile, l).count();
        link.pausing = topology.pauses(l) ? profile.pausing(link.to) : std::uint8_t{0};
        const std::int64_t idle =
            profile.headrooms(link.to) - std::popcount(profile.pausing(link.to));
        idle_headroom[link.to] += idle * link.headroom_bytes;
    }
    for (VertexId v = 0; v < idle_headroom.size(); ++v) {
        network.buffer_bytes[v] -= idle_headroom[v] / profile.spec.buffer.headroom_oversubscription;
    }
    return network;
}

Picoseconds unloaded_round_trip(const Topology& topology, const PacketSpec& spec) {
    const auto& links = topology.links();
    const auto ps = [](std::int64_t bytes, Bandwidth rate) {
        return static_cast<std::int64_t>(real(bytes) / rate.bytes_per_second() * 1e12);
    };
    // Up to the highest level and down again, and back, by the slowest link from each level: there and back
    // a packet one way, an ACK the other.
    std::vector<std::int64_t> slowest(static_cast<std::size_t>(topology.levels()) + 1);
    const std::int64_t packet_bytes = spec.payload_bytes + spec.header_bytes;
    for (VertexId v = 0; v < topology.vertex_count(); ++v) {
        for (const LinkId up : topology.up_links(v)) {
            const std::int64_t latency =
                links[up].latency.count() + links[reverse_link(up)].latency.count();
            const Bandwidth rate = topology.line_rate(up);
            std::int64_t& of_level = slowest[topology.level(v)];
            of_level = std::max(of_level,
                                2 * (latency + ps(packet_bytes, rate) + ps(spec.ack_bytes, rate)));
        }
    }
    // A core stands in one of two buildings: a long cable on one side of it, a short one on the other.
    if (topology.spec().sites == 2) {
        const LinkId down =
            topology.down_links(static_cast<VertexId>(topology.vertex_count() - 1))[0];
        const Picoseconds spared = topology.latency_at(down, topology.spec().site_distance) -
                                   topology.latency_at(down, topology.spec().switch_cable);
        slowest[static_cast<std::size_t>(topology.levels()) - 1] -= 2 * spared.count();
    }
    return Picoseconds(std::accumulate(slowest.begin(), slowest.end(), std::int64_t{0}));
}

Picoseconds timeouts_take(const PacketSpec& spec, std::int64_t timeouts) {
    Picoseconds all{};
    Picoseconds next = spec.retransmission_timeout;
    for (std::int64_t i = 0; i < timeouts; ++i) {
        all += next;
        if (spec.recovery == Recovery::unordered) next *= spec.timeout_growth;
    }
    return all;
}

std::optional<Picoseconds> stands_still(Catalogue& catalogue, const PacketProfile& profile,
                                        Picoseconds outage) {
    const PacketSpec& spec = profile.spec;
    if (spec.retransmission_timeout.count() == 0) return outage;
    const bool infiniband = profile.flow_control == FlowControl::credits;
    const Picoseconds back = outage + read_failover_times(catalogue, infiniband).taken_up(outage);
    for (std::int64_t timeouts = 1; timeouts <= spec.retries; ++timeouts) {
        const Picoseconds tried = timeouts_take(spec, timeouts);
        if (tried >= back) return tried;
    }
    return std::nullopt;
}

void set_up_ultra_ethernet(Catalogue& catalogue, Bandwidth line, Picoseconds round_trip,
                           PacketProfile& profile) {
    PacketSpec& spec = profile.spec;
    const std::int64_t packet = spec.payload_bytes + spec.header_bytes;
    const double product = real(round_trip.count()) * 1e-12 * line.bytes_per_second();
    const auto products = [&](const char* key) {  // in whole packets
        const double bytes = catalogue.number("ultra_ethernet", "", key) * product;
        return static_cast<std::int64_t>(std::ceil(bytes / real(packet))) * packet;
    };
    spec.recovery = Recovery::unordered;
    spec.ack_bytes_due = catalogue.data("ultra_ethernet", "", "ack_bytes_due").count();
    if (spec.lossy_queue_bytes == INT64_MAX) {
        spec.lossy_queue_bytes = products(spec.trimming.enabled ? "queue_trimming" : "queue");
    }
    EcnRule marks;
    marks.kmin_bytes = real(products("ecn_kmin"));
    marks.kmax_bytes = real(products("ecn_kmax"));
    marks.pmax = 1;
    profile.ecn = marks;
    const double drain_ps = real(spec.lossy_queue_bytes) / line.bytes_per_second() *
                            catalogue.number("ultra_ethernet", "", "timeout_queues") * 1e12;
    spec.retransmission_timeout = catalogue.time("ultra_ethernet", "", "timeout_base") +
                                  Picoseconds(static_cast<std::int64_t>(drain_ps));
    spec.retries = catalogue.integer("ultra_ethernet", "", "retries");
    spec.timeout_growth = catalogue.integer("ultra_ethernet", "", "timeout_growth");
    spec.request_gap = round_trip;
    if (OrderLossSpec& by_order = spec.order_loss; by_order.enabled) {
        const double target = catalogue.number(
            "nscc", "", spec.trimming.enabled ? "target_delay_trimming" : "target_delay");
        by_order.windows = catalogue.number("ultra_ethernet", "", "order_windows");
        by_order.packets_least = catalogue.integer("ultra_ethernet", "", "order_packets");
        by_order.window_max_bytes =
            std::llround(catalogue.number("nscc", "", "window_max") * product);
        by_order.round_trip = round_trip;
        by_order.target = Picoseconds(std::llround(target * real(round_trip.count())));
        by_order.probe_busy = catalogue.number("ultra_ethernet", "", "probe_busy");
        by_order.probe_again = catalogue.number("ultra_ethernet", "", "probe_again");
    }
    // What all ports send until a packet times out, and a largest window on either side of it.
    const double open =
        real(profile.ports) *
        (real(spec.retransmission_timeout.count()) * 1e-12 * line.bytes_per_second() + 4 * product);
    constexpr double packets_max = 1 << 30;
    spec.recovery_window = std::bit_ceil(
        static_cast<std::uint32_t>(std::clamp(open / real(packet), 64.0, packets_max)));
}

std::unique_ptr<Congestion> make_congestion(Catalogue& catalogue, const Topology& topology,
                                            const PacketProfile& profile) {
    CongestionGiven given = {profile.parameters,
                             topology.line_rate(topology.up_links(0)[0]) * profile.ports,
                             unloaded_round_trip(topology, profile.spec),
                             profile.spec.trimming.enabled,
                             profile.oversubscribed,
                             profile.spec.seed,
                             {},
                             {}};
    if (profile.cct) {
        given.cct_timer = std::chrono::duration_cast<Duration>(profile.cct->timer);
        given.cct_limit = profile.cct->limit;
    }
    return congestion_kind(profile.congestion).make(catalogue, given);
}

}  // namespace railyard
