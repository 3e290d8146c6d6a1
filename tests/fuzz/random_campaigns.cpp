// Random campaigns on stores: tiers, modes, changes, failing stores, neighbours, data, object stores, storms.
// Each is refused with a ScenarioError, or runs: its ledger sums, nothing in it is negative, and two threads
// give what one gives. The checks within (bytes, stalls) do the rest.
//
//     railyard_random_campaigns FIRST_SEED COUNT      several campaigns; a failure names its seed
//     railyard_random_campaigns --print SEED          the scenario

#include <fmt/format.h>
#include <unistd.h>

#include <cmath>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <string_view>
#include <vector>

#include "models/campaign/campaign.h"

namespace railyard {

namespace {

class RandomScenario {
  public:
    explicit RandomScenario(std::uint64_t seed) : random_(seed, 0, "random campaigns") {}
    std::string text();

  private:
    bool chance(double probability) { return random_.chance(probability); }
    std::int64_t between(std::int64_t least, std::int64_t most) {
        return least + static_cast<std::int64_t>(
                           random_.below(static_cast<std::uint64_t>(most - least + 1)));
    }
    const char* one_of(std::vector<const char*> words) {
        return words[random_.below(words.size())];
    }
    // Over several orders of magnitude, short of round.
    double spread(double least, double most) {
        return least * portable_exp(random_.uniform() * portable_log(most / least));
    }
    template <class... Args>
    void line(fmt::format_string<Args...> format, Args&&... args) {
        text_ += fmt::format(format, std::forward<Args>(args)...) + "\n";
    }
    void add_stores();
    void add_job();
    void add_checkpoints();
    void add_tiers();
    void add_data();
    void add_neighbours();
    void add_failures();
    void add_storms();

