#pragma once
// What jobs move to and from the shared store while parts of the network between are broken.
//
// Model. All of a job's files at once, as "Bursts" of the storage folder has it, on what is left of the
// compute network: max-min fair, to the last byte. The rate of the whole is what its saves, restores and
// reads of data in that direction move together at most, from the instant of the change on; 0 where a
// node has no path to one of the servers. Where that is no less than over the sound network, to 0.1 %,
// nothing changes: the wall is elsewhere.
//
//     way = bytes of all ranks / (the end of the last file on what is left)   if that is less than sound
//
// Where one rank writes all, saves need its node's path alone.
//
// Ignores: that some files of a transfer under way may be ahead of others (it goes on as a whole); that
// jobs share what is left with others, but as SharedLinks has it; neighbours ([[neighbour]]), who take no
// routes; data that some of the nodes alone read; what a sound network does not carry of data; changes
// while a job is suspended (what it still moves from tier to tier has the way that it had).
// Oracle: tests/models/store_ways_test.cpp, by hand: a NIC at half its rate, up links that were the wall,
// others that were not, packets that choose their ways, a way that is mended halfway through, none at all.

#include <memory>

#include "models/campaign/scenario.h"

namespace railyard {

// For jobs such as the scenario's, on whatever nodes. Each distinct set of nodes and of broken parts on its
// routes is computed once; may be called from several threads.
PlacedWay store_ways(std::shared_ptr<const Scenario> job);

}  // namespace railyard
