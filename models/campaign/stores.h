#pragma once
// The store that checkpoints go to, as a scenario asks for it: [storage].

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "models/campaign/network.h"
#include "models/storage/storage.h"

namespace railyard {

// A store that jobs use, with everything in order.
struct StoreSetup {
    std::string name;  // of its kind
    std::shared_ptr<const StorageSystem> system;
    StoreSupply supply;
    Bytes capacity;  // 0: not known
};

class StoreReader {
  public:
    // Reads what the networks must know of the store. `top`, `catalogue` and `node` outlive the reader.
    StoreReader(Section& top, Catalogue& catalogue, const Node& node, const std::string& node_name,
                std::int64_t nodes);

    std::int64_t servers() const { return servers_; }  // that stand on a network
    std::int64_t nics_per_server() const { return nics_per_server_; }
    bool converged() const { return converged_; }  // on the compute network
    // Of its traffic class there, if that is one of its own; else 0.
    std::int64_t class_weight() const { return class_weight_; }

    // Once the networks are known. Nothing must be done with the store when something was wrong.
    StoreSetup build(const std::vector<ClusterNetwork>& networks);
    // One server's part of the sound store; once it is built.
    Bandwidth server_write() const { return server_write_.value_or(Bandwidth{}); }

  private:
    void read_servers();
    void read_drives();
    void describe_systems();
    void warn_of_idle_keys();
    void finish_sections();
    StoreDesign design(const ClusterNetwork& network);
    ServerDrives drives();

    Catalogue& catalogue_;
    const Node& node_;
    std::string node_name_;
    std::int64_t nodes_;
    Section storage_;
    const StorageKind* kind_ = nullptr;
    bool named_ = false;
    std::int64_t servers_ = 1;
    std::int64_t nics_per_server_ = 1;
    bool converged_ = false;
    std::int64_t class_weight_ = 0;
    std::optional<Bandwidth> server_read_;
    std::optional<Bandwidth> server_write_;
    std::optional<Bandwidth> client_;
    int drive_ = 0;
    std::optional<std::int64_t> drive_count_;
    std::optional<Bytes> drive_capacity_;
    std::optional<Bandwidth> drive_read_;
    std::optional<Bandwidth> drive_write_;
    std::optional<Bandwidth> drive_rebuild_;
};

// For `railyard list kinds`: the words of [storage].
const std::vector<std::string>& storage_networks();
const std::vector<std::string>& storage_traffic_classes();

}  // namespace railyard
