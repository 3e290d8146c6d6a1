#pragma once
// What a node is made of, and how long a GPU takes for one kernel.

#include <array>
#include <compare>
#include <cstdint>
#include <string>
#include <vector>

#include "models/catalogue/catalogue.h"

namespace railyard {

// What matrix multiplications of a training run compute in; attention and everything else stay bf16.
enum class Precision : std::uint8_t {
    bf16,         // and fp16, which is as fast
    fp8,          // one scale for a tensor, from the steps before (delayed scaling)
    fp8_current,  // one scale for a tensor, from the tensor itself
    fp8_rowwise,  // one for each row and column
    mxfp8,        // one for each 32 elements
    nvfp4,        // one for each 16 elements of 4 bits
};
constexpr std::size_t precisions = 6;
// Their words in scenarios, in order.
extern const std::vector<std::string> precision_names;

// What the job's software makes of a GPU: the kernels that it has, and what it costs the CPU to launch them.
struct StackKernels {
    double fused_attention_efficiency = 0;  // of the sustained rate, with heads of 128
    // Activations of the hidden size that are moved for each copy of a token that goes to an expert, to
    // route, sort, gather and add up.
    double expert_traffic = 0;
    double loss_traffic = 0;          // bytes per logit, forward and backward, unfused loss
    double accumulation_traffic = 0;  // bytes per parameter and microbatch, to add up gradients
    double tile_prologue = 0;         // of a product's inner dimension, what a tile's start costs
    double overlap_tax = 0;           // what a hidden collective's SMs cost the computation
    double piecewise_overlap = 0;     // of a collective cut into pieces beside work, what can hide
    double grouped_efficiency = 1;    // of one large product's rate, experts' launches in 16 bits
    Duration kernel_gap{};
    // What an eager framework needs on its CPU to launch one transformer layer, and once a step for
    // data, norms, logs.
    Duration layer_launch_forward{};
    Duration layer_launch_backward{};
    Duration step_overhead{};
    // The share of the rate that the best kernels sustain, by precision.
    std::array<double, precisions> kernel_quality{1, 1, 1, 1, 1, 1};
};

struct Gpu : StackKernels {
    std::string id;  // in the catalogue
    std::string name;
    std::string generation;
    Flops bf16_dense;       // datasheet peak, no sparsity: the denominator of MFU
    Flops bf16_achievable;  // best measured matrix multiplication
    Flops fp8_achievable;   // likewise; 0: this GPU has no fp8
    Flops mxfp8_achievable;
    Flops fp4_achievable;
    std::int64_t sms = 0;
    Bytes hbm_capacity;       // as it is sold
    Bytes usable_memory;      // what a job can have of it, CUDA's own part included
    Bandwidth hbm_bandwidth;  // peak
    double hbm_efficiency = 0;
    Bandwidth nvlink_bandwidth;       // per direction, all links
    Bandwidth nccl_nvlink_bandwidth;  // what NCCL counts of it
    Bandwidth pcie_bandwidth;         // per direction
    Bandwidth host_bandwidth;  // to its host's memory and back, as measured, by PCIe or NVLink-C2C
    // The step model's parameters for this generation, from the catalogue.
    double sustained_fraction = 0;       // of bf16_achievable, hour after hour
    double exponential_width = 0;        // what a score's exponential costs, in elements of a head
    double batched_gemm_efficiency = 0;  // likewise, the small multiplications of unfused attention
    double unaligned_efficiency = 0;     // of these, where heads are no multiple of 16 bytes
    double score_traffic = 0;            // bytes per score, forward, unfused attention
    // Activations of the hidden size that elementwise kernels move per layer, forward.
    double elementwise_traffic = 0;
    Duration recompute_overhead{};  // of one layer that is computed again

    Flops achievable(Precision precision) const;  // 0: it has no such multipliers
    double sustained_flops(Precision precision = Precision::bf16) const {
        return achievable(precision).per_second * sustained_fraction *
               kernel_quality[static_cast<std::size_t>(precision)];
    }
    Bytes reserved_memory;  // CUDA context and NCCL buffers
};

// A part that works, but slower than it should, and that nobody has noticed: PCIe trained down to
// fewer lanes, an NVLink lane lost, a GPU held at low clocks, its memory throttled.
enum class Part : std::uint8_t { gpu, nvlink, pcie, nic, hbm };
extern const std::vector<std::string> part_names;
struct PartFault {
    Part part = Part::gpu;
    std::int64_t node = 0;
    std::int64_t index = 0;  // of the GPU or the NIC in its node
    double speed = 1;        // of a sound one's, above 0

