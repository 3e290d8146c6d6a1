// Published tables of jobs (Helios, Acme, Alibaba's, or one's own CSV) and the Standard Workload Format, as a
// trace of jobs with GPUs.

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "models/scheduler/scheduler.h"
#include "tools/import/importers.h"
#include "tools/import/text_file.h"
#include "tools/import/trace_part.h"
#include "tools/program/csv_table.h"

namespace railyard {

namespace {

// What a column may be called, in order of preference; --column says another.
struct ColumnNames {
    const char* what;
    std::vector<const char*> names;
};
const std::vector<ColumnNames>& usual_names() {
    static const std::vector<ColumnNames> names = {
        {"id", {"job_id", "id", "job_name", "name", "instance_sn", "id_job"}},
        {"user", {"user", "user_id", "id_user"}},
        {"group", {"vc", "partition", "queue", "organization", "qos"}},
        {"gpus", {"gpu_num", "num_gpus", "num_gpu", "gpus", "gpu_request"}},
        {"copies", {"worker_num", "inst_num"}},
        {"gpu_percent", {"plan_gpu"}},
        {"gpu_milli", {"gpu_milli"}},
        {"submit", {"submit_time", "submit", "creation_time", "submitted_time", "time_submit"}},
        {"start", {"start_time", "start", "scheduled_time", "time_start"}},
        {"end", {"end_time", "end", "deletion_time", "time_end"}},
        {"duration", {"duration", "runtime", "run_time"}},
        {"limit", {"time_limit", "limit", "timelimit"}},
    };
    return names;
}

class TraceTable : private Importer {
  public:
    using Importer::Importer;

    void run() {
        take_one_file("a second table: give one");
        if (!read_swf()) {
            const CsvTable table = read_csv_table(file_);
            find_columns(table);
            check_columns(table);
            diagnostics_.raise_if_any();
            for (std::size_t row = 0; row < table.rows.size(); ++row) read_row(table, row);
            diagnostics_.raise_if_any();
            say_durations();
        }
        add_trace(std::move(jobs_), counts_, file_, options_, part_, diagnostics_);
    }

  private:
    void find_columns(const CsvTable& table) {
        for (const ColumnNames& column : usual_names()) {
            for (const char* name : column.names) {
                if (std::ranges::find(table.columns, name) == table.columns.end()) continue;
                columns_[column.what] = name;
                break;
            }
        }
        for (const std::string& given : options_.columns) {
            const std::size_t equals = given.find('=');
            const std::string what = given.substr(0, equals);
            std::vector<std::string> known;
            for (const ColumnNames& column : usual_names()) known.emplace_back(column.what);
            if (equals == std::string::npos) {
                throw ScenarioError(fmt::format("--column {}: expected submit=NAME", given));
            }
            if (std::ranges::find(known, what) == known.end()) {
                throw ScenarioError(
                    fmt::format("--column {}: nothing here is called '{}'", given, what),
                    suggest(what, known));
            }
            const std::string name = given.substr(equals + 1);
            if (std::ranges::find(table.columns, name) == table.columns.end()) {
                throw ScenarioError(
                    fmt::format("--column {}: the file has no column '{}'", given, name),
                    suggest(name, table.columns));
            }
            columns_[what] = name;
        }
    }

    void check_columns(const CsvTable& table) {
        const auto need = [&](bool there, const char* what, const char* how) {
            if (there) return;
            error({1, 1}, "",
                  fmt::format("no column says {}: there are {}", what,
                              fmt::join(table.columns, ", ")),
                  how);
        };
        need(has("submit"), "when a job is submitted", "--column submit=NAME");
        need(has("gpus") || has("gpu_percent"), "how many GPUs it has", "--column gpus=NAME");
        need(has("duration") || (has("start") && has("end")), "how long it runs",
             "--column duration=NAME, or start=NAME and end=NAME");
    }

    void read_row(const CsvTable& table, std::size_t index) {
        const CsvRow& row = table.rows[index];
        ++counts_.rows;
        problem_.clear();
        ImportedJob job;
        const auto submit = time(row, "submit");
        const auto gpus = gpus_of(row);
        bool runs = false;
        find_duration(row, submit.value_or(0), job, runs);
        if (problem_.empty() && !submit) problem_ = fmt::format("{}: is empty", columns_["submit"]);
        if (has("limit")) job.limit_s = number(row, "limit", 1e12);
        if (!problem_.empty()) {
            ++counts_.bad;
            if (options_.skip_bad || diagnostics_.errors().size() > 20) return;
            const int line = table.places[index].empty() ? 0 : table.places[index].front().line;
            return error({line, 1}, "", problem_, "--skip-bad counts such rows instead");
        }
        if (*gpus < 1) {
            ++counts_.without_gpus;
        } else if (runs) {
            ++counts_.still_running;
        } else if (has("start") && cell(row, "start").empty()) {
            ++counts_.never_started;
        } else if (has("start") && !trace_time(cell(row, "start")).s) {
            ++counts_.never_started;
        } else if (job.duration_s < 0) {
            ++counts_.negative;
        } else {
            job.id = cell(row, "id");
            job.user = cell(row, "user");
            job.group = cell(row, "group");
            job.gpus = static_cast<std::int64_t>(*gpus);
            job.submit_s = *submit;
            jobs_.push_back(std::move(job));
        }
    }

