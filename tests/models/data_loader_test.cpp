// Data loading against closed forms: Little's law, the slowest of n, a queue of textbooks, LRU.

#include "models/training/data_loader.h"

#include <doctest/doctest.h>

#include <chrono>
#include <cmath>
#include <list>
#include <map>
#include <numeric>

#include "models/catalogue/catalogue.h"
#include "sim/rng.h"

using namespace railyard;
using std::chrono_literals::operator""ms;
using std::chrono_literals::operator""us;

namespace {

// ResNet-50 on one H100, as MLPerf Storage has it, on a host without jitter.
DataDemand steady_images() {
    DataDemand d;
    d.sample_bytes = 114660;
    d.batch = 400;
    d.compute = 224ms;
    return d;
}

}  // namespace

TEST_CASE("an accelerator that wants for nothing computes all the time") {
    const DataLoader loader(steady_images(), {}, {4, 8, 0});
    const DataFlow f = loader.flow({});
    CHECK(f.utilisation == doctest::Approx(1));
    CHECK(f.data_wait_s == 0);
    CHECK(f.wall == DataWall::accelerators);
    CHECK(f.samples_per_s == doctest::Approx(32 * 400 / 0.224));
    CHECK(f.demand_bandwidth == doctest::Approx(32 * 400 / 0.224 * 114660));
    CHECK(f.bridge_s == doctest::Approx(2 * 0.224));
    CHECK(f.queue_bytes == doctest::Approx(32 * 2 * 400 * 114660.0));
}

TEST_CASE("each wall stops the job at its own rate, and is named") {
    LoaderSpec spec;
    spec.samples_per_file = 1000;
    const LoaderHosts hosts{2, 4, 16};
    const auto flow = [&](const LoaderSpec& l, const DataSupply& s) {
        return DataLoader(steady_images(), l, hosts).flow(s);
    };
    const auto hits = [](const DataFlow& f, DataWall wall, double rate) {
        CHECK(f.wall == wall);
        CHECK(f.samples_per_s == doctest::Approx(rate));
        CHECK(f.data_wait_s > 0);
        CHECK(f.utilisation == doctest::Approx(rate / (8 * 400 / 0.224)));
    };
    DataSupply s;
    s.store_bandwidth = 1e9;
    hits(flow(spec, s), DataWall::store, 1e9 / 114660);
    s = {};
    s.node_bandwidth = 0.4e9;
    hits(flow(spec, s), DataWall::node_network, 0.8e9 / 114660);
    s = {};
    s.opens_per_s = 5;
    hits(flow(spec, s), DataWall::opens, 5000);
    s = {};
    s.local_share = 0.5;
    s.local_bandwidth = 0.2e9;
    hits(flow(spec, s), DataWall::local_drives, 0.4e9 / 114660 / 0.5);
    LoaderSpec cpu = spec;
    cpu.core_decode_rate = 180;
    cpu.workers = 64;
    hits(flow(cpu, {}), DataWall::cpu_decode, 2 * 16 * 180);
    LoaderSpec gpu = spec;
    gpu.gpu_decode_rate = 1000;
    hits(flow(gpu, {}), DataWall::gpu_decode, 8000);
}

TEST_CASE("workers obey Little's law, file by file, record by record and shard by shard") {
    DataSupply s;
    s.open_latency = 2300us;
    s.first_byte = 700us;
    s.stream_bandwidth = 114660 / 0.002;
    LoaderSpec spec;
    spec.workers = 3;
    spec.core_decode_rate = 200;
    const auto rate = [&](SampleFormat format, std::int64_t per_file) {
        spec.format = format;
        spec.samples_per_file = per_file;
        const DataFlow f = DataLoader(steady_images(), spec, {1, 2, 1000}).flow(s);
        CHECK(f.wall == DataWall::workers);
        return f.samples_per_s;
    };
    CHECK(rate(SampleFormat::files, 1) == doctest::Approx(2 * 3 / 0.010));
    CHECK(rate(SampleFormat::records, 1000) == doctest::Approx(2 * 3 / 0.0077023));
    CHECK(rate(SampleFormat::shards, 1000) == doctest::Approx(2 * 3 / 0.007003));
}

TEST_CASE("synchronous steps wait for the slowest host: the mean of n exponential times is H_n") {
    DataDemand d = steady_images();
    d.compute = 3500us;
    d.handover = 500us;
    d.handover_jitter = 200us;
    double h = 0;
    for (const int n : {1, 2, 3, 4, 5, 6, 7, 8}) {
        h += 1.0 / n;
        const DataFlow f = DataLoader(d, {}, {1, n, 0}).flow({});
        CHECK(f.step_s == doctest::Approx(4e-3 + 0.2e-3 * h));
        CHECK(f.data_wait_s == doctest::Approx(0));
    }
}

