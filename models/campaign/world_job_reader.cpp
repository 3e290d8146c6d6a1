// Reads many jobs: kinds of them, as they come, and those of a file.

#include "models/campaign/world_job_reader.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <set>

#include "models/campaign/checkpoint.h"
#include "models/campaign/data_loading.h"
#include "models/campaign/host_memory.h"
#include "models/campaign/job_plan.h"
#include "models/campaign/store_traffic.h"
#include "models/campaign/world_steps.h"
#include "models/campaign/world_transfers.h"
#include "models/scheduler/scheduler.h"
#include "sim/integers.h"

namespace railyard {

namespace {

constexpr std::int64_t jobs_max = 100'000'000;  // of a kind

class WorldJobReader {
  public:
    WorldJobReader(Section& top, const WorldReading& reading, WorldScenario& world)
        : top_(top),
          values_(reading.values),
          catalogue_(reading.catalogue),
          s_(reading.scenario),
          world_(world),
          spec_(world.spec) {}

    void read();

  private:
    void read_kind(Section& section);
    void share_store(Section& section, Bytes size, const std::shared_ptr<Scenario>& job,
                     WorldJobKind& kind);
    void move_over(const std::shared_ptr<Scenario>& job, WorldJobKind& kind);
    void read_stream(Section& section, JobSource& source);
    void read_worth(Section& section);
    void read_service(Section& section, const JobSource& source,
                      const std::shared_ptr<Scenario>& job, WorldJobKind& kind);
    void read_queue(Section& section, WorldJob& job);
    void read_arrivals(Section& section, JobSource& source);
    void read_sizes(Section& section, JobSource& source);
    void read_work(Section& section, JobSource& source);
    void read_as_of_one(Section& section, JobSource& source);
    void read_published(Section& section, JobSource& source);
    void read_requires(Section& kind_section, WorldJobKind& kind);
    std::shared_ptr<Scenario> alone(const JobSource& source) const;
    void read_model(Section& section, const JobSource& source, const std::shared_ptr<Scenario>& job,
                    WorldJobKind& kind);
    void read_kind_data(Section& section, const StepTime& step, Scenario& job);
    void read_given_data(Section& section, JobSource& source, Scenario& job, WorldJobKind& kind);
    void read_saving(Section& section, JobSource& source, const std::shared_ptr<Scenario>& view,
                     WorldJobKind& kind);
    void read_as(Section& section, const Scenario& job, WorldJobKind& kind);
    void share_stores();
    void save_as(Section& section, const std::shared_ptr<Scenario>& view, WorldJobKind& kind);
    void recover_as(Section& section, const Scenario& job, WorldJobKind& kind);
    bool whole_nodes(const JobSource& source) const {
        return source.sizes.size() == 1 && source.sizes[0].gpus % s_.node.gpus == 0 &&
               source.like.gpus_per_pod == 0 && spec_.groups.size() == 1;
    }
    void read_trace(Section& jobs);
    WorldJob job_of_trace(Section& jobs, const std::string& name,
                          const std::vector<std::string>& kinds);
    void add_trace(const JobTrace& trace, const WorldJob& like);

