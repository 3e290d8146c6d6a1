// railyard import: files that say what somebody owns or runs, made into parts of scenarios.

#include <fmt/format.h>

#include "tools/cli/cmd.h"
#include "tools/cli/options.h"
#include "tools/cli/terminal.h"
#include "tools/import/import.h"
#include "tools/program/output_file.h"

namespace railyard {

namespace {

int list_kinds_of_import() {
    Table table({"kind", "files", "what it makes"});
    for (const ImportKind& kind : import_kinds()) table.add({kind.name, kind.files, kind.doc});
    fmt::print("{}", table.text());
    return exit_ok;
}

// What a kind does not heed is refused, not ignored.
void check_options(const ImportKind& kind, const po::variables_map& values) {
    const std::string heeded = fmt::format(" {} ", kind.options);
    for (const char* name :
         {"name", "sequence-length", "image-patches", "node", "node-days", "cause", "column",
          "skip-bad", "collective", "network", "hosts", "nic"}) {
        if (values.count(name) == 0 || values[name].defaulted()) continue;
        if (heeded.find(fmt::format(" {} ", name)) != std::string::npos) continue;
        throw ScenarioError(fmt::format("--{} means nothing to import {}", name, kind.name));
    }
}

// The numbers that may be absent.
void take_numbers(const po::variables_map& values, ImportOptions& options) {
    if (values.count("sequence-length")) {
        options.sequence_length = values["sequence-length"].as<std::int64_t>();
    }
    if (values.count("image-patches")) {
        options.image_patches = values["image-patches"].as<std::int64_t>();
        if (*options.image_patches < 1 || *options.image_patches > 1'000'000) {
            throw ScenarioError(fmt::format("--image-patches: expected 1 to 1000000, found {}",
                                            *options.image_patches));
        }
    }
    if (values.count("hosts")) {
        options.hosts = values["hosts"].as<std::int64_t>();
        if (*options.hosts < 1 || *options.hosts > 1'000'000) {
            throw ScenarioError("--hosts: expected a number of nodes");
        }
    }
    if (values.count("node-days")) {
        options.node_days = values["node-days"].as<double>();
        if (!(*options.node_days > 0 && *options.node_days < 1e9)) {
            throw ScenarioError("--node-days: expected more than 0");
        }
    }
}

}  // namespace

int cmd_import(const std::vector<std::string>& arguments) {
    ImportOptions options;
    CommandLine line(
        "railyard import KIND FILE... -o OUT.toml",
        "Makes a part of a scenario, to be included by one, of files that say what somebody\n"
        "owns or runs. Each value has a comment with the file and line that it is from; what\n"
        "the files don't say is listed at the head.");
    line.add()("list", "What can be imported")("output,o", po::value(&options.output),
                                               "The file to write; without it, to the terminal")(
        "name", po::value(&options.name)->default_value("imported"),
        "The name of what is made, as in [model.NAME]")(
        "sequence-length", po::value<std::int64_t>(), "Tokens of one sequence in training")(
        "image-patches", po::value<std::int64_t>(),
        "Patches of one image, where a model leaves its size")(
        "node", po::value(&options.nodes)->composing(),
        "Which node of the catalogue it is: dgx_h100, or TYPE=dgx_h100 for GPUs that the site "
        "calls so")("node-days", po::value<double>(),
                    "Nodes times days that a history of failures watched")(
        "cause", po::value(&options.causes)->composing(),
        "A cause of failure and the pattern of its reasons, before the usual ones: gpu='xid|ecc'")(
        "column", po::value(&options.columns)->composing(),
        "What a column is called: submit=creation_time")(
        "collective", po::value(&options.collective), "Which collective a log of nccl-tests is of")(
        "network", po::value(&options.network),
        "The NICs of each node that it ran over: 8x400G, or 8x400G roce")(
        "nic", po::value(&options.nic), "Which NIC of the catalogue a benchmark is of")(
        "hosts", po::value<std::int64_t>(), "How many nodes a benchmark ran on")(
        "skip-bad", po::bool_switch(&options.skip_bad),
        "Count lines that are malformed instead of refusing the file");
    line.positional("what", -1);
    const auto values = line.parse(arguments);
    if (values.count("list")) return list_kinds_of_import();
    const std::vector<std::string> what = all_of(values, "what");
    if (what.size() < 2) {
        throw ScenarioError("expected a kind and at least one file", "railyard import --list");
    }
    const ImportKind& kind =
        named(import_kinds(), what[0], fmt::format("nothing imports '{}'", what[0]));
    check_options(kind, values);
    take_numbers(values, options);
    options.files.assign(what.begin() + 1, what.end());
    Diagnostics diagnostics;
    const Imported made = import_files(kind, options, diagnostics);
    print_warnings(diagnostics.warnings());
    if (options.output.empty()) {
        fmt::print("{}", made.text);
        return exit_ok;
    }
    for (const FileBeside& file : made.beside) {
        write_file(path_beside(options.output, file.ending), file.text, options.files);
    }
    write_file(options.output, made.text, options.files);
    return exit_ok;
}

}  // namespace railyard
