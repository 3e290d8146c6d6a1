#include "models/campaign/fleet_transfers.h"

#include <algorithm>

#include "models/campaign/save_walls.h"

namespace railyard {

std::function<JobTransfers(std::int64_t, std::int64_t)> transfers_over_storage(
    const Scenario& s, Bytes size, const CheckpointWriters& each_rank) {
    const StoreSetup store = s.stores[shared_store];
    const bool fair_by_job = s.fair_by_job;
    return [=](std::int64_t gpus, std::int64_t nodes) {
        const StoreLimits& limits = store.limits;
        const std::int64_t files = gpus * each_rank.files;
        JobTransfers out;
        for (TransferSpec* transfer : {&out.save, &out.restore}) {
            transfer->store = shared_store;
            transfer->bytes = size;
            transfer->files = files;
            transfer->weight = fair_by_job ? 1 : nodes;
            transfer->cap = unlimited;
        }
        out.save.direction = Direction::write;
        lower(out.save, each_rank.serialization * gpus, Wall::serialisation);
        lower(out.save, limits.client_write * nodes, Wall::client);
        lower(out.save, limits.file_write * files, Wall::files);
        out.save.files_per_s = files_per_second(gpus, limits.create_latency);
        out.restore.direction = Direction::read;
        lower(out.restore, limits.client_read * nodes, Wall::client);
        lower(out.restore, limits.file_read * files, Wall::files);
        out.restore.files_per_s = files_per_second(gpus, limits.open_latency);
        const Bandwidth alone = std::min(out.save.cap, store.supply.write);
        out.save_alone = transfer_time(size, alone);
        return out;
    };
}

}  // namespace railyard
