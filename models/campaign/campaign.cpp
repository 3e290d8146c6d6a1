#include "models/campaign/campaign.h"

#include <fmt/format.h>
#include <sys/resource.h>

#include <algorithm>
#include <condition_variable>
#include <map>
#include <memory>
#include <mutex>
#include <new>
#include <numeric>

#include "models/campaign/feeds.h"
#include "models/campaign/phases.h"
#include "sim/cancel.h"
#include "sim/check.h"
#include "sim/parallel.h"
#include "sim/text.h"

namespace railyard {

ReplicaResult::ReplicaResult() = default;
ReplicaResult::ReplicaResult(const ReplicaResult&) = default;
ReplicaResult::ReplicaResult(ReplicaResult&&) noexcept = default;
ReplicaResult& ReplicaResult::operator=(const ReplicaResult&) = default;
ReplicaResult& ReplicaResult::operator=(ReplicaResult&&) noexcept = default;
ReplicaResult::~ReplicaResult() = default;

CampaignResult::CampaignResult() = default;
CampaignResult::CampaignResult(const CampaignResult&) = default;
CampaignResult::CampaignResult(CampaignResult&&) noexcept = default;
CampaignResult& CampaignResult::operator=(const CampaignResult&) = default;
CampaignResult& CampaignResult::operator=(CampaignResult&&) noexcept = default;
CampaignResult::~CampaignResult() = default;

double process_cpu_seconds() {
    rusage usage{};
    getrusage(RUSAGE_SELF, &usage);
    const auto in_seconds = [](const timeval& t) {
        return real(t.tv_sec) + real(t.tv_usec) * 1e-6;
    };
    return in_seconds(usage.ru_utime) + in_seconds(usage.ru_stime);
}

namespace {

// How checkpoints went: what stalls waited for, when states were safe, where the bytes are.
void add_checkpoint_metrics(const Scenario& s, const CheckpointOutcome& c, MetricList& out) {
    const double saved = real(c.made_safe);
    out.mean("checkpoint_time_to_stall_end", seconds(c.to_stall_end), real(c.stalls_ended));
    out.mean("checkpoint_time_to_safe", seconds(c.to_safe), saved);
    out.count("checkpoints_passed_over", c.passed_over);
    for (std::size_t i = 0; i < wall_count; ++i) {
        const auto wall = static_cast<Wall>(i);
        const std::string name(wall_name(wall));
        out.add("checkpoint_stall_" + name, seconds(c.stall[wall]));
        out.add("checkpoint_upload_" + name, seconds(c.upload[wall]));
        out.add("restore_" + name, seconds(c.restore[wall]));
    }
    UseByStore uses;
    for (std::size_t tier = 0; tier < c.tiers.size(); ++tier) {
        const std::string place = word_of(place_names, s.job.checkpoint.tiers[tier].place);
        const auto bytes = [&](const char* what, Bytes count) {
            out.add(fmt::format("{}_bytes_{}", place, what), real(count.count()));
        };
        bytes("written", c.tiers[tier].written);
        bytes("kept", c.tiers[tier].safe);
        bytes("expired", c.tiers[tier].expired);
        bytes("lost", c.tiers[tier].lost);
        bytes("in_flight", c.tiers[tier].in_flight);
        out.count(place + "_restores", c.restored_from[tier]);
        const TierSpec& spec = s.job.checkpoint.tiers[tier];
        if (!on_nodes(spec.place))
            uses[spec.write.store] += {c.tiers[tier], c.bytes_read[tier], c.kept[tier]};
    }
    add_object_store_costs(s, uses, out);
}

void add_neighbour_metrics(const NeighbourSpec& spec, const NeighbourOutcome& n, MetricList& out) {
    const std::string prefix = "neighbour_" + spec.name;
    out.count(prefix + "_checkpoints", n.written);
    out.count(prefix + "_checkpoints_left_out", n.left_out);
    out.mean(prefix + "_checkpoint_time", seconds(n.writing), real(n.written));
    out.mean(prefix + "_reads_got", n.read, n.asked);
}

// Metrics of what the scenario asks for beyond interruptions, in the order of its sections.
void add_failure_metrics(const Scenario& s, const ReplicaResult& r, MetricList& out) {
    const JobOutcome& job = r.job;
    if (!s.job.smaller.empty()) {
        out.count("shrinks", job.shrinks);
        out.add("steps_missing", real(job.replica_steps_missing) / real(s.job.replicas));
    }
    if (!s.job.smaller.empty() || !s.slow_parts.empty())
        out.count("nodes_changed", job.nodes_changed);
    add_fault_metrics(s, job, out);
    if (!s.slow_parts.empty()) out.add("slow_parts_time", seconds(job.slow_time));
    add_node_counts(s, r.nodes, out);
}

// What the job did, whether its steps are all alike or of stages.
struct WorkDone {
    double steps = 0;
    double tokens = 0;
    double model_flops = 0;
    double step_s = 0;      // of a bare step, in the mean
    double step_mfu = 0;    // while stepping
    double trained_s = 0;   // in steps that were kept
    double peak_flops = 0;  // that it had, over its time
};

double peak_of_gpu(const Scenario& s) {
    return s.node.gpu.bf16_dense.per_second;
}

// For a job whose stages have GPUs of their own.
WorkDone work_of_stages(const Scenario& s, const ReplicaResult& r) {
    WorkDone out;
    double stepping_flops = 0;
    for (std::size_t i = 0; i < r.job.stages.size(); ++i) {
        const StepSchedule::Done& kept = r.job.stages[i].kept;
        out.steps += real(kept.steps);
        out.tokens += kept.tokens;
        out.model_flops += kept.model_flops;
        out.step_s += seconds(kept.time);
        stepping_flops +=
            seconds(kept.time) * peak_of_gpu(s) * real(s.job.stages[i].nodes * s.node.gpus);
    }
    out.step_s = ratio(out.step_s, out.steps);
    out.step_mfu = ratio(out.model_flops, stepping_flops);
    out.trained_s = seconds(r.job.stepping);
    const GpuNanoseconds held =
        r.ledger.total() - r.ledger.booked(Category::spare) - r.ledger.booked(Category::repair);
    out.peak_flops = real(held) * 1e-9 * peak_of_gpu(s);
    return out;
}

WorkDone work_of(const Scenario& s, const StepTime& step, const ReplicaResult& r) {
    if (!s.job.stages.empty()) return work_of_stages(s, r);
    const JobOutcome& job = r.job;
    WorkDone out;
    // A job that shrank left out batches: they are taken off.
    out.steps = real(job.steps_kept) - real(job.replica_steps_missing) / real(s.job.replicas);
    out.tokens = out.steps * real(s.tokens_per_step);
    out.model_flops = out.steps * step.model_flops;
    out.step_s = seconds(step.duration());
    out.step_mfu = ratio(step.model_flops, out.step_s * s.peak_flops());
    // Whole steps that were kept, with the step that the end cut off; no wait before a first one.
    out.trained_s =
        real(r.ledger.booked(Category::productive) +
             r.ledger.booked(Category::exposed_communication) +
             r.ledger.booked(Category::pipeline_bubble) +
             r.ledger.booked(Category::straggler_wait) + r.ledger.booked(Category::degraded) +
             r.ledger.booked(Category::throttled) + r.ledger.booked(Category::data_wait) -
             job.first_batch) *
        1e-9 / real(s.job.gpus());
    out.peak_flops = seconds(job.job_time) * s.peak_flops();
    return out;
}

// By number of stage; a stage that never began has no step.
void add_stage_metrics(const Scenario& s, const ReplicaResult& r, MetricList& out) {
    for (std::size_t i = 0; i < r.job.stages.size(); ++i) {
        const auto& [kept, safe, wall] = r.job.stages[i];
        const std::string prefix = fmt::format("stage_{}", i + 1);
        const double stepping = seconds(kept.time);
        const double peak = peak_of_gpu(s) * real(s.job.stages[i].nodes * s.node.gpus);
        out.add(prefix + "_wall_time", seconds(wall));
        out.add(prefix + "_steps", real(kept.steps));
        out.add(prefix + "_tokens", kept.tokens);
        out.mean(prefix + "_step_time", stepping, real(kept.steps));
        out.mean(prefix + "_mfu_step", kept.model_flops, stepping * peak);
    }
    if (s.job.pauses.empty()) return;
    out.count("pauses", r.job.pauses);
    out.add("pause_time", seconds(r.job.paused));
}

// What an interruption costs, on average.
void add_interruption_metrics(const JobOutcome& job, double interruptions, MetricList& out) {
    const Duration recovery =
        job.detection + job.replacement + job.requeue_wait + job.restart + job.restore;
    out.mean("mean_time_between_interruptions", seconds(job.job_time), interruptions);
    for (const auto& [phase, time] : {std::pair{"lost_work", job.lost_work},
                                      {"detection", job.detection},
                                      {"replacement", job.replacement},
                                      {"requeue_wait", job.requeue_wait},
                                      {"restart", job.restart},
                                      {"restore", job.restore},
                                      {"recovery", recovery}}) {
        out.mean(fmt::format("{}_per_interruption", phase), seconds(time), interruptions);
    }
}

void add_data_metrics(const Scenario& s, const ReplicaResult& r, double steps, MetricList& out) {
    const double job_gpus = real(s.job.gpus());
    const double fetched = s.data->bytes_fetched(steps);
    out.add("data_wait_time", real(r.ledger.booked(Category::data_wait)) * 1e-9 / job_gpus);
    if (s.data->shuffle_buffers > Bytes{}) {
        out.add("data_first_batch_time", real(r.job.first_batch) * 1e-9 / job_gpus);
    }
    out.add("data_starved_time", seconds(r.job.data_starved));
    out.add("data_utilisation", s.data->flow.utilisation);
    out.add("data_fetched", fetched);
    out.add("data_egress_cost", fetched * s.data->egress_usd_per_byte);
    out.add("data_requests_cost", fetched * s.data->requests_usd_per_byte);
}

MetricList metrics_of(const Scenario& s, const StepTime& step, const ReplicaResult& r) {
    const JobOutcome& job = r.job;
    const double job_seconds = seconds(job.job_time);
    const WorkDone work = work_of(s, step, r);
    const double days = seconds(r.simulated) / 86400;
    double interruptions = 0;
    for (const std::int64_t n : job.interruptions) interruptions += real(n);
    MetricList metrics;
    metrics.add("goodput", r.ledger.fraction(Category::productive));
    metrics.add("ettr", ratio(work.trained_s, job_seconds));
    metrics.add("mfu", ratio(work.model_flops, work.peak_flops));
    metrics.add("mfu_step", work.step_mfu);
    metrics.add("step_time", work.step_s);
    metrics.add("steps", work.steps);
    metrics.add("steps_lost", real(job.steps_lost));
    metrics.add("tokens", work.tokens);
    metrics.add("steps_per_day", ratio(work.steps, days));
    metrics.add("tokens_per_day", ratio(work.tokens, days));
    metrics.add("training_time", work.trained_s);
    metrics.add("wall_time", job_seconds);
    metrics.add("job_finished", job.finished ? 1 : 0);
    metrics.count("checkpoints", job.checkpoint.made_safe);
    metrics.count("checkpoints_lost", job.checkpoint.lost);
    metrics.add("checkpoint_stall_time", seconds(job.checkpoint_stall));
    metrics.add("interruptions", interruptions);
    metrics.count("planned_interruptions", job.planned_interruptions);
    metrics.count("storms", job.storms);
    metrics.add("storm_stall_time", seconds(job.storm_stall));
    metrics.count("failures_while_down", job.strikes_while_down);
    add_interruption_metrics(job, interruptions, metrics);
    add_stage_metrics(s, r, metrics);
    add_failure_metrics(s, r, metrics);
    add_checkpoint_metrics(s, job.checkpoint, metrics);
    if (s.stores[0].failures) add_store_metrics(r.store, metrics);
    for (std::size_t i = 0; i < r.neighbours.size(); ++i) {
        add_neighbour_metrics(s.neighbours[i], r.neighbours[i], metrics);
    }
    std::optional<double> tokens;
    if (s.tokens_per_step > 0) tokens = work.tokens;
    const NodesDraw draw = nodes_draw(s.power, s.nodes.nodes, s.job.nodes);
    add_power_metrics(s.power, energy_use(s.power, r.energy, r.simulated, draw), draw.swing, tokens,
                      metrics);
    add_facility_metrics(s.power, s.job.nodes, r.feeds, metrics);
    if (s.data) {  // lost steps have read theirs too
        add_data_metrics(s, r, work.steps + real(job.steps_lost), metrics);
    }
    return metrics;
}

std::string stuck_report(const Scenario& s, const JobOutcome& job) {
    return fmt::format(
        "the job is not done after {}: {} of {} steps are safe, {} were lost to {} interruptions "
        "and {} planned stops; {}",
        to_text(campaign_length_max), job.steps_kept, s.job.target_steps, job.steps_lost,
        std::accumulate(job.interruptions.begin(), job.interruptions.end(), std::int64_t{0}),
        job.planned_interruptions, s.checkpoint_description);
}

}  // namespace

void add_store_metrics(const StoreFailureCounts& c, MetricList& out) {
    out.count("storage_drives_lost", c.drives);
    out.count("storage_servers_lost", c.servers);
    out.count("storage_boxes_lost", c.boxes);
    out.count("storage_rebuilds", c.rebuilds);
    out.count("storage_data_losses", c.data_losses);
    out.add("storage_data_lost", c.data_lost);
    out.count("storage_outages", c.outages);
    out.add("storage_outage_time", seconds(c.outage_time));
}

Rate strike_rate(const Scenario& s) {
    double per_second = 0;
    for (const FailureCause& cause : s.causes) {
        const std::int64_t units =
            cause.domain == DomainKind::node
                ? s.nodes.nodes
                : s.nodes.domains[static_cast<std::size_t>(cause.domain)].count();
        per_second += cause.rate_per_node.per_second * real(s.job.nodes) +
                      cause.life.rate.per_second * real(units);
    }
    return {per_second};
}

Rate strike_rate_per_job(const Scenario& s) {
    Rate sum;
    for (const FailureCause& cause : s.causes) sum.per_second += cause.rate_per_job.per_second;
    return sum;
}

void add_fault_metrics(const Scenario& s, const FaultCounts& faults, MetricList& out) {
    if (!s.slow_parts.empty()) {
        out.count("slow_parts", faults.slow_parts.slow);
        out.count("slow_parts_found", faults.slow_parts.found);
    }
    if (s.job.recovery.misdiagnosis > 0) out.count("nodes_blamed", faults.nodes_blamed);
    if (std::ranges::any_of(s.causes, &FailureCause::silent)) {
        out.count("corruptions_found", faults.corruptions_found);
    }
    if (s.network_faults.any()) out.count("network_outages", faults.network_outages);
}

void add_node_counts(const Scenario& s, const NodeFailureCounts& nodes, MetricList& out) {
    if (s.nodes.quarantine.failures > 0) out.count("nodes_quarantined", nodes.quarantined);
    if (std::ranges::any_of(
            s.causes, [](const FailureCause& cause) { return cause.domain != DomainKind::node; })) {
        out.count("domain_failures", nodes.domain_failures);
    }
    if (!s.nodes.repair.limited()) return;
    const double repairs = real(nodes.repair.repairs);
    out.count("repairs", nodes.repair.repairs);
    out.count("repairs_found_bad", nodes.repair.came_back);
    out.count("repairs_let_out_bad", nodes.repair.let_out);
    out.mean("repair_wait", nodes.repair.waited_s, repairs);
    out.mean("repair_wait_part", nodes.repair.waited_for_part_s, repairs);
    out.count("repair_queue_max", static_cast<std::int64_t>(nodes.repair.queue_max));
}

namespace {

std::uint64_t outcome_digest(const ReplicaResult& result) {
    Fingerprint outcome;
    for (std::size_t i = 0; i < job_category_count; ++i) {
        // An empty category is left out, so that a new one leaves the digests of campaigns without it alone.
        const GpuNanoseconds booked = result.ledger.booked(static_cast<Category>(i));
        if (static_cast<Category>(i) == Category::throttled && booked == 0) continue;
        outcome.add(booked);
    }
    for (const std::int64_t n : result.job.interruptions) outcome.add(n);
    for (const std::int64_t n :
         {result.job.steps_kept, result.job.steps_lost, result.job.checkpoint.made_safe,
          result.job.checkpoint.lost, result.job.planned_interruptions, result.simulated.count()}) {
        outcome.add(n);
    }
    return outcome.value();
}

// What one job draws of its feeds, from phase to phase.
class JobFeeds : public PhaseWatcher {
  public:
    // References must outlive it.
    JobFeeds(CampaignEngine& engine, NodePool& nodes, const Scenario& s, std::uint64_t replica)
        : nodes_(nodes),
          s_(s),
          communicating_(steady(s.power.node.at(Activity::communication))),
          idle_(steady(s.power.node.at(Activity::idle))),
          feeds_(engine, nodes, s.power, s.nodes.domains[static_cast<std::size_t>(DomainKind::cdu)],
                 s.nodes.nodes, s.node.gpus, s.power.node_step, s.seed, replica) {}

