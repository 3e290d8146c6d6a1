// railyard topo: what the scenario's networks are made of, and pictures of them.

#include <fmt/format.h>

#include "models/campaign/campaign.h"
#include "tools/cli/cmd.h"
#include "tools/cli/options.h"
#include "tools/cli/prediction_text.h"
#include "tools/cli/terminal.h"
#include "tools/language/scenario_files.h"
#include "tools/program/json_text.h"
#include "tools/program/lists.h"
#include "tools/program/output_file.h"
#include "tools/report/topology_drawing.h"

namespace railyard {

namespace {

std::string switches_text(const std::vector<SwitchOrder>& orders) {
    Table switches(
        {"switches", "model", ">count", ">ports used", ">ports free", ">oversubscription"});
    for (const SwitchOrder& s : orders) {
        switches.add({s.tier, s.model, fmt::format("{}", s.count), fmt::format("{}", s.ports_used),
                      fmt::format("{}", s.ports - s.ports_used),
                      s.oversubscription > 0 ? fmt::format("{:.3g} : 1", s.oversubscription) : ""});
    }
    return switches.text();
}

// "rail_only in 8 planes on 2 sites".
std::string shape_text(const ClusterNetwork& network) {
    std::string text = network.topology.spec().kind;
    const std::int64_t planes = network.spec.plane_count();
    if (planes > 1) text += fmt::format(" in {} planes", planes);
    if (network.spec.sites > 1) text += fmt::format(" on {} sites", network.spec.sites);
    return text;
}

void print_materials(const ClusterNetwork& network, const Materials& m) {
    fmt::print("{}  {}, {}, {} NICs of {}\n", coloured(network.name, Colour::bold),
               shape_text(network), network.infiniband() ? "InfiniBand" : "Ethernet", m.nics,
               line_rate_text(network.spec.nic_bandwidth));
    Table cables({"cables", "medium", ">length", ">rate", ">count", ">transceivers"});
    for (const CableOrder& c : m.cables) {
        cables.add({c.where, c.medium, fmt::format("{:g} m", c.length.value),
                    line_rate_text(c.bandwidth), fmt::format("{}", c.count),
                    fmt::format("{}", c.transceivers)});
    }
    fmt::print("{}{}", switches_text(m.switches), cables.text());
    if (m.half_of_nics_bytes_per_s > 0) {
        const double bisection = bisection_bytes_per_s(network.topology);
        fmt::print("  bisection {} per direction, {:.3g} % of what half of the nodes send\n\n",
                   to_text(Bandwidth::bits_per_second(8) * bisection),
                   100 * bisection / m.half_of_nics_bytes_per_s);
    } else {
        fmt::print("  one node: nothing to bisect\n\n");
    }
}

// Where nodes have no NICs for storage alone.
void print_shared_nics(const Scenario& s) {
    const std::int64_t servers = s.networks[0].topology.spec().servers;
    if (s.node.storage_nics > 0 || servers == 0) return;
    fmt::print("{} of the store on the compute network: {} has no NICs for storage\n\n",
               counted(static_cast<std::size_t>(servers), "server"), s.node.name);
}

Json switches_json(const std::vector<SwitchOrder>& orders) {
    return json_array(orders, [](const SwitchOrder& s) -> Json {
        return {{"tier", s.tier},
                {"model", s.model},
                {"count", s.count},
                {"ports", s.ports},
                {"ports_used", s.ports_used},
                {"oversubscription", s.oversubscription}};
    });
}

Json materials_json(const ClusterNetwork& network, const Materials& m) {
    const Json cables = json_array(m.cables, [](const CableOrder& c) -> Json {
        return {{"where", c.where},           {"medium", c.medium},
                {"length_m", c.length.value}, {"bits_per_s", c.bandwidth.bits_per_second()},
                {"count", c.count},           {"transceivers", c.transceivers}};
    });
    return {{"topology", network.topology.spec().kind},
            {"nics", m.nics},
            {"switches", switches_json(m.switches)},
            {"cables", cables},
            {"bisection_bytes_per_s", bisection_bytes_per_s(network.topology)},
            {"full_bisection_bytes_per_s", m.half_of_nics_bytes_per_s}};
}

// Into the files that --svg and --dot name.
void draw(const ClusterNetwork& network, const std::string& title, const po::variables_map& values,
          const std::vector<std::string>& inputs) {
    if (values.count("svg")) {
        write_file(values["svg"].as<std::string>(), topology_svg(network.topology, title), inputs);
    }
    if (values.count("dot")) {
        write_file(values["dot"].as<std::string>(), topology_dot(network.topology, title), inputs);
    }
}

// All as JSON; or, once the networks are printed, what their luck makes of a step that is computed on them.
void print_rest(const Scenario& s, const BillOfMaterials& materials, const Json& networks,
                bool json) {
    const bool lucky = !s.world && !s.draws.empty();
    if (json) {
        Json out = {{"scenario", s.file}, {"version", version()}};
        if (!materials.nvlink.empty()) out["nvlink"] = switches_json(materials.nvlink);
        out["networks"] = networks;
        if (lucky) out["network_draws"] = draws_json(s);
        fmt::print("{}\n", one_line(out));
    } else if (lucky) {
        fmt::print("{}\n", draws_text(s));
    }
}

}  // namespace

int cmd_topo(const std::vector<std::string>& arguments) {
    CommandLine line(
        "railyard topo SCENARIO.toml [options]",
        "Prints the bill of materials of the scenario's networks: switches, ports used and\n"
        "free, cables, transceivers, oversubscription and bisection.");
    line.positional("scenario", 1);
    line.add_settings();
    line.add()("network", a_text("compute"),
               "The network that is drawn: compute, storage or management");
    line.add()("svg", a_text(), "Draw it into this SVG file");
    line.add()("dot", a_text(), "Write it for Graphviz into this file");
    line.add_json();
    const auto values = line.parse(arguments);
    ScenarioChanges changes;
    changes.settings = settings_of(values);
    changes.must_run = false;  // memory is not its business
    changes.overrides_read = std::make_shared<OverridesRead>();
    changes.run_windows = false;
    changes.build_networks = true;
    const std::string path = only_scenario(values, "topo");
    const Scenario s = load_scenario_file(path, changes);
    print_warnings(s.warnings);
    const std::vector<std::string> inputs = files_of(path, changes.settings);
    StandaloneCatalogue own = s.open_catalogue();
    const std::string drawn = values["network"].as<std::string>();
    std::vector<std::string> names;
    Json networks = Json::object();
    const BillOfMaterials materials = bill_of_materials(s, own.catalogue);
    own.diagnostics.raise_if_any();
    for (const NetworkBill& bill : materials.networks) names.push_back(bill.network->name);
    if (!contains(names, drawn)) {
        throw ScenarioError(fmt::format("--network: this scenario has no network '{}'", drawn),
                            suggest(drawn, names));
    }
    if (!values.count("json") && !materials.nvlink.empty()) {
        fmt::print("{}  in the racks, part of them\n{}\n", coloured("nvlink", Colour::bold),
                   switches_text(materials.nvlink));
    }
    for (const NetworkBill& bill : materials.networks) {
        const ClusterNetwork& network = *bill.network;
        networks[network.name] = materials_json(network, bill.materials);
        if (!values.count("json")) print_materials(network, bill.materials);
        if (network.name != drawn) continue;
        draw(network, fmt::format("{}: {} network", s.title, network.name), values, inputs);
    }
    if (!values.count("json")) print_shared_nics(s);
    print_rest(s, materials, networks, values.count("json") > 0);
    print_warnings(unread_overrides(s));
    return exit_ok;
}

}  // namespace railyard
