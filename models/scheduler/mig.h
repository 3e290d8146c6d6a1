#pragma once
// GPUs that are cut into slices (NVIDIA's Multi-Instance GPU): which instances fit, where, and what they
// strand. README.md has the model.

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "sim/units.h"

namespace railyard {

// Slices of each GPU that can be cut, A100 to B200.
constexpr int mig_compute_slices = 7;
constexpr int mig_memory_slices = 8;

// An instance at memory slice s holds memory slices [s, s + memory) and compute slices [s, s + compute); the
// compute slices of [s + compute, s + memory) are out of everybody's reach meanwhile.
struct MigProfile {
    int compute = 1;
    int memory = 1;
    std::vector<int> starts{};
};
using ProfileIndex = std::uint8_t;  // of mig_profiles()
const std::vector<MigProfile>& mig_profiles();

// "3g.40gb" of a GPU of 80 GB: the memory in whole gigabytes.
std::string mig_name(const MigProfile& profile, Bytes gpu_memory);
std::vector<std::string> mig_names(Bytes gpu_memory);  // of each profile
// The compute slices that its name begins with.
std::int64_t mig_compute_of(const std::string& name);

struct MigInstance {
    ProfileIndex profile = 0;
    int start = 0;
};
// Places for all of them on one GPU; nothing if there are none.
std::optional<std::vector<MigInstance>> mig_layout(const std::vector<ProfileIndex>& profiles);

// Chooses the legal place of an instance: the one that strands least, then on the fullest GPU, then the one
// that leaves most places for others; or simply the first.
enum class MigPlacement : std::uint8_t { best, first };

// Where an instance is on a node: its GPU, and the first memory slice there.
struct MigPlace {
    std::size_t gpu = 0;
    int start = 0;
};

// How a group's GPUs are cut: beforehand, all alike, or as jobs come and go.
struct MigSpec {
    std::vector<MigInstance> layout{};  // empty: as jobs come and go
    MigPlacement placement = MigPlacement::best;
};

// The GPUs of one node. An owner holds at most one instance.
class MigGpus {
  public:
    MigGpus(std::int64_t gpus, const MigSpec& spec);

    std::int64_t room(ProfileIndex profile) const;  // so many more instances
    // room() > 0. At this place, if one is given and can still be had.
    void take(ProfileIndex profile, std::uint32_t owner, const std::optional<MigPlace>& at = {});
    void give_back(std::uint32_t owner);
    std::optional<MigPlace> place_of(std::uint32_t owner) const;

    // Compute slices: 7 a GPU, each held, or stranded, or free.
    std::int64_t free() const { return free_; }
    std::int64_t stranded() const { return stranded_; }

  private:
    struct Slot {
        MigInstance instance;
        std::uint32_t owner;
    };
    using Gpu = std::vector<Slot>;
    MigPlace choose(ProfileIndex profile) const;
    bool could_be_at(ProfileIndex profile, const MigPlace& at) const;
    void count();  // what is free, and what is stranded

    const MigSpec* spec_;
    std::vector<Gpu> gpus_;
    std::int64_t free_ = 0;
    std::int64_t stranded_ = 0;
};

}  // namespace railyard
