#include "models/collective/node_links.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "sim/check.h"

namespace railyard {

NodeLinks::NodeLinks(const Node& node, std::int64_t nodes, LinkId network_links)
    : pcie_(node.pcie),
      gpus_per_node_(node.gpus),
      nics_per_node_(node.nics),
      domain_(node.nvlink ? node.nvlink_domain : 1),
      switches_per_node_((node.gpus + node.pcie.gpus_per_switch - 1) / node.pcie.gpus_per_switch),
      gpu_first_(network_links),
      nic_bytes_per_s_(node.nic_bandwidth.bytes_per_second()) {
    const auto after = [&](LinkId first, std::int64_t of_node) {
        return first + static_cast<LinkId>(nodes * of_node);
    };
    nic_first_ = after(gpu_first_, gpus_per_node_ * gpu_links);
    switch_first_ = after(nic_first_, nics_per_node_ * 2);
    socket_first_ = after(switch_first_, switches_per_node_ * 2);
    end_ = after(socket_first_, 2);
}

void NodeLinks::add_capacities(std::vector<double>& capacity) const {
    RY_CHECK(capacity.size() == gpu_first_);
    capacity.resize(nic_first_, pcie_.link_bytes_per_s);
    for (LinkId gpu = gpu_first_; gpu < nic_first_; gpu += gpu_links) {
        capacity[gpu + bounce_out] = pcie_.bounce_bytes_per_s;
        capacity[gpu + bounce_in] = pcie_.bounce_bytes_per_s;
    }
    capacity.resize(switch_first_, nic_bytes_per_s_);
    capacity.resize(socket_first_, pcie_.link_bytes_per_s);
    capacity.resize(end_, pcie_.socket_bytes_per_s);
}

bool NodeLinks::same_domain(std::int64_t a, std::int64_t b) const {
    return node_of(a) == node_of(b) && local(a) / domain_ == local(b) / domain_;
}

bool NodeLinks::same_socket(std::int64_t a, std::int64_t b) const {
    return socket_of(a) == socket_of(b);
}

std::int64_t NodeLinks::next_to(std::int64_t gpu, std::int64_t nic) const {
    const std::int64_t near = nearest_gpu(node_of(gpu), nic);
    const bool far = !is_near(gpu, nic) || !same_socket(gpu, near);
    return far && same_domain(gpu, near) ? near : gpu;
}

std::int64_t NodeLinks::nearest_nic(std::int64_t gpu) const {
    return local(gpu) * nics_per_node_ / gpus_per_node_;
}

std::int64_t NodeLinks::nearest_gpu(std::int64_t node, std::int64_t nic) const {
    // The first of the GPUs that share a NIC; the one GPU of several NICs.
    const std::int64_t round_up = nics_per_node_ < gpus_per_node_ ? nics_per_node_ - 1 : 0;
    return first_gpu(node) + (nic * gpus_per_node_ + round_up) / nics_per_node_;
}

bool NodeLinks::is_near(std::int64_t gpu, std::int64_t nic) const {
    return nearest_nic(gpu) == nic || nearest_gpu(node_of(gpu), nic) == gpu;
}

std::vector<std::int64_t> NodeLinks::nics_of(std::span<const std::int64_t> gpus) const {
    std::vector<std::int64_t> nics;
    for (std::int64_t nic = 0; nic < nics_per_node_; ++nic) {
        if (std::ranges::any_of(gpus, [&](std::int64_t g) { return is_near(g, nic); })) {
            nics.push_back(nic);
        }
    }
    return nics;
}

std::int64_t NodeLinks::nics_per_gpu() const {
    return std::max<std::int64_t>(1, nics_per_node_ / gpus_per_node_);
}

LinkId NodeLinks::switch_link(std::int64_t gpu, int which) const {
    const std::int64_t index =
        node_of(gpu) * switches_per_node_ + local(gpu) / pcie_.gpus_per_switch;
    return switch_first_ + static_cast<LinkId>(index * 2 + which);
}

bool NodeLinks::by_root_complex(std::int64_t from, std::int64_t to) const {
    const bool one_switch = switch_link(from, 0) == switch_link(to, 0);
    return !one_switch || pcie_.acs || !pcie_.peer_to_peer;
}

// By the root complex from the PCIe switch of one GPU to that of another of the node. Between peers on two
// switches it passes on less than their links bring.
void NodeLinks::between_switches(std::int64_t from, std::int64_t to, float share,
                                 std::vector<Usage>& out) const {
    const bool peers = pcie_.peer_to_peer && switch_link(from, 0) != switch_link(to, 0);
    const float of_link = peers ? share / static_cast<float>(pcie_.root_complex_share) : share;
    out.push_back({switch_link(from, 0), of_link});
    if (!same_socket(from, to)) {
        out.push_back({socket_link(node_of(from), socket_of(from) > 0), share});
    }
    out.push_back({switch_link(to, 1), of_link});
}

void NodeLinks::between(std::int64_t from, std::int64_t to, float share,
                        std::vector<Usage>& out) const {
    if (same_domain(from, to)) return;
    out.push_back({gpu_link(from, pcie_out), share});
    if (by_root_complex(from, to)) between_switches(from, to, share, out);
    if (!pcie_.peer_to_peer) {
        out.push_back({gpu_link(from, bounce_out), share});
        out.push_back({gpu_link(to, bounce_in), share});
    }
    out.push_back({gpu_link(to, pcie_in), share});
}

void NodeLinks::to_nic(std::int64_t gpu, std::int64_t nic, bool outwards, float share,
                       std::vector<Usage>& out) const {
    const std::int64_t other = nearest_gpu(node_of(gpu), nic);
    out.push_back({gpu_link(gpu, outwards ? pcie_out : pcie_in), share});
    if (by_root_complex(gpu, other)) {
        between_switches(outwards ? gpu : other, outwards ? other : gpu, share, out);
    }
    if (!pcie_.peer_to_peer) {
        out.push_back({gpu_link(gpu, outwards ? bounce_out : bounce_in), share});
    }
    out.push_back({nic_link(node_of(gpu), nic, outwards ? 0 : 1), share});
}

std::vector<LinkId> NodeLinks::links_of(const PartFault& fault) const {
    if (fault.part == Part::pcie) {
        const std::int64_t gpu = first_gpu(fault.node) + fault.index;
        return {gpu_link(gpu, pcie_out), gpu_link(gpu, pcie_in)};
    }
    if (fault.part == Part::nic) {
        return {nic_link(fault.node, fault.index, 0), nic_link(fault.node, fault.index, 1)};
    }
    return {};
}

std::string NodeLinks::name(LinkId link) const {
    const auto place = [&](LinkId first, std::int64_t per_node, std::int64_t each) {
        const std::int64_t index = (link - first) / each;
        return std::pair(index / per_node, index % per_node);
    };
    if (link < nic_first_) {
        constexpr const char* names[] = {"PCIe out of", "PCIe into", "host memory out of",
                                         "host memory into"};
        const auto [node, gpu] = place(gpu_first_, gpus_per_node_, gpu_links);
        return fmt::format("{} node-{}.gpu-{}", names[(link - gpu_first_) % gpu_links], node, gpu);
    }
    if (link < switch_first_) {
        const auto [node, nic] = place(nic_first_, nics_per_node_, 2);
        return fmt::format("{} node-{}.nic-{}", (link - nic_first_) % 2 == 0 ? "out by" : "in by",
                           node, nic);
    }
    if (link < socket_first_) {
        const auto [node, index] = place(switch_first_, switches_per_node_, 2);
        return fmt::format("root complex of node-{}, PCIe switch {}", node, index);
    }
    return fmt::format("between the sockets of node-{}", (link - socket_first_) / 2);
}

void NodeLinks::add_to(Fingerprint& shape) const {
    shape.add_all(gpus_per_node_, nics_per_node_, domain_, pcie_.gpus_per_switch, pcie_.sockets,
                  pcie_.acs, pcie_.peer_to_peer, pcie_.root_complex_share);
}

}  // namespace railyard
