// What benchmarks of stores leave behind: fio's JSON, IO500's output, summaries of DLIO and MLPerf Storage,
// elbencho's CSV. Their MB and GB are powers of 1024, but for fio's bytes.

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <set>
#include <string>

#include "tools/import/importers.h"
#include "tools/import/json_tree.h"
#include "tools/import/text_file.h"
#include "tools/program/lists.h"

namespace railyard {

namespace {

constexpr double bytes_of_kib = 1024;
constexpr double bytes_of_mib = bytes_of_kib * 1024;
constexpr double bytes_of_gib = bytes_of_mib * 1024;
// Below so many bytes an access tells of operations, not of a rate of bytes.
constexpr double streaming_access = 256 * bytes_of_kib;

double stated_number(const Value& table, const char* key) {
    const Value* found = table.find(key);
    return found != nullptr ? found->real : 0;
}

const Value* stated_list(const Value& table, const char* key) {
    const Value* found = table.find(key);
    return found != nullptr && found->kind == Value::Kind::array ? found : nullptr;
}

enum class StoreOperation { read, write };

struct StoreRun {
    std::string id;
    StoreOperation operation = StoreOperation::read;
    std::int64_t hosts = 1;
    double bytes_per_s = 0;
    // The store gave what was asked for: it can give more.
    bool at_least = false;
    std::string source;  // file:line
};

// A field of a CSV: what it has of commas, quotes and ends of lines goes.
std::string table_field(std::string text) {
    std::erase_if(text, [](char c) { return c == ',' || c == '"'; });
    return visible(text);
}

// A save as large as 10 s of the measured rate, and a job that does nothing but read.
constexpr const char* store_description = R"([run]
duration = "24 h"
replicas = 1

# The store that was measured: say which it is and what of it there is, as in
# [storage]
# system = "weka"
# servers = 8

[job]
step.time = "1 ms"
checkpoint.mode = "none"

[job.data]  # next to nothing, beside a save
sample_size = "1 kB"

[table]
row = "{id}, {hosts} hosts"

[table.set]
"cluster.nodes" = "{hosts}"

[[table.when]]
column = "operation"
is = ["write"]
set."job.checkpoint.mode" = "sync"
set."job.checkpoint.size" = "{10 * GBps} GB"
set."job.checkpoint.interval" = "6 h"

[[table.when]]
column = "operation"
contains = ["read"]
set = { "job.data.sample_size" = "1 GB", "job.data.samples_per_file" = 1 }

[[table.expect]]
quantity = "GB/s written"
column = "operation"
is = ["write"]
published = "GBps"
simulated = "10 * GBps / checkpoint_time_to_safe"

[[table.expect]]
quantity = "GB/s read"
column = "operation"
is = ["read"]
published = "GBps"
simulated = "1e-9 * data_fetched / wall_time"

[[table.expect]]
quantity = "GB/s read, at least"
column = "operation"
is = ["read_at_least"]
published = "GBps"
simulated = "1e-9 * data_fetched / wall_time"
as = "at_least"
)";

// For the readers of benchmarks, which each have a `program`.
class StoreTable : protected Importer {
  public:
    StoreTable(const char* program, const ImportOptions& options, ImportedPart& part,
               Diagnostics& diagnostics)
        : Importer(options, part, diagnostics), program_(program) {
        take_one_file("a second file: give one, and join the tables");
    }

  protected:
    void add(const StoreRun& run) {
        if (!(run.bytes_per_s > 0) || !std::isfinite(run.bytes_per_s)) {
            return error(Position{}, run.id, "expected a rate of more than 0",
                         "has the run ended well?");
        }
        const char* operation = run.operation == StoreOperation::write ? "write"
                                : run.at_least                         ? "read_at_least"
                                                                       : "read";
        rows_.push_back(fmt::format("{},{},{},{},{:.6g},{}", table_field(run.id), program_,
                                    operation, run.hosts, run.bytes_per_s * 1e-9,
                                    table_field(run.source)));
    }