    Section& top_;
    ValueReader& values_;
    Catalogue& catalogue_;
    const Scenario& s_;
    WorldScenario& world_;
    WorldSpec& spec_;
    std::vector<JobWorth> worths_;       // by kind
    std::set<std::string> of_one_size_;  // kinds whose saves and launches are worked out
};

void WorldJobReader::read() {
    Section jobs = top_.section("jobs");
    for (Section& section : jobs.sections("kind", "Jobs that are alike")) read_kind(section);
    read_trace(jobs);
    jobs.finish();
    if (std::ranges::any_of(worths_, [](const JobWorth& w) { return w.job + w.gpu_hour > 0; })) {
        worths_.resize(spec_.kinds.size());
        world_.worths = std::move(worths_);
    }
    if (!top_.describing() && top_.has("scheduler") && world_.sources.empty() &&
        world_.trace.empty()) {
        jobs.error("", "there are no jobs", "give a [[jobs.kind]], or jobs.trace");
    }
}

void WorldJobReader::read_kind(Section& section) {
    WorldJobKind kind;
    JobSource source;
    section.read("name", kind.name, "What they are called", {.required = true});
    read_stream(section, source);
    section.read("checkpoint_interval", kind.checkpoint_interval,
                 "Work from one checkpoint to the next",
                 {.bound = Bound::positive, .otherwise = "nothing is saved: an end loses all"});
    section.read("checkpoint_stall", kind.checkpoint_stall, "How long each stops the job",
                 {.bound = Bound::non_negative});
    std::optional<Bytes> size;
    section.read(
        "checkpoint_size", size,
        "Bytes of each save, written to and read back from [storage], which all jobs share",
        {.bound = Bound::positive,
         .otherwise = "saves and restores take checkpoint_stall and restore"});
    section.read("restart", kind.restart, "Each start: launch, imports, communicators",
                 {.bound = Bound::non_negative});
    section.read("restore", kind.restore, "Each start with a saved state: reading it back",
                 {.bound = Bound::non_negative});
    section.read(
        "own_failure_rate_per_gpu", kind.own_failure_rate_per_gpu,
        "Failures of a job per running time of each of its GPUs that no node is to blame for",
        {.bound = Bound::non_negative});
    section.read("requeue", kind.requeue,
                 "It waits again when it fails or its nodes do (JobRequeue)");
    section.read("resubmit", kind.resubmit, "It waits again when its time limit ends it");
    section.read("restarts_max", kind.restarts_max, "After so many it is given up",
                 {.bound = Bound::non_negative});
    read_requires(section, kind);
    world_.models.emplace_back();
    const std::shared_ptr<Scenario> job = alone(source);
    read_model(section, source, job, kind);
    read_saving(section, source, job, kind);
    read_service(section, source, job, kind);
    read_worth(section);
    read_kube_jobs(section, spec_, kind, source);
    section.finish();
    if (size) share_store(section, *size, job, kind);
    for (const char* key : {"checkpoint_stall", "restore", "checkpoint_size"}) {
        if (!section.has("checkpoint_interval") && section.has(key)) {
            section.warning(key, "has no effect without checkpoint_interval");
        }
    }
    source.like.kind = static_cast<std::uint32_t>(spec_.kinds.size());
    spec_.kinds.push_back(kind);
    if (source.count > 0) world_.sources.push_back(source);
}

void WorldJobReader::read_worth(Section& section) {
    JobWorth& worth = worths_.emplace_back();
    section.read(
        "worth", worth.job,
        "What a job of it counts in work_done when it is done; in part, what is kept of it",
        {.bound = Bound::non_negative});
    section.read("worth_per_gpu_hour", worth.gpu_hour,
                 "What each GPU-hour of its work counts in work_done, as far as it is kept",
                 {.bound = Bound::non_negative});
    if (section.has("worth_per_gpu_hour") && section.has("model")) {
        section.error("worth_per_gpu_hour",
                      "an hour of faster GPUs is more of a model's work than one of slower ones",
                      "worth: of a whole job");
    }
}

// What a service does between requests, and what it sends. Its step is the tick of work without a model.
void WorldJobReader::read_service(Section& section, const JobSource& source,
                                  const std::shared_ptr<Scenario>& job, WorldJobKind& kind) {
    section.read("duty", kind.duty,
                 "Without a model: the share of its work in which its GPUs compute; else they wait "
                 "for requests (data_wait)",
                 {.bound = Bound::fraction});
    double share = 0;
    section.read(
        "fabric_share", share,
        "Without a model: the share of its work in which it sends, over a ring through its "
        "GPUs, as fast as its NICs are when nobody else does",
        {.bound = Bound::fraction});
    if (section.describing()) return;
    for (const char* key : {"duty", "fabric_share"}) {
        if (section.has(key) && section.has("model")) {
            section.error(key, "has no effect beside model: its steps say it");
        }
    }
    if (kind.duty <= 0) section.error("duty", "expected more than 0: such jobs do nothing");
    if (share <= 0 || !section.ok()) return;
    if (!whole_nodes(source)) {
        section.error("fabric_share",
                      "a job with it has one size and whole nodes of the cluster's one kind");
    } else if (s_.fidelity == Fidelity::analytic) {
        section.warning("fabric_share", "has no effect with run.fidelity = \"analytic\"");
    } else {
        job->collective_constants = read_collective_constants(catalogue_, s_.node);
        constexpr double tick_s = 1e-3;
        const double step_s = kind.given_step > Duration{} ? seconds(kind.given_step) : tick_s;
        kind.traffic = share_by_placement(job, share, step_s);
    }
}

void WorldJobReader::share_store(Section& section, Bytes size, const std::shared_ptr<Scenario>& job,
                                 WorldJobKind& kind) {
    for (const char* key : {"checkpoint_stall", "restore"}) {
        if (!section.has(key)) continue;
        section.error(key,
                      "has no effect beside checkpoint_size: the store says how long it takes");
    }
    if (top_.describing() || !section.ok() || kind.checkpoint_interval == Duration{}) return;
    const StoreSetup& store = s_.stores[shared_store];
    if (store.supply.write.bits_per_second() <= 0 || store.supply.read.bits_per_second() <= 0 ||
        transfer_time(size, std::min(store.supply.write, store.supply.read)) > time_max) {
        section.error("checkpoint_size", "writing it to [storage] takes more than 100 years");
        return;
    }
    const CheckpointWriters each_rank{
        .ranks = 1,
        .nodes = 1,
        .files = catalogue_.integer("checkpoint", "", "creates_per_rank"),
        .serialization =
            catalogue_.bandwidth("checkpoint", "", "serialization_bandwidth_per_rank")};
    kind.saving = saves_to_storage(s_, size, each_rank);
    if (kind.data) {  // both move over the same paths
        kind.saving->network = job->job.network;
        kind.saving->store_paths = job->job.store_paths;
    }
    job->checkpoint_size = size;
    job->checkpoint_writers = each_rank;
    job->checkpoint_writers.ranks = job->job.gpus();
    job->checkpoint_writers.files *= job->job.gpus();
    move_over(job, kind);
}

// What the kind's jobs save and restore, on the network that leads to the store.
void WorldJobReader::move_over(const std::shared_ptr<Scenario>& job, WorldJobKind& kind) {
    share_stores();
    if (!shares_network_with_store(*job)) return;
    kind.transfer_traffic = steps_by_placement(job, {}, {}).transfer;
}

void WorldJobReader::read_queue(Section& section, WorldJob& job) {
    std::string partition = spec_.partitions[0].name;
    std::string qos = spec_.slurm.qos[0].name;
    std::string account = spec_.accounts[0];
    const auto first = [](const char* what) { return KeyRules{.otherwise = what}; };
    section.name("partition", partition, own_names(section, names_of(spec_.partitions)),
                 "a [[partition]]", "Where they wait", first("the first"));
    section.name("qos", qos, own_names(section, names_of(spec_.slurm.qos)), "a [[scheduler.qos]]",
                 "Their QOS", first("the first"));
    section.no_effect(unless_under({"slurm"}, spec_));
    section.name("account", account, own_names(section, spec_.accounts), "a [[scheduler.account]]",
                 "Who pays", first("the first"));
    section.no_effect("");
    job.partition = index_of(names_of(spec_.partitions), partition);
    job.qos = index_of(names_of(spec_.slurm.qos), qos);
    job.account = index_of(spec_.accounts, account);
}

void WorldJobReader::read_arrivals(Section& section, JobSource& source) {
    Duration at{};
    section.read("at", at, "When the first is submitted; of a stream, when it begins",
                 {.bound = Bound::non_negative});
    source.like.submit = Instant(at);
    section.read("rate", source.rate, "How often one is submitted, at random",
                 {.bound = Bound::non_negative, .otherwise = "all at once"});
    source.count = source.rate.per_second > 0 ? jobs_max : 1;
    section.read("count", source.count, "How many at most",
                 {.bound = Bound::non_negative, .otherwise = "1; of a stream any number"});
    if (source.count > jobs_max) {
        section.error("count",
                      fmt::format("expected at most {}, found {}", jobs_max, source.count));
        source.count = 1;
    }
}

void WorldJobReader::read_sizes(Section& section, JobSource& source) {
    section.read("gpus", source.like.gpus, "GPUs of each", {.bound = Bound::count});
    for (Section& size : section.sections("size", "One of several sizes, instead of gpus")) {
        JobSource::Size one;
        size.read("gpus", one.gpus, "GPUs", {.bound = Bound::count, .required = true});
        size.read("share", one.share, "How many jobs have it, in proportion to the others",
                  {.bound = Bound::positive, .required = true});
        size.finish();
        source.sizes.push_back(one);
    }
    if (!source.sizes.empty() && section.has("gpus")) {
        section.error("gpus", "has no effect beside [[jobs.kind.size]]");
    }
    if (source.sizes.empty()) source.sizes.push_back({source.like.gpus, 1, {}});
}

void WorldJobReader::read_work(Section& section, JobSource& source) {
    source.mean = std::chrono::hours(1);
    section.read("work", source.mean, "Productive time of each, on average",
                 {.bound = Bound::positive});
    source.median = source.mean;
    section.read("work_median", source.median, "Half of them take less: a log-normal distribution",
                 {.bound = Bound::positive, .otherwise = "work: all are alike"});
    if (source.median > source.mean) {
        section.error("work_median",
                      "expected no more than work, the mean of a log-normal distribution");
        source.median = source.mean;
    }
}

void WorldJobReader::read_stream(Section& section, JobSource& source) {
    WorldJob& job = source.like;
    read_queue(section, job);
    read_arrivals(section, source);
    read_sizes(section, source);
    job.gpus_per_pod = 0;
    section.read("gpus_per_pod", job.gpus_per_pod, "GPUs of a job on each of its nodes",
                 {.bound = Bound::count, .otherwise = "all of a node"});
    read_work(section, source);
    section.read("limit", job.limit, "Time limit of each run",
                 {.bound = Bound::positive, .otherwise = "the partition's"});
    section.read("limit_factor", source.limit_factor, "Time limit in proportion to the work",
                 {.bound = Bound::positive, .otherwise = "limit"});
    read_as_of_one(section, source);
    if (section.has("limit") && section.has("limit_factor")) {
        section.error("limit_factor", "has no effect beside limit");
    }
    read_published(section, source);
    section.no_effect(unless_under({"slurm"}, spec_));
    section.read("switches", job.switches_max, "Leaves that it wants to be on at most (--switches)",
                 {.bound = Bound::positive, .otherwise = "any number"});
    job.switches_wait = spec_.slurm.switches_wait_max;
    section.read("switches_wait", job.switches_wait, "How long it waits for that",
                 {.bound = Bound::non_negative, .otherwise = "scheduler.switches_wait_max"});
    section.no_effect("");
}

// What a [job] says of its size and its length.
void WorldJobReader::read_as_of_one(Section& section, JobSource& source) {
    std::optional<std::int64_t> nodes;
    std::optional<Duration> length;
    section.read("nodes", nodes, "Whole nodes of each, as of a [job]",
                 {.bound = Bound::count, .otherwise = "gpus"});
    section.read("length", length, "Training time of each, as of a [job]",
                 {.bound = Bound::positive, .otherwise = "work"});
    const auto says = [&](const char* key, std::initializer_list<const char*> others) {
        for (const char* other : others) {
            if (section.has(key) && section.has(other)) {
                section.error(other, fmt::format("has no effect beside {}", key));
            }
        }
    };
    says("nodes", {"gpus", "size", "gpus_per_pod", "stream"});
    says("length", {"work", "work_median", "stream", "steps"});
    if (nodes && spec_.groups.size() > 1) {
        section.error("nodes", "nodes of several kinds have each their own number of GPUs",
                      "give gpus");
    }
    if (nodes) source.sizes = {{*nodes * s_.node.gpus, 1, {}}};
    if (length) source.mean = source.median = *length;
}

// A stream of the catalogue says all of its jobs; how many come, a scenario may.
void WorldJobReader::read_published(Section& section, JobSource& source) {
    std::vector<std::string> names = Catalogue::names("job_stream");
    std::erase(names, "all");
    std::string name;
    section.name("stream", name, names, "a job stream in the catalogue",
                 "Sizes, work and rate of a published trace's jobs",
                 {.otherwise = "none: size, work and rate"});
    if (name.empty()) return;
    for (const char* key : {"gpus", "size", "work", "work_median"}) {
        if (section.has(key)) section.error(key, "has no effect beside stream");
    }
    if (!section.ok() || section.describing()) return;
    if (!section.has("rate")) {
        source.rate.per_second = catalogue_.number("job_stream", name, "jobs") /
                                 seconds(catalogue_.time("job_stream", name, "observation_time"));
        if (!section.has("count")) source.count = jobs_max;
    }
    const auto shape = shape_of(read_published_stream(catalogue_, name));
    if (shape) {
        follow(*shape, source);
    } else {
        section.error("stream", fmt::format("no jobs have the means and medians of {}", name),
                      "change job_stream." + name + " in [override] back");
    }
}

void WorldJobReader::read_requires(Section& kind_section, WorldJobKind& kind) {
    Section section = kind_section.section("requires");
    GpuRequest request;
    section.name("gpu", request.kind, catalogue_.all_names("gpu"), "a GPU in the catalogue",
                 "Which GPUs", {.otherwise = "any"});
    read_slice_request(section, kind_section, spec_, request);
    section.read("gpu_memory", request.memory, "Memory of each GPU at least",
                 {.bound = Bound::positive, .otherwise = "any"});
    section.read("nvlink_domain", request.nvlink_domain,
                 "GPUs that reach each other over NVLink at least",
                 {.bound = Bound::positive, .otherwise = "any, or none"});
    std::optional<double> capability;
    section.read("compute_capability", capability, "CUDA's, at least",
                 {.bound = Bound::positive, .otherwise = "any"});
    section.finish();
    if (capability) request.compute_capability10 = std::llround(10 * std::min(*capability, 1000.0));
    const auto known = std::find(spec_.requests.begin(), spec_.requests.end(), request);
    kind.request = static_cast<std::uint32_t>(known - spec_.requests.begin());
    if (known == spec_.requests.end()) spec_.requests.push_back(request);
}

// The cluster with one job of these.
std::shared_ptr<Scenario> WorldJobReader::alone(const JobSource& source) const {
    auto job = std::make_shared<Scenario>(s_);
    job->world.reset();
    job->job.nodes = std::max<std::int64_t>(1, source.sizes[0].gpus / s_.node.gpus);
    job->nodes.job_nodes = job->job.nodes;
    job->job.gpus_per_node = s_.node.gpus;
    job->job.checkpoint.mode = CheckpointMode::none;
    job->job.recovery.policy = RecoveryPolicy::requeue;
    return job;
}

void WorldJobReader::read_model(Section& section, const JobSource& source,
                                const std::shared_ptr<Scenario>& view, WorldJobKind& kind) {
    std::string model;
    section.name("model", model, catalogue_.all_names("model"), "a model in the catalogue",
                 "What is trained: a step takes as long as on the nodes that the job has got",
                 {.otherwise = "none: work goes on at the clock's pace"});
    if (!model.empty()) view->model = railyard::read_model(catalogue_, model);
    read_job_plan(section, values_, catalogue_, {}, *view);
    kind.steps = 0;
    section.read(
        "steps", kind.steps, "Steps of each job",
        {.bound = Bound::positive, .otherwise = "work, with all of the cluster's first nodes"});
    if (model.empty()) {
        for (const char* key : {"steps", "parallel"}) {
            if (section.has(key)) section.error(key, "has no effect without model");
        }
        return;
    }
    if (!whole_nodes(source)) {
        section.error("model",
                      "a job with a model has one size and whole nodes of the cluster's one kind");
    }
    if (!section.ok() || top_.describing()) return;
    view->tokens_per_step = view->plan.global_batch * view->plan.sequence_length;
    view->optimizer_traffic = catalogue_.number("bytes_per_param", "", "optimizer_step_traffic");
    view->collective_constants = read_collective_constants(catalogue_, s_.node);
    PlacedSteps placed = steps_by_placement(view, {}, {});
    kind.step = std::move(placed.step);
    kind.traffic = std::move(placed.traffic);
    kind.routes = std::move(placed.routes);
    world_.models.back() = view;
    const bool reads = section.has("data");
    if (kind.steps > 0 && !reads) return;
    std::vector<NodeIndex> nodes;
    for (std::int64_t n = 0; n < view->job.nodes; ++n) nodes.push_back(static_cast<NodeIndex>(n));
    if (reads) read_kind_data(section, kind.step(nodes, 0, {}), *view);
    if (kind.steps > 0) return;
    const StepTime step = kind.step(nodes, 0, {});  // with its wait for data
    if (section.has("length")) {
        kind.steps = ceil_div(source.mean.count(), step.duration().count());
    } else {
        kind.steps = std::max<std::int64_t>(1, source.mean / (step.duration() - step.degraded));
    }
}

// ---- what [job] says of its data, of saving and of coming back ----

// For a step that has its data at hand.
void WorldJobReader::read_kind_data(Section& section, const StepTime& step, Scenario& job) {
    job.job.step = step;
    join_data(section, catalogue_, {}, job);
    if (!job.data) return;
    if (job.data->source == DataSource::object_store) {
        section.section("data").error(
            "source",
            fmt::format("an object store is not modelled of many jobs, under {}", spec_.scheduler),
            "source = \"storage\", or \"local\"");
    }
    check_host_memory(section, catalogue_, job);
}

// Without a model: a step that was measured.
void WorldJobReader::read_given_data(Section& section, JobSource& source, Scenario& job,
                                     WorldJobKind& kind) {
    if (kind.given_step == Duration{}) {
        section.error("data", "has no effect without model or step.time");
        return;
    }
    StepTime step;
    step.compute = kind.given_step;
    read_kind_data(section, step, job);
    kind.data_wait = job.job.step.data_wait;
    if (!section.has("length")) return;
    source.mean = source.median =
        ceil_div(source.mean.count(), job.job.step.duration().count()) * kind.given_step;
}

// Read as of one job, and refused where many can't do it yet.
void WorldJobReader::read_saving(Section& section, JobSource& source,
                                 const std::shared_ptr<Scenario>& view, WorldJobKind& kind) {
    Scenario& job = *view;
    if (section.has("data")) section.section("data");  // beside another mistake nobody has read it
    kind.given_step = read_given_step(section).value_or(Duration{});
    if (section.has("step") && section.has("model")) {
        section.error("step", "has no effect beside model: their places say what a step takes");
    }
    const bool saves = section.has("checkpoint");
    const bool recovers = section.has("recovery");
    const bool reads = section.has("data");
    if (section.describing() || (!saves && !recovers && !reads)) return;
    if (!whole_nodes(source)) {
        section.error(saves      ? "checkpoint"
                      : recovers ? "recovery"
                                 : "data",
                      "a job with it has one size and whole nodes of the cluster's one kind");
    }
    join_stores(job);
    if (reads && !section.has("model")) read_given_data(section, source, job, kind);
    const Duration data_wait = job.job.step.data_wait;
    // Work without steps can end at any instant.
    job.job.step.compute = kind.given_step > Duration{} ? kind.given_step : Duration(1);
    if (kind.step && section.ok()) job.job.step = usual_step(kind, job.job.nodes, 0);
    job.job.step.data_wait = data_wait;
    if (saves) read_checkpoint(section, catalogue_, job, {});
    if (recovers) join_recovery(section, catalogue_, job);
    of_one_size_.insert(kind.name);
    if (saves) save_as(section, view, kind);
    if (recovers) recover_as(section, job, kind);
    if (job.job.data && section.ok()) read_as(section, job, kind);
}

// From a store that all jobs share, or through shuffle buffers: a run goes stage by stage.
void WorldJobReader::read_as(Section& section, const Scenario& job, WorldJobKind& kind) {
    kind.data = std::make_shared<const DataFeedSpec>(*job.job.data);
    if (!kind.data->alone) share_stores();
    if (kind.saving) return;
    for (const char* key : {"checkpoint_interval", "checkpoint_stall"}) {
        if (!section.has(key) || section.has("checkpoint_size")) continue;
        section.error(key, "stalls that are given don't go with data that is read from a store",
                      "[jobs.kind.checkpoint], or checkpoint_size");
    }
    CheckpointSpec none;
    none.mode = CheckpointMode::none;
    none.tiers.emplace_back();  // where it would go
    const auto nothing = std::make_shared<const CheckpointSpec>(std::move(none));
    kind.saving = {[nothing](std::int64_t, std::int64_t) { return nothing; }};
    if (kind.data->alone) return;
    kind.saving->network = job.job.network;
    kind.saving->store_paths = job.job.store_paths;
}

void WorldJobReader::share_stores() {
    const StoreSetup& store = s_.stores[shared_store];
    if (spec_.stores.empty()) spec_.stores.push_back({store.name, store.supply});
}

void WorldJobReader::save_as(Section& section, const std::shared_ptr<Scenario>& view,
                             WorldJobKind& kind) {
    const Scenario& job = *view;
    Section checkpoint = section.section("checkpoint");
    const CheckpointSpec& c = job.job.checkpoint;
    for (const char* key : {"checkpoint_interval", "checkpoint_stall", "checkpoint_size"}) {
        if (section.has(key)) section.error(key, "has no effect beside [jobs.kind.checkpoint]");
    }
    if (c.mode == CheckpointMode::none) return;
    const bool steps = kind.step || kind.given_step > Duration{};
    if (!steps && c.mode == CheckpointMode::async) {
        checkpoint.error("mode", "work without steps has none that an upload could slow down",
                         "give a model, or step.time");
    }
    if (!steps && c.interval_steps > 0 && job.checkpoint_clock.empty()) {
        checkpoint.error("interval", "work without steps has none to count",
                         "give it as a time, or a model, or step.time");
    }
    if (!section.ok()) return;
    check_host_memory(section, catalogue_, job);
    constexpr double never_s = 1e9;
    kind.checkpoint_interval = from_seconds(std::min(
        never_s, seconds(job.job.step.duration()) * static_cast<double>(c.interval_steps)));
    if (steps) kind.checkpoint_steps = c.interval_steps;
    kind.by_wall_clock = c.interval_wall > Duration{};
    if (kind.by_wall_clock) kind.checkpoint_interval = c.interval_wall;
    move_over(view, kind);
    CheckpointSpec saves = c;
    kind.uploads_on_links = kind.transfer_traffic && !checkpoint.has("upload_slowdown");
    if (kind.uploads_on_links) {  // they say what each costs whom
        saves.upload_step_penalty = {};
        for (TierSpec& tier : saves.tiers) tier.beside_steps = unlimited;
    }
    const auto spec = std::make_shared<const CheckpointSpec>(std::move(saves));
    kind.saving = {[spec](std::int64_t, std::int64_t) { return spec; }, job.job.network,
                   job.job.store_paths};
}

void WorldJobReader::recover_as(Section& section, const Scenario& job, WorldJobKind& kind) {
    Section recovery = section.section("recovery");
    const RecoverySpec& r = job.job.recovery;
    for (const char* key : {"restart", "restore"}) {
        if (section.has(key)) section.error(key, "has no effect beside [jobs.kind.recovery]");
    }
    for (const char* key : {"replacement", "replicas_min", "image", "dataset_index"}) {
        if (!recovery.has(key)) continue;
        recovery.error(key, fmt::format("is not modelled of many jobs, under {}", spec_.scheduler),
                       "scheduler.kind = \"dedicated\", with this kind alone");
    }
    if (r.policy != RecoveryPolicy::requeue) {
        recovery.error("policy",
                       fmt::format("under {} a job that fails is the scheduler's to place "
                                   "again",
                                   spec_.scheduler),
                       "policy = \"requeue\"");
    }
    if (!r.recompute) recovery.error("recompute", "many jobs lose what they have not saved");
    if (kind.saving && r.restore) {
        recovery.error("restore", "has no effect: the store says how long it takes",
                       "leave it out, or [jobs.kind.checkpoint]");
    }
    kind.restart = r.restart;
    kind.restore = r.restore.value_or(Duration{});
}

WorldJob WorldJobReader::job_of_trace(Section& jobs, const std::string& name,
                                      const std::vector<std::string>& kinds) {
    WorldJob like;
    like.gpus_per_pod = 0;
    if (name.empty()) {
        like.kind = static_cast<std::uint32_t>(spec_.kinds.size());
        spec_.kinds.push_back({.name = "trace"});
        world_.models.emplace_back();
    } else {
        like.kind = index_of(kinds, name);
        if (spec_.kinds[like.kind].step) {
            jobs.error("trace_kind", "a trace says how long its jobs take, and so does a model");
        }
        if (of_one_size_.contains(name)) {
            jobs.error(
                "trace_kind",
                "a trace says how large its jobs are; checkpoint and recovery are worked out "
                "for the size of the kind",
                "give checkpoint_interval, checkpoint_stall, restart and restore");
        }
        if (!spec_.requests[spec_.kinds[like.kind].request].slice.empty()) {
            jobs.error("trace_kind",
                       "a trace says how many GPUs its jobs have; a slice is less than one");
        }
    }
    return like;
}

void WorldJobReader::add_trace(const JobTrace& trace, const WorldJob& like) {
    spec_.trace_ids = trace.ids;
    const std::vector<std::string> partitions = names_of(spec_.partitions);
    for (std::size_t i = 0; i < trace.jobs.size(); ++i) {
        const StreamJob& job = trace.jobs[i];
        WorldJob out = like;
        out.submit = Instant(job.submit);
        out.gpus = job.gpus;
        out.work = job.duration;
        out.limit = job.limit;
        out.trace_row = static_cast<std::uint32_t>(i + 1);
        if (!trace.partition_names.empty()) {
            out.partition = index_of(partitions, trace.partition_names[trace.partitions[i]]);
        }
        if (!trace.user_names.empty()) {
            out.account = index_of(spec_.accounts, trace.user_names[trace.users[i]]);
        }
        world_.trace.push_back(out);
    }
    std::stable_sort(world_.trace.begin(), world_.trace.end(),
                     [](const WorldJob& a, const WorldJob& b) { return a.submit < b.submit; });
    if (world_.trace.empty()) return;
    const Instant first = world_.trace.front().submit;  // the campaign begins with it
    for (WorldJob& job : world_.trace) job.submit -= first - Instant{};
}

// Jobs from a file are of the kind that jobs.trace_kind names.
void WorldJobReader::read_trace(Section& jobs) {
    const std::string path =
        jobs.file("trace",
                  "A file of jobs: CSV, sacct -P, or the Standard Workload Format; its folder is "
                  "the scenario's");
    TraceReading reading;
    jobs.read("time_unit", reading.time_unit, "Unit of the times in a CSV",
              {.bound = Bound::positive});
    jobs.read("skip_bad", reading.skip_bad, "Malformed lines are left out");
    const std::vector<std::string> kinds = names_of(spec_.kinds);
    std::string name;
    jobs.name("trace_kind", name, own_names(jobs, kinds), "a [[jobs.kind]]",
              "What its jobs are like",
              {.otherwise = "they save nothing and wait in the first partition"});
    if (path.empty()) {
        for (const char* key : {"time_unit", "skip_bad", "trace_kind"}) {
            if (jobs.has(key)) jobs.error(key, "has no effect without jobs.trace");
        }
        return;
    }
    const WorldJob like = job_of_trace(jobs, name, kinds);
    const JobTrace trace = read_job_trace(path, reading);
    for (const std::string& text : trace.warnings()) jobs.warning("trace", text);
    if (jobs.has("time_unit") && trace.format != TraceFormat::csv) {
        jobs.warning("time_unit", "has no effect: the trace is no CSV");
    }
    add_trace(trace, like);
}

}  // namespace

void read_world_jobs(Section& top, const WorldReading& reading, WorldScenario& world) {
    WorldJobReader(top, reading, world).read();
}

}  // namespace railyard
