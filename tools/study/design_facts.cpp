#include "tools/study/design_facts.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "sim/integers.h"
#include "sim/text.h"
#include "tools/results/point_key.h"
#include "tools/study/design_limits.h"

namespace railyard {

DesignReader::DesignReader(const std::string& text, const std::string& file,
                           std::shared_ptr<WindowCache> windows)
    : base_(document_with(text, file, {})), windows_(std::move(windows)) {}

Document DesignReader::document(const std::vector<std::string>& settings) const {
    Document out = base_;
    Diagnostics diagnostics;
    for (const std::string& setting : settings) apply_setting(out, setting, diagnostics);
    diagnostics.raise_if_any();
    return out;
}

namespace {

std::string layers_setting(const std::vector<std::int64_t>& layers) {
    return fmt::format("job.parallel.stage_layers=[\"{}\"]", fmt::join(layers, "\", \""));
}

void erase(Value& table, std::initializer_list<std::string_view> keys) {
    std::erase_if(table.members,
                  [&](const Member& m) { return std::ranges::find(keys, m.key) != keys.end(); });
}

Value* table_in(Document& document, std::initializer_list<const char*> path) {
    Value* at = &document.root;
    for (const char* key : path) {
        if (at != nullptr) at = at->find(key);
    }
    return at;
}

// What all designs have in common that differ in how often they save alone.
std::string facts_key(Document design) {
    erase(design.root, {"title", "design"});
    Value* checkpoint = table_in(design, {"job", "checkpoint"});
    if (checkpoint != nullptr) erase(*checkpoint, {"interval"});
    return to_toml(design.root);
}

// All of the scenario that a step on an ideal network can hang on.
std::string plan_key(Document design) {
    erase(design.root, {"title", "run", "storage", "object_store", "failures", "inject", "cost",
                        "window", "design"});
    Value* job = design.root.find("job");
    Value* cluster = design.root.find("cluster");
    if (job != nullptr) erase(*job, {"checkpoint", "recovery"});
    if (job != nullptr && cluster != nullptr && job->find("nodes") != nullptr) {
        erase(*cluster, {"nodes"});
    }
    return to_toml(design.root);
}

// How often the job of a document saves, in steps; `usual` where it does not say.
std::int64_t interval_steps(Document& design, const KeptBound& usual) {
    Value* checkpoint = table_in(design, {"job", "checkpoint"});
    if (checkpoint == nullptr || checkpoint->find("interval") == nullptr) {
        return usual.interval_steps;
    }
    Duration time{};
    std::int64_t steps = 0;
    Diagnostics diagnostics;
    ValueReader values(diagnostics, design.name);
    Section section(values, checkpoint, "job.checkpoint", {});
    section.read_time_or_steps("interval", time, steps, "", {});
    return steps > 0 ? steps : ceil_div(time.count(), usual.step.count());
}

// In place of what a file says of its stages, which is of another plan.
void tell_layers(const TransformerModel& m, const ParallelPlan& p,
                 std::vector<std::string>& settings) {
    if (p.pipeline == 1 || !p.stage_layers.empty()) return;
    std::vector<std::int64_t> layers;
    for (const StageRun& run : stage_runs(m, p)) {
        layers.insert(layers.end(), static_cast<std::size_t>(run.count),
                      std::llround(run.layers.all()));
    }
    settings.push_back(layers_setting(layers));
}

constexpr std::int64_t splits_on_flows = 64;  // as `plan` tries

std::string why_no_plan(const Scenario& s, const PlanTask& task, const PlanSearch& found) {
    if (found.tried == 0) {
        return fmt::format(
            "no way of sharing {} layers and {} sequences a step of {} among {} GPUs",
            s.model.layers, task.base.global_batch, s.model.name, task.gpus);
    }
    return fmt::format("none of {} parallel plans of {} fits into {} GPUs of {}", found.tried,
                       s.model.name, task.gpus, s.node.gpu.name);
}

void add_hardware(const Scenario& s, DesignFacts& out) {
    StandaloneCatalogue own = s.open_catalogue();
    Catalogue& catalogue = own.catalogue;
    const BillOfMaterials bill = bill_of_materials(s, catalogue);
    for (const NodeOrder& order : bill.nodes) {
        const auto count = static_cast<double>(order.count);
        const bool whole_racks = order.node->nvlink_domain > order.node->gpus;
        const std::int64_t in_rack =
            whole_racks ? order.node->nvlink_domain / order.node->gpus : s.layout.nodes_per_rack;
        out.racks += std::ceil(count / static_cast<double>(in_rack));
    }
    out.power = (rated_watts(bill, catalogue) + s.power.storage.value) * s.power.cooling.pue;
}

// The fastest of its steps, back to back. Stages have steps of their own, of which none is looked for.
double tokens_per_day_most(const Scenario& s) {
    if (s.world || !s.job.stages.empty() || s.tokens_per_step <= 0) return 0;
    double step = seconds(s.job.step.duration());
    for (const NetworkDraw& draw : s.draws) step = std::min(step, seconds(draw.step.duration()));
    return step > 0 ? static_cast<double>(s.tokens_per_step) * seconds_per_day / step : 0;
}

YearlyCost cost_with(const Scenario& s, double joules_per_year) {
    CampaignUse use;
    use.years = 1;
    use.used.assign(s.cost->plan.used.size(), 0);
    use.used[static_cast<std::size_t>(UsedLine::energy)] =
        joules_per_year / joules_per_kilowatt_hour * s.cost->tariff;
    return yearly_cost(s.cost->plan, typical_prices(s.cost->plan.prices), use);
}

// The most of all phases; no bound of what they train is proven, so all such designs run.
void facts_of_phases(const Scenario& s, DesignFacts& out) {
    for (const ScenarioPhase& phase : s.phases) {
        DesignFacts there;
        if (!(phase.as->cost && phase.as->cost->rented)) add_hardware(*phase.as, there);
        out.power = std::max(out.power, there.power);
        out.racks = std::max(out.racks, there.racks);
        out.gpus = std::max(out.gpus, phase.as->gpus());
        out.tokens_per_day_most += tokens_per_day_most(*phase.as) *
                                   seconds(phase.until - phase.from) / seconds(s.duration);
    }
    if (!s.cost) return;
    CampaignUse idle;
    idle.years = 1;
    idle.used.assign(s.cost->plan.used.size(), 0);
    const YearlyCost least = yearly_cost(s.cost->plan, typical_prices(s.cost->plan.prices), idle);
    out.capital = least.capital;
    out.cost_per_year_least = least.total();
}

}  // namespace

std::vector<std::string> settings_of_plan(const ParallelPlan& p) {
    std::vector<std::string> out;
    const auto set = [&](const char* key, const auto& value) {
        out.push_back(fmt::format("job.parallel.{}={}", key, value));
    };
    set("tensor", p.tensor);
    set("context", p.context);
    set("pipeline", p.pipeline);
    set("data", p.data);
    set("expert", p.expert);
    set("interleave", p.interleave);
    set("microbatch", p.microbatch);
    set("global_batch", p.global_batch);
    set("zero", p.zero);
    set("recompute", word_of(recompute_names, p.recompute));
    if (p.shard_ranks > 0) set("shard_ranks", p.shard_ranks);
    if (!p.stage_layers.empty()) out.push_back(layers_setting(p.stage_layers));
    return out;
}

bool decided_by_plan(const std::string& key) {
    static const std::vector<std::string> keys = {"tensor",    "context",     "pipeline",    "data",
                                                  "expert",    "interleave",  "microbatch",  "zero",
                                                  "recompute", "shard_ranks", "stage_layers"};
    constexpr std::string_view section = "job.parallel.";
    return key.starts_with(section) &&
           std::ranges::find(keys, key.substr(section.size())) != keys.end();
}

Scenario DesignReader::scenario(const std::vector<std::string>& settings) const {
    ScenarioChanges changes;
    changes.windows = windows_;
    changes.phases = true;
    return load_scenario(document(settings), changes);
}

// Whatever plan the file has: one that fits the file's nodes may fit no others.
DesignReader::Planned DesignReader::plan_of(Document design, ScenarioChanges changes,
                                            bool on_flows) const {
    Planned out;
    std::optional<std::int64_t> batch;
    bool says_layers = false;
    if (Value* parallel = table_in(design, {"job", "parallel"})) {
        for (const char* key : {"first_stage_layers", "last_stage_layers", "stage_layers"}) {
            says_layers = says_layers || parallel->find(key) != nullptr;
        }
        const Value* given = parallel->find("global_batch");
        if (given != nullptr && given->kind == Value::Kind::integer) batch = given->integer;
        erase(*parallel, {"global_batch", "first_stage_layers", "last_stage_layers"});
        std::erase_if(parallel->members,
                      [](const Member& m) { return decided_by_plan("job.parallel." + m.key); });
    }
    changes.settings = {on_flows ? "run.fidelity=flow" : "run.fidelity=analytic"};
    changes.must_run = false;
    changes.windows = windows_;
    try {
        const Scenario s = load_scenario(std::move(design), changes);
        if (s.world || !step_is_modelled(s)) return out;  // there is nothing to plan
        PlanTask task = plan_task(s);
        task.base.global_batch = batch.value_or(task.base.global_batch);
        Communicators groups = communicators(s, Fidelity::analytic);
        const PlanSearch found = search_plans(task, groups);
        out.tried = found.tried;
        if (found.best.empty()) {
            out.problem = why_no_plan(s, task, found);
            return out;
        }
        const auto take = [&](const ParallelPlan& plan) {
            out.settings = settings_of_plan(plan);
            if (says_layers) tell_layers(s.model, plan, out.settings);
        };
        take(found.best[0].plan);
        if (!on_flows) return out;
        Communicators network = communicators(s, s.fidelity, {}, false, usual_draw(s));
        const NetworkSearch on_links = search_on_network(task, found, network, 1, splits_on_flows);
        out.tried = on_links.splits;
        if (!on_links.best.empty()) take(on_links.best[0].plan);
    } catch (const ScenarioError& error) {
        out.problem = error.what();
    }
    return out;
}

std::optional<std::vector<std::string>> DesignReader::replanned(ScenarioChanges changes) const {
    Document design = document(changes.settings);
    Planned found = plan_of(std::move(design), std::move(changes), false);
    if (!found.problem.empty() || found.settings.empty()) return std::nullopt;
    return std::move(found.settings);
}

DesignFacts DesignReader::read_planned(std::vector<std::string> settings, bool on_flows) {
    std::string key;
    Document design;
    try {
        design = document(settings);
        key = on_flows ? "flow\n" + facts_key(design) : plan_key(design);
    } catch (const ScenarioError& error) {
        DesignFacts out;
        out.problem = error.what();
        return out;
    }
    std::shared_ptr<Planned> planned;
    {
        const std::lock_guard lock(mutex_);
        const auto found = plans_.find(key);
        if (found != plans_.end()) planned = found->second;
    }
    // Two threads may search the same plan: they find the same.
    if (!planned) {
        planned = std::make_shared<Planned>(plan_of(std::move(design), {}, on_flows));
        const std::lock_guard lock(mutex_);
        if (plans_.emplace(key, planned).second) plans_tried_ += planned->tried;
    }
    if (!planned->problem.empty()) {
        DesignFacts out;
        out.problem = planned->problem;
        return out;
    }
    settings.insert(settings.end(), planned->settings.begin(), planned->settings.end());
    return facts_of(std::move(settings));
}

DesignReader::Shared DesignReader::read_shared(const std::vector<std::string>& settings) const {
    Shared out;
    DesignFacts& facts = out.facts;
    try {
        const Scenario s = scenario(settings);
        if (!s.no_path.empty()) {
            facts.problem = "the job can't take its first step: " + s.no_path;
            return out;
        }
        facts.gpus = s.gpus();
        facts.draws = s.draws.size();
        if (s.cost) facts.utilisation = s.cost->plan.utilisation;
        if (!s.phases.empty()) {
            facts_of_phases(s, facts);
            return out;
        }
        const bool elsewhere = s.cost && s.cost->rented;
        if (!elsewhere) add_hardware(s, facts);
        facts.tokens_per_day_most = tokens_per_day_most(s);
        out.kept = kept_bound(s);
        if (!s.cost) return out;
        const LeastEnergy energy = least_energy(s);
        const YearlyCost idle = cost_with(s, energy.idle_watts * seconds_per_year);
        facts.capital = idle.capital;
        facts.cost_per_year_least = idle.total();
        if (facts.tokens_per_day_most <= 0) return out;
        const double year_of_steps = seconds_per_year / seconds(s.job.step.duration());
        const double more =
            (energy.idle_watts * seconds_per_year) + (energy.joules_per_step * year_of_steps);
        out.priced = true;
        out.running_cost =
            (cost_with(s, more).total() - idle.total()) /
            (year_of_steps * static_cast<double>(s.tokens_per_step) * facts.utilisation);
    } catch (const ScenarioError& error) {
        facts.problem = error.what();
    }
    return out;
}

DesignFacts DesignReader::facts_of(std::vector<std::string> settings) {
    DesignFacts out;
    std::string key;
    Document design;
    try {
        design = document(settings);
        key = facts_key(design);
    } catch (const ScenarioError& error) {
        out.problem = error.what();
        return out;
    }
    std::shared_ptr<const Shared> shared;
    {
        const std::lock_guard lock(mutex_);
        const auto found = shared_.find(key);
        if (found != shared_.end()) shared = found->second;
    }
    if (!shared) {
        shared = std::make_shared<const Shared>(read_shared(settings));
        // What is wrong with one of them may be its own.
        if (shared->facts.problem.empty()) {
            const std::lock_guard lock(mutex_);
            shared_.emplace(std::move(key), shared);
        }
    }
    out = shared->facts;
    if (!out.problem.empty()) return out;
    out.settings = std::move(settings);
    const double share =
        shared->kept ? shared->kept->share(interval_steps(design, *shared->kept)) : 1;
    out.tokens_per_day_mean_most = out.tokens_per_day_most * share;
    if (out.tokens_per_day_most > 0 && shared->priced) {
        const double tokens =
            out.tokens_per_day_mean_most * seconds_per_year / seconds_per_day * out.utilisation;
        out.cost_per_1e12_mean_least =
            1e12 * (out.cost_per_year_least / tokens + shared->running_cost);
    }
    return out;
}

}  // namespace railyard
