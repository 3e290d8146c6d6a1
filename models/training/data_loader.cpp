#include "models/training/data_loader.h"

#include <algorithm>
#include <cmath>
#include <queue>

#include "sim/check.h"
#include "sim/rng.h"

namespace railyard {

namespace {

// Ranks that one simulation follows. More share the store in the same proportion; the slowest of the hosts is
// drawn for all of them.
constexpr std::int64_t ranks_simulated_max = 32;
// Deeper queues hide what these leave, and take as long to fill.
constexpr std::int64_t prefetch_simulated_max = 64;
// The table runs over u = x / (1 + x), x supply over demand: from a third to three times the demand.
constexpr std::int64_t table_cells = 16;
constexpr double table_low = 0.25;
constexpr double table_high = 0.75;

double harmonic(std::int64_t n) {
    double sum = 0;
    for (std::int64_t k = 1; k <= std::min<std::int64_t>(n, 1000); ++k) sum += 1 / real(k);
    if (n > 1000) sum += portable_log(real(n) / 1000);
    return sum;
}

// The largest of n exponential times with mean 1.
double slowest_exponential(RandomStream& random, std::int64_t n) {
    const double below = portable_exp(portable_log(1 - random.uniform()) / real(n));
    return -portable_log(std::max(1 - below, 1e-300));
}

// The queues of synchronous ranks that share a store. All ranks that have room load at the same rate, so one
// clock of work done serves them all, and a batch ends when that clock has moved by its size.
class Queues {
  public:
    explicit Queues(const QueueSpec& spec)
        : spec_(spec),
          ranks_(std::min(spec.ranks, ranks_simulated_max)),
          ready_(static_cast<std::size_t>(ranks_)),
          sizes_(0, 0, "data_loader.batch_size"),
          hosts_(0, 0, "data_loader.host") {}

    QueueResult run() {
        for (std::size_t rank = 0; rank < ready_.size(); ++rank) begin_batch(rank);
        const std::int64_t warm_up = spec_.prefetch + spec_.steps / 4;
        double from = 0;
        double computed = 0;
        for (std::int64_t step = 0; step < warm_up + spec_.steps; ++step) {
            if (step == warm_up) from = now_;
            while (empty_ > 0) load_until(std::numeric_limits<double>::infinity());
            const double length = 1 + spec_.jitter * slowest_exponential(hosts_, spec_.ranks);
            if (step >= warm_up) computed += length;
            take_batches();
            const double end = now_ + length;
            while (now_ < end) load_until(end);
        }
        const double steps = real(spec_.steps);
        return {(now_ - from) / steps, computed / steps, drawn_ / real(batches_) / spec_.supply};
    }

  private:
    struct Batch {
        double ends;  // on the clock of work
        std::size_t rank;
        bool operator>(const Batch& other) const {
            return ends != other.ends ? ends > other.ends : rank > other.rank;
        }
    };

    void begin_batch(std::size_t rank) {
        const double size = spec_.exponential_batches
                                ? sizes_.exponential()
                                : std::max(0.01, 1 + spec_.batch_variation * sizes_.normal());
        drawn_ += size;
        ++batches_;
        loading_.push({work_ + size, rank});
    }

    // Up to the next batch that is ready, or to `end` when that is sooner.
    void load_until(double end) {
        if (loading_.empty()) {
            now_ = end;
            return;
        }
        const double rate = spec_.supply * real(ranks_) / real(loading_.size());
        const Batch next = loading_.top();
        const double ready_at = now_ + (next.ends - work_) / rate;
        if (ready_at > end) {
            work_ += (end - now_) * rate;
            now_ = end;
            return;
        }
        work_ = next.ends;
        now_ = ready_at;
        loading_.pop();
        if (ready_[next.rank]++ == 0) --empty_;
        if (ready_[next.rank] < spec_.prefetch) begin_batch(next.rank);
    }

    void take_batches() {
        for (std::size_t rank = 0; rank < ready_.size(); ++rank) {
            if (ready_[rank] == spec_.prefetch) begin_batch(rank);
            if (--ready_[rank] == 0) ++empty_;
        }
    }

