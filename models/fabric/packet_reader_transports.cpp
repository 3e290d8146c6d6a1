// PacketReader: which control and which transport a network has, and what follows from its round trip.

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <set>

#include "models/fabric/packet_reader.h"

namespace railyard {

namespace {

// Switches of the network that lack this ability; empty: all have it.
std::string names_of_unable(const Topology& topology, bool SwitchModel::*can) {
    std::set<std::string> unable;
    for (auto v = static_cast<VertexId>(topology.nic_count()); v < topology.vertex_count(); ++v) {
        const SwitchModel& model = topology.switch_model(v);
        if (!(model.*can)) unable.insert(model.name);
    }
    return fmt::format("{}", fmt::join(unable, " and "));
}

// Whether a switch has less bandwidth up than down.
bool is_oversubscribed(const Topology& topology) {
    const auto sum = [&](std::span<const LinkId> links) {
        double rate = 0;
        for (const LinkId l : links) rate += topology.line_rate(l).bytes_per_second();
        return rate;
    };
    for (auto v = static_cast<VertexId>(topology.nic_count()); v < topology.vertex_count(); ++v) {
        const auto ups = topology.up_links(v);
        if (!ups.empty() && sum(ups) < sum(topology.down_links(v))) return true;
    }
    return false;
}

}  // namespace

void PacketReader::resolve_congestion(Catalogue& catalogue, PacketProfile& p) {
    p.congestion = control_;
    p.parameters = parameters_;
    const bool chooses = routing_ != Routing::ecmp && routing_ != Routing::destination;
    if (control_ == "hpcc" && chooses) {
        congestion_->error("control",
                           "HPCC compares each hop with itself: packets must stay on one path",
                           "routing = \"ecmp\", or another control");
    }
    require_control();
    if (control_ != "dcqcn") {
        warn_of_keys(*congestion_, {"parameters", "cnp_interval", "cnp_delay"},
                     "has no effect without control = \"dcqcn\"");
    }
    const std::string set = catalogue.has("dcqcn", parameters_, "cnp_interval")
                                ? parameters_
                                : std::string("dcqcn_nvidia_default");
    if (control_ == "dcqcn") p.spec.cnp_delay = cnp_delay_;
    p.spec.cnp_interval =
        cnp_interval_ ? *cnp_interval_ : catalogue.time("dcqcn", set, "cnp_interval");
    if (control_ == "infiniband_cc") resolve_cct(catalogue, p);
    if (control_ != "infiniband_cc") {
        warn_of_keys(*congestion_, {"cct_timer", "cct_limit"},
                     "has no effect without control = \"infiniband_cc\"");
    }
    if (oversubscribed_cc_ && !control_.ends_with("rccc")) {
        congestion_->warning("oversubscribed_cc",
                             "has no effect without control = \"rccc\" or \"nscc_rccc\"");
    }
    if (control_ == "dcqcn" && !p.ecn) {
        congestion_->warning("control", "DCQCN hears of congestion by marks, and nothing is marked",
                             "pauses alone will hold the queues");
    }
}

void PacketReader::require_control() {
    const auto has = [](const CongestionKind& kind, NetworkKind network) {
        return std::ranges::find(kind.fits.networks, network) != kind.fits.networks.end();
    };
    const CongestionKind& control = congestion_kind(control_);
    if (!has(control, kind_)) {
        std::vector<std::string> others;
        for (const CongestionKind& kind : congestion_kinds()) {
            if (has(kind, kind_)) others.emplace_back(kind.name);
        }
        congestion_->error(
            "control",
            fmt::format("expected one for kind = \"{}\": {}; found {}", to_text(kind_),
                        fmt::join(others, ", "), control_),
            fmt::format("{} needs kind = \"{}\"", control_, to_text(control.fits.networks[0])));
    }
    if (control_ == "spectrum_x" && routing_given_ && !goes_by_packet(routing_)) {
        congestion_->warning("control",
                             "Spectrum-X's control is made for packets that each choose their way: "
                             "here every flow keeps to one",
                             "routing = \"adaptive\"");
    }
}

// One packet in so many is marked beyond a share of the lane's buffer, and each mark comes back.
void PacketReader::resolve_cct(Catalogue& catalogue, PacketProfile& p) {
    CongestionGiven given;
    given.cct_timer = cct_timer_;
    given.cct_limit = cct_limit_;
    p.cct = read_infiniband_congestion(catalogue, given);
    const auto setting = [&](const char* key) {
        return catalogue.integer("infiniband_congestion", "", key);
    };
    constexpr std::int64_t steps = 16;
    EcnRule marks;
    marks.kmin_bytes = marks.kmax_bytes =
        real(p.vl_buffer.count() * (steps - setting("threshold")) / steps);
    marks.pmax = marks.beyond = 1.0 / real(1 + setting("marking_rate"));
    p.ecn = marks;
    p.spec.cnp_interval = {};
    for (std::size_t c = 1; c < p.spec.classes.size(); ++c) p.spec.classes[c].ecn = true;
}

// By default to the byte, but where a switch's queues have a size of their own.
void PacketReader::resolve_queue_step(Catalogue& catalogue, PacketProfile& p) {
    const bool looks = routing_ == Routing::adaptive || routing_ == Routing::flowlet;
    if (queue_step_ && !looks) {
        transport_->warning("queue_step",
                            "has no effect without routing = \"adaptive\" or \"flowlet\"");
    }
    if (!looks) return;
    if (queue_step_) {
        p.spec.queue_step_bytes = queue_step_->count();
    } else if (kind_ == NetworkKind::ultra_ethernet) {
        p.spec.queue_step_bytes =
            std::llround(catalogue.number("adaptive_routing", "", "queue_step") *
                         real(p.spec.lossy_queue_bytes));
    }
}

// Queues, marks and timeouts follow from the network's bandwidth-delay product.
void PacketReader::resolve_ultra_ethernet(Catalogue& catalogue, const Topology& topology,
                                          PacketProfile& p) {
    PacketSpec& spec = p.spec;
    spec.trimming.enabled = trims_;
    spec.order_loss.enabled = loss_by_order_;
    spec.trimming.bytes =
        (trimmed_size_ ? *trimmed_size_ : catalogue.data("ultra_ethernet", "", "trimmed_bytes"))
            .count();
    if (spec.trimming.bytes < spec.header_bytes) {
        trimming_->error("size",
                         fmt::format("expected {} B, a packet's header, to 1024 B, found {} B",
                                     spec.header_bytes, spec.trimming.bytes));
        spec.trimming.bytes = spec.header_bytes;
    }
    if (!trims_ && trimming_->has("size")) {
        trimming_->warning("size", "has no effect with enabled = false");
    }
    require_trimming(topology);
    p.oversubscribed = oversubscribed_cc_.value_or(is_oversubscribed(topology));
    if (!entropy_.empty()) spec.entropy.choice = entropy_;
    spec.entropy.values = static_cast<std::uint32_t>(
        entropy_values_ ? *entropy_values_
                        : std::llround(catalogue.number("ultra_ethernet", "", "entropy_values")));
    if (queue_) spec.lossy_queue_bytes = queue_->count();
    resolve_any_order(catalogue, topology.line_rate(topology.up_links(0)[0]),
                      unloaded_round_trip(topology, spec), p);
}

// Windows, timeouts and retries of NICs that take packets in any order; the scenario's own marks go before.
void PacketReader::resolve_any_order(Catalogue& catalogue, Bandwidth line, Picoseconds round_trip,
                                     PacketProfile& p) {
    const std::optional<EcnRule> marks = p.ecn;
    set_up_ultra_ethernet(catalogue, line, round_trip, p);
    if (ecn_->has("profile") || !p.ecn) {
        if (ecn_->present()) p.ecn = marks;
    } else if (marks) {
        if (kmin_) {
            p.ecn->per_25_gbit = false;
            p.ecn->kmin_bytes = marks->kmin_bytes;
            p.ecn->kmax_bytes = marks->kmax_bytes;
        }
        if (pmax_) p.ecn->pmax = *pmax_;
    }
    if (retries_) p.spec.retries = *retries_;
    if (kind_ != NetworkKind::ultra_ethernet) p.spec.request_gap = {};
    resolve_flowlets(catalogue, p);
}

void PacketReader::require_trimming(const Topology& topology) {
    const std::string unable = names_of_unable(topology, &SwitchModel::trims);
    if (!trims_ || unable.empty()) return;
    trimming_->error("enabled", fmt::format("{} cannot trim packets", unable),
                     "false, or switches that trim");
}

void PacketReader::require_link_retry(Catalogue& catalogue, const Topology& topology,
                                      const std::string& nic) {
    if (kind_ != NetworkKind::infiniband && kind_ != NetworkKind::ultra_ethernet) {
        network_.error(
            "link_level_retry",
            "links send nothing again but with kind = \"infiniband\" or \"ultra_ethernet\"",
            "false, or another kind");
        return;
    }
    const std::string unable = names_of_unable(topology, &SwitchModel::link_level_retry);
    if (!unable.empty()) {
        network_.error("link_level_retry", fmt::format("{} cannot send again on a link", unable),
                       "false, or switches with link-level retry: qm9700_ndr, th6_64x1600");
        return;
    }
    const char* over = kind_ == NetworkKind::infiniband ? "infiniband" : "ultra_ethernet";
    const bool known = catalogue.has("nic", nic, "link_level_retry") &&
                       catalogue.text("nic", nic, "link_level_retry") == over;
    if (known) return;
    network_.warning("link_level_retry",
                     fmt::format("{} is not known to send again on a link of kind \"{}\": its "
                                 "links are taken to, as those between switches",
                                 nic, over));
}

// Drop-tail queues; a sender avoids paths whose packets come back late, and nothing is marked.
void PacketReader::resolve_efa(Catalogue& catalogue, const Topology& topology, PacketProfile& p) {
    PacketSpec& spec = p.spec;
    const Bandwidth line = topology.line_rate(topology.up_links(0)[0]);
    const Picoseconds round_trip = unloaded_round_trip(topology, spec);
    const auto round_trip_ps = real(round_trip.count());
    spec.entropy.choice = transport_->has("entropy") ? entropy_ : "bitmap";
    spec.entropy.values = static_cast<std::uint32_t>(
        entropy_values_.value_or(std::llround(catalogue.number("efa", "", "paths"))));
    spec.lossy_queue_bytes = queue_ ? queue_->count()
                                    : std::llround(catalogue.number("efa", "", "queue") *
                                                   round_trip_ps * 1e-12 * line.bytes_per_second());
    spec.late_round_trip =
        Picoseconds(std::llround(catalogue.number("efa", "", "late") * round_trip_ps));
    resolve_any_order(catalogue, line, round_trip, p);
    if (!retries_) spec.retries = catalogue.integer("efa", "", "retries");
    if (!ecn_->present()) p.ecn.reset();
}

}  // namespace railyard
