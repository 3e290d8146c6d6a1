#pragma once
// What a save of the job's state to a store waits for, with the store to itself.

#include <vector>

#include "models/campaign/scenario.h"

namespace railyard {

// A bound of the transfer's own.
struct TransferCap {
    Bandwidth rate;
    Wall wall;
};
// Bounds the transfer by this, where nothing closer does.
void lower(TransferSpec& transfer, Bandwidth cap, Wall wall);
// What its ranks, files and clients allow, for who writes in this scenario. `from_gpus`: GPU memory is
// what is written, not a copy in host memory.
std::vector<TransferCap> write_caps(const Scenario& scenario, const StoreLimits& limits,
                                    bool from_gpus);
// What threads that each wait for their own answers make or open; 0: never the limit.
double files_per_second(std::int64_t threads, Duration latency);

struct SaveWall {
    Wall wall;
    Duration time;  // of the whole save, were this the only wall
};
// What a save to `store` waits for. Never empty.
// All bounds hold from beginning to end, and a buffer of B bytes that
// drains at d takes S bytes in (S - B) / d: so the longest is what the save takes.
std::vector<SaveWall> save_walls(const Scenario& scenario, std::size_t store,
                                 const std::vector<TransferCap>& caps);
// What a save to files on the nodes waits for; each node writes its share at `node_write`.
std::vector<SaveWall> node_save_walls(const Scenario& scenario, Bandwidth node_write,
                                      Duration create_latency);
const SaveWall& longest(const std::vector<SaveWall>& walls);

}  // namespace railyard
