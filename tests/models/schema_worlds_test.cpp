// No key is dead in silence in any world: a key of the language that is given in a kind of scenario, under
// a kind of scheduler, at a fidelity, changes what is printed, or a warning or an error names it. The test
// walks that product with the values of schema_knobs.h, schema_many_jobs.h and schema_kube.h.

#include "tests/models/schema_worlds.h"

#include <doctest/doctest.h>
#include <fmt/format.h>

#include <functional>
#include <map>
#include <set>
#include <thread>

#include "sim/parallel.h"
#include "tests/models/outcome.h"

using namespace railyard;

namespace {

// What is said of a scenario, and which keys are named beside.
struct Told {
    std::string outcome;
    bool error = false;
    std::set<std::string> named;
};

// "jobs.kind[1].topology" as the schema has it.
std::string without_numbers(const std::string& path) {
    std::string out;
    bool inside = false;
    for (const char c : path) {
        if (c == '[') inside = true;
        if (!inside) out += c;
        if (c == ']') inside = false;
    }
    return out;
}

// All that `railyard run` prints.
std::string run_text(const Scenario& s) {
    const CampaignResult r = run_campaign(s, {});
    std::string out = s.title + " " + r.digest;
    for (const MetricSummary& m : r.metrics) out += fmt::format(" {}={}", m.name, m.summary.mean);
    for (const FailureCause& cause : s.causes) out += " " + cause.name;
    if (s.cost) out += cost_text(s, r);
    return out;
}

Told tell(const Tried& tried, const std::shared_ptr<WindowCache>& windows) {
    Told told;
    const auto name = [&](const std::vector<Diagnostic>& diagnostics) {
        for (const Diagnostic& d : diagnostics) told.named.insert(without_numbers(d.path));
    };
    try {
        ScenarioChanges changes;
        changes.settings = tried.settings;
        changes.windows = windows;
        const Scenario s = load_scenario(tried.text, "knobs", changes);
        name(s.warnings);
        told.outcome = s.world ? run_text(s) : outcome_of(s);
    } catch (const ScenarioError& error) {
        told.error = true;
        told.outcome = error.what();
        name(error.diagnostics());
    }
    return told;
}

// The key itself, or a section or a table that it is in.
bool names(const Told& told, const std::string& key) {
    return std::ranges::any_of(told.named, [&](const std::string& path) {
        return !path.empty() && (key == path || key.starts_with(path + "."));
    });
}

// Why a key that was changed is dead in silence; empty: it is not.
std::string silence(const Told& before, const Told& after, const std::string& key) {
    if (names(before, key) || names(after, key)) return "";
    // A scheduler may refuse all of a scenario.
    if (before.error)
        return names(before, "scheduler.kind") ? "" : "is tried in vain: " + before.outcome;
    return before.outcome == after.outcome ? "does nothing, and nothing says so" : "";
}

// A key in a world, before and after it is changed.
struct Case {
    std::string key;
    std::string world;
    Tried before;
    Tried after;
};

// Each scenario is run once, on all cores.
void check_all(const std::vector<Case>& cases) {
    std::map<Tried, Told> told;
    for (const Case& each : cases) {
        told[each.before];
        told[each.after];
    }
    std::vector<std::pair<const Tried, Told>*> wanted;
    for (auto& each : told) wanted.push_back(&each);
    const auto windows = std::make_shared<WindowCache>();
    parallel_for(wanted.size(), std::max(1U, std::thread::hardware_concurrency()), nullptr,
                 [&](std::size_t i) { wanted[i]->second = tell(wanted[i]->first, windows); });
    for (const Case& each : cases) {
        const std::string why = silence(told[each.before], told[each.after], each.key);
        CHECK_MESSAGE(why.empty(), fmt::format("{} {} {}", each.key, each.world, why));
    }
}

// Keys whose effect these worlds cannot show, and why. Of work without a model a part's kind says nothing:
// `slowdown` says it all.
const std::map<std::string, const char*> not_shown = {
    {"cluster.fault.index", "GPUs of a node are alike: which of them is slow makes no difference"},
    {"fabric.compute.sharp", "the collectives that switches add up hide behind computation here"},
    {"gpu", "work without a model takes its time on any GPU"},
    {"model", "many jobs have models of their own, one by one"},
    {"software", "and software"},
    {"storage_system", "a store moves nothing for many jobs"},
    {"override", "what is read of the catalogue depends on what is asked, also after a run"},
};

}  // namespace

