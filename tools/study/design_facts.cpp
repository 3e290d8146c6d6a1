#include "tools/study/design_facts.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "tools/results/point_key.h"
#include "tools/study/design_limits.h"

namespace railyard {

DesignReader::DesignReader(std::string text, std::string file, bool search_plans,
                           std::shared_ptr<WindowCache> windows)
    : text_(std::move(text)),
      file_(std::move(file)),
      search_plans_(search_plans),
      windows_(std::move(windows)) {}

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
    set("recompute", recompute_names()[static_cast<std::size_t>(p.recompute)]);
    if (p.shard_ranks > 0) set("shard_ranks", p.shard_ranks);
    return out;
}

bool decided_by_plan(const std::string& key) {
    static const std::vector<std::string> keys = {"tensor",    "context",    "pipeline",   "data",
                                                  "expert",    "interleave", "microbatch", "zero",
                                                  "recompute", "shard_ranks"};
    constexpr std::string_view section = "job.parallel.";
    return key.starts_with(section) &&
           std::ranges::find(keys, key.substr(section.size())) != keys.end();
}

Scenario DesignReader::scenario(const std::vector<std::string>& settings) const {
    ScenarioChanges changes;
    changes.settings = settings;
    changes.windows = windows_;
    return load_scenario(text_, file_, changes);
}

namespace {

void erase(Value& table, std::initializer_list<std::string_view> keys) {
    std::erase_if(table.members,
                  [&](const Member& m) { return std::ranges::find(keys, m.key) != keys.end(); });
}

}  // namespace

std::string DesignReader::facts_key(const std::vector<std::string>& settings) const {
    Document document = document_with(text_, file_, settings);
    erase(document.root, {"title", "design", "failures", "inject"});
    Value* job = document.root.find("job");
    Value* checkpoint = job != nullptr ? job->find("checkpoint") : nullptr;
    if (checkpoint != nullptr) erase(*checkpoint, {"interval"});
    return to_toml(document.root);
}

// All of the scenario that a step on an ideal network can hang on.
std::string DesignReader::plan_key(const std::vector<std::string>& settings) const {
    Document document = document_with(text_, file_, settings);
    erase(document.root, {"title", "run", "storage", "object_store", "failures", "inject", "cost",
                          "window", "design"});
    Value* job = document.root.find("job");
    Value* cluster = document.root.find("cluster");
    if (job != nullptr) erase(*job, {"checkpoint", "recovery"});
    if (job != nullptr && cluster != nullptr && job->find("nodes") != nullptr) {
        erase(*cluster, {"nodes"});
    }
    return to_toml(document.root);
}

DesignReader::Planned DesignReader::plan_of(const std::vector<std::string>& settings) const {
    Planned out;
    ScenarioChanges changes;
    changes.settings = settings;
    changes.settings.emplace_back("run.fidelity=analytic");
    changes.must_run = false;
    changes.windows = windows_;
    try {
        const Scenario s = load_scenario(text_, file_, changes);
        if (s.fleet || s.model.name.empty() || s.given_step)
            return out;  // there is nothing to plan
        const PlanTask task{s.model, s.plan, s.plan.gpus(), s.parameter_bytes, s.optimizer_traffic};
        Communicators groups = communicators(s, Fidelity::analytic);
        const PlanSearch found = search_plans(task, groups);
        out.tried = found.tried;
        if (found.best.empty()) {
            out.problem = fmt::format("no parallel plan of {} fits into {} GPUs of {}",
                                      s.model.name, s.job.gpus(), s.node.gpu.name);
            return out;
        }
        out.settings = settings_of_plan(found.best[0].plan);
    } catch (const ScenarioError& error) {
        out.problem = error.what();
    }
    return out;
}

DesignFacts DesignReader::read(std::vector<std::string> settings) {
    if (!search_plans_) return facts_of(std::move(settings));
    std::string key;
    try {
        key = plan_key(settings);
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
        planned = std::make_shared<Planned>(plan_of(settings));
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

namespace {

void add_hardware(const Scenario& s, DesignFacts& out) {
    StandaloneCatalogue own = s.open_catalogue();
    Catalogue& catalogue = own.catalogue;
    const BillOfMaterials bill = bill_of_materials(s, catalogue);
    const auto rated = [&](const char* kind, const std::string& name) {
        return catalogue.has(kind, name, "max_power")
                   ? catalogue.power(kind, name, "max_power").value
                   : 0;
    };
    for (const NodeOrder& order : bill.nodes) {
        const auto count = static_cast<double>(order.count);
        out.power += count * rated("node", order.node->name);
        const bool whole_racks = order.node->nvlink_domain > order.node->gpus;
        const std::int64_t in_rack =
            whole_racks ? order.node->nvlink_domain / order.node->gpus : s.layout.nodes_per_rack;
        out.racks += std::ceil(count / static_cast<double>(in_rack));
    }
    for (const NetworkBill& network : bill.networks) {
        for (const SwitchOrder& order : network.materials.switches) {
            out.power += static_cast<double>(order.count) * rated("switch", order.model);
        }
    }
    out.power *= catalogue.number("power", "seed_claims", "pue");
}

// The fastest of its steps, back to back.
void add_bounds(const Scenario& s, DesignFacts& out) {
    if (!s.fleet && s.tokens_per_step > 0) {
        double step = seconds(s.job.step.duration());
        for (const NetworkDraw& draw : s.draws) {
            step = std::min(step, seconds(draw.step.duration()));
        }
        if (step > 0) {
            out.tokens_per_day_most =
                static_cast<double>(s.tokens_per_step) * seconds_per_day / step;
        }
    }
    if (!s.cost) return;
    const CostPlan& plan = s.cost->plan;
    CampaignUse use;
    use.years = 1;
    use.tokens = out.tokens_per_day_most * seconds_per_year / seconds_per_day;
    use.used.assign(plan.used.size(), 0);
    const YearlyCost cost = yearly_cost(plan, typical_prices(plan.prices), use);
    out.capital = cost.capital;
    out.cost_per_year_least = cost.total();
    if (use.tokens > 0) out.cost_per_1e12_least = cost.per_1e12_tokens();
}

}  // namespace

DesignFacts DesignReader::read_facts(const std::vector<std::string>& settings) const {
    DesignFacts out;
    try {
        const Scenario s = scenario(settings);
        if (!s.no_path.empty()) {
            out.problem = "the job can't take its first step: " + s.no_path;
            return out;
        }
        out.gpus = s.gpus();
        out.draws = s.draws.size();
        const bool elsewhere = s.cost && s.cost->rented;
        if (!elsewhere) add_hardware(s, out);
        add_bounds(s, out);
    } catch (const ScenarioError& error) {
        out.problem = error.what();
    }
    return out;
}

DesignFacts DesignReader::facts_of(std::vector<std::string> settings) {
    DesignFacts out;
    std::string key;
    try {
        key = facts_key(settings);
    } catch (const ScenarioError& error) {
        out.problem = error.what();
        return out;
    }
    bool known = false;
    {
        const std::lock_guard lock(mutex_);
        const auto found = facts_.find(key);
        known = found != facts_.end();
        if (known) out = found->second;
    }
    if (!known) {
        out = read_facts(settings);
        // What is wrong with one of them may be its own.
        if (out.problem.empty()) {
            const std::lock_guard lock(mutex_);
            facts_.emplace(std::move(key), out);
        }
    }
    if (out.problem.empty()) out.settings = std::move(settings);
    return out;
}

}  // namespace railyard
