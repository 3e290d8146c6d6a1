// Slurm's own files: slurm.conf, gres.conf, topology.conf or .yaml, and 'sacctmgr -P show qos', as the
// cluster, its partitions and its scheduler. GPUs are named as the site likes: --node says what they are.

#include <fmt/format.h>

#include <algorithm>

#include "models/campaign/campaign.h"
#include "tools/import/importers.h"
#include "tools/import/slurm_accounts.h"
#include "tools/import/slurm_cluster.h"
#include "tools/import/text_file.h"
#include "tools/program/lists.h"

namespace railyard {

namespace {

// A key of slurm.conf whose number is ours, as it is written there.
struct CopiedKey {
    const char* section;
    const char* ours;
    const char* theirs;
    const char* unit;  // of the number; "": none; "time": a time string
    const char* otherwise;
};
constexpr CopiedKey copied_keys[] = {
    {"scheduler", "node_timeout", "SlurmdTimeout", "s", "300 s"},
    {"scheduler", "main_interval", "sched_interval", "s", "60 s"},
    {"scheduler", "event_depth", "default_queue_depth", "", "100"},
    {"scheduler", "switches_wait_max", "max_switch_wait", "s", "300 s"},
    {"scheduler.backfill", "interval", "bf_interval", "s", "30 s"},
    {"scheduler.backfill", "window", "bf_window", "min", "1 day"},
    {"scheduler.backfill", "resolution", "bf_resolution", "s", "60 s"},
    {"scheduler.backfill", "depth", "bf_max_job_test", "",
     "Slurm's own is 500, before 20.11 100; here it is 100"},
    {"scheduler.priority", "age", "PriorityWeightAge", "", "0"},
    {"scheduler.priority", "fair_share", "PriorityWeightFairshare", "", "0"},
    {"scheduler.priority", "job_size", "PriorityWeightJobSize", "", "0"},
    {"scheduler.priority", "partition", "PriorityWeightPartition", "", "0"},
    {"scheduler.priority", "qos", "PriorityWeightQOS", "", "0"},
    {"scheduler.priority", "age_max", "PriorityMaxAge", "time", "7 days"},
    {"scheduler.priority", "half_life", "PriorityDecayHalfLife", "time", "7 days"},
    {"scheduler.priority", "calc_period", "PriorityCalcPeriod", "time", "5 min"},
};

class SlurmImport : private Importer {
  public:
    using Importer::Importer;

    void run() {
        read_files();
        diagnostics_.raise_if_any();
        find_parameters();
        cluster_ = read_slurm_cluster(records_, options_, part_, diagnostics_);
        if (yaml_.empty()) {
            read_slurm_switches(records_, cluster_, part_, diagnostics_);
        } else {
            read_topology_yaml(yaml_.front(), cluster_, part_, diagnostics_);
        }
        diagnostics_.raise_if_any();
        if (cluster_.nodes.empty() && cluster_.leaves.empty() && globals_.empty() && qos_.empty()) {
            return diagnostics_.error(options_.files.front(), {}, "",
                                      "has no record of slurm.conf, gres.conf or topology.conf");
        }
        if (cluster_.nodes.empty() && globals_.empty() && !cluster_.leaves.empty()) {
            return diagnostics_.error(
                cluster_.leaves.front().file, {cluster_.leaves.front().line, 1}, "",
                "switches alone: slurm.conf says which nodes have GPUs", "give slurm.conf, too");
        }
        place_on_leaves(cluster_, diagnostics_);
        diagnostics_.raise_if_any();
        order_slurm_nodes(cluster_, part_, diagnostics_);
        diagnostics_.raise_if_any();
        add_cluster();
        add_partitions();
        add_scheduler();
        say_left_out();
    }

