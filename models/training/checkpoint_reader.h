#pragma once
// [job.checkpoint] and its tiers as they stand: what is saved, how often, by whom, and where copies go.

#include <optional>
#include <string>
#include <vector>

#include "models/training/checkpoint.h"
#include "sim/config.h"

namespace railyard {

enum class IntervalClock : std::uint8_t { training, wall };
enum class CheckpointLayout : std::uint8_t { sharded, consolidated };

extern const std::vector<std::string> checkpoint_modes;  // in the order of CheckpointMode
extern const std::vector<std::string> interval_clocks;
extern const std::vector<std::string> checkpoint_layouts;

struct TierKeys {
    Place place = Place::storage;
    std::int64_t every = 1;
    std::int64_t keep = 2;
    std::optional<Duration> keep_for;
    std::optional<Bandwidth> write;  // of one node, as is `read`
    std::optional<Bandwidth> read;
};

// What is not given follows from the job, the stores or the catalogue.
struct CheckpointKeys {
    CheckpointMode mode = CheckpointMode::sync;
    Duration interval = std::chrono::minutes(30);
    std::int64_t interval_steps = 0;  // instead of `interval`, if above 0
    IntervalClock clock = IntervalClock::training;
    std::optional<Bytes> size;
    std::optional<double> bytes_per_param;
    bool gradients = false;
    CheckpointLayout layout = CheckpointLayout::sharded;
    std::optional<std::int64_t> files_per_rank;
    std::optional<Bandwidth> serialization;   // of one rank
    std::optional<double> snapshot_fraction;  // of the PCIe bandwidth
    std::int64_t buffers = 1;
    std::optional<double> upload_slowdown;
    std::int64_t full_every = 1;
    double changed_fraction = 1;
    std::vector<TierKeys> tiers;
};

struct CheckpointSections {
    explicit CheckpointSections(Section& job);
    Section checkpoint;
    std::vector<Section> tiers;
};

CheckpointKeys read_checkpoint_keys(CheckpointSections& sections);

}  // namespace railyard