    void phase_changed(JobPhase now) override {
        Allocation held;
        for (std::int64_t slot = 0; slot < s_.job.nodes; ++slot) {
            const std::int64_t node = nodes_.node_in(slot);
            if (node >= 0) held.push_back(NodeShare{static_cast<NodeIndex>(node), s_.node.gpus});
        }
        const bool waits = now == JobPhase::storm_stall || now == JobPhase::detection;
        JobDraw draw{waits ? &communicating_ : &idle_, s_.power.node.gpu.idle};
        if (now == JobPhase::running) draw = {&s_.power.node_step, s_.power.gpu_mean};
        feeds_.set(0, draw, held, 1);
    }
    FeedCounts counts() const { return feeds_.counts(); }

  private:
    const NodePool& nodes_;
    const Scenario& s_;
    PowerProfile communicating_;
    PowerProfile idle_;
    Feeds feeds_;
};

// A campaign of one job, with all that happens to it.
class Replica {
  public:
    // The job outlives it.
    Replica(const Scenario& s, ReplicaResult& result, const JobSpec& job, bool log_events)
        : s_(s),
          result_(result),
          replica_(static_cast<std::uint64_t>(result.index)),
          nodes_(engine_, s.nodes, s.causes, result.ledger, s.seed, replica_),
          stores_(engine_),
          job_spec_(job),
          job_(engine_, job_spec_, s.causes, nodes_, add_stores(), result.ledger,
               log_events ? &result.log : nullptr) {
        nodes_.serve(job_);
    }

