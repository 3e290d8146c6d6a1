#include "models/storage/store_reader.h"

#include <fmt/format.h>

#include <algorithm>

#include "models/storage/storage.h"
#include "sim/text.h"

namespace railyard {

namespace {

const std::vector<std::string> drive_names = {"nvme", "hdd"};
constexpr int hard_disks = 1;  // among them

const StorageKind* kind_named(const std::string& name) {
    return find_named(storage_kinds(), name);
}

// The part of a node's traffic with the store that one NIC carries.
Bandwidth nic_rate(const Node& node, const ClusterNetwork& network) {
    if (network.spec.nic_bandwidth == node.nic_line_rate) return node.nic_bandwidth;
    return network.spec.nic_bandwidth * node.wire_share;
}

}  // namespace

const std::vector<std::string> storage_networks = {"own", "compute"};

const std::vector<std::string> storage_traffic_classes = {"compute", "own"};

const std::vector<std::string> storage_sharing = {"nodes", "jobs"};

StoreReader::StoreReader(StoreRole role, Section& top, Catalogue& catalogue, const Node& node,
                         const std::string& node_name, std::int64_t nodes)
    : role_(role),
      catalogue_(catalogue),
      node_(node),
      node_name_(node_name),
      nodes_(nodes),
      storage_(top.section(role == StoreRole::shared ? "storage" : "object_store")) {
    read_system();
    read_servers();
    if (role_ == StoreRole::shared) read_network();
    read_drives();
    if (storage_.describing()) describe_systems();
}

bool StoreReader::accepts(const StorageKind& kind) const {
    return role_ == StoreRole::shared ||
           (kind.section != nullptr && std::string_view(kind.section) == "object");
}

// For an object store, the section itself.
Section StoreReader::own_section(const StorageKind& kind) {
    return role_ == StoreRole::shared ? storage_.section(kind.section) : storage_;
}

void StoreReader::read_system() {
    std::vector<std::string> names;
    for (const StorageKind& kind : storage_kinds()) {
        if (accepts(kind)) names.emplace_back(kind.name);
    }
    for (const std::string& name : catalogue_.own_names("storage")) {
        const StorageKind* kind = kind_named(catalogue_.built_in_root("storage", name));
        // One that is like no system of the catalogue has been reported already.
        if (kind == nullptr || accepts(*kind)) names.push_back(name);
    }
    const bool shared = role_ == StoreRole::shared;
    std::string name = shared ? names[0] : "s3";
    storage_.name("system", name, names, "a storage system",
                  shared ? "The shared store that checkpoints go to"
                         : "The object store that a tier of checkpoints may be in");
    const bool known = std::ranges::find(names, name) != names.end();
    system_ = known ? name : names[0];
    kind_ = kind_named(catalogue_.built_in_root("storage", system_));
    if (kind_ == nullptr) kind_ = kind_named(system_ = names[0]);
    named_ = storage_.has("system") || !shared;
}

void StoreReader::read_servers() {
    servers_ = kind_->servers;
    storage_.read("servers", servers_, "Storage servers; their bandwidths add up",
                  {Bound::count, "1; the fewest that the named system has"});
    storage_.read("server_write_bandwidth", server_write_, "What one server takes",
                  {Bound::positive, "the system's, from the catalogue"});
    storage_.read("server_read_bandwidth", server_read_, "What one server gives",
                  {Bound::positive, "the system's, from the catalogue"});
    storage_.read("client_bandwidth", client_,
                  "What one node moves to and from the store, per direction",
                  {Bound::positive, "that of the node's NICs, or of the named system's client"});
}

void StoreReader::read_network() {
    nics_per_server_ = std::max<std::int64_t>(1, node_.storage_nics);
    storage_.read("nics_per_server", nics_per_server_,
                  "NICs of a storage server, of the network's rate",
                  {Bound::count, "as many as a node has for storage"});
    int network = 0;
    storage_.choose("network", network, storage_networks,
                    "own: [fabric.storage], apart from the compute network; compute: the servers "
                    "stand on [fabric.compute] and share its links");
    converged_asked_ = network == 1;
    // A store that nobody described is nowhere.
    const bool wants = storage_.present() && node_.storage_nics == 0;
    converged_ = converged_asked_ || (wants && kind_->place != StorePlace::nodes);
    if (converged_for_want()) {
        warn_of_keys(storage_, {"network"},
                     fmt::format("has no effect: {} has no NICs for storage, and its traffic "
                                 "takes the compute network",
                                 node_name_));
    }
    int traffic_class = 0;
    storage_.choose(
        "traffic_class", traffic_class, storage_traffic_classes,
        "On the compute network: compute, the class of the collectives; own, another one");
    int sharing = 0;
    storage_.choose("sharing", sharing, storage_sharing,
                    "Who has equal shares of it: every node, or every job");
    fair_by_job_ = sharing == 1;
    storage_.read("gpudirect", gpudirect_,
                  "GPU memory reaches the storage NICs directly (GPUDirect Storage), or by way of "
                  "host memory",
                  {.otherwise = "the way there never bounds it"});
    const bool own_class = converged_ && traffic_class == 1;
    std::int64_t weight = 1;
    storage_.read("class_weight", weight,
                  "Full packets that the class of its own sends for each one of the compute class "
                  "where both wait (deficit round robin)",
                  {Bound::count});
    keep_within(storage_, "class_weight", weight, std::int64_t{1000});
    read_priority(storage_, "class_priority", traffic_class_.priority,
                  "IEEE 802.1p priority of the class of its own, 0 to 7 (RoCE)");
    if (own_class) traffic_class_.weight = weight;
    if (!own_class) {
        warn_of_keys(storage_, {"class_weight", "class_priority"},
                     "has no effect without traffic_class = \"own\"");
    }
    if (!converged_) {
        warn_of_keys(storage_, {"traffic_class"},
                     "has no effect without storage.network = \"compute\"");
    }
}

void StoreReader::read_drives() {
    storage_.choose("drive", drive_, drive_names, "What the servers' drives are");
    storage_.read("drives_per_server", drive_count_,
                  "Drives of a server; of a DBox with vast, of a node with local_nvme_raid0",
                  {Bound::count, "the system's, from the catalogue"});
    const char* otherwise = "the drive's, from the catalogue";
    storage_.read("drive_capacity", drive_capacity_, "Capacity of one drive",
                  {Bound::positive, otherwise});
    storage_.read("drive_read_bandwidth", drive_read_, "What one drive gives",
                  {Bound::positive, otherwise});
    storage_.read("drive_write_bandwidth", drive_write_, "What one drive takes",
                  {Bound::positive, otherwise});
    if (role_ == StoreRole::object) return;  // no system of these has RAID groups
    storage_.read("drive_rebuild_bandwidth", drive_rebuild_,
                  "What a RAID group rebuilds of a lost drive per time",
                  {Bound::positive, otherwise});
}

void StoreReader::warn_of_idle_keys() {
    const std::string why =
        fmt::format("has no effect with {} = \"{}\"", storage_.path("system"), system_);
    const bool servers = kind_->place == StorePlace::servers;
    const bool rates = servers || kind_->read_key != nullptr;
    if (!servers) warn_of_keys(storage_, {"servers", "nics_per_server"}, why);
    if (kind_->place == StorePlace::nodes) warn_of_keys(storage_, {"client_bandwidth"}, why);
    if (!rates) {
        warn_of_keys(storage_,
                     {"server_read_bandwidth", "server_write_bandwidth", "drive",
                      "drives_per_server", "drive_capacity", "drive_read_bandwidth",
                      "drive_write_bandwidth", "drive_rebuild_bandwidth"},
                     why);
    }
}

ServerDrives StoreReader::drives() {
    ServerDrives d;
    const std::string kind = word_of(drive_names, drive_);
    const bool has_count = catalogue_.has("storage", system_, "drives_per_server");
    d.count = drive_count_ ? *drive_count_
              : has_count  ? catalogue_.integer("storage", system_, "drives_per_server")
                           : 0;
    const bool modelled =
        drive_count_ || has_count || kind_->section != nullptr || kind_->place == StorePlace::nodes;
    if (!modelled) {
        warn_of_keys(storage_,
                     {"drive", "drive_capacity", "drive_read_bandwidth", "drive_write_bandwidth",
                      "drive_rebuild_bandwidth"},
                     fmt::format("has no effect without {}", storage_.path("drives_per_server")));
        return d;
    }
    d.capacity_given = drive_capacity_.has_value();
    d.capacity = drive_capacity_ ? *drive_capacity_
                 : catalogue_.has("storage", system_, "drive_capacity")
                     ? catalogue_.data("storage", system_, "drive_capacity")
                     : catalogue_.data("drive", kind, "capacity");
    d.read = drive_read_ ? *drive_read_ : catalogue_.bandwidth("drive", kind, "read_bandwidth");
    d.write = drive_write_ ? *drive_write_ : catalogue_.bandwidth("drive", kind, "write_bandwidth");
    d.rebuild = drive_rebuild_ ? *drive_rebuild_
                               : catalogue_.bandwidth("raid", "",
                                                      drive_ == 0 ? "raid6_ssd_rebuild_bandwidth"
                                                                  : "raid6_hdd_rebuild_bandwidth");
    // The drives bound a server that is built of its parts, not one whose rates somebody measured.
    const bool given = drive_count_ || drive_read_ || drive_write_ || storage_.has("drive");
    d.bound = given || (d.count > 0 && !(server_read_ || server_write_));
    return d;
}

StoreDesign StoreReader::design(const ClusterNetwork& network) {
    StoreDesign d;
    d.name = system_;
    d.servers = kind_->place == StorePlace::nodes ? nodes_ : servers_;
    const auto rate = [&](const std::optional<Bandwidth>& given, const char* key) {
        if (given || key == nullptr) return given;
        return std::optional(catalogue_.bandwidth("storage", system_, key));
    };
    d.server_read = rate(server_read_, kind_->read_key);
    d.server_write = rate(server_write_, kind_->write_key);
    d.server_write_given = server_write_.has_value();
    const Bandwidth nic = nic_rate(node_, network);
    d.server_nics = nic * nics_per_server_;
    d.nics_bound = storage_.has("nics_per_server");
    const bool own_nics = node_.storage_nics > 0 && !converged_;
    const Bandwidth node_nics = nic * (own_nics ? node_.storage_nics : node_.nics);
    const auto client = [&](const char* key) {
        // A store that is described by its servers alone has no client of its own.
        if (client_) return *client_;
        if (key == nullptr || !named_) return node_nics;
        return std::min(node_nics, catalogue_.bandwidth("storage", system_, key));
    };
    d.client_read = client(kind_->client_read_key);
    d.client_write = client(kind_->client_write_key);
    if (kind_->place == StorePlace::servers || kind_->read_key != nullptr) d.drives = drives();
    d.site = {node_name_, nodes_, node_nics, network.kind != NetworkKind::tcp,
              fmt::format("fabric.{}.kind", network.name)};
    return d;
}

// Every system's own keys, once for each section.
void StoreReader::describe_systems() {
    StoreDesign any;
    any.site.node = node_name_;
    any.drives.count = 1;
    for (const StorageKind& kind : storage_kinds()) {
        if (kind.section == nullptr || !accepts(kind)) continue;
        any.name = kind.name;
        Section own = own_section(kind);
        kind.build(storage_, own, catalogue_, any);
    }
}

void StoreReader::refuse_other_sections() {
    std::vector<std::string> seen = {kind_->section ? kind_->section : ""};
    for (const StorageKind& kind : storage_kinds()) {
        if (kind.section == nullptr) continue;
        if (std::ranges::find(seen, kind.section) != seen.end()) continue;
        seen.emplace_back(kind.section);
        if (!storage_.section(kind.section).present()) continue;
        storage_.error(kind.section,
                       fmt::format("describes another system: storage.system is \"{}\"", system_),
                       fmt::format("storage.system = \"{}\"", kind.name));
    }
}

StoreSetup StoreReader::build(const std::vector<ClusterNetwork>& networks) {
    const bool apart = !converged_ && networks.size() > 1 && networks[1].name == "storage";
    const ClusterNetwork& network = networks[apart ? 1 : 0];
    StoreSetup store;
    store.name = system_;
    store.kind = kind_->name;
    if (storage_.describing()) {
        read_store_failures(storage_, catalogue_, {});
        return store;
    }
    StoreDesign built = design(network);
    if (kind_->place == StorePlace::servers && kind_->section == nullptr && !built.server_write) {
        storage_.error("system",
                       fmt::format("nobody has published what {} takes in writes", system_),
                       "give storage.server_write_bandwidth");
        built.server_write = built.server_read;
    }
    constexpr double bytes_max = 9e18;
    const double drives = real(built.drives.count) * real(built.servers);
    if (drives * real(built.drives.capacity.count()) > bytes_max) {
        storage_.error("servers", fmt::format("{:.3g} drives of {} hold more than 9 EB", drives,
                                              to_text(built.drives.capacity)));
        storage_.finish();
        return store;
    }
    warn_of_idle_keys();
    if (kind_->section != nullptr && role_ == StoreRole::shared) {
        Section own = storage_.section(kind_->section);
        store.system = kind_->build(storage_, own, catalogue_, built);
        own.finish();
    } else {
        store.system = kind_->build(storage_, storage_, catalogue_, built);
    }
    if (role_ == StoreRole::shared) {
        if (storage_.ok()) {
            store.failures = read_store_failures(storage_, catalogue_, store.system->protection());
        } else {
            storage_.section("failures");  // can't be judged: it is not known what may fail
        }
        refuse_other_sections();
    }
    storage_.finish();
    if (!storage_.ok()) return store;
    store.limits = store.system->limits({});
    if (on_site()) store.servers = servers_;
    store.disks = built.drives.count > 0 && drive_ == hard_disks;
    if (store.failures && !store.limits.over_network) {
        storage_.error("failures",
                       "the parts of this store are parts of the nodes: [failures] has them");
    }
    store.supply = supply_of(store.limits);
    const Bytes net = store.system->capacity().net;
    if (net < Bytes::of(INT64_MAX)) store.capacity = net;
    server_write_ = built.server_write.value_or(least(store.limits.write).bandwidth *
                                                (1.0 / real(built.servers)));
    return store;
}

std::int64_t StoreReader::servers() const {
    if (on_site()) return servers_;
    return kind_->place == StorePlace::cloud && converged_ ? 1 : 0;
}

bool StoreReader::on_site() const {
    return kind_->place == StorePlace::servers;
}

std::optional<Bandwidth> StoreReader::gpu_path() {
    if (!gpudirect_) return std::nullopt;
    if (*gpudirect_ && !node_.pcie.peer_to_peer) {
        storage_.error("gpudirect", "GPUs and NICs of the nodes do not reach each other",
                       "cluster.peer_to_peer = true, or storage.gpudirect = false");
    }
    const Bandwidth host = catalogue_.bandwidth("pcie_p2p", "", "host_memory_bandwidth_per_socket");
    return *gpudirect_ ? peer_storage_path(node_) : host_storage_path(node_, host);
}

}  // namespace railyard