    QueueSpec spec_;
    std::int64_t ranks_;
    std::vector<std::int64_t> ready_;  // batches of each rank
    std::int64_t empty_ = ranks_;      // ranks without one
    std::priority_queue<Batch, std::vector<Batch>, std::greater<>> loading_;
    RandomStream sizes_;
    RandomStream hosts_;
    double now_ = 0;
    double work_ = 0;
    double drawn_ = 0;
    std::int64_t batches_ = 0;
};

// A sample was read f before the end of one epoch and is read again b after the begin of another, in
// shares of an epoch, with k - 1 epochs between that passed it over. All of these name 1 - (1 - p f)
// q^(k - 1) (1 - p b) of the data set, q = 1 - p: it is still there when that is no more than the cache
// holds. f and b are uniform: of u = 1 - p f and v = 1 - p b, P(u v >= t).
double still_there(double p, double t) {
    const double q = 1 - p;
    if (t >= 1) return 0;
    if (t <= q * q) return 1;
    if (t >= q) return ((1 - t) + t * portable_log(t)) / (p * p);
    return (1 - t / q) / p + ((t / q - q) - t * portable_log(t / (q * q))) / (p * p);
}

double share(double part, double whole) {
    return whole > 0 ? part / whole : DataSupply::unlimited;
}

}  // namespace

DataSupply DataSupply::at_two_reads() const {
    DataSupply s = *this;
    for (double* rate : {&s.store_bandwidth, &s.node_bandwidth, &s.stream_bandwidth, &s.opens_per_s,
                         &s.local_bandwidth}) {
        *rate /= 2;
    }
    for (Duration* latency : {&s.open_latency, &s.first_byte, &s.local_latency}) *latency *= 2;
    return s;
}

QueueResult simulate_queues(const QueueSpec& spec) {
    RY_CHECK(spec.prefetch >= 1 && spec.supply > 0);
    return Queues(spec).run();
}

std::string_view data_wall_name(DataWall wall) {
    constexpr std::string_view names[] = {"accelerators", "store bandwidth", "a node's network",
                                          "file opens",   "loader workers",  "CPU cores",
                                          "GPU decoding", "local drives"};
    return names[static_cast<std::size_t>(wall)];
}

DataLoader::DataLoader(const DataDemand& demand, const LoaderSpec& loader, const LoaderHosts& hosts)
    : demand_(demand), loader_(loader), hosts_(hosts) {
    RY_CHECK(demand.sample_bytes > 0 && demand.batch > 0 && demand.compute > Duration{});
    RY_CHECK(loader.workers > 0 && loader.prefetch > 0 && loader.samples_per_file > 0);
    const double base = seconds(demand.compute + demand.handover);
    QueueSpec queue;
    queue.ranks = hosts.gpus();
    queue.prefetch = std::min(loader.prefetch, prefetch_simulated_max);
    queue.batch_variation =
        demand.sample_stdev / demand.sample_bytes / std::sqrt(real(demand.batch));
    queue.jitter = seconds(demand.handover_jitter) / base;
    const double free_step = 1 + queue.jitter * harmonic(queue.ranks);
    free_step_s_ = base * free_step;
    if (queue.batch_variation == 0 && queue.jitter == 0) return;
    for (std::int64_t cell = 0; cell <= table_cells; ++cell) {
        const double u = table_low + (table_high - table_low) * real(cell) / real(table_cells);
        queue.supply = u / (1 - u) / free_step;
        const QueueResult r = simulate_queues(queue);
        excess_.push_back(std::max(0.0, r.step - std::max(r.free_step, r.batch)) / free_step);
    }
}

double DataLoader::excess(double supply_over_demand) const {
    if (excess_.empty() || std::isinf(supply_over_demand)) return 0;
    const double u = supply_over_demand / (1 + supply_over_demand);
    const double place = (u - table_low) / (table_high - table_low) * real(table_cells);
    if (place <= 0 || place >= real(table_cells)) return 0;
    const auto cell = static_cast<std::size_t>(place);
    const double part = place - real(cell);
    return excess_[cell] * (1 - part) + excess_[cell + 1] * part;
}

// What a worker waits for the store before a sample's bytes flow, on average.
double DataLoader::latency_per_sample(const DataSupply& supply) const {
    const auto of_format = [&](double open, double request) {
        const double per_file = real(loader_.samples_per_file);
        switch (loader_.format) {
            case SampleFormat::shards:
                return (open + request) / per_file;
            case SampleFormat::records:
                return open / per_file + request;
            case SampleFormat::files:
                return open + request;
        }
        RY_UNREACHABLE("a sample format");
    };
    const double remote = 1 - supply.memory_share - supply.local_share;
    return remote * of_format(seconds(supply.open_latency), seconds(supply.first_byte)) +
           supply.local_share * of_format(0, seconds(supply.local_latency));
}

// What one worker needs for a sample that has all bandwidth but its own.
double DataLoader::worker_seconds(const DataSupply& supply, Work work) const {
    const double bytes = (1 - supply.memory_share) * demand_.sample_bytes;
    const bool decodes = work == Work::read_and_decode && loader_.core_decode_rate > 0;
    const double decoding = decodes ? 1 / loader_.core_decode_rate : 0;
    return latency_per_sample(supply) + bytes / supply.stream_bandwidth + decoding;
}

DataLoader::Limit DataLoader::slowest(const DataSupply& supply, Work work) const {
    const bool decodes = work == Work::read_and_decode;
    const double remote = std::max(0.0, 1 - supply.memory_share - supply.local_share);
    const double remote_bytes = demand_.sample_bytes * remote;
    const double local_bytes = demand_.sample_bytes * supply.local_share;
    const double gpus = real(hosts_.gpus());
    const double nodes = real(hosts_.nodes);
    const double files =
        loader_.format == SampleFormat::files ? remote : remote / real(loader_.samples_per_file);
    const Limit limits[] = {
        {DataWall::store, share(supply.store_bandwidth, remote_bytes)},
        {DataWall::node_network, share(supply.node_bandwidth * nodes, remote_bytes)},
        {DataWall::opens, share(supply.opens_per_s, files)},
        {DataWall::local_drives, share(supply.local_bandwidth * nodes, local_bytes)},
        {DataWall::cpu_decode, decodes && loader_.core_decode_rate > 0
                                   ? hosts_.cores_per_node * nodes * loader_.core_decode_rate
                                   : DataSupply::unlimited},
        {DataWall::gpu_decode, decodes && loader_.gpu_decode_rate > 0
                                   ? loader_.gpu_decode_rate * gpus
                                   : DataSupply::unlimited},
        {DataWall::workers, share(gpus * real(loader_.workers), worker_seconds(supply, work))}};
    return *std::min_element(
        std::begin(limits), std::end(limits),
        [](const Limit& a, const Limit& b) { return a.samples_per_s < b.samples_per_s; });
}

DataFlow DataLoader::flow(const DataSupply& supply) const {
    const Limit limit = slowest(supply, Work::read_and_decode);
    const double step_samples = real(hosts_.gpus() * demand_.batch);
    const double demand = step_samples / free_step_s_;
    const double supplied_step_s = step_samples / limit.samples_per_s;
    const double remote = std::max(0.0, 1 - supply.memory_share - supply.local_share);
    DataFlow out;
    out.step_s = std::max(free_step_s_, supplied_step_s) +
                 free_step_s_ * excess(limit.samples_per_s / demand);
    out.data_wait_s = out.step_s - free_step_s_;
    out.samples_per_s = step_samples / out.step_s;
    out.utilisation = seconds(demand_.compute) / out.step_s;
    out.wall = limit.samples_per_s < demand ? limit.wall : DataWall::accelerators;
    out.supply_samples_per_s = limit.samples_per_s;
    out.demand_bandwidth = demand * demand_.sample_bytes * remote;
    out.read_bandwidth = out.samples_per_s * demand_.sample_bytes * remote;
    out.queue_bytes = step_samples * real(loader_.prefetch) * demand_.sample_bytes;
    out.bridge_s = real(loader_.prefetch) * free_step_s_;
    return out;
}

DataEpoch DataLoader::epoch(const DataSupply& supply, double steps) const {
    const DataFlow steady = flow(supply);
    const double step_samples = real(hosts_.gpus() * demand_.batch);
    const double batch_s = step_samples / steady.supply_samples_per_s;
    const double at_once =
        loader_.batch_per_worker ? real(std::min(loader_.workers, loader_.prefetch)) : 1;
    DataEpoch out;
    const double alone_s = worker_seconds(supply, Work::read_and_decode) *
                           (loader_.batch_per_worker ? real(demand_.batch) : 1);
    out.first_batch_s = std::max(at_once * batch_s, alone_s);
    const double files = steps * step_samples / real(loader_.samples_per_file);
    const double listing_s = files * seconds(loader_.listing);
    out.first_batch_s += listing_s;
    double waits_s = 0;  // of the steps that shuffle buffers grow in
    if (loader_.shuffle_buffer > 0) {
        out.first_batch_s += shuffle_initial_bytes() / shuffle_fill_bandwidth(supply);
        const double grow_steps =
            std::min((shuffle_bytes() - shuffle_initial_bytes()) / bytes_per_step(), steps / 2);
        const double step_s = flow(supply.at_two_reads()).step_s;
        waits_s = grow_steps * std::max(0.0, step_s - free_step_s_);
    }
    out.duration_s = std::max(out.first_batch_s + steps * free_step_s_ + waits_s,
                              listing_s + batch_s + steps * steady.step_s);
    out.utilisation = steps * seconds(demand_.compute) / (out.duration_s - out.first_batch_s);
    out.samples_per_s = steps * step_samples / out.duration_s;
    return out;
}

double DataLoader::shuffle_bytes() const {
    return real(loader_.shuffle_buffer) * real(loader_.workers * hosts_.gpus()) *
           demand_.sample_bytes;
}

double DataLoader::shuffle_initial_bytes() const {
    if (loader_.shuffle_buffer == 0) return 0;
    const std::int64_t initial = loader_.shuffle_initial.value_or(loader_.shuffle_buffer);
    return shuffle_bytes() * real(std::min(initial, loader_.shuffle_buffer)) /
           real(loader_.shuffle_buffer);
}

double DataLoader::shuffle_fill_bandwidth(const DataSupply& supply) const {
    return slowest(supply, Work::read).samples_per_s * demand_.sample_bytes;
}

double epoch_hit_rate(CachePolicy policy, double capacity, double bytes, double part) {
    if (capacity >= bytes) return 1;
    const double held = capacity / bytes;
    if (policy == CachePolicy::keep || held <= 0) return held;
    double hits = 0;
    double passed_over = 1;  // q^(k - 1)
    while (passed_over > 1 - held) {
        hits += part * passed_over * still_there(part, (1 - held) / passed_over);
        passed_over *= 1 - part;
    }
    return hits;
}

}  // namespace railyard
