#include "tools/import/trace_part.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>

#include "tools/import/text_file.h"
#include "tools/program/csv_field.h"

namespace railyard {

namespace {

std::string csv_of(const std::vector<ImportedJob>& jobs) {
    std::string out = "job_id,user,vc,gpus,submit_time,duration,time_limit\n";
    const double origin = jobs.front().submit_s;
    for (const ImportedJob& job : jobs) {
        out += fmt::format("{},{},{},{},{:.0f},{:.0f},{}\n", csv_field(job.id), csv_field(job.user),
                           csv_field(job.group), job.gpus, job.submit_s - origin, job.duration_s,
                           job.limit_s ? fmt::format("{:.0f}", *job.limit_s) : std::string());
    }
    return out;
}

void say_counts(const TraceCounts& counts, ImportedPart& part) {
    const auto say = [&](std::int64_t count, const char* what) {
        if (count == 0) return;
        part.note("Left out: {} of {} rows ({:.1f} %): {}.", count, counts.rows,
                  100.0 * static_cast<double>(count) / static_cast<double>(counts.rows), what);
    };
    say(counts.without_gpus, "they have no GPUs");
    say(counts.never_started, "they never started");
    say(counts.still_running, "they had not ended: nobody knows how long they take");
    say(counts.negative, "they end before they begin");
    say(counts.bad, "they are malformed");
}

}  // namespace

void add_jobs(const JobTrace& trace, std::vector<ImportedJob>& jobs, TraceCounts& counts) {
    for (std::size_t i = 0; i < trace.jobs.size(); ++i) {
        const StreamJob& read = trace.jobs[i];
        ImportedJob& out = jobs.emplace_back();
        out.id = trace.ids[i];
        out.gpus = read.gpus;
        out.submit_s = seconds(read.submit);
        out.duration_s = seconds(read.duration);
        if (read.limit > Duration{}) out.limit_s = seconds(read.limit);
        if (!trace.user_names.empty()) out.user = trace.user_names[trace.users[i]];
    }
    counts.without_gpus += trace.without_gpus;
    counts.never_started += trace.never_started;
    counts.still_running += trace.still_running;
    counts.bad += trace.bad;
    counts.rows += std::ssize(trace.jobs) + trace.without_gpus + trace.never_started +
                   trace.still_running + trace.bad;
}

TraceTime trace_time(std::string_view text) {
    const std::string_view cell = trimmed(text);
    for (const char* nothing : {"", "None", "none", "null", "NULL", "nan", "NaN", "Unknown"}) {
        if (cell == nothing) return {};
    }
    if (const auto number = real_value(cell)) return {true, *number};
    if (const auto time = time_value(cell)) return {true, static_cast<double>(*time)};
    return {false, {}};
}

void add_trace(std::vector<ImportedJob> jobs, const TraceCounts& counts, const std::string& file,
               const ImportOptions& options, ImportedPart& part, Diagnostics& diagnostics) {
    if (options.output.empty()) {
        return diagnostics.error(file, {}, "",
                                 "becomes two files, a part of a scenario and its jobs",
                                 "give -o mine.toml: the jobs go to mine.csv");
    }
    if (jobs.empty()) {
        return diagnostics.error(file, {}, "",
                                 fmt::format("no job with GPUs has run: of {} rows {} have no "
                                             "GPUs, {} never started, {} had not ended",
                                             counts.rows, counts.without_gpus, counts.never_started,
                                             counts.still_running));
    }
    std::ranges::stable_sort(jobs, {}, &ImportedJob::submit_s);
    double gpu_hours = 0;
    std::int64_t largest = 0;
    std::int64_t limits = 0;
    for (const ImportedJob& job : jobs) {
        gpu_hours += static_cast<double>(job.gpus) * job.duration_s / 3600;
        largest = std::max(largest, job.gpus);
        limits += job.limit_s.has_value();
    }
    part.note("{} jobs of up to {} GPUs, {:.6g} GPU-hours, submitted within {:.4g} days.",
              jobs.size(), largest, gpu_hours,
              (jobs.back().submit_s - jobs.front().submit_s) / 86400);
    say_counts(counts, part);
    if (limits < std::ssize(jobs)) {
        part.left_out("time limits of {} of {} jobs", std::ssize(jobs) - limits, jobs.size());
    }
    part.left_out("the GPUs' speed: durations are those of the machine that the jobs ran on");
    part.left_out("[cluster] and [scheduler]: 'railyard import slurm' reads slurm.conf");
    const std::string name =
        std::filesystem::path(path_beside(options.output, ".csv")).filename().string();
    part.beside(".csv", csv_of(jobs));
    part.section("jobs");
    part.quoted("trace", name, fmt::format("{}: {} jobs", file, jobs.size()));
}

}  // namespace railyard
