#pragma once
// The section [job.data] of a scenario: what the job reads to train on, from where, and through which
// loaders.

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "models/catalogue/catalogue.h"
#include "models/training/data_loader.h"

namespace railyard {

enum class DataSource : std::uint8_t { storage, object_store, local };
extern const std::vector<std::string> data_source_names;
extern const std::vector<std::string> data_demand_names;
extern const std::vector<std::string> sample_format_names;
extern const std::vector<std::string> cache_policy_names;
extern const std::vector<std::string> sampler_names;

struct DataLoading {
    std::string demand;
    DataSource source = DataSource::storage;
    std::shared_ptr<const DataLoader> loader;
    DataSupply supply;          // with the source to the job alone, from the second epoch on
    DataFlow flow;              // of that supply
    double hit_rate = 0;        // of samples, in the nodes' memory or on their drives
    double bytes_per_step = 0;  // of all samples, wherever they come from
    Bytes shuffle_buffers;      // of all loaders, when full
    Bytes page_cache;           // of one node, when it has cached what it can
    double dataset_bytes = 0;   // 0: not given, nothing is cached
    double egress_usd_per_byte = 0;
    double requests_usd_per_byte = 0;

    // What `steps` steps fetch from beyond the nodes: the first epoch misses every cache.
    double bytes_fetched(double steps) const;
};

// What a store is paid for what is read from it.
struct DataPrices {
    double egress_usd_per_byte = 0;
    double usd_per_request = 0;
    double request_bytes = 0;  // of one request at most; 0: whole files
};

// What is known of the job before its data.
struct DataContext {
    std::string node;  // in the catalogue
    std::int64_t nodes = 0;
    std::int64_t gpus_per_node = 0;
    Duration step{};                    // with its data at hand
    std::int64_t tokens_per_step = 0;   // 0: no language model
    DataSupply store;                   // what the shared store gives the job
    std::optional<DataSupply> objects;  // what [object_store] does; none: it is not there
    DataPrices object_prices{};         // there
    DataPrices store_prices{};          // of the shared store
};

// Reads the section; nothing when it is absent or wrong.
std::optional<DataLoading> read_data(Section& job, Catalogue& catalogue,
                                     const DataContext& context);

}  // namespace railyard
