#pragma once
// How a job's state is saved: where copies of it go, how often, and how they get there.
//
//     GPU memory --snapshot--> host buffer --> tier 0 --> tier 1 --> ...
//
// The tiers are places, hottest first; each takes every n-th checkpoint of the tier above and keeps the
// newest few. Synchronous: the job stands still until tier 0 has it all. Asynchronous: until the copy in
// host memory is made; it then waits for a free buffer before the next one (back-pressure). A tier moves one
// checkpoint at a time; of those that wait for it the newest goes next and the others are passed over.

#include <string>
#include <vector>

#include "models/storage/storage.h"

namespace railyard {

enum class CheckpointMode : std::uint8_t { none, sync, async };

enum class Place : std::uint8_t {
    host_memory,  // of the node that computed it: gone with the node
    peer_memory,  // there and in the next node's: gone with two neighbours
    local_nvme,   // gone with the node, kept through a reboot of all
    storage,      // the shared store
    object_store,
};
constexpr std::size_t places = 5;
extern const std::vector<std::string> place_names;
bool on_nodes(Place place);

struct TierSpec {
    Place place = Place::storage;
    std::int64_t every = 1;  // of the checkpoints that reach the tier above
    std::int64_t keep = 2;   // newest complete ones
    // For a place on the nodes, which all move their shares at once: the time for a whole checkpoint, and
    // what a write waits for. Files are made of tensors there; memory may hold these as they are.
    Duration write_time{};
    Wall write_wall = Wall::local;
    Duration read_time{};
    bool files = false;
    // How a store is written and read; the bytes are set for each transfer.
    TransferSpec write;
    TransferSpec read;
    // What a write from the nodes gets of a network that it shares with the job's steps while they run.
    Bandwidth beside_steps = unlimited;
};

struct CheckpointSpec {
    CheckpointMode mode = CheckpointMode::sync;
    std::int64_t interval_steps = 0;  // counted in training; or
    Duration interval_training{};     // what these were made of; 0: the scenario counts steps
    Duration interval_wall{};  // start to start on the wall clock: exactly one of the two is set
    Bytes size;
    // Every so-many-th holds the whole state; those between hold what has changed since the one before.
    std::int64_t full_every = 1;
    double changed_fraction = 1;
    Duration snapshot{};             // async: to host memory
    Duration stall_alone{};          // what a stall takes with the stores to itself
    std::int64_t buffers = 1;        // in host memory
    Duration upload_step_penalty{};  // what each step takes longer while the nodes upload
    Duration upload_on_links{};      // of that, on a network that both share
    std::vector<TierSpec> tiers;
    TransferSpec read_at_start;  // beside the state, by all nodes: images, the index of the data

    // The snapshot in host memory is itself the first copy.
    bool snapshot_is_a_copy() const {
        return tiers[0].place == Place::host_memory && !tiers[0].files;
    }
    // The first tier that survives the loss of any one node; where none does, the first has to do.
    std::size_t safe_tier() const;
    // That one, or the first behind it that outlives a stop of all nodes too.
    std::size_t lasting_tier() const;
};

}  // namespace railyard
