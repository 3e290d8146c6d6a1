#include "models/campaign/phases.h"

#include <fmt/format.h>

#include <algorithm>

#include "models/facility/facility.h"
#include "sim/fingerprint.h"
#include "sim/rng.h"

namespace railyard {

namespace {

// Sums over phases; of these the second list, by phase too.
constexpr const char* summed[] = {"steps",
                                  "steps_lost",
                                  "tokens",
                                  "training_time",
                                  "checkpoints",
                                  "checkpoints_lost",
                                  "checkpoint_stall_time",
                                  "planned_interruptions",
                                  "failures_while_down"};
constexpr const char* summed_and_told[] = {"interruptions", "energy",        "repair_visits",
                                           "gpus_replaced", "nics_replaced", "other_parts_replaced",
                                           "paid_by_use"};

Duration between(Day from, Day until) {
    return std::chrono::duration_cast<Duration>(until - from);
}

// Puts the keys of a table into another, by their whole paths: "cluster.nodes" and { cluster = { nodes } }.
void put_into(Value& table, const std::string& path, const Value& value) {
    const std::size_t dot = path.find('.');
    const std::string key = path.substr(0, dot);
    Value* there = table.find(key);
    if (there == nullptr) {
        Value fresh;
        fresh.at = value.at;
        table.members.push_back({key, fresh});
        there = &table.members.back().value;
    }
    if (dot != std::string::npos) {
        put_into(*there, path.substr(dot + 1), value);
    } else if (value.kind == Value::Kind::table && !value.find("value")) {
        for (const Member& member : value.members) put_into(*there, member.key, member.value);
    } else {
        *there = value;
    }
}

void set_text(Document& document, const std::string& path, std::string text) {
    Value value;
    value.kind = Value::Kind::string;
    value.text = std::move(text);
    put_into(document.root, path, value);
}

void refuse(Section& top, Section& run, bool allowed) {
    if (!allowed) {
        top.error("phase", "the cluster changes, and this looks at one that stays as it is",
                  "run, compare, sweep and design take phases");
    }
    for (const char* key : {"scheduler", "inject"}) {
        if (top.has(key)) top.error(key, "is not there beside [[phase]]");
    }
    Section job = top.section("job");
    for (const char* key : {"stage", "pause", "length"}) {
        if (job.has(key)) job.error(key, "is not there beside [[phase]], whose days end campaigns");
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
               {.required = true, .otherwise = "required"});
    phase.read("stop", out.stop, "How long the job stands still first, with nothing switched on",
               {.bound = Bound::non_negative});
    const Value* set =
        phase.open_table("set", "Keys that are others from then on, as { \"cluster.nodes\" = 64 }");
    if (set != nullptr) out.set = *set;
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
    Duration whole{};
    run.read("duration", whole, "", {.bound = Bound::positive});
    const std::optional<Day> start = day_of(run, "start", days.start);
    const std::optional<Day> ready = days.ready.empty() ? start : day_of(run, "ready", days.ready);
    std::vector<PhaseSpec> out(1);
    if (start && ready) {
        out[0].name = day_text(*ready);
        out[0].from = between(*start, *ready);
        if (out[0].from < Duration{}) run.error("ready", "is before run.start");
        if (out[0].from >= whole) run.error("ready", "the campaign has ended by then");
    }
    for (Section& section : phase_sections(top)) {
        PhaseSpec phase = read_phase(section);
        const std::optional<Day> day = day_of(section, "at", phase.day);
        if (!start || !day) continue;
        phase.name = day_text(*day);
        phase.from = between(*start, *day);
        if (phase.from <= out.back().from) section.error("at", "comes before the phase before it");
        if (phase.from >= whole) section.error("at", "the campaign has ended by then");
        out.back().until = phase.from;
        out.push_back(std::move(phase));
    }
    out.back().until = whole;
    for (const PhaseSpec& phase : out) {
        if (phase.stop > Duration{} && phase.stop >= phase.until - phase.from) {
            top.error("phase",
                      fmt::format("the job stands still for all of that from {} on", phase.name));
        }
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

Scenario load_phases(const Document& document, const std::vector<PhaseSpec>& phases,
                     ScenarioChanges changes) {
    changes.settings.clear();
    Scenario whole;
    Document there = document;
    for (std::size_t k = 0; k < phases.size(); ++k) {
        const PhaseSpec& phase = phases[k];
        for (const Member& member : phase.set.members) {
            put_into(there.root, member.key, member.value);
        }
        set_text(there, "run.duration",
                 fmt::format("{} ns", (phase.until - phase.from - phase.stop).count()));
        try {
            Scenario part = load_scenario(there, changes);
            if (k == 0) whole = part;
            // Luck of its own, the same for all designs.
            if (k > 0) part.seed = RandomStream(whole.seed, k, "phase").next_u64();
            add_phase(whole, phase, std::move(part));
        } catch (const ScenarioError& error) {
            std::vector<Diagnostic> said = error.diagnostics();
            for (Diagnostic& each : said) {
                each.message = fmt::format("from {} on: {}", phase.name, each.message);
            }
            throw said.empty() ? error : ScenarioError(std::move(said));
        }
    }
    whole.duration = phases.back().until;
    if (whole.cost) join_costs(whole);
    return whole;
}

std::string phase_metric(std::size_t k, std::string_view name) {
    return fmt::format("phase_{}_{}", k + 1, name);
}

namespace {

const Metric* metric_of(const ReplicaResult& r, std::string_view name) {
    const auto found = std::ranges::find(r.metrics, name, &Metric::name);
    return found == r.metrics.end() ? nullptr : &*found;
}

// Its ledger, its energy and its counts.
void add_counts(const Scenario& whole, const ScenarioPhase& phase, const ReplicaResult& r,
                ReplicaResult& out) {
    for (std::size_t c = 0; c < category_count; ++c) {
        const auto category = static_cast<Category>(c);
        out.ledger.book(category, r.ledger.booked(category));
        out.energy.nodes[c] += r.energy.nodes[c];
    }
    out.ledger.book(Category::planned_maintenance, phase.as->gpus(), phase.stop);
    out.energy.network += r.energy.network;
    out.energy.storage += r.energy.storage;
    for (std::size_t i = 0; i < phase.as->causes.size(); ++i) {
        const auto same =
            std::ranges::find(whole.causes, phase.as->causes[i].name, &FailureCause::name);
        const auto at = static_cast<std::size_t>(same - whole.causes.begin());
        out.job.interruptions[at] += r.job.interruptions[i];
        out.repairs[at] += r.repairs[i];
    }
    out.job.planned_interruptions += r.job.planned_interruptions;
    out.events += r.events;
    if (r.ending != Ending::complete) out.ending = r.ending;
    if (!r.stuck_report.empty()) out.stuck_report = r.stuck_report;
}

std::vector<Metric> metrics_of(const std::vector<ReplicaResult>& parts, const ReplicaResult& out) {
    std::vector<Metric> metrics;
    const auto value = [&](std::string_view name) {
        return std::ranges::find(metrics, name, &Metric::name)->value;
    };
    const auto add_sum = [&](const char* name) {
        double sum = 0;
        const Metric* last = nullptr;
        for (const ReplicaResult& part : parts) {
            const Metric* each = metric_of(part, name);
            if (each == nullptr) continue;
            last = each;
            sum += each->value;
        }
        if (last != nullptr) metrics.push_back(plain_metric(name, last->unit, sum));
    };
    const double days = seconds(out.simulated) / 86400;
    metrics.push_back(plain_metric("goodput", "1", out.ledger.fraction(Category::productive)));
    for (const char* name : summed) add_sum(name);
    for (const char* name : summed_and_told) add_sum(name);
    metrics.push_back(plain_metric("steps_per_day", "steps/day", value("steps") / days));
    metrics.push_back(plain_metric("tokens_per_day", "tokens/day", value("tokens") / days));
    metrics.push_back(plain_metric("wall_time", "s", seconds(out.simulated)));
    for (std::size_t k = 0; k < parts.size(); ++k) {
        const auto tell = [&](const char* name) {
            if (const Metric* each = metric_of(parts[k], name)) {
                metrics.push_back(plain_metric(phase_metric(k, name), each->unit, each->value));
            }
        };
        for (const char* name : {"goodput", "tokens_per_day"}) tell(name);
        for (const char* name : summed_and_told) tell(name);
    }
    return metrics;
}

}  // namespace

ReplicaResult run_phases(const Scenario& s, std::int64_t index) {
    ReplicaResult out;
    out.index = index;
    out.job.interruptions.assign(s.causes.size(), 0);
    out.repairs.assign(s.causes.size(), 0);
    out.simulated = s.duration;
    std::vector<ReplicaResult> parts;
    Fingerprint outcome;
    Fingerprint trajectory;
    for (const ScenarioPhase& phase : s.phases) {
        parts.push_back(run_replica(*phase.as, index, false));
        outcome.add(parts.back().outcome);
        trajectory.add(parts.back().trajectory);
        add_counts(s, phase, parts.back(), out);
    }
    out.outcome = outcome.value();
    out.trajectory = trajectory.value();
    out.metrics = metrics_of(parts, out);
    if (s.cost) add_cost_metrics(s, out);
    return out;
}

}  // namespace railyard
