// One replica of many jobs, and what is reported of it.

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <limits>
#include <map>
#include <numeric>
#include <optional>

#include "models/campaign/campaign.h"
#include "models/campaign/cost_metrics.h"
#include "models/campaign/feeds.h"
#include "models/campaign/world_steps.h"
#include "sim/statistics.h"

namespace railyard {

namespace {

// Mean, median and 95th percentile.
void add_distribution(const std::string& name, std::vector<double> values, MetricList& out) {
    std::ranges::sort(values);
    const double sum = std::accumulate(values.begin(), values.end(), 0.0);
    constexpr double none = std::numeric_limits<double>::quiet_NaN();
    out.mean(name + "_mean", sum, real(values.size()));
    out.add(name + "_median", values.empty() ? none : sorted_quantile(values, 0.5));
    out.add(name + "_p95", values.empty() ? none : values[place_after(0.95, values.size())]);
}

// Jobs of up to so many GPUs, and of more than half as many.
struct SizeClass {
    std::int64_t gpus = 1;
    double held_s = 0;  // time in which they had their GPUs
    double kept_s = 0;
    double span_s = 0;  // from their first start to their end, or the campaign's
    double interruptions = 0;
};

std::vector<SizeClass> size_classes(std::int64_t all, const WorldJobs& jobs,
                                    const WorldOutcome& outcome, Instant end) {
    std::vector<SizeClass> out;
    const auto most = std::bit_ceil(static_cast<std::uint64_t>(all));
    for (std::uint64_t gpus = 1; gpus <= most; gpus *= 2) {
        out.push_back({static_cast<std::int64_t>(gpus)});
    }
    for (std::size_t i = 0; i < jobs.jobs.size(); ++i) {
        const WorldJobRun& run = outcome.runs[i];
        if (!run.started) continue;
        const auto size = static_cast<std::uint64_t>(jobs.jobs[i].gpus);
        SizeClass& c = out[std::bit_width(size - 1)];
        c.held_s += seconds(run.held);
        c.kept_s += seconds(run.kept);
        c.span_s += seconds((run.over ? run.end : end) - run.first_start);
        c.interruptions += real(run.interruptions);
    }
    return out;
}

void add_counts(const WorldOutcome& outcome, MetricList& out) {
    constexpr JobEnd ends[] = {JobEnd::completed, JobEnd::failed,    JobEnd::node_fail,
                               JobEnd::timeout,   JobEnd::preempted, JobEnd::cancelled,
                               JobEnd::refused};
    const auto& runs = outcome.runs;
    out.count("jobs", outcome.submitted);
    out.count("jobs_ended", outcome.ended);
    out.count("jobs_running", outcome.running);
    out.count("jobs_waiting", outcome.waiting);
    for (const JobEnd how : ends) {
        out.count(fmt::format("jobs_{}", job_end_name(how)),
                  std::ranges::count_if(
                      runs, [how](const WorldJobRun& r) { return r.over && r.how == how; }));
    }
    std::int64_t interruptions = 0;
    for (const WorldJobRun& run : runs) interruptions += run.interruptions;
    out.count("interruptions", interruptions);
    out.count("own_failures", outcome.own_failures);
    out.count("preemptions", outcome.preemptions);
    out.count("failures_on_idle_nodes", outcome.strikes_on_idle);
}

// How often jobs went on with fewer replicas, and what steps the others did not compute.
void add_shrinks(const WorldSpec& spec, const WorldJobs& jobs, const WorldOutcome& outcome,
                 MetricList& out) {
    const auto shrinks = [](const WorldJobKind& kind) { return !kind.smaller.empty(); };
    if (std::ranges::none_of(spec.kinds, shrinks)) return;
    double missing = 0;
    for (std::size_t i = 0; i < jobs.jobs.size(); ++i) {
        missing +=
            real(outcome.runs[i].replica_steps_missing) / spec.kinds[jobs.jobs[i].kind].replicas;
    }
    out.count("shrinks", outcome.shrinks);
    out.add("steps_missing", missing);
}

// What a job takes alone, undisturbed and at full clocks: the same in all designs, so that slower GPUs
// make no job's waiting look small. Of a kind whose steps are modelled, on the cluster's first nodes.
double alone_seconds(const WorldScenario& world, const WorldJob& job) {
    const WorldJobKind& kind = world.spec.kinds[job.kind];
    if (!kind.step) {
        if (job.timed) return seconds(job.work);
        const bool waits = kind.data_wait > Duration{};
        const double longer = waits ? 1 + seconds(kind.data_wait) / seconds(kind.beside_data) : 1;
        return seconds(job.work) * longer / world.power.work_factor;
    }
    const StepTime step = usual_step(kind, world.models[job.kind]->job.nodes, 0);
    return real(kind.steps) * seconds(step.duration());
}

}  // namespace

double gpu_seconds_alone(const Scenario& s) {
    const bool bounded = s.duration > Duration{};
    const WorldJobs all =
        draw_jobs(*s.world, s.seed, 0, bounded ? s.duration : campaign_length_max);
    double sum = 0;
    for (const WorldJob& job : all.jobs) sum += real(job.gpus) * alone_seconds(*s.world, job);
    return sum;
}

namespace {

// How many times as long as alone; a job that is not done at the campaign's end has waited until then, and
// has all that it lacks before it.
double bounded_slowdown(double alone, const WorldJob& job, const WorldJobRun& run, Instant end) {
    double took = seconds(run.end - job.submit);
    if (!run.over) {
        const double waited = seconds((run.started ? run.first_start : end) - job.submit);
        took = std::max(seconds(end - job.submit), waited + alone);
    }
    return std::max(1.0, took / std::max(alone, seconds(slowdown_tau)));
}

Instant waited_until(const WorldJobRun& run, Instant campaign_end) {
    return run.started ? run.first_start : run.over ? run.end : campaign_end;
}

// In seconds, of jobs that were not refused.
struct JobTimes {
    std::vector<double> waits, jcts, slowdowns;
    std::int64_t never_started = 0;
};

// Those of all kinds, or of one.
JobTimes times_of(const WorldScenario& world, const WorldJobs& jobs, const WorldRunResult& r,
                  std::optional<std::size_t> kind = {}) {
    const Instant campaign_end(r.simulated);
    JobTimes out;
    for (std::size_t i = 0; i < static_cast<std::size_t>(r.outcome.submitted); ++i) {
        const WorldJob& job = jobs.jobs[i];
        const WorldJobRun& run = r.outcome.runs[i];
        if (job.kind != kind.value_or(job.kind)) continue;
        if (run.over && run.how == JobEnd::refused) continue;
        out.waits.push_back(seconds(waited_until(run, campaign_end) - job.submit));
        out.never_started += run.started ? 0 : 1;
        out.slowdowns.push_back(
            bounded_slowdown(alone_seconds(world, job), job, run, campaign_end));
        if (run.started && run.over) out.jcts.push_back(seconds(run.end - job.submit));
    }
    return out;
}

void add_waits(const JobTimes& times, MetricList& out) {
    out.count("jobs_never_started", times.never_started);
    add_distribution("wait", times.waits, out);
    add_distribution("jct", times.jcts, out);
    add_distribution("bounded_slowdown", times.slowdowns, out);
}

// The kinds that a kind of jobs waited for, as shares of its waiting; steps that were lost later count too.
void add_contention(const WorldScenario& world, const WorldOutcome& outcome, std::size_t kind,
                    MetricList& out) {
    const WorldSpec& spec = world.spec;
    double all = 0;
    for (std::size_t by = 0; by < spec.kinds.size(); ++by) {
        all += outcome.contention_by.at(kind, by);
    }
    for (std::size_t by = 0; by < spec.kinds.size(); ++by) {
        if (!spec.kinds[by].traffic) continue;
        out.mean("contention_kind_" + world.kind_key(kind) + "_by_" + world.kind_key(by),
                 outcome.contention_by.at(kind, by), all);
    }
}

bool any_storms(const Scenario& s) {
    return std::ranges::any_of(s.causes, [](const FailureCause& c) { return c.storm.has_value(); });
}

// What became of the jobs of each kind, and of the time of their GPUs.
void add_kinds(const Scenario& s, const WorldJobs& jobs, const WorldRunResult& r, MetricList& out) {
    const WorldScenario& world = *s.world;
    const WorldSpec& spec = world.spec;
    if (spec.kinds.size() < 2) return;
    for (std::size_t k = 0; k < spec.kinds.size(); ++k) {
        const std::string name = world.kind_key(k);
        const JobTimes times = times_of(world, jobs, r, k);
        Ledger booked;
        for (std::size_t g = 0; g < spec.groups.size(); ++g) {
            for (std::size_t c = 0; c < category_count; ++c) {
                const auto category = static_cast<Category>(c);
                booked.book(category, r.ledgers.of(g, k).booked(category));
            }
        }
        const double held = real(booked.total());
        const auto share = [&](const char* metric, Category category) {
            out.mean(metric + name, real(booked.booked(category)), held);
        };
        const auto mean = [&](const char* metric, const auto& values) {
            out.mean(metric + name, std::accumulate(values.begin(), values.end(), 0.0),
                     real(values.size()));
        };
        out.count("jobs_kind_" + name, std::ssize(times.waits));
        mean("wait_mean_kind_", times.waits);
        mean("jct_mean_kind_", times.jcts);
        mean("bounded_slowdown_mean_kind_", times.slowdowns);
        share("goodput_kind_", Category::productive);
        share("checkpoint_stall_kind_", Category::checkpoint_stall);
        share("lost_work_kind_", Category::lost_work);
        share("contention_kind_", Category::contention);
        if (s.network_faults.any()) share("degraded_kind_", Category::degraded);
        if (s.network_faults.any() || any_storms(s)) {
            share("storm_stall_kind_", Category::storm_stall);
        }
        if (spec.kinds[k].traffic) add_contention(world, r.outcome, k, out);
    }
}

// What the kept part of each job counts, also of one that is never done.
void add_work(const WorldScenario& world, const WorldJobs& jobs, const WorldRunResult& r,
              MetricList& out) {
    if (world.worths.empty()) return;
    std::vector<double> by_kind(world.spec.kinds.size());
    double all = 0;
    for (std::size_t i = 0; i < jobs.jobs.size(); ++i) {
        const WorldJob& job = jobs.jobs[i];
        const WorldJobRun& run = r.outcome.runs[i];
        const double missing =
            ratio(real(run.replica_steps_missing), world.spec.kinds[job.kind].replicas);
        const double done = ratio(real(run.kept_steps) - missing, real(world.spec.steps_of(job)));
        by_kind[job.kind] += done * world.worth_of(job);
        all += done * world.worth_of(job);
    }
    out.add("work_done", all);
    out.mean("work_per_day", all, seconds(r.simulated) / 86400);
    for (std::size_t k = 0; k < by_kind.size() && by_kind.size() > 1; ++k) {
        out.add("work_done_kind_" + world.kind_key(k), by_kind[k]);
    }
}

// Egress and requests of the data of all steps that were done, kept or not.
void add_data_of_objects(const WorldScenario& world, const WorldJobs& jobs, const WorldRunResult& r,
                         MetricList& out) {
    const auto from_objects = [](const std::optional<DataLoading>& data) {
        return data && (data->source == DataSource::object_store || data->egress_usd_per_byte > 0 ||
                        data->requests_usd_per_byte > 0);
    };
    if (std::ranges::none_of(world.data, from_objects)) return;
    double fetched = 0;
    double cost = 0;
    double requests = 0;
    for (std::size_t i = 0; i < jobs.jobs.size(); ++i) {
        const std::optional<DataLoading>& data = world.data[jobs.jobs[i].kind];
        if (!from_objects(data)) continue;
        const WorldJobRun& run = r.outcome.runs[i];
        const double bytes = data->bytes_fetched(real(run.kept_steps + run.lost_steps));
        fetched += bytes;
        cost += bytes * data->egress_usd_per_byte;
        requests += bytes * data->requests_usd_per_byte;
    }
    out.add("data_fetched", fetched);
    out.add("data_egress_cost", cost);
    out.add("data_requests_cost", requests);
}

}  // namespace

MetricList world_metrics(const Scenario& s, const WorldJobs& jobs, const WorldRunResult& r) {
    const WorldSpec& spec = s.world->spec;
    const double total = real(r.ledger.total());
    const auto share = [&](GpuNanoseconds part) { return ratio(real(part), total); };
    MetricList out;
    out.add("goodput", r.ledger.fraction(Category::productive));
    out.add("utilisation", share(r.outcome.held));
    out.add("occupancy", share(r.outcome.node_busy));
    if (spec.parts_per_gpu() > 1) {
        out.add("mig_stranded", ratio(real(r.outcome.stranded), real(r.outcome.sliced)));
    }
    add_counts(r.outcome, out);
    add_shrinks(spec, jobs, r.outcome, out);
    add_fault_metrics(s, r.outcome, out);
    if (std::ranges::any_of(s.causes, &FailureCause::silent)) {
        out.count("corrupted_results", r.outcome.corrupted_results);
    }
    if (any_storms(s)) out.count("storms", r.outcome.storms);
    if (s.network_faults.any()) out.count("network_stalls", r.outcome.network_stalls);
    add_waits(times_of(*s.world, jobs, r), out);
    add_kinds(s, jobs, r, out);
    add_work(*s.world, jobs, r, out);
    if (!s.world->spec.stores.empty() && s.phases.empty()) {
        add_object_store_costs(s, r.outcome.in_stores, out);
    }
    add_data_of_objects(*s.world, jobs, r, out);
    if (s.stores[shared_store].failures) add_store_metrics(r.outcome.store, out);
    std::int64_t gpus = s.gpus();
    for (const ScenarioPhase& phase : s.phases) gpus = std::max(gpus, phase.as->gpus());
    for (const SizeClass& c : size_classes(gpus, jobs, r.outcome, Instant(r.simulated))) {
        out.mean(fmt::format("mttf_gpus_{}", c.gpus), c.held_s, c.interruptions);
        out.mean(fmt::format("ettr_gpus_{}", c.gpus), c.kept_s, c.span_s);
    }
    return out;
}

void tell_jobs(const WorldSpec& spec, const WorldJobs& jobs, const WorldOutcome& outcome,
               Instant end, const TakeJob& take) {
    if (!take) return;
    const auto clock = [](Instant at) { return seconds(at.time_since_epoch()); };
    constexpr double none = std::numeric_limits<double>::quiet_NaN();
    for (std::size_t i = 0; i < static_cast<std::size_t>(outcome.submitted); ++i) {
        const WorldJob& job = jobs.jobs[i];
        const WorldJobRun& run = outcome.runs[i];
        JobRecord record;
        record.name = spec.name_of(job);
        record.kind = spec.kinds[job.kind].name;
        record.state = run.over ? job_end_name(run.how) : run.waits ? "waiting" : "running";
        record.gpus = job.gpus;
        record.starts = run.starts;
        record.interruptions = run.interruptions;
        record.submit_s = clock(job.submit);
        record.start_s = run.started ? clock(run.first_start) : none;
        record.end_s = run.over ? clock(run.end) : none;
        record.wait_s = seconds(waited_until(run, end) - job.submit);
        record.held_s = seconds(run.held);
        record.kept_s = seconds(run.kept);
        record.contention_s = seconds(run.contention);
        take(record);
    }
}

namespace {

// A campaign of a given length comes to its end all the same, and only reports who is stuck.
void note_ending(const WorldRunResult& r, bool bounded, ReplicaResult& result) {
    if (r.ended == CampaignEngine::Outcome::limit) result.ending = Ending::limit;
    if (r.ended != CampaignEngine::Outcome::drained) return;
    const auto waiting =
        std::ranges::count_if(r.outcome.runs, [](const WorldJobRun& j) { return !j.over; });
    if (waiting == 0) return;
    if (!bounded) result.ending = Ending::stuck;
    result.stuck_report = fmt::format("{} of {} jobs wait, and nothing will happen any more",
                                      waiting, r.outcome.runs.size());
    if (!r.outcome.stuck.empty()) result.stuck_report += "\n" + r.outcome.stuck;
}

// Says in each event of a job which it is. In a phase jobs are in another order than that of their ids.
void name_jobs(const WorldSpec& spec, const WorldJobs& jobs, std::vector<CampaignEvent>& log) {
    if (log.empty()) return;
    std::vector<const WorldJob*> by_id;
    for (const WorldJob& job : jobs.jobs) {
        const auto id = static_cast<std::size_t>(job.id);
        if (id >= by_id.size()) by_id.resize(id + 1);
        by_id[id] = &job;
    }
    for (CampaignEvent& event : log) {
        if (event.job < 0) continue;  // of a node alone
        const WorldJob& job = *by_id[event.job];
        event.cause = fmt::format("job {}{}{}", spec.name_of(job), event.cause.empty() ? "" : ": ",
                                  event.cause);
    }
}

// What many jobs draw of their feeds.
class WorldFeeds : public WorldListener {
  public:
    // References must outlive it.
    WorldFeeds(const Scenario& s, const WorldJobs& jobs, std::uint64_t replica)
        : s_(s), jobs_(jobs), replica_(replica) {}
    void begins(CampaignEngine& engine, Renewals::Target& nodes) override {
        const WorldSpec& spec = s_.world->spec;
        Watts most;
        for (const NodeDraw& draw : s_.world->power.draws[0]) {
            most = std::max(most, draw.node_step.peak());
        }
        feeds_.emplace(engine, nodes, s_.power,
                       spec.domains[static_cast<std::size_t>(DomainKind::cdu)], spec.nodes(),
                       spec.groups[0].gpus_per_node * spec.parts_per_gpu(), steady(most), s_.seed,
                       replica_);
    }
    void started(JobIndex job, Instant, const Allocation& gpus) override {
        const NodeDraw& draw = s_.world->power.draws[0][jobs_.jobs[job].kind];
        feeds_->set(job, {&draw.node_step, draw.gpu_mean}, gpus,
                    s_.world->spec.parts_of(jobs_.jobs[job]));
    }
    void stopped(JobIndex job, Instant) override { feeds_->leave(job); }
    FeedCounts counts() const { return feeds_->counts(); }

