// Reads many jobs: kinds of them, as they come, and those of a file.

#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "models/campaign/host_memory.h"
#include "models/campaign/save_walls.h"
#include "models/campaign/sections.h"
#include "models/campaign/store_traffic.h"
#include "models/campaign/store_ways.h"
#include "models/campaign/world_steps.h"
#include "sim/integers.h"

namespace railyard {

namespace {

// Each save moves `size` bytes, written by every rank and read by all nodes at once, as a job alone does it:
// its ranks' serialisation, its nodes' clients, its files, and the store's own supply bound it; loading is
// `load_share` as fast as reading.
WorldSaving saves_to_storage(const Scenario& s, Bytes size, const CheckpointWriters& each_rank,
                             double load_share) {
    const StoreSetup store = s.stores[shared_store];
    const bool fair_by_job = s.fair_by_job;
    return {[=](std::int64_t gpus, std::int64_t nodes) {
        const StoreLimits& limits = store.limits;
        const std::int64_t files = gpus * each_rank.files;
        CheckpointSpec out;
        out.size = size;
        TierSpec& tier = out.tiers.emplace_back();
        for (TransferSpec* transfer : {&tier.write, &tier.read}) {
            transfer->store = shared_store;
            transfer->files = files;
            transfer->weight = fair_by_job ? 1 : nodes;
            transfer->cap = unlimited;
        }
        tier.write.direction = Direction::write;
        lower(tier.write, each_rank.serialization * gpus, Wall::serialisation);
        lower(tier.write, limits.client_write * nodes, Wall::client);
        lower(tier.write, limits.file_write * files, Wall::files);
        tier.write.files_per_s = files_per_second(gpus, limits.create_latency);
        tier.read.direction = Direction::read;
        lower(tier.read, least(limits.read).bandwidth * load_share, Wall::store);
        lower(tier.read, limits.client_read * nodes * load_share, Wall::client);
        lower(tier.read, limits.file_read * files, Wall::files);
        tier.read.files_per_s = files_per_second(gpus, limits.open_latency);
        out.stall_alone = transfer_time(size, std::min(tier.write.cap, store.supply.write));
        return std::make_shared<const CheckpointSpec>(std::move(out));
    }};
}

class WorldJobReader {
  public:
    WorldJobReader(Section& top, ValueReader& values, Catalogue& catalogue,
                   const Scenario& scenario, WorldScenario& world)
        : top_(top),
          values_(values),
          catalogue_(catalogue),
          s_(scenario),
          world_(world),
          spec_(world.spec) {}

    void read();

