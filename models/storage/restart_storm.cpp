#include "models/storage/restart_storm.h"

#include <algorithm>

namespace railyard {

RestartStorm typical_restart_storm(Catalogue& catalogue) {
    RestartStorm storm;
    storm.image = catalogue.data("restart", "container_pull", "image_size");
    storm.index = catalogue.data("checkpoint", "", "dataset_index_size");
    return storm;
}

RestartTimes restart_storm(const BurstSpec& spec, const RestartStorm& storm) {
    BurstLoad image;
    image.what = "image";
    image.direction = Direction::read;
    image.bytes_per_rank = storm.image;
    image.operations_per_rank = 1;
    image.one_file = true;
    image.registry = storm.registry;
    BurstLoad checkpoint;
    checkpoint.direction = Direction::read;
    checkpoint.ranks_per_node = storm.ranks_per_node;
    checkpoint.bytes_per_rank = storm.checkpoint_per_rank;
    checkpoint.files_per_rank = checkpoint.operations_per_rank = storm.files_per_rank;
    checkpoint.rank_bandwidth = storm.load_bandwidth;
    BurstLoad index;
    index.what = "index";
    index.direction = Direction::read;
    index.ranks_per_node = storm.ranks_per_node;
    index.bytes_per_rank = storm.index;
    index.operations_per_rank = 1;
    index.one_file = true;
    std::vector<BurstResult> results = run_bursts(spec, {image, checkpoint, index});
    RestartTimes times{std::move(results[0]), std::move(results[1]), std::move(results[2])};
    times.all = std::max({times.image.stall, times.checkpoint.stall, times.index.stall});
    return times;
}

}  // namespace railyard