  private:
    const Scenario& s_;
    const WorldJobs& jobs_;
    std::uint64_t replica_;
    std::optional<Feeds> feeds_;
};

// Keeps where each job runs.
class HoldRecorder : public WorldListener {
  public:
    HoldRecorder(const WorldJobs& jobs, std::vector<JobHold>& holds) : jobs_(jobs), holds_(holds) {}
    void started(JobIndex job, Instant now, const Allocation& gpus) override {
        close(job, now);  // a gang that stood still starts again
        running_[job] = holds_.size();
        holds_.push_back({jobs_.jobs[job].id, jobs_.jobs[job].kind, now, Instant::max(), gpus});
    }
    void stopped(JobIndex job, Instant now) override { close(job, now); }

  private:
    void close(JobIndex job, Instant now) {
        const auto was = running_.extract(job);
        if (!was.empty()) holds_[was.mapped()].until = now;
    }

    const WorldJobs& jobs_;
    std::vector<JobHold>& holds_;
    std::map<JobIndex, std::size_t> running_;  // places in holds_
};

std::uint64_t outcome_digest(const WorldRunResult& r) {
    Fingerprint outcome;
    for (std::size_t i = 0; i < category_count; ++i) {
        const auto category = static_cast<Category>(i);
        const GpuNanoseconds booked = r.ledger.booked(category);
        // What shares no link has the digest that it had before jobs could.
        if (category != Category::contention || booked != 0) outcome.add(booked);
    }
    for (const WorldJobRun& job : r.outcome.runs) {
        outcome.add_all(job.first_start.time_since_epoch(), job.end.time_since_epoch(),
                        job.interruptions, job.held, job.kept, static_cast<int>(job.how));
    }
    return outcome.value();
}

}  // namespace

ReplicaResult run_world_replica(const Scenario& s, std::int64_t index, bool log_events,
                                ReplicaTrace* record, WorldPart* part, const TakeJob& take) {
    ReplicaResult result;
    result.index = index;
    const bool bounded = s.duration > Duration{};
    const auto replica = static_cast<std::uint64_t>(index);
    const WorldSpec& spec = s.world->spec;
    const WorldJobs jobs = part != nullptr ? part->jobs
                                           : draw_jobs(*s.world, s.seed, replica,
                                                       bounded ? s.duration : campaign_length_max);
    WorldRun run{
        .spec = spec, .jobs = jobs, .causes = s.causes, .seed = s.seed, .replica = replica};
    if (bounded) run.end = Instant(s.duration);
    if (!s.draws.empty()) {
        run.hashes = s.draws[static_cast<std::size_t>(index) % s.draws.size()].hash_seed;
    }
    run.followed = part != nullptr;
    run.off_at_end = part != nullptr && part->off_at_end;
    run.events_max = static_cast<std::uint64_t>(s.events_max);
    if (s.network_faults.any()) run.network = &s.network_faults;
    if (s.stores[shared_store].failures) run.store = &s.stores[shared_store];
    if (log_events) run.events = &result.log;
    WorldPeak peak(s.world->power, spec, jobs);
    run.listeners = {&peak};
    std::optional<WorldFeeds> feeds;
    if (s.power.breaker || s.power.pump) run.listeners.push_back(&feeds.emplace(s, jobs, replica));
    std::optional<HoldRecorder> recorder;
    if (record != nullptr) run.listeners.push_back(&recorder.emplace(jobs, record->holds));
    WorldRunResult r = run_world(run);
    note_ending(r, bounded, result);
    name_jobs(spec, jobs, result.log);
    result.ledger = r.ledger;
    result.job.interruptions = r.outcome.interruptions;
    result.simulated = r.simulated;
    result.events = r.events;
    result.trajectory = r.trajectory.value();
    result.refused = r.outcome.refused;
    result.outcome = outcome_digest(r);
    result.metrics = world_metrics(s, jobs, r);
    tell_jobs(spec, jobs, r.outcome, Instant(result.simulated), take);
    add_node_counts(s, r.outcome.nodes, result.metrics);
    const NodesDraw draw = peak.draw();
    result.energy =
        energy_of(s.power, node_energy(s.world->power, spec, r.ledgers), result.simulated);
    add_power_metrics(s.power, energy_use(s.power, result.energy, result.simulated, draw),
                      draw.swing, std::nullopt, result.metrics);
    add_facility_metrics(s.power, spec.nodes(), feeds ? feeds->counts() : FeedCounts{},
                         result.metrics);
    result.repairs = r.outcome.repairs;
    if (s.cost) add_cost_metrics(s, result);
    if (part != nullptr) part->ran = std::move(r);
    return result;
}

}  // namespace railyard
