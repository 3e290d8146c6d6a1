#include "tools/verify/storage.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <optional>
#include <tuple>

#include "models/catalogue/catalogue.h"
#include "models/training/training.h"
#include "tools/program/pattern.h"

namespace railyard {

namespace {

// A run is starved, and tells of a limit, when its AU is below this of what a store without limits
// would give it.
constexpr double starved_below = 0.955;
// Clients that get less than this of what one client got elsewhere share a wall of the servers.
constexpr double clients_share_below = 0.9;
// AU so close above the bound: one more step in accelerators would not have passed.
constexpr double at_bound_points = 2;
constexpr std::int64_t accelerators_max = 100'000;
// Read threads of an accelerator that submissions may have chosen.
constexpr std::int64_t workers_min = 4;
constexpr std::int64_t workers_max = 64;

struct Run {
    std::string system;  // without clients, workload and accelerator
    std::string workload;
    std::string accelerator;
    std::int64_t accelerators = 0;
    std::int64_t clients = 0;
    double files = 0;
    double samples_per_s = 0;
    double au = 0;  // percent
    bool drop = false;
    Position at = {};

    bool measured() const { return samples_per_s > 0; }
    std::string label() const {
        return fmt::format("{} {} {} x {}, {} clients", system, workload, accelerators, accelerator,
                           clients);
    }
    bool opens_decide() const { return workload == "cosmoflow"; }  // a file for each small sample
};

// A submission's systems are named with the number of clients, some with the workload.
std::string system_of(const Fields& f) {
    const std::string name =
        without_pattern(f.text("system"), "[-_](N?clients?[0-9]+|[0-9]+clients?)");
    return f.text("submitter") + " " +
           without_pattern(name, "[-_]?(unet3d|unet|resnet50|resnet|cosmoflow|a100|h100)");
}

Run run_of(const Fields& f) {
    Run run;
    run.system = system_of(f);
    run.workload = f.text("model");
    run.accelerator = f.text("accelerator");
    run.accelerators = f.integer("num_accelerators");
    run.clients = f.integer("client_hosts");
    run.files = f.number("dataset_files");
    run.samples_per_s = f.number("samples_per_s");
    run.au = f.number("au_mean_pct");
    run.drop = f.text("flag").starts_with("DROP");
    return run;
}

class Storage {
  public:
    Storage(std::vector<Run> runs, const VerifyOptions& options)
        : runs_(std::move(runs)),
          of_fit_(options.unmeasured),
          own_(ValueChoice::corrected, options.overrides, "catalogue", options.perturbations) {
        for (const Run& run : runs_) {
            unlimited_.push_back(
                expressible(run)
                    ? 100 * predict(run, run.accelerators, {}, std::nullopt).utilisation
                    : 0);
        }
    }

    // A run that was not measured can be predicted, but the other runs learn nothing from it.
    bool expressible(const Run& run) const {
        return !run.drop && run.accelerators > 0 && run.clients > 0 &&
               (run.measured() || of_fit_) &&
               Catalogue::entry("loader_demand", run.workload + "_" + run.accelerator) != nullptr;
    }

    void verify(std::size_t index, std::vector<VerifiedRow>& out) {
        const Run& run = runs_[index];
        const std::size_t first = out.size();
        const DataSupply supply = limits_for(index);
        const std::optional<std::int64_t> workers = workers_for(index);
        const DataEpoch epoch =
            predict(run, run.accelerators, passing(run, supply, workers), workers);
        const auto add = [&](const char* quantity, double published, double simulated) {
            VerifiedRow& row = out.emplace_back(VerifiedRow{
                run.label(), fmt::format("{}, {}", run.workload, quantity), published, simulated});
            row.at = run.at;
            row.measured = run.measured();
        };
        add("samples/s", run.samples_per_s, epoch.samples_per_s);
        add("AU in %", run.au, 100 * epoch.utilisation);
        if (of_fit_) return;  // how many pass follows from these, in jumps
        // Without a limit that was seen with as many clients, theirs decides, and it is not known.
        const bool known = limit(index, run.opens_decide()).seen_with_as_many_clients;
        if (known && at_its_bound(run)) {
            add("accelerators", static_cast<double>(run.accelerators),
                static_cast<double>(most_accelerators(run, supply, workers)));
        }
        const ModelError error = read_model_error(catalogue_, "store");
        for (std::size_t i = first; i < out.size(); ++i) {
            out[i].half = error.half;
            out[i].nine_tenths = error.nine_tenths;
        }
    }
    void check() const { own_.diagnostics.raise_if_any(); }
    const std::vector<Estimate>& estimates() const { return own_.reader.estimates(); }