  private:
    void read_files() {
        for (const std::string& file : options_.files) {
            if (file.ends_with(".yaml") || file.ends_with(".yml")) {
                yaml_.push_back(file);
                continue;
            }
            const std::vector<FileLine> lines = read_lines(file, diagnostics_);
            if (!diagnostics_.ok()) return;
            const auto first = std::ranges::find_if(lines, [](const FileLine& line) {
                return !trimmed(line.text).empty() && !line.text.starts_with('#');
            });
            if (first != lines.end() && trimmed(first->text).starts_with('{')) {
                return diagnostics_.error(file, {first->number, 1}, "",
                                          "JSON of sinfo, squeue or scontrol is not read here",
                                          "give slurm.conf itself");
            }
            if (first != lines.end() && first->text.find('|') != std::string::npos) {
                if (is_slurm_account_table(first->text)) {
                    accounts_ = read_slurm_accounts(file, lines, diagnostics_);
                } else {
                    read_qos_table(file, lines);
                }
                continue;
            }
            std::vector<SlurmRecord> more = read_slurm_records(file, diagnostics_);
            std::move(more.begin(), more.end(), std::back_inserter(records_));
        }
    }

    void read_qos_table(const std::string& file, const std::vector<FileLine>& lines) {
        std::vector<std::string> columns;
        qos_file_ = file;
        for (const FileLine& line : lines) {
            if (trimmed(line.text).empty()) continue;
            const std::vector<std::string> cells = split_text(line.text, '|');
            if (columns.empty()) {
                columns = cells;
                const bool whole = contains(columns, "Name") && contains(columns, "Priority");
                if (!whole) {
                    return diagnostics_.error(file, {line.number, 1}, "",
                                              "expected the columns Name and Priority",
                                              "sacctmgr -P show qos");
                }
                continue;
            }
            if (cells.size() != columns.size()) {
                return diagnostics_.error(
                    file, {line.number, 1}, "",
                    fmt::format("{} fields where the header has {}", cells.size(), columns.size()),
                    "is the file whole?");
            }
            std::map<std::string, std::string> row;
            for (std::size_t i = 0; i < cells.size(); ++i) row[columns[i]] = cells[i];
            qos_.push_back(std::move(row));
            qos_lines_.push_back(line.number);
        }
    }

    const SlurmRecord* global(std::string_view key) const {
        const auto found = globals_.find(lower_case(key));
        return found != globals_.end() ? found->second : nullptr;
    }

    void find_parameters() {
        for (const SlurmRecord& record : records_) {
            const std::string& first = record.keys.front().first;
            if (first == "nodename" || first == "partitionname" || first == "switchname" ||
                first == "blockname" || first == "nodeset" || first == "name" ||
                first == "downnodes") {
                continue;
            }
            for (const auto& [key, value] : record.keys) {
                const auto [known, fresh] = globals_.emplace(key, &record);
                if (!fresh) {
                    diagnostics_.warning(record.file, record.at(), key,
                                         fmt::format("is there twice, first in {}: the last holds",
                                                     known->second->place()));
                    known->second = &record;
                }
            }
        }
        const SlurmRecord* parameters = global("SchedulerParameters");
        if (parameters == nullptr) return;
        for (const std::string& one : split_text(*parameters->find("schedulerparameters"), ',')) {
            const std::size_t equals = std::min(one.find('='), one.size());
            parameters_[lower_case(one.substr(0, equals))] =
                equals < one.size() ? one.substr(equals + 1) : "";
        }
    }

    void add_cluster() {
        if (cluster_.nodes.empty()) return;
        std::vector<std::string> groups;
        for (const SlurmNode& node : cluster_.nodes) {
            if (!contains(groups, node.group)) groups.push_back(node.group);
        }
        StandaloneCatalogue standalone;
        const auto first_of = [&](const std::string& group) {
            return std::ranges::find_if(cluster_.nodes,
                                        [&](const SlurmNode& n) { return n.group == group; });
        };
        const auto says = [](const SlurmNode& node) {
            return fmt::format("--node; {}: {} has {} GPUs{}", node.record->place(), node.name,
                               node.gpus, node.type.empty() ? "" : " " + node.type);
        };
        std::map<std::string, std::string> kinds;
        for (const std::string& group : groups) {
            const SlurmNode& node = *first_of(group);
            const std::int64_t gpus = standalone.catalogue.integer("node", node.kind, "gpus");
            kinds[group] = node.kind;
            warn_of_trays(node, standalone.catalogue);
            if (gpus == node.gpus || groups.size() == 1) continue;
            kinds[group] = group + "_own";
            part_.section("node." + kinds[group]);
            part_.quoted("like", node.kind, says(node));
            part_.whole("gpus", node.gpus, says(node));
        }
        part_.section("cluster");
        const SlurmNode& first = cluster_.nodes.front();
        if (groups.size() == 1) {
            part_.quoted("node", first.kind, says(first));
            if (standalone.catalogue.integer("node", first.kind, "gpus") != first.gpus) {
                part_.whole("gpus_per_node", first.gpus, says(first));
            }
        }
        part_.whole("nodes", cluster_.nodes.size(),
                    fmt::format("{}: nodes with GPUs, from here on", first.record->place()));
        if (groups.size() == 1) return;
        for (const std::string& group : groups) {
            const auto count = std::ranges::count_if(
                cluster_.nodes, [&](const SlurmNode& n) { return n.group == group; });
            const SlurmNode& node = *first_of(group);
            part_.entry("node_group");
            part_.quoted("name", group, node.record->place());
            part_.quoted("node", kinds[group], says(node));
            part_.whole("nodes", count, node.record->place());
        }
    }