    void log_to(ReplicaTrace& record) {
        job_.phases().log(record.phases);
        stores_.log_rates(record.store_rates);
        nodes_.log_absences(record.absences);
        nodes_.log_moves(record.moves);
    }

    void run() {
        start_parts();
        job_.begin();
        const bool bounded = s_.duration > Duration{};
        const CampaignEngine::Outcome ended =
            run_cancellable(engine_, Instant(bounded ? s_.duration : campaign_length_max),
                            static_cast<std::uint64_t>(s_.events_max));
        if (ended == CampaignEngine::Outcome::limit) {
            result_.ending = Ending::limit;
        } else if (!bounded && ended != CampaignEngine::Outcome::stopped) {
            result_.ending = Ending::stuck;
        }
        const std::string no_way = job_.no_way();
        job_.end();
        nodes_.end();
        if (failing_) failing_->end();
        note_outcome();
        if (result_.ending != Ending::stuck) return;
        result_.stuck_report = stuck_report(s_, result_.job);
        if (!no_way.empty()) result_.stuck_report += "\n" + no_way;
    }

    void add_metrics() {
        result_.metrics = metrics_of(s_, job_spec_.step, result_);
        if (s_.cost) add_cost_metrics(s_, result_);
    }

  private:
    StoreService& add_stores() {
        for (const StoreSetup& store : s_.stores) stores_.add_store(store.name, store.supply);
        return stores_;
    }

