// What Slurm's 'sacct -P' prints: a line of column names, then a line for each job and, unless -X was
// given, for each of its steps.

#include <fmt/format.h>

#include "models/scheduler/trace_builder.h"

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

class SacctReader : public TraceFormatReader {
  public:
    char comment() const override { return '#'; }
    void header(std::string_view line) override;
    Line line(std::string_view line, TraceRow& row) override;

  private:
    std::string_view cell(std::optional<std::size_t> column) const {
        return column ? cells_[*column] : std::string_view();
    }
    Duration time_limit() const;

    std::vector<std::string> columns_;
    std::vector<std::string_view> cells_;
    std::size_t id_ = 0;
    std::size_t submit_ = 0;
    std::size_t elapsed_ = 0;
    std::size_t tres_ = 0;
    std::optional<std::size_t> requested_, user_, partition_, start_, state_, limit_, priority_;
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

Line SacctReader::line(std::string_view line, TraceRow& row) {
    split(line, '|', cells_);
    if (cells_.size() == columns_.size() + 1 && cells_.back().empty()) cells_.pop_back();
    if (cells_.size() != columns_.size()) {
        throw BadCell{"",
                      fmt::format("expected {} fields, found {}", columns_.size(), cells_.size())};
    }
    if (cells_[id_].find('.') != std::string_view::npos) return Line::step;
    StreamJob& job = row.job;
    job.id = leading_number(cells_[id_]);
    job.submit = time_stamp(cells_[submit_], columns_[submit_]);
    const bool waits = cell(state_).starts_with("PENDING");
    if (waits || (start_ && is_unknown(cell(start_)))) return Line::never_started;
    const std::string& elapsed = columns_[elapsed_];
    job.duration = elapsed == "ElapsedRaw"
                       ? number_of(cells_[elapsed_], elapsed, std::chrono::seconds(1))
                       : elapsed_time(cells_[elapsed_], elapsed);
    const bool allocated = !cells_[tres_].empty() || !requested_;
    const std::size_t tres = allocated ? tres_ : *requested_;
    job.gpus = gpus_of(cells_[tres], columns_[tres]);
    job.limit = time_limit();
    if (priority_ && !cell(priority_).empty()) {
        job.priority = whole_number(cell(priority_), "Priority", 0, UINT32_MAX);
    }
    row.user = cell(user_);
    row.partition = cell(partition_);
    return job.gpus == 0 ? Line::without_gpus : Line::job;
}

}  // namespace

std::unique_ptr<TraceFormatReader> make_sacct_reader() {
    return std::make_unique<SacctReader>();
}

}  // namespace railyard
