// Alibaba's PAI of 2020: pai_job_table.csv and pai_task_table.csv, which have no line of column names.

#include <fmt/format.h>

#include <cmath>
#include <map>

#include "tools/import/importers.h"
#include "tools/import/text_file.h"
#include "tools/import/trace_part.h"

namespace railyard {

namespace {

// What a job's tasks come to.
struct PaiTasks {
    double gpus = 0;
    bool shares = false;  // of a GPU
    std::optional<double> start;
};

class Pai : private Importer {
  public:
    using Importer::Importer;
    void run();

  private:
    using Cells = std::vector<std::string>;
    void read_tasks(const std::string& file, const std::vector<FileLine>& lines);
    void read_jobs(const std::string& file, const std::vector<FileLine>& lines);
    void bad(const std::string& file, int line, std::string message);

    std::map<std::string, PaiTasks> tasks_;
    std::vector<ImportedJob> jobs_;
    TraceCounts counts_;
    std::int64_t shares_ = 0;
    std::int64_t without_tasks_ = 0;
};

void Pai::bad(const std::string& file, int line, std::string message) {
    ++counts_.bad;
    if (options_.skip_bad || diagnostics_.errors().size() > 20) return;
    diagnostics_.error(file, {line, 1}, "", std::move(message),
                       "--skip-bad counts such lines instead");
}

// job_name, task_name, inst_num, status, start_time, end_time, plan_cpu, plan_mem, plan_gpu, gpu_type;
// plan_gpu is percent of one GPU, of each instance.
void Pai::read_tasks(const std::string& file, const std::vector<FileLine>& lines) {
    for (const FileLine& line : lines) {
        const Cells cells = split_text(line.text, ',');
        if (cells.size() != 10) {
            bad(file, line.number,
                fmt::format("expected 10 fields of a task, found {}", cells.size()));
            continue;
        }
        PaiTasks& job = tasks_[cells[0]];
        const TraceTime start = trace_time(cells[4]);
        const TraceTime percent = trace_time(cells[8]);
        const TraceTime instances = trace_time(cells[2]);
        const double gpus = percent.s.value_or(0) / 100;
        const double count = instances.s.value_or(1);
        constexpr double most = 1e6;
        if (!start.valid || !percent.valid || !instances.valid || !(gpus >= 0 && gpus <= most) ||
            !(count >= 0 && count <= most)) {
            bad(file, line.number, "inst_num, start_time, plan_gpu: expected numbers");
            continue;
        }
        if (start.s && (!job.start || *start.s < *job.start)) job.start = start.s;
        job.shares |= gpus != std::floor(gpus);
        job.gpus += std::ceil(gpus) * count;
    }
}

// job_name, inst_id, user, status, start_time, end_time: it is submitted at start_time.
void Pai::read_jobs(const std::string& file, const std::vector<FileLine>& lines) {
    for (const FileLine& line : lines) {
        ++counts_.rows;
        const Cells cells = split_text(line.text, ',');
        if (cells.size() != 6) {
            bad(file, line.number,
                fmt::format("expected 6 fields of a job, found {}", cells.size()));
            continue;
        }
        const TraceTime submit = trace_time(cells[4]);
        const TraceTime end = trace_time(cells[5]);
        if (!submit.valid || !submit.s || !end.valid) {
            bad(file, line.number, "start_time, end_time: expected seconds");
            continue;
        }
        const auto found = tasks_.find(cells[0]);
        if (found == tasks_.end()) {
            ++without_tasks_;
            ++counts_.never_started;
            continue;
        }
        const PaiTasks& tasks = found->second;
        if (tasks.gpus < 1) {
            ++counts_.without_gpus;
        } else if (!tasks.start) {
            ++counts_.never_started;
        } else if (!end.s) {
            ++counts_.still_running;
        } else if (*end.s < *tasks.start) {
            ++counts_.negative;
        } else {
            shares_ += tasks.shares;
            jobs_.push_back({cells[0],
                             cells[2],
                             "",
                             static_cast<std::int64_t>(tasks.gpus),
                             *submit.s,
                             *end.s - *tasks.start,
                             {}});
        }
    }
}

void Pai::run() {
    if (options_.files.size() != 2) {
        return diagnostics_.error(options_.files.front(), {}, "", "expected two files",
                                  "railyard import pai pai_job_table.csv pai_task_table.csv");
    }
    std::string job_file;
    std::vector<FileLine> jobs;
    for (const std::string& file : options_.files) {
        std::vector<FileLine> lines = read_lines(file, diagnostics_);
        diagnostics_.raise_if_any();
        const std::size_t cells = lines.empty() ? 0 : split_text(lines.front().text, ',').size();
        if (cells == 10) {
            read_tasks(file, lines);
        } else if (cells == 6 && job_file.empty()) {
            job_file = file;
            jobs = std::move(lines);
        } else {
            return diagnostics_.error(file, {1, 1}, "",
                                      fmt::format("{} fields: jobs have 6 and tasks 10", cells),
                                      "railyard import pai pai_job_table.csv pai_task_table.csv");
        }
    }
    if (job_file.empty()) {
        return diagnostics_.error(options_.files.front(), {}, "",
                                  "neither file is pai_job_table.csv");
    }
    read_jobs(job_file, jobs);
    diagnostics_.raise_if_any();
    part_.note(
        "A job is submitted at its start_time and runs from its first task's start to its end.");
    if (shares_ > 0) {
        part_.note("{} jobs ask for parts of GPUs: each instance gets whole ones here.", shares_);
    }
    if (without_tasks_ > 0) part_.note("{} jobs have no task in the other file.", without_tasks_);
    add_trace(std::move(jobs_), counts_, job_file, options_, part_, diagnostics_);
}

}  // namespace

Import import_pai = run_importer<Pai>;

}  // namespace railyard
