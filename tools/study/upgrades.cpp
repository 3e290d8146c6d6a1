#include "tools/study/upgrades.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "sim/text.h"
#include "tools/study/deciding_metric.h"

namespace railyard {

namespace {

class Candidates {
  public:
    explicit Candidates(const Scenario& s)
        : s_(s), standalone_(s.open_catalogue()), catalogue_(standalone_.catalogue) {}

    std::vector<Upgrade> all() {
        free_ = true;
        add_routing();
        add_plans();
        add_checkpoints();
        free_ = false;
        add_nodes();
        add_nic();
        add_network();
        add_spares();
        add_storage();
        return std::move(out_);
    }

  private:
    void add(std::string name, std::vector<std::string> settings) {
        out_.push_back({std::move(name), std::move(settings), free_});
    }
    // Each word that the key may have and has not: `what` says it, and then the one that it has.
    template <class Names, class Enum>
    void add_others(const Names& names, Enum now, const char* what, const char* key) {
        for (std::size_t i = 0; i < names.size(); ++i) {
            if (static_cast<Enum>(i) == now) continue;
            add(fmt::format(fmt::runtime(what), names[i], word_of(names, now)),
                {fmt::format("{}={}", key, names[i])});
        }
    }

    // Where the network is modelled: each other way to choose paths, and more of them.
    void add_routing() {
        if (s_.fidelity == Fidelity::analytic) return;
        const RoutingSpec& now = s_.networks[0].routing;
        add_others(routing_names, now.policy, "{} routing instead of {}", "fabric.compute.routing");
        constexpr std::int64_t more = 4;
        constexpr std::int64_t enough = 32;
        if (now.queue_pairs >= enough) return;
        add(fmt::format("{} queue pairs a connection instead of {}", now.queue_pairs * more,
                        now.queue_pairs),
            {fmt::format("fabric.compute.queue_pairs={}", now.queue_pairs * more)});
    }

    // The same GPUs, batch and split: in another order, in other microbatches, more or less computed again.
    void add_plans() {
        if (s_.model.name.empty() || s_.trace) return;
        const ParallelPlan& plan = s_.plan;
        add_others(rank_order_names, plan.order, "ranks in the order {}", "job.parallel.order");
        std::vector<std::int64_t> sizes = {2 * plan.microbatch};
        if (plan.microbatch % 2 == 0) sizes.push_back(plan.microbatch / 2);
        for (const std::int64_t size : sizes) {
            add(fmt::format("microbatches of {} instead of {}", size, plan.microbatch),
                {fmt::format("job.parallel.microbatch={}", size)});
        }
        add_others(recompute_names, plan.recompute, "recomputation: {} instead of {}",
                   "job.parallel.recompute");
    }

    // Nodes of as many GPUs: the plan stays.
    void add_nodes() {
        // A step that was measured is measured on these.
        if (s_.model.name.empty() || s_.trace) return;
        for (const std::string& name : catalogue_.all_names("node")) {
            if (name == s_.node.name || !catalogue_.has("node", name, "gpu")) continue;
            const Node node = read_node(catalogue_, name);
            const bool faster =
                node.gpu.bf16_dense.per_second > s_.node.gpu.bf16_dense.per_second ||
                node.gpu.hbm_bandwidth > s_.node.gpu.hbm_bandwidth;
            if (node.gpus != s_.node.gpus || !faster) continue;
            add(fmt::format("{} nodes ({})", name, node.gpu.name), {"cluster.node=" + name});
        }
    }

    // The slowest NIC of the same transport that is faster than the scenario's.
    void add_nic() {
        std::string best;
        Bandwidth rate;
        for (const std::string& name : catalogue_.all_names("nic")) {
            if (!catalogue_.has("nic", name, "bandwidth") ||
                !catalogue_.has("nic", name, "transport")) {
                continue;
            }
            if (catalogue_.text("nic", name, "transport") != s_.node.transport) continue;
            const Bandwidth bandwidth = catalogue_.bandwidth("nic", name, "bandwidth");
            if (bandwidth <= s_.node.nic_line_rate) continue;
            if (!best.empty() && bandwidth >= rate) continue;
            best = name;
            rate = bandwidth;
        }
        if (best.empty()) return;
        add(fmt::format("NICs as fast as {} ({})", best, line_rate_text(rate)),
            {fmt::format("override.nic.{}.bandwidth={} bit/s", s_.node.nic,
                         rate.bits_per_second())});
    }