    // Something measured that no row of the table can say.
    void pass_over(const std::string& what, const std::string& why) {
        passed_over_.push_back(fmt::format("{}: {}", what, why));
    }

    // How many nodes took part; --hosts, where it is given, else what the file says; 0 is an error.
    std::int64_t hosts(std::int64_t said) {
        const std::int64_t count = options_.hosts.value_or(said);
        if (count < 1) error("nothing says how many nodes took part", "--hosts 10");
        if (options_.hosts && said > 0 && said != count) {
            warning(fmt::format("says that {} nodes took part, --hosts {}", said, count));
        }
        return count;
    }

    // Writes the table's head and rows, and the file beside it. `else_missing` was not in the input.
    void finish(const std::string& else_missing) {
        diagnostics_.raise_if_any();
        if (rows_.empty()) {
            error("has nothing that the program has a figure for",
                  passed_over_.empty() ? "" : some_of(passed_over_));
            diagnostics_.raise_if_any();
        }
        part_.note("GBps are 1e9 bytes/s, of all nodes together.");
        part_.note(
            "With -o mine.csv, mine.toml says what the columns are, for 'railyard verify "
            "mine.csv'; say in it which store it was.");
        part_.left_out("the store: what it is, its servers, drives, protection and caches");
        if (!else_missing.empty()) part_.left_out("{}", else_missing);
        for (const std::string& what : passed_over_) part_.note("Not a row: {}", what);
        part_.row("id,program,operation,hosts,GBps,source");
        for (const std::string& row : rows_) part_.row(row);
        const std::string node =
            options_.nodes.empty()
                ? ""
                : fmt::format("\n[cluster]\nnode = {}\n", toml_text(options_.nodes.front()));
        part_.beside(".toml", fmt::format("title = {}\n\n{}{}", toml_text(program_ + " of a store"),
                                          store_description, node));
    }

    std::string program_;

  private:
    std::vector<std::string> rows_;
    std::vector<std::string> passed_over_;
};

class Fio : private StoreTable {
  public:
    Fio(const ImportOptions& options, ImportedPart& part, Diagnostics& diagnostics)
        : StoreTable("fio", options, part, diagnostics) {}
    void run() {
        const std::string text = read_input(file_);
        // Warnings and progress come before the object; its lines keep their numbers.
        const std::size_t begin = std::min(text.starts_with('{')           ? 0
                                           : text.find("\n{") == text.npos ? text.npos
                                                                           : text.find("\n{") + 1,
                                           text.size());
        const auto lines = std::ranges::count(text.substr(0, begin), '\n');
        const Document document =
            parse_json(std::string(static_cast<std::size_t>(lines), '\n') + text.substr(begin),
                       file_, diagnostics_,
                       RepeatedKeys::kept);  // fio 2 writes percentiles that it has not as "0.00"
        diagnostics_.raise_if_any();
        const Value* clients = stated_list(document.root, "client_stats");
        const Value* jobs = clients != nullptr ? clients : stated_list(document.root, "jobs");
        const bool is_fio = document.root.find("fio version") != nullptr;
        if (jobs == nullptr || !is_fio) {
            error("is not fio's JSON: no 'fio version' and 'jobs'",
                  "fio --output-format=json --output=mine.json");
            diagnostics_.raise_if_any();
        }
        std::set<std::string> names;
        for (const Value& job : jobs->items) {
            const std::string client = text_in(job, "hostname");
            if (!client.empty()) names.insert(client);
        }
        hosts_ = hosts(std::max<std::int64_t>(1, std::ssize(names)));
        for (const Value& job : jobs->items)
            read_job(job, clients != nullptr && jobs->items.size() > 1);
        for (const auto& [id, group] : groups_) add_group(group);
        finish(names.empty() && !options_.hosts ? "how many nodes ran it: one is taken (--hosts)"
                                                : "");
    }

