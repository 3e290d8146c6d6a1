#include "tools/import/import.h"

#include <fmt/format.h>

#include <filesystem>

#include "models/campaign/campaign.h"
#include "tools/import/importers.h"
#include "tools/import/text_file.h"
#include "tools/import/yaml_tree.h"

namespace railyard {

namespace {

constexpr const char* a_table =
    "a table of measurements (CSV, and TOML beside it) that verify reads";

const ImportKind known_kinds[] = {
    {"chakra",
     "a folder of Chakra's execution traces (NAME.0.et, ...), or one for all ranks; a scenario", "",
     "[job] with the traces as its step, replayed on the scenario's GPUs and network",
     import_chakra},
    {"containerlab", "a topology of containerlab (*.clab.yml)", "network node",
     "[fabric.compute] as it is cabled", import_containerlab},
    {"dcgm",
     "dcgm-exporter's text (OpenMetrics, scrapes in their order) or 'dcgmi dmon' of each node",
     "node-days skip-bad", "[failures]: rates by cause of what GPUs count and report", import_dcgm},
    {"dlio", "summary.json of DLIO or MLPerf Storage", "hosts node", a_table, import_dlio},
    {"elbencho", "elbencho's CSV (--csvfile)", "hosts node", a_table, import_elbencho},
    {"fio", "fio's JSON (--output-format=json)", "hosts node", a_table, import_fio},
    {"huggingface", "config.json [model.safetensors.index.json]",
     "name sequence-length image-patches",
     "a model: [model.NAME] from its shape; the index of its weights checks the parameters",
     import_huggingface},
    {"ibnetdiscover", "ibnetdiscover's output [iblinkinfo's] [a --node-name-map]", "node skip-bad",
     "[fabric.compute] as it is cabled, with missing, slow and swapped cables",
     import_ibnetdiscover},
    {"infragraph", "an infrastructure of InfraGraph (YAML)", "node",
     "[fabric.compute] as it is cabled", import_infragraph},
    {"io500", "what io500 prints, or result_summary.txt", "hosts node", a_table, import_io500},
    {"kineto", "traces of PyTorch's profiler, a rank each (*.pt.trace.json[.gz])", "skip-bad",
     "[job] with its step's time and jitter; -o mine.csv: a table of measurements", import_kineto},
    {"kueue", "'kubectl get workloads -A -o json'", "skip-bad", "[jobs] with its trace",
     import_kueue},
    {"lldp", "NODE.json of 'lldpcli -f json0 show neighbors', of each node", "network node",
     "[fabric.compute] as it is cabled", import_lldp},
    {"megatron", "a script with Megatron-LM's arguments, or a log that has them", "",
     "a plan: [job.parallel] and [job.checkpoint]", import_megatron},
    {"nccl_tests", "what nccl-tests or rccl-tests prints", "collective network", a_table,
     import_nccl_tests},
    {"nccl_topology", "NCCL_TOPO_DUMP_FILE's XML, or RCCL's", "node skip-bad",
     "[cluster] of a node as NCCL sees it, and which GPU has lost links", import_nccl_topology},
    {"nemo", "a configuration of NeMo, in YAML", "", "a plan: [job.parallel] and [job.checkpoint]",
     import_nemo},
    {"nvidia_smi_topo", "'nvidia-smi topo -m'", "node skip-bad",
     "[cluster] of a node as the driver sees it, and which GPU has lost links",
     import_nvidia_smi_topo},
    {"pai", "pai_job_table.csv and pai_task_table.csv of Alibaba's PAI", "skip-bad",
     "[jobs] with its trace", import_pai},
    {"perftest", "what ib_write_bw, ib_read_bw or ib_send_bw prints", "nic",
     "[override.nic.NIC] with how much of its line rate a NIC reaches", import_perftest},
    {"philly", "cluster_job_log of Microsoft's Philly", "skip-bad", "[jobs] with its trace",
     import_philly},
    {"sacct", "'sacct -P' or 'sacct --json'", "skip-bad",
     "[jobs] with its trace: what ran, for how long, on how many GPUs", import_sacct},
    {"slurm", "slurm.conf [gres.conf] [topology.conf or .yaml] [sacctmgr -P show qos or assoc]",
     "node", "[cluster], [[node_group]], [[partition]] and [scheduler] of a cluster under Slurm",
     import_slurm},
    {"slurm_events", "'sacctmgr -P show event'", "node-days cause skip-bad",
     "[failures]: rates by cause with intervals, repair times, lemons", import_slurm_events},
    {"sonic", "config_db.json of a switch", "", "[fabric.compute]: buffers, PFC, ECN and watchdog",
     import_sonic},
    {"torchtitan", "train_config.toml", "",
     "a plan: [job.parallel] and [job.checkpoint] of a training configuration", import_torchtitan},
    {"trace", "a CSV of jobs (Helios, Acme, Alibaba 2023 and 2026, one's own) or SWF",
     "column skip-bad", "[jobs] with its trace", import_trace},
    {"xid", "the kernel's log: dmesg -T, journalctl -k -o short-iso", "node-days skip-bad",
     "[failures]: rates by cause of the GPUs' errors", import_xid},
};

// What was made is judged as any part of a scenario: its entries must be whole and right. Notes how many
// parameters its models have.
void check_part(ImportedPart& part, const std::string& title, Diagnostics& diagnostics) {
    const std::string text = part.text(title);
    const Document made = parse_document(text, "what was imported", diagnostics);
    diagnostics.raise_if_any();
    ValueReader reader(diagnostics, made.name);
    const auto own = std::make_shared<OwnEntries>(reader, made.root);
    diagnostics.raise_if_any();
    Catalogue catalogue(reader, ValueChoice::corrected, nullptr, nullptr, own);
    for (const std::string& name : own->names("model")) {
        const TransformerModel model = read_model(catalogue, name);
        diagnostics.raise_if_any();
        part.note("By its shape {} has {:.4g} parameters, of which a token meets {:.4g}.", name,
                  parameter_count(model), active_parameter_count(model));
    }
}

}  // namespace

const std::vector<ImportKind>& import_kinds() {
    static const std::vector<ImportKind> kinds(std::begin(known_kinds), std::end(known_kinds));
    return kinds;
}

std::string comment_text(std::string_view text) {
    std::string out = visible(text);
    std::ranges::replace_if(
        out, [](char c) { return c == '\n' || c == '\r' || c == '\t'; }, ' ');
    return out;
}

void ImportedPart::section(const std::string& path) {
    body_ += fmt::format("\n[{}]\n", path);
}

void ImportedPart::entry(const std::string& path) {
    body_ += fmt::format("\n[[{}]]\n", path);
}

void ImportedPart::value(const std::string& key, const std::string& toml,
                         const std::string& origin) {
    body_ += fmt::format("{:36}  # {}\n", fmt::format("{} = {}", key, toml), comment_text(origin));
}

void ImportedPart::whole(const std::string& key, std::int64_t number, const std::string& origin) {
    value(key, fmt::format("{}", number), origin);
}

void ImportedPart::quoted(const std::string& key, std::string_view text,
                          const std::string& origin) {
    value(key, toml_text(text), origin);
}

void ImportedPart::row(const std::string& line) {
    is_table_ = true;
    body_ += line + "\n";
}

std::string ImportedPart::text(const std::string& title) const {
    std::string out = fmt::format("# {}\n", comment_text(title));
    for (const std::string& note : notes_) out += fmt::format("# {}\n", comment_text(note));
    if (!left_out_.empty()) out += "#\n# Not in the input:\n";
    for (const std::string& what : left_out_) out += fmt::format("#   {}\n", comment_text(what));
    return out + body_;
}

std::string path_beside(const std::string& output, const std::string& ending) {
    return std::filesystem::path(output).replace_extension(ending).string();
}

void Importer::take_one_file(std::string message, std::string help) {
    if (options_.files.size() == 1) return;
    diagnostics_.error(options_.files[1], {}, "", std::move(message), std::move(help));
    diagnostics_.raise_if_any();
}

Document Importer::file_as_json(RepeatedKeys repeated) {
    Document out = parse_json(read_input(file_), file_, diagnostics_, repeated);
    diagnostics_.raise_if_any();
    return out;
}

Document Importer::file_as_yaml() {
    Document out = parse_yaml(read_input(file_), file_, diagnostics_);
    diagnostics_.raise_if_any();
    return out;
}

Imported import_files(const ImportKind& kind, const ImportOptions& options,
                      Diagnostics& diagnostics) {
    ImportedPart part;
    kind.run(options, part, diagnostics);
    diagnostics.raise_if_any();
    const std::string title =
        fmt::format("Imported by railyard import {} {}", kind.name, fmt::join(options.files, " "));
    const bool in_place = std::filesystem::path(options.output).extension() == ".toml";
    if (part.is_table() && in_place) {
        throw ScenarioError(
            fmt::format("{}: a table of measurements, which is no TOML", visible(options.output)),
            "-o mine.csv: mine.toml then says what its columns are");
    }
    if (!part.is_table()) check_part(part, title, diagnostics);
    return {part.text(title), part.files_beside()};
}

}  // namespace railyard
