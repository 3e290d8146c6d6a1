#include "tools/upgrades.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

namespace railyard {

namespace {

class Candidates {
  public:
    explicit Candidates(const Scenario& s)
        : s_(s), standalone_(s.open_catalogue()), catalogue_(standalone_.catalogue) {}

    std::vector<Upgrade> all() {
        add_nodes();
        add_nic();
        add_network();
        add_spares();
        add_storage();
        add_checkpoints();
        return std::move(out_);
    }

  private:
    void add(std::string name, std::vector<std::string> settings) {
        out_.push_back({std::move(name), std::move(settings)});
    }
    void add_nodes();
    void add_nic();
    void add_network();
    void add_spares();
    void add_storage();
    void add_checkpoints();

    const Scenario& s_;
    StandaloneCatalogue standalone_;
    Catalogue& catalogue_;
    std::vector<Upgrade> out_;
};

// Nodes of as many GPUs: the plan stays.
void Candidates::add_nodes() {
    if (s_.model.name.empty()) return;  // a step that was measured is measured on these
    for (const std::string& name : Catalogue::names("node")) {
        if (name == s_.node.name || !catalogue_.has("node", name, "gpu")) continue;
        const Node node = read_node(catalogue_, name);
        const bool faster = node.gpu.bf16_dense.per_second > s_.node.gpu.bf16_dense.per_second ||
                            node.gpu.hbm_bandwidth > s_.node.gpu.hbm_bandwidth;
        if (node.gpus != s_.node.gpus || !faster) continue;
        add(fmt::format("{} nodes ({})", name, node.gpu.name), {"cluster.node=" + name});
    }
}

// The slowest NIC of the same transport that is faster than the scenario's.
void Candidates::add_nic() {
    std::string best;
    Bandwidth rate;
    for (const std::string& name : Catalogue::names("nic")) {
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
        {fmt::format("override.nic.{}.bandwidth={} bit/s", s_.node.nic, rate.bits_per_second())});
}

void Candidates::add_network() {
    if (s_.fidelity == Fidelity::analytic) return;  // an ideal network already
    if (s_.networks[0].spec.oversubscription > 1) {
        add(fmt::format("no oversubscription, instead of {:.3g}",
                        s_.networks[0].spec.oversubscription),
            {"fabric.compute.oversubscription=1"});
    }
    for (const char* kind : {"infiniband", "roce"}) {
        if (network_kinds()[static_cast<std::size_t>(s_.networks[0].kind)] == kind) continue;
        add(fmt::format("{} as the compute network", kind),
            {fmt::format("fabric.compute.kind={}", kind)});
    }
}

// One in a hundred of the job's nodes more, and as many fewer.
void Candidates::add_spares() {
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

void Candidates::add_storage() {
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

void Candidates::add_checkpoints() {
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

const std::string cost_metric = "cost_per_year";

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
    out.speed = summarise_paired(after, before);
    out.goodput = summarise_paired(with.values[0], base.values[0]);
    if (base.values.size() > 3) {
        const double cost = base.summary(3).mean;
        out.cost = with.summary(3).mean - cost;
        out.return_on_cost = (1 + out.speed.mean) / (1 + *out.cost / cost) - 1;
    }
    return out;
}

}  // namespace

std::vector<Upgrade> upgrade_candidates(const Scenario& scenario) {
    return Candidates(scenario).all();
}

UpgradeTable try_upgrades(const TrialOptions& options, const ScenarioChanges& changes,
                          const Scenario& scenario) {
    TrialOptions trial_options = options;
    trial_options.metrics = {"goodput", "steps", "wall_time"};
    const std::vector<Metric> metrics = run_replica(scenario, 0, false).metrics;
    if (std::any_of(metrics.begin(), metrics.end(),
                    [](const Metric& m) { return m.name == cost_metric; })) {
        trial_options.metrics.push_back(cost_metric);
    }
    const std::vector<Upgrade> upgrades = upgrade_candidates(scenario);
    std::vector<ScenarioChanges> variants = {changes};
    for (const Upgrade& upgrade : upgrades) {
        variants.push_back(changes);
        auto& settings = variants.back().settings;
        settings.insert(settings.end(), upgrade.settings.begin(), upgrade.settings.end());
    }
    const std::vector<std::optional<Trial>> trials = run_trials(trial_options, variants);
    UpgradeTable out;
    if (!trials[0]) throw Interrupted();
    if (trial_options.metrics.size() > 3) out.cost = trials[0]->summary(3).mean;
    for (std::size_t i = 0; i < upgrades.size(); ++i) {
        const std::optional<Trial>& trial = trials[i + 1];
        if (!trial) {
            out.interrupted = true;
        } else if (!trial->possible() || trial->ending != Ending::complete) {
            out.impossible.push_back(upgrades[i].name);
        } else {
            out.effects.push_back(effect_of(upgrades[i], *trial, *trials[0]));
        }
    }
    std::stable_sort(out.effects.begin(), out.effects.end(),
                     [](const UpgradeEffect& a, const UpgradeEffect& b) {
                         return a.return_on_cost.value_or(a.speed.mean) >
                                b.return_on_cost.value_or(b.speed.mean);
                     });
    return out;
}

}  // namespace railyard