    auto operator<=>(const PartFault&) const = default;
};

std::string describe(const PartFault& fault);  // "nvlink 3 of node 1 at 50 %"

// How a node's GPUs and NICs meet when NVLink does not carry it. Bytes/s are per direction.
struct Pcie {
    std::int64_t gpus_per_switch = 0;
    std::int64_t sockets = 0;
    double link_bytes_per_s = 0;    // of a GPU, a NIC, and of a switch to its root complex
    double socket_bytes_per_s = 0;  // between two sockets
    double bounce_bytes_per_s = 0;  // of a GPU that has to go through host memory
    double root_complex_share = 1;  // what peers on two switches get of a link
    bool acs = false;               // peers on one switch meet at the root complex only
    bool peer_to_peer = true;       // false: GPUs and NICs reach each other through host memory
};

struct Node {
    // The defaults, in hardware.cpp: compiled once there, not in each source that uses one.
    Node();
    Node(const Node&);
    Node(Node&&) noexcept;
    Node& operator=(const Node&);
    Node& operator=(Node&&) noexcept;
    ~Node();

    std::string name;
    Gpu gpu;
    std::int64_t gpus = 0;
    std::int64_t nvlink_domain = 0;  // GPUs that reach each other over NVLink
    std::int64_t trays = 1;  // of a rack, alike: NICs at the same place in each are on one rail
    bool nvlink = true;      // false: over PCIe, whose rate then stands for NVLink's
    std::string nic;         // in the catalogue
    std::string transport;   // infiniband, roce, efa ...
    std::int64_t nics = 0;
    std::int64_t nic_ports = 1;  // that one NIC can split into
    Bandwidth nic_line_rate;     // one NIC, per direction
    Bandwidth nic_bandwidth;     // likewise, after protocol overhead
    double wire_share = 1;       // of a link's line rate, what that overhead leaves
    Pcie pcie;
    std::int64_t storage_nics = 0;  // 0: storage traffic uses the compute NICs
};

// What a node's GPUs move at once to its storage NICs and back, per direction: over the switches that
// both are on, or by the root complexes where access control sends peers there.
Bandwidth peer_storage_path(const Node& node);
// The same by way of host memory, which is written and read: `host` is what one socket's memory moves.
Bandwidth host_storage_path(const Node& node, Bandwidth host);

// Reads a node and its GPU and NIC. `name` must be an entry of kind "node".
Node read_node(Catalogue& catalogue, const std::string& name);

// `groups` multiplications C[m,n] += A[m,k] B[k,n] of one shape, in one launch.
struct Gemm {
    double m = 0;
    double n = 0;
    double k = 0;
    double groups = 1;
    Precision precision = Precision::bf16;
};

// What one element of a matrix takes in memory, and what it costs to bring it there from bf16: bytes read and
// written for an input that is used as it is and, where the weights have gradients, transposed for them.
double element_bytes(Precision precision);
double cast_bytes(Precision precision, bool transposed);

// On one GPU, in seconds, with the gap to the next kernel:
//
//     time = max(groups 2 M N K / (sustained * fill), bytes / HBM) + gap
//     M, N = m, n rounded up to 128
//     fill = min(1, groups M N / (64 x 128) / SMs)
//     K = k + prologue
//
// Tiles have whole edges, and a product of fewer tiles than SMs leaves some idle, however small the library
// makes them. A tile fills its buffers before it multiplies. The idle SMs of a large product's last wave are
// left out: fits put them at nothing.
double gemm_seconds(const Gpu& gpu, const Gemm& gemm);

// Gives the node NICs of this entry of the catalogue, as many as it has.
void set_nic(Catalogue& catalogue, Node& node, const std::string& nic);

// Bytes/s of a ring through the first `gpus` of a node over PCIe, and where these are of several switches or
// sockets over the root complex and the link between the sockets.
double pcie_ring_bytes_per_s(const Node& node, std::int64_t gpus);

// The node without NVLink: what a ring of all its GPUs gets over PCIe takes its place.
void remove_nvlink(Node& node);

// The node as a synchronous job sees it that waits for its slowest part.
Node with_faults(Node node, const std::vector<PartFault>& faults);

// What a NIC carries when all NICs and GPUs of the node are at work, both ways.
Bandwidth nic_bandwidth_under_load(const Node& node);

// A kernel bound by HBM that moves `bytes`, in seconds, without the gap to the next.
double memory_seconds(const Gpu& gpu, double bytes);

}  // namespace railyard
