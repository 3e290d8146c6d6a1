// What sacct prints, -P or --json, as a trace of jobs.

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>

#include "models/scheduler/scheduler.h"
#include "tools/import/importers.h"
#include "tools/import/json_tree.h"
#include "tools/import/slurm_records.h"
#include "tools/import/text_file.h"
#include "tools/import/trace_part.h"

namespace railyard {

namespace {

double number_in(const Value& value, double otherwise) {
    if (value.kind == Value::Kind::integer || value.kind == Value::Kind::real) return value.real;
    // Since v0.0.39: {"set": true, "infinite": false, "number": 60}.
    const Value* set = value.find("set");
    const Value* infinite = value.find("infinite");
    const Value* number = value.find("number");
    if (number == nullptr || (set != nullptr && set->integer == 0) ||
        (infinite != nullptr && infinite->integer != 0)) {
        return otherwise;
    }
    return number->real;
}

class Sacct : private Importer {
  public:
    using Importer::Importer;

    void run() {
        for (const std::string& file : options_.files) {
            file_ = file;
            const std::string text = read_input(file);
            const std::size_t first = text.find_first_not_of(" \t\r\n");
            if (first != std::string::npos && text[first] == '{') {
                read_json(file, text);
            } else {
                read_text(file, text);
            }
            diagnostics_.raise_if_any();
        }
        say_window();
        add_trace(std::move(jobs_), counts_, file_, options_, part_, diagnostics_);
    }

  private:
    void read_text(const std::string& file, const std::string& text) {
        TraceReading reading;
        reading.format = TraceFormat::sacct;
        reading.skip_bad = options_.skip_bad;
        const JobTrace trace = parse_job_trace(text, file, reading);
        const std::size_t first = jobs_.size();
        add_jobs(trace, jobs_, counts_);
        for (std::size_t i = 0; !trace.partition_names.empty() && i < trace.jobs.size(); ++i) {
            jobs_[first + i].group = trace.partition_names[trace.partitions[i]];
        }
        for (const std::string& warning : trace.warnings()) part_.note("{}", warning);
        read_states(text);
    }

    // What the rows' states and numbers say of the file itself.
    void read_states(const std::string& text) {
        std::vector<std::string> header;
        std::size_t state = 0;
        std::size_t id = 0;
        std::size_t nodes = 0;
        std::size_t count = 0;
        int number = 0;
        std::map<std::string, int> seen;
        const auto column = [&](std::initializer_list<const char*> names) {
            return static_cast<std::size_t>(std::ranges::find_first_of(header, names) -
                                            header.begin());
        };
        for (const std::string& line : split_text(text, '\n')) {
            const std::vector<std::string> cells = split_text(line, '|');
            ++number;
            if (trimmed(line).empty() || line.starts_with('#')) continue;
            if (header.empty()) {
                header = cells;
                state = column({"State"});
                id = column({"JobID", "JobIDRaw"});
                nodes = column({"NodeList"});
                count = column({"NNodes"});
                continue;
            }
            if (id < cells.size() && cells[id].find('.') != std::string::npos) continue;
            if (state < cells.size()) ++states_[cells[state].substr(0, cells[state].find(' '))];
            if (id < cells.size() && seen[cells[id]]++ == 1) ++repeated_;
            if (nodes < cells.size()) {
                check_nodes(cells[nodes], count < cells.size() ? cells[count] : "", number);
            }
        }
    }

    // A list that is cut off, or folded by other rules than Slurm's, has not as many names as
    // the job has nodes.
    void check_nodes(const std::string& list, const std::string& count, int line) {
        if (list.empty() || list == "None assigned" || list == "Unknown") return;
        std::string problem;
        const std::vector<std::string> names = expand_hostlist(list, problem);
        const auto expected = whole_value(count);
        if (problem.empty() && expected && *expected != std::ssize(names)) {
            problem = fmt::format("names {} nodes, and NNodes is {}", names.size(), *expected);
        }
        if (problem.empty()) {
            nodes_.insert(names.begin(), names.end());
            return;
        }
        ++odd_nodes_;
        if (options_.skip_bad) return;
        error({line, 1}, "NodeList", std::move(problem),
              "cut off? sacct -P prints all of it; --skip-bad goes on without the nodes");
    }

    void read_json(const std::string& file, const std::string& text) {
        const Document document = parse_json(text, file, diagnostics_);
        if (!diagnostics_.ok()) return;
        const Value* jobs = document.root.find("jobs");
        if (jobs == nullptr || jobs->kind != Value::Kind::array) {
            return diagnostics_.error(file, {1, 1}, "jobs",
                                      "is missing: sacct --json has a list of them");
        }
        if (!jobs->items.empty() && jobs->items.front().find("tres") == nullptr) {
            return diagnostics_.error(
                file, jobs->items.front().at, "jobs",
                "have no tres: is this squeue --json? It shows what waits and runs now",
                "sacct --json -S 2026-01-01 -D has what was");
        }
        for (const Value& job : jobs->items) read_job(job);
    }

