// What must hold of every scenario: tried on random ones, through the library's door.
//
//     railyard_random_scenarios FIRST_SEED COUNT [FOLDER]   names what failed; writes each such scenario
// to FOLDER
//     railyard_random_scenarios --print SEED                the scenario
//     railyard_random_scenarios --calm SEED                 the same without failures and neighbours

#include <fmt/format.h>
#include <unistd.h>

#include <cmath>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <map>
#include <regex>

#include "models/campaign/world.h"
#include "tests/models/whole_campaign.h"
#include "tests/random_scenario.h"

namespace railyard {

namespace {

using Kind = RandomScenario::Kind;
using Settings = std::vector<std::string>;

constexpr std::int64_t events_most =
    20'000;  // of a replica: long ones are cut, and hold what must hold too

// ---- a seed that aborts is named ----

std::uint64_t seed_under_way = 0;

extern "C" void name_seed(int) {
    constexpr char before[] = "random_scenarios: aborted in seed ";
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

// ---- one seed ----

struct Wrong {
    std::string what;
    Settings settings{};  // beside the scenario
    bool calm = false;
};

struct Counts {
    std::map<std::string, std::int64_t> of;  // what was tried, or seen
    void add(const std::string& what, std::int64_t n = 1) { of[what] += n; }
};

class Trial {
  public:
    Trial(std::uint64_t seed, Counts& counts)
        : seed_(seed), kind_(RandomScenario::kind_of(seed)), counts_(counts) {}
    std::vector<Wrong> run();

  private:
    // Nothing: the scenario is refused, or its ranks are cut off from each other.
    std::optional<Scenario> load(const std::string& text, const Settings& settings = {},
                                 std::int64_t replicas = 0) const;
    static WholeCampaign result(const Scenario& s, unsigned threads = 1);
    void fail(std::string what, const Settings& settings = {}, bool calm = false) {
        wrong_.push_back({std::move(what), settings, calm});
    }

    void sums_hold(const Scenario& s, const WholeCampaign& r);
    void ledger_holds(const Scenario& s, const ReplicaResult& r);
    void world_holds(const ReplicaResult& r);
    void threads_agree(const Scenario& s, const WholeCampaign& one);
    void units_agree(const std::string& text, const WholeCampaign& r);
    void plan_agrees(const Scenario& s, const WholeCampaign& r);
    void memory_agrees(const Scenario& s);
    void storage_agrees();
    void bandwidth_helps(const std::string& text);
    void failures_hurt(const std::string& text);
    void spares_help(const std::string& text, const Scenario& s);
    void never_better(const std::string& text, const char* metric, const Settings& worse,
                      const std::string& what);
    void count_what_happened(const std::string& text, const WholeCampaign& r);

    std::uint64_t seed_;
    Kind kind_;
    Counts& counts_;
    std::vector<Wrong> wrong_;
};

std::optional<Scenario> Trial::load(const std::string& text, const Settings& settings,
                                    std::int64_t replicas) const {
    ScenarioChanges changes;
    changes.settings = settings;
    // On one draw of the network's luck, so that run and plan speak of the same step.
    changes.settings.emplace_back("run.network_draws=1");
    try {
        Scenario s = load_scenario(text, "random.toml", changes);
        if (!s.no_path.empty()) return std::nullopt;
        s.events_max = std::min(s.events_max, events_most);
        if (replicas > 0) s.replicas = replicas;
        return s;
    } catch (const ScenarioError&) {
        return std::nullopt;
    }
}

WholeCampaign Trial::result(const Scenario& s, unsigned threads) {
    CampaignOptions options;
    options.threads = threads;
    return run_whole(s, options);
}

bool has_metric(const ReplicaResult& r, std::string_view name) {
    return std::ranges::any_of(r.metrics, [&](const Metric& m) { return m.name == name; });
}

double value(const ReplicaResult& r, std::string_view name) {
    const auto found =
        std::ranges::find_if(r.metrics, [&](const Metric& m) { return m.name == name; });
    return found == r.metrics.end() ? 0 : found->value;
}

// ---- sums ----

void Trial::ledger_holds(const Scenario& s, const ReplicaResult& r) {
    if (r.ledger.total() != GpuNanoseconds{s.gpus()} * r.simulated.count()) {
        fail("the ledger does not sum to GPUs x time");
    }
    for (std::size_t c = 0; c < category_count; ++c) {
        const auto category = static_cast<Category>(c);
        if (r.ledger.booked(category) < 0) {
            fail(fmt::format("the ledger's {} is negative", category_name(category)));
        }
    }
    if (r.job.steps_kept < 0 || r.job.steps_lost < 0 || r.job.lost_work < Duration{}) {
        fail("lost or kept work is negative");
    }
    if (r.job.data_starved > r.simulated) fail("starved for longer than the campaign");
    for (const TierBytes& tier : r.job.checkpoint.tiers) {
        for (const Bytes bytes : {tier.safe, tier.expired, tier.lost, tier.in_flight}) {
            if (bytes < Bytes{}) fail("a tier's bytes are negative");
        }
        if (tier.written != tier.safe + tier.expired + tier.lost + tier.in_flight) {
            fail("a tier's bytes do not sum");
        }
    }
    const CheckpointOutcome& c = r.job.checkpoint;
    // What a storm holds up stands still in the storm's name.
    if (c.stalls_ended > c.begun || c.to_stall_end > c.stall.total() + r.job.storm_stall) {
        fail("more stalls ended than began, or they took longer than all that waited");
    }
    for (const Metric& m : r.metrics) {
        if (m.value < 0) fail(fmt::format("{} is {}", m.name, m.value));
    }
}

void Trial::world_holds(const ReplicaResult& r) {
    double ends = 0;
    for (const char* end :
         {"completed", "failed", "node_fail", "timeout", "preempted", "refused"}) {
        ends += value(r, fmt::format("jobs_{}", end));
    }
    if (value(r, "jobs") != ends + value(r, "jobs_running") + value(r, "jobs_waiting")) {
        fail("jobs that were submitted are not those that ended, run and wait");
    }
    constexpr double rounding = 1e-9;
    const double utilisation = value(r, "utilisation");
    const double occupancy = value(r, "occupancy");
    if (utilisation > occupancy + rounding) {
        fail(fmt::format("utilisation {} is above occupancy {}", utilisation, occupancy));
    }
    if (occupancy > 1 + rounding) fail(fmt::format("occupancy is {}", occupancy));
    if (value(r, "goodput") > utilisation + rounding) fail("goodput is above utilisation");
}

void Trial::sums_hold(const Scenario& s, const WholeCampaign& r) {
    for (const ReplicaResult& each : r.each) {
        ledger_holds(s, each);
        if (s.world) world_holds(each);
    }
}

void Trial::threads_agree(const Scenario& s, const WholeCampaign& one) {
    const WholeCampaign two = result(s, 2);
    if (one.digest != two.digest || one.trajectory != two.trajectory) {
        fail("two threads give another result than one");
    }
}

// ---- the same in other words ----

// "1.250 h" as "75.000 min": the digits times a whole number, exactly.
std::string in_other_units(const std::string& text) {
    struct Unit {
        const char* other;
        std::int64_t factor;
    };
    static const std::map<std::string, Unit> others = {
        {"day", {"h", 24}},   {"h", {"min", 60}},      {"min", {"s", 60}},
        {"s", {"ms", 1000}},  {"TB", {"GB", 1000}},    {"GB", {"MB", 1000}},
        {"MB", {"kB", 1000}}, {"GB/s", {"Gbit/s", 8}}, {"MB/s", {"Mbit/s", 8}},
    };
    static const std::regex quantity(R"re("([0-9]+)(?:\.([0-9]+))? ([A-Za-z/]+)")re");
    std::string out;
    auto rest = text.cbegin();
    for (std::smatch m; std::regex_search(rest, text.cend(), m, quantity); rest = m[0].second) {
        out.append(rest, m[0].first);
        const auto other = others.find(m[3]);
        if (other == others.end()) {
            out += m[0];
            continue;
        }
        const std::string decimals = m[2];
        const std::string digits =
            std::to_string(std::stoll(m[1].str() + decimals) * other->second.factor);
        const std::size_t width = decimals.size() + 1;
        std::string padded =
            digits.size() < width ? std::string(width - digits.size(), '0') + digits : digits;
        if (!decimals.empty()) padded.insert(padded.size() - decimals.size(), ".");
        out += fmt::format("\"{} {}\"", padded, other->second.other);
    }
    return out.append(rest, text.cend());
}

void Trial::units_agree(const std::string& text, const WholeCampaign& r) {
    const std::string rewritten = in_other_units(text);
    const auto s = load(rewritten);
    if (!s) {
        fail("in other units the scenario is refused");
        return;
    }
    counts_.add("in other units");
    if (result(*s).digest != r.digest) fail("in other units the digest is another");
}

// ---- verbs agree ----

// `plan` sums the critical path, `run` steps by the scenario's step.
void Trial::plan_agrees(const Scenario& s, const WholeCampaign& r) {
    Communicators groups = communicators(s, s.fidelity);
    double path_s = 0;
    for (const PathPart& part :
         critical_path(s.model, s.plan, groups, s.parameter_bytes, s.optimizer_traffic)) {
        path_s += part.seconds;
    }
    const StepTime& step = s.job.step;
    const double bare_s =
        seconds(step.duration() - step.degraded - step.throttled - step.data_wait);
    constexpr double rounding = 1e-8;  // each part of the step is whole nanoseconds
    counts_.add("plans beside runs");
    if (std::abs(path_s - bare_s) > rounding + 1e-9 * bare_s) {
        fail(fmt::format("the critical path takes {} s, and the step {} s", path_s, bare_s));
    }
    for (const ReplicaResult& each : r.each) {
        if (value(each, "step_time") != seconds(step.duration())) {
            fail(fmt::format("run's step takes {} s, and plan's {} s", value(each, "step_time"),
                             seconds(step.duration())));
        }
    }
    if (s.fidelity != Fidelity::analytic) return;
    // `perf` reads its communicator by itself.
    StandaloneCatalogue own = s.open_catalogue();
    const std::int64_t ranks = s.job.gpus();
    const Communicator perf =
        read_communicator(own.catalogue, s.node, {ranks, s.node.gpus, s.networks[0].sharp});
    const Communicator& plan = groups.of(Collective::all_reduce, 1, ranks);
    for (const double bytes : {8.0, 1e6, 1e9}) {
        const double by_perf = collective_cost(perf, Collective::all_reduce, bytes).seconds;
        const double by_plan = collective_cost(plan, Collective::all_reduce, bytes).seconds;
        if (std::abs(by_perf - by_plan) > 1e-12 + 1e-9 * by_plan) {
            fail(fmt::format("an all_reduce of {} B takes {} s in perf and {} s in plan", bytes,
                             by_perf, by_plan));
        }
    }
}

void Trial::memory_agrees(const Scenario& s) {
    if (parameter_count(s.model) <= 0) fail("the model has no parameters");
    for (const MemoryUse& use : s.memory) {
        if (use.bytes < 0) fail(fmt::format("{} takes {} B of memory", use.component, use.bytes));
    }
    // As `calc memory` counts it.
    const double by_calc =
        total_bytes(memory_per_gpu(s.model, s.plan, s.parameter_bytes, s.node.gpu));
    const double in_all = total_bytes(s.memory);
    if (in_all <= 0 || in_all != by_calc) {
        fail(fmt::format("the plan takes {} B a GPU, and calc says {} B", in_all, by_calc));
    }
    const double searched = memory_bytes_per_gpu(s.model, s.plan, s.parameter_bytes, s.node.gpu);
    if (std::abs(searched - in_all) > 1e-9 * in_all) {
        fail(
            fmt::format("the plan takes {} B a GPU, and the search counts {} B", in_all, searched));
    }
}

// What `storage` says that a save to the shared store takes is what the job waits, with the store to itself.
void Trial::storage_agrees() {
    const std::string text = RandomScenario(seed_, true).text();
    const auto s = load(text);
    if (!s) return;
    const WholeCampaign r = result(*s);
    const CheckpointSpec& c = s->job.checkpoint;
    if (c.mode != CheckpointMode::sync) return;
    const StoreSetup& store = s->stores[shared_store];
    const TierSpec& first = c.tiers[0];
    const bool over_network = store.limits.over_network;
    // What the links between allow it prints apart.
    if (first.write.cap_wall == Wall::network) return;
    if (over_network ? first.place != Place::storage : !first.files) return;
    // A colder tier's uploads read from the store that the next save goes to.
    if (c.tiers.size() > 1 || c.full_every > 1) return;
    const auto walls =
        over_network ? save_walls(*s, shared_store, write_caps(*s, store.limits, true))
                     : node_save_walls(*s, store.limits.client_write, store.limits.create_latency);
    const double said = seconds(longest(walls).time);
    double stall_s = 0;
    std::int64_t stalls = 0;
    for (const ReplicaResult& each : r.each) {
        stall_s += seconds(each.job.checkpoint.to_stall_end);
        stalls += each.job.checkpoint.stalls_ended;
    }
    if (stalls == 0) return;
    stall_s /= static_cast<double>(stalls);
    counts_.add("saves beside storage's walls");
    constexpr double rounding = 1e-6;  // of a second: a transfer's rates are whole bits/s
    if (std::abs(stall_s - said) > rounding + 1e-6 * said) {
        fail(fmt::format("storage says that a save takes {} s, and run stalls {} s", said, stall_s),
             {}, true);
    }
}

// ---- what must not get better, or worse ----

void Trial::bandwidth_helps(const std::string& text) {
    if (kind_ == Kind::world) {
        if (text.find("checkpoint_size") == std::string::npos) return;
        never_better(
            text, "goodput",
            {"storage.server_write_bandwidth=0.2 GB/s", "storage.server_read_bandwidth=0.2 GB/s"},
            "a slower store of many");
        return;
    }
    const std::string calm = RandomScenario(seed_, true).text();
    const Settings settings = kind_ == Kind::plan
                                  ? Settings{}
                                  : Settings{"storage.server_write_bandwidth=1000 GB/s",
                                             "storage.server_read_bandwidth=1000 GB/s"};
    if (kind_ == Kind::stores) {
        const auto slow = load(calm);
        const auto fast = load(calm, settings);
        if (!slow || !fast || slow->job.checkpoint.mode == CheckpointMode::none) return;
        counts_.add("faster stores");
        if (fast->job.checkpoint.stall_alone > slow->job.checkpoint.stall_alone) {
            fail("a faster store makes a save longer", settings, true);
        }
        return;
    }
    // Gradients at once: for one bucket NCCL may choose the slower protocol when NICs are faster.
    const std::string software = "job.software=megatron_lm";
    const auto slow = load(text, {software});
    if (!slow || slow->fidelity == Fidelity::packet) return;
    const double nic = slow->node.nic_bandwidth.bytes_per_second();
    // On flows NCCL's choice of an algorithm, made for an ideal network, may be the worse by a trifle.
    const double open = slow->fidelity == Fidelity::flow ? 0.001 : 0;
    const double longest_s = seconds(slow->job.step.duration()) * (1 + open) + 1e-9;
    for (const double times : {1.1, 2.0, 8.0}) {
        const Settings faster = {
            software, fmt::format("cluster.nic_bandwidth={:.6f} GB/s", nic * times * 1e-9)};
        const auto fast = load(text, faster);
        if (!fast) return;
        counts_.add(slow->fidelity == Fidelity::flow ? "faster NICs, flows" : "faster NICs");
        if (seconds(fast->job.step.duration()) > longest_s) {
            fail(
                fmt::format("NICs {} x as fast make a step longer: {} s, not {} s", times,
                            seconds(fast->job.step.duration()), seconds(slow->job.step.duration())),
                faster);
        }
    }
}

// `worse` must not make `metric` larger, beyond what the paired replicas leave open: six standard errors
// of the mean difference (of eight pairs; one in 2,000 of no difference goes as far), and half a point
// for what single events decide.
void Trial::never_better(const std::string& text, const char* metric, const Settings& worse,
                         const std::string& what) {
    constexpr std::int64_t pairs = 8;
    constexpr double errors_most = 6;
    constexpr double open = 0.005;
    const auto better_s = load(text, {}, pairs);
    const auto worse_s = load(text, worse, pairs);
    if (!better_s || !worse_s) return;
    const WholeCampaign a = result(*better_s);
    const WholeCampaign b = result(*worse_s);
    if (a.ending() != Ending::complete || b.ending() != Ending::complete) return;
    counts_.add(what);
    double sum = 0;
    double squares = 0;
    for (std::size_t i = 0; i < pairs; ++i) {
        const double d = value(b.each[i], metric) - value(a.each[i], metric);
        sum += d;
        squares += d * d;
    }
    const double n = pairs;
    const double difference = sum / n;
    const double variance = std::max(0.0, squares / n - difference * difference) / (n - 1);
    if (difference > errors_most * std::sqrt(variance) + open) {
        fail(fmt::format("{}: {} rises by {}, with a standard error of {}", what, metric,
                         difference, std::sqrt(variance)),
             worse);
    }
}

void Trial::failures_hurt(const std::string& text) {
    if (kind_ == Kind::world) {
        // Pods that are bound one by one wait for each other's GPUs, until a failure lets go of some.
        if (text.find("\"kubernetes\"") != std::string::npos) return;
        if (text.find("failures.cause") == std::string::npos) return;
        never_better(text, "goodput", {"failures.rate_scale=10"}, "ten times the failures of many");
        return;
    }
    if (text.find("rate_scale") == std::string::npos) return;
    const std::regex scale("rate_scale = ([0-9.]+)");
    std::smatch found;
    if (!std::regex_search(text, found, scale)) return;
    never_better(text, "goodput",
                 {fmt::format("failures.rate_scale={:.3f}", 10 * std::stod(found[1]))},
                 "ten times the failures");
}

void Trial::spares_help(const std::string& text, const Scenario& s) {
    const std::int64_t spares = s.nodes.nodes - s.job.nodes;
    if (spares < 1) return;
    never_better(text, "ettr", {fmt::format("cluster.nodes={}", s.job.nodes)}, "without spares");
}

void Trial::count_what_happened(const std::string& text, const WholeCampaign& r) {
    for (const ReplicaResult& each : r.each) {
        for (const std::int64_t n : each.job.checkpoint.restored_from) counts_.add("restores", n);
        counts_.add("losses of data", each.store.data_losses);
        counts_.add("replicas starved", each.job.data_starved > Duration{} ? 1 : 0);
        counts_.add("waits for shuffle buffers", each.job.first_batch > 0 ? 1 : 0);
        counts_.add("storms", each.job.storms);
        if (has_metric(each, "jobs")) {
            counts_.add("jobs of many", static_cast<std::int64_t>(value(each, "jobs")));
            counts_.add("saves of many", text.find("checkpoint_size") != std::string::npos ? 1 : 0);
            counts_.add("steps of many", text.find("steps = ") != std::string::npos ? 1 : 0);
        }
    }
}

std::vector<Wrong> Trial::run() {
    constexpr const char* names[] = {"stores", "plan", "many jobs"};
    const std::string name = names[static_cast<std::size_t>(kind_)];
    const std::string text = RandomScenario(seed_).text();
    const auto s = load(text);
    if (!s) {
        counts_.add(name + ", refused");
        return {};
    }
    counts_.add(name + ", ran");
    const WholeCampaign r = result(*s);
    sums_hold(*s, r);
    count_what_happened(text, r);
    threads_agree(*s, r);
    units_agree(text, r);
    if (!s->model.name.empty()) {
        plan_agrees(*s, r);
        memory_agrees(*s);
    }
    if (!s->world) {
        storage_agrees();
        spares_help(text, *s);
    }
    bandwidth_helps(text);
    failures_hurt(text);
    return wrong_;
}

// The scenario that failed, to be run again by hand.
void write_scenario(const std::string& folder, std::uint64_t seed,
                    const std::vector<Wrong>& wrong) {
    for (const bool calm : {false, true}) {
        std::string head;
        for (const Wrong& each : wrong) {
            if (each.calm != calm) continue;
            head += fmt::format("# {}\n", each.what);
            for (const std::string& setting : each.settings) {
                head += fmt::format("#   with --set \"{}\"\n", setting);
            }
        }
        if (head.empty()) continue;
        const std::string path =
            fmt::format("{}/random_{}{}.toml", folder, seed, calm ? "_calm" : "");
        std::ofstream(path) << head << RandomScenario(seed, calm).text();
        fmt::print("  railyard run {}\n", path);
    }
}

}  // namespace

}  // namespace railyard

int main(int argc, char** argv) {
    using namespace railyard;
    if (argc != 3 && argc != 4) {
        fmt::print(
            stderr,
            "usage: railyard_random_scenarios FIRST_SEED COUNT [FOLDER] | --print SEED | --calm "
            "SEED\n");
        return 2;
    }
    const std::string_view first_word = argv[1];
    const std::uint64_t number = std::strtoull(argv[2], nullptr, 10);
    if (first_word == "--print" || first_word == "--calm") {
        fmt::print("{}", RandomScenario(number, first_word == "--calm").text());
        return 0;
    }
    std::signal(SIGABRT, name_seed);
    const std::uint64_t first = std::strtoull(argv[1], nullptr, 10);
    Counts counts;
    int failed = 0;
    for (std::uint64_t seed = first; seed < first + number; ++seed) {
        seed_under_way = seed;
        const std::vector<Wrong> wrong = Trial(seed, counts).run();
        if (wrong.empty()) continue;
        ++failed;
        for (const Wrong& each : wrong) fmt::print("seed {}: {}\n", seed, each.what);
        write_scenario(argc == 4 ? argv[3] : ".", seed, wrong);
    }
    fmt::print("random_scenarios: seeds {} to {}, {} failed, {:.1f} s of CPU\n", first,
               first + number - 1, failed, process_cpu_seconds());
    for (const auto& [what, n] : counts.of) fmt::print("  {:>9}  {}\n", n, what);
    // All of these must have been tried, or the test is none.
    bool tried = true;
    for (const char* what :
         {"stores, ran", "plan, ran", "many jobs, ran", "restores", "losses of data",
          "replicas starved", "waits for shuffle buffers", "in other units", "plans beside runs",
          "saves beside storage's walls", "faster stores", "faster NICs", "faster NICs, flows",
          "ten times the failures", "ten times the failures of many", "without spares",
          "saves of many", "steps of many"}) {
        if (number < 300 || counts.of[what] > 0) continue;
        fmt::print("  nothing was tried of: {}\n", what);
        tried = false;
    }
    return failed == 0 && tried ? 0 : 1;
}
