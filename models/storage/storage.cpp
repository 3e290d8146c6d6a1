#include "models/storage/storage.h"

#include <algorithm>

#include "models/storage/storage_kinds.h"

namespace railyard {

namespace {

double metadata_seconds(std::int64_t files, std::int64_t threads, Duration latency,
                        double files_per_s) {
    double rate = real(threads) / std::max(1e-9, seconds(latency));
    if (files_per_s > 0) rate = std::min(rate, files_per_s);
    return real(files) / rate;
}

// A thread moves one file at a time, as fast as one file goes.
double transfer_seconds(const SmallFiles& f, Bandwidth bandwidth, Bandwidth of_a_file) {
    if (f.bytes.count() == 0) return 0;
    const auto at_once = real(std::min(f.threads, f.files));
    return real(f.bytes.count()) /
           std::min(bandwidth.bytes_per_second(), at_once * of_a_file.bytes_per_second());
}

}  // namespace

const std::vector<StorageKind>& storage_kinds() {
    using enum StorePlace;
    constexpr const char* r = "server_read_bandwidth";
    constexpr const char* w = "server_write_bandwidth";
    static const std::vector<StorageKind> kinds = {
        {"generic", nullptr, servers, "read_bandwidth", "write_bandwidth", nullptr, nullptr, 1,
         build_generic, "servers that are described by their limits alone"},
        {"weka", "weka", servers, r, w, "client_read_bandwidth", nullptr, 8, build_weka,
         "WEKA servers"},
        {"vast", "vast", servers, "cnode_read_bandwidth", "cnode_write_bandwidth", nullptr, nullptr,
         4, build_vast, "VAST: CNodes, which storage.servers counts, and DBoxes"},
        {"lustre", "lustre", servers, "oss_read_bandwidth", "oss_write_bandwidth", nullptr, nullptr,
         2, build_lustre, "Lustre object storage servers"},
        {"ddn_ai400x2t", "lustre", servers, "read_bandwidth_datasheet", "write_bandwidth_datasheet",
         nullptr, nullptr, 1, build_exascaler, "DDN EXAScaler on AI400X2 Turbo appliances"},
        {"gpfs", "gpfs", servers, r, w, nullptr, nullptr, 2, build_gpfs,
         "IBM Storage Scale servers, two of each building block"},
        {"beegfs", "beegfs", servers, r, w, nullptr, nullptr, 3, build_beegfs,
         "BeeGFS storage servers"},
        {"ceph_nvme", "ceph", servers, r, w, nullptr, nullptr, 4, build_ceph,
         "Ceph servers with NVMe"},
        {"threefs", "threefs", servers, r, nullptr, "client_read_bandwidth", nullptr, 3,
         build_threefs, "DeepSeek 3FS servers"},
        {"nfs_single", "nfs", servers, "read_bandwidth", "write_bandwidth", "client_bandwidth",
         "client_bandwidth", 1, build_nfs, "one NFS server"},
        {"object", "object", servers, r, w, nullptr, nullptr, 6, build_object,
         "S3-compatible object store on the premises"},
        {"s3", "object", cloud, nullptr, nullptr, "instance_bandwidth", "instance_bandwidth", 1,
         build_s3, "a cloud's object store, paid by use"},
        {"local_nvme_raid0", nullptr, nodes, "read_bandwidth", "write_bandwidth", nullptr, nullptr,
         1, build_local_nvme, "each node's own drives, striped: lost with the node"},
        {"host_memory", "memory", nodes, nullptr, nullptr, nullptr, nullptr, 1, build_host_memory,
         "each node's own memory (tmpfs): lost with the node"},
        {"peer_memory", "memory", nodes, nullptr, nullptr, nullptr, nullptr, 1, build_peer_memory,
         "copies in the memory of other nodes"},
        {"meta_tectonic_llama3", nullptr, servers, "sustained_bandwidth", "sustained_bandwidth",
         nullptr, nullptr, 1, build_generic, "Meta's Tectonic, the whole of it as one server"},
        {"vast_ebox", nullptr, servers, r, w, nullptr, nullptr, 11, build_generic,
         "VAST EBoxes: servers that are CNode and DBox in one"},
        {"pure_flashblade", nullptr, servers, r, w, nullptr, nullptr, 1, build_generic,
         "Pure FlashBlade//S chassis"},
        {"netapp_aff", nullptr, servers, r, w, nullptr, nullptr, 1, build_generic,
         "NetApp AFF, pairs of controllers"},
        {"hammerspace", nullptr, servers, r, w, nullptr, nullptr, 2, build_generic,
         "Hammerspace storage servers"},
        {"iei_as13000_3n", nullptr, servers, r, nullptr, nullptr, nullptr, 3, build_generic,
         "IEI AS13000 nodes, as in MLPerf Storage; writes are not published"},
        {"yanrong_f9000x_3n", nullptr, servers, r, nullptr, nullptr, nullptr, 3, build_generic,
         "YanRong F9000X nodes, as in MLPerf Storage; writes are not published"},
        {"nutanix_32n", nullptr, servers, r, nullptr, nullptr, nullptr, 32, build_generic,
         "Nutanix nodes, as in MLPerf Storage; writes are not published"},
        {"huawei_a800", nullptr, servers, "read_bandwidth", nullptr, nullptr, nullptr, 1,
         build_generic, "Huawei OceanStor A800, as in MLPerf Storage; writes are not published"},
        {"hpe_e1000_5hosts", nullptr, servers, "read_bandwidth", nullptr, nullptr, nullptr, 1,
         build_generic, "HPE ClusterStor E1000, as in MLPerf Storage; writes are not published"},
    };
    return kinds;
}

Bandwidth read_bandwidth(const StoreLimits& limits, std::int64_t clients) {
    return std::min(least(limits.read).bandwidth, limits.client_read * clients);
}

Bandwidth write_bandwidth(const StoreLimits& limits, std::int64_t clients) {
    return std::min(least(limits.write).bandwidth, limits.client_write * clients);
}

double create_seconds(const StoreLimits& limits, const SmallFiles& f) {
    return metadata_seconds(f.files, f.threads, limits.create_latency, limits.creates_per_s) +
           transfer_seconds(f, write_bandwidth(limits, f.clients), limits.file_write);
}

double open_seconds(const StoreLimits& limits, const SmallFiles& f) {
    return metadata_seconds(f.files, f.threads, limits.open_latency + limits.first_byte,
                            limits.opens_per_s) +
           transfer_seconds(f, read_bandwidth(limits, f.clients), limits.file_read);
}

}  // namespace railyard