  private:
    std::string entry(const Run& run) const { return run.workload + "_" + run.accelerator; }

    // `workers` of an accelerator; none: the catalogue's.
    DataEpoch predict(const Run& run, std::int64_t accelerators, DataSupply supply,
                      std::optional<std::int64_t> workers) {
        const std::string framework = catalogue_.text("loader_demand", entry(run), "loader");
        supply.stream_bandwidth =
            catalogue_.bandwidth("loader", framework, "worker_bandwidth").bytes_per_second();
        const DataLoader& l = loader(run, accelerators, workers);
        const double batch =
            static_cast<double>(catalogue_.integer("loader_demand", entry(run), "batch"));
        const double samples = static_cast<double>(
            catalogue_.integer("loader_demand", entry(run), "samples_per_file"));
        const double steps = run.files * samples / (static_cast<double>(accelerators) * batch);
        return l.epoch(supply, std::max(1.0, steps));
    }

    const DataLoader& loader(const Run& run, std::int64_t accelerators,
                             std::optional<std::int64_t> workers) {
        const std::string name = entry(run);
        Catalogue& c = catalogue_;
        const std::string framework = c.text("loader_demand", name, "loader");
        if (!workers) workers = c.integer("loader", framework, "workers");
        const auto key = std::make_tuple(name, accelerators, *workers);
        if (const auto known = loaders_.find(key); known != loaders_.end()) return known->second;
        DataDemand demand;
        demand.sample_bytes =
            static_cast<double>(c.data("loader_demand", name, "sample_size").count());
        if (c.has("loader_demand", name, "sample_stdev")) {
            demand.sample_stdev =
                static_cast<double>(c.data("loader_demand", name, "sample_stdev").count());
        }
        demand.batch = c.integer("loader_demand", name, "batch");
        demand.compute = c.time("loader_demand", name, "compute_time");
        demand.handover = c.time("loader", framework, "handover");
        // What disturbs a host comes so often a second: the longer a step, the more of it.
        demand.handover_jitter = from_seconds(seconds(demand.compute) *
                                              c.number("loader", framework, "jitter_fraction"));
        LoaderSpec spec;
        spec.samples_per_file = c.integer("loader_demand", name, "samples_per_file");
        spec.format = spec.samples_per_file == 1 ? SampleFormat::files : SampleFormat::shards;
        spec.workers = *workers;
        spec.prefetch = spec.workers * c.integer("loader", framework, "prefetch_per_worker");
        spec.batch_per_worker = c.flag("loader", framework, "batch_per_worker");
        spec.listing = c.time("loader", framework, "listing_per_file");
        // The limits are of all clients: one host stands for them.
        return loaders_.try_emplace(key, demand, spec, LoaderHosts{1, accelerators, 0})
            .first->second;
    }

    double bytes_per_s(const Run& run) {
        return run.samples_per_s *
               static_cast<double>(
                   catalogue_.data("loader_demand", entry(run), "sample_size").count());
    }

    // What the same system did in its other runs. Large files tell of bandwidth, small ones of opens.
    DataSupply limits_for(std::size_t index) {
        DataSupply supply;
        supply.store_bandwidth = limit(index, false).rate;
        // Accelerators are added until the store is the limit, and no further than the bound. Where no other
        // run shows where that is, it is half-way; a few accelerators tell nothing, and are fed.
        if (std::isinf(supply.store_bandwidth)) {
            constexpr std::int64_t few = 4;
            const Run& run = runs_[index];
            const DataFlow fed = loader(run, run.accelerators, std::nullopt).flow({});
            const double unlimited = unlimited_[index] / 100;
            const double share =
                run.accelerators > few ? (utilisation_min(run) + unlimited) / (2 * unlimited) : 1;
            supply.store_bandwidth = std::max(std::min(share, 1.0) * fed.demand_bandwidth,
                                              reached(other_runs(index, false), run.clients));
        }
        if (runs_[index].opens_decide()) supply.opens_per_s = limit(index, true).rate;
        return supply;
    }