    std::string cell(const CsvRow& row, const char* what) const {
        const auto column = columns_.find(what);
        if (column == columns_.end()) return {};
        const auto found = row.find(column->second);
        return found != row.end() ? found->second : std::string();
    }

    bool has(const char* what) const { return columns_.contains(what); }

    // "8.0" is 8. Nothing: the cell is empty, or `problem_` says why.
    std::optional<double> number(const CsvRow& row, const char* what, double most) {
        const std::string text = cell(row, what);
        const TraceTime value = trace_time(text);
        if (value.valid && (!value.s || (*value.s >= 0 && *value.s <= most))) return value.s;
        problem_ = fmt::format("{}: expected a number from 0 to {:g}, found '{}'", columns_[what],
                               most, text);
        return std::nullopt;
    }

    std::optional<double> time(const CsvRow& row, const char* what) {
        const std::string text = cell(row, what);
        const TraceTime value = trace_time(text);
        constexpr double most = 1e12;
        if (value.valid && (!value.s || std::abs(*value.s) < most)) return value.s;
        problem_ =
            fmt::format("{}: expected seconds or a time such as 2024-05-01T12:00:03, found '{}'",
                        columns_[what], text);
        return std::nullopt;
    }

    std::optional<double> gpus_of(const CsvRow& row) {
        constexpr double most = 1e8;
        double gpus = 0;
        if (has("gpu_percent")) {  // Alibaba's PAI: 50 is half a GPU
            gpus = number(row, "gpu_percent", most).value_or(0) / 100;
        } else {
            gpus = number(row, "gpus", most).value_or(0);
        }
        if (has("copies")) gpus *= number(row, "copies", 1e6).value_or(1);
        const double milli = has("gpu_milli") ? number(row, "gpu_milli", 1e9).value_or(1000) : 1000;
        if (gpus > 0 && (gpus != std::floor(gpus) || (gpus == 1 && milli < 1000))) ++shares_;
        return std::ceil(std::min(gpus, most));
    }

    // From start to end where both are there: a column may count the wait, too.
    void find_duration(const CsvRow& row, double submit, ImportedJob& job, bool& runs) {
        const auto start = has("start") ? time(row, "start") : std::nullopt;
        const auto end = has("end") ? time(row, "end") : std::nullopt;
        const auto given = has("duration") ? number(row, "duration", 1e12) : std::nullopt;
        if (!problem_.empty()) return;
        runs = has("start") && start && has("end") && !end;
        if (start && end) {
            job.duration_s = *end - *start;
            constexpr double rounding_s = 1.5;
            if (given && std::abs(*given - job.duration_s) > rounding_s) {
                ++(std::abs(*given - (*end - submit)) <= rounding_s ? with_wait_ : disagree_);
            }
        } else if (given) {
            job.duration_s = *given;
        } else {
            job.duration_s = -1;
        }
    }

    // Lines that begin with ';', then 18 numbers a line.
    bool read_swf() {
        const std::string text = read_input(file_);
        const bool named = file_.ends_with(".swf");
        if (!named && !text.starts_with(';')) return false;
        TraceReading reading;
        reading.format = TraceFormat::swf;
        reading.skip_bad = options_.skip_bad;
        const JobTrace trace = parse_job_trace(text, file_, reading);
        add_jobs(trace, jobs_, counts_);
        warning({1, 1}, "", "the Standard Workload Format counts processors, not GPUs",
                "they are taken for GPUs");
        return true;
    }

    void say_durations() {
        std::vector<std::string> used;
        for (const auto& [what, name] : columns_)
            used.push_back(fmt::format("{} = {}", what, name));
        if (!used.empty()) part_.note("Columns: {}.", fmt::join(used, ", "));
        if (with_wait_ > 0) {
            warning({1, 1}, columns_["duration"],
                    fmt::format("is end - submit, not end - start, in {} of {} rows", with_wait_,
                                counts_.rows),
                    "end - start is taken");
        }
        if (disagree_ > 0) {
            part_.note(
                "{} of {} rows have a duration that is not end - start: end - start is taken.",
                disagree_, counts_.rows);
        }
        if (shares_ > 0) {
            part_.note("{} rows ask for a part of a GPU: each gets whole ones here.", shares_);
        }
    }

    std::string problem_;  // of the row that is read
    std::map<std::string, std::string> columns_;
    std::vector<ImportedJob> jobs_;
    TraceCounts counts_;
    std::int64_t shares_ = 0;     // jobs that ask for a part of a GPU
    std::int64_t with_wait_ = 0;  // whose column duration is end - submit
    std::int64_t disagree_ = 0;
};

}  // namespace

Import import_trace = run_importer<TraceTable>;

}  // namespace railyard
