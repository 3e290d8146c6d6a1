#pragma once
// The flows of a packet window as a file lists them: id,src,dst,bytes,start_ps,dep.

#include <string>
#include <vector>

#include "sim/error.h"
#include "sim/units.h"

namespace railyard {

struct ListedFlow {
    std::int64_t from = 0;  // NICs of the job, counted node by node
    std::int64_t to = 0;
    std::int64_t bytes = 0;
    Picoseconds start{};
    std::int64_t after = -1;  // which earlier flow in the list it waits for the end of; -1: none
};

// Reads a list for so many NICs. A header line comes first; ids differ; `dep` is the id of an earlier line,
// or 0. Reports what is wrong, line by line, and then returns nothing.
std::vector<ListedFlow> read_traffic_file(const std::string& path, std::int64_t nics,
                                          Diagnostics& diagnostics);

}  // namespace railyard
