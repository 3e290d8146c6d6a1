#pragma once
// The kinds of stores that a scenario may name, and what a job makes of one's limits.

#include <memory>
#include <vector>

#include "models/catalogue/catalogue.h"
#include "models/storage/burst.h"
#include "models/storage/failing_store.h"
#include "models/storage/neighbour.h"
#include "models/storage/neighbour_reader.h"
#include "models/storage/restart_storm.h"
#include "models/storage/store.h"
#include "models/storage/store_design.h"
#include "models/storage/store_reader.h"
#include "models/storage/store_service.h"

namespace railyard {

// Where a store stands: servers of its own, the nodes themselves, or somebody else's.
enum class StorePlace : std::uint8_t { servers, nodes, cloud };

struct StorageKind {
    const char* name;     // in the scenario, and of the catalogue's entry of kind "storage"
    const char* section;  // under [storage], its own keys; nullptr: it has none
    StorePlace place;
    const char* read_key;  // catalogue key of one server's read bandwidth; nullptr: not known
    const char* write_key;
    const char* client_read_key;  // what one client of it reaches; nullptr: no measured limit
    const char* client_write_key;
    std::int64_t servers;  // with so many a scenario starts that names no number
    // Reads the system's own keys and builds it. What is wrong goes to the sections' errors; the system is
    // then built all the same, and must not be used.
    std::unique_ptr<StorageSystem> (*build)(Section& storage, Section& own, Catalogue& catalogue,
                                            StoreDesign design);
    const char* doc;
};
const std::vector<StorageKind>& storage_kinds();

// What `clients` nodes reach together, evenly, with nobody else on the store.
Bandwidth read_bandwidth(const StoreLimits& limits, std::int64_t clients);
Bandwidth write_bandwidth(const StoreLimits& limits, std::int64_t clients);

// `files` of `bytes` together, made or opened by so many threads on so many nodes, in seconds:
//
//     files / min(threads / latency, metadata rate)
//         + bytes / min(bandwidth, min(threads, files) x one file's)
struct SmallFiles {
    std::int64_t files = 0;
    Bytes bytes{};
    std::int64_t clients = 1;
    std::int64_t threads = 1;  // of all clients
};
double create_seconds(const StoreLimits& limits, const SmallFiles& files);
double open_seconds(const StoreLimits& limits, const SmallFiles& files);

}  // namespace railyard
