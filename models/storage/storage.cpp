#include "models/storage/storage.h"

#include <algorithm>

namespace railyard {

const std::vector<StorageSystem>& storage_systems() {
    static const std::vector<StorageSystem> systems = {
        {"weka", "server_read_bandwidth", "server_write_bandwidth", "WEKA servers"},
        {"lustre", "oss_read_bandwidth", "oss_write_bandwidth", "Lustre object storage servers"},
        {"beegfs", "server_read_bandwidth", "server_write_bandwidth", "BeeGFS storage servers"},
        {"ceph_nvme", "server_read_bandwidth", "server_write_bandwidth", "Ceph servers with NVMe"},
        {"nfs_single", "read_bandwidth", "write_bandwidth", "one NFS server"},
        {"ddn_ai400x2t", "read_bandwidth_datasheet", "write_bandwidth_datasheet",
         "DDN AI400X2 Turbo appliances"},
    };
    return systems;
}

Bandwidth SharedStore::write_bandwidth(std::int64_t clients) const {
    return std::min(write_, client_ * clients);
}

Bandwidth SharedStore::read_bandwidth(std::int64_t clients) const {
    return std::min(read_, client_ * clients);
}

Duration SharedStore::write_time(Bytes bytes, std::int64_t clients) const {
    return transfer_time(bytes, write_bandwidth(clients));
}

Duration SharedStore::read_time(Bytes bytes, std::int64_t clients) const {
    return transfer_time(bytes, read_bandwidth(clients));
}

}  // namespace railyard
