// The Standard Workload Format of the Parallel Workloads Archive: 18 numbers a line, -1 for what is not
// known. Its processors are taken for GPUs.

#include <fmt/format.h>

#include "models/scheduler/trace_builder.h"

namespace railyard {

namespace {

constexpr std::size_t fields = 18;
// Places of the fields that are read, as the format's definition counts them but from 0.
enum Field : std::size_t {
    number = 0,
    submit = 1,
    run_time = 3,
    allocated = 4,
    requested = 7,
    requested_time = 8,
    user = 11,
    queue = 14,
    partition = 15,
};

class SwfReader : public TraceFormatReader {
  public:
    bool has_header() const override { return false; }
    char comment() const override { return ';'; }
    Line line(std::string_view line, TraceRow& row) override;

  private:
    bool known(Field field) const { return cells_[field] != "-1"; }
    Duration seconds_in(Field field, const char* name) const {
        return number_of(cells_[field], name, std::chrono::seconds(1));
    }
    std::vector<std::string_view> cells_;
};

void split_at_blanks(std::string_view line, std::vector<std::string_view>& cells) {
    constexpr std::string_view blanks = " \t";
    cells.clear();
    for (std::size_t at = line.find_first_not_of(blanks); at != std::string_view::npos;) {
        const std::size_t end = std::min(line.find_first_of(blanks, at), line.size());
        cells.push_back(line.substr(at, end - at));
        at = line.find_first_not_of(blanks, end);
    }
}

Line SwfReader::line(std::string_view line, TraceRow& row) {
    split_at_blanks(line, cells_);
    if (cells_.size() != fields) {
        throw BadCell{"", fmt::format("expected {} numbers, found {}", fields, cells_.size())};
    }
    StreamJob& job = row.job;
    job.id = whole_number(cells_[number], "job number", 0, INT64_MAX);
    row.id = cells_[number];
    job.submit = seconds_in(submit, "submit time");
    if (!known(run_time)) return Line::never_started;
    job.duration = seconds_in(run_time, "run time");
    const bool asked = known(requested);
    job.gpus =
        whole_number(cells_[asked ? requested : allocated],
                     asked ? "requested processors" : "allocated processors", 0, job_gpus_max);
    if (known(requested_time)) job.limit = seconds_in(requested_time, "requested time");
    if (known(user)) row.user = cells_[user];
    if (known(partition) || known(queue))
        row.partition = cells_[known(partition) ? partition : queue];
    return job.gpus == 0 ? Line::without_gpus : Line::job;
}

}  // namespace

std::unique_ptr<TraceFormatReader> make_swf_reader() {
    return std::make_unique<SwfReader>();
}

}  // namespace railyard