    void add_partitions() {
        for (const SlurmPartition& p : cluster_.partitions) {
            const SlurmRecord& record = *p.record;
            part_.entry("partition");
            part_.quoted("name", p.name, record.place());
            part_.whole("first_node", p.nodes.front(), record.origin("Nodes"));
            part_.whole("nodes", p.nodes.size(), record.origin("Nodes"));
            add_limit(record, "limit_max", "MaxTime");
            add_limit(record, "limit_default", "DefaultTime");
            const std::string* most = record.find("maxtime");
            if ((most == nullptr || !slurm_time(*most).seconds) &&
                record.find("defaulttime") == nullptr) {
                diagnostics_.warning(record.file, record.at(), "MaxTime",
                                     fmt::format("jobs of partition {} have no time limit: "
                                                 "backfill has nothing to plan with",
                                                 p.name));
            }
            for (const auto& [ours, theirs] :
                 {std::pair{"priority", "PriorityJobFactor"}, {"tier", "PriorityTier"}}) {
                const std::string* text = record.find(lower_case(theirs));
                if (text == nullptr) continue;
                const auto value = whole_value(*text);
                if (!value || *value < 0 || *value > UINT16_MAX) {
                    error(record, theirs, fmt::format("expected 0 to 65535, found '{}'", *text));
                } else {
                    part_.whole(ours, *value, record.origin(theirs));
                }
            }
            for (const auto& [key, value] : record.keys) {
                if (key == "priority") {
                    error(record, "Priority",
                          "is the spelling of before 16.05, of two things at once",
                          "write PriorityJobFactor and PriorityTier");
                }
                for (const char* said : {"preemptmode", "gracetime", "oversubscribe", "exclusive",
                                         "maxnodes", "minnodes", "qos", "allowaccounts", "allowqos",
                                         "tresbillingweights", "reqresv"}) {
                    if (key == said) {
                        part_.note("Not expressed: {}: {} of partition {}.", record.place(),
                                   key + "=" + value, p.name);
                    }
                }
            }
        }
    }

    void add_scheduler() {
        part_.section("scheduler");
        const SlurmRecord* priority = global("PriorityType");
        const SlurmRecord* backfill = global("SchedulerType");
        const bool basic =
            priority != nullptr && *priority->find("prioritytype") == "priority/basic";
        if (basic) {
            part_.note("{}: first come, first served within a partition: no weights.",
                       priority->origin("PriorityType"));
        } else if (priority == nullptr) {
            part_.left_out("PriorityType: priority/multifactor, in older releases priority/basic");
        }
        part_.quoted("kind", "slurm", "it is Slurm's configuration");
        add_topology();
        add_copied("scheduler");
        part_.section("scheduler.backfill");
        if (backfill != nullptr) {
            const bool builtin = *backfill->find("schedulertype") == "sched/builtin";
            part_.value("enabled", builtin ? "false" : "true", backfill->origin("SchedulerType"));
        } else {
            part_.left_out("SchedulerType: sched/backfill");
        }
        add_copied("scheduler.backfill");
        part_.section("scheduler.priority");
        if (!basic) add_copied("scheduler.priority");
        if (const SlurmRecord* favor = global("PriorityFavorSmall")) {
            const bool is = lower_case(*favor->find("priorityfavorsmall")) == "yes";
            part_.value("favor_small", is ? "true" : "false", favor->origin("PriorityFavorSmall"));
        }
        const SlurmRecord* checks = global("HealthCheckInterval");
        if (checks != nullptr) {
            const auto seconds = whole_value(*checks->find("healthcheckinterval"));
            if (seconds && *seconds > 0) {
                part_.section("scheduler.health");
                part_.value("interval", fmt::format("\"{} s\"", *seconds),
                            checks->origin("HealthCheckInterval"));
            }
        }
        add_preemption();
        add_qos();
        add_accounts();
    }

