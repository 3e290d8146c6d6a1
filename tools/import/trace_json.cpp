// Jobs as JSON: Microsoft's Philly log, and Kueue's workloads ('kubectl get workloads -A -o json').

#include <fmt/format.h>

#include <algorithm>

#include "tools/import/importers.h"
#include "tools/import/json_tree.h"
#include "tools/import/trace_part.h"

namespace railyard {

namespace {

class JsonTrace : protected Importer {
  public:
    using Importer::Importer;

  protected:
    Document document() {
        std::string text = read_file(file_);
        if (text.starts_with("version https://git-lfs")) {
            error({1, 1}, "", "is a pointer of git-lfs, not the data", "git lfs pull");
            diagnostics_.raise_if_any();
        }
        // A scenario's tree begins with a table.
        if (const std::size_t first = text.find_first_not_of(" \t\r\n");
            first != std::string::npos && text[first] == '[') {
            text = "{\"items\": " + text + "}";
        }
        Document out = parse_json(text, file_, diagnostics_);
        diagnostics_.raise_if_any();
        return out;
    }

    void bad(const Value& at, std::string message) {
        ++counts_.bad;
        if (options_.skip_bad || diagnostics_.errors().size() > 20) return;
        error(at.at, "", std::move(message), "--skip-bad counts such jobs instead");
    }

    void finish() {
        diagnostics_.raise_if_any();
        add_trace(std::move(jobs_), counts_, file_, options_, part_, diagnostics_);
    }

    std::vector<ImportedJob> jobs_;
    TraceCounts counts_;
};

class Philly : private JsonTrace {
  public:
    using JsonTrace::JsonTrace;
    void run() {
        const Document all = document();
        const Value* items = all.root.find("items");
        if (items == nullptr) {
            return error({1, 1}, "", "expected a list of jobs: cluster_job_log of Philly");
        }
        for (const Value& job : items->items) read_job(job);
        if (retries_ > 0) {
            part_.note("{} attempts were retries: a job's duration is that of all its attempts.",
                       retries_);
        }
        part_.note("Times have no zone.");
        finish();
    }

  private:
    // A job is its attempts: each has its own GPUs and time. It is taken as one run of all of them together.
    void read_job(const Value& job) {
        ++counts_.rows;
        const TraceTime submit = trace_time(text_in(job, "submitted_time"));
        if (!submit.valid || !submit.s)
            return bad(job, "submitted_time: expected a time such as 2017-10-07 01:11:39");
        ImportedJob out{
            text_in(job, "jobid"), text_in(job, "user"), text_in(job, "vc"), 0, *submit.s, 0, {}};
        const Value* attempts = job.find("attempts");
        if (attempts == nullptr || attempts->items.empty()) {
            ++counts_.never_started;
            return;
        }
        for (const Value& attempt : attempts->items) {
            const TraceTime start = trace_time(text_in(attempt, "start_time"));
            const TraceTime end = trace_time(text_in(attempt, "end_time"));
            if (!start.valid || !end.valid)
                return bad(attempt, "start_time, end_time: expected times");
            if (!start.s || !end.s) {
                ++counts_.still_running;
                return;
            }
            if (*end.s < *start.s) {
                ++counts_.negative;
                return;
            }
            out.duration_s += *end.s - *start.s;
            std::int64_t gpus = 0;
            if (const Value* detail = attempt.find("detail")) {
                for (const Value& server : detail->items) {
                    if (const Value* list = at_path(&server, {"gpus"}))
                        gpus += std::ssize(list->items);
                }
            }
            out.gpus = std::max(out.gpus, gpus);
        }
        retries_ += std::ssize(attempts->items) - 1;
        if (out.gpus == 0) {
            ++counts_.without_gpus;
        } else {
            jobs_.push_back(std::move(out));
        }
    }