namespace {
// The keys of many jobs under a scheduler, in scenarios made over by `made`.
void add_world_keys(std::vector<Case>& cases, const std::string& scheduler,
                    const std::string& world,
                    const std::function<Tried(const std::string&)>& made) {
    for (const auto* rows : {&world_knobs, &kube_knobs}) {
        for (const auto& [key, own] : *rows) {
            if (key == "scheduler.kind") continue;
            const auto instead = world_knobs_under.find({key, scheduler});
            const WorldKnob& knob = instead == world_knobs_under.end() ? own : instead->second;
            std::string changed = knob.scenario;
            REQUIRE(changed.find(knob.text) != std::string::npos);
            replace_once(changed, knob.text, knob.by);
            cases.push_back({key, fmt::format("under {}, {}", scheduler, world),
                             made(under(scheduler, knob.scenario)),
                             made(under(scheduler, changed))});
        }
    }
}
}  // namespace

TEST_CASE("a key of many jobs does something under each scheduler, or a warning names it") {
    std::vector<Case> cases;
    for (const WorldSchedulerKind& kind : world_scheduler_kinds()) {
        add_world_keys(cases, kind.name, "of given work",
                       [](const std::string& text) { return Tried{text}; });
        for (const char* fidelity : {"flow", "packet"}) {
            add_world_keys(
                cases, kind.name, fmt::format("with models, {}", fidelity),
                [fidelity](const std::string& text) {
                    return Tried{with_models(text), {fmt::format("run.fidelity={}", fidelity)}};
                });
        }
    }
    check_all(cases);
}

namespace {

// What a measured step cannot show: which part is slow, a job that goes on with fewer replicas, and what the
// scenario's own entries of the catalogue say of a step.
bool skipped(const std::string& key, Step step) {
    return step != Step::modelled &&
           (key == "failures.cause.slows" || key == "gpu" || key == "model" || key == "software" ||
            key == "job.recovery.replicas_min");
}

const char* const jobs_text[] = {"with models", "without models", "of a trace", "like a trace's"};
std::vector<Case> of_many(const ManyJobs& world) {
    std::vector<Case> cases;
    for (const auto& [key, knob] : knobs) {
        if (not_shown.contains(key)) continue;
        if (key == "failures.cause.slows" && world.jobs != Jobs::modelled) continue;
        const auto [before, after] = in_many_jobs(key, knob, world);
        cases.push_back({key,
                         fmt::format("under {}, {}, {}", world.scheduler, world.fidelity,
                                     jobs_text[static_cast<std::size_t>(world.jobs)]),
                         before, after});
    }
    return cases;
}
}  // namespace

TEST_CASE("a key of one job does something to many, or a warning names it") {
    std::vector<Case> cases;
    const auto add = [&](const ManyJobs& world) {
        const std::vector<Case> more = of_many(world);
        cases.insert(cases.end(), more.begin(), more.end());
    };
    for (const WorldSchedulerKind& kind : world_scheduler_kinds()) {
        for (const char* fidelity : {"analytic", "flow", "packet"}) {
            add({kind.name, fidelity, Jobs::modelled});
        }
        // No network carries work without a model, which the fidelity's warning says, whichever it is.
        for (const char* fidelity : {"analytic", "flow"}) add({kind.name, fidelity, Jobs::plain});
        add({kind.name, "analytic", Jobs::traced});
        add({kind.name, "analytic", Jobs::published});
    }
    check_all(cases);
}

TEST_CASE("a key does something to one job at each fidelity, or a warning names it") {
    std::vector<Case> cases;
    const char* const steps[] = {"modelled", "measured", "measured, of no model,"};
    for (const char* fidelity : {"analytic", "flow", "packet"}) {
        for (const Step step : {Step::modelled, Step::given, Step::plain}) {
            // Without a model there is nothing that a network could do, which the fidelity says.
            if (step == Step::plain && fidelity != std::string("analytic")) continue;
            for (const auto& [key, knob] : knobs) {
                if (key == "override" || skipped(key, step)) continue;
                const auto [before, after] = in_one_job(key, knob, fidelity, step);
                cases.push_back({key,
                                 fmt::format("in a job with a {} step, {}",
                                             steps[static_cast<std::size_t>(step)], fidelity),
                                 before, after});
            }
        }
    }
    check_all(cases);
}

TEST_CASE("a key of packets that steps of many jobs don't see on flows is named") {
    const auto windows = std::make_shared<WindowCache>();
    for (const auto& [key, knob] : packet_knobs) {
        const std::string of_compute = "fabric.compute" + key.substr(1);
        CAPTURE(of_compute);
        if (knob.change.empty()) continue;
        std::string setting = knob.change[0];
        replace_once(setting, "@", "fabric.compute");
        const ManyJobs world{"slurm", "flow"};
        const Told told = tell(
            {with_many_jobs(base, key, world), {"run.fidelity=flow", "run.replicas=1", setting}},
            windows);
        CHECK((told.error || names(told, of_compute)));  // a buffer may be too small
    }
}