  private:
    // What jobs of one group, which run at once, read or write together.
    struct Rate {
        double bytes_per_s = 0;
        double iops = 0;
        int line = 0;
    };
    struct Group {
        std::string name;
        Rate read;
        Rate write;
    };
    void read_job(const Value& job, bool from_client) {
        if (job.kind != Value::Kind::table || job.find("jobname") == nullptr) {
            return error(job.at, "jobs", "expected a job with a jobname");
        }
        if (stated_number(job, "error") != 0) {
            return error(job.at, text_in(job, "jobname"),
                         fmt::format("ended with error {}", stated_number(job, "error")));
        }
        // Where clients are listed, the sum that comes with them is the rate of all.
        if (from_client && text_in(job, "jobname") != "All clients") return;
        // Jobs that are not of a group (another one begins with `stonewall`) are taken one by one.
        const Value* id = job.find("groupid");
        constexpr std::int64_t apart = 1'000'000'000;  // beyond all groups
        const auto number =
            id != nullptr && !from_client ? id->integer : apart + std::ssize(groups_);
        Group& group = groups_[number];
        if (group.name.empty()) group.name = text_in(job, "jobname");
        add_rate(job, "read", group.read);
        add_rate(job, "write", group.write);
    }

    static void add_rate(const Value& job, const char* direction, Rate& sum) {
        const Value* rate = job.find(direction);
        if (rate == nullptr || rate->kind != Value::Kind::table) return;
        const double exact = stated_number(*rate, "bw_bytes");
        sum.bytes_per_s += exact > 0 ? exact : stated_number(*rate, "bw") * bytes_of_kib;
        sum.iops += stated_number(*rate, "iops");
        if (sum.line == 0) sum.line = rate->at.line;
    }

    void add_group(const Group& group) {
        if (group.read.bytes_per_s > 0 && group.write.bytes_per_s > 0) {
            return pass_over(fmt::format("{}, line {}", group.name, group.read.line),
                             "reads and writes at once");
        }
        add_row(group.name, "read", StoreOperation::read, group.read);
        add_row(group.name, "write", StoreOperation::write, group.write);
    }

    void add_row(const std::string& name, const char* direction, StoreOperation operation,
                 const Rate& rate) {
        if (rate.bytes_per_s <= 0) return;
        const double access = rate.iops > 0 ? rate.bytes_per_s / rate.iops : 0;
        if (access < streaming_access) {
            return pass_over(fmt::format("{}, line {}", name, rate.line),
                             fmt::format("{}s of {:.0f} KiB: operations, not bytes, are its limit",
                                         direction, access / bytes_of_kib));
        }
        add({.id = name,
             .operation = operation,
             .hosts = hosts_,
             .bytes_per_s = rate.bytes_per_s,
             .source = fmt::format("{}:{}", file_, rate.line)});
    }

    std::int64_t hosts_ = 1;
    std::map<std::int64_t, Group> groups_;
};

class Io500 : private StoreTable {
  public:
    Io500(const ImportOptions& options, ImportedPart& part, Diagnostics& diagnostics)
        : StoreTable("io500", options, part, diagnostics) {}
    void run() {
        const std::vector<FileLine> lines = read_lines(file_, diagnostics_);
        diagnostics_.raise_if_any();
        const auto is_result = [](const FileLine& line) {
            return line.text.find("[RESULT]") != std::string::npos;
        };
        if (std::ranges::none_of(lines, is_result)) {
            error("has no [RESULT] of io500", "what io500 prints, or result_summary.txt");
            diagnostics_.raise_if_any();
        }
        hosts_ = hosts(0);
        diagnostics_.raise_if_any();
        for (const FileLine& line : lines) {
            if (is_result(line)) read_result(line);
            if (line.text.find("[SCORE") != std::string::npos &&
                line.text.find("INVALID") != std::string::npos) {
                warning(line.at(), "SCORE",
                        "io500 says that the run is invalid, as of one that is too short",
                        "phases of 300 s or more tell of the store, not of caches");
            }
            if (diagnostics_.errors().size() > 20) break;
        }
        finish("processes, stripes, and whether reads came from caches");
    }