    // The order matters: of two events at one instant, that of the part which is made first comes first.
    void start_parts() {
        if (s_.stores[0].failures) {
            failing_.emplace(engine_, stores_, 0, s_.store(), *s_.stores[0].failures, job_, s_.seed,
                             replica_);
            failing_->start();
            job_.stores_may_lose();
        }
        for (const NeighbourSpec& spec : s_.neighbours) {
            neighbours_.push_back(
                std::make_unique<Neighbour>(engine_, stores_, spec, s_.seed, replica_));
            neighbours_.back()->start();
        }
        for (std::size_t i = 0; i < s_.causes.size(); ++i) {
            failures_.push_back(std::make_unique<FailureSource>(
                engine_, job_, i, s_.causes[i], s_.job.nodes, s_.nodes.lemons.rate_multiplier,
                s_.seed, replica_));
            failures_.back()->start();
        }
        nodes_.start();
        if (s_.network_faults.any()) {
            network_.emplace(engine_, s_.network_faults, job_, s_.seed, replica_);
            job_.set_network(*network_);
            network_->start();
        }
        if (s_.power.breaker || s_.power.pump) {
            feeds_.emplace(engine_, nodes_, s_, replica_);
            job_.phases().set_watcher(*feeds_);
        }
    }

    void note_outcome() {
        ReplicaResult& r = result_;
        r.repairs = nodes_.repairs();
        r.repairs.resize(s_.causes.size());
        if (failing_) r.store = failing_->counts();
        for (const auto& neighbour : neighbours_) r.neighbours.push_back(neighbour->outcome());
        r.simulated = engine_.now().time_since_epoch();
        r.job = job_.outcome();
        r.nodes = nodes_.outcome();
        r.events = engine_.events();
        r.trajectory = engine_.trajectory().value();
        RY_CHECK(r.ledger.total() == GpuNanoseconds{s_.gpus()} * r.simulated.count());
        if (feeds_) r.feeds = feeds_->counts();
        const NodeEnergy nodes_energy =
            node_energy([this](Category c) { return s_.power.of(c); }, r.ledger, s_.node.gpus);
        r.energy = energy_of(s_.power, nodes_energy, r.simulated);
        r.outcome = outcome_digest(r);
    }

