#include "models/scheduler/job_trace.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>

#include "models/scheduler/trace_builder.h"
#include "sim/config.h"

namespace railyard {

namespace {

// Numbers for names, in the order in which they are seen.
class Names {
  public:
    std::uint32_t number(std::string_view name) {
        const auto found = numbers_.find(name);
        if (found != numbers_.end()) return found->second;
        const auto next = static_cast<std::uint32_t>(names_.size());
        names_.push_back(visible(name));  // people read them
        numbers_.emplace(name, next);
        return next;
    }
    // Nothing when all names were empty.
    std::vector<std::string> take() {
        if (names_.size() == 1 && names_[0].empty()) return {};
        return std::move(names_);
    }

  private:
    std::map<std::string, std::uint32_t, std::less<>> numbers_;
    std::vector<std::string> names_;
};

TraceFormat format_of(std::string_view text) {
    const auto is_number = [](char c) { return std::isdigit(static_cast<unsigned char>(c)) != 0; };
    for (std::size_t begin = 0; begin < text.size();) {
        const std::size_t end = std::min(text.find('\n', begin), text.size());
        const std::string_view line = text.substr(begin, end - begin);
        begin = end + 1;
        if (line.starts_with(';')) return TraceFormat::swf;
        if (line.empty() || line.starts_with('#')) continue;
        if (line.find('|') != std::string_view::npos) return TraceFormat::sacct;
        const std::size_t first = line.find_first_not_of(" \t");
        const bool listed = line.find(',') != std::string_view::npos;
        const bool swf = !listed && first != std::string_view::npos && is_number(line[first]);
        return swf ? TraceFormat::swf : TraceFormat::csv;
    }
    return TraceFormat::csv;
}

std::unique_ptr<TraceFormatReader> make_reader(TraceFormat format, Duration time_unit) {
    switch (format) {
        case TraceFormat::sacct:
            return make_sacct_reader();
        case TraceFormat::swf:
            return make_swf_reader();
        case TraceFormat::csv:
            break;
    }
    return make_csv_reader(time_unit);
}

class JobTraceBuilder {
  public:
    JobTraceBuilder(std::string file, const TraceReading& reading, TraceFormat format)
        : file_(std::move(file)),
          reading_(reading),
          lines_(make_reader(format, reading.time_unit)),
          needs_header_(lines_->has_header()) {
        trace_.format = format;
    }

    void line(std::string_view line);
    JobTrace take();

  private:
    void read(std::string_view line);
    void add(const TraceRow& row);
    bool join(const TraceRow& row);
    void leave_out_running_gangs();
    Diagnostic diagnostic(const BadCell& bad) const {
        return {file_, {number_, 1}, bad.column, bad.message, ""};
    }
    void count_bad(const BadCell& bad);

    static constexpr std::int64_t shown_max = 20;