  private:
    // "[RESULT]       ior-easy-write        0.186620 GiB/s  : time 0.027 seconds [INVALID]"
    void read_result(const FileLine& line) {
        const std::vector<std::string> words = split_text(line.text, ' ');
        const auto at = std::ranges::find(words, "[RESULT]");
        const auto size = static_cast<std::size_t>(words.end() - at);
        const auto value = size > 3 ? real_value(at[2]) : std::nullopt;
        const bool bandwidth = size > 3 && (at[3] == "GiB/s" || at[3] == "GB/s");
        if (!value || *value < 0 || (!bandwidth && at[3] != "kIOPS")) {
            return error(line.at(), "", "expected [RESULT] PHASE NUMBER GiB/s or kIOPS",
                         "cut off?");
        }
        const std::string& phase = at[1];
        const std::string place = fmt::format("{} (line {})", phase, line.number);
        if (line.text.find("[INVALID]") != std::string::npos) {
            return pass_over(place, "io500 says that it is invalid");
        }
        if (!bandwidth) return pass_over(place, fmt::format("{} kIOPS of metadata", *value));
        if (!phase.starts_with("ior-easy")) {
            return pass_over(place,
                             "records of 47008 bytes in one file: not how checkpoints are written");
        }
        add({.id = phase,
             .operation = phase.ends_with("write") ? StoreOperation::write : StoreOperation::read,
             .hosts = hosts_,
             .bytes_per_s = *value * bytes_of_gib,
             .source = fmt::format("{}:{}", file_, line.number)});
    }

    std::int64_t hosts_ = 0;
};

class Dlio : private StoreTable {
  public:
    Dlio(const ImportOptions& options, ImportedPart& part, Diagnostics& diagnostics)
        : StoreTable("dlio", options, part, diagnostics) {}
    void run() {
        const std::string text = read_input(file_);
        if (text.starts_with(std::string("\0\5\x16\7", 4))) {
            error("is what macOS keeps beside a file ('._summary.json')",
                  "give summary.json itself");
            diagnostics_.raise_if_any();
        }
        const Document document = parse_json(text, file_, diagnostics_);
        diagnostics_.raise_if_any();
        const Value* metric = document.root.find("metric");
        if (metric == nullptr || metric->kind != Value::Kind::table) {
            error(Position{}, "metric", "is not a summary of DLIO: it has no 'metric'",
                  "summary.json of a run");
            diagnostics_.raise_if_any();
        }
        hosts_ = hosts(static_cast<std::int64_t>(
            std::clamp(stated_number(document.root, "num_hosts"), 0.0, 1e6)));
        diagnostics_.raise_if_any();
        const Value* caching = stated_list(document.root, "potential_caching");
        const bool cached =
            caching != nullptr && std::ranges::any_of(caching->items, [](const Value& v) {
                return v.real > 0 || v.integer > 0;
            });
        const double utilisation = stated_number(*metric, "train_au_mean_percentage");
        if (cached) {
            pass_over("training's reads",
                      "potential_caching: the host's memory may have held the data");
        } else {
            // What a loader reads is what its accelerators ask for, as long as they seldom wait.
            add_rate(*metric, "train_io_mean_MB_per_second", "training's reads",
                     StoreOperation::read, bytes_of_mib, utilisation > 0);
        }
        add_rate(*metric, "save_checkpoint_io_mean_GB_per_second", "saves", StoreOperation::write,
                 bytes_of_gib, false);
        add_rate(*metric, "load_checkpoint_io_mean_GB_per_second", "loads", StoreOperation::read,
                 bytes_of_gib, false);
        if (utilisation > 0) {
            part_.note("{} accelerators were {:.2f} % busy; MB are 2^20 bytes there.",
                       stated_number(document.root, "num_accelerators"), utilisation);
        }
        finish("which workload it was, and how it reads");
    }