    struct Limit {
        double rate = DataSupply::unlimited;
        bool seen_with_as_many_clients = false;
    };
    struct Seen {
        double rate;
        std::int64_t clients;
        bool starved;
    };

    // Read threads, which submissions choose and the table does not print. All begin at once, at a store
    // that just feeds them: each brings its first batch in as long as a step takes, and AU does not count
    // that time.
    std::optional<std::int64_t> workers_behind(const Run& run) {
        const std::string name = entry(run);
        if (!catalogue_.flag("loader", catalogue_.text("loader_demand", name, "loader"),
                             "batch_per_worker")) {
            return std::nullopt;
        }
        const double batch = static_cast<double>(
            run.accelerators * catalogue_.integer("loader_demand", name, "batch"));
        const double all = run.samples_per_s / batch *
                           seconds(catalogue_.time("loader_demand", name, "compute_time"));
        const double steps = run.files / batch;  // a sample a file
        const auto found = static_cast<std::int64_t>((1 - all / (run.au / 100)) * steps + 0.5);
        return std::clamp(found, workers_min, workers_max);
    }

    // As its other runs have them.
    std::optional<std::int64_t> workers_for(std::size_t index) {
        const Run& run = runs_[index];
        std::vector<std::int64_t> found;
        for (std::size_t i = 0; i < runs_.size(); ++i) {
            const Run& other = runs_[i];
            if (i == index || other.system != run.system || other.workload != run.workload)
                continue;
            if (!expressible(other) || !other.measured()) continue;
            if (const auto workers = workers_behind(other)) found.push_back(*workers);
        }
        if (found.empty()) return std::nullopt;
        const auto middle = found.begin() + static_cast<std::ptrdiff_t>(found.size() / 2);
        std::nth_element(found.begin(), middle, found.end());
        return *middle;
    }

    bool starved(std::size_t index) const {
        return runs_[index].au < starved_below * unlimited_[index];
    }

    // The limit with which a starved run has its AU: a little more than what it got, since loaders cannot
    // keep a store busy all the time, and AU leaves out how long they take to start.
    double limit_behind(const Run& run, bool opens) {
        const double seen = opens ? run.samples_per_s : bytes_per_s(run);
        double low = seen;
        double high = 2 * seen;
        for (int i = 0; i < 30; ++i) {
            const double middle = (low + high) / 2;
            DataSupply supply;
            (opens ? supply.opens_per_s : supply.store_bandwidth) = middle;
            const double got =
                predict(run, run.accelerators, supply, workers_behind(run)).utilisation;
            (100 * got < run.au ? low : high) = middle;
        }
        return high;
    }

    std::vector<Seen> other_runs(std::size_t index, bool opens) {
        std::vector<Seen> out;
        for (std::size_t i = 0; i < runs_.size(); ++i) {
            const Run& other = runs_[i];
            if (i == index || other.system != runs_[index].system || !expressible(other)) continue;
            if (other.opens_decide() != opens || !other.measured()) continue;
            out.push_back({starved(i) ? limit_behind(other, opens)
                                      : (opens ? other.samples_per_s : bytes_per_s(other)),
                           other.clients, starved(i)});
        }
        // A rate that other runs with no more clients have exceeded was not limited by the store.
        for (Seen& seen : out) {
            for (const Seen& other : out) {
                if (other.clients <= seen.clients && other.rate > seen.rate) seen.starved = false;
            }
        }
        return out;
    }

    // By other runs of no more clients.
    double reached(const std::vector<Seen>& others, std::int64_t clients) {
        double most = 0;
        for (const Seen& seen : others) {
            if (seen.clients <= clients) most = std::max(most, seen.rate);
        }
        return most;
    }

