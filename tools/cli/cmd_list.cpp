// railyard list: what a scenario may name, each with its source.

#include <fmt/format.h>

#include <algorithm>

#include "models/campaign/campaign.h"
#include "tools/cli/cmd.h"
#include "tools/cli/options.h"
#include "tools/cli/terminal.h"
#include "tools/language/schema.h"
#include "tools/language/settings_diff.h"
#include "tools/program/lists.h"
#include "tools/study/design_question.h"
#include "tools/study/study.h"
#include "tools/verify/described_table.h"

namespace railyard {

namespace {

std::string member(const Value& v, std::string_view key) {
    const Value* m = v.find(key);
    return m ? value_text(*m) : "";
}

int list_overview(const Catalogue& catalogue) {
    Table table({"kind", ">entries", "such as"});
    for (const std::string& kind : Catalogue::kinds()) {
        const std::vector<std::string> names = catalogue.all_names(kind);
        std::string examples;
        for (std::size_t i = 0; i < std::min<std::size_t>(4, names.size()); ++i) {
            examples += (i ? ", " : "") + names[i];
        }
        table.add({kind, fmt::format("{}", names.size()), examples});
    }
    fmt::print(
        "{}\n'railyard list KIND' lists its entries, 'railyard list KIND NAME' one with its "
        "sources,\n"
        "'railyard list kinds' what a scenario's keys may say, 'railyard list keys' the "
        "language,\n'railyard list metrics' what results are called and mean.\n",
        table.text());
    return exit_ok;
}

int list_kinds() {
    Table table({"key", "may be", ""});
    for (const Kind& kind : kinds()) table.add({kind.group, kind.name, kind.doc});
    fmt::print("{}", table.text());
    return exit_ok;
}

int list_keys() {
    for (const SchemaRow& row : scenario_schema()) {
        fmt::print("{}\n    {}; otherwise: {}\n    {}\n", coloured(row.path, Colour::bold),
                   row.type, row.otherwise, row.doc);
    }
    return exit_ok;
}

void list_entries(const Catalogue& catalogue, const std::string& kind) {
    Table table({kind, "", ">values", ">estimates"});
    for (const std::string& name : catalogue.all_names(kind)) {
        const Value& entry = *catalogue.find_entry(kind, name);
        std::int64_t values = 0;
        std::int64_t estimates = 0;
        for (const auto& [key, v] : entry.members) {
            if (v.find("value") == nullptr) continue;
            ++values;
            if (member(v, "class") == "estimate") ++estimates;
        }
        table.add(
            {name, member(entry, "name"), fmt::format("{}", values), fmt::format("{}", estimates)});
    }
    fmt::print("{}", table.text());
}

void list_entry(const Catalogue& catalogue, const std::string& kind, const std::string& name) {
    const Value& entry = *catalogue.find_entry(kind, name);
    Table table({name.empty() ? kind : kind + "." + name, "value", "range", "class", ">source"});
    // Citations are long and shared: the table has their numbers.
    std::vector<std::string> cited;
    const auto number_of = [&](const std::string& source) {
        if (source.empty()) return std::string("the scenario");
        const std::string text = Catalogue::citation(kind, source);
        const auto found = std::ranges::find(cited, text);
        const auto index = found - cited.begin();
        if (found == cited.end()) cited.push_back(text);
        return fmt::format("[{}]", index + 1);
    };
    std::string notes;
    for (const auto& [key, v] : entry.members) {
        if (v.kind != Value::Kind::table) {
            table.add({key, value_text(v), "", "", ""});
            continue;
        }
        const std::string recalled = v.find("recalled") ? " (recalled)" : "";
        const std::string range =
            v.find("low") ? fmt::format("{} to {}", member(v, "low"), member(v, "high")) : "";
        table.add({key, member(v, "value"), range, member(v, "class") + recalled,
                   number_of(member(v, "source"))});
        if (v.find("seed")) {
            table.add({"  catalogue.values = \"seed\"", member(v, "seed"), "", "seed",
                       number_of(member(v, "seed_source"))});
        }
        if (v.find("note")) notes += fmt::format("  {}: {}\n", key, member(v, "note"));
    }
    fmt::print("{}", table.text());
    if (!notes.empty()) fmt::print("\n{}", notes);
    fmt::print("\n");
    for (std::size_t i = 0; i < cited.size(); ++i) fmt::print("  [{}] {}\n", i + 1, cited[i]);
}

// The catalogue as a scenario has it: with its own entries.
struct ListedCatalogue {
    explicit ListedCatalogue(const std::string& scenario) {
        if (!scenario.empty()) {
            document = parse_with_includes(read_file(scenario), scenario, diagnostics);
        }
        diagnostics.raise_if_any();
        ValueReader reader(diagnostics, scenario);
        own = std::make_shared<OwnEntries>(reader, document.root);
        diagnostics.raise_if_any();
        found.emplace(ValueChoice::corrected, nullptr, scenario, Perturbations(), nullptr, own);
    }

