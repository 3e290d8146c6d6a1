#pragma once
// The stores of a scenario: [storage], which a cluster has at hand, and [object_store] behind it.

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "models/fabric/fabric.h"
#include "models/hardware/hardware.h"
#include "models/storage/failing_store.h"
#include "models/storage/store.h"
#include "models/storage/store_design.h"

namespace railyard {

struct StorageKind;

// A store that jobs use, with everything in order.
struct StoreSetup {
    std::string name;  // in the catalogue
    std::string kind;  // the system that it works like
    std::shared_ptr<const StorageSystem> system;
    StoreSupply supply;
    StoreLimits limits;
    std::int64_t servers = 0;  // on the premises; 0: a cloud's, or parts of the nodes
    bool disks = false;        // its drives are hard disks
    Bytes capacity;            // 0: not known
    std::optional<StoreFailureSpec> failures;  // of its parts; none: nothing breaks
};

// Where they stand among a scenario's stores.
constexpr std::size_t shared_store = 0;
constexpr std::size_t object_store_index = 1;

enum class StoreRole : std::uint8_t {
    shared,  // [storage]: any system, its servers stand on the cluster's networks
    object,  // [object_store]: one that speaks S3, reached over the same NICs; its keys in the section itself
};

class StoreReader {
  public:
    // Reads what the networks must know of the store. `top`, `catalogue` and `node` outlive the reader.
    StoreReader(StoreRole role, Section& top, Catalogue& catalogue, const Node& node,
                const std::string& node_name, std::int64_t nodes);

    bool present() const { return role_ == StoreRole::shared || storage_.present(); }
    // That stand on a network: none where the nodes themselves are the store; the way out to a cloud's, where
    // its bytes share the compute network, is one.
    std::int64_t servers() const;
    bool on_site() const;
    std::int64_t nics_per_server() const { return nics_per_server_; }
    bool converged() const { return converged_; }  // on the compute network
    // It is there because nodes have no NICs for storage, and nobody has asked for it.
    bool converged_for_want() const { return converged_ && !converged_asked_; }
    bool fair_by_job() const { return fair_by_job_; }
    // The bandwidth from a node's GPU memory to the store's NICs; not set: never the limit.
    std::optional<Bandwidth> gpu_path();
    const StorageClass& traffic_class() const { return traffic_class_; }  // there

    // Once the networks are known. Nothing must be done with the store when something was wrong.
    StoreSetup build(const std::vector<ClusterNetwork>& networks);
    // One server's part of the sound store; once it is built.
    Bandwidth server_write() const { return server_write_.value_or(Bandwidth{}); }

  private:
    void read_system();
    void read_servers();
    void read_network();
    void read_drives();
    void describe_systems();
    void warn_of_idle_keys();
    void refuse_other_sections();
    StoreDesign design(const ClusterNetwork& network);
    ServerDrives drives();

    bool accepts(const StorageKind& kind) const;
    Section own_section(const StorageKind& kind);

    StoreRole role_;
    Catalogue& catalogue_;
    const Node& node_;
    std::string node_name_;
    std::int64_t nodes_;
    Section storage_;
    const StorageKind* kind_ = nullptr;
    std::string system_;  // in the catalogue; its kind's, or one of the scenario that is like it
    bool named_ = false;
    std::int64_t servers_ = 1;
    std::int64_t nics_per_server_ = 1;
    bool converged_ = false;
    bool converged_asked_ = false;
    bool fair_by_job_ = false;
    std::optional<bool> gpudirect_;
    StorageClass traffic_class_;
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
extern const std::vector<std::string> storage_networks;
extern const std::vector<std::string> storage_traffic_classes;
extern const std::vector<std::string> storage_sharing;

}  // namespace railyard
