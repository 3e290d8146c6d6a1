#include "models/hardware/hardware.h"

#include <algorithm>
#include <cmath>

namespace railyard {

namespace {

Gpu read_gpu(Catalogue& c, const std::string& name) {
    Gpu g;
    g.name = c.text("gpu", name, "name");
    g.bf16_dense = c.compute("gpu", name, "bf16_dense");
    // An entry without a measured ceiling takes the H100's ratio of measured to datasheet.
    g.bf16_achievable = c.has("gpu", name, "bf16_achievable")
                            ? c.compute("gpu", name, "bf16_achievable")
                            : Flops{g.bf16_dense.per_second *
                                    c.compute("gpu", "h100_sxm", "bf16_achievable").per_second /
                                    c.compute("gpu", "h100_sxm", "bf16_dense").per_second};
    g.sms = c.integer("gpu", name, "sms");
    g.hbm_capacity = c.data("gpu", name, "hbm_capacity");
    g.hbm_bandwidth = c.bandwidth("gpu", name, "hbm_bandwidth");
    g.hbm_efficiency = c.has("gpu", name, "hbm_efficiency")
                           ? c.number("gpu", name, "hbm_efficiency")
                           : c.number("gpu", "h100_sxm", "hbm_efficiency");
    g.nvlink_bandwidth = c.bandwidth("gpu", name, "nvlink_bandwidth");
    g.pcie_bandwidth = c.has("gpu", name, "pcie_bandwidth")
                           ? c.bandwidth("gpu", name, "pcie_bandwidth")
                           : c.bandwidth("pcie_p2p", "", "pcie5_x16_bandwidth");
    g.kernel_launch = c.time("kernel_overheads", "", "graph_launch_time");
    g.sustained_fraction = c.number("step_model", "", "sustained_fraction");
    g.gemm_half_depth = c.number("step_model", "", "gemm_half_depth");
    g.attention_efficiency = c.number("step_model", "", "attention_efficiency");
    g.reserved_memory = c.data("kernel_overheads", "", "context_memory") +
                        c.data("kernel_overheads", "", "nccl_memory");
    return g;
}

}  // namespace

Node read_node(Catalogue& c, const std::string& name) {
    Node n;
    n.name = name;
    n.gpu = read_gpu(c, c.text("node", name, "gpu"));
    n.gpus = c.integer("node", name, "gpus");
    n.nvlink_domain =
        c.has("node", name, "nvlink_domain") ? c.integer("node", name, "nvlink_domain") : n.gpus;
    n.nvlink_efficiency = c.number("step_model", "", "nvlink_efficiency");
    n.nvlink_latency = c.time("step_model", "", "nvlink_step_latency");
    n.nics = c.integer("node", name, "compute_nics");
    const std::string nic = c.text("node", name, "compute_nic");
    const double achieved = c.has("nic", nic, "achieved_fraction")
                                ? c.number("nic", nic, "achieved_fraction")
                                : c.number("nic", "cx7_ndr400", "achieved_fraction");
    n.nic_bandwidth = c.bandwidth("nic", nic, "bandwidth") * achieved;
    for (const char* key : {"ib_write_latency", "roce_write_latency", "latency"}) {
        if (!c.has("nic", nic, key)) continue;
        n.nic_latency = c.time("nic", nic, key);
        break;
    }
    n.net_step_latency = c.time("step_model", "", "net_step_latency");
    n.storage_nics =
        c.has("node", name, "storage_nics") ? c.integer("node", name, "storage_nics") : 0;
    if (n.nic_latency == Duration{})
        n.nic_latency = c.time("nic", "cx7_ndr400", "ib_write_latency");
    return n;
}

double memory_seconds(const Gpu& gpu, double bytes) {
    return bytes / (gpu.hbm_bandwidth.bytes_per_second() * gpu.hbm_efficiency);
}

double gemm_seconds(const Gpu& gpu, double m, double n, double k) {
    constexpr double tile_rows = 128;
    constexpr double tile_columns = 256;
    constexpr double bytes_per_element = 2;
    const double sms = static_cast<double>(gpu.sms);
    const double tiles = std::ceil(m / tile_rows) * std::ceil(n / tile_columns);
    const double waves = tiles / (sms * std::ceil(tiles / sms));
    const double depth = k / (k + gpu.gemm_half_depth);
    const double compute = 2 * m * n * k / (gpu.sustained_flops() * waves * depth);
    const double bytes = bytes_per_element * (m * k + k * n + m * n);
    return std::max(compute, memory_seconds(gpu, bytes));
}

}  // namespace railyard
