#include "models/campaign/save_walls.h"

#include <algorithm>

#include "sim/integers.h"

namespace railyard {

namespace {

Duration time_at(Bytes bytes, Bandwidth rate) {
    return rate.bits_per_second() > 0 ? transfer_time(bytes, rate) : Duration::max();
}

}  // namespace

std::vector<TransferCap> write_caps(const Scenario& s, const StoreLimits& limits, bool from_gpus) {
    const CheckpointWriters& w = s.checkpoint_writers;
    std::vector<TransferCap> caps = {{w.serialization * w.ranks, Wall::serialisation},
                                     {limits.client_write * w.nodes, Wall::client},
                                     {limits.file_write * w.files, Wall::files}};
    if (from_gpus && s.gpu_path) caps.push_back({*s.gpu_path * w.nodes, Wall::client});
    return caps;
}

void lower(TransferSpec& transfer, Bandwidth cap, Wall wall) {
    if (cap >= transfer.cap) return;
    transfer.cap = cap;
    transfer.cap_wall = wall;
}

double files_per_second(std::int64_t threads, Duration latency) {
    return latency > Duration{} ? real(threads) / seconds(latency) : 0;
}

std::vector<SaveWall> save_walls(const Scenario& s, std::size_t number,
                                 const std::vector<TransferCap>& caps) {
    const StoreSetup& store = s.stores[number];
    const StoreSupply& supply = store.supply;
    const CheckpointWriters& w = s.checkpoint_writers;
    const Bytes size = s.checkpoint_size;
    std::vector<SaveWall> walls = {{Wall::store, time_at(size, supply.write)},
                                   {Wall::client, time_at(size, s.job.store_paths[number].write)}};
    for (const TransferCap& cap : caps) {
        if (cap.rate < unlimited) walls.push_back({cap.wall, time_at(size, cap.rate)});
    }
    if (supply.write_buffer > Bytes{} && size > supply.write_buffer) {
        walls.push_back({Wall::store, time_at(Bytes::of(size.count() - supply.write_buffer.count()),
                                              supply.drain)});
    }
    const double own = files_per_second(w.ranks, store.limits.create_latency);
    for (const double per_s : {supply.creates_per_s, own}) {
        if (per_s <= 0) continue;
        walls.push_back({Wall::metadata, from_seconds(real(w.files) / per_s)});
    }
    return walls;
}

std::vector<SaveWall> node_save_walls(const Scenario& s, Bandwidth node_write,
                                      Duration create_latency) {
    const CheckpointWriters& w = s.checkpoint_writers;
    const Bytes share = Bytes::of(ceil_div(s.checkpoint_size.count(), w.nodes));
    std::vector<SaveWall> walls = {
        {Wall::local, time_at(share, node_write)},
        {Wall::serialisation, time_at(s.checkpoint_size, w.serialization * w.ranks)}};
    const double per_s = files_per_second(w.ranks, create_latency);
    if (per_s > 0) walls.push_back({Wall::metadata, from_seconds(real(w.files) / per_s)});
    return walls;
}

const SaveWall& longest(const std::vector<SaveWall>& walls) {
    return *std::ranges::max_element(walls, {}, &SaveWall::time);
}

}  // namespace railyard
