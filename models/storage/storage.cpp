#include "models/storage/storage.h"

#include <algorithm>

namespace railyard {

const std::vector<StorageKind>& storage_systems() {
    static const std::vector<StorageKind> systems = {
        {"weka", "server_read_bandwidth", "server_write_bandwidth", "client_read_bandwidth",
         nullptr, "WEKA servers"},
        {"lustre", "oss_read_bandwidth", "oss_write_bandwidth", nullptr, nullptr,
         "Lustre object storage servers"},
        {"beegfs", "server_read_bandwidth", "server_write_bandwidth", nullptr, nullptr,
         "BeeGFS storage servers"},
        {"ceph_nvme", "server_read_bandwidth", "server_write_bandwidth", nullptr, nullptr,
         "Ceph servers with NVMe"},
        {"nfs_single", "read_bandwidth", "write_bandwidth", "client_bandwidth", "client_bandwidth",
         "one NFS server"},
        {"ddn_ai400x2t", "read_bandwidth_datasheet", "write_bandwidth_datasheet", nullptr, nullptr,
         "DDN AI400X2 Turbo appliances"},
    };
    return systems;
}

Bandwidth SharedStore::write_bandwidth(std::int64_t clients) const {
    return std::min(write_.store, write_.client * clients);
}

Bandwidth SharedStore::read_bandwidth(std::int64_t clients) const {
    return std::min(read_.store, read_.client * clients);
}

Duration SharedStore::write_time(Bytes bytes, std::int64_t clients) const {
    return transfer_time(bytes, write_bandwidth(clients));
}

Duration SharedStore::read_time(Bytes bytes, std::int64_t clients) const {
    return transfer_time(bytes, read_bandwidth(clients));
}

}  // namespace railyard