    const Scenario& s_;
    ReplicaResult& result_;
    std::uint64_t replica_;
    CampaignEngine engine_;
    NodePool nodes_;
    StoreService stores_;
    const JobSpec& job_spec_;
    TrainingJob job_;
    std::optional<FailingStore> failing_;
    std::vector<std::unique_ptr<Neighbour>> neighbours_;
    std::vector<std::unique_ptr<FailureSource>> failures_;
    std::optional<NetworkParts> network_;
    std::optional<JobFeeds> feeds_;
};

}  // namespace

ReplicaResult run_replica(const Scenario& s, std::int64_t index, bool log_events,
                          ReplicaTrace* record, JobSoFar* so_far, const TakeJob& jobs) {
    if (!s.phases.empty()) return run_phases(s, index, log_events, jobs);
    if (s.world) return run_world_replica(s, index, log_events, record, nullptr, jobs);
    RY_CHECK(s.no_path.empty());
    RY_CHECK(s.windows);  // what they say has been read
    ReplicaResult result;
    result.index = index;
    JobSpec job = job_of_replica(s, index);
    if (so_far != nullptr) job = job_after(std::move(job), *so_far);
    Replica replica(s, result, job, log_events);
    if (record != nullptr) replica.log_to(*record);
    replica.run();
    replica.add_metrics();
    if (so_far != nullptr) add_to(*so_far, job, result.job);
    return result;
}

Ending CampaignResult::ending() const {
    return worst == Ending::complete && !limits.empty() ? Ending::limit : worst;
}

namespace {

ReplicaFigures figures_of(const ReplicaResult& r) {
    ReplicaFigures out{r.ending,  r.simulated, r.outcome,          r.trajectory,
                       r.metrics, {},          r.job.interruptions};
    for (std::size_t c = 0; c < category_count; ++c) {
        out.ledger[c] = r.ledger.fraction(static_cast<Category>(c));
    }
    return out;
}

// Adds replicas up, in order of index: what all replicas have, and what only those that have just run do.
class Tally {
  public:
    explicit Tally(const Scenario& s) : sums_(s) { out_.energy.assign(category_count + 2, 0); }

