#pragma once
// What may break in a store, how often and for how long, as a scenario asks for it in [storage.failures].

#include <optional>
#include <string>
#include <vector>

#include "models/catalogue/catalogue.h"
#include "models/storage/rebuild.h"

namespace railyard {

// A part that breaks at a known time.
struct StoreStrike {
    Duration at{};
    StorePart part = StorePart::drive;
    std::int64_t index = 0;
    Duration down_for{};      // of a drive: until there is another in its place
    bool takes_data = false;  // of a server: it comes back without its data
};

struct StoreFailureSpec {
    struct Part {
        Rate rate;          // of one
        Duration repair{};  // mean
    };
    std::string store = "storage";  // names the random streams
    Part drive;
    Part server;
    Part box;
    double repair_sigma = 0;       // of the logarithm of a repair time
    double server_takes_data = 0;  // of servers that hold data, how many come back without it
    std::vector<StoreStrike> strikes;
};

// Reads the section "failures" of `storage`. Without it nothing of a store breaks, and there is nothing to
// return. What it says must fit the store that is protected so.
std::optional<StoreFailureSpec> read_store_failures(Section& storage, Catalogue& catalogue,
                                                    const Protection& protection);

}  // namespace railyard
