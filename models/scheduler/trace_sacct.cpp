// What Slurm's 'sacct -P' prints: a line of column names, then a line for each job and, unless -X was
// given, for each of its steps.

#include <fmt/format.h>

#include <algorithm>
#include <initializer_list>

#include "models/scheduler/trace_builder.h"
#include "sim/text.h"

namespace railyard {

namespace {

// GPUs in "billing=8,cpu=64,gres/gpu:h100=8,gres/gpu=8,node=1": the total, or the sum over types.
std::int64_t gpus_of(std::string_view tres, std::string_view column) {
    std::vector<std::string_view> parts;
    split(tres, ',', parts);
    std::int64_t typed = 0;
    for (const std::string_view part : parts) {
        constexpr std::string_view all = "gres/gpu=";
        constexpr std::string_view one_type = "gres/gpu:";
        if (part.starts_with(all)) {
            return whole_number(part.substr(all.size()), column, 0, job_gpus_max);
        }
        if (!part.starts_with(one_type)) continue;
        const std::size_t equals = part.find('=');
        if (equals == std::string_view::npos) {
            throw BadCell{std::string(column),
                          fmt::format("expected gres/gpu:TYPE=COUNT, found '{}'", part)};
        }
        typed += whole_number(part.substr(equals + 1), column, 0, job_gpus_max);
    }
    return typed;
}

bool is_unknown(std::string_view time) {
    return time.empty() || time == "Unknown" || time == "None";
}

// Tasks in the "[5-99:2,101%10]" of an array whose tasks wait; 1 without one.
std::int64_t tasks_of(std::string_view id, std::string_view column) {
    const std::size_t open = id.find('[');
    if (open == std::string_view::npos) return 1;
    const std::string_view list =
        id.substr(open + 1, std::min(id.find('%', open), id.find(']', open)) - open - 1);
    std::vector<std::string_view> ranges;
    split(list, ',', ranges);
    std::int64_t tasks = 0;
    for (std::string_view range : ranges) {
        std::int64_t every = 1;
        if (const std::size_t colon = range.find(':'); colon != std::string_view::npos) {
            every = whole_number(range.substr(colon + 1), column, 1, UINT32_MAX);
            range = range.substr(0, colon);
        }
        const std::size_t dash = std::min(range.find('-'), range.size());
        const std::int64_t first = whole_number(range.substr(0, dash), column, 0, UINT32_MAX);
        const std::int64_t last =
            dash == range.size() ? first
                                 : whole_number(range.substr(dash + 1), column, first, UINT32_MAX);
        tasks += (last - first) / every + 1;
    }
    return tasks;
}

class SacctReader : public TraceFormatReader {
  public:
    char comment() const override { return '#'; }
    void header(std::string_view line) override;
    Line line(std::string_view line, TraceRow& row) override;
    bool tells_ends() const override { return state_ || end_; }

  private:
    std::string_view cell(std::optional<std::size_t> column) const {
        return column ? cells_[*column] : std::string_view();
    }
    Duration time_limit() const;
    void read_id(TraceRow& row) const;
    bool runs() const;

    std::vector<std::string> columns_;
    std::vector<std::string_view> cells_;
    std::size_t id_ = 0;
    std::size_t submit_ = 0;
    std::size_t elapsed_ = 0;
    std::size_t tres_ = 0;
    std::optional<std::size_t> requested_, user_, partition_, start_, end_, state_, limit_,
        priority_;
};

void SacctReader::header(std::string_view line) {
    split(line, '|', cells_);
    if (cells_.back().empty()) cells_.pop_back();  // -p ends each line with a bar
    columns_.assign(cells_.begin(), cells_.end());
    id_ = need_column(columns_, "which job", {"JobID", "JobIDRaw"});
    submit_ = need_column(columns_, "when a job is submitted", {"Submit"});
    elapsed_ = need_column(columns_, "how long a job ran", {"ElapsedRaw", "Elapsed"});
    tres_ = need_column(columns_, "how many GPUs", {"AllocTRES", "ReqTRES"});
    requested_ = find_column(columns_, {"ReqTRES"});
    user_ = find_column(columns_, {"User"});
    partition_ = find_column(columns_, {"Partition"});
    start_ = find_column(columns_, {"Start"});
    end_ = find_column(columns_, {"End"});
    state_ = find_column(columns_, {"State"});
    limit_ = find_column(columns_, {"TimelimitRaw", "Timelimit"});
    priority_ = find_column(columns_, {"Priority"});
}

Duration SacctReader::time_limit() const {
    const std::string_view limit = cell(limit_);
    if (limit.empty() || limit == "UNLIMITED" || limit == "Partition_Limit") return {};
    const std::string& column = columns_[*limit_];
    return column == "TimelimitRaw" ? number_of(limit, column, std::chrono::minutes(1))
                                    : elapsed_time(limit, column);
}

// "123", "123_4" of an array, "123+1" of a heterogeneous job.
void SacctReader::read_id(TraceRow& row) const {
    row.id = cells_[id_];
    row.job.id = leading_number(row.id);
    row.jobs = tasks_of(row.id, columns_[id_]);
    if (const std::size_t plus = row.id.find('+'); plus != std::string_view::npos) {
        row.gang = row.id.substr(0, plus);
    }
}

// Its time is what it has run so far.
bool SacctReader::runs() const {
    return slurm_job_runs(cell(state_)) || (end_ && is_unknown(cell(end_)));
}

Line SacctReader::line(std::string_view line, TraceRow& row) {
    split(line, '|', cells_);
    if (cells_.size() == columns_.size() + 1 && cells_.back().empty()) cells_.pop_back();
    if (cells_.size() != columns_.size()) {
        throw BadCell{"",
                      fmt::format("expected {} fields, found {}", columns_.size(), cells_.size())};
    }
    if (cells_[id_].find('.') != std::string_view::npos) return Line::step;
    StreamJob& job = row.job;
    read_id(row);
    job.submit = time_stamp(cells_[submit_], columns_[submit_]);
    const bool waits = cell(state_).starts_with("PENDING");
    if (waits || (start_ && is_unknown(cell(start_)))) return Line::never_started;
    const bool allocated = !cells_[tres_].empty() || !requested_;
    const std::size_t tres = allocated ? tres_ : *requested_;
    job.gpus = gpus_of(cells_[tres], columns_[tres]);
    if (job.gpus == 0) return Line::without_gpus;
    if (runs()) return Line::still_running;
    const std::string& elapsed = columns_[elapsed_];
    job.duration = elapsed == "ElapsedRaw"
                       ? number_of(cells_[elapsed_], elapsed, std::chrono::seconds(1))
                       : elapsed_time(cells_[elapsed_], elapsed);
    job.limit = time_limit();
    if (priority_ && !cell(priority_).empty()) {
        job.priority = whole_number(cell(priority_), "Priority", 0, UINT32_MAX);
    }
    row.user = cell(user_);
    row.partition = cell(partition_);
    return Line::job;
}

}  // namespace

bool slurm_job_runs(std::string_view state) {
    return std::ranges::any_of(
        std::initializer_list<std::string_view>{"RUNNING", "SUSPENDED", "COMPLETING", "CONFIGURING",
                                                "RESIZING", "SIGNALING", "STAGE_OUT", "STOPPED"},
        [&](std::string_view running) { return state.starts_with(running); });
}

std::unique_ptr<TraceFormatReader> make_sacct_reader() {
    return std::make_unique<SacctReader>();
}

}  // namespace railyard