    void add(const ReplicaResult& r) {
        sums_.add(figures_of(r));
        if (sums_.replicas() == 1) out_.refused = r.refused;
        if (!r.stuck_report.empty() && !out_.stuck) {
            out_.stuck = {r.index, Instant(r.simulated), r.stuck_report};
        }
        for (std::size_t c = 0; c < category_count; ++c)
            out_.energy[c] += joules(r.energy.nodes[c]);
        out_.energy[category_count] += joules(r.energy.network);
        out_.energy[category_count + 1] += joules(r.energy.storage);
        out_.planned_interruptions += real(r.job.planned_interruptions);
        out_.simulated_s += seconds(r.simulated);
    }

    CampaignResult result() {
        static_cast<ReplicaSums&>(out_) = sums_.take();
        if (out_.replicas == 0) return std::move(out_);
        const auto replicas = real(out_.replicas);
        for (double& used : out_.energy) used /= replicas;
        out_.planned_interruptions /= replicas;
        out_.simulated_s /= replicas;
        return std::move(out_);
    }

  private:
    ReplicaTally sums_;
    CampaignResult out_;
};

// Replicas end in any order and are handed on in order of their index. A thread that is far ahead of the
// others waits for them, so that few replicas are kept.
class ReplicasInOrder {
  public:
    ReplicasInOrder(const CampaignOptions& options, std::int64_t total, Tally& tally)
        : options_(options), total_(total), tally_(tally) {}