    void add_topology() {
        const SlurmRecord* plugin = global("TopologyPlugin");
        const std::string name =
            plugin != nullptr ? lower_case(*plugin->find("topologyplugin")) : std::string();
        const bool flat = plugin != nullptr && name != "topology/tree" && name != "topology/block";
        if (flat && yaml_.empty()) {
            part_.quoted("topology", "none", plugin->origin("TopologyPlugin"));
            return;
        }
        if (cluster_.leaves.empty()) {
            if (plugin != nullptr) {
                error(*plugin, "TopologyPlugin", name + " without its topology.conf",
                      "give that file, too");
            } else {
                part_.left_out("topology.conf: nodes are taken wherever they are free");
            }
            return;
        }
        const auto nodes_of = [](const SlurmLeaf& leaf) { return leaf.nodes.size(); };
        const auto largest = std::ranges::max_element(cluster_.leaves, {}, nodes_of);
        const std::size_t size = largest->nodes.size();
        std::vector<std::string> smaller;
        for (const SlurmLeaf& leaf : cluster_.leaves) {
            if (leaf.nodes.size() < size) {
                smaller.push_back(fmt::format("{} ({})", leaf.name, leaf.nodes.size()));
            }
        }
        part_.value("topology", cluster_.blocks ? "\"block\"" : "\"tree\"", largest->origin);
        part_.whole("nodes_per_leaf", size,
                    fmt::format("{}: {} has so many", largest->origin, largest->name));
        if (smaller.empty() || (smaller.size() == 1 && cluster_.leaves.back().nodes.size() < size))
            return;
        diagnostics_.warning(
            largest->file, {largest->line, 1}, largest->name,
            fmt::format("has {} nodes, {} of {} others have fewer: {}", size, smaller.size(),
                        cluster_.leaves.size() - 1, some_of(smaller)),
            "scheduler.nodes_per_leaf is one number: the largest is taken");
    }

    void add_copied(std::string_view section) {
        for (const CopiedKey& key : copied_keys) {
            if (section == key.section) add_copied(key);
        }
    }

    void add_copied(const CopiedKey& key) {
        const std::string lower = lower_case(key.theirs);
        const auto parameter = parameters_.find(lower);
        const SlurmRecord* record =
            parameter != parameters_.end() ? global("SchedulerParameters") : global(lower);
        if (record == nullptr) return part_.left_out("{}: {}", key.theirs, key.otherwise);
        const std::string& text =
            parameter != parameters_.end() ? parameter->second : *record->find(lower);
        const std::string origin = fmt::format("{}: {}={}", record->place(), key.theirs, text);
        const std::string_view unit = key.unit;
        if (unit == "time") {
            const SlurmTime time = slurm_time(text);
            if (!time.valid || !time.seconds) {
                return error(*record, key.theirs, fmt::format("'{}' is no time", text));
            }
            if (*time.seconds == 0) {
                return error(*record, key.theirs, "0 (no decay) can't be expressed",
                             "a half-life of years comes near: PriorityDecayHalfLife=3650-0");
            }
            return part_.value(key.ours, fmt::format("\"{} s\"", *time.seconds), origin);
        }
        const auto value = whole_value(text);
        const bool never = value == 0 && std::string_view(key.ours) == "node_timeout";
        if (never || (value && *value == -1)) return part_.note("Not expressed: {}.", origin);
        if (!value || *value < 0) {
            return error(*record, key.theirs,
                         fmt::format("expected a whole number, found '{}'", text));
        }
        part_.value(
            key.ours,
            unit.empty() ? fmt::format("{}", *value) : fmt::format("\"{} {}\"", *value, unit),
            origin);
    }

