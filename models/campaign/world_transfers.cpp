#include "models/campaign/world_transfers.h"

#include <algorithm>

#include "models/campaign/save_walls.h"

namespace railyard {

WorldSaving saves_to_storage(const Scenario& s, Bytes size, const CheckpointWriters& each_rank) {
    const StoreSetup store = s.stores[shared_store];
    const bool fair_by_job = s.fair_by_job;
    return {[=](std::int64_t gpus, std::int64_t nodes) {
        const StoreLimits& limits = store.limits;
        const std::int64_t files = gpus * each_rank.files;
        CheckpointSpec out;
        out.size = size;
        TierSpec& tier = out.tiers.emplace_back();
        for (TransferSpec* transfer : {&tier.write, &tier.read}) {
            transfer->store = shared_store;
            transfer->files = files;
            transfer->weight = fair_by_job ? 1 : nodes;
            transfer->cap = unlimited;
        }
        tier.write.direction = Direction::write;
        lower(tier.write, each_rank.serialization * gpus, Wall::serialisation);
        lower(tier.write, limits.client_write * nodes, Wall::client);
        lower(tier.write, limits.file_write * files, Wall::files);
        tier.write.files_per_s = files_per_second(gpus, limits.create_latency);
        tier.read.direction = Direction::read;
        lower(tier.read, limits.client_read * nodes, Wall::client);
        lower(tier.read, limits.file_read * files, Wall::files);
        tier.read.files_per_s = files_per_second(gpus, limits.open_latency);
        out.stall_alone = transfer_time(size, std::min(tier.write.cap, store.supply.write));
        return std::make_shared<const CheckpointSpec>(std::move(out));
    }};
}

}  // namespace railyard
