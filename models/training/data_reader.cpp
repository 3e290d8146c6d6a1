#include "models/training/data_reader.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "sim/integers.h"
#include "sim/text.h"

namespace railyard {

namespace {

enum DataKind { custom, resnet50, unet3d, cosmoflow, llm_text };

// The section as read, before it is known to make sense.
struct DataKeys {
    DataKind demand = custom;
    DataSource source{};
    SampleFormat format{};
    CachePolicy policy{};
    Sampler sampler{};
    std::optional<Bytes> sample_size;
    std::optional<Bytes> sample_stdev;
    std::int64_t batch = 1;
    std::int64_t samples_per_file = 1000;
    std::int64_t workers = 4;
    std::int64_t prefetch = 2;
    std::int64_t shuffle_buffer = 0;
    std::optional<std::int64_t> shuffle_initial;
    std::optional<Rate> decode_rate;
    bool gpu_decode = false;
    double cores = 0;
    std::optional<Bytes> dataset;
    std::optional<Bytes> cache;
    Bytes page_cache;
    std::optional<double> egress_price;
};

DataKeys read_keys(Section& data) {
    DataKeys k;
    data.choose("demand", k.demand, data_demand_names,
                "What is read: samples of an MLPerf Storage workload, tokens, or as given");
    data.choose("source", k.source, data_source_names, "Where the samples are");
    data.choose("format", k.format, sample_format_names, "How samples lie in files");
    data.read("sample_size", k.sample_size, "Mean bytes of a sample, as stored",
              {Bound::positive, "the demand's; needed for custom"});
    data.read("sample_stdev", k.sample_stdev, "Standard deviation of a sample's bytes",
              {Bound::non_negative, "the demand's; 0 for custom"});
    data.read("batch", k.batch, "Samples of one GPU in one step",
              {Bound::count, "the demand's; 1 for custom"});
    data.choose(
        "sampler", k.sampler, sampler_names,
        "What a node reads of the data set: each epoch any samples, as PyTorch's "
        "DistributedSampler deals them out, or always its own, as with WebDataset's split_by_node");
    data.read("samples_per_file", k.samples_per_file, "Samples in one shard or record file",
              {Bound::count});
    data.read("workers", k.workers, "Loader workers of one GPU", {Bound::count});
    data.read("prefetch", k.prefetch, "Batches that wait or are under way for one GPU",
              {Bound::count});
    data.read(
        "shuffle_buffer", k.shuffle_buffer,
        "Samples that each worker draws from at random; filled again at every start and epoch",
        {Bound::non_negative});
    data.read("shuffle_initial", k.shuffle_initial,
              "Samples of the shuffle buffer before a first batch; then two are read for each "
              "sample that leaves, until it is full, as in WebDataset (there 100)",
              {Bound::count, "all of the buffer, as in tf.data"});
    data.read("decode_rate", k.decode_rate, "Samples a second that one CPU core decodes",
              {Bound::positive, "JPEG's from the catalogue for resnet50; else nothing to decode"});
    data.read("gpu_decode", k.gpu_decode,
              "GPUs decode instead of CPU cores, at the catalogue's rate");
    data.read("cores", k.cores, "CPU cores of a node that decode",
              {Bound::positive, "all of the node's, from the catalogue"});
    data.read("dataset", k.dataset, "Bytes of the data set; an epoch reads all of it",
              {Bound::positive, "unknown: nothing can be cached"});
    data.read("cache", k.cache, "Space on each node's drives that caches samples",
              {Bound::positive, "no cache"});
    data.choose("cache_policy", k.policy, cache_policy_names,
                "What stays when not all fits; epochs read in new random orders");
    data.read("page_cache", k.page_cache, "Memory of each node that caches samples (LRU)",
              {Bound::non_negative, "0: each epoch reads all again"});
    data.read("egress_price", k.egress_price, "USD for 1 GB that leaves the object store",
              {Bound::non_negative,
               "[object_store]'s; without that section needed for source = \"object_store\""});
    return k;
}

// What a node reads of the data set, sooner or later.
Bytes read_by_a_node(const DataKeys& k, const DataContext& context) {
    const bool all = k.sampler == Sampler::global_shuffle;
    return all ? *k.dataset : Bytes::of(ceil_div(k.dataset->count(), context.nodes));
}

void warn_of_idle_keys(Section& data, const DataKeys& k, bool files) {
    if (files) {
        warn_of_keys(data, {"samples_per_file"},
                     "has no effect with job.data.format = \"files\": each has one");
    }
    if (!k.cache) warn_of_keys(data, {"cache_policy"}, "has no effect without job.data.cache");
    if (k.gpu_decode) {
        warn_of_keys(data, {"decode_rate", "cores"}, "has no effect: GPUs decode");
    } else if (!k.decode_rate && k.demand != resnet50) {
        warn_of_keys(data, {"cores"}, "has no effect: nothing is decoded");
    }
    if (k.shuffle_initial && k.shuffle_buffer == 0) {
        data.warning("shuffle_initial", "has no effect without job.data.shuffle_buffer");
    }
}

void check(Section& data, const DataKeys& k, Catalogue& catalogue, const DataContext& context) {
    if (k.demand == custom && !k.sample_size) {
        data.error("sample_size", "is missing: a custom demand has samples of your size",
                   "give job.data.sample_size, or choose job.data.demand");
    }
    if (k.demand == llm_text && context.tokens_per_step == 0) {
        data.error("demand", "tokens are counted by a model, and there is none", "give job.model");
    }
    if (k.demand == llm_text) {
        refuse_keys(data,
                    {"sample_size", "sample_stdev", "batch", "shuffle_buffer", "shuffle_initial"},
                    "has no meaning for tokens: job.parallel says how many a step reads",
                    "job.data.demand = \"custom\"");
    }
    const bool files = k.format == SampleFormat::files;
    if (files && k.shuffle_buffer > 0) {
        data.error("shuffle_buffer",
                   "has no use where each sample is a file: any order can be read",
                   "job.data.format = \"shards\" or \"records\"");
    }
    warn_of_idle_keys(data, k, files);
    if (k.shuffle_initial && k.shuffle_buffer > 0 && *k.shuffle_initial > k.shuffle_buffer) {
        data.error("shuffle_initial",
                   fmt::format("{} samples are more than job.data.shuffle_buffer's {}",
                               *k.shuffle_initial, k.shuffle_buffer));
    }
    const bool object_store = k.source == DataSource::object_store;
    if (object_store && !k.egress_price && !context.objects) {
        data.error("egress_price", "data leaves the object store, and its price is not given",
                   "give it in USD per GB, 0.09 at AWS's first tier; 0 where it is free");
    }
    if (!object_store && k.egress_price) {
        data.warning("egress_price", "has no effect without source = \"object_store\"");
    }
    if (!k.dataset && (k.cache || k.page_cache > Bytes{})) {
        data.error("dataset", "is missing: how often a cache hits depends on it");
    }
    const auto room = [&](const char* key, const char* part, const char* what, Bytes wanted) {
        if (!catalogue.has("node", context.node, part)) return;
        const Bytes there = catalogue.data("node", context.node, part);
        if (wanted <= there) return;
        data.error(key, fmt::format("{} is more than the node's {} of {}", to_text(wanted), what,
                                    to_text(there)));
    };
    if (k.cache) room("cache", "local_nvme", "local drives", *k.cache);
    room("page_cache", "host_memory", "memory", k.page_cache);
    const bool local = k.source == DataSource::local;
    if (local && k.dataset)
        room("dataset", "local_nvme", "local drives", read_by_a_node(k, context));
    if (k.sampler != Sampler{} && !k.dataset) {
        data.warning("sampler", "has no effect without job.data.dataset");
    }
    if (local && k.cache) {
        data.warning("cache", "has no effect: the samples are on the node's drives already");
    }
}

DataDemand demand_of(const DataKeys& k, Catalogue& c, const DataContext& context,
                     bool batch_given) {
    DataDemand d;
    d.compute = context.step;
    d.batch = k.batch;
    if (k.demand == llm_text) {
        d.batch = 1;
        d.sample_bytes = real(context.tokens_per_step) *
                         c.number("loader_demand", "llm_text", "bytes_per_token") /
                         real(context.nodes * context.gpus_per_node);
    } else if (k.demand != custom) {
        const std::string entry = word_of(data_demand_names, k.demand) + "_h100";
        d.sample_bytes = real(c.data("loader_demand", entry, "sample_size").count());
        if (c.has("loader_demand", entry, "sample_stdev")) {
            d.sample_stdev = real(c.data("loader_demand", entry, "sample_stdev").count());
        }
        if (!batch_given) d.batch = c.integer("loader_demand", entry, "batch");
    }
    if (k.sample_size) d.sample_bytes = real(k.sample_size->count());
    if (k.sample_stdev) d.sample_stdev = real(k.sample_stdev->count());
    return d;
}

// A worker's buffer of samples holds no more than it reads in an epoch.
std::int64_t shuffle_buffer_of(const DataKeys& k, const DataContext& context, double sample_bytes) {
    if (!k.dataset) return k.shuffle_buffer;
    const auto workers = real(k.workers * context.nodes * context.gpus_per_node);
    const double own = real(k.dataset->count()) / sample_bytes / workers;
    return static_cast<std::int64_t>(std::min(real(k.shuffle_buffer), own));
}

LoaderSpec loader_of(const DataKeys& k, Catalogue& c) {
    LoaderSpec l;
    l.format = k.format;
    l.samples_per_file = l.format == SampleFormat::files ? 1 : k.samples_per_file;
    l.workers = k.workers;
    l.prefetch = k.prefetch;
    const bool images = k.demand == resnet50;
    if (k.gpu_decode) {
        l.gpu_decode_rate =
            c.rate("loader_demand", "jpeg_decode", "dali_decode_rate_per_gpu").per_second;
    } else if (k.decode_rate) {
        l.core_decode_rate = k.decode_rate->per_second;
    } else if (images) {
        l.core_decode_rate =
            c.rate("loader_demand", "jpeg_decode", "decode_rate_per_core").per_second;
    }
    return l;
}

void set_local_drives(DataSupply& supply, Catalogue& c) {
    supply.local_bandwidth =
        c.bandwidth("storage", "local_nvme_raid0", "read_bandwidth").bytes_per_second();
    supply.local_latency = c.time("storage", "local_nvme_raid0", "open_latency") +
                           c.time("storage", "local_nvme_raid0", "latency");
}

DataSupply supply_from(DataSource source, Catalogue& c, const DataContext& context) {
    DataSupply supply;
    if (source == DataSource::storage) return context.store;
    if (source == DataSource::object_store && context.objects) return *context.objects;
    if (source == DataSource::object_store) {
        supply.node_bandwidth =
            c.bandwidth("storage", "s3", "instance_bandwidth").bytes_per_second();
        supply.stream_bandwidth =
            c.bandwidth("storage", "s3", "stream_bandwidth").bytes_per_second();
        supply.opens_per_s = c.rate("storage", "s3", "get_rate_per_prefix").per_second;
        supply.first_byte = c.time("storage", "s3", "first_byte_latency");
    }
    return supply;
}

void add_caches(DataLoading& out, const DataKeys& k, Catalogue& c, const DataContext& context) {
    if (out.source == DataSource::local) {
        set_local_drives(out.supply, c);
        out.supply.local_share = 1;
    }
    if (!k.dataset) return;
    out.dataset_bytes = real(k.dataset->count());
    const Bytes reach = read_by_a_node(k, context);
    // What an epoch reads of these.
    const double part = out.dataset_bytes / real(context.nodes * reach.count());
    const auto hit_rate = [&](CachePolicy policy, Bytes cache) {
        return epoch_hit_rate(policy, real(cache.count()), real(reach.count()),
                              std::min(1.0, part));
    };
    out.page_cache = std::min(k.page_cache, reach);
    out.supply.memory_share = hit_rate(CachePolicy::lru, k.page_cache);
    if (out.source == DataSource::local) {
        out.supply.local_share -= out.supply.memory_share;
    } else if (k.cache) {
        set_local_drives(out.supply, c);
        const double hits = hit_rate(k.policy, *k.cache);
        out.supply.local_share = std::max(0.0, hits - out.supply.memory_share);
    }
}

// An object store without a section is S3.
DataPrices prices_of(DataSource source, Catalogue& c, const DataContext& context) {
    if (source == DataSource::local) return {};
    if (source == DataSource::storage) return context.store_prices;
    if (context.objects) return context.object_prices;
    constexpr double requests_priced = 1000;
    return {0, c.price("storage", "s3", "get_price") / requests_priced,
            static_cast<double>(c.data("storage", "s3", "part_size").count())};
}

// A request for each sample, and for each part of a large one; of shards for each part of the file.
void price_reads(DataLoading& out, const DataKeys& k, const LoaderSpec& loader, double sample_bytes,
                 const DataPrices& prices) {
    const bool objects = out.source == DataSource::object_store;
    out.egress_usd_per_byte =
        objects && k.egress_price ? *k.egress_price * 1e-9 : prices.egress_usd_per_byte;
    const bool whole = loader.format == SampleFormat::shards;
    const double read = sample_bytes * static_cast<double>(whole ? loader.samples_per_file : 1);
    if (read <= 0 || prices.usd_per_request <= 0) return;
    const double parts = prices.request_bytes > 0 ? std::ceil(read / prices.request_bytes) : 1;
    out.requests_usd_per_byte = prices.usd_per_request * parts / read;
}

}  // namespace

const std::vector<std::string> data_source_names = {"storage", "object_store", "local"};
const std::vector<std::string> data_demand_names = {"custom", "resnet50", "unet3d", "cosmoflow",
                                                    "llm_text"};
const std::vector<std::string> sample_format_names = {"shards", "records", "files"};
const std::vector<std::string> cache_policy_names = {"keep", "lru"};

const std::vector<std::string> sampler_names = {"global_shuffle", "node_shard"};

double DataLoading::bytes_fetched(double steps) const {
    if (source == DataSource::local) return 0;
    const double all = steps * bytes_per_step;
    return all - hit_rate * std::max(0.0, all - dataset_bytes);
}

std::optional<DataLoading> read_data(Section& job, Catalogue& catalogue,
                                     const DataContext& context) {
    Section data = job.section("data");
    DataKeys k = read_keys(data);
    data.finish();
    if (!data.present() || data.describing() || !data.ok()) return std::nullopt;
    check(data, k, catalogue, context);
    if (!data.ok()) return std::nullopt;

    DataLoading out;
    out.demand = word_of(data_demand_names, k.demand);
    out.source = k.source;
    const DataDemand demand = demand_of(k, catalogue, context, data.has("batch"));
    LoaderSpec loader = loader_of(k, catalogue);
    loader.shuffle_buffer = shuffle_buffer_of(k, context, demand.sample_bytes);
    loader.shuffle_initial = k.shuffle_initial;
    LoaderHosts hosts{context.nodes, context.gpus_per_node, k.cores};
    if (loader.core_decode_rate > 0 && k.cores == 0) {
        if (!catalogue.has("node", context.node, "cpu_cores")) {
            data.error("cores",
                       fmt::format("the catalogue does not say how many {} has", context.node));
            return std::nullopt;
        }
        hosts.cores_per_node = catalogue.number("node", context.node, "cpu_cores");
    }
    out.supply = supply_from(out.source, catalogue, context);
    add_caches(out, k, catalogue, context);
    out.hit_rate = out.supply.memory_share + out.supply.local_share;
    out.loader = std::make_shared<DataLoader>(demand, loader, hosts);
    out.flow = out.loader->flow(out.supply);
    out.bytes_per_step = out.loader->bytes_per_step();
    if (out.loader->shuffle_bytes() > 9e18) {
        data.error("shuffle_buffer", "overflow: the buffers hold more than 9 EB");
        return std::nullopt;
    }
    out.shuffle_buffers = Bytes::of(static_cast<std::int64_t>(out.loader->shuffle_bytes()));
    price_reads(out, k, loader, demand.sample_bytes, prices_of(out.source, catalogue, context));
    return out;
}

}  // namespace railyard
