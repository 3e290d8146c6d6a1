#include "models/fabric/packet_reader.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <bit>
#include <iterator>
#include <set>

#include "models/fabric/packet_limits.h"
#include "models/fabric/places.h"
#include "sim/text.h"

namespace railyard {

namespace {

const std::vector<std::string> action_names = {"none", "drop", "forward", "alert"};

const std::vector<std::string> recovery_names = {"go_back_n", "selective_repeat"};

// No headroom would mean no PFC.
void refuse_none(Section& section, std::optional<Bytes>& headroom, const char* help) {
    if (!headroom || *headroom > Bytes{}) return;
    section.error("headroom", "expected more than zero: what arrives after XOFF needs room", help);
    headroom.reset();
}

std::vector<std::string> with_none(std::vector<std::string> names) {
    names.insert(names.begin(), "none");
    return names;
}

// What a network does where the scenario does not say, in the order of NetworkKind.
struct Habits {
    FlowControl flow_control;
    const char* congestion_control;
};
constexpr Habits habits[] = {{FlowControl::credits, "none"},
                             {FlowControl::pfc, "dcqcn"},
                             {FlowControl::none, "tcp"},
                             {FlowControl::none, "nscc"},
                             {FlowControl::none, "srd"}};

// "leaf-0 (sn5400_spectrum4), like spine-0": one message for all kinds of switches that have a problem.
std::string switches_text(const Topology& topology, const std::vector<BufferPlan>& plans) {
    const VertexId first = plans[0].at;
    std::string text =
        fmt::format("{} ({})", topology.name(first), topology.switch_model(first).name);
    if (plans.size() > 1) text += fmt::format(", like {}", topology.name(plans[1].at));
    if (plans.size() > 2) text += fmt::format(" and {} more", plans.size() - 2);
    return text;
}

// Credits come back after a round trip, so a long cable carries a lane's buffer in each.
void warn_of_far_sites(Section& network, const Topology& topology, const PacketProfile& p) {
    for (LinkId l = 0; l < topology.links().size(); ++l) {
        if (!topology.between_sites(l)) continue;
        const Picoseconds back =
            topology.links()[l].latency + topology.links()[reverse_link(l)].latency;
        const Bandwidth line = topology.line_rate(l);
        const Bytes vl_buffer = lane_buffer(topology, p, l);
        const auto bits = real(vl_buffer.count()) * 8;
        const double full_s = bits / real(line.bits_per_second());
        const double round_s = real(back.count()) * 1e-12;
        if (full_s >= round_s) return;
        const double km = topology.spec().site_distance.value / 1000;
        const double others_s = round_s - 2 * km * 1000 * topology.spec().propagation_s_per_m;
        const double fills_km =
            std::max(0.0, full_s - others_s) / 2 / topology.spec().propagation_s_per_m / 1000;
        network.section("sites").warning(
            "distance",
            fmt::format("credits come back after {}, so the {} of a lane's buffer let {} of {} "
                        "through a cable of {:g} km",
                        to_text(std::chrono::duration_cast<Duration>(back)), to_text(vl_buffer),
                        line_rate_text(line * (full_s / round_s)), line_rate_text(line), km),
            fmt::format("a cable of up to {:.3g} km is filled", fills_km));
        return;
    }
}

}  // namespace

PacketKeys::PacketKeys(Section& network, NetworkKind kind, std::optional<Routing> routing)
    : network_(network),
      kind_(kind),
      flow_control_(word_of(habits, kind).flow_control),
      routing_given_(routing.has_value()),
      routing_(routing.value_or(Routing::ecmp)) {
    network.read("mtu", mtu_, "Payload of a full packet", {Bound::positive, "from the catalogue"});
    const bool of_queue_pairs = kind == NetworkKind::infiniband || kind == NetworkKind::roce;
    constexpr std::int64_t path_mtus[] = {256, 512, 1024, 2048, 4096};
    const std::int64_t mtu_max = of_queue_pairs ? path_mtus[4] : 65000;  // with headers in 16 bits
    if (mtu_ && mtu_->count() > mtu_max) {
        network.error(
            "mtu", fmt::format("expected at most {} B, found {} B", mtu_max, mtu_->count()),
            of_queue_pairs ? "the path MTU of queue pairs; an Ethernet MTU of 9000 B carries 4096 B"
                           : "");
        mtu_ = Bytes::of(mtu_max);
    }
    if (of_queue_pairs && mtu_ &&
        std::ranges::find(path_mtus, mtu_->count()) == std::end(path_mtus)) {
        network.warning("mtu",
                        fmt::format("{} B is no path MTU of queue pairs, which have 256, 512, "
                                    "1024, 2048 or 4096 B",
                                    mtu_->count()));
    }
    network.read("cut_through", cut_through_,
                 "Switches send a packet on when its header is there, where the way out is no "
                 "faster than the way in; false: when the whole packet is there");
    network.read("link_level_retry", link_level_retry_,
                 "A link sends again what came with wrong bits (InfiniBand and Ultra Ethernet, on "
                 "switches that can); false: it is lost, and the transport finds that");
    given_ = network.has("mtu") || network.has("cut_through") || network.has("link_level_retry") ||
             network_.section("sites").has("lossless");
    const auto table = [&](const char* key) {
        Section section = network.section(key);
        given_ = given_ || section.present();
        return section;
    };
    read_buffer(buffer_.emplace(table("buffer")));
    read_pfc(pfc_.emplace(table("pfc")));
    read_ecn_keys(ecn_.emplace(table("ecn")));
    read_congestion(congestion_.emplace(table("congestion")));
    read_watchdog_keys(watchdog_.emplace(table("watchdog")));
    read_transport(transport_.emplace(table("transport")));
    read_credit_keys(credits_.emplace(table("credits")));
    read_trimming(trimming_.emplace(table("trimming")));
    read_switches(network);
}

void PacketKeys::read_buffer(Section& buffer) {
    buffer.read("size", buffer_size_, "Packet buffer of each switch",
                {Bound::positive, "the switch's, from the catalogue"});
    buffer.read("alpha", alpha_,
                "Dynamic threshold: what one queue may take of what is left of the shared pool",
                {Bound::positive, "from the catalogue"});
    buffer.read("reserve", reserve_,
                "What each (port, class) has before it takes from the shared pool",
                {Bound::non_negative, "from the catalogue"});
    buffer.read("queue", queue_, "What an output queue holds at most (ultra_ethernet)",
                {Bound::positive, "bandwidth-delay products of the network, from the catalogue"});
    keep_within(buffer, "queue", queue_, packet_buffer_max);
    keep_within(buffer, "size", buffer_size_, packet_buffer_max);
    keep_within(buffer, "reserve", reserve_, packet_buffer_max);
    constexpr double alpha_max = 1024;
    if (alpha_ && (*alpha_ < 1 / alpha_max || *alpha_ > alpha_max)) {
        buffer.error("alpha", fmt::format("expected 1/1024 to 1024, found {}", *alpha_),
                     "2^n for a dynamic threshold of n");
        alpha_.reset();
    }
    buffer.finish();
}

void PacketKeys::read_pfc(Section& pfc) {
    pfc.read("enabled", pfc_enabled_, "false: what finds no room is lost");
    read_priority(pfc, "priority", priority_, "IEEE 802.1p priority of the job's packets, 0 to 7");
    pfc.read(
        "headroom", headroom_, "What each lossless (port, class) has for what arrives after XOFF",
        {Bound::non_negative, "what the switch, the rate and the cable need, by SONiC's formula"});
    keep_within(pfc, "headroom", headroom_, packet_buffer_max);
    refuse_none(pfc, headroom_, "enabled = false is a network without pauses");
    pfc.read("headroom_oversubscription", headroom_oversubscription_,
             "The headrooms of a switch over what it sets apart for all of them", {Bound::count});
    keep_within(pfc, "headroom_oversubscription", headroom_oversubscription_, std::int64_t{1000});
    pfc.read("resume_offset", resume_offset_,
             "How far below the threshold of its XOFF a (port, class) must fall for XON",
             {Bound::non_negative, "from the catalogue"});
    keep_within(pfc, "resume_offset", resume_offset_, packet_buffer_max);
    pfc.finish();
}

void PacketKeys::read_ecn_keys(Section& ecn) {
    ecn_profile_ = "alibaba_per_25g";
    ecn.name("profile", ecn_profile_, with_none(Catalogue::names("ecn")), "an ECN profile",
             "Marking thresholds of the switches' queues",
             {.otherwise = "alibaba_per_25g; on Ultra Ethernet and EFA thresholds of their own"});
    ecn.read("kmin", kmin_, "Queue below which nothing is marked",
             {Bound::non_negative, "the profile's"});
    ecn.read("kmax", kmax_, "Queue above which everything is marked",
             {Bound::non_negative, "the profile's"});
    ecn.read("pmax", pmax_, "Share that is marked just below kmax",
             {Bound::fraction, "the profile's"});
    keep_within(ecn, "kmin", kmin_, packet_buffer_max);
    keep_within(ecn, "kmax", kmax_, packet_buffer_max);
    ecn.finish();
}

void PacketKeys::read_congestion(Section& congestion) {
    control_ = word_of(habits, kind_).congestion_control;
    congestion.name("control", control_, names_of(congestion_kinds()), "a congestion control",
                    "What senders make of marks and acknowledgements",
                    {.otherwise = "dcqcn on RoCE, none on InfiniBand, tcp on plain Ethernet, nscc "
                                  "on Ultra Ethernet, srd on EFA"});
    parameters_ = "dcqcn_hpcc_repo_vendor";
    congestion.name("parameters", parameters_, Catalogue::names("dcqcn"),
                    "a set of DCQCN parameters", "DCQCN's parameters");
    congestion.read("cnp_interval", cnp_interval_, "Between two CNPs of one flow, at least",
                    {Bound::non_negative, "the parameter set's"});
    keep_within(congestion, "cnp_interval", cnp_interval_, packet_time_max);
    congestion.read("cnp_delay", cnp_delay_,
                    "From a marked packet to its CNP, which is then a packet of its own; 0: the "
                    "acknowledgement says it",
                    {Bound::non_negative});
    keep_within(congestion, "cnp_delay", cnp_delay_, packet_time_max);
    read_cct(congestion);
    congestion.read("oversubscribed_cc", oversubscribed_cc_,
                    "true: receivers give less credit while switches before the last trim or mark "
                    "(rccc, nscc_rccc)",
                    {.otherwise = "where the network has less bandwidth up than down"});
    congestion.finish();
}

void PacketKeys::read_cct(Section& congestion) {
    congestion.read(
        "cct_timer", cct_timer_,
        "After so long a sender goes back by one place in its table of gaps (infiniband_cc)",
        {Bound::non_negative, "from the catalogue"});
    keep_within(congestion, "cct_timer", cct_timer_, packet_time_max);
    constexpr Duration unit{1024};
    if (cct_timer_ && *cct_timer_ < unit) {
        congestion.error(
            "cct_timer",
            fmt::format("expected 1.024 us, its unit, or more, found {}{}", to_text(*cct_timer_),
                        cct_timer_->count() > 0
                            ? ""
                            : ": a sender that was slowed down would never recover"),
            "a manager's usual choice is 20 us to 500 us");
        cct_timer_.reset();
    }
    congestion.read("cct_limit", cct_limit_, "Last place of that table (infiniband_cc)",
                    {Bound::count, "from the catalogue"});
    constexpr std::int64_t limit_max = 16383;  // 14 bits
    keep_within(congestion, "cct_limit", cct_limit_, limit_max);
}

void PacketKeys::read_watchdog_keys(Section& watchdog) {
    watchdog_profile_ = "sonic";
    watchdog.name("profile", watchdog_profile_, Catalogue::names("pfc_watchdog"),
                  "a watchdog profile", "The switches' PFC watchdog");
    watchdog.read("poll", poll_, "How often it looks", {Bound::positive, "the profile's"});
    watchdog.read("detection", detection_, "How long a queue is paused before it acts",
                  {Bound::positive, "the profile's"});
    watchdog.read("restoration", restoration_, "How long without a pause before it stops acting",
                  {Bound::non_negative, "the profile's"});
    keep_within(watchdog, "poll", poll_, packet_time_max);
    keep_within(watchdog, "detection", detection_, packet_time_max);
    keep_within(watchdog, "restoration", restoration_, packet_time_max);
    watchdog.read("polls_together", polls_together_,
                  "All switches poll at the same instants; false: each at some time of its own");
    watchdog.read("drops_arrivals", drops_arrivals_,
                  "action = \"drop\" also drops what comes in by that port in that class");
    std::string action;
    watchdog.name("action", action, action_names, "an action",
                  "What it does with the queue: none, drop, forward or alert",
                  {.otherwise = "the profile's"});
    const auto at = std::ranges::find(action_names, action);
    if (at != action_names.end()) action_ = static_cast<int>(at - action_names.begin());
    watchdog.finish();
}

namespace {

// A count that InfiniBand keeps in three bits, 0 to 7, in the state that `hint` names. Without effect it may
// be any.
void read_three_bits(Section& section, const char* key, std::optional<std::int64_t>& count,
                     const char* doc, const char* otherwise, const char* hint,
                     bool has_effect = true) {
    constexpr std::int64_t count_max = 7;
    section.read(key, count, doc, {Bound::non_negative, otherwise});
    if (!count || *count <= count_max || !has_effect) return;
    section.error(key, fmt::format("expected 0 to {}, found {}", count_max, *count), hint);
    count.reset();
}

}  // namespace

void PacketKeys::read_transport(Section& transport) {
    transport.read("timeout", timeout_,
                   "Exponent t of the retransmission timeout, 4.096 us x 2^t (NCCL_IB_TIMEOUT)",
                   {Bound::positive, "NCCL's, from the catalogue"});
    constexpr std::int64_t timeout_max = 31;
    if (timeout_ && *timeout_ > timeout_max) {
        transport.error("timeout",
                        fmt::format("expected 1 to {}, found {}", timeout_max, *timeout_));
        timeout_.reset();
    }
    read_three_bits(transport, "retries", retries_,
                    "Timeouts without progress before the connection fails (NCCL_IB_RETRY_CNT)",
                    "NCCL's, from the catalogue", "three bits of the queue pair's state",
                    kind_ != NetworkKind::tcp);
    transport.read("ack_every", ack_every_, "Packets that one acknowledgement covers",
                   {Bound::count, "from the catalogue"});
    int recovery = 0;
    transport.choose("recovery", recovery, recovery_names,
                     "What is sent again after a loss; by default what is missing where packets "
                     "may overtake each other, and with TCP");
    if (transport.has("recovery")) recovery_ = recovery;
    transport.read("reordering", reordering_,
                   "Packets that may overtake one before it counts as lost (selective_repeat)",
                   {Bound::count, "1 on one path, else from the catalogue"});
    if (routing_given_) {
        transport.read(
            "flowlet_gap", flowlet_gap_,
            "Pause of a flow at a switch after which it may change its way (routing = \"flowlet\")",
            {Bound::positive, "from the catalogue"});
    }
    keep_within(transport, "flowlet_gap", flowlet_gap_, packet_time_max);
    if (routing_given_) {
        transport.read(
            "queue_step", queue_step_,
            "How finely switches know the queues that packets choose from (routing = \"adaptive\" "
            "or \"flowlet\")",
            {Bound::positive,
             "to the byte; on Ultra Ethernet a share of a full queue, from the catalogue"});
    }
    keep_within(transport, "queue_step", queue_step_, packet_buffer_max);
    if (routing_given_) read_entropy(transport);
    transport.finish();
}

void PacketKeys::read_entropy(Section& transport) {
    entropy_ = entropy_kinds().front().name;
    transport.name("entropy", entropy_, names_of(entropy_kinds()), "a choice of entropy values",
                   "How senders spread packets over paths (routing = \"entropy\")");
    transport.read("entropy_values", entropy_values_,
                   "Of a queue pair, a power of two (routing = \"entropy\")",
                   {Bound::positive, "from the catalogue"});
    constexpr std::int64_t values_max = 65536;
    if (!entropy_values_) return;
    const auto values = static_cast<std::uint64_t>(*entropy_values_);
    if (*entropy_values_ <= values_max && std::has_single_bit(values)) return;
    transport.error("entropy_values", fmt::format("expected a power of two up to {}, found {}",
                                                  values_max, *entropy_values_));
    entropy_values_.reset();
}

void PacketKeys::read_trimming(Section& trimming) {
    trimming.read("enabled", trims_,
                  "A packet that finds no room loses its payload, and its header goes on first; "
                  "false: it is lost (ultra_ethernet)");
    trimming.read("size", trimmed_size_, "On the wire, of a trimmed packet",
                  {Bound::positive, "from the catalogue"});
    constexpr Bytes size_max = Bytes::of(1024);
    keep_within(trimming, "size", trimmed_size_, size_max);
    trimming.read("loss_by_order", loss_by_order_,
                  "Senders also send again what is missing when many later packets have come, and "
                  "probe when no acknowledgement comes (ultra_ethernet)");
    trimming.finish();
}

void PacketKeys::read_credit_keys(Section& credits) {
    credits.read("vl_buffer", vl_buffer_,
                 "Buffer of each virtual lane of a whole port (InfiniBand)",
                 {Bound::positive, "from the catalogue"});
    credits.read("lifetime", lifetime_,
                 "How long a packet waits for credits at the head of a queue before it is dropped; "
                 "0 s: for ever",
                 {Bound::non_negative, "the head-of-queue lifetime, from the catalogue"});
    credits.read("leaf_lifetime", leaf_lifetime_, "Likewise at ports that lead to NICs",
                 {Bound::non_negative, "from the catalogue"});
    read_three_bits(credits, "stall_count", stall_count_,
                    "Packets in a row dropped for that, after which the lane throws away all for "
                    "eight lifetimes; 0: it never does",
                    "from the catalogue", "three bits of the port's state");
    read_three_bits(credits, "leaf_stall_count", leaf_stall_count_,
                    "Likewise at ports that lead to NICs", "from the catalogue",
                    "three bits of the port's state");
    keep_within(credits, "vl_buffer", vl_buffer_, packet_buffer_max);
    keep_within(credits, "lifetime", lifetime_, packet_time_max);
    keep_within(credits, "leaf_lifetime", leaf_lifetime_, packet_time_max);
    credits.finish();
}

void PacketKeys::read_switches(Section& network) {
    for (Section& s : network.sections("switch", "A switch that is not set up as the others")) {
        SwitchKeys keys{s, {}, {}};
        s.read("name", keys.name, "Which: leaf-0, spine-3", {.required = true});
        s.read("pfc", keys.settings.pfc, "false: it neither sends nor heeds pause frames");
        std::int64_t priority = priority_;
        read_priority(s, "pfc_priority", priority,
                      "The one priority that it sends and heeds pauses for; what comes in another "
                      "is lost where there is no room",
                      {.otherwise = "those of all lossless classes"});
        if (s.has("pfc_priority")) keys.settings.pfc_priority = static_cast<int>(priority);
        s.read("ecn", keys.settings.ecn, "false: it marks nothing");
        s.read("headroom", keys.settings.headroom, "Headroom of each of its lossless (port, class)",
               {Bound::non_negative, "as the others"});
        keep_within(s, "headroom", keys.settings.headroom, packet_buffer_max);
        refuse_none(s, keys.settings.headroom, "pfc = false is a switch without pauses");
        s.finish();
        given_ = true;
        switches_.push_back(std::move(keys));
    }
}

PacketProfile PacketReader::profile(Catalogue& catalogue, const Topology& topology,
                                    const StorageClass& storage, const std::string& nic) {
    PacketProfile p;
    p.flow_control =
        flow_control_ == FlowControl::pfc && !pfc_enabled_ ? FlowControl::none : flow_control_;
    p.buffer = buffer_size_;
    p.headroom = headroom_;
    if (goes_by_packet(routing_)) {
        p.ports = static_cast<std::int64_t>(std::min(topology.up_links(0).size(), planes_max));
    }
    PacketSpec& spec = p.spec;
    const bool tcp = kind_ == NetworkKind::tcp;
    spec.payload_bytes = (mtu_  ? *mtu_
                          : tcp ? catalogue.data("tcp", "", "segment")
                                : catalogue.data("roce_transport", "", "mtu"))
                             .count();
    if (tcp) spec.header_bytes = catalogue.data("tcp", "", "header").count();
    if (kind_ == NetworkKind::infiniband) {
        spec.header_bytes = catalogue.data("infiniband", "", "header").count();
    }
    if (any_order(kind_)) {
        const char* its = kind_ == NetworkKind::efa ? "efa" : "ultra_ethernet";
        spec.header_bytes = catalogue.data(its, "", "header").count();
    }
    // Without flow control, acknowledgements queue with the data, as TCP's do; InfiniBand's have credits too.
    const bool credits = p.flow_control == FlowControl::credits;
    spec.classes = {{}, {p.flow_control, !credits}};
    if (storage.weight > 0) spec.classes.push_back({p.flow_control, !credits, storage.weight});
    spec.classes[0] = {credits ? FlowControl::credits : FlowControl::none, false, 0};
    resolve_priorities(p, storage);
    if (credits) resolve_credits(catalogue, p);
    spec.cut_through = cut_through_;
    if (link_level_retry_) {
        require_link_retry(catalogue, topology, nic);
        spec.link_retry = read_link_retry(catalogue);
    }
    if (credits) warn_of_far_sites(network_, topology, p);
    check_rates(catalogue, topology, p);
    resolve_buffer(catalogue, p);
    spec.ack_every =
        ack_every_ ? *ack_every_ : catalogue.integer("roce_transport", "", "ack_every_packets");
    resolve_transport(catalogue, p);
    warn_of_idle_tables();
    resolve_ecn(catalogue, p);
    resolve_congestion(catalogue, p);
    if (kind_ == NetworkKind::ultra_ethernet) resolve_ultra_ethernet(catalogue, topology, p);
    if (kind_ == NetworkKind::efa) resolve_efa(catalogue, topology, p);
    resolve_queue_step(catalogue, p);
    if (p.flow_control == FlowControl::pfc) resolve_watchdog(catalogue, topology, p);
    resolve_switches(topology, p);
    warn_of_wrong_priorities(p);
    if (!buffer_size_) require_buffers(catalogue, topology);
    if (network_.ok()) check_buffers(catalogue, topology, p);
    return p;
}

// Times are counted in ps and 64 bits, and headroom is for the packets that ports are made for.
void PacketReader::check_rates(Catalogue& catalogue, const Topology& topology,
                               const PacketProfile& p) {
    for (LinkId l = 0; l < topology.links().size(); ++l) {
        const Bandwidth rate = Bandwidth::bits_per_second(
            static_cast<std::int64_t>(topology.links()[l].bytes_per_s * 8));
        if (topology.links()[l].bytes_per_s == 0 || rate >= packet_rate_min) continue;
        network_.error(
            "",
            fmt::format("a cable of {} has {:.3g} bit/s: packets take links of {} or more",
                        topology.name(topology.links()[l].from),
                        topology.links()[l].bytes_per_s * 8, to_text(packet_rate_min)),
            "a fault's capacity = 0 says that a cable is dead");
        break;
    }
    const std::int64_t packet = p.spec.payload_bytes + p.spec.header_bytes;
    const std::int64_t most = catalogue.data("headroom_formula", "", "port_mtu").count();
    if (p.flow_control == FlowControl::pfc && packet > most && network_.ok()) {
        network_.error(
            "mtu", fmt::format("expected packets of at most {} B with priority flow control, found "
                               "{} B with headers: ports and their headroom are for these",
                               most, packet));
    }
}

// Not every switch's buffer is published.
void PacketReader::require_buffers(Catalogue& catalogue, const Topology& topology) {
    std::set<std::string> unknown;
    for (auto v = static_cast<VertexId>(topology.nic_count()); v < topology.vertex_count(); ++v) {
        const std::string& model = topology.switch_model(v).name;
        if (!catalogue.has("switch", model, "buffer")) unknown.insert(model);
    }
    if (unknown.empty()) return;
    buffer_->error(
        "size",
        fmt::format("is missing: the catalogue knows no buffer of {}", fmt::join(unknown, " and ")),
        "give it, or switches whose buffer is known");
}

void PacketReader::resolve_priorities(PacketProfile& p, const StorageClass& storage) {
    p.priorities = {-1, static_cast<int>(priority_)};
    if (storage.weight == 0) return;
    p.priorities.push_back(static_cast<int>(storage.priority));
    if (p.flow_control == FlowControl::pfc && storage.priority == priority_) {
        pfc_->error(
            "priority",
            fmt::format(
                "storage.class_priority is {} too: a class of its own needs a priority of its own",
                priority_));
    }
}

void PacketReader::resolve_buffer(Catalogue& catalogue, PacketProfile& p) {
    BufferSpec& buffer = p.spec.buffer;
    buffer.alpha =
        alpha_ ? *alpha_ : std::exp2(catalogue.number("pfc", "", "dynamic_threshold_exponent"));
    if (p.flow_control == FlowControl::credits) return;
    buffer.reserve_bytes =
        (reserve_ ? *reserve_ : catalogue.data("pfc", "", "reserve_hpcc")).count();
    if (p.flow_control != FlowControl::pfc) return;
    buffer.resume_offset_bytes =
        (resume_offset_ ? *resume_offset_ : catalogue.data("pfc", "", "resume_offset_hpcc"))
            .count();
    buffer.headroom_oversubscription = headroom_oversubscription_;
}

// Tables that this technology has no use for.
void PacketReader::warn_of_idle_tables() {
    const bool pfc = flow_control_ == FlowControl::pfc;
    const bool credits = flow_control_ == FlowControl::credits;
    const auto idle = [&](Section& section, bool used, const char* whose) {
        if (section.present() && !used) {
            section.warning("", fmt::format("has no effect: only {}", whose));
        }
    };
    idle(*pfc_, pfc, "RoCE has priority flow control");
    Section sites = network_.section("sites");
    if (!(pfc && pfc_enabled_)) {
        warn_of_keys(sites, {"lossless"},
                     "has no effect: only RoCE with priority flow control has pauses");
    }
    idle(*watchdog_, pfc && pfc_enabled_, "priority flow control has a watchdog");
    idle(*credits_, credits, "InfiniBand has credits");
    idle(*ecn_, !credits, "Ethernet marks packets here");
    const bool ultra = kind_ == NetworkKind::ultra_ethernet;
    idle(*trimming_, ultra, "Ultra Ethernet's switches trim");
    if (!any_order(kind_) && buffer_->has("queue")) {
        buffer_->warning("queue", "has no effect: the shared buffer's threshold bounds queues");
    }
    if (routing_ != Routing::entropy) {
        warn_of_keys(*transport_, {"entropy", "entropy_values"},
                     "has no effect without routing = \"entropy\"");
    }
    if (any_order(kind_)) {
        warn_of_keys(
            *transport_, {"timeout", "recovery", "reordering", "ack_every"},
            fmt::format("has no effect: {} has its own", ultra ? "Ultra Ethernet" : "EFA"));
    }
    const bool deaf = !credits && !congestion_kind(control_).fits.hears_marks;
    const std::string of_deaf = fmt::format("changes no rate: {} does not hear of marks", control_);
    if (deaf && ecn_->present()) ecn_->warning("", of_deaf);
    if (credits) {
        warn_of_keys(*buffer_, {"alpha", "reserve"},
                     "has no effect: a lane with credits has its own buffer");
    }
    if (pfc && !pfc_enabled_) {
        warn_of_keys(*pfc_, {"priority", "headroom", "headroom_oversubscription", "resume_offset"},
                     "has no effect with enabled = false");
    }
    for (SwitchKeys& keys : switches_) {
        const auto unused = [&](const char* key, bool used, const char* whose) {
            if (keys.section.has(key) && !used) {
                keys.section.warning(key, fmt::format("has no effect: only {}", whose));
            }
        };
        unused("ecn", !credits, "Ethernet marks packets here");
        if (deaf) warn_of_keys(keys.section, {"ecn"}, of_deaf);
        unused("pfc", pfc && pfc_enabled_, "a network with priority flow control sends pauses");
        for (const char* key : {"headroom", "pfc_priority"}) {
            unused(key, pfc && pfc_enabled_ && keys.settings.pfc,
                   "a switch with priority flow control has any");
        }
    }
}

void PacketReader::resolve_transport(Catalogue& catalogue, PacketProfile& p) {
    PacketSpec& spec = p.spec;
    if (any_order(kind_)) return;  // resolve_ultra_ethernet(), resolve_efa()
    const bool tcp = kind_ == NetworkKind::tcp;
    const bool overtaken = routing_ == Routing::spray || routing_ == Routing::random_spray ||
                           routing_ == Routing::adaptive;
    spec.recovery = recovery_ >= 0     ? static_cast<Recovery>(recovery_)
                    : tcp || overtaken ? Recovery::selective_repeat
                                       : Recovery::go_back_n;
    if (spec.recovery == Recovery::go_back_n) {
        if (tcp) transport_->error("recovery", "TCP sends again what is missing");
        if (reordering_) {
            transport_->warning("reordering",
                                "has no effect without recovery = \"selective_repeat\"");
        }
    } else {
        const std::int64_t by_default =
            tcp         ? catalogue.integer("tcp", "", "fast_retransmit_dupacks")
            : overtaken ? catalogue.integer("roce_transport", "", "reordering")
                        : 1;
        spec.reordering = static_cast<std::uint32_t>(reordering_.value_or(by_default));
    }
    resolve_flowlets(catalogue, p);
    if (tcp) {
        warn_of_keys(*transport_, {"timeout", "retries"},
                     "has no effect with TCP, which has its own");
        spec.retries = catalogue.integer("tcp", "", "retries");
        return;
    }
    const std::int64_t exponent =
        timeout_ ? *timeout_ : catalogue.integer("nccl_net", "", "ib_timeout_exponent");
    spec.retransmission_timeout = local_ack_timeout(static_cast<int>(exponent));
    spec.retries = retries_ ? *retries_ : catalogue.integer("nccl_net", "", "ib_retry_count");
}

void PacketReader::resolve_flowlets(Catalogue& catalogue, PacketProfile& p) {
    if (routing_ != Routing::flowlet) {
        warn_of_keys(*transport_, {"flowlet_gap"}, "has no effect without routing = \"flowlet\"");
        return;
    }
    p.spec.flowlet_gap =
        flowlet_gap_ ? *flowlet_gap_ : catalogue.time("roce_transport", "", "flowlet_gap");
}

void PacketReader::resolve_credits(Catalogue& catalogue, PacketProfile& p) {
    p.vl_buffer = vl_buffer_ ? *vl_buffer_ : catalogue.data("infiniband", "", "vl_buffer");
    p.spec.credits = read_credits(catalogue);
    const std::int64_t blocks = p.spec.credits.blocks(p.spec.payload_bytes + p.spec.header_bytes);
    const Bytes packet = Bytes::of(blocks * p.spec.credits.block_bytes);
    if (p.vl_buffer < packet) {
        credits_->error("vl_buffer",
                        fmt::format("expected {} blocks of {} B or more, one packet, found {} B",
                                    blocks, p.spec.credits.block_bytes, p.vl_buffer.count()));
        p.vl_buffer = packet;
    }
    if (lifetime_) p.spec.credits.lifetime = *lifetime_;
    if (leaf_lifetime_) p.spec.credits.leaf_lifetime = *leaf_lifetime_;
    if (stall_count_) p.spec.credits.stall_count = *stall_count_;
    if (leaf_stall_count_) p.spec.credits.leaf_stall_count = *leaf_stall_count_;
}

void PacketReader::resolve_ecn(Catalogue& catalogue, PacketProfile& p) {
    const bool thresholds = kmin_ || kmax_ || pmax_;
    if (ecn_profile_ == "none" || flow_control_ == FlowControl::credits) {
        if (thresholds) ecn_->error("", "thresholds have no effect where nothing is marked");
        return;
    }
    EcnRule rule = read_ecn(catalogue, ecn_profile_);
    if (kmin_.has_value() != kmax_.has_value()) {
        ecn_->error(kmin_ ? "kmin" : "kmax",
                    fmt::format("needs {} beside it", kmin_ ? "kmax" : "kmin"));
        return;
    }
    if (kmin_) {
        rule.per_25_gbit = false;
        rule.kmin_bytes = real(kmin_->count());
        rule.kmax_bytes = real(kmax_->count());
        if (*kmin_ > *kmax_) {
            ecn_->error("kmin",
                        fmt::format("{} is above kmax, {}", to_text(*kmin_), to_text(*kmax_)),
                        "marking rises from kmin to kmax");
        }
    }
    if (pmax_) rule.pmax = *pmax_;
    p.ecn = rule;
}

void PacketReader::resolve_watchdog(Catalogue& catalogue, const Topology& topology,
                                    PacketProfile& p) {
    const auto leaf = static_cast<VertexId>(topology.nic_count());
    WatchdogSpec w = read_watchdog(catalogue, watchdog_profile_, topology.switch_model(leaf).ports);
    const bool timed = poll_ || detection_ || restoration_ || polls_together_ || drops_arrivals_;
    if (action_ >= 0) w.action = static_cast<WatchdogAction>(action_);
    if (w.action == WatchdogAction::none) {
        if (timed) watchdog_->warning("", "its other keys have no effect without a watchdog");
        return;
    }
    if (watchdog_profile_ ==
        "off") {  // its action was replaced: the times must come from the scenario
        if (!poll_ || !detection_ || !restoration_) {
            watchdog_->error("action", "the profile \"off\" has no times",
                             "another profile, or poll, detection and restoration");
            return;
        }
    }
    w.polls_together = polls_together_;
    w.drops_arrivals = drops_arrivals_;
    if (drops_arrivals_ && w.action != WatchdogAction::drop) {
        watchdog_->warning("drops_arrivals", "has no effect without action = \"drop\"");
    }
    if (poll_) w.poll = *poll_;
    if (detection_) w.detection = *detection_;
    if (restoration_) w.restoration = *restoration_;
    // A detection time below the profile's poll asks for as short a poll.
    if (!poll_ && detection_ && w.detection < w.poll) w.poll = w.detection;
    if (w.detection < w.poll) {
        const auto text = [](Picoseconds t) {
            return to_text(std::chrono::duration_cast<Duration>(t));
        };
        watchdog_->error(
            "detection",
            fmt::format("{} is shorter than its poll of {}", text(w.detection), text(w.poll)),
            "it is seen at a poll: lower watchdog.poll too");
    }
    p.spec.watchdog = w;
}

void PacketReader::resolve_switches(const Topology& topology, PacketProfile& p) {
    for (SwitchKeys& keys : switches_) {
        const auto at = find_place(keys.section, "name", topology, keys.name, VertexKind::switch_);
        if (!at) continue;
        keys.settings.at = *at;
        const bool twice =
            std::ranges::any_of(p.deviating, [&](const auto& other) { return other.at == *at; });
        if (twice) keys.section.error("name", fmt::format("{} is set up twice", keys.name));
        p.deviating.push_back(keys.settings);
    }
}

// Where a switch's headroom was set.
Section& PacketReader::headroom_section(const PacketProfile& p, VertexId at) {
    for (std::size_t i = 0; i < p.deviating.size(); ++i) {
        if (p.deviating[i].at == at && p.deviating[i].headroom) return switches_[i].section;
    }
    return *pfc_;
}

void PacketReader::warn_of_wrong_priorities(const PacketProfile& p) {
    for (SwitchKeys& keys : switches_) {
        if (!keys.settings.pfc_priority || p.flow_control != FlowControl::pfc) continue;
        std::string unpaused;
        for (std::size_t c = 0; c < p.priorities.size(); ++c) {
            if (p.priorities[c] < 0 || p.priorities[c] == *keys.settings.pfc_priority) continue;
            unpaused += fmt::format("{}{}", unpaused.empty() ? "" : " and ", p.priorities[c]);
        }
        if (unpaused.empty() || !keys.settings.pfc) continue;
        keys.section.warning("pfc_priority",
                             fmt::format("{} sends pauses for priority {}; packets of priority {} "
                                         "come without: they may be lost",
                                         keys.name, *keys.settings.pfc_priority, unpaused));
    }
}

namespace {

// What all ports of a switch have for their headroom together.
Bytes shared_headroom(const Topology& topology, const PacketProfile& p, const BufferPlan& plan) {
    return Bytes::of(plan.headroom.count() * topology.ports_used(plan.at) * p.headrooms(plan.at) /
                     p.spec.buffer.headroom_oversubscription);
}

// The switches that have each problem.
struct BufferProblems {
    std::vector<BufferPlan> full;
    std::vector<BufferPlan> short_of_headroom;
    std::vector<BufferPlan> pausing_first;
    std::vector<BufferPlan> sharing_too_little;
    std::vector<BufferPlan> resuming_late;
};

BufferProblems buffer_problems(Catalogue& catalogue, const Topology& topology,
                               const PacketProfile& p) {
    BufferProblems found;
    for (const BufferPlan& plan : plan_buffers(catalogue, topology, p)) {
        if (plan.reserved >= plan.buffer) {
            found.full.push_back(plan);
        } else if (p.has_pfc(plan.at)) {
            if (p.pausing(plan.at) == 0) continue;
            if (plan.headroom < plan.headroom_need) found.short_of_headroom.push_back(plan);
            if (p.spec.buffer.headroom_oversubscription > 1 &&
                shared_headroom(topology, p, plan) < plan.headroom_need) {
                found.sharing_too_little.push_back(plan);
            }
            if (plan.xoff_threshold.count() <= p.spec.buffer.resume_offset_bytes) {
                found.resuming_late.push_back(plan);
            }
            const bool marks =
                plan.ecn.kmin_bytes != INT64_MAX && congestion_kind(p.congestion).fits.hears_marks;
            if (marks && plan.ecn.kmax_bytes > plan.xoff_threshold.count()) {
                found.pausing_first.push_back(plan);
            }
        }
    }
    return found;
}

// An output queue takes one packet at least, and has no more than its switch.
void check_queue(Section& buffer, Bytes queue, const std::vector<BufferPlan>& plans,
                 const PacketSpec& spec, const Topology& topology) {
    const auto smallest = std::ranges::min_element(
        plans, [](const BufferPlan& a, const BufferPlan& b) { return a.buffer < b.buffer; });
    const Bytes packet = Bytes::of(spec.payload_bytes + spec.header_bytes);
    if (smallest == plans.end() || (queue >= packet && queue <= smallest->buffer)) return;
    buffer.error("queue",
                 fmt::format("expected {} B, one packet, to {}, the buffer of {} ({}), found {}",
                             packet.count(), to_text(smallest->buffer), topology.name(smallest->at),
                             topology.switch_model(smallest->at).name, to_text(queue)));
}

// How a switch could do whose buffer can't hold the headroom of its long cables. The built-in trees have as
// few spines as their ports allow.
std::string reach_of_pauses(Catalogue& c, const Topology& t, const PacketProfile& p, VertexId at) {
    constexpr auto fewer =
        "fewer than its {} long cables would reach further (a higher sites.oversubscription, or "
        "more spines in a custom topology); ";
    std::string text;
    const auto longest = site_distance_max(c, t, p, at);
    if (longest)
        text = fmt::format("sites.distance = \"{:g} km\" would do; ", longest->value / 1000);
    const std::int64_t cables = t.site_cables(at);
    return cables > 1 ? text + fmt::format(fewer, cables) : text;
}

// True: pauses can't reach as far as the next building.
bool check_site_headroom(Section& buffer, Section& pfc, Catalogue& catalogue,
                         const Topology& topology, const PacketProfile& p,
                         const std::vector<BufferPlan>& full) {
    const std::string without = "sites.lossless = false does without pauses there";
    if (!full.empty()) {
        buffer.error(
            "size",
            fmt::format(
                "{}: a buffer of {}, of which its ports set apart {} with buildings {:g} km apart",
                switches_text(topology, full), to_text(full[0].buffer), to_text(full[0].reserved),
                topology.spec().site_distance.value / 1000),
            reach_of_pauses(catalogue, topology, p, full[0].at) + without);
        return true;
    }
    for (LinkId l = 0; l < topology.links().size(); ++l) {
        if (!topology.between_sites(l) || !topology.pauses(l) || !p.headroom) continue;
        const Bytes need = needed_headroom(catalogue, topology, l);
        if (*p.headroom >= need) continue;
        pfc.error("headroom",
                  fmt::format("{} for each port and class; a cable of {:g} km at {} needs {}",
                              to_text(*p.headroom), topology.spec().site_distance.value / 1000,
                              line_rate_text(topology.line_rate(l)), to_text(need)),
                  fmt::format("headroom = \"{}\"; {}", to_text(need), without));
        return true;
    }
    return false;
}

}  // namespace

void PacketReader::check_buffers(Catalogue& catalogue, const Topology& topology,
                                 const PacketProfile& p) {
    if (queue_ && any_order(kind_))
        check_queue(*buffer_, *queue_, plan_buffers(catalogue, topology, p), p.spec, topology);
    const BufferProblems found = buffer_problems(catalogue, topology, p);
    if (topology.spec().sites > 1 && p.flow_control == FlowControl::pfc &&
        check_site_headroom(*buffer_, *pfc_, catalogue, topology, p, found.full)) {
        return;
    }
    if (!found.full.empty()) {
        const bool credits = p.flow_control == FlowControl::credits;
        (credits ? *credits_ : *buffer_)
            .error(credits ? "vl_buffer" : "size",
                   fmt::format("{}: a buffer of {}, of which its ports set apart {}",
                               switches_text(topology, found.full), to_text(found.full[0].buffer),
                               to_text(found.full[0].reserved)),
                   credits ? "a smaller credits.vl_buffer, or a larger buffer.size"
                           : "shorter cables, fewer lossless classes, less headroom, or a larger "
                             "buffer");
    }
    if (!found.short_of_headroom.empty()) {
        const BufferPlan& plan = found.short_of_headroom[0];
        headroom_section(p, plan.at)
            .warning("headroom", fmt::format("{}: {} for each port and class, its rate and cable "
                                             "need {}: packets will be lost",
                                             switches_text(topology, found.short_of_headroom),
                                             to_text(plan.headroom), to_text(plan.headroom_need)));
    }
    if (!found.sharing_too_little.empty()) {
        const BufferPlan& plan = found.sharing_too_little[0];
        pfc_->warning(
            "headroom_oversubscription",
            fmt::format("{}: {} for all ports and classes together, one alone needs {}: packets "
                        "will be lost",
                        switches_text(topology, found.sharing_too_little),
                        to_text(shared_headroom(topology, p, plan)), to_text(plan.headroom_need)));
    }
    if (!found.resuming_late.empty()) {
        const BufferPlan& plan = found.resuming_late[0];
        pfc_->warning(
            "resume_offset",
            fmt::format("{}: a lone hot port is paused at {}, and resumed when nothing is left",
                        switches_text(topology, found.resuming_late),
                        to_text(plan.xoff_threshold)));
    }
    if (!found.pausing_first.empty()) {
        const BufferPlan& plan = found.pausing_first[0];
        ecn_->warning("kmax", fmt::format("{}: everything is marked from {} on, but a lone hot "
                                          "port is paused at {}: PFC will dominate",
                                          switches_text(topology, found.pausing_first),
                                          to_text(Bytes::of(plan.ecn.kmax_bytes)),
                                          to_text(plan.xoff_threshold)));
    }
}

}  // namespace railyard