    void read_job(const Value& job) {
        ++counts_.rows;
        ImportedJob out;
        const Value* id = job.find("job_id");
        const Value* submit = at_path(&job, {"time", "submission"});
        const Value* start = at_path(&job, {"time", "start"});
        const Value* elapsed = at_path(&job, {"time", "elapsed"});
        if (id == nullptr || submit == nullptr || elapsed == nullptr) {
            return bad(job, "expected job_id, time.submission and time.elapsed");
        }
        out.id = fmt::format("{}", id->integer);
        if (json_ids_[id->integer]++ == 1) ++repeated_;
        const std::string state = state_of(job);
        ++states_[state.empty() ? "no state" : state];
        out.gpus = gpus_in(job);
        if (state == "PENDING" || start == nullptr || number_in(*start, 0) <= 0) {
            ++counts_.never_started;
        } else if (out.gpus == 0) {
            ++counts_.without_gpus;
        } else if (slurm_job_runs(state)) {
            ++counts_.still_running;
        } else {
            out.submit_s = number_in(*submit, 0);
            out.duration_s = number_in(*elapsed, 0);
            if (out.submit_s <= 0)
                return bad(*submit, "time.submission: expected seconds since 1970");
            if (out.duration_s < 0) {
                ++counts_.negative;
                return;
            }
            if (const Value* limit = at_path(&job, {"time", "limit"})) {
                const double minutes = number_in(*limit, 0);
                if (minutes > 0 && minutes < 1e7) out.limit_s = minutes * 60;
            }
            if (const Value* user = job.find("user")) out.user = user->text;
            if (const Value* partition = job.find("partition")) out.group = partition->text;
            // Parts of a heterogeneous job run together: its first has the GPUs of all.
            const Value* het = at_path(&job, {"het", "job_id"});
            const double gang = het != nullptr ? number_in(*het, 0) : 0;
            const auto [first, fresh] =
                het_jobs_.try_emplace({gang, number_in(*start, 0)}, jobs_.size());
            if (gang > 0 && !fresh) {
                jobs_[first->second].gpus += out.gpus;
                return;
            }
            jobs_.push_back(std::move(out));
        }
    }

    std::int64_t gpus_in(const Value& job) const {
        for (const char* which : {"allocated", "requested"}) {
            const Value* tres = at_path(&job, {"tres", which});
            if (tres == nullptr || tres->items.empty()) continue;
            double all = -1;
            double typed = 0;
            for (const Value& one : tres->items) {
                const Value* type = one.find("type");
                const Value* name = one.find("name");
                const Value* count = one.find("count");
                if (type == nullptr || name == nullptr || count == nullptr || type->text != "gres")
                    continue;
                if (name->text == "gpu") all = count->real;
                if (name->text.starts_with("gpu:")) typed += count->real;
            }
            const double gpus = all >= 0 ? all : typed;
            constexpr double most = 1e9;
            return gpus >= 0 && gpus <= most ? static_cast<std::int64_t>(gpus) : 0;
        }
        return 0;
    }

    // A text before v0.0.40, then a list.
    std::string state_of(const Value& job) const {
        const Value* state = at_path(&job, {"state", "current"});
        if (state == nullptr) return {};
        return state->kind == Value::Kind::array && !state->items.empty()
                   ? state->items.front().text
                   : state->text;
    }

    void bad(const Value& at, std::string message) {
        ++counts_.bad;
        if (options_.skip_bad) return;
        error(at.at, "jobs", std::move(message), "--skip-bad counts such jobs instead");
    }

    void say_window() {
        std::vector<std::string> states;
        for (const auto& [state, count] : states_)
            states.push_back(fmt::format("{} {}", state, count));
        part_.note(
            "States: {}. NODE_FAIL alone is a machine's failure in Slurm's eyes; what NCCL, ECC "
            "and XIDs end is FAILED, TIMEOUT or CANCELLED.",
            fmt::join(states, ", "));
        if (repeated_ == 0) {
            part_.note(
                "No job is there twice: without -D sacct shows a requeued job's last run only, "
                "whose submission is the requeue.");
        } else {
            part_.note("{} jobs are there more than once: requeued, each run a job of its own.",
                       repeated_);
        }
        if (odd_nodes_ > 0) {
            part_.note("{} lists of nodes are malformed; their jobs are kept.", odd_nodes_);
        }
        if (!nodes_.empty()) {
            part_.note("{} nodes have run jobs: {} to {}.", nodes_.size(), *nodes_.begin(),
                       *nodes_.rbegin());
        }
        if (jobs_.empty()) return;
        double first = jobs_.front().submit_s;
        double last = first;
        for (const ImportedJob& job : jobs_) {
            first = std::min(first, job.submit_s);
            last = std::max(last, job.submit_s + job.duration_s);
        }
        if (last - first > 86400) return;
        warning(fmt::format("covers {:.1f} h: sacct shows jobs since midnight where no -S is given",
                            (last - first) / 3600),
                "sacct -P -D -S 2026-01-01 -E now");
    }

    std::vector<ImportedJob> jobs_;
    TraceCounts counts_;
    std::map<std::string, std::int64_t> states_;
    std::int64_t repeated_ = 0;
    std::int64_t odd_nodes_ = 0;
    std::map<std::int64_t, int> json_ids_;  // how often each is there
    // The first part, among jobs_, of each run of a heterogeneous job, by its id and start.
    std::map<std::pair<double, double>, std::size_t> het_jobs_;
    std::set<std::string> nodes_;  // that have run jobs
};

}  // namespace

Import import_sacct = run_importer<Sacct>;

}  // namespace railyard
