// No key is dead in silence in any world of many jobs: a key of the language that is given under a kind of
// scheduler, at a fidelity, changes what a run says, or a warning or an error names it. The test walks that
// product with the values of schema_knobs.h, schema_fleets.h and schema_kube.h.

#include "tests/models/schema_worlds.h"

#include <doctest/doctest.h>
#include <fmt/format.h>

#include <map>
#include <set>

#include "tests/models/outcome.h"

using namespace railyard;

namespace {

// What a run of a scenario says, and which keys it names beside.
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

class Worlds {
  public:
    const Told& tell(const std::string& text, const std::vector<std::string>& settings) {
        const auto [found, is_new] = known_.try_emplace({text, settings});
        if (!is_new) return found->second;
        Told& told = found->second;
        const auto name = [&](const std::vector<Diagnostic>& diagnostics) {
            for (const Diagnostic& d : diagnostics) told.named.insert(without_numbers(d.path));
        };
        try {
            ScenarioChanges changes;
            changes.settings = settings;
            changes.windows = windows_;
            const Scenario s = load_scenario(text, "knobs", changes);
            name(s.warnings);
            told.outcome = run_text(s);
        } catch (const ScenarioError& error) {
            told.error = true;
            told.outcome = error.what();
            name(error.diagnostics());
        }
        return told;
    }

  private:
    std::shared_ptr<WindowCache> windows_ = std::make_shared<WindowCache>();
    std::map<std::pair<std::string, std::vector<std::string>>, Told> known_;
};

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

// Keys whose effect these worlds cannot show, and why. Of work without a model a part's kind says nothing:
// `slowdown` says it all.
const std::map<std::string, const char*> not_shown = {
    {"cluster.fault.index", "GPUs of a node are alike: which of them is slow makes no difference"},
    {"fabric.compute.sharp", "the collectives that switches add up hide behind computation here"},
    {"gpu", "work without a model takes its time on any GPU"},
    {"model", "many jobs have models of their own, one by one"},
    {"storage_system", "a store moves nothing for many jobs"},
    {"override", "what is read of the catalogue depends on what is asked, also after a run"},
};

}  // namespace

TEST_CASE("a key of many jobs does something under each scheduler, or a warning names it") {
    Worlds worlds;
    for (const FleetSchedulerKind& kind : fleet_scheduler_kinds()) {
        for (const auto* rows : {&fleet_knobs, &kube_knobs}) {
            for (const auto& [key, own] : *rows) {
                if (key == "scheduler.kind") continue;
                const auto instead = fleet_knobs_under.find({key, kind.name});
                const FleetKnob& knob = instead == fleet_knobs_under.end() ? own : instead->second;
                std::string changed = knob.scenario;
                REQUIRE(changed.find(knob.text) != std::string::npos);
                replace_once(changed, knob.text, knob.by);
                const std::string why = silence(worlds.tell(under(kind.name, knob.scenario), {}),
                                                worlds.tell(under(kind.name, changed), {}), key);
                CHECK_MESSAGE(why.empty(), fmt::format("{} under {} {}", key, kind.name, why));
            }
        }
    }
}

TEST_CASE("a key of one job does something to many at each fidelity, or a warning names it") {
    Worlds worlds;
    const auto try_all = [&](const ManyJobs& world, auto wanted) {
        for (const auto& [key, knob] : knobs) {
            if (not_shown.contains(key) || !wanted(key)) continue;
            if (key == "failures.cause.slows" && !world.modelled) continue;
            const auto [before, after] = in_many_jobs(key, knob, world);
            const std::string why = silence(worlds.tell(before.text, before.settings),
                                            worlds.tell(after.text, after.settings), key);
            CHECK_MESSAGE(
                why.empty(),
                fmt::format("{} under {}, {}, {} {}", key, world.scheduler, world.fidelity,
                            world.modelled ? "with models" : "without", why));
        }
    };
    const auto all = [](const std::string&) { return true; };
    for (const FleetSchedulerKind& kind : fleet_scheduler_kinds()) {
        try_all({kind.name, "analytic", true}, all);
    }
    try_all({"slurm", "analytic", false}, all);
    try_all({"slurm", "flow", true}, all);
    // What reaches a step is the same on packets as on flows; what packets do, their own tests tell.
    try_all({"slurm", "packet", true}, [](const std::string& key) {
        return key.starts_with("run.") || key.starts_with("cluster.fault") ||
               key == "cluster.acs" || key == "cluster.peer_to_peer";
    });
}

TEST_CASE("a key of packets that steps of many jobs don't see on flows is named") {
    Worlds worlds;
    for (const auto& [key, knob] : packet_knobs) {
        const std::string of_compute = "fabric.compute" + key.substr(1);
        CAPTURE(of_compute);
        if (knob.change.empty()) continue;
        std::string setting = knob.change[0];
        replace_once(setting, "@", "fabric.compute");
        const ManyJobs world{"slurm", "flow", true};
        const Told& told = worlds.tell(with_many_jobs(base, key, world),
                                       {"run.fidelity=flow", "run.replicas=1", setting});
        CHECK((told.error || names(told, of_compute)));  // a buffer may be too small
    }
}
