// railyard import: files that say what somebody owns or runs, made into parts of scenarios.

#include <fmt/format.h>

#include <algorithm>

#include "tools/cli/cmd.h"
#include "tools/cli/options.h"
#include "tools/cli/terminal.h"
#include "tools/import/import.h"
#include "tools/program/output_file.h"
#include "tools/program/program.h"

namespace railyard {

namespace {

void list_kinds_of_import() {
    Table table({{"kind", Table::Align::left},
                 {"files", Table::Align::left},
                 {"what it makes", Table::Align::left}});
    for (const ImportKind& kind : import_kinds()) table.add({kind.name, kind.files, kind.doc});
    fmt::print("{}", table.text());
}

const ImportKind& kind_named(const std::string& name) {
    std::vector<std::string> names;
    for (const ImportKind& kind : import_kinds()) {
        if (kind.name == name) return kind;
        names.emplace_back(kind.name);
    }
    throw ScenarioError(fmt::format("nothing imports '{}'", name), suggest(name, names));
}

}  // namespace

int cmd_import(const std::vector<std::string>& arguments) {
    CommandLine line(
        "railyard import KIND FILE... -o OUT.toml",
        "Makes a part of a scenario, to be included by one, of files that say what somebody\n"
        "owns or runs. Each value has a comment with the file and line that it is from; what\n"
        "the files don't say is listed at the head.");
    line.add()("list", "What can be imported")("output,o", po::value<std::string>(),
                                               "The file to write; without it, to the terminal")(
        "name", po::value<std::string>()->default_value("imported"),
        "The name of what is made, as in [model.NAME]")(
        "sequence-length", po::value<std::int64_t>(), "Tokens of one sequence in training")(
        "node", po::value<std::vector<std::string>>()->composing(),
        "Which node of the catalogue it is: dgx_h100, or TYPE=dgx_h100 for GPUs that the site "
        "calls so");
    line.positional("what", -1);
    const auto values = line.parse(arguments);
    if (!values) return exit_ok;
    if (values->count("list")) {
        list_kinds_of_import();
        return exit_ok;
    }
    std::vector<std::string> what;
    if (values->count("what")) what = (*values)["what"].as<std::vector<std::string>>();
    if (what.size() < 2) {
        throw ScenarioError("expected a kind and at least one file", "railyard import --list");
    }
    const ImportKind& kind = kind_named(what[0]);
    ImportOptions options;
    options.files.assign(what.begin() + 1, what.end());
    options.name = (*values)["name"].as<std::string>();
    if (values->count("sequence-length")) {
        options.sequence_length = (*values)["sequence-length"].as<std::int64_t>();
    }
    if (values->count("node")) {
        options.nodes = (*values)["node"].as<std::vector<std::string>>();
    }
    Diagnostics diagnostics;
    const std::string text = import_files(kind, options, diagnostics);
    for (const Diagnostic& warning : diagnostics.warnings()) {
        fmt::print(stderr, "{}\n", format_diagnostic(warning, "warning"));
    }
    if (values->count("output")) {
        write_file((*values)["output"].as<std::string>(), text, options.files);
    } else {
        fmt::print("{}", text);
    }
    return exit_ok;
}

}  // namespace railyard