TEST_CASE("batches of one size wait as the two rates say, at any depth of the queue") {
    for (const std::int64_t prefetch : {1, 2, 16}) {
        for (const double supply : {0.5, 0.9, 1.0, 1.1, 3.0}) {
            QueueSpec q;
            q.ranks = 5;
            q.prefetch = prefetch;
            q.supply = supply;
            CHECK(simulate_queues(q).step == doctest::Approx(std::max(1.0, 1 / supply)));
        }
    }
}

// Batches that take exponential times, one consumer that takes each for exactly one unit: what is
// ready at the end of a step is a Markov chain, and an empty queue is waited for, one batch's time.
TEST_CASE("one accelerator with exponential batches waits as its Markov chain does") {
    const auto exact = [](double supply, int prefetch) {
        // Batches waiting at the end of a step: a chain on 0..prefetch.
        const auto k = static_cast<std::size_t>(prefetch);
        std::vector<double> poisson(k + 2);
        poisson[0] = std::exp(-supply);
        for (std::size_t i = 1; i < poisson.size(); ++i)
            poisson[i] = poisson[i - 1] * supply / static_cast<double>(i);
        std::vector<double> p(k + 1, 1.0 / static_cast<double>(k + 1));
        for (int round = 0; round < 20000; ++round) {
            std::vector<double> next(k + 1, 0.0);
            for (std::size_t have = 0; have <= k; ++have) {
                const std::size_t after = have == 0 ? 0 : have - 1;
                double rest = 1;
                for (std::size_t more = 0; after + more < k; ++more) {
                    next[after + more] += p[have] * poisson[more];
                    rest -= poisson[more];
                }
                next[k] += p[have] * rest;
            }
            p = next;
        }
        return 1 + p[0] / supply;  // an empty queue is waited for, one batch's time
    };
    for (const int prefetch : {1, 2, 4, 8}) {
        for (const double supply : {0.7, 1.0, 1.4}) {
            QueueSpec q;
            q.prefetch = prefetch;
            q.supply = supply;
            q.exponential_batches = true;
            q.steps = 200000;
            CAPTURE(prefetch);
            CAPTURE(supply);
            CHECK(simulate_queues(q).step ==
                  doctest::Approx(exact(supply, prefetch)).epsilon(0.006));
        }
    }
}

TEST_CASE("where samples vary, a short queue starves an accelerator that is supplied well enough") {
    DataDemand d;
    d.sample_bytes = 146600628;
    d.sample_stdev = 68341808;
    d.batch = 7;
    d.compute = 323ms;
    DataSupply s;
    s.store_bandwidth = 1.05 * 7 * 146600628 / 0.323;
    LoaderSpec spec;
    spec.prefetch = 1;
    const auto utilisation = [&] { return DataLoader(d, spec, {1, 1, 0}).flow(s).utilisation; };
    const double short_queue = utilisation();
    spec.prefetch = 16;
    const double long_queue = utilisation();
    CHECK(short_queue < 0.97);
    CHECK(long_queue > short_queue + 0.02);
    CHECK(long_queue < 1);
}

TEST_CASE(
    "more supply never makes a step longer, and a table's cell is never far from its simulation") {
    DataDemand d;
    d.sample_bytes = 1e6;
    d.sample_stdev = 0.5e6;
    d.batch = 4;
    d.compute = 10ms;
    d.handover_jitter = 1ms;
    const LoaderHosts hosts{1, 8, 0};
    const DataLoader loader(d, {}, hosts);
    double before = 1e9;
    for (double part = 0.2; part < 5; part *= 1.03) {
        DataSupply s;
        s.store_bandwidth = part * 8 * 4e6 / 0.010;
        const double step = loader.flow(s).step_s;
        CHECK(step <= before * 1.0005);
        before = step;
        QueueSpec q;
        q.ranks = 8;
        q.prefetch = 2;
        q.batch_variation = 0.25;
        q.jitter = 0.1;
        q.supply = part;
        q.steps = 4000;
        CHECK(step == doctest::Approx(0.010 * simulate_queues(q).step).epsilon(0.03));
    }
}

TEST_CASE("an epoch pays for its first batch in throughput, not in AU") {
    LoaderSpec spec;
    spec.workers = 4;
    spec.prefetch = 8;
    DataSupply s;
    s.store_bandwidth = 2 * 400 * 114660 / 0.224;  // twice what one accelerator needs
    const DataLoader loader(steady_images(), spec, {1, 1, 0});
    const DataEpoch e = loader.epoch(s, 100);
    CHECK(e.first_batch_s == doctest::Approx(4 * 0.112));
    CHECK(e.utilisation == doctest::Approx(1));
    CHECK(e.samples_per_s == doctest::Approx(100 * 400 / (100 * 0.224 + 4 * 0.112)));
}

