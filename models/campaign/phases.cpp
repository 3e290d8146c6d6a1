#include "models/campaign/phases.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "models/campaign/world_phases.h"
#include "models/facility/facility.h"
#include "sim/check.h"
#include "sim/fingerprint.h"
#include "sim/integers.h"
#include "sim/rng.h"

namespace railyard {

namespace {

// Metrics that are given for each phase, too.
constexpr const char* told[] = {
    "goodput",    "tokens_per_day", "utilisation",   "work_done",     "jobs_completed",
    "step_time",  "mfu_step",       "power_mean",    "power_peak",    "interruptions",
    "energy",     "repair_visits",  "gpus_replaced", "nics_replaced", "other_parts_replaced",
    "paid_by_use"};
// What phases' metrics are together: the highest of them, their mean over time, that of the last phase.
// Means over things that are counted are joined by their sums; all others are summed.
constexpr std::array<std::string_view, 12> highest = {
    "job_finished",    "repair_queue_max", "power_peak",          "power_design",
    "power_swing",     "power_swing_rate", "power_supplies_load", "power_budget_load",
    "rack_power_peak", "gpu_temperature",  "hbm_temperature",     "breaker_load_peak"};
constexpr std::array<std::string_view, 4> mean_over_time = {"power_mean", "power_budget_clock",
                                                            "gpu_clock", "data_utilisation"};
bool of_the_last(std::string_view metric) {
    return metric.ends_with("_bytes_kept") || metric.ends_with("_bytes_in_flight") ||
           metric == "object_store_kept_cost_per_month";
}

Duration between(Day from, Day until) {
    return std::chrono::duration_cast<Duration>(until - from);
}

// Puts keys of a table into a scenario, by their whole paths: "cluster.nodes" and { cluster = { nodes } }.
void put_into(Document& document, const std::string& path, const Value& value,
              Diagnostics& diagnostics) {
    if (value.kind == Value::Kind::table && !value.find("value")) {
        for (const Member& member : value.members) {
            put_into(document, path + "." + member.key, member.value, diagnostics);
        }
    } else {
        put_value(document.root, path, value, document.name, diagnostics);
    }
}

void refuse(Section& top, Section& run, bool allowed) {
    if (!allowed) {
        top.error("phase", "the cluster changes, and this looks at one that stays as it is",
                  "run, compare, sweep and design take phases");
    }
    for (const char* key : {"start", "duration"}) {
        if (!run.has(key)) run.error(key, "is missing: [[phase]] needs it");
    }
}

}  // namespace

bool has_phases(const Document& document) {
    const Value* run = document.root.find("run");
    return document.root.find("phase") || (run && run->find("ready"));
}

std::vector<Section> phase_sections(Section& top) {
    return top.sections("phase", "From a day on the cluster is another one, each a [[phase]]");
}

PhaseSpec read_phase(Section& phase) {
    PhaseSpec out;
    phase.read("at", out.day, "The day from which on it is, as \"2027-03-01\"",
               {.otherwise = "required", .required = true});
    phase.read("stop", out.stop, "How long the job stands still first, with nothing switched on",
               {Bound::non_negative});
    const Value* set =
        phase.open_table("set", "Keys that are others from then on, as { \"cluster.nodes\" = 64 }");
    if (set != nullptr) out.set = *set;
    const Value* run = out.set.find("run");
    for (const std::string key : {"seed", "replicas", "duration"}) {
        if (!(run ? run->find(key) : out.set.find("run." + key))) continue;
        phase.error("set", fmt::format("run.{} is the whole campaign's, not a phase's", key));
    }
    phase.finish();
    return out;
}

PhaseDays read_phase_days(Section& run, bool phased) {
    PhaseDays out;
    run.read("start", out.start,
             "With [[phase]]: the day on which run.duration begins, and that money is worth what "
             "it is on",
             {.otherwise = "not given"});
    run.read("ready", out.ready,
             "The day on which the first nodes are there; before it nothing runs, or is paid",
             {.otherwise = "run.start"});
    if (phased || run.describing()) return out;
    if (run.has("start")) run.error("start", "has no effect without [[phase]] or run.ready");
    return out;
}

std::vector<PhaseSpec> take_phases(Document& document, ValueReader& values, bool allowed) {
    if (!has_phases(document)) return {};
    Section top(values, &document.root, "", {});
    Section run = top.section("run");
    refuse(top, run, allowed);
    const PhaseDays days = read_phase_days(run, true);
    const std::optional<Day> start = day_of(run, "start", days.start);
    const std::optional<Day> ready = days.ready.empty() ? start : day_of(run, "ready", days.ready);
    std::vector<PhaseSpec> out(1);
    if (start && ready) {
        out[0].name = day_text(*ready);
        out[0].from = between(*start, *ready);
        if (out[0].from < Duration{}) run.error("ready", "is before run.start");
    }
    const auto where = [&](const Value* table, const char* key, std::string path) {
        const Value* value = table ? table->find(key) : nullptr;
        return Diagnostic{document.name, value ? value->at : Position{}, std::move(path), {}, {}};
    };
    out[0].at = where(document.root.find("run"), "ready", "run.ready");
    const Value* tables = document.root.find("phase");
    std::size_t number = 0;
    for (Section& section : phase_sections(top)) {
        PhaseSpec phase = read_phase(section);
        phase.at = where(&tables->items[number++], "at", section.path("at"));
        const std::optional<Day> day = day_of(section, "at", phase.day);
        if (!start || !day) continue;
        phase.name = day_text(*day);
        phase.from = between(*start, *day);
        if (phase.from <= out.back().from) section.error("at", "comes before the phase before it");
        out.back().until = phase.from;
        out.push_back(std::move(phase));
    }
    std::erase_if(document.root.members, [](const Member& m) { return m.key == "phase"; });
    if (Value* there = document.root.find("run")) {
        std::erase_if(there->members,
                      [](const Member& m) { return m.key == "start" || m.key == "ready"; });
    }
    return out;
}

namespace {

double years(Duration time) {
    return seconds(time) / seconds_per_year;
}

// Puts strikes at known times on the phase's clock; those outside of the phase are left out.
template <class Strikes>
void cut_strikes(Strikes& strikes, Duration begin, Duration length) {
    for (auto& strike : strikes) strike.at -= begin;
    std::erase_if(
        strikes, [&](const auto& strike) { return strike.at < Duration{} || strike.at >= length; });
}

// A part of the network that is out on the phase's first day is out from then on, as long as is left.
void cut_outages(std::vector<NetworkOutage>& outages, Duration begin, Duration length) {
    std::erase_if(outages, [&](NetworkOutage& outage) {
        const Duration late = std::max(Duration{}, begin - outage.at);
        outage.at = std::max(Duration{}, outage.at - begin);
        if (outage.duration) *outage.duration -= late;
        return outage.at >= length || (outage.duration && *outage.duration <= Duration{});
    });
}

// A part of a store that is out on the phase's first day, likewise.
void cut_store_strikes(std::vector<StoreStrike>& strikes, Duration begin, Duration length) {
    for (StoreStrike& strike : strikes) {
        const Duration gone = begin - strike.at;
        if (gone <= Duration{} || gone >= strike.down_for) continue;
        strike.down_for -= gone;
        strike.at = begin;
    }
    cut_strikes(strikes, begin, length);
}

void cut_reservations(std::vector<Reservation>& reservations, Duration begin) {
    std::vector<Reservation> out;
    for (Reservation each : reservations) {
        each.start -= begin;
        if (const Duration gone = Instant{} - each.start; gone > Duration{}) {
            if (each.every == Duration{} && gone >= each.length) continue;
            const Duration into = each.every > Duration{} ? gone % each.every : gone;
            if (into < each.length) {
                Reservation rest = each;
                rest.start = Instant{};
                rest.length = each.length - into;
                rest.every = {};
                out.push_back(rest);
            }
            if (each.every == Duration{}) continue;
            each.start = Instant(into == Duration{} ? into : each.every - into);
            if (into == Duration{}) out.pop_back();
        }
        out.push_back(each);
    }
    reservations = std::move(out);
}

void cut_dates(std::vector<StageSpec>& stages, Duration begin) {
    for (StageSpec& stage : stages) {
        if (stage.until) *stage.until -= begin;
    }
}

// Cuts a scenario that was read for the whole campaign to the days from `begin` to `end`.
void cut_to(Scenario& part, Duration begin, Duration end) {
    part.duration = end - begin;
    cut_strikes(part.nodes.injected, begin, part.duration);
    cut_strikes(part.power.injected_pump_losses, begin, part.duration);
    cut_outages(part.network_faults.injected, begin, part.duration);
    for (StoreSetup& store : part.stores) {
        if (store.failures) cut_store_strikes(store.failures->strikes, begin, part.duration);
    }
    cut_dates(part.job.stages, begin);
    for (NetworkDraw& draw : part.draws) cut_dates(draw.stages, begin);
    for (PauseSpec& pause : part.job.pauses) {
        if (pause.at) *pause.at -= begin;
    }
    part.job.maintenance.since = begin;
    if (!part.world) return;
    auto world = std::make_shared<WorldScenario>(*part.world);
    world->spec.injected = part.nodes.injected;
    cut_reservations(world->spec.reservations, begin);
    part.world = std::move(world);
}

// Failures at times when nothing is switched on.
void warn_of_unmet_strikes(const Document& document, const std::vector<PhaseSpec>& phases,
                           const std::vector<InjectedStrike>& strikes, Scenario& whole) {
    const Value* inject = document.root.find("inject");
    for (const InjectedStrike& strike : strikes) {
        const bool met = std::ranges::any_of(phases, [&](const PhaseSpec& phase) {
            return strike.at >= phase.from + phase.stop && strike.at < phase.until;
        });
        if (met || strike.at >= whole.duration) continue;
        whole.warnings.push_back(
            {document.name,
             inject ? inject->at : Position{},
             "inject",
             fmt::format("the failure after {} has no effect: nothing is switched on then",
                         to_text(strike.at)),
             {}});
    }
}

// Kubernetes and Kueue try pods again by how often and when they have failed, which a phase does not know.
void warn_of_forgotten_order(const std::vector<Diagnostic>& days, Scenario& whole) {
    if (!whole.world || whole.phases.size() < 2) return;
    const std::string& scheduler = whole.world->spec.scheduler;
    if (scheduler != "kubernetes" && scheduler != "kueue") return;
    Diagnostic said = days[1];
    said.message = fmt::format(
        "under {} jobs that wait on this day are all tried anew: which of them start first, and so "
        "how many are done, can be other than without a phase",
        scheduler);
    said.help = "where that matters, compare with scheduler.kind = \"slurm\" or \"volcano\"";
    whole.warnings.push_back(std::move(said));
}

// The days must be in the campaign, whose length is known once the first phase has been read.
void set_ends(std::vector<PhaseSpec>& phases, Duration whole) {
    Diagnostics diagnostics;
    const auto wrong = [&](const PhaseSpec& phase, std::string what) {
        diagnostics.error(phase.at.file, phase.at.at, phase.at.path, std::move(what));
    };
    phases.back().until = whole;
    for (const PhaseSpec& phase : phases) {
        if (phase.from >= whole) {
            wrong(phase, "the campaign has ended by then");
        } else if (phase.stop > Duration{} && phase.stop >= phase.until - phase.from) {
            wrong(phase,
                  fmt::format("the job stands still for all of that from {} on", phase.name));
        }
    }
    diagnostics.raise_if_any();
}

// What the phases' own scenarios have, in the whole.
void add_phase(Scenario& whole, const PhaseSpec& spec, Scenario part) {
    for (const Estimate& estimate : part.estimates) {
        const auto same = [&](const Estimate& e) { return e.path == estimate.path; };
        if (std::ranges::none_of(whole.estimates, same)) whole.estimates.push_back(estimate);
    }
    for (const FailureCause& cause : part.causes) {
        const auto same = [&](const FailureCause& c) { return c.name == cause.name; };
        if (std::ranges::none_of(whole.causes, same)) whole.causes.push_back(cause);
    }
    if (whole.no_path.empty()) whole.no_path = part.no_path;
    if (part.draws.size() < whole.draws.size()) whole.draws = part.draws;
    whole.phases.push_back({spec.name, spec.from, spec.until, spec.stop,
                            std::make_shared<const Scenario>(std::move(part))});
}

void join_costs(Scenario& whole) {
    std::vector<CostPhase> phases;
    for (const ScenarioPhase& phase : whole.phases) {
        if (!phase.as->cost) {
            whole.cost.reset();
            return;
        }
        phases.push_back(
            {phase.name, years(phase.from), years(phase.until), phase.as->cost->plan, {}});
    }
    whole.cost->plan = join_phases(std::move(phases), years(whole.duration));
}

}  // namespace

Scenario load_phases(const Document& document, std::vector<PhaseSpec> phases,
                     ScenarioChanges changes) {
    changes.settings.clear();
    Scenario whole;
    std::vector<InjectedStrike> strikes;
    Document there = document;
    for (std::size_t k = 0; k < phases.size(); ++k) {
        const PhaseSpec& phase = phases[k];
        Diagnostics diagnostics;
        for (const Member& member : phase.set.members) {
            put_into(there, member.key, member.value, diagnostics);
        }
        diagnostics.raise_if_any();
        Scenario part;
        try {
            part = load_scenario(there, changes);
        } catch (const ScenarioError& error) {
            std::vector<Diagnostic> said = error.diagnostics();
            for (Diagnostic& each : said) {
                each.message = fmt::format("from {} on: {}", phase.name, each.message);
            }
            throw said.empty() ? error : ScenarioError(std::move(said));
        }
        if (k == 0) {
            set_ends(phases, part.duration);
            whole = part;
            strikes = part.nodes.injected;
        }
        cut_to(part, phase.from + phase.stop, phase.until);
        // Luck of its own, the same for all designs.
        if (k > 0) part.seed = RandomStream(whole.seed, k, "phase").next_u64();
        add_phase(whole, phase, std::move(part));
    }
    warn_of_unmet_strikes(document, phases, strikes, whole);
    std::vector<Diagnostic> days;
    for (const PhaseSpec& phase : phases) days.push_back(phase.at);
    check_world_phases(whole, days);
    warn_of_forgotten_order(days, whole);
    if (whole.cost) join_costs(whole);
    return whole;
}

std::string phase_metric(std::size_t k, std::string_view name) {
    return fmt::format("phase_{}_{}", k + 1, name);
}

namespace {

// Adds a phase's ledger, energy and counts to the whole.
void add_counts(const Scenario& whole, const ScenarioPhase& phase, const ReplicaResult& r,
                ReplicaResult& out) {
    out.ledger.add(r.ledger);
    for (std::size_t c = 0; c < category_count; ++c) out.energy.nodes[c] += r.energy.nodes[c];
    const std::int64_t parts = phase.as->world ? phase.as->world->spec.parts_per_gpu() : 1;
    out.ledger.book(Category::planned_maintenance, phase.as->gpus() * parts, phase.stop);
    out.energy.network += r.energy.network;
    out.energy.storage += r.energy.storage;
    for (std::size_t i = 0; i < phase.as->causes.size(); ++i) {
        const auto same =
            std::ranges::find(whole.causes, phase.as->causes[i].name, &FailureCause::name);
        RY_CHECK(same != whole.causes.end());
        const auto at = static_cast<std::size_t>(same - whole.causes.begin());
        if (!r.job.interruptions.empty()) out.job.interruptions[at] += r.job.interruptions[i];
        out.repairs[at] += r.repairs[i];
    }
    out.job.planned_interruptions += r.job.planned_interruptions;
    out.events += r.events;
    if (r.ending != Ending::complete) out.ending = r.ending;
    out.stuck_report = r.stuck_report;  // of the last: in the next a job may go on
}

// What is there on a phase's last day: newer copies replace it in the next, and what is on its way is lost.
double left_behind(const std::vector<ReplicaResult>& parts, const std::string& name) {
    const std::size_t end = name.rfind('_');
    const bool expired = name.ends_with("_bytes_expired");
    if (!expired && !name.ends_with("_bytes_lost")) return 0;
    const std::string left = name.substr(0, end) + (expired ? "_kept" : "_in_flight");
    double sum = 0;
    for (std::size_t k = 0; k + 1 < parts.size(); ++k) {
        if (const Metric* each = find_named(parts[k].metrics, left)) sum += each->value;
    }
    return sum;
}

// A metric of all phases that have it.
Metric joined(const std::vector<ReplicaResult>& parts, const std::string& name) {
    double sum = 0;
    double count = 0;
    double most = 0;
    double last = 0;
    double over_time = 0;
    double time = 0;
    bool plain = true;
    for (const ReplicaResult& part : parts) {
        const Metric* each = find_named(part.metrics, name);
        if (each == nullptr) continue;
        plain = each->plain;
        sum += plain ? each->value : each->sum;
        count += each->count;
        most = std::max(most, each->value);
        last = each->value;
        over_time += each->value * seconds(part.simulated);
        time += seconds(part.simulated);
    }
    if (!plain) return mean_metric(name, sum, count);
    if (std::ranges::find(highest, name) != highest.end()) return plain_metric(name, most);
    if (of_the_last(name)) return plain_metric(name, last);
    const bool mean = std::ranges::find(mean_over_time, name) != mean_over_time.end();
    return plain_metric(name, mean ? ratio(over_time, time) : sum + left_behind(parts, name));
}

// Those metrics of the first phase that the whole does not have yet. (A job that ends early has none of those
// that only later phases have, and all replicas have the same.)
void add_joined(const std::vector<ReplicaResult>& parts, MetricList& metrics) {
    for (const Metric& first : parts[0].metrics) {
        if (find_named(metrics, first.name) || cost_metric(first.name)) continue;
        metrics.push_back(joined(parts, first.name));
    }
}

// What stores are paid by use, each phase's at its own prices; none in phases after the job's end.
void add_paid_by_use(const Scenario& s, const std::vector<ReplicaResult>& parts,
                     MetricList& metrics) {
    const auto pays = [](const ScenarioPhase& phase) { return pays_by_use(*phase.as); };
    if (std::ranges::none_of(s.phases, pays)) return;
    for (const char* name : {"object_store_requests_cost", "object_store_egress_cost",
                             "object_store_kept_cost", "object_store_kept_cost_per_month"}) {
        double value = 0;
        for (const ReplicaResult& part : parts) {
            const Metric* found = find_named(part.metrics, name);
            value = (of_the_last(name) ? 0 : value) + (found != nullptr ? found->value : 0);
        }
        std::erase_if(metrics, [&](const Metric& m) { return m.name == name; });
        metrics.add(name, value);
    }
}

// Those metrics of each phase that the first one has; zeros in phases after the job's end.
void tell_phases(const Scenario& s, const std::vector<ReplicaResult>& parts, MetricList& metrics) {
    for (std::size_t k = 0; k < s.phases.size(); ++k) {
        for (const char* name : told) {
            if (!find_named(parts[0].metrics, name)) continue;
            const Metric* each = k < parts.size() ? find_named(parts[k].metrics, name) : nullptr;
            metrics.add(phase_metric(k, name), each != nullptr ? each->value : 0);
        }
    }
}

// How well one job used what it had: over all phases, and over the days between them.
void add_use(const Scenario& s, const std::vector<ReplicaResult>& parts, MetricList& metrics) {
    double flops = 0;
    double peak = 0;           // of the job's GPUs, over its time
    double peak_stepping = 0;  // while it stepped
    double stepping = 0;
    double steps = 0;
    for (std::size_t k = 0; k < parts.size(); ++k) {
        const Scenario& as = *s.phases[k].as;
        const Ledger& ledger = parts[k].ledger;
        const auto value = [&](const char* name) {
            const Metric* found = find_named(parts[k].metrics, name);
            RY_CHECK(found != nullptr);
            return found->value;
        };
        const auto held =
            real(ledger.total() - ledger.booked(Category::spare) - ledger.booked(Category::repair));
        const double had = held * 1e-9 * as.node.gpu.bf16_dense.per_second;
        flops += value("mfu") * had;
        peak += had + seconds(s.phases[k].stop) * as.peak_flops();
        if (value("mfu_step") != 0) peak_stepping += value("mfu") * had / value("mfu_step");
        stepping += value("steps") * value("step_time");
        steps += value("steps");
    }
    metrics.add("mfu", ratio(flops, peak));
    metrics.add("mfu_step", ratio(flops, peak_stepping));
    metrics.add("step_time", ratio(stepping, steps));
}

// For one job that goes from phase to phase.
MetricList metrics_of(const Scenario& s, const std::vector<ReplicaResult>& parts,
                      const ReplicaResult& out) {
    const auto sum = [&](const char* name) { return joined(parts, name).value; };
    const double days = seconds(out.simulated) / 86400;
    MetricList metrics;
    metrics.add("goodput", out.ledger.fraction(Category::productive));
    const Duration there = out.simulated - s.phases[0].from;  // since the first nodes are
    metrics.add("ettr", ratio(sum("training_time"), seconds(there)));
    add_use(s, parts, metrics);
    metrics.add("steps_per_day", sum("steps") / days);
    metrics.add("tokens_per_day", sum("tokens") / days);
    metrics.add("wall_time", seconds(out.simulated));
    add_paid_by_use(s, parts, metrics);
    add_joined(parts, metrics);
    tell_phases(s, parts, metrics);
    return metrics;
}

std::int64_t length_of(const StageSpec& stage) {
    std::int64_t steps = 0;
    for (const StageLevel& level : stage.levels) {
        steps = std::min(endless, steps + std::min(endless, level.steps));
    }
    return steps;
}

// As many steps of the same time, of which `from` are as many of `to`.
void count_in(StepsAtRisk& at_risk, std::int64_t from, std::int64_t to) {
    if (from == to) return;
    for (auto& each : at_risk.done) {
        const std::int64_t steps = std::max<std::int64_t>(1, in_proportion(each.steps, from, to));
        for (const auto& [category, part] : step_parts) {
            each.each.*part = each.each.*part * each.steps / steps;
        }
        each.steps = steps;
    }
}

// A phase with another step counts other steps: the same share of each length is done. The few steps at risk
// follow the job's length alone, not that of their stage.
void go_on_in(const Scenario& before, const Scenario& now, JobSoFar& so_far) {
    so_far.steps_to_target =
        in_proportion(so_far.steps_to_target, before.job.target_steps, now.job.target_steps);
    if (before.job.target_steps > 0) {
        count_in(so_far.at_risk, before.job.target_steps, now.job.target_steps);
    }
    for (std::size_t i = 0; i < so_far.by_stage.size() && i < now.job.stages.size(); ++i) {
        so_far.by_stage[i] = in_proportion(so_far.by_stage[i], length_of(before.job.stages[i]),
                                           length_of(now.job.stages[i]));
    }
}

// Runs phases one after another and adds them up.
class PhaseRun {
  public:
    PhaseRun(const Scenario& s, std::int64_t index, bool log_events, const TakeJob& jobs)
        : s_(s), log_events_(log_events), jobs_(jobs) {
        out_.index = index;
        out_.job.interruptions.assign(s.causes.size(), 0);
        out_.repairs.assign(s.causes.size(), 0);
        out_.simulated = s.duration;
    }

