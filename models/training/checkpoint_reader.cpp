#include "models/training/checkpoint_reader.h"

#include <fmt/format.h>

namespace railyard {

namespace {

void read_size(Section& checkpoint, CheckpointKeys& keys) {
    checkpoint.read_time_or_steps("interval", keys.interval, keys.interval_steps,
                                  "Time or steps between checkpoints", {Bound::positive});
    checkpoint.choose("clock", keys.clock, interval_clocks,
                      "What the interval counts: training time since the last checkpoint, or "
                      "wall-clock time from start to start");
    checkpoint.read("size", keys.size, "Bytes of one checkpoint",
                    {Bound::positive, "parameters x bytes_per_param"});
    checkpoint.read("bytes_per_param", keys.bytes_per_param, "Bytes that are saved per parameter",
                    {Bound::positive, "weights and optimizer state, from the catalogue"});
    checkpoint.read("gradients", keys.gradients,
                    "Gradients are saved too, at the precision of the weights");
}

void read_writers(Section& checkpoint, CheckpointKeys& keys) {
    checkpoint.choose("layout", keys.layout, checkpoint_layouts,
                      "sharded: every rank writes its part; consolidated: one rank writes all");
    checkpoint.read("files_per_rank", keys.files_per_rank, "Files that each writing rank creates",
                    {Bound::count, "from the catalogue"});
    checkpoint.read("serialization", keys.serialization,
                    "What one rank turns from tensors into a file",
                    {Bound::positive, "from the catalogue"});
}

void read_snapshot(Section& checkpoint, CheckpointKeys& keys) {
    checkpoint.read("snapshot_fraction", keys.snapshot_fraction,
                    "Share of the link to the host that a snapshot to its memory gets (async)",
                    {Bound::fraction, "from the catalogue"});
    checkpoint.read("buffers", keys.buffers,
                    "Snapshots that host memory holds while they are uploaded (async)",
                    {Bound::count});
    checkpoint.read(
        "upload_slowdown", keys.upload_slowdown,
        "What a step takes longer while an upload runs (async)",
        {Bound::fraction,
         "from the catalogue; with storage.network = \"compute\" also what both have of the links "
         "at run.fidelity = \"flow\", and at \"packet\" what a packet window shows"});
    checkpoint.read("full_every", keys.full_every,
                    "Every so-many-th checkpoint is whole; those between hold what has changed",
                    {Bound::count});
    checkpoint.read("changed_fraction", keys.changed_fraction,
                    "Share of the state that changes between two checkpoints", {Bound::fraction});
}

void warn_of_what_has_no_effect(Section& checkpoint, const CheckpointKeys& keys) {
    if (keys.mode == CheckpointMode::none) {
        warn_of_keys(checkpoint,
                     {"interval", "clock", "size", "bytes_per_param", "gradients", "layout",
                      "files_per_rank", "serialization", "snapshot_fraction", "upload_slowdown",
                      "buffers", "full_every", "changed_fraction", "tier"},
                     fmt::format("has no effect with {} = \"none\"", checkpoint.path("mode")));
        return;
    }
    if (keys.mode != CheckpointMode::async) {
        warn_of_keys(checkpoint, {"snapshot_fraction", "upload_slowdown", "buffers"},
                     fmt::format("has no effect without {} = \"async\"", checkpoint.path("mode")));
    }
    if (keys.full_every == 1) {
        warn_of_keys(
            checkpoint, {"changed_fraction"},
            fmt::format("has no effect without {} above 1", checkpoint.path("full_every")));
    }
}

TierKeys read_tier(Section& section) {
    TierKeys tier;
    section.choose(
        "place", tier.place, place_names,
        "Memory of the node or of its neighbour, drives of the node, [storage], or [object_store]");
    section.read("every", tier.every,
                 "It takes every so-many-th checkpoint of the tier above; the first takes all",
                 {Bound::count});
    section.read("keep", tier.keep, "Newest complete copies that stay", {Bound::count});
    section.read("keep_for", tier.keep_for, "How long a copy stays, instead of `keep`",
                 {Bound::positive});
    section.read("write_bandwidth", tier.write,
                 "What one node writes there, of a place on the nodes",
                 {Bound::positive, "the node's, from the catalogue"});
    section.read("read_bandwidth", tier.read, "What one node reads back from there",
                 {Bound::positive, "the node's, from the catalogue"});
    section.finish();
    return tier;
}

}  // namespace

const std::vector<std::string> checkpoint_modes = {"none", "sync", "async"};

const std::vector<std::string> interval_clocks = {"training", "wall"};

const std::vector<std::string> checkpoint_layouts = {"sharded", "consolidated"};

CheckpointSections::CheckpointSections(Section& job) : checkpoint(job.section("checkpoint")) {}

CheckpointKeys read_checkpoint_keys(CheckpointSections& sections) {
    Section& checkpoint = sections.checkpoint;
    CheckpointKeys keys;
    checkpoint.choose("mode", keys.mode, checkpoint_modes,
                      "sync: the job stands still until the first tier has it all; async: until a "
                      "copy is in host memory");
    read_size(checkpoint, keys);
    read_writers(checkpoint, keys);
    read_snapshot(checkpoint, keys);
    sections.tiers = checkpoint.sections(
        "tier", "A place that copies go to, the hottest first; without any, the store alone");
    for (Section& tier : sections.tiers) keys.tiers.push_back(read_tier(tier));
    checkpoint.finish();
    if (checkpoint.ok() && !checkpoint.describing()) warn_of_what_has_no_effect(checkpoint, keys);
    return keys;
}

}  // namespace railyard