    std::string file_;
    const TraceReading& reading_;
    std::unique_ptr<TraceFormatReader> lines_;
    bool needs_header_;
    int number_ = 0;
    JobTrace trace_;
    Names users_;
    Names partitions_;
    std::vector<Diagnostic> errors_;
    // A heterogeneous job, whose parts are lines.
    // It is known by its id and when it was submitted, since a job that
    // went back to the queue is there once for each time.
    struct Gang {
        std::optional<std::size_t> job{};
        bool runs = false;
    };
    std::map<std::pair<std::string, Duration>, Gang> gangs_;
};

void JobTraceBuilder::line(std::string_view line) {
    ++number_;
    if (line.ends_with('\r')) line.remove_suffix(1);
    if (line.find_first_not_of(" \t") == std::string_view::npos) return;
    if (line[0] == lines_->comment()) return;
    if (needs_header_) {
        try {
            lines_->header(line);
        } catch (const BadCell& bad) {
            throw ScenarioError({diagnostic(bad)});
        }
        needs_header_ = false;
        return;
    }
    try {
        read(line);
    } catch (const BadCell& bad) {
        count_bad(bad);
    }
}

void JobTraceBuilder::read(std::string_view line) {
    TraceRow row;
    switch (lines_->line(line, row)) {
        case Line::job:
            add(row);
            break;
        case Line::without_gpus:
            ++trace_.without_gpus;
            break;
        case Line::never_started:
            trace_.never_started += row.jobs;
            break;
        case Line::still_running:
            if (row.gang.empty()) {
                ++trace_.still_running;
            } else {
                gangs_[{std::string(row.gang), row.job.submit}].runs = true;
            }
            break;
        case Line::step:
            ++trace_.steps;
            break;
    }
}

// A part of a job that has a line already.
bool JobTraceBuilder::join(const TraceRow& row) {
    Gang& gang = gangs_[{std::string(row.gang), row.job.submit}];
    if (!gang.job) {
        gang.job = trace_.jobs.size();
        return false;
    }
    StreamJob& whole = trace_.jobs[*gang.job];
    ++trace_.gang_parts;
    whole.gpus = std::min(whole.gpus + row.job.gpus, job_gpus_max);
    whole.duration = std::max(whole.duration, row.job.duration);
    whole.limit = std::max(whole.limit, row.job.limit);
    whole.priority = std::max(whole.priority, row.job.priority);
    return true;
}

void JobTraceBuilder::leave_out_running_gangs() {
    std::vector<bool> gone(trace_.jobs.size());
    for (const auto& [name, gang] : gangs_) {
        if (!gang.runs) continue;
        ++trace_.still_running;
        if (gang.job) gone[*gang.job] = true;
    }
    std::size_t kept = 0;
    for (std::size_t i = 0; i < gone.size(); ++i) {
        if (!gone[i]) trace_.move_job(i, kept++);
    }
    trace_.resize(kept);
}

void JobTraceBuilder::add(const TraceRow& row) {
    if (!row.gang.empty() && join(row)) return;
    trace_.waits_in_duration += row.wait_in_duration ? 1 : 0;
    trace_.jobs.push_back(row.job);
    trace_.lines.push_back(number_);
    if (row.id.empty()) {  // its place in the file
        trace_.ids.push_back(fmt::format("{}", trace_.jobs.size()));
    } else {
        trace_.ids.emplace_back(row.gang.empty() ? row.id : row.gang);
    }
    trace_.users.push_back(users_.number(row.user));
    trace_.partitions.push_back(partitions_.number(row.partition));
}

void JobTraceBuilder::count_bad(const BadCell& bad) {
    ++trace_.bad;
    if (!trace_.first_bad) trace_.first_bad = diagnostic(bad);
    if (!reading_.skip_bad && trace_.bad <= shown_max) errors_.push_back(diagnostic(bad));
}

JobTrace JobTraceBuilder::take() {
    if (!errors_.empty()) {
        const std::int64_t more = trace_.bad - static_cast<std::int64_t>(errors_.size());
        errors_.back().help =
            more > 0 ? fmt::format("and {} more malformed lines; --skip-bad passes over them", more)
                     : "--skip-bad passes over malformed lines and counts them";
        throw ScenarioError(std::move(errors_));
    }
    leave_out_running_gangs();
    trace_.ends_told = lines_->tells_ends();
    if (trace_.jobs.empty()) {
        throw ScenarioError(fmt::format("{} has no job of GPUs that has ended", file_));
    }
    trace_.user_names = users_.take();
    trace_.partition_names = partitions_.take();
    return std::move(trace_);
}

std::string_view without_prefix(std::string_view name) {
    constexpr std::string_view prefix = "vc_";
    return name.starts_with(prefix) ? name.substr(prefix.size()) : name;
}

}  // namespace

JobTrace parse_job_trace(std::string_view text, const std::string& file,
                         const TraceReading& reading) {
    constexpr std::string_view byte_order_mark = "\xEF\xBB\xBF";
    if (text.starts_with(byte_order_mark)) text.remove_prefix(byte_order_mark.size());
    JobTraceBuilder builder(file, reading, reading.format.value_or(format_of(text)));
    for (std::size_t begin = 0; begin < text.size();) {
        const std::size_t end = std::min(text.find('\n', begin), text.size());
        builder.line(text.substr(begin, end - begin));
        begin = end + 1;
    }
    return builder.take();
}

JobTrace read_job_trace(const std::string& path, const TraceReading& reading) {
    return parse_job_trace(read_file(path), path, reading);
}

void JobTrace::move_job(std::size_t from, std::size_t to) {
    if (from == to) return;
    jobs[to] = jobs[from];
    ids[to] = std::move(ids[from]);
    lines[to] = lines[from];
    users[to] = users[from];
    partitions[to] = partitions[from];
}

void JobTrace::resize(std::size_t count) {
    jobs.resize(count);
    ids.resize(count);
    lines.resize(count);
    users.resize(count);
    partitions.resize(count);
}

std::vector<std::string> JobTrace::warnings() const {
    std::vector<std::string> out;
    if (still_running > 0) {
        out.push_back(
            fmt::format("{} of {} jobs still ran when the trace was written: how long they take is "
                        "not known, and they are left out",
                        still_running, still_running + std::ssize(jobs)));
    }
    if (!ends_told) {
        out.emplace_back(
            "no column says which jobs had ended (State, End): what ran so far counts as all");
    }
    if (waits_in_duration > 0) {
        out.push_back(
            fmt::format("the durations of {} jobs are end - submission, with the wait in it: end - "
                        "start is taken",
                        waits_in_duration));
    }
    return out;
}

std::map<std::string, std::int64_t> assign_clusters(JobTrace& trace,
                                                    const std::vector<VirtualCluster>& clusters) {
    const bool by_partition = !trace.partition_names.empty();
    const std::vector<std::string>& names = by_partition ? trace.partition_names : trace.user_names;
    const std::vector<std::uint32_t>& name_of = by_partition ? trace.partitions : trace.users;
    std::map<std::string_view, std::uint32_t> known;
    for (std::uint32_t i = 0; i < clusters.size(); ++i) {
        known.emplace(without_prefix(clusters[i].name), i);
    }
    std::map<std::string, std::int64_t> homeless;
    std::size_t kept = 0;
    for (std::size_t i = 0; i < trace.jobs.size(); ++i) {
        const std::string& name = names.empty() ? std::string() : names[name_of[i]];
        const auto found = known.find(without_prefix(name));
        if (found == known.end()) {
            ++homeless[name];
            continue;
        }
        trace.move_job(i, kept);
        trace.jobs[kept++].cluster = found->second;
    }
    trace.resize(kept);
    return homeless;
}

}  // namespace railyard
