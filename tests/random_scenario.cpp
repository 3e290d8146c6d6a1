#include "tests/random_scenario.h"

#include <algorithm>
#include <cmath>
#include <string_view>

namespace railyard {

double RandomScenario::spread(double least, double most) {
    return least * portable_exp(random_.uniform() * portable_log(most / least));
}

RandomScenario::Kind RandomScenario::kind_of(std::uint64_t seed) {
    constexpr Kind kinds[] = {Kind::stores, Kind::plan, Kind::world};
    return kinds[seed % 3];
}

RandomScenario::RandomScenario(std::uint64_t seed, bool calm)
    : random_(seed, 0, "random scenarios"), kind_(kind_of(seed)), calm_(calm) {}

std::string RandomScenario::text() {
    if (kind_ == Kind::stores) add_campaign_on_stores();
    if (kind_ == Kind::plan) add_planned_job();
    if (kind_ == Kind::world) add_world();
    return text_;
}

// ---- a job whose step is given, on stores ----

void RandomScenario::add_campaign_on_stores() {
    nodes_ = between(2, 16);
    job_nodes_ = between(1, nodes_);
    storms_ = !calm_ && chance(0.1);
    line("[run]\nreplicas = 2\nseed = {}\nduration = \"{:.3f} h\"", between(0, 1000),
         spread(1, 400));
    line("[cluster]\nnode = \"dgx_h100\"\nnodes = {}", nodes_);
    add_stores();
    add_job();
    if (calm_) {
        line("[failures]\nprofile = \"none\"");
        return;
    }
    add_neighbours();
    add_failures();
    if (storms_) add_storms();
}

void RandomScenario::add_stores() {
    const std::string system =
        one_of({"generic", "weka", "vast", "lustre", "gpfs", "beegfs", "ceph_nvme", "nfs_single",
                "threefs", "object", "local_nvme_raid0", "host_memory"});
    line("[storage]\nsystem = \"{}\"", system);
    const bool in_nodes = system == "local_nvme_raid0" || system == "host_memory";
    if (system != "nfs_single" && !in_nodes) line("servers = {}", 2 * between(4, 10));
    if (!in_nodes && chance(0.6)) {
        line("server_read_bandwidth = \"{:.3f} GB/s\"", spread(0.1, 40));
        line("server_write_bandwidth = \"{:.3f} GB/s\"", spread(0.1, 40));
    }
    if (!in_nodes && chance(0.3)) line("client_bandwidth = \"{:.3f} GB/s\"", spread(0.1, 50));
    if (chance(0.3)) line("sharing = \"jobs\"");
    if (storms_) line("network = \"{}\"", one_of({"compute", "compute", "own"}));
    if (calm_ && !in_nodes) {
        line("[storage.failures]\nrandom = false");
    } else if (!in_nodes && chance(0.6)) {
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
    if (!calm_ && chance(0.6)) add_data();
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
    if (chance(0.3)) {
        line("dataset = \"{:.3f} TB\"\npage_cache = \"100 GB\"\nsampler = \"{}\"",
             spread(0.1, source == "local" ? 20 : 100), one_of({"global_shuffle", "node_shard"}));
    }
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

// ---- a job with a model and a plan, on a network ----

void RandomScenario::add_parallel() {
    const std::int64_t gpus_of_node = 8;
    const std::string model = one_of({"llama2_7b", "llama2_13b", "llama3_8b", "mpt_7b",
                                      "mistral_7b", "llama2_70b", "gpt_neox_20b", "mixtral_8x7b"});
    const bool large = model == "llama2_70b" || model == "gpt_neox_20b" || model == "mixtral_8x7b";
    const std::int64_t tensor = large ? 4 << between(0, 1) : power_of_two(3);
    const std::int64_t pipeline = large ? 2 << between(0, 1) : power_of_two(2);
    const std::int64_t data = std::max(power_of_two(5), gpus_of_node / (tensor * pipeline));
    job_nodes_ = tensor * pipeline * data / gpus_of_node;
    nodes_ = job_nodes_ + between(0, 3);
    const std::int64_t microbatch = power_of_two(1);
    line("[cluster]\nnode = \"{}\"\nnodes = {}",
         one_of({"dgx_h100", "dgx_h100", "dgx_a100", "dgx_b200", "dgx_h200"}), nodes_);
    line("[job]\nmodel = \"{}\"\nnodes = {}", model, job_nodes_);
    if (chance(0.2)) line("length = \"{:.3f} h\"", spread(1, 100));
    line("[job.parallel]\ntensor = {}\npipeline = {}\ndata = {}\nmicrobatch = {}", tensor, pipeline,
         data, microbatch);
    line("global_batch = {}", data * microbatch * pipeline * between(1, 4));
    line("zero = {}", chance(0.2) ? between(0, 3) : 1);
    line("recompute = \"{}\"", one_of({"selective", "elementwise", "full"}));
    if (pipeline > 1 && chance(0.3)) line("interleave = 2");
    if (model == "mixtral_8x7b" && data >= 4 && chance(0.7)) line("expert = {}", power_of_two(2));
    if (chance(0.3)) line("jitter = {:.4f}", random_.uniform() * 0.1);
    if (chance(0.3)) line("overlap_data = false");
    if (chance(0.3)) line("order = \"tensor_pipeline_data\"");
}

void RandomScenario::add_network() {
    if (!chance(0.4)) return;
    line("[fabric.compute]\ntopology = \"{}\"", one_of({"rail_optimized", "fat_tree"}));
    if (chance(0.5)) line("kind = \"{}\"", one_of({"infiniband", "roce"}));
    if (chance(0.3)) line("queue_pairs = {}", power_of_two(3));
    if (chance(0.4)) line("oversubscription = {}", between(1, 4));
    if (chance(0.4)) line("routing = \"{}\"", one_of({"destination", "ecmp", "adaptive", "spray"}));
}

void RandomScenario::add_recovery() {
    line("[job.recovery]\npolicy = \"{}\"", one_of({"spare", "requeue", "in_process", "shrink"}));
    if (chance(0.3)) line("misdiagnosis = {:.3f}", random_.uniform() * 0.3);
    if (chance(0.3)) {
        line("[maintenance]\nevery = \"{:.3f} h\"\nduration = \"{:.3f} h\"", spread(20, 200),
             spread(0.1, 2));
    }
}

void RandomScenario::add_planned_job() {
    line("[run]\nreplicas = 2\nseed = {}\nduration = \"{:.3f} h\"", between(0, 1000),
         spread(10, 400));
    const bool network = chance(0.4);
    if (network) line("fidelity = \"flow\"");
    add_parallel();
    line("[storage]\nsystem = \"{}\"", one_of({"generic", "weka", "lustre", "local_nvme_raid0"}));
    line("[job.checkpoint]\nmode = \"{}\"\ninterval = \"{:.3f} min\"",
         one_of({"sync", "async", "none"}), spread(5, 300));
    if (network) add_network();
    if (calm_) {
        line("[failures]\nprofile = \"none\"");
        return;
    }
    add_recovery();
    line("[failures]\nprofile = \"{}\"\nrate_scale = {:.2f}", one_of({"llama3_405b", "meta_rsc1"}),
         spread(1, 300));
    if (chance(0.3)) {
        line("[[cluster.fault]]\npart = \"gpu\"\nnode = 0\nindex = 1\nspeed = {:.3f}",
             0.5 + 0.5 * random_.uniform());
    }
}

// ---- many jobs ----

void RandomScenario::add_queues(const std::string& scheduler) {
    const bool quotas = scheduler == "kueue";
    queues_ = scheduler == "volcano" || quotas;
    if (!queues_) return;
    for (const char* name : {"a", "b"}) {
        line("[[scheduler.queue]]\nname = \"{}\"", name);
        if (!quotas && chance(0.5)) line("weight = {}", between(1, 4));
        if (!quotas) continue;
        line("cohort = \"all\"\n[[scheduler.queue.quota]]\ngpus = {}", 8 * between(1, nodes_));
    }
}

void RandomScenario::add_job_kinds(const std::string& scheduler) {
    for (std::int64_t kind = between(1, 3); kind > 0; --kind) {
        line("[[jobs.kind]]\nname = \"kind{}\"\nwork = \"{:.3f} h\"", kind, spread(0.2, 10));
        line("gpus = {}",
             chance(0.5) ? power_of_two(2) : 8 * between(1, std::max<std::int64_t>(1, nodes_ / 2)));
        line("rate = \"{:.2f} /day\"", spread(2, 60));
        if (queues_) line("queue = \"{}\"", one_of({"a", "b"}));
        if (chance(0.4)) {
            line("checkpoint_interval = \"{:.3f} min\"", spread(10, 200));
            if (shared_store_) {
                line("checkpoint_size = \"{:.3f} GB\"", spread(1, 2000));
            } else {
                line("checkpoint_stall = \"{:.1f} s\"", spread(1, 200));
            }
        }
        if (chance(0.4)) line("restart = \"{:.1f} s\"", spread(1, 1000));
        if (!calm_ && chance(0.3)) {
            line("own_failure_rate_per_gpu = \"{:.4f} /day\"", spread(0.001, 0.2));
        }
        if (scheduler == "slurm" && chance(0.4))
            line("limit_factor = {:.2f}", 1 + 3 * random_.uniform());
    }
}

// Jobs whose steps are computed, and meet on the links of the network.
void RandomScenario::add_modelled_kind() {
    const std::int64_t nodes = between(1, std::max<std::int64_t>(1, nodes_ / 2));
    line("[[jobs.kind]]\nname = \"modelled\"\nmodel = \"{}\"\ngpus = {}",
         one_of({"llama2_7b", "llama3_8b"}), 8 * nodes);
    line("steps = {}\nrate = \"{:.2f} /day\"", between(500, 20'000), spread(2, 30));
    if (queues_) line("queue = \"{}\"", one_of({"a", "b"}));
    line("[jobs.kind.parallel]\ntensor = {}\nglobal_batch = {}", 4 << between(0, 1),
         nodes * 16 * between(1, 4));
}

void RandomScenario::add_world() {
    nodes_ = between(2, 16);
    const std::string scheduler = one_of(
        {"slurm", "slurm", "kubernetes", "volcano", "kueue", "fifo", "sjf", "priority", "easy"});
    line("[run]\nreplicas = 2\nseed = {}\nduration = \"{:.3f} h\"", between(0, 1000),
         spread(10, 200));
    const bool modelled = chance(0.25);
    const bool network = modelled && chance(0.6);
    if (network) line("fidelity = \"flow\"");
    line("[cluster]\nnode = \"{}\"\nnodes = {}", one_of({"dgx_h100", "dgx_a100"}), nodes_);
    if (network) add_network();
    shared_store_ = chance(0.25);
    if (shared_store_) line("[storage]\nsystem = \"{}\"", one_of({"generic", "weka", "lustre"}));
    line("[scheduler]\nkind = \"{}\"", scheduler);
    if (scheduler == "slurm" && chance(0.4)) line("topology = \"tree\"\nnodes_per_leaf = 2");
    if (scheduler == "slurm" && chance(0.3)) line("[scheduler.backfill]\nenabled = false");
    add_queues(scheduler);
    add_job_kinds(scheduler);
    if (modelled) add_modelled_kind();
    if (calm_) {
        line("[failures]\nprofile = \"none\"");
        return;
    }
    for (const char* remedy : {"restart", "reset", "replace"}) {
        if (!chance(0.6)) continue;
        line(
            "[[failures.cause]]\nname = \"{}\"\nremedy = \"{}\"\nrate_per_node = \"{:.4f} /day\"\n"
            "detection = \"{:.3f} s\"",
            remedy, remedy, spread(0.01, 1), spread(0.1, 1000));
        if (std::string_view(remedy) != "restart")
            line("reset_time = \"{:.3f} min\"", spread(1, 100));
        if (std::string_view(remedy) == "replace")
            line("repair_time = \"{:.3f} h\"", spread(1, 50));
    }
}

}  // namespace railyard
