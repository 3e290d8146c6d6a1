#include "models/scheduler/mig.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <tuple>

#include "sim/check.h"

namespace railyard {

namespace {

constexpr std::uint32_t nobody = std::numeric_limits<std::uint32_t>::max();
using MemorySlices = unsigned;  // a bit for each

MemorySlices memory_of(const MigProfile& profile, int start) {
    return ((1U << profile.memory) - 1U) << start;
}

int blocked_by(const MigProfile& profile, int start) {
    return std::min(mig_compute_slices, start + profile.memory) - start - profile.compute;
}

// How many places for it are left on a GPU on which these are taken.
std::int64_t places_for(const MigProfile& profile, MemorySlices taken) {
    return std::ranges::count_if(
        profile.starts, [&](int start) { return (memory_of(profile, start) & taken) == 0; });
}

std::int64_t places_for_all(MemorySlices taken) {
    std::int64_t places = 0;
    for (const MigProfile& profile : mig_profiles()) places += places_for(profile, taken);
    return places;
}

bool lay_out(const std::vector<ProfileIndex>& profiles, MemorySlices taken,
             std::vector<MigInstance>& out) {
    if (out.size() == profiles.size()) return true;
    const ProfileIndex next = profiles[out.size()];
    for (const int start : mig_profiles()[next].starts) {
        const MemorySlices memory = memory_of(mig_profiles()[next], start);
        if ((memory & taken) != 0) continue;
        out.push_back({next, start});
        if (lay_out(profiles, taken | memory, out)) return true;
        out.pop_back();
    }
    return false;
}

}  // namespace

// NVIDIA, "MIG User Guide", supported profiles and placements (nvidia-smi mig -lgipp) of A100 and H100.
const std::vector<MigProfile>& mig_profiles() {
    static const std::vector<MigProfile> profiles = {
        {1, 1, {0, 1, 2, 3, 4, 5, 6}},
        {1, 2, {0, 2, 4, 6}},
        {2, 2, {0, 2, 4}},
        {3, 4, {0, 4}},
        {4, 4, {0}},
        {7, 8, {0}},
    };
    return profiles;
}

std::string mig_name(const MigProfile& profile, Bytes gpu_memory) {
    constexpr std::int64_t gigabyte = 1'000'000'000;
    const std::int64_t eighths = gpu_memory.count() / gigabyte * profile.memory;
    return fmt::format("{}g.{}gb", profile.compute, (eighths + 4) / mig_memory_slices);
}

std::vector<std::string> mig_names(Bytes gpu_memory) {
    std::vector<std::string> out;
    for (const MigProfile& profile : mig_profiles()) out.push_back(mig_name(profile, gpu_memory));
    return out;
}

std::int64_t mig_compute_of(const std::string& name) {
    return name.front() - '0';
}

std::optional<std::vector<MigInstance>> mig_layout(const std::vector<ProfileIndex>& profiles) {
    std::vector<MigInstance> out;
    if (!lay_out(profiles, 0, out)) return std::nullopt;
    return out;
}

MigGpus::MigGpus(std::int64_t gpus, const MigSpec& spec) : spec_(&spec) {
    Gpu gpu;
    for (const MigInstance& instance : spec.layout) gpu.push_back({instance, nobody});
    gpus_.assign(static_cast<std::size_t>(gpus), gpu);
    count();
}

namespace {

template <class Gpu>
MemorySlices taken_on(const Gpu& gpu) {
    MemorySlices taken = 0;
    for (const auto& slot : gpu) {
        taken |= memory_of(mig_profiles()[slot.instance.profile], slot.instance.start);
    }
    return taken;
}

}  // namespace

std::int64_t MigGpus::room(ProfileIndex profile) const {
    std::int64_t room = 0;
    for (const Gpu& gpu : gpus_) {
        room += spec_->layout.empty()
                    ? places_for(mig_profiles()[profile], taken_on(gpu))
                    : std::ranges::count_if(gpu, [profile](const Slot& slot) {
                          return slot.owner == nobody && slot.instance.profile == profile;
                      });
    }
    return room;
}

MigPlace MigGpus::choose(ProfileIndex index) const {
    const MigProfile& profile = mig_profiles()[index];
    std::optional<MigPlace> best;
    std::tuple<int, int, std::int64_t> best_cost;
    for (std::size_t g = 0; g < gpus_.size(); ++g) {
        const MemorySlices taken = taken_on(gpus_[g]);
        for (const int start : profile.starts) {
            const MemorySlices memory = memory_of(profile, start);
            if ((memory & taken) != 0) continue;
            if (spec_->placement == MigPlacement::first) return {g, start};
            const std::tuple cost(blocked_by(profile, start), -__builtin_popcount(taken),
                                  -places_for_all(taken | memory));
            if (best && cost >= best_cost) continue;
            best = {g, start};
            best_cost = cost;
        }
    }
    RY_CHECK(best.has_value());
    return *best;
}

bool MigGpus::could_be_at(ProfileIndex profile, const MigPlace& at) const {
    if (at.gpu >= gpus_.size()) return false;
    const Gpu& gpu = gpus_[at.gpu];
    if (spec_->layout.empty()) {
        const MigProfile& wanted = mig_profiles()[profile];
        return std::ranges::find(wanted.starts, at.start) != wanted.starts.end() &&
               (memory_of(wanted, at.start) & taken_on(gpu)) == 0;
    }
    return std::ranges::any_of(gpu, [&](const Slot& slot) {
        return slot.owner == nobody && slot.instance.profile == profile &&
               slot.instance.start == at.start;
    });
}

std::optional<MigPlace> MigGpus::place_of(std::uint32_t owner) const {
    for (std::size_t g = 0; g < gpus_.size(); ++g) {
        for (const Slot& slot : gpus_[g]) {
            if (slot.owner == owner) return MigPlace{g, slot.instance.start};
        }
    }
    return std::nullopt;
}

void MigGpus::take(ProfileIndex profile, std::uint32_t owner, const std::optional<MigPlace>& at) {
    const bool there = at && could_be_at(profile, *at);
    if (spec_->layout.empty()) {
        const MigPlace place = there ? *at : choose(profile);
        gpus_[place.gpu].push_back({{profile, place.start}, owner});
        count();
        return;
    }
    for (std::size_t g = 0; g < gpus_.size(); ++g) {
        for (Slot& slot : gpus_[g]) {
            if (slot.owner != nobody || slot.instance.profile != profile) continue;
            if (there && (g != at->gpu || slot.instance.start != at->start)) continue;
            slot.owner = owner;
            count();
            return;
        }
    }
    RY_UNREACHABLE("room for an instance");
}

void MigGpus::give_back(std::uint32_t owner) {
    for (Gpu& gpu : gpus_) {
        const auto slot =
            std::ranges::find_if(gpu, [owner](const Slot& s) { return s.owner == owner; });
        if (slot == gpu.end()) continue;
        if (spec_->layout.empty()) {
            gpu.erase(slot);
        } else {
            slot->owner = nobody;
        }
        count();
        return;
    }
    RY_UNREACHABLE("an instance that somebody holds");
}

void MigGpus::count() {
    free_ = stranded_ = 0;
    for (const Gpu& gpu : gpus_) {
        std::int64_t held = 0;
        std::int64_t cut = 0;
        std::int64_t blocked = 0;
        for (const Slot& slot : gpu) {
            const MigProfile& profile = mig_profiles()[slot.instance.profile];
            cut += profile.compute;
            if (slot.owner != nobody) held += profile.compute;
            blocked += blocked_by(profile, slot.instance.start);
        }
        if (!spec_->layout.empty()) blocked = mig_compute_slices - cut;  // whatever comes
        stranded_ += blocked;
        free_ += mig_compute_slices - held - blocked;
    }
}

}  // namespace railyard