    ReplicaResult run() {
        s_.world ? run_many() : run_one();
        for (const ReplicaResult& part : parts_) {
            outcome_.add(part.outcome);
            trajectory_.add(part.trajectory);
        }
        out_.outcome = outcome_.value();
        out_.trajectory = trajectory_.value();
        if (s_.cost) add_cost_metrics(s_, out_);
        return std::move(out_);
    }

  private:
    void run_one();
    void run_many();
    void add(const ScenarioPhase& phase, ReplicaResult part) {
        add_counts(s_, phase, part, out_);
        for (CampaignEvent& event : part.log) {
            event.at += phase.from + phase.stop;
            out_.log.push_back(std::move(event));
        }
        parts_.push_back(std::move(part));
    }

    const Scenario& s_;
    bool log_events_;
    const TakeJob& jobs_;
    ReplicaResult out_;
    std::vector<ReplicaResult> parts_;
    Fingerprint outcome_;
    Fingerprint trajectory_;
};

void PhaseRun::run_one() {
    JobSoFar so_far;
    for (std::size_t k = 0; k < s_.phases.size(); ++k) {
        const ScenarioPhase& phase = s_.phases[k];
        if (k > 0) go_on_in(*s_.phases[k - 1].as, *phase.as, so_far);
        so_far.pause_left = std::max(Duration{}, so_far.pause_left - phase.stop);
        so_far.at_risk.stood_still = phase.stop > Duration{};
        ReplicaResult part = run_replica(*phase.as, out_.index, log_events_, nullptr, &so_far);
        const bool finished = part.job.finished;
        if (finished) out_.simulated = phase.from + phase.stop + part.simulated;
        add(phase, std::move(part));
        if (finished) break;
    }
    out_.metrics = metrics_of(s_, parts_, out_);
}

void PhaseRun::run_many() {
    WorldPhases phases(s_, out_.index);
    for (std::size_t k = 0; k < s_.phases.size(); ++k) {
        WorldPart part = phases.part(k);
        add(s_.phases[k],
            run_world_replica(*s_.phases[k].as, out_.index, log_events_, nullptr, &part));
        phases.take(k, std::move(part));
    }
    const WorldRunResult ran = phases.ran();
    out_.ledger = ran.ledger;
    for (std::size_t k = 0; k < s_.phases.size(); ++k) {
        const WorldScenario& world = *s_.phases[k].as->world;
        const NodeEnergy moved = node_energy(world.power, world.spec, phases.moved(k));
        for (std::size_t c = 0; c < category_count; ++c) out_.energy.nodes[c] += moved[c];
    }
    out_.refused = ran.outcome.refused;
    out_.metrics = world_metrics(s_, phases.jobs(), ran);
    tell_jobs(s_.world->spec, phases.jobs(), ran.outcome, Instant(s_.duration), jobs_);
    add_paid_by_use(s_, parts_, out_.metrics);
    add_joined(parts_, out_.metrics);
    tell_phases(s_, parts_, out_.metrics);
}

}  // namespace

ReplicaResult run_phases(const Scenario& s, std::int64_t index, bool log_events,
                         const TakeJob& jobs) {
    return PhaseRun(s, index, log_events, jobs).run();
}

}  // namespace railyard