TEST_CASE("an epoch begins with the list of its files, which AU does not see") {
    LoaderSpec spec;
    spec.samples_per_file = 10;
    const DataEpoch without = DataLoader(steady_images(), spec, {1, 2, 0}).epoch({}, 100);
    spec.listing = 1ms;
    const DataEpoch e = DataLoader(steady_images(), spec, {1, 2, 0}).epoch({}, 100);
    const double listing = 100 * 2 * 400 / 10 * 1e-3;
    CHECK(e.first_batch_s - without.first_batch_s == doctest::Approx(listing));
    CHECK(e.duration_s - without.duration_s == doctest::Approx(listing));
    CHECK(e.utilisation == doctest::Approx(without.utilisation));
}

namespace {

// Measures which share of a node's reads, `items` in each epoch, its cache of `places` serves.
double measured_hits(CachePolicy policy, Sampler sampler, std::uint64_t items, std::uint64_t nodes,
                     std::size_t places) {
    std::list<std::uint64_t> recent;
    std::map<std::uint64_t, std::list<std::uint64_t>::iterator> where;
    std::vector<std::uint64_t> order(sampler == Sampler::global_shuffle ? items * nodes : items);
    std::iota(order.begin(), order.end(), 0);
    RandomStream random(1, 0, "order");
    std::int64_t hits = 0;
    constexpr int cold_epochs = 80;
    constexpr int epochs = 240;
    for (int epoch = 0; epoch < epochs; ++epoch) {
        for (std::uint64_t i = order.size() - 1; i > 0; --i)
            std::swap(order[i], order[random.below(i + 1)]);
        for (std::uint64_t i = 0; i < items; ++i) {
            const auto found = where.find(order[i]);
            if (found != where.end()) {
                if (epoch >= cold_epochs) ++hits;
                recent.splice(recent.begin(), recent, found->second);
                continue;
            }
            if (recent.size() == places) {
                if (policy == CachePolicy::keep) continue;
                where.erase(recent.back());
                recent.pop_back();
            }
            recent.push_front(order[i]);
            where[order[i]] = recent.begin();
        }
    }
    return static_cast<double>(hits) / static_cast<double>(items) / (epochs - cold_epochs);
}

}  // namespace

TEST_CASE(
    "a cache holds of a node's reads what the sampler and its policy leave in it, as measured") {
    constexpr std::uint64_t items = 500;
    for (const CachePolicy policy : {CachePolicy::keep, CachePolicy::lru}) {
        for (const Sampler sampler : {Sampler::global_shuffle, Sampler::node_shard}) {
            for (const std::uint64_t nodes : {1, 2, 5, 16}) {
                for (const double held : {0.1, 0.5, 0.9}) {
                    const bool all = sampler == Sampler::global_shuffle;
                    const double reach = static_cast<double>(all ? items * nodes : items);
                    const double part = static_cast<double>(items) / reach;
                    const auto places = static_cast<std::size_t>(std::llround(held * reach));
                    CAPTURE(nodes);
                    CAPTURE(held);
                    CAPTURE(all);
                    CHECK(measured_hits(policy, sampler, items, nodes, places) ==
                          doctest::Approx(epoch_hit_rate(policy, held, 1, part)).epsilon(0.03));
                }
            }
        }
    }
    CHECK(epoch_hit_rate(CachePolicy::lru, 1, 1) == 1);
    CHECK(epoch_hit_rate(CachePolicy::lru, 0.5, 1) == doctest::Approx(0.5 + 0.5 * std::log(0.5)));
    // Many nodes: each read is of any sample, whatever the order.
    CHECK(epoch_hit_rate(CachePolicy::lru, 0.3, 1, 1e-4) == doctest::Approx(0.3).epsilon(1e-3));
}

TEST_CASE("what MLPerf's accelerators read is their demand at the AU that passes") {
    StandaloneCatalogue own;
    for (const char* name : {"unet3d_h100", "unet3d_a100", "resnet50_h100", "resnet50_a100",
                             "cosmoflow_h100", "cosmoflow_a100"}) {
        CAPTURE(name);
        Catalogue& c = own.catalogue;
        const double batch =
            static_cast<double>(c.integer("loader_demand", name, "batch")) *
            static_cast<double>(c.data("loader_demand", name, "sample_size").count());
        const double read = batch / seconds(c.time("loader_demand", name, "compute_time")) *
                            c.number("loader_demand", name, "utilisation_min");
        const Bandwidth printed = c.bandwidth("loader_demand", name, "read_bandwidth_per_gpu");
        CHECK(read == doctest::Approx(printed.bytes_per_second()).epsilon(0.05));
    }
}
