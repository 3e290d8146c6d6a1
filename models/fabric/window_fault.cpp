#include <fmt/format.h>

#include <algorithm>
#include <span>

#include "models/fabric/packet_limits.h"
#include "models/fabric/places.h"
#include "models/fabric/window_reader.h"
#include "sim/text.h"

namespace railyard {

namespace {

// Where a fault is, as a scenario says it: at a NIC, at all cables of a switch, or at one cable.
struct FaultPlace {
    std::string nic;
    std::string of_switch;
    std::string from;
    std::string to;
};

// The links that a fault is of: those that end at the NIC or the switch, or the cable between two switches.
std::vector<LinkId> links_of(Section& section, const Topology& t, const FaultPlace& place) {
    std::vector<LinkId> links;
    const bool at_nic = !place.nic.empty();
    if (at_nic || !place.of_switch.empty()) {
        const std::optional<VertexId> at =
            at_nic ? find_place(section, "nic", t, place.nic, VertexKind::nic)
                   : find_place(section, "switch", t, place.of_switch, VertexKind::switch_);
        if (!at) return links;
        for (const std::span<const LinkId> out : {t.up_links(*at), t.down_links(*at)}) {
            for (const LinkId link : out) links.push_back(reverse_link(link));
        }
        return links;
    }
    const std::optional<VertexId> a = find_place(section, "from", t, place.from);
    const std::optional<VertexId> b = find_place(section, "to", t, place.to);
    if (!a || !b) return links;
    if (const auto cable = find_cable(section, "to", t, *a, *b)) {
        links.push_back(*cable);
        warn_of_parallel(section, t, *a, *b);
    }
    return links;
}

// Whether the network has anything that the fault could act on.
void check_fault(Section& section, const FaultSpec& fault, const ClusterNetwork& network) {
    const WindowFault::Kind kind = fault.fault.kind;
    if (kind == WindowFault::Kind::pause && network.packets.flow_control == FlowControl::none) {
        section.warning(
            "kind", fmt::format("has no effect: the {} network has no flow control", network.name));
    }
    if (kind == WindowFault::Kind::slow_receiver && !fault.links.empty()) {
        const Bandwidth line = network.topology.line_rate(fault.links[0]);
        if (fault.fault.rate >= line) {
            section.warning(
                "rate", fmt::format("has no effect: the NIC's cable has {}", line_rate_text(line)));
        }
    }
    if (kind != WindowFault::Kind::bit_errors) return;
    warn_of_keys(section, {"start", "duration"},
                 "has no effect with kind = \"bit_errors\": they are there all the time");
}

bool errors_twice(const std::vector<FaultSpec>& faults, const FaultSpec& fault) {
    constexpr auto errors = WindowFault::Kind::bit_errors;
    return fault.fault.kind == errors && std::ranges::any_of(faults, [&](const FaultSpec& other) {
               return other.fault.kind == errors && other.network == fault.network &&
                      std::ranges::any_of(other.links, [&](LinkId its) {
                          return std::ranges::any_of(fault.links, [&](LinkId l) {
                              return l == its || l == reverse_link(its);
                          });
                      });
           });
}

bool slow_twice(const std::vector<FaultSpec>& faults, const FaultSpec& fault) {
    constexpr auto slow = WindowFault::Kind::slow_receiver;
    return fault.fault.kind == slow && std::ranges::any_of(faults, [&](const FaultSpec& other) {
               return other.fault.kind == slow && other.network == fault.network &&
                      other.links == fault.links;
           });
}

}  // namespace

const std::vector<std::string> window_fault_names = {"pause", "slow_receiver", "link_down",
                                                     "bit_errors"};

namespace {

const std::string& name_of(WindowFault::Kind kind) {
    return word_of(window_fault_names, kind);
}

// Each kind says where it is in its own way.
bool place_fits(Section& section, const WindowFault& fault, const FaultPlace& place) {
    const bool at_nic = !place.nic.empty();
    const bool at_switch = !place.of_switch.empty();
    const bool at_cable = !place.from.empty() || !place.to.empty();
    const bool needs_nic =
        fault.kind == WindowFault::Kind::pause || fault.kind == WindowFault::Kind::slow_receiver;
    if (int{at_nic} + int{at_switch} + int{at_cable} != 1 ||
        (at_cable && (place.from.empty() || place.to.empty()))) {
        section.error("", "expected nic, switch, or from and to");
        return false;
    }
    if (needs_nic && !at_nic) {
        section.error(at_switch ? "switch" : "from",
                      fmt::format("{} is of a NIC", name_of(fault.kind)), "nic = \"node-0.nic-0\"");
        return false;
    }
    return true;
}

// `known`: what the cables are made of says how many bits come wrong.
void check_own_keys(Section& section, const WindowFault& fault,
                    const std::optional<double>& bit_error_rate, bool known) {
    const auto belongs = [&](const char* key, WindowFault::Kind owner) {
        const std::string& its = name_of(owner);
        const bool told = known && owner == WindowFault::Kind::bit_errors;
        if (fault.kind == owner && !section.has(key) && !told) {
            section.error(key, fmt::format("is missing: kind = \"{}\" needs it", its));
        } else if (fault.kind != owner && section.has(key)) {
            section.error(key, fmt::format("belongs to kind = \"{}\", this is a {}", its,
                                           name_of(fault.kind)));
        }
    };
    belongs("rate", WindowFault::Kind::slow_receiver);
    belongs("bit_error_rate", WindowFault::Kind::bit_errors);
    if (bit_error_rate && *bit_error_rate >= 1) {
        section.error("bit_error_rate",
                      "expected less than 1: a cable that carries nothing is kind = \"link_down\"");
    }
}

}  // namespace

std::optional<FaultSpec> read_window_fault(Section& section,
                                           const std::vector<ClusterNetwork>& networks) {
    FaultSpec out;
    WindowFault& fault = out.fault;
    section.choose("kind", fault.kind, window_fault_names, "What goes wrong");
    FaultPlace place;
    section.read("nic", place.nic, "Which NIC: node-3.nic-0",
                 {.otherwise = "from and to name a cable"});
    section.read("switch", place.of_switch, "All cables of this switch: spine-0",
                 {.otherwise = "nic, or from and to, say where"});
    section.read("from", place.from, "One end of a cable: leaf-0", {.otherwise = "nic names one"});
    section.read("to", place.to, "Its other end", {.otherwise = "nic names one"});
    const ClusterNetwork* network = choose_network(section, networks);
    Duration start{};
    std::optional<Duration> duration;
    section.read("start", start, "When it begins", {Bound::non_negative});
    section.read("duration", duration, "How long it lasts", {Bound::positive, "for ever"});
    std::optional<Bandwidth> rate;
    std::optional<double> bit_error_rate;
    section.read("rate", rate, "What a slow receiver takes", {Bound::positive});
    section.read("bit_error_rate", bit_error_rate, "After error correction, of kind bit_errors",
                 {Bound::fraction,
                  "that of a dirty cable, where fabric.compute.endpoint_optics or switch_optics "
                  "says what it is made of"});
    keep_within(section, "start", start, packet_time_max);
    keep_within(section, "duration", duration, packet_time_max);
    section.finish();
    if (section.describing()) return std::nullopt;
    fault.start = start;
    if (duration) fault.end = start + *duration;
    if (!place_fits(section, fault, place)) return std::nullopt;
    if (rate && *rate < packet_rate_min) {
        section.error("rate", fmt::format("expected {} or more, found {}", to_text(packet_rate_min),
                                          to_text(*rate)));
    }
    if (rate) fault.rate = *rate;
    if (network != nullptr) out.links = links_of(section, network->topology, place);
    const bool known = !out.links.empty() && network->optics_of(out.links[0]).has_value();
    check_own_keys(section, fault, bit_error_rate, known);
    if (bit_error_rate) {
        fault.bit_error_rate = *bit_error_rate;
    } else if (known) {
        fault.bit_error_rate =
            rate_after_correction(network->optics_of(out.links[0])->dirty_bit_error_rate);
    }
    if (network == nullptr) return std::nullopt;
    out.network = network->name;
    check_fault(section, out, *network);
    return out;
}

void check_faulty_once(Section& section, const std::vector<FaultSpec>& faults,
                       const FaultSpec& fault) {
    if (slow_twice(faults, fault)) section.error("nic", "a NIC can be a slow receiver once");
    if (errors_twice(faults, fault)) {
        section.error("bit_error_rate", "a cable can have bit errors once");
    }
}

}  // namespace railyard