    void add_network() {
        if (s_.fidelity == Fidelity::analytic) return;  // an ideal network already
        if (s_.networks[0].spec.oversubscription > 1) {
            add(fmt::format("no oversubscription, instead of {:.3g}",
                            s_.networks[0].spec.oversubscription),
                {"fabric.compute.oversubscription=1"});
        }
        for (const char* kind : {"infiniband", "roce"}) {
            if (to_text(s_.networks[0].kind) == kind) continue;
            // Switches that the scenario names are of its own kind.
            const bool infiniband = std::string_view(kind) == "infiniband";
            const std::string model =
                fitting_switch(catalogue_, infiniband, s_.networks[0].spec.nic_bandwidth);
            std::vector<std::string> settings = {fmt::format("fabric.compute.kind={}", kind)};
            if (model.empty()) continue;
            for (const char* tier : {"leaf", "spine", "core"}) {
                settings.push_back(fmt::format("fabric.compute.{}={}", tier, model));
            }
            if (s_.networks[0].sharp) settings.emplace_back("fabric.compute.sharp=false");
            add(fmt::format("{} as the compute network ({} switches)", kind, model),
                std::move(settings));
        }
    }

    // One in a hundred of the job's nodes more, and as many fewer.
    void add_spares() {
        if (s_.causes.empty()) return;
        const std::int64_t step = std::max<std::int64_t>(1, (s_.job.nodes + 99) / 100);
        const std::int64_t spares = s_.nodes.nodes - s_.job.nodes;
        const auto nodes = [&](std::int64_t count) {
            add(fmt::format("{} spare node{} instead of {}", count, count == 1 ? "" : "s", spares),
                {fmt::format("cluster.nodes={}", s_.job.nodes + count),
                 fmt::format("job.nodes={}", s_.job.nodes)});
        };
        nodes(spares + step);
        if (spares > 0) nodes(std::max<std::int64_t>(0, spares - step));
    }

    void add_storage() {
        const bool used = s_.data || s_.job.checkpoint.mode != CheckpointMode::none;
        if (!used) return;
        const std::int64_t servers = s_.stores[0].system->protection().servers;
        if (servers > 0) {
            add(fmt::format("{} storage servers instead of {}", 2 * servers, servers),
                {fmt::format("storage.servers={}", 2 * servers)});
        }
        if (s_.stores[0].name == "generic") return;  // nobody knows what it would cost or do
        for (const StorageKind& kind : storage_kinds()) {
            // Those without keys of their own are somebody's whole installation, known by its limits alone.
            if (kind.place != StorePlace::servers || kind.section == nullptr ||
                kind.name == s_.stores[0].name) {
                continue;
            }
            const std::int64_t count = std::max<std::int64_t>(servers, kind.servers);
            add(fmt::format("{} {} servers as the store", count, kind.name),
                {fmt::format("storage.system={}", kind.name),
                 fmt::format("storage.servers={}", count)});
        }
    }

    void add_checkpoints() {
        const CheckpointSpec& c = s_.job.checkpoint;
        if (c.mode == CheckpointMode::none) return;
        const Duration interval =
            c.interval_steps > 0 ? s_.job.step.duration() * c.interval_steps : c.interval_wall;
        for (const double factor : {0.5, 2.0}) {
            const Duration other = from_seconds(seconds(interval) * factor);
            add(fmt::format("a checkpoint every {}", to_text(other)),
                {fmt::format("job.checkpoint.interval={} ns", other.count())});
        }
        const bool sync = c.mode == CheckpointMode::sync;
        add(sync ? "asynchronous checkpoints" : "synchronous checkpoints",
            {sync ? "job.checkpoint.mode=async" : "job.checkpoint.mode=sync"});
    }