    void add(std::size_t index, ReplicaResult result) {
        std::unique_lock lock(mutex_);
        ++done_;
        if (options_.progress) options_.progress(done_, total_);
        moved_.wait(lock, [&] { return index < handed_on_ + ahead_max || incomplete_; });
        waiting_.emplace(index, std::move(result));
        for (; !waiting_.empty() && waiting_.begin()->first == handed_on_; ++handed_on_) {
            const ReplicaResult& next = waiting_.begin()->second;
            tally_.add(next);
            if (options_.finished) options_.finished(next);
            waiting_.erase(waiting_.begin());
        }
        moved_.notify_all();
    }
    // One will never come: nobody waits for it.
    void give_up() {
        const std::lock_guard lock(mutex_);
        incomplete_ = true;
        moved_.notify_all();
    }
    // Once all threads are done: what still waits is not handed on.
    void drop_waiting() { waiting_.clear(); }
    std::size_t handed_on() const { return handed_on_; }

  private:
    static constexpr std::size_t ahead_max = 256;

    const CampaignOptions& options_;
    const std::int64_t total_;
    Tally& tally_;
    std::mutex mutex_;
    std::condition_variable moved_;
    std::map<std::size_t, ReplicaResult> waiting_;
    std::int64_t done_ = 0;
    std::size_t handed_on_ = 0;
    bool incomplete_ = false;
};

}  // namespace

CampaignResult run_campaign(const Scenario& s, const CampaignOptions& options) {
    const double cpu_before = process_cpu_seconds();
    const auto total = static_cast<std::size_t>(s.replicas);
    Tally tally(s);
    ReplicasInOrder replicas(options, s.replicas, tally);
    bool interrupted = false;
    // A reserve for adding up the finished replicas when memory runs out: a few times the numbers of a
    // metric. Nobody writes to it, so until then it takes addresses only.
    constexpr std::size_t numbers_each = 8;
    auto room = std::make_unique_for_overwrite<double[]>(numbers_each * total);
    try {
        parallel_for(total, options.threads, options.cancelled, [&](std::size_t i) {
            const auto index = static_cast<std::int64_t>(i);
            try {
                replicas.add(i, run_replica(s, index, index < options.logged_replicas, nullptr,
                                            nullptr, index == 0 ? options.jobs : TakeJob()));
            } catch (...) {
                replicas.give_up();
                throw;
            }
        });
    } catch (const Interrupted&) {
        interrupted = true;
    } catch (const std::bad_alloc&) {
        replicas.drop_waiting();
        room.reset();
        if (replicas.handed_on() == 0) throw;
        s.limits->add(
            fmt::format("out of memory: this is the result of the first {} of {} replicas",
                        replicas.handed_on(), total),
            "fewer replicas, or a machine with more memory");
    }
    CampaignResult out = tally.result();
    out.cancelled = interrupted || (options.cancelled != nullptr && *options.cancelled);
    out.limits = s.limits->all();
    out.cpu_s = process_cpu_seconds() - cpu_before;
    return out;
}

}  // namespace railyard
