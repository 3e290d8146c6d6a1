#pragma once
// The shared store that checkpoints go to. Finite bandwidth: the smaller of what the servers take
// and what the clients' networks carry.

#include <string>
#include <vector>

#include "models/catalogue/catalogue.h"

namespace railyard {

// What one storage server of a system moves; `name` is the catalogue's entry of kind "storage".
struct StorageSystem {
    std::string name;
    const char* read_key;  // catalogue key of one server's read bandwidth
    const char* write_key;
    const char* doc;
};
const std::vector<StorageSystem>& storage_systems();

class SharedStore {
  public:
    // Bandwidths of the whole store, and of one client node (a limit on each node's own traffic).
    SharedStore(Bandwidth write, Bandwidth read, Bandwidth client)
        : write_(write), read_(read), client_(client) {}

    // Time for `clients` nodes that move `bytes` together, evenly, with nobody else on the store.
    Duration write_time(Bytes bytes, std::int64_t clients) const;
    Duration read_time(Bytes bytes, std::int64_t clients) const;

    Bandwidth write_bandwidth(std::int64_t clients) const;
    Bandwidth read_bandwidth(std::int64_t clients) const;

  private:
    Bandwidth write_;
    Bandwidth read_;
    Bandwidth client_;
};

}  // namespace railyard
