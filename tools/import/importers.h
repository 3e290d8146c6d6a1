#pragma once
// The importers, each in the file of its name; for the table of kinds alone.

#include <string>
#include <utility>

#include "tools/import/import.h"
#include "tools/import/json_tree.h"

namespace railyard {

// What an importer reads from, writes to and complains to, while it makes one part.
class Importer {
  public:
    Importer(const ImportOptions& options, ImportedPart& part, Diagnostics& diagnostics)
        : options_(options), part_(part), diagnostics_(diagnostics), file_(options.files.front()) {}

  protected:
    // Errors and warnings in `file_`: at a place, at a value, or of the whole file.
    void error(Position at, const std::string& path, std::string message, std::string help = {}) {
        diagnostics_.error(file_, at, path, std::move(message), std::move(help));
    }
    void error(const Value& at, const std::string& path, std::string message,
               std::string help = {}) {
        error(at.at, path, std::move(message), std::move(help));
    }
    void error(std::string message, std::string help = {}) {
        error(Position{}, "", std::move(message), std::move(help));
    }
    void warning(Position at, const std::string& path, std::string message, std::string help = {}) {
        diagnostics_.warning(file_, at, path, std::move(message), std::move(help));
    }
    void warning(std::string message, std::string help = {}) {
        warning(Position{}, "", std::move(message), std::move(help));
    }
    // Counts what is malformed, and reports it unless --skip-bad leaves such things out.
    void bad(Position at, const std::string& path, std::string message, std::string help) {
        ++bad_;
        if (!options_.skip_bad) error(at, path, std::move(message), std::move(help));
    }
    // Throws ScenarioError where there is a second file: `message` says which one to give.
    void take_one_file(std::string message, std::string help = {});
    // `file_` as a tree. Throws ScenarioError.
    Document file_as_json(RepeatedKeys repeated = RepeatedKeys::refused);
    Document file_as_yaml();

    const ImportOptions& options_;
    ImportedPart& part_;
    Diagnostics& diagnostics_;
    std::string file_;  // the one that is read; at first the first
    std::int64_t bad_ = 0;
};

using Import = void (*const)(const ImportOptions& options, ImportedPart& part,
                             Diagnostics& diagnostics);
// What the table of kinds runs for one of these classes.
template <typename Kind>
void run_importer(const ImportOptions& options, ImportedPart& part, Diagnostics& diagnostics) {
    Kind(options, part, diagnostics).run();
}
extern Import import_chakra, import_containerlab, import_dcgm, import_dlio, import_elbencho,
    import_fio, import_huggingface, import_ibnetdiscover, import_infragraph, import_io500,
    import_kineto, import_kueue, import_lldp, import_megatron, import_nccl_tests,
    import_nccl_topology, import_nemo, import_nvidia_smi_topo, import_pai, import_perftest,
    import_philly, import_sacct, import_slurm, import_slurm_events, import_sonic, import_torchtitan,
    import_trace, import_xid;

}  // namespace railyard
