#include "tools/study/design_order.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>

#include "tools/language/scenario_files.h"
#include "tools/results/point_key.h"

namespace railyard {

std::vector<PhaseLine> phase_lines(const Scenario& s) {
    std::vector<PhaseLine> out;
    for (const ScenarioPhase& phase : s.phases) {
        out.push_back(
            {phase.name, fmt::format("{} {}", phase.as->nodes.nodes, phase.as->node.name), 0, 0});
    }
    if (!s.cost) return out;
    const std::vector<double> prices = typical_prices(s.cost->plan.prices);
    for (std::size_t k = 0; k < out.size(); ++k) {
        const CostPhase& phase = s.cost->plan.phases[k];
        const Cents hardware = hardware_bought(phase, prices);
        const Cents supported = supported_sum(phase.plan, prices);
        for (const BoughtLine& b : phase.bought) {
            out[k].bought += usd(line_sum(b.line, prices, hardware));
        }
        for (const CostLine& line : phase.plan.yearly) {
            out[k].a_year += usd(line_sum(line, prices, supported));
        }
    }
    return out;
}

std::vector<OrderLine> order_of(const Scenario& s) {
    std::vector<OrderLine> out;
    if (s.cost) {
        const CostPlan& plan = s.cost->plan;
        const std::vector<double> prices = typical_prices(plan.prices);
        for (const CostPhase& phase : plan.phases) {
            const Cents of_phase = hardware_bought(phase, prices);
            for (const BoughtLine& b : phase.bought) {
                out.push_back({phase.name + ": " + b.line.what, b.line.quantity, b.line.per,
                               usd(line_sum(b.line, prices, of_phase))});
            }
        }
        const Cents hardware = hardware_sum(plan, prices);
        for (const CostLine& line : plan.capital) {
            out.push_back(
                {line.what, line.quantity, line.per, usd(line_sum(line, prices, hardware))});
        }
        return out;
    }
    StandaloneCatalogue own = s.open_catalogue();
    const BillOfMaterials bill = bill_of_materials(s, own.catalogue);
    const auto add = [&](const std::string& what, std::int64_t count, const char* per) {
        out.push_back({what, static_cast<double>(count), per, std::nullopt});
    };
    for (const NodeOrder& order : bill.nodes) add(order.node->name + " nodes", order.count, "node");
    for (const NetworkBill& network : bill.networks) {
        for (const SwitchOrder& order : network.materials.switches) {
            add(fmt::format("{} {} {}", network.network->name, order.tier, order.model),
                order.count, "switch");
        }
        for (const CableOrder& cable : network.materials.cables) {
            add(fmt::format("{} {} {}", network.network->name, cable.where, cable.medium),
                cable.count, "cable");
        }
    }
    return out;
}

std::vector<std::string> own_settings(const DesignQuestion& q, const SearchedDesign& design) {
    std::vector<std::string> out = q.base_settings;
    out.insert(out.end(), design.own.begin(), design.own.end());
    for (const std::string& setting : design.facts.settings) {
        const std::string key = key_of_setting(setting);
        const bool planned = decided_by_plan(key) || key == "job.parallel.global_batch";
        if (planned && std::ranges::find(out, setting) == out.end()) out.push_back(setting);
    }
    return out;
}

namespace {

// Files that it names, by where they are.
void name_files_whole(Value& table, const std::string& path, const std::string& document) {
    for (Member& member : table.members) {
        const std::string key = path.empty() ? member.key : path + "." + member.key;
        Value& value = member.value;
        if (value.kind == Value::Kind::string && names_a_file(key)) {
            value.text =
                std::filesystem::absolute(file_beside(value, document)).lexically_normal().string();
        }
        name_files_whole(value, key, document);
        for (Value& item : value.items) name_files_whole(item, key, document);
    }
}

}  // namespace

std::string scenario_text(const DesignQuestion& q, const SearchedDesign& design,
                          const std::string& title) {
    Document document = document_with(q.text, q.file, own_settings(q, design));
    std::erase_if(document.root.members, [](const Member& m) {
        return m.key == "design" || m.key == "include" || m.key == "title";
    });
    name_files_whole(document.root, "", document.name);
    document.root.members.insert(document.root.members.begin(), {"title", Value::of(title)});
    return to_toml(document.root);
}

}  // namespace railyard