  private:
    void read_kind(Section& section);
    void share_store(Section& section, Bytes size, const std::shared_ptr<Scenario>& job,
                     WorldJobKind& kind);
    void move_over(const std::shared_ptr<Scenario>& job, WorldJobKind& kind);
    void refuse_of_many(Section& section, const char* key) const;
    void warn_of_short_limit(Section& section, const JobSource& source,
                             const WorldJobKind& kind) const;
    void read_worth(Section& section);
    void read_service(Section& section, const JobSource& source,
                      const std::shared_ptr<Scenario>& job, WorldJobKind& kind);
    std::shared_ptr<Scenario> alone(const JobSource& source) const;
    void read_model(Section& section, const JobSource& source, const std::shared_ptr<Scenario>& job,
                    WorldJobKind& kind);
    void read_kind_data(Section& section, const StepTime& step, Scenario& job, WorldJobKind& kind);
    void read_given_data(Section& section, Scenario& job, WorldJobKind& kind);
    void read_saving(Section& section, JobSource& source, const std::shared_ptr<Scenario>& view,
                     WorldJobKind& kind);
    void read_as(Section& section, const std::shared_ptr<Scenario>& view, WorldJobKind& kind);
    void share_stores(const Scenario& job);
    void save_as(Section& section, const std::shared_ptr<Scenario>& view, WorldJobKind& kind);
    void recover_as(Section& section, const std::shared_ptr<Scenario>& view, WorldJobKind& kind);
    void shrink_as(Section& section, Section& recovery, const std::shared_ptr<Scenario>& view,
                   WorldJobKind& kind);
    // A kind that reads and does not save: its runs have stages all the same.
    void go_by_stages(const Scenario& job, WorldJobKind& kind);
    bool whole_nodes(const JobSource& source) const {
        return source.sizes.size() == 1 && source.sizes[0].gpus % s_.node.gpus == 0 &&
               source.like.gpus_per_pod == 0 && spec_.groups.size() == 1;
    }

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
    const bool sound = jobs.ok();
    for (Section& section : jobs.sections("kind", "Jobs that are alike")) {
        if (sound) {  // a mistake in one kind hides none of the next
            values_.diagnostics().apart([&] { read_kind(section); });
        } else {
            read_kind(section);
        }
    }
    world_.trace = read_trace_jobs(jobs, world_.sources, of_one_size_, spec_);
    world_.models.resize(spec_.kinds.size());
    world_.data.resize(spec_.kinds.size());
    jobs.finish();
    if (std::ranges::any_of(worths_, [](const JobWorth& w) { return w.job + w.gpu_hour > 0; })) {
        worths_.resize(spec_.kinds.size());
        world_.worths = std::move(worths_);
    }
    const bool any = !world_.trace.empty() ||
                     std::ranges::any_of(world_.sources,
                                         [](const JobSource& source) { return source.count > 0; });
    if (!top_.describing() && top_.has("scheduler") && !any) {
        jobs.error("", "there are no jobs", "give a [[jobs.kind]], or jobs.trace");
    }
}

void WorldJobReader::read_kind(Section& section) {
    auto [kind, source, size] = read_job_kind(section, catalogue_, s_.node.gpus, spec_);
    world_.models.emplace_back();
    const std::shared_ptr<Scenario> job = alone(source);
    read_model(section, source, job, kind);
    read_saving(section, source, job, kind);
    world_.data.push_back(job->data);
    read_service(section, source, job, kind);
    read_worth(section);
    read_kube_jobs(section, spec_, kind, source);
    if (!kind.smaller.empty() && kind.kube.topology != TopologyRequest::none) {
        section.error("topology", "a workload with one keeps to its size, and recovery shrinks it",
                      "leave it out, or jobs.kind.recovery.policy = \"requeue\"");
    }
    for (const char* key : {"stage", "pause"}) {
        if (section.describing() || !section.has(key)) continue;
        section.sections(key, "");
        refuse_of_many(section, key);
    }
    section.finish();
    if (size) share_store(section, *size, job, kind);
    if (!section.has("checkpoint_interval")) {
        warn_of_keys(section, {"checkpoint_stall", "restore", "checkpoint_size"},
                     "has no effect without checkpoint_interval");
    }
    warn_of_short_limit(section, source, kind);
    source.like.kind = static_cast<std::uint32_t>(spec_.kinds.size());
    spec_.kinds.push_back(kind);
    world_.sources.push_back(source);
}

// Jobs that are submitted again for ever because they never get to work.
void WorldJobReader::warn_of_short_limit(Section& section, const JobSource& source,
                                         const WorldJobKind& kind) const {
    const bool limited = source.limit_factor == 0 && has_time_limit(spec_, source.like);
    if (!kind.resubmit || !limited) return;
    const Duration limit = time_limit(spec_, source.like);
    const Duration restore = kind.checkpoint_interval > Duration{} ? kind.restore : Duration{};
    const Duration left = limit - spec_.health.prolog_time - kind.restart;
    if (left > restore) return;
    section.warning("resubmit",
                    fmt::format("a start takes all of the time limit, {}: {}", to_text(limit),
                                left > Duration{} ? "what is not done in the first run never is"
                                                  : "no run ever gets to work"),
                    "a longer limit, or resubmit = false");
}

// What one job can, and many can't yet.
void WorldJobReader::refuse_of_many(Section& section, const char* key) const {
    refuse_keys(section, {key},
                fmt::format("is not modelled of many jobs, under {}", spec_.scheduler),
                "scheduler.kind = \"dedicated\", with this kind alone");
}

void WorldJobReader::read_worth(Section& section) {
    JobWorth& worth = worths_.emplace_back();
    section.read(
        "worth", worth.job,
        "What a job of it counts in work_done when it is done; in part, what is kept of it",
        {Bound::non_negative});
    section.read("worth_per_gpu_hour", worth.gpu_hour,
                 "What each GPU-hour of its work counts in work_done, as far as it is kept",
                 {Bound::non_negative});
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
                 {Bound::fraction});
    double share = 0;
    section.read("fabric_share", share,
                 "Without a model: the share of its work in which it sends, over a ring through "
                 "its GPUs, at the rate of its NICs while nobody else sends",
                 {Bound::fraction});
    if (section.describing()) return;
    if (section.has("model")) {
        refuse_keys(section, {"duty", "fabric_share"},
                    "has no effect beside model: its steps say it");
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
    refuse_keys(section, {"checkpoint_stall", "restore"},
                "has no effect beside checkpoint_size: the store says how long it takes");
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
    kind.saving =
        saves_to_storage(s_, size, each_rank,
                         catalogue_.number("checkpoint", "", "load_fraction_of_read_bandwidth"));
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
    share_stores(*job);
    if (!shares_network_with_store(*job)) return;
    kind.transfer_traffic = steps_by_placement(job, {}, {}).transfer;
    kind.store_way = store_ways(job);
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
    // The cluster has no place for it, and no way between its nodes: it will be refused.
    if (job->job.nodes > s_.nodes.nodes) job->fidelity = Fidelity::analytic;
    return job;
}

void WorldJobReader::read_model(Section& section, const JobSource& source,
                                const std::shared_ptr<Scenario>& view, WorldJobKind& kind) {
    std::string model;
    section.name("model", model, catalogue_.all_names("model"), "a model in the catalogue",
                 "What is trained: a step takes as long as on the nodes that the job has got",
                 {.otherwise = "none: work goes on at the clock's pace"});
    if (!model.empty()) view->model = railyard::read_model(catalogue_, model);
    read_job_plan(section, values_, catalogue_, {}, false, *view);
    kind.steps = 0;
    section.read("steps", kind.steps, "Steps of each job",
                 {Bound::positive, "work, with all of the cluster's first nodes"});
    if (model.empty()) {
        refuse_keys(section, {"steps", "parallel"}, "has no effect without model");
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
    place_steps(view, {}, {}, kind);
    world_.models.back() = view;
    const bool reads = section.has("data");
    const bool estimated = spec_.estimate == RuntimeEstimate::work;
    if (kind.steps > 0 && !reads && !estimated) return;
    std::vector<NodeIndex> nodes;
    for (std::int64_t n = 0; n < view->job.nodes; ++n) nodes.push_back(static_cast<NodeIndex>(n));
    if (reads) read_kind_data(section, kind.step(nodes, 0, {}), *view, kind);
    if (kind.steps > 0 && !estimated) return;
    const StepTime step = kind.step(nodes, 0, {});  // with its wait for data
    if (kind.steps == 0 && section.has("length")) {
        kind.steps = ceil_div(source.mean.count(), step.duration().count());
    } else if (kind.steps == 0) {
        kind.steps = std::max<std::int64_t>(1, source.mean / (step.duration() - step.degraded));
    }
    kind.steps_take =
        kind.steps > time_max / step.duration() ? time_max : kind.steps * step.duration();
}

// ---- what [job] says of its data, of saving and of coming back ----

// For a step that has its data at hand.
void WorldJobReader::read_kind_data(Section& section, const StepTime& step, Scenario& job,
                                    WorldJobKind& kind) {
    job.job.step = step;
    join_data(section, catalogue_, {}, job);
    kind.data_wait = job.job.step.data_wait;
    kind.beside_data = job.job.step.beside_data();
    if (!job.data) return;
    check_host_memory(section, catalogue_, job);
}

// Without a model: a step that was measured, and that a power cap slows. What work waits for is no work.
void WorldJobReader::read_given_data(Section& section, Scenario& job, WorldJobKind& kind) {
    if (kind.given_step == Duration{}) {
        section.error("data", "has no effect without model or step.time");
        return;
    }
    StepTime step;
    step.compute = kind.given_step;
    read_kind_data(section, step, job, kind);
    if (top_.describing() || !section.ok()) return;
    const GpuPower& gpu = s_.power.node.gpu;
    kind.given_step = from_seconds(seconds(kind.given_step) / gpu.speed_at(gpu.cap));
    job.job.step.data_wait = wait_for_batch(kind.late(kind.given_step));
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
    if (reads && !section.has("model")) read_given_data(section, job, kind);
    const Duration data_wait = job.job.step.data_wait;
    // Work without steps can end at any instant.
    job.job.step.compute = kind.given_step > Duration{} ? kind.given_step : Duration(1);
    if (kind.step && section.ok()) job.job.step = usual_step(kind, job.job.nodes, 0);
    job.job.step.data_wait = data_wait;
    if (saves) read_checkpoint(section, catalogue_, job, {});
    if (recovers) join_recovery(section, catalogue_, job);
    of_one_size_.insert(kind.name);
    if (saves) save_as(section, view, kind);
    if (recovers) recover_as(section, view, kind);
    if (job.job.data && section.ok()) read_as(section, view, kind);
}

// From a store that all jobs share, or through shuffle buffers: a run goes stage by stage.
void WorldJobReader::read_as(Section& section, const std::shared_ptr<Scenario>& view,
                             WorldJobKind& kind) {
    const Scenario& job = *view;
    kind.data = std::make_shared<const DataFeedSpec>(*job.job.data);
    if (!kind.data->alone) share_stores(job);
    if (kind.data->reads(shared_store) && shares_network_with_store(job))
        kind.store_way = store_ways(view);
    if (kind.saving) return;
    if (!section.has("checkpoint_size")) {
        refuse_keys(section, {"checkpoint_interval", "checkpoint_stall"},
                    "stalls that are given don't go with data that is read from a store",
                    "[jobs.kind.checkpoint], or checkpoint_size");
    }
    go_by_stages(job, kind);
}

void WorldJobReader::go_by_stages(const Scenario& job, WorldJobKind& kind) {
    if (kind.saving) return;
    CheckpointSpec none;
    none.mode = CheckpointMode::none;
    none.read_at_start = job.job.checkpoint.read_at_start;
    none.tiers.emplace_back();  // where it would go
    const auto nothing = std::make_shared<const CheckpointSpec>(std::move(none));
    kind.saving = {[nothing](std::int64_t, std::int64_t) { return nothing; }};
    if (spec_.stores.empty()) return;
    kind.saving->network = job.job.network;
    kind.saving->store_paths = job.job.store_paths;
}

void WorldJobReader::share_stores(const Scenario& job) {
    world_.uses_objects |= uses_object_store(job);
    if (!spec_.stores.empty()) return;
    for (const StoreSetup& store : s_.stores) spec_.stores.push_back({store.name, store.supply});
}

void WorldJobReader::save_as(Section& section, const std::shared_ptr<Scenario>& view,
                             WorldJobKind& kind) {
    const Scenario& job = *view;
    Section checkpoint = section.section("checkpoint");
    const CheckpointSpec& c = job.job.checkpoint;
    refuse_keys(section, {"checkpoint_interval", "checkpoint_stall", "checkpoint_size"},
                "has no effect beside [jobs.kind.checkpoint]");
    if (c.mode == CheckpointMode::none) return;
    const bool steps = section.has("model") || kind.given_step > Duration{};
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
    kind.checkpoint_interval =
        from_seconds(std::min(never_s, seconds(job.job.step.duration()) * real(c.interval_steps)));
    if (steps) kind.checkpoint_steps = c.interval_steps;
    kind.checkpoint_training = c.interval_training;
    kind.by_wall_clock = c.interval_wall > Duration{};
    if (kind.by_wall_clock) kind.checkpoint_interval = c.interval_wall;
    move_over(view, kind);
    CheckpointSpec saves = c;
    kind.uploads_on_links = kind.transfer_traffic && !checkpoint.has("upload_slowdown");
    if (kind.uploads_on_links && s_.fidelity == Fidelity::packet && c.mode == CheckpointMode::async)
        checkpoint.warning(
            "mode", "uploads and steps of many jobs share links by flow, not packet by packet",
            "scheduler.kind = \"dedicated\" for one job by packets");
    if (kind.uploads_on_links) {  // these say what each costs whom there
        saves.upload_step_penalty -= saves.upload_on_links;
        for (TierSpec& tier : saves.tiers) tier.beside_steps = unlimited;
    }
    const auto spec = std::make_shared<const CheckpointSpec>(std::move(saves));
    kind.saving = {[spec](std::int64_t, std::int64_t) { return spec; }, job.job.network,
                   job.job.store_paths};
}

void WorldJobReader::recover_as(Section& section, const std::shared_ptr<Scenario>& view,
                                WorldJobKind& kind) {
    const Scenario& job = *view;
    Section recovery = section.section("recovery");
    const RecoverySpec& r = job.job.recovery;
    refuse_keys(section, {"restart", "restore"}, "has no effect beside [jobs.kind.recovery]");
    refuse_of_many(recovery, "replacement");
    if (r.policy == RecoveryPolicy::shrink) {
        shrink_as(section, recovery, view, kind);
    } else if (r.policy != RecoveryPolicy::requeue) {
        recovery.error("policy",
                       fmt::format("under {} a job that fails is the scheduler's to place again",
                                   spec_.scheduler),
                       "policy = \"requeue\"");
    }
    if (!r.recompute)
        recovery.error("recompute",
                       "can't be false here: of many jobs, each loses what it has not saved");
    if (kind.saving && r.restore) {
        recovery.error("restore", "has no effect: the store says how long it takes",
                       "leave it out, or [jobs.kind.checkpoint]");
    }
    kind.restart = r.restart;
    kind.restore = r.restore.value_or(Duration{});
    if (job.job.checkpoint.read_at_start.bytes == Bytes{}) return;
    refuse_keys(section, {"checkpoint_interval", "checkpoint_stall", "checkpoint_size"},
                "stalls that are given don't go with what each start reads",
                "[jobs.kind.checkpoint]");
    if (!section.ok()) return;
    if (!kind.saving) move_over(view, kind);
    go_by_stages(job, kind);
}

// Where the scheduler leaves a job the pods that have not failed.
void WorldJobReader::shrink_as(Section& section, Section& recovery,
                               const std::shared_ptr<Scenario>& view, WorldJobKind& kind) {
    if (spec_.scheduler != "kubernetes" && spec_.scheduler != "kueue") {
        recovery.error("policy",
                       fmt::format("under {} a job that loses a node starts again as a whole",
                                   spec_.scheduler),
                       "policy = \"requeue\", or scheduler.kind = \"kubernetes\" or \"kueue\"");
    } else if (section.has("data")) {
        recovery.error("policy", "what fewer nodes read of a job's data is not modelled",
                       "leave out data");
    }
    if (!section.ok()) return;
    kind.replicas = static_cast<std::int32_t>(view->job.replicas);
    for (const SmallerJob& size : view->job.smaller) {
        kind.smaller.push_back({size.nodes, static_cast<std::int32_t>(size.replicas)});
    }
    place_steps(view, {}, {}, kind);
}

}  // namespace

void read_world_jobs(Section& top, ValueReader& values, Catalogue& catalogue,
                     const Scenario& scenario, WorldScenario& world) {
    WorldJobReader(top, values, catalogue, scenario, world).read();
}

}  // namespace railyard