    Diagnostics diagnostics;
    Document document;
    std::shared_ptr<const OwnEntries> own;
    std::optional<StandaloneCatalogue> found;
};

int list_metrics() {
    Table table({"metric", "unit", "better", "meaning"});
    for (const MetricName& each : metric_names()) {
        table.add({each.pattern, each.unit, better_name(each.better), each.doc});
    }
    fmt::print("{}", table.text());
    return exit_ok;
}

}  // namespace

int cmd_list(const std::vector<std::string>& arguments) {
    CommandLine line(
        "railyard list [KIND [NAME]]",
        "Lists the catalogue: its kinds, a kind's entries, or an entry's values with their\n"
        "sources. 'list kinds' and 'list keys' describe the scenario language, 'list metrics'\n"
        "its results; 'list schema' prints the language as JSON Schema, for editors.");
    line.add()("scenario", a_text(),
               "A scenario, or a file that scenarios include, whose own entries are listed, too");
    line.positional("what", 2);
    const auto values = line.parse(arguments);
    const std::vector<std::string> what = all_of(values, "what");
    const ListedCatalogue listed(text_of(values, "scenario"));
    const Catalogue& catalogue = listed.found->catalogue;
    if (what.empty()) return list_overview(catalogue);
    const std::string alone = what.size() == 1 ? what[0] : "";
    if (alone == "kinds") return list_kinds();
    if (alone == "metrics") return list_metrics();
    if (alone == "keys") return list_keys();
    if (alone == "schema") {
        fmt::print("{}", scenario_json_schema(study_schema(), table_schema(), design_schema()));
        return exit_ok;
    }
    const std::vector<std::string> of_all = {"kinds", "keys", "metrics", "schema"};
    if (contains(of_all, what[0])) {
        throw ScenarioError(fmt::format("'list {}' takes no name, found '{}'", what[0], what[1]),
                            fmt::format("railyard list {} prints all of them", what[0]));
    }
    const std::vector<std::string> all = Catalogue::kinds();
    if (!contains(all, what[0])) {
        throw ScenarioError(fmt::format("no kind '{}' in the catalogue", what[0]),
                            suggest(what[0], all));
    }
    const std::vector<std::string> names = catalogue.all_names(what[0]);
    if (what.size() == 1 && names != std::vector<std::string>{""}) {
        list_entries(catalogue, what[0]);
        return exit_ok;
    }
    std::string name = what.size() == 2 ? what[1] : "";
    if (what[0] == "software") name = software_id(name);  // as job.software has it, too
    if (!contains(names, name)) {
        const bool single = names == std::vector<std::string>{""};
        throw ScenarioError(
            single ? fmt::format("{} is one entry and has none called '{}'", what[0], name)
                   : fmt::format("no {} '{}' in the catalogue", what[0], name),
            single ? fmt::format("'railyard list {}' prints its values", what[0])
                   : suggest(name, names));
    }
    list_entry(catalogue, what[0], name);
    return exit_ok;
}

}  // namespace railyard