    const Scenario& s_;
    StandaloneCatalogue standalone_;
    Catalogue& catalogue_;
    bool free_ = false;
    std::vector<Upgrade> out_;
};

std::vector<double> speeds(const Trial& trial) {
    std::vector<double> out;
    for (std::size_t r = 0; r < trial.values[1].size(); ++r) {
        out.push_back(trial.values[1][r] / trial.values[2][r]);
    }
    return out;
}

UpgradeEffect effect_of(const Upgrade& upgrade, const Trial& with, const Trial& base) {
    UpgradeEffect out;
    out.upgrade = upgrade;
    std::vector<double> before = speeds(base);
    std::vector<double> after = speeds(with);
    const double mean = summarise(before).mean;
    for (double& speed : before) speed /= mean;
    for (double& speed : after) speed /= mean;
    out.speed = summarise_paired(after, before,
                                 dealt_over(after.size(), draws_of_pairs(with.draws, base.draws)));
    out.goodput = summarise_change(with, base, 0);
    if (!base.cost || !with.cost) return out;
    std::vector<double> more;
    std::vector<double> returns;
    const auto gained = [&](const YearlyCost& a, const YearlyCost& b) {
        return (1 + out.speed.mean) * a.total() / b.total() - 1;
    };
    for (std::size_t d = 0; d < base.cost->draws.size(); ++d) {
        const YearlyCost& a = base.cost->draws[d];
        const YearlyCost& b = with.cost->draws[d];
        more.push_back(b.total() - a.total());
        returns.push_back(gained(a, b));
    }
    const YearlyCost& a = base.cost->typical;
    const YearlyCost& b = with.cost->typical;
    out.cost = range_of(std::move(more), b.total() - a.total());
    out.return_on_cost = range_of(std::move(returns), gained(a, b));
    return out;
}

ScenarioChanges with_upgrade(ScenarioChanges changes, const Upgrade& upgrade) {
    changes.settings.insert(changes.settings.end(), upgrade.settings.begin(),
                            upgrade.settings.end());
    return changes;
}

// A change that can be run to its end.
bool counts(const std::optional<Trial>& trial) {
    return trial && trial->possible() && trial->ending == Ending::complete;
}

std::optional<Contest> contest_of(const std::vector<Upgrade>& upgrades,
                                  const std::vector<std::optional<Trial>>& trials,
                                  const std::vector<std::string>& metrics) {
    std::vector<WorkBasis> designs;
    for (const std::optional<Trial>& trial : trials) {
        if (counts(trial)) designs.push_back(trial->work);
    }
    if (designs.size() < 2) return std::nullopt;
    const DecidingMetric by = deciding_metric(designs);
    const auto number =
        static_cast<std::size_t>(std::ranges::find(metrics, by.metric) - metrics.begin());
    const auto mean = [&](std::size_t i) { return trials[i]->summary(number).mean; };
    std::vector<std::size_t> order;  // of trials
    for (std::size_t i = 0; i < trials.size(); ++i) {
        if (counts(trials[i]) && std::isfinite(mean(i))) order.push_back(i);
    }
    if (order.size() < 2) return std::nullopt;
    std::ranges::stable_sort(order, [&](std::size_t a, std::size_t b) {
        return better_than(mean(a), mean(b), by.better);
    });
    const auto upgrade = [&](std::size_t i) {
        return i == 0 ? Upgrade{"the scenario as it is", {}} : upgrades[i - 1];
    };
    const Trial& best = *trials[order[0]];
    const Trial& second = *trials[order[1]];
    return Contest{upgrade(order[0]),
                   upgrade(order[1]),
                   {by.metric, by.better, 0, 1, compare_trials(best, second, number, by.metric)}};
}

}  // namespace

std::vector<Upgrade> upgrade_candidates(const Scenario& scenario) {
    return Candidates(scenario).all();
}

UpgradeTable try_upgrades(const TrialOptions& options, const ScenarioChanges& changes,
                          const Scenario& scenario) {
    TrialOptions trial_options = options;
    // What a change is said to do, and by what changes may be judged against each other.
    trial_options.metrics = {"goodput", "steps", "wall_time", "steps_per_day", "tokens_per_day"};
    if (scenario.cost && scenario.tokens_per_step > 0) {
        trial_options.metrics.emplace_back("cost_per_1e12_tokens");
    }
    trial_options.prices = true;
    const std::vector<Upgrade> upgrades = upgrade_candidates(scenario);
    std::vector<ScenarioChanges> variants = {changes};
    for (const Upgrade& upgrade : upgrades) {
        variants.push_back(with_upgrade(changes, upgrade));
    }
    const std::vector<std::optional<Trial>> trials = run_trials(trial_options, variants);
    UpgradeTable out;
    if (!trials[0]) throw Interrupted();
    if (trials[0]->cost) out.cost = trials[0]->cost->typical.total();
    for (std::size_t i = 0; i < upgrades.size(); ++i) {
        const std::optional<Trial>& trial = trials[i + 1];
        if (!trial) {
            out.interrupted = true;
        } else if (!counts(trial)) {
            out.impossible.push_back(upgrades[i].name);
        } else {
            out.effects.push_back(effect_of(upgrades[i], *trial, *trials[0]));
        }
    }
    out.contest = contest_of(upgrades, trials, trial_options.metrics);
    std::ranges::stable_sort(out.effects, [](const UpgradeEffect& a, const UpgradeEffect& b) {
        const auto gain = [](const UpgradeEffect& e) {
            return e.return_on_cost ? e.return_on_cost->typical : e.speed.mean;
        };
        if (a.upgrade.free != b.upgrade.free) return a.upgrade.free;
        return gain(a) > gain(b);
    });
    return out;
}

VerdictEstimates estimates_of(const Contest& contest, const TrialOptions& options,
                              const ScenarioChanges& changes) {
    const auto judged = [&](const Upgrade& upgrade) {
        return JudgedDesign{upgrade.name, options.text, options.file,
                            with_upgrade(changes, upgrade)};
    };
    const MetricComparison& d = contest.difference;
    return verdict_estimates(
        options, judged(contest.best), judged(contest.second),
        {d.metric, d.better, d.pairs.difference, d.pairs.verdict != Verdict::undecided});
}

}  // namespace railyard
