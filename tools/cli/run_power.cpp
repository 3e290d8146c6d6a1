#include <fmt/format.h>

#include <numeric>

#include "sim/text.h"
#include "tools/cli/run_text.h"
#include "tools/cli/terminal.h"

namespace railyard {

namespace {

std::string energy_text(double joules) {
    const double kwh = joules / joules_per_kilowatt_hour;
    return kwh < 1e3   ? fmt::format("{:.3g} kWh", kwh)
           : kwh < 1e6 ? fmt::format("{:.3g} MWh", kwh * 1e-3)
                       : fmt::format("{:.3g} GWh", kwh * 1e-6);
}

void print_energy(const CampaignResult& r) {
    const double all = std::accumulate(r.energy.begin(), r.energy.end(), 0.0);
    Table table({"energy", ">before the facility's own", ">"});
    for (std::size_t i = 0; i < r.energy.size(); ++i) {
        if (r.energy[i] == 0) continue;
        table.add({energy_name(i), energy_text(r.energy[i]), percent(r.energy[i] / all)});
    }
    fmt::print("\n{}", table.text());
}

void print_feeds(const Scenario& s, const CampaignResult& r) {
    const PowerSpec& p = s.power;
    fmt::print("  a node: {} computing, {} waiting, {} idle; rated {}\n",
               to_text(p.node_step.peak()), to_text(p.node.at(Activity::communication)),
               to_text(p.node.at(Activity::idle)), to_text(p.node.rated));
    fmt::print("  at the edges of a step {} up and down, {}/s to what feeds them\n",
               to_text(Watts{r.mean("power_swing")}), to_text(Watts{r.mean("power_swing_rate")}));
    if (p.supplies_load > 0) {
        fmt::print("  supplies: {} of {}, {} needed; at most {:.0f} % of what these deliver\n",
                   p.node.supplies, to_text(p.node.supply_rating), p.node.supplies_needed,
                   100 * p.supplies_load);
    }
    if (!p.facility_given) return;
    fmt::print(
        "  racks: {} nodes each, {} at the peak of a step, {} at most; {} cooling carries {}\n",
        p.nodes_per_rack, to_text(Watts{r.mean("rack_power_peak")}),
        to_text(Watts{static_cast<double>(p.nodes_per_rack) * p.node.design().value}),
        word_of(cooling_names, p.cooling.kind), to_text(p.cooling.rack_power_max));
    fmt::print("  GPUs at {:.1f} degC, HBM at {:.1f} degC; they throttle from {:.1f} and {:.1f}\n",
               p.heat.gpu.value, p.heat.hbm.value, p.throttle.starts.value,
               p.throttle.hbm_starts.value);
    if (p.breaker) {
        fmt::print("  breakers: {} for {} nodes, {:.0f} % at the peak of a step\n",
                   to_text(p.breaker->rating), p.breaker->nodes, 100 * r.mean("breaker_load_peak"));
    }
}

}  // namespace

std::string energy_name(std::size_t index) {
    if (index < category_count) return std::string(category_name(static_cast<Category>(index)));
    return index == category_count ? "network" : "storage";
}

void print_power(const Scenario& s, const CampaignResult& r) {
    std::string rest;
    if (s.tokens_per_step > 0) {
        constexpr double tokens = 1e9;
        rest +=
            fmt::format(", {} per 10^9 tokens", energy_text(r.mean("energy_per_token") * tokens));
    }
    if (s.power.carbon) rest += fmt::format(", {:.3g} t of CO2", r.mean("carbon") * 1e-6);
    fmt::print("\n  power at the meter {}, peak {} (PUE {:g}); {}{}\n",
               to_text(Watts{r.mean("power_mean")}), to_text(Watts{r.mean("power_peak")}),
               s.power.cooling.pue, energy_text(r.mean("energy")), rest);
    if (!s.power.given) return;
    if (s.phases.empty()) print_feeds(s, r);
    print_energy(r);
}

}  // namespace railyard
