#pragma once
// All that the program would print of a scenario, as one text: when a key changes nothing here, it is dead.

#include <fmt/format.h>

#include <string>
#include <vector>

#include "models/campaign/campaign.h"
#include "sim/fingerprint.h"

namespace railyard {

// What topo reports, and where flows go.
inline std::string network_text(const ClusterNetwork& network) {
    const Topology& t = network.topology;
    Router router(t, network.routing);
    std::vector<Usage> usages;
    for (VertexId nic = 0; nic < t.nic_count(); ++nic) {
        router.route(nic, static_cast<VertexId>((nic + t.nic_count() / 2) % t.nic_count()), 0,
                     usages);
    }
    Fingerprint print;
    for (const Usage& u : usages) {
        print.add(std::int64_t{u.link});
        print.add(std::int64_t(u.share * 1e6F));
    }
    for (const Link& l : t.links()) {
        print.add(std::int64_t(l.bytes_per_s));
        print.add(l.latency);
    }
    std::string out = fmt::format(" {} {} {}", t.spec().kind, t.vertex_count(), print.hex());
    for (VertexId v = static_cast<VertexId>(t.nic_count()); v < t.vertex_count(); ++v) {
        out += " " + t.switch_model(v).name;
    }
    return out;
}

// What `railyard window` reports.
inline std::string windows_text(const Scenario& s, Catalogue& catalogue) {
    std::string out;
    for (const NetworkWindow& w : packet_windows(s)) {
        const WindowResult r =
            run_window(catalogue, w.network->topology, w.network->packets, w.window);
        out += fmt::format(" {} {}", r.digest, static_cast<int>(r.ending));
        if (r.totals.lost_lossless > 0 && !s.window.allow_loss) out += " an error";
    }
    return out;
}

// What `railyard storage` reports.
inline std::string store_text(const StorageSystem& store) {
    std::string out;
    for (const StoreState& state :
         {StoreState{}, StoreState{.servers_down = 1}, StoreState{.boxes_down = 1},
          StoreState{.drives_down = 1}, StoreState{.rebuilds = 1},
          StoreState{.write_buffer_full = true}}) {
        const StoreLimits l = store.limits(state);
        for (const auto* ceilings : {&l.read, &l.write}) {
            for (const Ceiling& c : *ceilings) out += fmt::format(" {}", to_text(c.bandwidth));
        }
        out += fmt::format(" {} {} {} {} {} {} {} {}", to_text(l.client_read),
                           to_text(l.client_write), to_text(l.file_read), to_text(l.file_write),
                           l.creates_per_s, l.opens_per_s, l.unreachable, to_text(l.write_buffer));
    }
    const Protection p = store.protection();
    out += fmt::format(" {} {} {} {} {} {}", p.servers_lost_max, p.groups, p.group_drives,
                       p.drives_lost_max, to_text(p.rebuild), p.failover.count());
    const StorePrices prices = store.prices();
    return out + fmt::format(" {} {} {} {}", store.capacity().rule, store.capacity().net.count(),
                             prices.write_part.count(), prices.per_egress_byte);
}

// What `railyard cost` reports.
inline std::string cost_text(const Scenario& s, const CampaignResult& r) {
    const CostStudy study = study_costs(s.cost->plan, r.uses);
    const CostRange range =
        study.range([](const YearlyCost& c) { return c.per_goodput_gpu_hour(); });
    const double budget = s.cost->plan.budget.value_or(study.typical.capital);
    return fmt::format(" {} {} {} {}", range.low, range.typical, range.high,
                       study.typical.capital > budget);
}

// Everything that a run, topo, perf, storage and window report, as text.
inline std::string outcome_of(const Scenario& s) {
    const CampaignResult r = run_campaign(s, {});
    std::string out = s.title + " " + r.digest;
    out += fmt::format(" {} {} {} {}", total_bytes(s.memory), s.plan.tensor, s.plan.pipeline,
                       s.plan.data);
    for (const StoreSetup& store : s.stores) out += store_text(*store.system);
    for (const MetricSummary& m : r.metrics) out += fmt::format(" {}={}", m.name, m.summary.mean);
    for (const FailureCause& cause : s.causes) out += " " + cause.name;
    for (const StagePlan& stage : s.stages) out += " " + stage.name;
    for (const PauseSpec& pause : s.job.pauses) out += " " + pause.name;
    for (const ClusterNetwork& network : s.networks) out += network_text(network);
    for (const PartFault& fault : s.faults) out += describe(fault);
    for (const FailureCause& cause : s.causes) {
        if (!cause.storm) continue;
        out += fmt::format(" {} {} {} {}", cause.storm->stall.count(), cause.storm->fatal,
                           cause.detection.count(), cause.reset_time.count());
    }
    StandaloneCatalogue own = s.open_catalogue();
    if (s.cost) out += cost_text(s, r);
    if (s.window.given) out += windows_text(s, own.catalogue);
    const Communicator all =
        read_communicator(own.catalogue, s.node, {s.gpus(), s.node.gpus, s.networks[0].sharp});
    return out + fmt::format(" all-reduce {}", seconds(Collective::all_reduce, all, 1e6));
}
inline std::string outcome_of(const std::string& text, const std::vector<std::string>& settings) {
    ScenarioChanges changes;
    changes.phases = true;
    changes.settings = settings;
    return outcome_of(load_scenario(text, "knobs", changes));
}

}  // namespace railyard
