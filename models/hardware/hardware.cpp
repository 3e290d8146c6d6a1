#include "models/hardware/hardware.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "sim/text.h"

namespace railyard {

Node::Node() = default;
Node::Node(const Node&) = default;
Node::Node(Node&&) noexcept = default;
Node& Node::operator=(const Node&) = default;
Node& Node::operator=(Node&&) noexcept = default;
Node::~Node() = default;

const std::vector<std::string> precision_names = {"bf16",        "fp8",   "fp8_current",
                                                  "fp8_rowwise", "mxfp8", "nvfp4"};

Flops Gpu::achievable(Precision precision) const {
    switch (precision) {
        case Precision::bf16:
            return bf16_achievable;
        case Precision::fp8:
        case Precision::fp8_current:
        case Precision::fp8_rowwise:
            return fp8_achievable;
        case Precision::mxfp8:
            return mxfp8_achievable;
        case Precision::nvfp4:
            return fp4_achievable;
    }
    return {};
}

double element_bytes(Precision precision) {
    switch (precision) {
        case Precision::bf16:
            return 2;
        case Precision::mxfp8:
            return 1 + 1.0 / 32;
        case Precision::nvfp4:
            return 0.5 + 1.0 / 16;
        default:
            return 1;
    }
}

double cast_bytes(Precision precision, bool transposed) {
    const double ways = transposed ? 2 : 1;
    const double copies = ways * element_bytes(precision);
    switch (precision) {
        case Precision::bf16:
            return 0;
        case Precision::fp8:
        case Precision::mxfp8:
            return 2 + copies;
        case Precision::fp8_current:
            return 2 + 2 + copies;  // read once for the scale
        case Precision::fp8_rowwise:
            return ways * (2 + 2) + copies;  // rows and columns apart, each read for its scales
        case Precision::nvfp4:
            // Read for the scale; the transposed copy is turned by a Hadamard transform before.
            return 2 + 2 + (transposed ? 2 + 2 : 0) + copies;
    }
    return 0;
}

namespace {

// What kernels reach of the datasheet, and what the software around them costs.
void read_kernels(Catalogue& c, Gpu& g) {
    const std::string& generation = g.generation;
    g.sustained_fraction = c.number("step_model", generation, "sustained_fraction");
    g.fused_attention_efficiency = c.number("attention_kernel", "flash_2", generation);
    g.exponential_width = c.number("step_model", generation, "exponential_width");
    g.batched_gemm_efficiency = c.number("step_model", "all", "batched_gemm_efficiency");
    g.unaligned_efficiency = c.number("step_model", "all", "unaligned_efficiency");
    g.score_traffic = c.number("step_model", "all", "score_traffic");
    g.elementwise_traffic = c.number("step_model", "all", "elementwise_traffic");
    g.expert_traffic = c.number("software", "megatron_lm", "expert_traffic");
    g.loss_traffic = c.number("software", "megatron_lm", "loss_traffic");
    g.overlap_tax = c.number("software", "megatron_lm", "overlap_tax");
    g.piecewise_overlap = c.number("step_model", "all", "piecewise_overlap");
    g.kernel_gap = c.time("software", "megatron_lm", "kernel_gap");
    g.layer_launch_forward = c.time("software", "megatron_lm", "layer_launch_forward");
    g.layer_launch_backward = c.time("software", "megatron_lm", "layer_launch_backward");
    g.recompute_overhead = c.time("step_model", "all", "recompute_overhead");
    g.step_overhead = c.time("step_model", "all", "step_overhead");
    g.reserved_memory = c.data("kernel_overheads", "", "context_memory") +
                        c.data("kernel_overheads", "", "nccl_memory");
}

// The slower way counts. Links that nobody measured give what is measured of PCIe 5.
Bandwidth read_host_bandwidth(Catalogue& c, const std::string& gpu, Bandwidth pcie) {
    const char* const out = "d2h_bandwidth_measured";
    const char* const back = "h2d_bandwidth_measured";
    if (c.has("gpu", gpu, out) && c.has("gpu", gpu, back)) {
        return std::min(c.bandwidth("gpu", gpu, out), c.bandwidth("gpu", gpu, back));
    }
    const Bandwidth link =
        c.has("gpu", gpu, "c2c_bandwidth") ? c.bandwidth("gpu", gpu, "c2c_bandwidth") : pcie;
    return link * c.number("pcie_p2p", "", "pcie5_achieved_fraction");
}

Gpu read_gpu(Catalogue& c, const std::string& name) {
    Gpu g;
    g.id = name;
    g.name = c.text("gpu", name, "name");
    g.bf16_dense = c.compute("gpu", name, "bf16_dense");
    // An entry without a measured ceiling takes the H100's ratio of measured to datasheet.
    g.bf16_achievable = c.has("gpu", name, "bf16_achievable")
                            ? c.compute("gpu", name, "bf16_achievable")
                            : Flops{g.bf16_dense.per_second *
                                    c.compute("gpu", "h100_sxm", "bf16_achievable").per_second /
                                    c.compute("gpu", "h100_sxm", "bf16_dense").per_second};
    if (c.has("gpu", name, "fp8_achievable")) {
        g.fp8_achievable = c.compute("gpu", name, "fp8_achievable");
    }
    // Without measurements of their own: blocks of 8 bits run as other 8 bits do.
    const bool blocks = c.has("gpu", name, "fp4_dense");
    if (blocks) {
        g.mxfp8_achievable = c.has("gpu", name, "mxfp8_achievable")
                                 ? c.compute("gpu", name, "mxfp8_achievable")
                                 : g.fp8_achievable;
        g.fp4_achievable = c.compute("gpu", name, "fp4_achievable");
    }
    g.sms = c.integer("gpu", name, "sms");
    g.hbm_capacity = c.data("gpu", name, "hbm_capacity");
    const double usable = c.number("gpu", name, "usable_ratio", 1);
    g.usable_memory = Bytes::of(std::llround(usable * real(g.hbm_capacity.count())));
    g.hbm_bandwidth = c.bandwidth("gpu", name, "hbm_bandwidth");
    g.hbm_efficiency = c.has("gpu", name, "hbm_efficiency")
                           ? c.number("gpu", name, "hbm_efficiency")
                           : c.number("gpu", "h100_sxm", "hbm_efficiency");
    g.nvlink_bandwidth = c.bandwidth("gpu", name, "nvlink_bandwidth");
    g.nccl_nvlink_bandwidth = c.has("gpu", name, "nccl_nvlink_bandwidth_per_link")
                                  ? c.bandwidth("gpu", name, "nccl_nvlink_bandwidth_per_link") *
                                        real(c.integer("gpu", name, "nvlink_links"))
                                  : g.nvlink_bandwidth;
    const bool readable = g.nvlink_bandwidth > Bandwidth::bits_per_second(1);
    if (readable && g.nccl_nvlink_bandwidth > g.nvlink_bandwidth) {
        c.error("gpu", name, {"nccl_nvlink_bandwidth_per_link", "nvlink_links", "nvlink_bandwidth"},
                fmt::format("NCCL's {} over all links is more than nvlink_bandwidth = {}",
                            to_text(g.nccl_nvlink_bandwidth), to_text(g.nvlink_bandwidth)));
    }
    g.pcie_bandwidth = c.has("gpu", name, "pcie_bandwidth")
                           ? c.bandwidth("gpu", name, "pcie_bandwidth")
                           : c.bandwidth("pcie_p2p", "", "pcie5_x16_bandwidth");
    g.host_bandwidth = read_host_bandwidth(c, name, g.pcie_bandwidth);
    g.generation = c.text("gpu", name, "arch");
    read_kernels(c, g);
    return g;
}

Pcie read_pcie(Catalogue& c, const std::string& node, const std::string& gpu) {
    Pcie p;
    p.gpus_per_switch = c.has("node", node, "gpus_per_pcie_switch")
                            ? c.integer("node", node, "gpus_per_pcie_switch")
                            : c.integer("pcie_p2p", "", "gpus_per_switch");
    p.sockets = std::max<std::int64_t>(1, c.integer("pcie_p2p", "", "sockets"));
    const std::int64_t generation = c.integer("gpu", gpu, "pcie_generation", 5);
    const char* link = generation <= 4   ? "pcie4_x16_bandwidth"
                       : generation == 5 ? "pcie5_x16_bandwidth"
                                         : "pcie6_x16_bandwidth";
    p.link_bytes_per_s = c.bandwidth("pcie_p2p", "", link).bytes_per_second() *
                         c.number("pcie_p2p", "", "pcie5_achieved_fraction");
    p.root_complex_share = c.number("pcie_p2p", "", "via_root_complex_fraction");
    const bool amd =
        c.has("node", node, "cpu") && c.text("node", node, "cpu").find("AMD") != std::string::npos;
    p.socket_bytes_per_s =
        c.bandwidth("pcie_p2p", "", amd ? "nccl_amd_socket_bandwidth" : "nccl_qpi_spr_bandwidth")
            .bytes_per_second();
    p.bounce_bytes_per_s =
        c.bandwidth("pcie_p2p", "",
                    generation <= 4 ? "shm_bounce_bandwidth_gen4" : "shm_bounce_bandwidth_gen5")
            .bytes_per_second();
    return p;
}

}  // namespace

Node read_node(Catalogue& c, const std::string& name) {
    Node n;
    n.name = name;
    const std::string gpu = c.text("node", name, "gpu");
    n.gpu = read_gpu(c, gpu);
    n.gpus = c.integer("node", name, "gpus");
    n.nvlink_domain = c.integer("node", name, "nvlink_domain", n.gpus);
    if (c.has("node", name, "compute_trays")) n.trays = c.integer("node", name, "compute_trays");
    n.nics = c.integer("node", name, "compute_nics");
    set_nic(c, n, c.text("node", name, "compute_nic"));
    n.storage_nics = c.integer("node", name, "storage_nics", 0);
    n.pcie = read_pcie(c, name, gpu);
    return n;
}

const std::vector<std::string> part_names = {"gpu", "nvlink", "pcie", "nic", "hbm"};

void set_nic(Catalogue& c, Node& node, const std::string& nic) {
    node.nic = nic;
    // An NIC without a measurement takes the ratio of one that has.
    const double achieved = c.number(
        "nic", c.has("nic", nic, "achieved_fraction") ? nic : "cx7_ndr400", "achieved_fraction");
    node.nic_ports = c.integer("nic", nic, "ports", 1);
    node.nic_line_rate = c.bandwidth("nic", nic, "bandwidth");
    node.nic_bandwidth = node.nic_line_rate * achieved;
    node.wire_share = achieved;
    node.transport = c.text("nic", nic, "transport", "unknown");
}

std::string describe(const PartFault& f) {
    return fmt::format("{} {} of node {} at {:g} %", word_of(part_names, f.part), f.index, f.node,
                       100 * f.speed);
}

double pcie_ring_bytes_per_s(const Node& node, std::int64_t gpus) {
    const Pcie& p = node.pcie;
    const std::int64_t sockets = std::max<std::int64_t>(1, p.sockets);
    const bool one_switch = gpus <= p.gpus_per_switch;
    const bool one_socket = gpus * sockets <= node.gpus;
    // A switch's link has one hop of the ring each way. With access control neighbours on one switch meet at
    // the root complex, too: then it has as many as the switch has GPUs.
    const std::int64_t of_switch = std::max<std::int64_t>(1, std::min(gpus, p.gpus_per_switch));
    double hops = p.acs ? real(of_switch) : 1;
    if (p.peer_to_peer && !one_switch) hops += 1 / p.root_complex_share - 1;
    double ring = p.link_bytes_per_s / hops;
    if (!one_socket) ring = std::min(ring, p.socket_bytes_per_s);
    if (!p.peer_to_peer) ring = std::min(ring, p.bounce_bytes_per_s);
    return ring;
}

void remove_nvlink(Node& node) {
    const double ring = pcie_ring_bytes_per_s(node, node.gpus);
    node.nvlink = false;
    node.gpu.nvlink_bandwidth = Bandwidth::bits_per_second(std::llround(8 * ring));
    node.gpu.nccl_nvlink_bandwidth = node.gpu.nvlink_bandwidth;
}

Bandwidth nic_bandwidth_under_load(const Node& node) {
    const Pcie& p = node.pcie;
    const double nics_per_gpu = real(node.nics) / real(node.gpus);
    double limit = p.link_bytes_per_s / nics_per_gpu;  // several GPUs may feed one NIC
    if (p.acs || !p.peer_to_peer) {
        // What a NIC sends and what it receives both go up to the root complex and down again.
        const double nics_per_switch = std::max(1.0, nics_per_gpu * real(p.gpus_per_switch));
        limit = std::min(limit, p.link_bytes_per_s / (2 * nics_per_switch));
    }
    if (!p.peer_to_peer) limit = std::min(limit, p.bounce_bytes_per_s / nics_per_gpu);
    return std::min(node.nic_bandwidth, Bandwidth::bits_per_second(std::llround(8 * limit)));
}

namespace {

// The GPUs of a switch share its one link to the root complex.
Bandwidth root_complex_links(const Node& node) {
    const Pcie& p = node.pcie;
    const double links = real(node.gpus) / real(std::max<std::int64_t>(1, p.gpus_per_switch));
    return Bandwidth::bits_per_second(std::llround(8 * p.link_bytes_per_s * std::max(1.0, links)));
}

}  // namespace

Bandwidth peer_storage_path(const Node& node) {
    if (node.pcie.acs) return root_complex_links(node);
    return Bandwidth::bits_per_second(
        std::llround(8 * node.pcie.link_bytes_per_s * real(node.gpus)));
}

Bandwidth host_storage_path(const Node& node, Bandwidth host) {
    return std::min(root_complex_links(node), host * (0.5 * real(node.pcie.sockets)));
}

Node with_faults(Node node, const std::vector<PartFault>& faults) {
    double gpu = 1;
    double nvlink = 1;
    double pcie = 1;
    double nic = 1;
    double hbm = 1;
    for (const PartFault& f : faults) {
        double& worst = f.part == Part::gpu      ? gpu
                        : f.part == Part::nvlink ? nvlink
                        : f.part == Part::pcie   ? pcie
                        : f.part == Part::hbm    ? hbm
                                                 : nic;
        worst = std::min(worst, f.speed);
    }
    node.gpu.sustained_fraction *= gpu;
    node.gpu.hbm_bandwidth = node.gpu.hbm_bandwidth * hbm;
    node.gpu.nvlink_bandwidth = node.gpu.nvlink_bandwidth * nvlink;
    node.gpu.nccl_nvlink_bandwidth = node.gpu.nccl_nvlink_bandwidth * nvlink;
    node.pcie.link_bytes_per_s *= pcie;
    const bool by_pcie = node.gpu.host_bandwidth <= node.gpu.pcie_bandwidth;  // else NVLink-C2C
    if (by_pcie) node.gpu.host_bandwidth = node.gpu.host_bandwidth * pcie;
    if (!node.nvlink) remove_nvlink(node);
    node.nic_bandwidth = node.nic_bandwidth * nic;
    node.nic_bandwidth = nic_bandwidth_under_load(node);
    return node;
}

double memory_seconds(const Gpu& gpu, double bytes) {
    return bytes / (gpu.hbm_bandwidth.bytes_per_second() * gpu.hbm_efficiency);
}

double gemm_seconds(const Gpu& gpu, const Gemm& g) {
    if (g.m * g.n * g.k == 0) return 0;
    constexpr double edge = 128;
    constexpr double smallest_tile = 64 * edge;
    const double bytes_per_element = element_bytes(g.precision);
    const double padded = std::ceil(g.m / edge) * edge * std::ceil(g.n / edge) * edge;
    const double tiles = g.groups * padded / smallest_tile;
    const double fill = std::min(1.0, tiles / real(gpu.sms));
    const bool grouped = g.groups > 1 && g.precision == Precision::bf16;
    const double rate =
        gpu.sustained_flops(g.precision) * fill * (grouped ? gpu.grouped_efficiency : 1);
    const double compute = g.groups * 2 * padded * (g.k + gpu.tile_prologue) / rate;
    const double bytes = g.groups * (bytes_per_element * (g.m * g.k + g.k * g.n) + 2 * g.m * g.n);
    return std::max(compute, memory_seconds(gpu, bytes)) + seconds(gpu.kernel_gap);
}

}  // namespace railyard