    std::int64_t retries_ = 0;
};

class Kueue : private JsonTrace {
  public:
    using JsonTrace::JsonTrace;
    void run() {
        const Document all = document();
        const Value* items = all.root.find("items");
        if (items == nullptr) {
            return error({1, 1}, "items", "is missing: kubectl get workloads -A -o json has it");
        }
        for (const Value& workload : items->items) read_workload(workload);
        part_.note(
            "Kueue keeps the last change of each condition only, and forgets what has finished: a "
            "job that was evicted is there with its last run.");
        if (evicted_ > 0) part_.note("{} workloads were evicted or requeued.", evicted_);
        if (slices_ > 0)
            part_.note("{} workloads ask for slices of MIG, which are not counted.", slices_);
        finish();
    }

  private:
    void read_workload(const Value& workload) {
        ++counts_.rows;
        const Value* meta = at_path(&workload, {"metadata"});
        const Value* spec = at_path(&workload, {"spec"});
        const Value* status = at_path(&workload, {"status"});
        if (meta == nullptr || spec == nullptr) return bad(workload, "expected metadata and spec");
        const TraceTime made = trace_time(text_in(*meta, "creationTimestamp"));
        if (!made.valid || !made.s) return bad(*meta, "creationTimestamp: expected a time");
        bool slices = false;
        const double gpus = gpus_of(*spec, slices);
        slices_ += slices;
        const auto admitted = turned(status, "Admitted");
        const auto finished = turned(status, "Finished");
        evicted_ +=
            turned(status, "Evicted").has_value() || at_path(status, {"requeueState"}) != nullptr;
        if (gpus < 1) {
            ++counts_.without_gpus;
        } else if (!admitted) {
            ++counts_.never_started;
        } else if (!finished) {
            ++counts_.still_running;
        } else if (*finished < *admitted) {
            ++counts_.negative;
        } else {
            ImportedJob job{
                fmt::format("{}/{}", text_in(*meta, "namespace"), text_in(*meta, "name")),
                text_in(*meta, "namespace"),
                text_in(*spec, "queueName"),
                static_cast<std::int64_t>(gpus),
                *made.s,
                *finished - *admitted,
                {}};
            if (const Value* limit = at_path(spec, {"maximumExecutionTimeSeconds"}))
                job.limit_s = limit->real;
            jobs_.push_back(std::move(job));
        }
    }

    // Sum over pod sets of pods times the GPUs of their containers.
    static double gpus_of(const Value& spec, bool& slices) {
        double all = 0;
        const Value* sets = at_path(&spec, {"podSets"});
        if (sets == nullptr) return 0;
        for (const Value& set : sets->items) {
            const Value* count = at_path(&set, {"count"});
            const double pods = count != nullptr ? count->real : 1;
            const Value* containers = at_path(&set, {"template", "spec", "containers"});
            if (containers == nullptr) continue;
            for (const Value& container : containers->items) {
                const Value* requests = at_path(&container, {"resources", "requests"});
                const auto asks_gpus = [](const Value* of) {
                    return of != nullptr && std::ranges::any_of(of->members, [](const Member& m) {
                               return m.key.ends_with(".com/gpu") ||
                                      m.key.find(".com/mig-") != std::string::npos;
                           });
                };
                // Without a request a device plugin's resource is asked for as its limit says.
                if (!asks_gpus(requests)) requests = at_path(&container, {"resources", "limits"});
                if (requests == nullptr) continue;
                for (const auto& [name, value] : requests->members) {
                    if (name.find(".com/mig-") != std::string::npos) slices = true;
                    if (!name.ends_with(".com/gpu")) continue;
                    all += pods * (value.kind == Value::Kind::string
                                       ? real_value(value.text).value_or(0)
                                       : value.real);
                }
            }
        }
        constexpr double most = 1e8;
        return std::clamp(all, 0.0, most);
    }

    // When a condition last became true.
    static std::optional<double> turned(const Value* status, const char* type) {
        const Value* conditions = at_path(status, {"conditions"});
        if (conditions == nullptr) return std::nullopt;
        for (const Value& condition : conditions->items) {
            if (text_in(condition, "type") != type || text_in(condition, "status") != "True")
                continue;
            return trace_time(text_in(condition, "lastTransitionTime")).s;
        }
        return std::nullopt;
    }

    std::int64_t slices_ = 0;
    std::int64_t evicted_ = 0;
};

}  // namespace

Import import_philly = run_importer<Philly>;
Import import_kueue = run_importer<Kueue>;

}  // namespace railyard
