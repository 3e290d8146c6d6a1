#pragma once
// What a node is made of, and how long a GPU takes for one kernel.

#include <cstdint>
#include <string>

#include "models/catalogue/catalogue.h"

namespace railyard {

struct Gpu {
    std::string name;
    Flops bf16_dense;       // datasheet peak, no sparsity: the denominator of MFU
    Flops bf16_achievable;  // best measured matrix multiplication
    std::int64_t sms = 0;
    Bytes hbm_capacity;
    Bandwidth hbm_bandwidth;  // peak
    double hbm_efficiency = 0;
    Bandwidth nvlink_bandwidth;  // per direction, all links
    Bandwidth pcie_bandwidth;    // per direction
    Duration kernel_launch{};
    double sustained_fraction = 0;    // of bf16_achievable, hour after hour
    double gemm_half_depth = 0;       // see gemm_seconds
    double attention_efficiency = 0;  // of the sustained rate, fused attention kernels

    double sustained_flops() const { return bf16_achievable.per_second * sustained_fraction; }
    Bytes reserved_memory;  // CUDA context and NCCL buffers
};

struct Node {
    std::string name;
    Gpu gpu;
    std::int64_t gpus = 0;
    std::int64_t nvlink_domain = 0;  // GPUs that reach each other over NVLink
    double nvlink_efficiency = 0;    // of nvlink_bandwidth, large messages
    Duration nvlink_latency{};       // one step of a ring over NVLink
    std::int64_t nics = 0;
    Bandwidth nic_bandwidth;        // one NIC, after protocol overhead
    Duration nic_latency{};         // one way, end to end
    Duration net_step_latency{};    // one step of a ring over the network
    std::int64_t storage_nics = 0;  // 0: storage traffic uses the compute NICs
};

// Reads a node and its GPU and NIC. `name` must be an entry of kind "node".
Node read_node(Catalogue& catalogue, const std::string& name);

// C[m,n] += A[m,k] B[k,n] in bf16 on one GPU, in seconds, without launch:
//
//     time = max(2 m n k / (sustained * waves * depth), bytes / HBM)
//     waves = tiles / (SMs * ceil(tiles / SMs)),  tiles = ceil(m/128) ceil(n/256)
//     depth = k / (k + gemm_half_depth)
//
// The wave term is tile quantisation as vendors document it; the depth term is the prologue and
// epilogue of a tile, fitted by one number.
double gemm_seconds(const Gpu& gpu, double m, double n, double k);

// A kernel bound by HBM that moves `bytes`, in seconds, without launch.
double memory_seconds(const Gpu& gpu, double bytes);

}  // namespace railyard