    Limit limit(std::size_t index, bool opens) {
        const std::int64_t clients = runs_[index].clients;
        const std::vector<Seen> others = other_runs(index, opens);
        Limit out;
        double client = 0;
        for (const Seen& seen : others) {
            if (!seen.starved) continue;
            if (seen.clients == clients) out.seen_with_as_many_clients = true;
            // Few clients are stopped by their own networks, but open what the servers allow.
            if (!opens || seen.clients <= clients)
                client = std::max(client, seen.rate / static_cast<double>(seen.clients));
        }
        double store = 0;
        for (const Seen& seen : others) {
            const double all = clients_share_below * static_cast<double>(seen.clients) * client;
            if (seen.starved && (seen.clients >= clients || seen.rate < all))
                store = std::max(store, seen.rate);
        }
        if (client > 0) out.rate = client * static_cast<double>(clients);
        if (store > 0) out.rate = std::min(out.rate, store);
        out.rate = std::max(out.rate, reached(others, clients));
        return out;
    }

    // A published run has passed: it had at least the rate that passing needs.
    DataSupply passing(const Run& run, const DataSupply& supply,
                       std::optional<std::int64_t> workers) {
        DataSupply out = supply;
        for (double DataSupply::*limit : {&DataSupply::store_bandwidth, &DataSupply::opens_per_s}) {
            if (std::isinf(supply.*limit)) continue;
            const auto passes = [&](double rate) {
                DataSupply alone;
                alone.*limit = rate;
                return predict(run, run.accelerators, alone, workers).utilisation >=
                       utilisation_min(run);
            };
            double high = supply.*limit;
            for (int i = 0; i < 20 && !passes(high); ++i) high *= 2;
            double low = supply.*limit;
            for (int i = 0; i < 30 && high > low; ++i) {
                const double middle = (low + high) / 2;
                (passes(middle) ? high : low) = middle;
            }
            out.*limit = high;
        }
        return out;
    }

    double utilisation_min(const Run& run) {
        return catalogue_.number("loader_demand", entry(run), "utilisation_min");
    }

    // The largest run of this kind in the submission, which only just passes.
    bool at_its_bound(const Run& run) {
        if (run.au - 100 * utilisation_min(run) > at_bound_points) return false;
        return std::ranges::none_of(runs_, [&](const Run& other) {
            return other.system == run.system && other.workload == run.workload &&
                   other.accelerator == run.accelerator && other.clients == run.clients &&
                   other.accelerators > run.accelerators;
        });
    }

    std::int64_t most_accelerators(const Run& run, const DataSupply& supply,
                                   std::optional<std::int64_t> workers) {
        const auto passes = [&](std::int64_t n) {
            return predict(run, n, supply, workers).utilisation >= utilisation_min(run);
        };
        std::int64_t low = 0;
        std::int64_t high = 1;
        while (high < accelerators_max && passes(high)) {
            low = high;
            high *= 2;
        }
        while (high - low > 1) {
            const std::int64_t middle = (low + high) / 2;
            (passes(middle) ? low : high) = middle;
        }
        return low;
    }

    std::vector<Run> runs_;
    bool of_fit_;  // each run is as many rows, whatever the numbers are
    StandaloneCatalogue own_;
    Catalogue& catalogue_ = own_.catalogue;
    // Each knows what unevenness costs it: by demand, accelerators and workers.
    std::map<std::tuple<std::string, std::int64_t, std::int64_t>, DataLoader> loaders_;
    std::vector<double> unlimited_;  // AU of each run, had its store no limits; percent
};

}  // namespace

VerifiedTable verify_mlperf_storage(const CsvTable& table, const VerifyOptions& options) {
    std::vector<Run> runs;
    VerifiedTable out{table.name, "MLPerf Storage v1.0, limits from other runs", table.rows.size()};
    std::size_t number = 0;
    each_row(table, out.unused, [&](const Fields& f) {
        const Position at = table.places[number++][0];
        runs.push_back(run_of(f));
        runs.back().at = at;
    });
    Storage storage(runs, options);
    for (std::size_t i = 0; i < runs.size(); ++i) {
        if (storage.expressible(runs[i])) storage.verify(i, out.expressed);
    }
    storage.check();
    if (options.estimates != nullptr) note_estimates(storage.estimates(), *options.estimates);
    return out;
}

}  // namespace railyard
