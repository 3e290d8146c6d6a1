#pragma once
// The shared store that checkpoints go to. Finite bandwidth: the smaller of what the servers take
// and what the clients' networks carry.

#include <string>
#include <vector>

#include "models/catalogue/catalogue.h"
#include "models/storage/burst.h"
#include "models/storage/restart_storm.h"
#include "models/storage/store_service.h"

namespace railyard {

// What one storage server of a system moves; `name` is the catalogue's entry of kind "storage".
struct StorageKind {
    std::string name;
    const char* read_key;  // catalogue key of one server's read bandwidth
    const char* write_key;
    const char* client_read_key;  // what one client of it reaches; nullptr: no measured limit
    const char* client_write_key;
    const char* doc;
};
const std::vector<StorageKind>& storage_systems();

class SharedStore {
  public:
    struct Limits {
        Bandwidth store;   // all servers together
        Bandwidth client;  // one node's own traffic
    };
    SharedStore(Limits write, Limits read) : write_(write), read_(read) {}

    // Time for `clients` nodes that move `bytes` together, evenly, with nobody else on the store.
    Duration write_time(Bytes bytes, std::int64_t clients) const;
    Duration read_time(Bytes bytes, std::int64_t clients) const;

    Bandwidth read_network() const { return read_.client; }  // of one node
    Bandwidth write_network() const { return write_.client; }

    Bandwidth write_bandwidth(std::int64_t clients) const;
    Bandwidth read_bandwidth(std::int64_t clients) const;

  private:
    Limits write_;
    Limits read_;
};

}  // namespace railyard
