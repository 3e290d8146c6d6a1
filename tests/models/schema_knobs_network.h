#pragma once
// For each key of a network whose parts break a value to set; and for each of Ultra Ethernet's, as in
// packet_knobs.

#include "tests/models/schema_knobs.h"

namespace railyard {

// Two buildings whose spines have ports left for the cables between them.
inline const std::vector<std::string> two_sites = {
    "cluster.nodes=40", "fabric.compute.nodes_per_leaf=8", "fabric.compute.sites.count=2",
    "fabric.compute.sites.distance=10 km", "fabric.compute.sites.oversubscription=2"};
inline const std::map<std::string, Knob> network_knobs = {
    {"fabric.compute.planes", {{"fabric.compute.planes=2"}, {"cluster.nodes=40"}}},
    {"fabric.storage.planes", {{"fabric.storage.planes=2"}}},
    {"fabric.compute.sites.count",
     {{"fabric.compute.sites.count=2"},
      {"cluster.nodes=40", "fabric.compute.sites.distance=10 km"}}},
    {"fabric.compute.sites.distance", {{"fabric.compute.sites.distance=40 km"}, two_sites}},
    {"fabric.compute.sites.oversubscription",
     {{"fabric.compute.sites.oversubscription=4"}, two_sites}},
    {"fabric.compute.sites.bandwidth", {{"fabric.compute.sites.bandwidth=200 Gbit/s"}, two_sites}},
    {"failures.cause.network_part",
     in_base(broken_network, {"failures.cause.0.network_part=leaf"})},
    {"failures.cause.rate_per_part",
     in_base(broken_network, {"failures.cause.0.rate_per_part=0.3 /day"})},
    {"fabric.compute.endpoint_optics", {{"fabric.compute.endpoint_optics=cpo"}}},
    {"fabric.compute.switch_optics",
     {{"fabric.compute.switch_optics=fr"},
      {"cluster.nodes=80", "fabric.compute.nodes_per_leaf=8"}}},
    {"fabric.storage.endpoint_optics", {{"fabric.storage.endpoint_optics=cpo"}}},
    {"fabric.storage.switch_optics",
     {{"fabric.storage.switch_optics=fr"},
      {"cluster.nodes=80", "fabric.storage.nodes_per_leaf=8"}}},
    {"inject.part", in_base(broken_network, {"inject.0.part=spine-1"})},
    {"inject.from", in_base(broken_network, {"inject.1.from=leaf-1"})},
    {"inject.to", in_base(broken_network, {"inject.1.to=spine-1"})},
    {"inject.speed", in_base(broken_network, {"inject.1.speed=0.5"})},
};

// Bit errors on a cable of either network.
inline const std::string bad_cables = std::string(windows) + R"(
[[window.fault]]
kind = "bit_errors"
nic = "server-0.nic-0"
network = "storage"
bit_error_rate = 1e-6
)";

inline const std::map<std::string, Knob> transport_knobs = {
    {"@.sites.lossless",
     {{"@.sites.lossless=false"},
      {"@.sites.count=2", "@.sites.distance=2 km", "@.buffer.alpha=0.002",
       "window.allow_loss=true"}}},
    {"@.transport.queue_step",
     {{"@.transport.queue_step=1 MB"}, {"fabric.compute.routing=adaptive"}}},
    {"@.congestion.cct_timer",
     {{"@.congestion.cct_timer=2 us"},
      {"@.kind=infiniband", "@.congestion.control=infiniband_cc"}}},
    {"@.congestion.cct_limit",
     {{"@.congestion.cct_limit=1"}, {"@.kind=infiniband", "@.congestion.control=infiniband_cc"}}},
    {"@.congestion.oversubscribed_cc",
     {{"@.congestion.oversubscribed_cc=false"},
      {"@.kind=ultra_ethernet", "@.congestion.control=rccc", "@.oversubscription=2",
       "@.buffer.queue=20 kB"}}},
    {"@.buffer.queue",
     {{"@.buffer.queue=100 kB"}, {"@.kind=ultra_ethernet", "@.buffer.queue=20 kB"}}},
    {"@.trimming.enabled",
     {{"@.trimming.enabled=false"}, {"@.kind=ultra_ethernet", "@.buffer.queue=20 kB"}}},
    {"@.trimming.loss_by_order",
     {{"@.trimming.loss_by_order=true"},
      {"@.kind=ultra_ethernet", "@.trimming.enabled=false", "@.buffer.queue=20 kB"}}},
    {"@.trimming.size",
     {{"@.trimming.size=512 B"}, {"@.kind=ultra_ethernet", "@.buffer.queue=20 kB"}}},
    {"@.link_level_retry",
     {{"@.link_level_retry=true"},
      {"@.kind=infiniband", "window.fault.1.bit_error_rate=1e-6"},
      "",
      "",
      bad_cables}},
    {"@.transport.entropy",
     {{"@.transport.entropy=oblivious"},
      {"fabric.compute.kind=ultra_ethernet", "fabric.compute.routing=entropy"}}},
    {"@.transport.entropy_values",
     {{"@.transport.entropy_values=1"},
      {"fabric.compute.kind=ultra_ethernet", "fabric.compute.routing=entropy"}}},
};

}  // namespace railyard