    void add_preemption() {
        const SlurmRecord* type = global("PreemptType");
        const SlurmRecord* mode = global("PreemptMode");
        const std::string is = type != nullptr ? lower_case(*type->find("preempttype")) : "";
        if (is == "preempt/partition_prio") {
            diagnostics_.warning(type->file, type->at(), "PreemptType",
                                 "partitions that preempt others can't be expressed: their tiers "
                                 "decide the order only",
                                 "give each partition's jobs a QOS, and scheduler.qos.preempts");
            part_.note("Not expressed: {}.", type->origin("PreemptType"));
        }
        if (mode == nullptr || is != "preempt/qos") return;
        for (const std::string& word : split_text(lower_case(*mode->find("preemptmode")), ',')) {
            if (word == "cancel" || word == "requeue" || word == "off") preempt_mode_ = word;
            if (word == "suspend") {
                diagnostics_.warning(
                    mode->file, mode->at(), "PreemptMode",
                    "SUSPEND keeps the GPUs of a job that is displaced: nobody gets them",
                    "PreemptMode=REQUEUE or CANCEL free them");
                preempt_mode_ = "off";
            }
        }
    }

    void add_qos() {
        if (qos_file_.empty())
            return part_.left_out("QOS: they are slurmdbd's: sacctmgr -P show qos");
        for (std::size_t i = 0; i < qos_.size(); ++i) add_one_qos(qos_[i], qos_lines_[i]);
    }

    void add_accounts() {
        for (const SlurmAccount& account : accounts_) {
            part_.entry("scheduler.account");
            part_.quoted("name", account.name, account.place);
            part_.whole("shares", account.shares, account.place);
        }
    }

    void add_one_qos(const std::map<std::string, std::string>& row, int line) {
        const auto cell = [&](const char* column) {
            const auto found = row.find(column);
            return found != row.end() ? found->second : std::string();
        };
        const auto origin = [&](const char* column) {
            return fmt::format("{}:{}: {}={}", qos_file_, line, column, cell(column));
        };
        part_.entry("scheduler.qos");
        part_.quoted("name", cell("Name"), fmt::format("{}:{}", qos_file_, line));
        const auto priority = whole_value(cell("Priority"));
        if (!priority || *priority < 0) {
            return diagnostics_.error(
                qos_file_, {line, 1}, "Priority",
                fmt::format("expected a number, found '{}'", cell("Priority")));
        }
        part_.whole("priority", *priority, origin("Priority"));
        if (!cell("Preempt").empty()) part_.quoted("preempts", cell("Preempt"), origin("Preempt"));
        std::string mode = lower_case(cell("PreemptMode"));
        const bool own = mode == "cancel" || mode == "requeue" || mode == "off";
        if (own) {
            part_.quoted("preempt_mode", mode, origin("PreemptMode"));
        } else if (!preempt_mode_.empty()) {
            part_.quoted("preempt_mode", preempt_mode_,
                         global("PreemptMode")->origin("PreemptMode"));
        }
        for (const auto& [ours, theirs] :
             {std::pair{"grace", "GraceTime"}, {"exempt", "PreemptExemptTime"}}) {
            const SlurmTime time = slurm_time(cell(theirs));
            if (!cell(theirs).empty() && time.valid && time.seconds.value_or(0) > 0) {
                part_.value(ours, fmt::format("\"{} s\"", *time.seconds), origin(theirs));
            }
        }
        std::optional<std::int64_t> gpus_max;
        for (const std::string& tres : split_text(cell("GrpTRES"), ',')) {
            const std::string_view name = std::string_view(tres).substr(0, tres.find('='));
            const bool typed = name.starts_with("gres/gpu:");
            const auto most =
                whole_value(std::string_view(tres).substr(std::min(tres.size(), name.size() + 1)));
            const bool of_all = name == "gres/gpu" || (typed && one_type());
            if (of_all && most && *most > 0) {
                gpus_max = std::min(gpus_max.value_or(*most), *most);
            } else if (typed) {
                part_.note("Not expressed: {}: a limit for GPUs of one type.", origin("GrpTRES"));
            }
        }
        if (gpus_max) part_.whole("gpus_max", *gpus_max, origin("GrpTRES"));
        for (const char* other : {"MaxTRES", "MaxTRESPU", "MaxTRESPA", "MaxJobsPU", "MaxWall",
                                  "GrpJobs", "GrpTRESMins", "MinTRES", "UsageFactor", "Flags"}) {
            const std::string value = cell(other);
            if (value.empty() || value == "1.000000") continue;
            part_.note("Not expressed: {}.", origin(other));
        }
    }

