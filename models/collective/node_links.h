#pragma once
// The links inside nodes: PCIe, what passes host memory, and the way between sockets. GPUs are numbered
// through all nodes, NICs within theirs.

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "models/fabric/fabric.h"
#include "models/hardware/hardware.h"
#include "sim/fingerprint.h"

namespace railyard {

class NodeLinks {
  public:
    // Its links' numbers follow those of the network's.
    NodeLinks(const Node& node, std::int64_t nodes, LinkId network_links);

    // Appends the bytes/s of all its links to those of the network's.
    void add_capacities(std::vector<double>& capacity) const;

    std::int64_t node_of(std::int64_t gpu) const { return gpu / gpus_per_node_; }
    std::int64_t first_gpu(std::int64_t node) const { return node * gpus_per_node_; }
    bool same_domain(std::int64_t a, std::int64_t b) const;  // NVLink joins them
    bool same_socket(std::int64_t a, std::int64_t b) const;  // of one node
    // Who hands over to a NIC, or takes from it: a GPU that is not next to it, or on the other socket, leaves
    // that to one that is, where NVLink reaches that (NCCL's PXN).
    std::int64_t next_to(std::int64_t gpu, std::int64_t nic) const;
    std::int64_t nearest_nic(std::int64_t gpu) const;
    std::int64_t nearest_gpu(std::int64_t node, std::int64_t nic) const;
    bool is_near(std::int64_t gpu, std::int64_t nic) const;
    std::vector<std::int64_t> nics_of(std::span<const std::int64_t> gpus) const;
    std::int64_t nics_per_gpu() const;  // at least 1

    // Over PCIe; nothing where NVLink joins them.
    void between(std::int64_t from, std::int64_t to, float share, std::vector<Usage>& out) const;
    // Between a GPU and a NIC of its node, under the switch of the GPU that is nearest to the NIC.
    void to_nic(std::int64_t gpu, std::int64_t nic, bool outwards, float share,
                std::vector<Usage>& out) const;

    bool has(LinkId link) const { return link >= gpu_first_; }
    LinkId first() const { return gpu_first_; }  // those before are the network's
    // The links of a part that is slow, out of it and into it; none of a GPU, or of NVLink.
    std::vector<LinkId> links_of(const PartFault& fault) const;
    std::string name(LinkId link) const;
    void add_to(Fingerprint& shape) const;

  private:
    enum : int { pcie_out, pcie_in, bounce_out, bounce_in, gpu_links };

    std::int64_t local(std::int64_t gpu) const { return gpu % gpus_per_node_; }
    // The first sockets have the first GPUs.
    std::int64_t socket_of(std::int64_t gpu) const {
        return local(gpu) * pcie_.sockets / gpus_per_node_;
    }
    LinkId gpu_link(std::int64_t gpu, int which) const {
        return gpu_first_ + static_cast<LinkId>(gpu * gpu_links + which);
    }
    // The NIC's own end of PCIe; 0: towards the network, 1: from it.
    LinkId nic_link(std::int64_t node, std::int64_t nic, int which) const {
        return nic_first_ + static_cast<LinkId>((node * nics_per_node_ + nic) * 2 + which);
    }
    // The link of the PCIe switch above a GPU; 0: up to the root complex, 1: down.
    LinkId switch_link(std::int64_t gpu, int which) const;
    // Between the sockets of a node, per direction.
    LinkId socket_link(std::int64_t node, int which) const {
        return socket_first_ + static_cast<LinkId>(node * 2 + which);
    }
    bool by_root_complex(std::int64_t from, std::int64_t to) const;
    void between_switches(std::int64_t from, std::int64_t to, float share,
                          std::vector<Usage>& out) const;

    Pcie pcie_;
    std::int64_t gpus_per_node_;
    std::int64_t nics_per_node_;
    std::int64_t domain_;  // GPUs; 1: no NVLink
    std::int64_t switches_per_node_;
    LinkId gpu_first_ = 0;
    LinkId nic_first_ = 0;
    LinkId switch_first_ = 0;
    LinkId socket_first_ = 0;
    LinkId end_ = 0;
    double nic_bytes_per_s_;
};

}  // namespace railyard