    RandomStream random_;
    std::string text_;
    std::int64_t nodes_ = 0;
    std::int64_t job_nodes_ = 0;
    bool object_store_ = false;
    bool storms_ = false;
};

std::string RandomScenario::text() {
    nodes_ = between(2, 16);
    job_nodes_ = between(1, nodes_);
    storms_ = chance(0.1);
    line("[run]\nreplicas = 2\nseed = {}\nduration = \"{:.3f} h\"", between(0, 1000),
         spread(1, 400));
    line("[cluster]\nnode = \"dgx_h100\"\nnodes = {}", nodes_);
    add_stores();
    add_job();
    add_neighbours();
    add_failures();
    if (storms_) add_storms();
    return text_;
}

void RandomScenario::add_stores() {
    const std::string system = one_of({"generic", "weka", "vast", "lustre", "gpfs", "beegfs",
                                       "ceph_nvme", "nfs_single", "object"});
    line("[storage]\nsystem = \"{}\"", system);
    if (system != "nfs_single") line("servers = {}", 2 * between(4, 10));
    if (chance(0.6)) {
        line("server_read_bandwidth = \"{:.3f} GB/s\"", spread(0.1, 40));
        line("server_write_bandwidth = \"{:.3f} GB/s\"", spread(0.1, 40));
    }
    if (chance(0.3)) line("client_bandwidth = \"{:.3f} GB/s\"", spread(0.1, 50));
    if (chance(0.3)) line("sharing = \"jobs\"");
    if (storms_) line("network = \"{}\"", one_of({"compute", "compute", "own"}));
    if (chance(0.6)) {
        line("[storage.failures]\nrepair_sigma = {:.2f}", spread(0.1, 1));
        if (chance(0.8)) line("drive_failure_rate = \"{:.4f} /day\"", spread(0.001, 2));
        if (chance(0.7)) line("server_failure_rate = \"{:.4f} /day\"", spread(0.001, 2));
        if (system == "vast") line("box_failure_rate = \"{:.4f} /day\"", spread(0.001, 2));
        if (chance(0.5)) line("server_takes_data = {:.2f}", random_.uniform());
        for (std::int64_t left = between(0, 4); left > 0; --left) {
            line("[[storage.failures.inject]]\nat = \"{:.4f} h\"\npart = \"{}\"\nindex = {}",
                 spread(0.01, 100), one_of({"drive", "server"}), between(0, 7));
            if (chance(0.5)) line("down_for = \"{:.4f} h\"", spread(0.01, 50));
        }
    }
    object_store_ = chance(0.6);
    if (!object_store_) return;
    line("[object_store]\nsystem = \"{}\"", one_of({"s3", "object"}));
    if (chance(0.5)) line("client_bandwidth = \"{:.3f} GB/s\"", spread(0.01, 5));
}

void RandomScenario::add_job() {
    line("[job]\nnodes = {}", job_nodes_);
    if (chance(0.2)) line("length = \"{:.3f} h\"", spread(1, 100));
    line("[job.step]\ntime = \"{:.6f} s\"", spread(0.3, 300));
    if (!chance(0.9)) {
        line("[job.checkpoint]\nmode = \"none\"");
    } else {
        add_checkpoints();
    }
    if (chance(0.6)) add_data();
}

void RandomScenario::add_checkpoints() {
    const bool async = chance(0.6);
    const bool memory = chance(0.1);
    line("[job.checkpoint]\nmode = \"{}\"\nsize = \"{:.3f} GB\"", async ? "async" : "sync",
         memory ? 0.001 : spread(1, 5000));
    if (chance(0.3)) {
        line("interval = \"{} steps\"", between(1, 200));
    } else {
        line("interval = \"{:.3f} min\"\nclock = \"{}\"", spread(1, 300),
             one_of({"training", "wall"}));
    }
    if (chance(0.2)) line("layout = \"consolidated\"");
    if (chance(0.3)) line("files_per_rank = {}", between(1, 100'000));
    if (chance(0.3)) line("serialization = \"{:.3f} GB/s\"", spread(0.05, 50));
    if (async && chance(0.5)) line("buffers = {}", between(1, 3));
    if (async && chance(0.5)) line("upload_slowdown = {:.3f}", random_.uniform());
    const std::int64_t full_every = chance(0.4) ? between(2, 6) : 1;
    line("full_every = {}", full_every);
    if (full_every > 1) line("changed_fraction = {:.3f}", random_.uniform());
    for (const char* place :
         {"host_memory", "peer_memory", "local_nvme", "storage", "object_store"}) {
        const std::string name = place;
        if (!chance(name == "storage" ? 0.8 : 0.45)) continue;
        if (name == "object_store" && !object_store_) continue;
        if (name == "peer_memory" && job_nodes_ < 2) continue;
        const bool first = text_.find("checkpoint.tier") == std::string::npos;
        line("[[job.checkpoint.tier]]\nplace = \"{}\"", name);
        if (!first && full_every == 1 && chance(0.5)) line("every = {}", between(1, 5));
        if (chance(0.6)) line("keep = {}", between(1, 5));
        const bool on_node = name != "storage" && name != "object_store";
        if (on_node && chance(0.5)) line("write_bandwidth = \"{:.3f} GB/s\"", spread(0.05, 50));
        if (on_node && chance(0.5)) line("read_bandwidth = \"{:.3f} GB/s\"", spread(0.05, 50));
    }
    line("[job.recovery]\nrestart = \"{:.3f} s\"\nreplacement = \"{:.3f} s\"", spread(1, 1000),
         spread(1, 1000));
    if (chance(0.15)) {
        line("restore = \"{:.3f} s\"", spread(1, 1000));
    } else if (chance(0.4)) {
        line("image = \"{:.3f} GB\"\ndataset_index = \"{:.3f} GB\"", spread(0.1, 50),
             spread(0.001, 1));
    }
    if (!async && chance(0.2)) line("recompute = false");
}

void RandomScenario::add_data() {
    const double sample_mb = spread(0.01, 2000);
    const std::int64_t workers = between(1, 32);
    line("[job.data]\nsample_size = \"{:.4f} MB\"\nbatch = {}\nprefetch = {}\nworkers = {}",
         sample_mb, between(1, 64), between(1, 8), workers);
    if (chance(0.5)) {
        const double node_gb = spread(0.01, 500);
        const double samples = node_gb * 1000 / sample_mb / static_cast<double>(8 * workers);
        const std::int64_t all = std::llround(samples) + 1;
        line("shuffle_buffer = {}", all);
        if (chance(0.5)) line("shuffle_initial = {}", between(1, all));
    }
    const std::string source = one_of({"storage", "storage", "storage", "object_store", "local"});
    line("source = \"{}\"", source);
    if (source == "object_store" && !object_store_) line("egress_price = 0.09");
    if (chance(0.3)) line("dataset = \"{:.3f} TB\"\npage_cache = \"100 GB\"", spread(0.1, 100));
}

void RandomScenario::add_neighbours() {
    for (std::int64_t n = between(0, 3); n > 0; --n) {
        line("[[neighbour]]\nname = \"{}\"\nnodes = {}", n, between(1, 100));
        const bool saves = chance(0.7);
        if (saves) {
            line("checkpoint = \"{:.3f} GB\"\nevery = \"{:.4f} h\"", spread(1, 5000),
                 spread(0.02, 10));
            if (chance(0.5)) line("files = {}", between(1, 1'000'000));
            if (chance(0.5)) line("start = \"{:.4f} h\"", spread(0.001, 20));
        }
        if (!saves || chance(0.5)) line("reads = \"{:.4f} GB/s\"", spread(0.1, 1000));
    }
}

void RandomScenario::add_failures() {
    line("[failures]\nprofile = \"{}\"\nrate_scale = {:.2f}",
         one_of({"none", "llama3_405b", "meta_rsc1"}), spread(1, 300));
    for (const char* remedy : {"restart", "reset", "replace"}) {
        if (!chance(0.6)) continue;
        line(
            "[[failures.cause]]\nname = \"{}\"\nremedy = \"{}\"\nmtbf_job = \"{:.4f} h\"\n"
            "detection = \"{:.3f} s\"",
            remedy, remedy, spread(0.2, 100), spread(0.1, 1000));
        if (std::string_view(remedy) != "restart") line("reset_time = \"10 min\"");
        if (std::string_view(remedy) == "replace") line("repair_time = \"5 h\"");
    }
    if (chance(0.3)) {
        line("[maintenance]\nevery = \"{:.3f} h\"\nduration = \"{:.3f} h\"", spread(1, 100),
             spread(0.01, 5));
    }
}

void RandomScenario::add_storms() {
    line("[fabric.compute]\nkind = \"roce\"\ntopology = \"fat_tree\"\nnodes_per_leaf = 2");
    line("[[failures.storm]]\nrate_per_job = \"{:.3f} /day\"\nduration = \"{} ms\"", spread(1, 200),
         between(1, 3000));
    line("[[window.traffic]]\nkind = \"incast\"\nbytes = \"64 KiB\"");
}

// ---- what must hold ----

std::uint64_t seed_under_way = 0;

extern "C" void name_seed(int) {
    constexpr char before[] = "random_campaigns: aborted in seed ";
    char digits[24];
    char* end = digits + sizeof digits;
    char* at = end;
    *--at = '\n';
    for (std::uint64_t rest = seed_under_way; at == end - 1 || rest > 0; rest /= 10) {
        *--at = static_cast<char>('0' + rest % 10);
    }
    [[maybe_unused]] const auto told = write(2, before, sizeof before - 1);
    [[maybe_unused]] const auto named = write(2, at, static_cast<std::size_t>(end - at));
}

std::string wrong_with(const Scenario& s, const ReplicaResult& r) {
    if (r.ledger.total() != GpuNanoseconds{s.gpus()} * r.simulated.count()) {
        return "the ledger does not sum";
    }
    for (std::size_t c = 0; c < category_count; ++c) {
        const auto category = static_cast<Category>(c);
        if (r.ledger.booked(category) < 0) {
            return fmt::format("the ledger's {} is negative", category_name(category));
        }
    }
    if (r.job.steps_kept < 0 || r.job.steps_lost < 0 || r.job.lost_work < Duration{}) {
        return "lost or kept work is negative";
    }
    if (r.job.data_starved > r.simulated) return "starved for longer than the campaign";
    for (const TierBytes& tier : r.job.checkpoint.tiers) {
        for (const Bytes bytes : {tier.safe, tier.expired, tier.lost, tier.in_flight}) {
            if (bytes < Bytes{}) return "a tier's bytes are negative";
        }
        if (tier.written != tier.safe + tier.expired + tier.lost + tier.in_flight) {
            return "a tier's bytes do not sum";
        }
    }
    for (const Metric& m : r.metrics) {
        if (m.value < 0) return fmt::format("{} is {}", m.name, m.value);
    }
    return "";
}

struct Counts {
    std::int64_t run = 0;
    std::int64_t refused = 0;
    std::int64_t restores = 0;
    std::int64_t data_losses = 0;
    std::int64_t starved = 0;
    std::int64_t filled = 0;
    std::int64_t storms = 0;
};

std::string try_seed(std::uint64_t seed, Counts& counts) {
    seed_under_way = seed;
    Scenario s;
    try {
        s = load_scenario(RandomScenario(seed).text(), "random.toml", {});
    } catch (const ScenarioError&) {
        ++counts.refused;
        return "";
    }
    if (!s.no_path.empty()) return "";
    s.events_max = std::min<std::int64_t>(s.events_max, 20'000);
    CampaignOptions options;
    options.threads = 1;
    const CampaignResult one = run_campaign(s, options);
    options.threads = 2;
    const CampaignResult two = run_campaign(s, options);
    if (one.digest != two.digest || one.trajectory != two.trajectory) {
        return "two threads give another result than one";
    }
    ++counts.run;
    for (const ReplicaResult& r : one.replicas) {
        if (const std::string wrong = wrong_with(s, r); !wrong.empty()) return wrong;
        for (const std::int64_t n : r.job.checkpoint.restored_from) counts.restores += n;
        counts.data_losses += r.store.data_losses;
        counts.starved += r.job.data_starved > Duration{} ? 1 : 0;
        counts.filled += r.job.first_batch > 0 ? 1 : 0;
        counts.storms += r.job.storms;
    }
    return "";
}

}  // namespace

}  // namespace railyard

int main(int argc, char** argv) {
    using namespace railyard;
    if (argc != 3) {
        fmt::print(stderr, "usage: railyard_random_campaigns FIRST_SEED COUNT | --print SEED\n");
        return 2;
    }
    const std::uint64_t number = std::strtoull(argv[2], nullptr, 10);
    if (std::string_view(argv[1]) == "--print") {
        fmt::print("{}", RandomScenario(number).text());
        return 0;
    }
    std::signal(SIGABRT, name_seed);
    const std::uint64_t first = std::strtoull(argv[1], nullptr, 10);
    Counts counts;
    int failed = 0;
    for (std::uint64_t seed = first; seed < first + number; ++seed) {
        if (const std::string wrong = try_seed(seed, counts); !wrong.empty()) {
            fmt::print("random_campaigns: seed {}: {}\n", seed, wrong);
            ++failed;
        }
    }
    fmt::print(
        "random_campaigns: {} ran, {} were refused, {} failed; {} restores, {} losses of data, "
        "{} replicas starved, {} waited for shuffle buffers, {} storms\n",
        counts.run, counts.refused, failed, counts.restores, counts.data_losses, counts.starved,
        counts.filled, counts.storms);
    const bool tried =
        number < 100 || (counts.run > counts.refused && counts.restores > 0 &&
                         counts.data_losses > 0 && counts.starved > 0 && counts.filled > 0);
    return failed == 0 && tried ? 0 : 1;
}
