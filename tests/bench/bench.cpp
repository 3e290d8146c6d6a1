// Speed, as a ratio against a rival in the same run. 'tools/railyard bench' builds and runs this.
//
// Goals: figures that can be repeated and argued with; benchmarks that cannot rot (--smoke runs
// each of them small in the tests) and cannot cheat (each checks its answer against the rival's and
// prints a digest of it: a speed-up that changes the digest is not one). Not a goal: absolute speed
// as a test. Machines differ; ratios in one run differ less.

#include <fmt/format.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstring>
#include <fstream>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "models/campaign/campaign.h"
#include "models/scheduler/scheduler.h"
#include "sim/event_queue.h"
#include "sim/fingerprint.h"
#include "sim/rng.h"
#include "tests/bench/bench_report.h"
#include "tests/bench/event_queues.h"
#include "tests/bench/many_jobs.h"

namespace railyard {

namespace {

// Least CPU time of `repeats` calls, in seconds.
double least_cpu_seconds(int repeats, const std::function<void()>& call) {
    double best = 1e300;
    for (int i = 0; i < repeats; ++i) {
        const double before = process_cpu_seconds();
        call();
        best = std::min(best, process_cpu_seconds() - before);
    }
    return best;
}

[[noreturn]] void fail(const std::string& why) {
    fmt::print(stderr, "bench: {}\n", why);
    std::exit(1);
}

// ---- event queue ----

Result event_queue(const char* name, std::size_t pending, bool smoke) {
    const std::size_t holds = smoke ? 20'000 : 2'000'000;
    const std::size_t warm_up = smoke ? pending / 10 : 2 * pending;
    RandomStream random(1, 0, "bench/hold");
    std::vector<std::int64_t> increments(1 << 16);
    for (std::int64_t& increment : increments) {
        increment =
            static_cast<std::int64_t>(random.exponential() * 1000.0 * static_cast<double>(pending));
    }
    Hold<EventQueue<Payload>> ours(pending, increments);
    Hold<HeapQueue> rival(pending, increments);
    if (ours.run(warm_up) != rival.run(warm_up)) fail("the queues disagree while warming up");
    double ours_s = 1e300;
    double rival_s = 1e300;
    Fingerprint ours_digest;
    Fingerprint rival_digest;
    for (int repeat = 0; repeat < (smoke ? 1 : 5);
         ++repeat) {  // alternating, so that both see the same machine
        ours_s = std::min(ours_s, least_cpu_seconds(1, [&] { ours_digest.add(ours.run(holds)); }));
        rival_s =
            std::min(rival_s, least_cpu_seconds(1, [&] { rival_digest.add(rival.run(holds)); }));
    }
    if (ours_digest.value() != rival_digest.value()) fail("the queues disagree");
    const double per = 1e9 / static_cast<double>(holds);
    return {name,          ours_s * per,     "ns CPU per hold", "std::priority_queue",
            rival_s * per, rival_s / ours_s, ours_digest.hex()};
}

// ---- campaign ----

// Nobody else simulates these; the rival is the budget that the project set itself. From a design that is
// there already; a single replica is run once, since what it asks of its network is remembered.
Result campaign(const std::string& name, const std::string& file, double budget_ms,
                std::int64_t replicas, bool smoke) {
    ScenarioChanges changes;
    if (smoke) changes.settings = {"run.duration=1 day"};
    Scenario scenario = load_scenario_file(RAILYARD_ROOT "/" + file, changes);
    scenario.replicas = smoke ? 1 : replicas;
    std::string digest;
    const double cpu_s = least_cpu_seconds(smoke || replicas == 1 ? 1 : 3,
                                           [&] { digest = run_campaign(scenario, {}).digest; });
    const double ms = cpu_s * 1e3 / static_cast<double>(scenario.replicas);
    return {name, ms, "ms CPU per replica", "budget", budget_ms, budget_ms / ms, digest};
}

// A month of 512 nodes that save every hour to their drives, to a store that fails and to an object store,
// read their data from the store, and share it with another job that saves and reads.
constexpr const char* storage_30_day = R"(
[run]
duration = "30 day"
[cluster]
node = "dgx_h100"
nodes = 528
[storage]
system = "weka"
servers = 64
[storage.failures]
drive_failure_rate = "0.02 /year"
[object_store]
system = "s3"
[job]
nodes = 512
model = "llama3_70b"
[job.parallel]
tensor = 8
pipeline = 4
data = 128
global_batch = 2048
sequence_length = 8192
zero = 1
[job.checkpoint]
mode = "async"
interval = "1 h"
[[job.checkpoint.tier]]
place = "local_nvme"
[[job.checkpoint.tier]]
place = "storage"
keep = 24
[[job.checkpoint.tier]]
place = "object_store"
every = 24
keep = 30
[job.data]
demand = "resnet50"
[[neighbour]]
name = "vision"
nodes = 64
checkpoint = "2 TB"
every = "1 h"
reads = "100 GB/s"
[failures]
profile = "llama3_405b"
)";

Result campaign_storage_30_day(bool smoke) {
    constexpr double budget_ms = 20;
    Scenario scenario = load_scenario(storage_30_day, "storage_30_day", {});
    scenario.replicas = smoke ? 2 : 20;
    std::string digest;
    const double cpu_s = least_cpu_seconds(smoke ? 1 : 3, [&] {
        const CampaignResult result = run_campaign(scenario, {});
        digest = result.digest;
        for (const char* metric : {"checkpoints", "local_nvme_restores", "object_store_bytes_kept",
                                   "data_fetched", "neighbour_vision_checkpoints"}) {
            if (result.metric(metric).summary.mean <= 0) fail(fmt::format("no {}", metric));
        }
    });
    const double ms = cpu_s * 1e3 / static_cast<double>(scenario.replicas);
    return {"campaign_storage_30_day",
            ms,
            "ms CPU per replica",
            "budget",
            budget_ms,
            budget_ms / ms,
            digest};
}

// Set-up: from the text of the scenario to a campaign that could run, catalogue parsed on the way.
Result campaign_llama3_setup(double startup_s) {
    constexpr double budget_ms = 300;
    const double ms = startup_s * 1e3;
    return {"campaign_llama3_setup", ms, "ms CPU, cold", "budget", budget_ms, budget_ms / ms, "-"};
}

Result campaign_llama3_memory(double peak_mb) {
    constexpr double budget_mb = 60;
    return {"campaign_llama3_memory", peak_mb, "MB at the peak", "budget", budget_mb,
            budget_mb / peak_mb,      "-"};
}

Result plan_search(bool smoke) {
    constexpr double budget_per_s = 10'000;
    const Scenario s = load_scenario_file(std::string(RAILYARD_ROOT) +
                                          "/scenarios/studies/llama3_405b_54_days.toml");
    PlanSearch search;
    const double cpu_s = least_cpu_seconds(smoke ? 1 : 5, [&] {
        Communicators groups = communicators(s, Fidelity::analytic);
        search = search_plans(
            {s.model, s.plan, s.plan.gpus(), s.parameter_bytes, s.optimizer_traffic}, groups);
    });
    Fingerprint digest;
    for (const RankedPlan& r : search.best) digest.add(r.step.duration());
    const double per_s = static_cast<double>(search.tried) / cpu_s;
    return {"plan_search",        per_s,       "plans per CPU s", "budget", budget_per_s,
            per_s / budget_per_s, digest.hex()};
}

// One more question to loaders that were looked at before, as each step of a campaign asks.
Result loader_again(bool smoke) {
    constexpr double budget_s = 1e-6;
    DataDemand demand;
    demand.sample_bytes = 114'660;
    demand.sample_stdev = 50'000;
    demand.batch = 400;
    demand.compute = std::chrono::milliseconds(224);
    demand.handover_jitter = std::chrono::milliseconds(1);
    const DataLoader loader(demand, {}, {512, 8, 112});
    const int calls = smoke ? 1'000 : 100'000;
    Fingerprint digest;
    const double cpu_s = least_cpu_seconds(smoke ? 1 : 5, [&] {
        digest = {};
        DataSupply supply;
        for (int i = 0; i < calls; ++i) {
            supply.store_bandwidth = 1e11 + i * 1e7;
            digest.add(loader.flow(supply).step_s);
        }
    });
    const double each = cpu_s / calls;
    return {"loader_again", each * 1e9,      "ns a step", "budget",
            budget_s * 1e9, budget_s / each, digest.hex()};
}

double peak_megabytes() {
    rusage usage{};
    getrusage(RUSAGE_SELF, &usage);
    return static_cast<double>(usage.ru_maxrss) * 1024e-6;
}

// ---- flow scale against SimGrid ----

struct FlowRun {
    std::vector<double> ends_s;
    double cpu_s = 0;
    double peak_mb = 0;
};

FlowRun run_flows(const char* program, const std::string& traffic) {
    const std::string file = fmt::format("/tmp/railyard_flows_{}", getpid());
    FILE* pipe = popen(fmt::format("'{}' {} {}", program, traffic, file).c_str(), "r");
    FlowRun run;
    if (!pipe || std::fscanf(pipe, "%lf %lf", &run.cpu_s, &run.peak_mb) != 2 || pclose(pipe) != 0) {
        fail(fmt::format("{} {} failed", program, traffic));
    }
    std::ifstream in(file, std::ios::binary);
    for (double end = 0; in.read(reinterpret_cast<char*>(&end), sizeof end);)
        run.ends_s.push_back(end);
    std::remove(file.c_str());
    return run;
}

// CPU time and memory of the same traffic; every flow must end at the same time within 1 %.
void maxmin_vs_simgrid(const std::string& traffic, std::vector<Result>& results) {
    const FlowRun ours = run_flows(RAILYARD_FLOWS, traffic);
    const FlowRun rival = run_flows(RAILYARD_FLOWS_SIMGRID, traffic);
    Fingerprint digest;
    if (ours.ends_s.size() != rival.ends_s.size()) fail("the two solvers saw different traffic");
    for (std::size_t i = 0; i < ours.ends_s.size(); ++i) {
        if (std::abs(ours.ends_s[i] - rival.ends_s[i]) > 0.01 * rival.ends_s[i]) {
            fail(fmt::format("flow {} of {} ends after {} s, with SimGrid after {} s", i, traffic,
                             ours.ends_s[i], rival.ends_s[i]));
        }
        digest.add(std::int64_t{std::llround(ours.ends_s[i] * 1e12)});
    }
    const std::string name = "maxmin_vs_simgrid_" + traffic;
    results.push_back({name, ours.cpu_s, "CPU s", "SimGrid 3.32", rival.cpu_s,
                       rival.cpu_s / ours.cpu_s, digest.hex()});
    results.push_back({name + "_memory", ours.peak_mb, "MB", "SimGrid 3.32", rival.peak_mb,
                       rival.peak_mb / ours.peak_mb, digest.hex()});
}

// ---- packets ----

// What csg-htsim (RoCE, lossless queues, k = 8 and k = 16 fat-trees) took for as many flows of these sizes,
// measured elsewhere on two cores; one data packet-hop in each is the same work.
struct PacketsRival {
    const char* name;
    const char* traffic;
    double hops_per_s;
    double kb_per_host;
};
constexpr char htsim[] = "csg-htsim, elsewhere";
constexpr PacketsRival packets_rivals[] = {
    {htsim, "128_perm", 3'055'616 / 7.6, 21e3 / 128},
    {htsim, "1024_perm", 6'160'000 / 44.4, 161e3 / 1024},
    {htsim, "128_incast", 188'000 / 0.36, 9e3 / 128},
    {htsim, "1024_incast", 1'480'000 / 8.8, 129e3 / 1024},
    {htsim, "128_ring64", 2'709'504 / 11.8, 29e3 / 128},
    {htsim, "128_a2aflat64", 1'482'752 / 3.9, 23e3 / 128},
    {htsim, "8192_perm", 12'441'088 / 156.0, 2.2e6 / 8192},
};

struct PacketsRun {
    double cpu_s = 0;
    double peak_mb = 0;
    unsigned long long hops = 0;  // of data packets
    std::string digest;

    double hops_per_s() const { return static_cast<double>(hops) / cpu_s; }
    std::string unit() const {
        return fmt::format("M hops/CPU s, {:.2f} M", static_cast<double>(hops) * 1e-6);
    }
};

// PFC, ECN, DCQCN, an acknowledgement for each packet; by entropy values Ultra Ethernet's trimming and NSCC.
PacketsRun run_packets(const std::string& traffic, const std::string& routing = "path") {
    const char* control = routing == "entropy" ? "nscc" : "dcqcn";
    const std::string command =
        fmt::format("'{}' {} {} 1 {}", RAILYARD_PACKETS, traffic, control, routing);
    FILE* pipe = popen(command.c_str(), "r");
    PacketsRun run;
    char digest[17] = {};
    if (!pipe ||
        std::fscanf(pipe, "%lf %lf %llu %*s %*s %*s %16s", &run.cpu_s, &run.peak_mb, &run.hops,
                    digest) != 4 ||
        pclose(pipe) != 0) {
        fail(command + " failed");
    }
    run.digest = digest;
    return run;
}

Result packets_memory(const std::string& name, const std::string& traffic, const PacketsRun& run,
                      const char* rival, double rival_kb_per_host) {
    const double kb_per_host = run.peak_mb * 1024 / std::stod(traffic);
    return {name + "_memory",  kb_per_host,
            "KB per host",     rival,
            rival_kb_per_host, rival_kb_per_host / kb_per_host,
            run.digest};
}

// What it costs that packets choose their way, and are taken in any order. Ultra Ethernet also against the
// public simulator of the consortium, which took 28.7 CPU seconds for RoCE on the permutation of 128 hosts.
void packets_that_choose(const std::string& traffic, const std::string& routing,
                         std::vector<Result>& results) {
    const PacketsRun path = run_packets(traffic);
    const PacketsRun run = run_packets(traffic, routing);
    const std::string name = fmt::format("packets_{}_{}", traffic, routing);
    if (routing == "entropy") {
        constexpr double uet_hops_per_s = 3'055'616 / 28.7;
        results.push_back({name + "_vs_uet", run.hops_per_s() * 1e-6, run.unit(),
                           "uet-htsim at 128 hosts, elsewhere", uet_hops_per_s * 1e-6,
                           run.hops_per_s() / uet_hops_per_s, run.digest});
    }
    results.push_back({name, run.hops_per_s() * 1e-6, run.unit(), "one path",
                       path.hops_per_s() * 1e-6, run.hops_per_s() / path.hops_per_s(), run.digest});
    results.push_back(
        packets_memory(name, traffic, run, "one path", path.peak_mb * 1024 / std::stod(traffic)));
}

void packets(const PacketsRival& rival, std::vector<Result>& results) {
    const PacketsRun run = run_packets(rival.traffic);
    const std::string name = fmt::format("packets_{}", rival.traffic);
    results.push_back({name, run.hops_per_s() * 1e-6, run.unit(), rival.name,
                       rival.hops_per_s * 1e-6, run.hops_per_s() / rival.hops_per_s, run.digest});
    results.push_back(packets_memory(name, rival.traffic, run, rival.name, rival.kb_per_host));
}

// ---- packets against ns-3 ----

// Traffic through drop-tail queues (tests/bench/drop_tail.h): what became of each flow, and at what price.
struct DropTailRun {
    struct Arrivals {
        std::int64_t packets;
        std::int64_t last_ps;
    };
    std::vector<Arrivals> flows;
    PacketsRun cost;
};

DropTailRun run_drop_tail(const char* program, const std::string& traffic, std::int64_t queue_bytes,
                          const char* acks = "") {
    const std::string file = fmt::format("/tmp/railyard_drop_tail_{}", getpid());
    const std::string command =
        fmt::format("'{}' {} {} {} {}", program, traffic, queue_bytes, file, acks);
    FILE* pipe = popen(command.c_str(), "r");
    DropTailRun run;
    if (!pipe ||
        std::fscanf(pipe, "%lf %lf %llu", &run.cost.cpu_s, &run.cost.peak_mb, &run.cost.hops) !=
            3 ||
        pclose(pipe) != 0) {
        fail(command + " failed");
    }
    std::ifstream in(file, std::ios::binary);
    for (DropTailRun::Arrivals a{}; in.read(reinterpret_cast<char*>(&a), sizeof a);) {
        run.flows.push_back(a);
    }
    std::remove(file.c_str());
    return run;
}

// As many packets of every flow must arrive, the last at the same time, within 1 %.
void hold_to_ns3(const std::string& traffic, DropTailRun& ours, const DropTailRun& ns3) {
    const auto near = [](std::int64_t a, std::int64_t b) {
        return std::abs(a - b) * 100 <= std::abs(b);
    };
    if (ours.flows.size() != ns3.flows.size()) fail("the two packet engines saw different traffic");
    Fingerprint digest;
    for (std::size_t i = 0; i < ours.flows.size(); ++i) {
        const DropTailRun::Arrivals& a = ours.flows[i];
        const DropTailRun::Arrivals& b = ns3.flows[i];
        if (!near(a.packets, b.packets) || !near(a.last_ps, b.last_ps)) {
            fail(
                fmt::format("{} packets of flow {} of {} arrive, the last after {} us; with ns-3 "
                            "{}, after {} us",
                            a.packets, i, traffic, static_cast<double>(a.last_ps) * 1e-6, b.packets,
                            static_cast<double>(b.last_ps) * 1e-6));
        }
        digest.add(a.packets);
        digest.add(a.last_ps);
    }
    ours.cost.digest = digest.hex();
}

constexpr char ns3_name[] = "ns-3.37";

// The same datagrams, like for like: no acknowledgements, no PFC, no ECN.
void drop_tail_vs_ns3(const std::string& name, const std::string& traffic,
                      std::vector<Result>& results) {
    DropTailRun ours = run_drop_tail(RAILYARD_DROP_TAIL, traffic, 0);
    const DropTailRun ns3 = run_drop_tail(RAILYARD_DROP_TAIL_NS3, traffic, 0);
    hold_to_ns3(traffic, ours, ns3);
    results.push_back({name, ours.cost.hops_per_s() * 1e-6, ours.cost.unit(), ns3_name,
                       ns3.cost.hops_per_s() * 1e-6, ours.cost.hops_per_s() / ns3.cost.hops_per_s(),
                       ours.cost.digest});
    results.push_back(packets_memory(name, traffic, ours.cost, ns3_name,
                                     ns3.cost.peak_mb * 1024 / std::stod(traffic)));
}

// Queues that are too small: the same packets must be lost. Not a matter of speed.
Result losses_vs_ns3() {
    const std::string traffic = "128_incast";
    constexpr std::int64_t queue_bytes = 1'000'000;
    DropTailRun ours = run_drop_tail(RAILYARD_DROP_TAIL, traffic, queue_bytes);
    const DropTailRun ns3 = run_drop_tail(RAILYARD_DROP_TAIL_NS3, traffic, queue_bytes);
    hold_to_ns3(traffic, ours, ns3);
    const auto arrived = [](const DropTailRun& run) {
        double sum = 0;
        for (const DropTailRun::Arrivals& a : run.flows) sum += static_cast<double>(a.packets);
        return sum;
    };
    return {"packets_vs_ns3_128_incast_lossy",
            arrived(ours),
            "packets arrive",
            ns3_name,
            arrived(ns3),
            arrived(ours) / arrived(ns3),
            ours.cost.digest};
}

// All that the engine does, against ns-3's datagrams with an acknowledgement for each. Both rates count data
// packets only.
void packets_vs_ns3(const std::string& traffic, std::vector<Result>& results) {
    const std::string name = "packets_vs_ns3_" + traffic;
    drop_tail_vs_ns3(name + "_drop_tail", traffic, results);
    const PacketsRun ours = run_packets(traffic);
    PacketsRun ns3 = run_drop_tail(RAILYARD_DROP_TAIL_NS3, traffic, 0, "acks").cost;
    ns3.hops /= 2;
    results.push_back({name, ours.hops_per_s() * 1e-6, ours.unit(), ns3_name,
                       ns3.hops_per_s() * 1e-6, ours.hops_per_s() / ns3.hops_per_s(), ours.digest});
    results.push_back(
        packets_memory(name, traffic, ours, ns3_name, ns3.peak_mb * 1024 / std::stod(traffic)));
}

// ---- job streams ----

// So many jobs on 2,000 nodes of 8 GPUs, at 95 % of what these can do: log-normal run times of 2 h
// on average, 1 to 512 GPUs, half of the jobs on one, and time limits of 1 to 5 times the run time.
// EASY backfill by limits on whole nodes: plans break all the time.
std::vector<StreamJob> stream_of(std::size_t count) {
    constexpr double gpus = 2000 * 8;
    constexpr double mean_runtime_s = 7200;
    constexpr double mean_gpus = 0.5 + 0.05 * (2 + 4 + 8 + 16 + 32 + 64 + 128 + 256 + 512) +
                                 0.05 * 8;  // the tenth size is 8 again
    const Rate rate{0.95 * gpus / (mean_runtime_s * mean_gpus)};
    RandomStream random(1, 0, "bench/jobs");
    std::vector<StreamJob> out(count);
    Duration now{};
    for (std::size_t i = 0; i < count; ++i) {
        StreamJob& job = out[i];
        job.id = static_cast<std::int64_t>(i);
        job.submit = now += random.interarrival(rate);
        const double runtime = lognormal(mean_runtime_s, 1.5, random.normal());
        job.duration = std::chrono::seconds(1 + std::llround(runtime));
        job.limit = job.duration * static_cast<std::int64_t>(1 + random.below(5));
        if (random.chance(0.5)) {
            const std::uint64_t size = random.below(10);
            job.gpus = size == 9 ? 8 : std::int64_t{2} << size;
        }
    }
    return out;
}

Result job_stream(const char* name, std::size_t count, bool smoke) {
    constexpr double budget_s = 5;
    const std::vector<StreamJob> jobs = stream_of(smoke ? count / 100 : count);
    const std::vector<VirtualCluster> cluster = {{"all", 2000, 8}};
    const StreamRules rules{"easy", "consolidate", RuntimeEstimate::limit};
    StreamSchedule schedule;
    const double cpu =
        least_cpu_seconds(smoke ? 1 : 3, [&] { schedule = run_job_stream(jobs, cluster, rules); });
    const StreamStatistics s = stream_statistics(jobs, cluster, schedule);
    if (s.jobs != static_cast<std::int64_t>(jobs.size())) fail("not every job has run");
    const double budget = budget_s * static_cast<double>(count) / 1e5;
    return {name, cpu, "CPU s", "budget", budget, budget / cpu, schedule.digest.hex()};
}

Result world(const char* name, double budget_s, const MeasuredWorld& measured, bool smoke) {
    std::string digest;
    const double cpu = least_cpu_seconds(smoke ? 1 : 3, [&] { digest = run_measured(measured); });
    return {name, cpu, "CPU s", "budget", budget_s, budget_s / cpu, digest};
}

Result waiting_job_memory(const std::string& name, const char* scheduler, bool smoke) {
    const double bytes = bytes_per_waiting_job(scheduler, smoke ? 2000 : 100'000);
    return {name, bytes, "bytes a waiting job", "budget", 1024, 1024 / bytes, "-"};
}

// ---- growth ----

class Cluster {
  public:
    explicit Cluster(std::int64_t nodes) : node_(read_node(own_.catalogue, "dgx_h100")) {
        TopologySpec spec;
        spec.kind = "rail_optimized";
        spec.tiers = 3;  // all along, so that only the size changes
        spec.nodes = nodes;
        spec.nics_per_node = node_.nics;
        spec.nic_bandwidth = node_.nic_line_rate;
        spec.leaf = spec.spine = spec.core = read_switch(own_.catalogue, "q3400_xdr");
        std::string problem;
        topology_ = Topology::build(spec, problem);
        if (!problem.empty()) fail(problem);
    }
    const Topology& topology() const { return topology_; }
    GpuNetwork network() const { return {node_, topology_, {Routing::adaptive}}; }

  private:
    StandaloneCatalogue own_;
    Node node_;
    Topology topology_;
};

// CPU time, and how many ns of it there are for each n log2 n. Large sizes have a budget: 1.3 times as many
// as 16,384 has.
Result growth(const char* what, std::int64_t size, double cpu_s, const Fingerprint& digest) {
    static std::map<std::string, double> small;
    const double n = static_cast<double>(size);
    const double per = 1e9 * cpu_s / (n * std::log2(n));
    if (size <= 16384) small[what] = per;
    const double budget_s = 1.3 * small[what] * 1e-9 * n * std::log2(n);
    const std::string unit = fmt::format("CPU s, {:.0f} ns a n log2 n", per);
    return {fmt::format("{}_{}", what, size),
            cpu_s,
            unit,
            "budget",
            budget_s,
            budget_s / cpu_s,
            digest.hex()};
}

// CPU time of a network's building, routes and rates, against GPUs: one ring over all of them.
Result growth_ring(std::int64_t gpus) {
    GroupRate rate;
    const double cpu = least_cpu_seconds(1, [&] {  // a second time it is remembered
        const Cluster cluster(gpus / 8);
        std::vector<GpuGroup> all(1);
        for (std::int64_t g = 0; g < gpus; ++g) all[0].push_back(g);
        rate = cluster.network().ring(all);
    });
    Fingerprint digest;
    digest.add(std::int64_t{std::llround(rate.bytes_per_s)});
    return growth("growth_ring", gpus, cpu, digest);
}

// Likewise against flows: a permutation of all NICs, from start to end.
Result growth_flows(std::int64_t flows) {
    double last = 0;
    const double cpu = least_cpu_seconds(3, [&] {
        const Cluster cluster(flows / 8);
        const Topology& topology = cluster.topology();
        Router router(topology, {Routing::ecmp});
        FlowSimulation simulation(capacities(topology), static_cast<std::size_t>(flows));
        for (VertexId from = 0; from < flows; ++from) {
            Transfer t;
            // An odd step through a power of two visits everyone once.
            const auto to = static_cast<VertexId>((from * 40503ULL + 12345) %
                                                  static_cast<std::uint64_t>(flows));
            if (!router.route(from, to, 0, t.usages)) fail("no route");
            t.bytes = 4 << 20;
            t.latency = router.latency(t.usages);
            simulation.add(std::move(t));
        }
        simulation.run();
        for (std::size_t i = 0; i < static_cast<std::size_t>(flows); ++i) {
            last = std::max(last, static_cast<double>(simulation.end(i).count()));
        }
    });
    Fingerprint digest;
    digest.add(std::int64_t{std::llround(last)});
    return growth("growth_flows", flows, cpu, digest);
}

// A checkpoint of all nodes, 8 ranks each, over 400 Gbit/s and routes by hash; its network is there already.
// `stripes`: servers of a file, 0: all. The closed form has to agree where files are spread evenly.
Result storage_burst(std::int64_t nodes, std::int64_t servers, std::int64_t stripes) {
    TopologySpec shape;
    shape.nodes = nodes;
    shape.servers = servers;
    shape.nics_per_server = 2;
    shape.nic_bandwidth = Bandwidth::bits_per_second(400'000'000'000);
    shape.leaf.ports = 64;
    shape.leaf.port_bandwidth = shape.nic_bandwidth;
    shape.spine = shape.core = shape.leaf;
    std::string problem;
    const Topology topology = Topology::build(shape, problem);
    if (!problem.empty()) fail(problem);
    BurstSpec spec{topology, {}, {}, {}, 1};
    for (std::int64_t node = 0; node < nodes; ++node) spec.nodes.push_back(node);
    StoreLimits& limits = spec.store.limits;
    limits.write =
        limits.read = {{"servers", Bandwidth::bits_per_second(160'000'000'000) * servers}};
    limits.client_write = limits.file_write = unlimited;
    limits.creates_per_s = 28'000;
    spec.store.stripes = stripes;
    BurstLoad load;
    load.ranks_per_node = 8;
    load.bytes_per_rank = Bytes::of(2'000'000'000);
    load.operations_per_rank = 4;
    BurstResult result;
    const double cpu = least_cpu_seconds(5, [&] { result = run_burst(spec, load); });
    const BurstEnds ends{nodes, shape.nic_bandwidth, servers,
                         shape.nic_bandwidth * std::int64_t{2}};
    const double form = seconds(burst_closed_form(ends, spec.store, load).stall);
    if (stripes == 0 && std::abs(seconds(result.stall) / form - 1) > 0.01) {
        fail(
            fmt::format("the burst takes {} s, its closed form {} s", seconds(result.stall), form));
    }
    constexpr double budget_ms = 50;
    Fingerprint digest;
    digest.add(result.digest());
    const std::string name = stripes == 0
                                 ? fmt::format("storage_burst_{}", nodes)
                                 : fmt::format("storage_burst_{}_stripes_{}", nodes, stripes);
    return {name, cpu * 1e3, "ms CPU", "budget", budget_ms, budget_ms / (cpu * 1e3), digest.hex()};
}

// One step of Llama 3 405B on 16,384 GPUs on the flow scale, network built and everything measured anew;
// then at a point of a sweep that differs in nothing of the network; then the same question again.
void step_16384(bool smoke, std::vector<Result>& results) {
    const std::string file =
        std::string(RAILYARD_ROOT) + "/scenarios/studies/llama3_405b_54_days.toml";
    ScenarioChanges changes;
    changes.settings = {"run.fidelity=flow"};
    std::optional<Scenario> s;
    const double cpu = least_cpu_seconds(1, [&] { s = load_scenario_file(file, changes); });
    Fingerprint digest;
    digest.add(s->job.step.duration());
    results.push_back({"step_cold_16384", cpu, "CPU s", "budget", 1, 1 / cpu, digest.hex()});
    changes.settings.push_back("job.checkpoint.interval=20 min");
    std::optional<Scenario> next;
    const double point_s =
        least_cpu_seconds(smoke ? 1 : 5, [&] { next = load_scenario_file(file, changes); });
    if (next->job.step.duration() != s->job.step.duration()) {
        fail("the step is another one at the next point");
    }
    results.push_back(
        {"step_point_16384", point_s, "CPU s", "budget", 0.05, 0.05 / point_s, digest.hex()});
    StepModel model(step_work(*s),
                    [&](const auto& faults) { return communicators(*s, Fidelity::flow, faults); });
    if (model.step(s->plan).duration() != s->job.step.duration()) {
        fail("the step is another one the second time");
    }
    constexpr int calls = 1'000'000;
    std::int64_t sum = 0;
    const double warm = least_cpu_seconds(3, [&] {
        for (int i = 0; i < calls; ++i) sum += model.step(s->plan).compute.count();
    });
    digest.add(sum);
    constexpr double warm_budget_us = 1;
    const double us = 1e6 * warm / calls;
    results.push_back(
        {"step_warm_16384", us, "us", "budget", warm_budget_us, warm_budget_us / us, digest.hex()});
}

// One 1 GiB all-reduce from the bare catalogue: network, rings, rates, NCCL's choice. And what the process
// has held at its peak until then.
void all_reduce(std::int64_t gpus, const char* rival, double rival_s, double rival_mb,
                std::vector<Result>& results) {
    double time_s = 0;
    const double cpu = least_cpu_seconds(1, [&] {
        StandaloneCatalogue own;
        const Cluster cluster(gpus / 8);
        const Node node = read_node(own.catalogue, "dgx_h100");
        Communicator all = read_communicator(own.catalogue, node, {gpus, 8, false});
        std::vector<GpuGroup> groups(1);
        for (std::int64_t g = 0; g < gpus; ++g) groups[0].push_back(g);
        GpuNetwork network = cluster.network();
        measure(network, groups, Collective::all_reduce, all);
        time_s = seconds(Collective::all_reduce, all, 1 << 30);
    });
    const double mb = peak_megabytes();
    Fingerprint digest;
    digest.add(std::int64_t{std::llround(time_s * 1e12)});
    const std::string name = fmt::format("all_reduce_{}_gpus", gpus);
    results.push_back({name, cpu, "CPU s", rival, rival_s, rival_s / cpu, digest.hex()});
    results.push_back({name + "_memory", mb, "MB", rival, rival_mb, rival_mb / mb, digest.hex()});
}

// All benchmarks that are asked for, in their order.
class Benches {
  public:
    explicit Benches(const BenchOptions& options)
        : json_(options.json), smoke_(options.smoke), only_(options.only) {}
    std::vector<Result> run() {
        of_memory();  // first, while the process is fresh
        campaigns_and_steps();
        jobs();
        growth_and_stores();
        packets_and_rivals();
        return std::move(results_);
    }

  private:
    bool wanted(const std::string& name) const { return name.starts_with(only_); }
    void say(const std::string& name) const {
        if (!json_) fmt::print(stderr, "{} ...\n", name);
    }
    void bench(const std::string& name, const std::function<Result()>& run) {
        if (!wanted(name)) return;
        say(name);
        results_.push_back(run());
    }
    void of_memory();
    void campaigns_and_steps();
    void jobs();
    void growth_and_stores();
    void packets_and_rivals();

    bool json_;
    bool smoke_;
    std::string only_;
    std::vector<Result> results_;
};

void Benches::of_memory() {
    double setup_s = 0;
    double campaign_peak_mb = 0;
    if (wanted("campaign_llama3") || only_.starts_with("campaign")) {
        setup_s = least_cpu_seconds(1, [] {
            load_scenario_file(std::string(RAILYARD_ROOT) +
                               "/scenarios/studies/llama3_405b_54_days.toml");
        });
        bench("campaign_llama3", [&] {
            return campaign("campaign_llama3", "scenarios/studies/llama3_405b_54_days.toml", 1, 200,
                            smoke_);
        });
        campaign_peak_mb = peak_megabytes();
        bench("campaign_llama3_setup", [&] { return campaign_llama3_setup(setup_s); });
        bench("campaign_llama3_memory", [&] { return campaign_llama3_memory(campaign_peak_mb); });
    }
    // The first rival's figures are published, of another machine.
    if (wanted("all_reduce_4096_gpus")) {
        all_reduce(4096, "ASTRA-sim 2 analytical, published", 32, 733, results_);
    }
    if (!smoke_ && wanted("all_reduce_1048576_gpus")) {
        all_reduce(1 << 20, "budget, 1 KiB a GPU", 5, 1024 * 1.048576, results_);
    }
}

void Benches::campaigns_and_steps() {
    bench("campaign_repair_year", [&] {
        return campaign("campaign_repair_year", "tests/bench/repair_year.toml", 15, 20, smoke_);
    });
    bench("campaign_shared_30_day", [&] {
        return campaign("campaign_shared_30_day", "tests/bench/shared_30_day.toml", 3000, 1,
                        smoke_);
    });
    bench("campaign_storage_30_day", [&] { return campaign_storage_30_day(smoke_); });
    bench("event_queue_1e3", [&] { return event_queue("event_queue_1e3", 1'000, smoke_); });
    bench("event_queue_1e5", [&] { return event_queue("event_queue_1e5", 100'000, smoke_); });
    bench("event_queue_1e6",
          [&] { return event_queue("event_queue_1e6", smoke_ ? 50'000 : 1'000'000, smoke_); });

    bench("plan_search", [&] { return plan_search(smoke_); });
    bench("loader_again", [&] { return loader_again(smoke_); });
    if (wanted("step_cold_16384") || wanted("step_point_16384") || wanted("step_warm_16384")) {
        step_16384(smoke_, results_);
    }
}

void Benches::jobs() {
    bench("jobs_100k_2000_nodes",
          [&] { return job_stream("jobs_100k_2000_nodes", 100'000, smoke_); });
    bench("jobs_1M_2000_nodes",
          [&] { return job_stream("jobs_1M_2000_nodes", 1'000'000, smoke_); });

    for (const WorldBench& each : world_benches()) {
        bench(each.name,
              [&] { return world(each.name.c_str(), each.budget_s, each.make(smoke_), smoke_); });
    }
    for (const char* scheduler : {"slurm", "kubernetes", "volcano", "kueue"}) {
        const std::string name = std::string("world_waiting_job_") + scheduler;
        bench(name, [&] { return waiting_job_memory(name, scheduler, smoke_); });
    }
}

void Benches::growth_and_stores() {
    for (std::int64_t n = 64; n <= (smoke_ ? 256 : 262144); n *= 4) {
        bench(fmt::format("growth_ring_{}", n), [&] { return growth_ring(n); });
        bench(fmt::format("growth_flows_{}", n), [&] { return growth_flows(n); });
    }
    bench("storage_burst_512", [] { return storage_burst(512, 16, 0); });
    if (!smoke_) {
        bench("storage_burst_2048", [] { return storage_burst(2048, 64, 0); });
        bench("storage_burst_2048_stripes_1", [] { return storage_burst(2048, 64, 1); });
        bench("storage_burst_2048_stripes_8", [] { return storage_burst(2048, 64, 8); });
    }
}

void Benches::packets_and_rivals() {
    const std::vector<std::string> traffics = {"128_perm",  "128_rand",       "128_a2aflat64",
                                               "1024_perm", "1024_rand",      "4096_perm",
                                               "4096_rand", "1024_a2aflat256"};
    for (const std::string& traffic : traffics) {
        const std::string name = "maxmin_vs_simgrid_" + traffic;
        if (!wanted(name)) continue;
        if (smoke_ && traffic != "128_perm" && traffic != "128_a2aflat64") continue;
        say(name);
        maxmin_vs_simgrid(traffic, results_);
    }

    for (const PacketsRival& rival : packets_rivals) {
        const std::string name = std::string("packets_") + rival.traffic;
        if (!wanted(name) || (smoke_ && name != "packets_128_incast")) continue;
        say(name);
        packets(rival, results_);
    }
    for (const char* traffic : {"128_perm", "1024_perm"}) {
        for (const char* routing : {"spray", "adaptive", "entropy"}) {
            const std::string name = fmt::format("packets_{}_{}", traffic, routing);
            if (smoke_ || !wanted(name)) continue;
            say(name);
            packets_that_choose(traffic, routing, results_);
        }
    }
    for (const std::string traffic : {"128_incast", "128_perm", "1024_incast", "1024_perm"}) {
        const std::string name = "packets_vs_ns3_" + traffic;
        if (!wanted(name) || (smoke_ && traffic != "128_incast")) continue;
        say(name);
        packets_vs_ns3(traffic, results_);
    }
    bench("packets_vs_ns3_128_incast_lossy", losses_vs_ns3);
}

}  // namespace

}  // namespace railyard

int main(int argc, char** argv) {
    using namespace railyard;
    int code = 0;
    const std::optional<BenchOptions> options = parse_bench(argc, argv, code);
    if (!options) return code;
    const std::vector<Result> results = Benches(*options).run();
    if (results.empty()) {
        fmt::print(stderr, "bench: no benchmark is called '{}'\n", options->only);
        return 2;
    }
    options->json ? print_json(results) : print_table(results);
    return 0;
}
