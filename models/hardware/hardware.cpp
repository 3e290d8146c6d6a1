#include "models/hardware/hardware.h"

#include <algorithm>
#include <cmath>

namespace railyard {

const std::vector<std::string>& precision_names() {
    static const std::vector<std::string> names = {"bf16", "fp8"};
    return names;
}

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
    if (c.has("gpu", name, "fp8_achievable")) {
        g.fp8_achievable = c.compute("gpu", name, "fp8_achievable");
    }
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
    const std::string generation = c.text("gpu", name, "arch");
    g.sustained_fraction = c.number("step_model", generation, "sustained_fraction");
    g.tile_columns = c.number("step_model", generation, "tile_columns");
    g.tile_overhead = c.time("step_model", "all", "tile_overhead");
    g.fused_attention_efficiency = c.number("step_model", generation, "fused_attention_efficiency");
    g.batched_gemm_efficiency = c.number("step_model", "all", "batched_gemm_efficiency");
    g.score_traffic = c.number("step_model", "all", "score_traffic");
    g.elementwise_traffic = c.number("step_model", "all", "elementwise_traffic");
    g.expert_traffic = c.number("step_model", "all", "expert_traffic");
    g.loss_traffic = c.number("step_model", "all", "loss_traffic");
    g.overlap_tax = c.number("step_model", "all", "overlap_tax");
    g.piecewise_overlap = c.number("step_model", "all", "piecewise_overlap");
    g.kernel_gap = c.time("step_model", "all", "kernel_gap");
    g.layer_launch_forward = c.time("step_model", generation, "layer_launch_forward");
    g.layer_launch_backward = c.time("step_model", generation, "layer_launch_backward");
    g.recompute_overhead = c.time("step_model", "all", "recompute_overhead");
    g.step_overhead = c.time("step_model", "all", "step_overhead");
    g.reserved_memory = c.data("kernel_overheads", "", "context_memory") +
                        c.data("kernel_overheads", "", "nccl_memory");
    return g;
}

}  // namespace

Node read_node(Catalogue& c, const std::string& name) {
    Node n;
    n.name = name;
    const std::string gpu = c.text("node", name, "gpu");
    n.gpu = read_gpu(c, gpu);
    n.gpus = c.integer("node", name, "gpus");
    n.nvlink_domain =
        c.has("node", name, "nvlink_domain") ? c.integer("node", name, "nvlink_domain") : n.gpus;
    n.nvlink_efficiency = c.number("step_model", c.text("gpu", gpu, "arch"), "nvlink_efficiency");
    n.nvlink_latency = c.time("step_model", "all", "nvlink_step_latency");
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
    n.net_step_latency = c.time("step_model", "all", "net_step_latency");
    n.storage_nics =
        c.has("node", name, "storage_nics") ? c.integer("node", name, "storage_nics") : 0;
    if (n.nic_latency == Duration{})
        n.nic_latency = c.time("nic", "cx7_ndr400", "ib_write_latency");
    return n;
}

double memory_seconds(const Gpu& gpu, double bytes) {
    return bytes / (gpu.hbm_bandwidth.bytes_per_second() * gpu.hbm_efficiency);
}

double gemm_seconds(const Gpu& gpu, const Gemm& g) {
    if (g.m * g.n * g.k == 0) return 0;
    constexpr double tile_rows = 128;
    const double bytes_per_element = g.precision == Precision::fp8 ? 1 : 2;
    const double rate = gpu.sustained_flops(g.precision);
    const double tile =
        2 * tile_rows * gpu.tile_columns * g.k * static_cast<double>(gpu.sms) / rate;
    const double depth = tile / (tile + seconds(gpu.tile_overhead));
    const double flops = g.groups * 2 * g.m * g.n * g.k;
    const double compute = flops / (rate * depth);
    const double bytes = g.groups * (bytes_per_element * (g.m * g.k + g.k * g.n) + 2 * g.m * g.n);
    return std::max(compute, memory_seconds(gpu, bytes)) + seconds(gpu.kernel_gap);
}

}  // namespace railyard