    void add_limit(const SlurmRecord& record, const char* ours, const char* theirs) {
        const std::string* text = record.find(lower_case(theirs));
        if (text == nullptr) return;
        const SlurmTime time = slurm_time(*text);
        if (!time.valid) return error(record, theirs, fmt::format("'{}' is no time", *text));
        if (time.seconds && *time.seconds > 0) {
            part_.value(ours, fmt::format("\"{} s\"", *time.seconds), record.origin(theirs));
        }
    }

    // Slurm's nodes are trays where the catalogue's node is a rack.
    void warn_of_trays(const SlurmNode& node, Catalogue& catalogue) {
        if (!catalogue.has("node", node.kind, "gpus_per_tray")) return;
        const std::int64_t gpus = catalogue.integer("node", node.kind, "gpus");
        if (catalogue.integer("node", node.kind, "gpus_per_tray") != node.gpus || gpus == node.gpus)
            return;
        diagnostics_.warning(
            node.record->file, node.record->at(), "NodeName",
            fmt::format("{} is one tray of {}, whose {} GPUs are one NVLink domain: as nodes of {} "
                        "GPUs they are joined by NICs alone, and steps take longer than they do",
                        node.name, node.kind, gpus, node.gpus),
            fmt::format(
                "in what is written say [cluster] nodes = racks, without gpus_per_node = {}",
                node.gpus));
    }

    bool one_type() const {
        return std::ranges::all_of(cluster_.nodes, [&](const SlurmNode& node) {
            return node.type == cluster_.nodes.front().type;
        });
    }

    void say_left_out() {
        // What changes the scheduler and no key can say.
        constexpr std::string_view said =
            "priorityweightassoc priorityweighttres priorityflags prolog epilog prologflags "
            "prologslurmctld healthcheckprogram returntoservice jobrequeue enforcepartlimits "
            "overtimelimit accountingstoragetres killwait topologyparam jobsubmitplugins "
            "federationparameters suspendtime maxarraysize preemptparameters";
        for (const std::string& key : split_text(said, ' ')) {
            if (const SlurmRecord* record = global(key)) {
                part_.note("Not expressed: {}.", record->origin(key));
            }
        }
        constexpr const char* ours[] = {"sched_interval", "default_queue_depth", "max_switch_wait",
                                        "bf_interval",    "bf_window",           "bf_resolution",
                                        "bf_max_job_test"};
        for (const auto& [name, value] : parameters_) {
            if (std::ranges::find(ours, name) != std::end(ours)) continue;
            part_.note("Not expressed: {}: {}{}{}.", global("SchedulerParameters")->place(), name,
                       value.empty() ? "" : "=", value);
        }
        for (const SlurmRecord& record : records_) {
            if (record.find("downnodes") != nullptr) {
                part_.note("Not expressed: {}.", record.origin("DownNodes"));
            }
        }
        if (accounts_.empty()) {
            part_.left_out(
                "accounts and their shares: they are slurmdbd's: sacctmgr -P show assoc "
                "format=Account,ParentName,User,Share");
        }
        part_.left_out("jobs: 'sacct -P' prints a trace that jobs.trace and 'railyard jobs' read");
        part_.left_out("networks, storage, failures");
    }

    void error(const SlurmRecord& record, const char* key, std::string message,
               std::string help = {}) {
        diagnostics_.error(record.file, record.at(), key, std::move(message), std::move(help));
    }

    std::vector<SlurmRecord> records_;
    SlurmCluster cluster_;
    std::vector<std::string> yaml_;
    std::map<std::string, const SlurmRecord*> globals_;
    // From SchedulerParameters.
    std::map<std::string, std::string> parameters_;
    std::string qos_file_;
    std::vector<std::map<std::string, std::string>> qos_;
    std::vector<int> qos_lines_;
    std::string preempt_mode_;
    std::vector<SlurmAccount> accounts_;
};

}  // namespace

Import import_slurm = run_importer<SlurmImport>;

}  // namespace railyard
