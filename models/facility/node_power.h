#pragma once
// What a node draws at its plug, from what its GPUs do. README.md has the equations.

#include <cstdint>
#include <string>

#include "models/catalogue/catalogue.h"

namespace railyard {

// What a node's GPUs do, as far as their power is concerned.
enum class Activity : std::uint8_t {
    idle,           // no kernel runs
    communication,  // kernels of a collective wait and copy
    memory_bound,   // kernels that wait for HBM
    compute,        // matrix multiplications
};

struct GpuPower {
    Watts max;  // TDP
    Watts idle;
    double compute_fraction = 0;  // of max
    double memory_bound_fraction = 0;
    double communication_fraction = 0;
    Watts cap;                // what the driver holds it to; max: nothing
    double cap_exponent = 0;  // speed ~ (power / max)^this

    Watts at(Activity activity) const;  // under the cap
    // Speed of matrix multiplications when the GPU may draw so much: 1 at max.
    double speed_at(Watts power) const;
    // What matrix multiplications draw when they run at this fraction of full speed: the law's inverse.
    Watts compute_power_at(double speed) const;
};

// The cap's law was seen from here to 1 of max; no cap below is taken.
constexpr double cap_fraction_min = 0.6;

class NodePower {
  public:
    struct Parts {
        double gpus = 0;
        double nics = 0;
        double host = 0;  // CPUs, memory, drives, NVLink switches
        double fans = 0;
        double conversion = 0;  // lost in the power supplies
        double total() const { return gpus + nics + host + fans + conversion; }
    };

    GpuPower gpu;
    std::int64_t gpus = 0;
    double nics = 0;          // W
    double host = 0;          // W
    double fans_at_full = 0;  // W, when all GPUs draw their max
    double supply_efficiency = 1;
    Watts rated;                       // nameplate, from the catalogue
    std::int64_t supplies = 0;         // 0: not known
    std::int64_t supplies_needed = 0;  // for full load
    Watts supply_rating;

    // With each GPU drawing `gpu_watts`.
    Parts parts(double gpu_watts) const;
    Watts at(double gpu_watts) const { return {parts(gpu_watts).total()}; }
    Watts at(Activity activity) const { return at(gpu.at(activity).value); }
    Watts full() const { return at(gpu.max.value); }  // all GPUs at their TDP, whatever the cap
    Watts peak() const { return at(Activity::compute); }
    // The most that it may draw: its rating, or its GPUs at their cap with all else at full.
    Watts design() const;
};

// The node of the catalogue, with so many GPUs and NICs of these kinds. Fans move what `liquid_fraction`
// leaves of the heat.
struct NodePowerSpec {
    std::string node;
    std::string gpu;
    std::string nic;
    std::int64_t gpus = 0;
    std::int64_t nics = 0;
    std::int64_t storage_nics = 0;
};
NodePower read_node_power(Catalogue& catalogue, const NodePowerSpec& spec, double liquid_fraction);

}  // namespace railyard
