#pragma once
// Data loading: what the accelerators of one job get to compute on, which wall stops them from
// getting more, and how long a step waits for its batch. README.md, "Data loading", has the
// equations.
//
// Rates are doubles: bytes or samples per second, of reported averages. A wait enters the campaign
// clock once, as whole nanoseconds.

#include <cstdint>
#include <limits>
#include <optional>
#include <string_view>
#include <vector>

#include "sim/units.h"

namespace railyard {

// How samples lie in files. shards: read from end to end, shuffled in memory; records: larger files,
// each sample a request of its own; files: each sample is a file that has to be opened.
enum class SampleFormat : std::uint8_t { shards, records, files };

// What one accelerator asks for.
struct DataDemand {
    double sample_bytes = 0;  // mean, as stored
    double sample_stdev = 0;  // bytes
    std::int64_t batch = 1;   // samples of one accelerator in one step
    Duration compute{};       // of one step with its batch at hand
    // What the host adds to each step between taking a batch and starting it, and the mean of the exponential
    // time that an accelerator takes longer than that. Synchronous steps wait for the slowest.
    Duration handover{};
    Duration handover_jitter{};
};

struct LoaderSpec {
    SampleFormat format = SampleFormat::shards;
    std::int64_t samples_per_file = 1;  // files: 1
    std::int64_t workers = 4;           // for each accelerator
    std::int64_t prefetch = 2;          // batches for each accelerator, at least 1
    bool batch_per_worker = true;       // each worker builds whole batches, as PyTorch's do
    std::int64_t shuffle_buffer = 0;    // samples of each worker
    // How many of them before its first batch; none: all. A worker reads two samples for each that it
    // yields until the rest is there, as WebDataset's do.
    std::optional<std::int64_t> shuffle_initial{};
    double core_decode_rate = 0;  // samples/s of one core; 0: nothing to decode there
    double gpu_decode_rate = 0;   // samples/s of one accelerator; 0: it decodes nothing
    Duration listing{};  // of each file, before an epoch: the host deals out a shuffled list
};

struct LoaderHosts {
    std::int64_t nodes = 1;
    std::int64_t gpus_per_node = 1;
    double cores_per_node = 0;  // used when cores decode

    std::int64_t gpus() const { return nodes * gpus_per_node; }
};

// What the job gets, now. Changes when its neighbours do or a part fails.
struct DataSupply {
    static constexpr double unlimited = std::numeric_limits<double>::infinity();
    double store_bandwidth = unlimited;   // bytes/s, the whole job
    double node_bandwidth = unlimited;    // bytes/s, one node
    double stream_bandwidth = unlimited;  // bytes/s, one worker
    double opens_per_s = unlimited;       // files, the whole job
    Duration open_latency{};
    Duration first_byte{};
    // Shares of the samples that the node has in memory (free) and on its own drives.
    double memory_share = 0;
    double local_share = 0;
    double local_bandwidth = unlimited;  // bytes/s, one node's drives
    Duration local_latency{};            // open and first byte

    DataSupply at_two_reads() const;  // what is left where each sample costs those of two
};

enum class DataWall : std::uint8_t {
    accelerators,  // nothing: they compute as fast as they can
    store,
    node_network,
    opens,
    workers,
    cpu_decode,
    gpu_decode,
    local_drives,
};
std::string_view data_wall_name(DataWall wall);  // "store bandwidth" ...

struct DataFlow {
    double samples_per_s = 0;  // the whole job, in steady state
    double step_s = 0;         // of which
    double data_wait_s = 0;    // waiting for a batch
    double utilisation = 0;  // compute over step: MLPerf's AU without what an epoch's ends do to it
    DataWall wall = DataWall::accelerators;
    double supply_samples_per_s = 0;  // what the loaders could bring, the whole job
    double demand_bandwidth = 0;  // bytes/s that the job reads from the store when it never waits
    double read_bandwidth = 0;    // bytes/s that it reads now
    double queue_bytes = 0;       // prefetched, of all accelerators, when full
    double bridge_s = 0;          // for so long a full queue feeds them without any supply
};

// One epoch from an empty queue, as MLPerf Storage counts it: AU leaves out the time until the first batch is
// there, throughput doesn't.
struct DataEpoch {
    double first_batch_s = 0;
    double duration_s = 0;
    double utilisation = 0;
    double samples_per_s = 0;
};

// The loaders of one job. Building one runs a small simulation of its queues where samples vary or hosts
// jitter; after that every answer is a few divisions and a look into a table. Immutable: replicas share it.
class DataLoader {
  public:
    DataLoader(const DataDemand& demand, const LoaderSpec& loader, const LoaderHosts& hosts);

    DataFlow flow(const DataSupply& supply) const;
    DataEpoch epoch(const DataSupply& supply, double steps) const;
    // The shuffle buffers of the whole job: bytes that they hold, as stored, full and when the first batch
    // leaves them, and bytes/s at which they fill until then. Samples leave them for the decoder, so decoding
    // is no limit.
    double shuffle_bytes() const;
    double shuffle_initial_bytes() const;
    double shuffle_fill_bandwidth(const DataSupply& supply) const;

    // The whole job's.
    double bytes_per_step() const {
        return real(hosts_.gpus() * demand_.batch) * demand_.sample_bytes;
    }
    const DataDemand& demand() const { return demand_; }
    const LoaderHosts& hosts() const { return hosts_; }

  private:
    struct Limit {
        DataWall wall;
        double samples_per_s;  // the whole job
    };
    enum class Work : std::uint8_t { read, read_and_decode };
    Limit slowest(const DataSupply& supply, Work work) const;
    double latency_per_sample(const DataSupply& supply) const;
    double worker_seconds(const DataSupply& supply, Work work) const;
    double excess(double supply_over_demand) const;

    DataDemand demand_;
    LoaderSpec loader_;
    LoaderHosts hosts_;
    double free_step_s_ = 0;  // of a step that never waits for data
    std::vector<double>
        excess_;  // over the longer of supply and demand, in steps; by supply / demand
};

// How long a step takes, in units of a step without jitter, when batches with this coefficient of
// variation come at `supply` a unit from a store that all ranks share, each having room for
// `prefetch`. Simulated, `steps` of them. What the table of a DataLoader is made of.
struct QueueSpec {
    std::int64_t ranks = 1;
    std::int64_t prefetch = 1;
    double batch_variation = 0;
    double jitter = 0;  // mean of the exponential part of each rank's step
    double supply = 1;  // batches a unit, each rank's share
    std::int64_t steps = 192;
    bool exponential_batches = false;  // for comparison with queues of textbooks
};
struct QueueResult {
    double step = 0;       // mean, with waiting
    double free_step = 0;  // mean of the same steps, had they never waited
    double batch = 0;      // mean time of the same batches at full supply
};
QueueResult simulate_queues(const QueueSpec& spec);

// How samples are dealt out to nodes. global_shuffle: each epoch deals all of them out anew, as PyTorch's
// DistributedSampler does. node_shard: the same in every epoch, as with WebDataset's split_by_node.
enum class Sampler : std::uint8_t { global_shuffle, node_shard };

// How many of a node's reads a cache of `capacity` bytes holds, once it has filled. In each epoch the
// node reads, in another random order, a `part` of `bytes`: all of them, or as many drawn anew. keep:
// the first that came stay. lru: those that were read last.
enum class CachePolicy : std::uint8_t { keep, lru };
double epoch_hit_rate(CachePolicy policy, double capacity, double bytes, double part = 1);

}  // namespace railyard