  private:
    void add_rate(const Value& metric, const char* key, const char* id, StoreOperation operation,
                  double unit, bool at_least) {
        const Value* found = metric.find(key);
        if (found == nullptr) return;
        add({.id = id,
             .operation = operation,
             .hosts = hosts_,
             .bytes_per_s = found->real * unit,
             .at_least = at_least,
             .source = fmt::format("{}:{}", file_, found->at.line)});
    }

    std::int64_t hosts_ = 0;
};

class Elbencho : private StoreTable {
  public:
    Elbencho(const ImportOptions& options, ImportedPart& part, Diagnostics& diagnostics)
        : StoreTable("elbencho", options, part, diagnostics) {}
    void run() {
        std::vector<std::string> header;
        for (const FileLine& line : read_lines(file_, diagnostics_)) {
            if (trimmed(line.text).empty()) continue;
            const std::vector<std::string> fields = split_text(line.text, ',');
            // Each run that appends to the file repeats the header.
            if (fields.front() == "ISO date") {
                header = fields;
                if (!contains(header, "MiB/s [last]")) {
                    error(line.at(), "MiB/s [last]", "no such column: is it elbencho's CSV?");
                }
                continue;
            }
            if (header.empty()) {
                error(line.at(), "", "expected elbencho's header, 'ISO date,label,...'",
                      "elbencho --csvfile mine.csv");
                break;
            }
            // The command comes last, with commas of its own.
            if (fields.size() < header.size()) {
                error(line.at(), "",
                      fmt::format("{} fields where the header has {}: cut off?", fields.size(),
                                  header.size()));
                continue;
            }
            std::map<std::string, std::string> row;
            for (std::size_t i = 0; i < header.size(); ++i) row[header[i]] = fields[i];
            read_row(row, line.number);
            if (diagnostics_.errors().size() > 20) break;
        }
        finish("caches of the hosts");
    }

  private:
    // Stragglers decide how long a checkpoint takes: what all had done when the last ended.
    void read_row(const std::map<std::string, std::string>& row, int line) {
        const auto of = [&](const char* column) {
            const auto found = row.find(column);
            return found == row.end() ? std::string() : found->second;
        };
        const std::string operation = of("operation");
        const std::string name = fmt::format("{} {} ({})", of("label"), operation, of("ISO date"));
        const std::string place = fmt::format("{}, line {}", operation, line);
        const auto rate = real_value(of("MiB/s [last]"));
        if (operation != "READ" && operation != "WRITE") return pass_over(place, "no bytes move");
        if (!rate || *rate < 0) {
            return error({line, 1}, "MiB/s [last]",
                         fmt::format("expected a number, found '{}'", visible(of("MiB/s [last]"))));
        }
        const auto mixed = real_value(of("rwmix read MiB/s [last]"));
        if (mixed && *mixed > 0) return pass_over(place, "reads and writes at once");
        const auto iops = real_value(of("IOPS [last]"));
        if (iops && *iops > 0 && *rate * bytes_of_mib / *iops < streaming_access) {
            return pass_over(place, "small accesses: operations, not bytes, are its limit");
        }
        add({.id = std::string(trimmed(name)),
             .operation = operation == "READ" ? StoreOperation::read : StoreOperation::write,
             .hosts = hosts(whole_value(of("hosts")).value_or(0)),
             .bytes_per_s = *rate * bytes_of_mib,
             .source = fmt::format("{}:{}", file_, line)});
    }
};

}  // namespace

Import import_fio = run_importer<Fio>;
Import import_io500 = run_importer<Io500>;
Import import_dlio = run_importer<Dlio>;
Import import_elbencho = run_importer<Elbencho>;

}  // namespace railyard
