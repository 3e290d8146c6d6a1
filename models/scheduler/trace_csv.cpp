// Traces with named columns, as HeliosData, AcmeTrace and ChronusArtifact publish them.

#include <csv.h>
#include <fmt/format.h>

#include "models/scheduler/trace_builder.h"

namespace railyard {

namespace {

// One line's fields, by libcsv.
class CsvLine {
  public:
    CsvLine() { csv_init(&parser_, CSV_STRICT | CSV_STRICT_FINI | CSV_APPEND_NULL); }
    ~CsvLine() { csv_free(&parser_); }
    CsvLine(const CsvLine&) = delete;

    const std::vector<std::string>& read(std::string_view line) {
        count_ = 0;
        const std::size_t read = csv_parse(&parser_, line.data(), line.size(), field, row, this);
        const bool complete = csv_fini(&parser_, field, row, this) == 0;
        if (read != line.size() || !complete) {
            csv_free(&parser_);
            csv_init(&parser_, CSV_STRICT | CSV_STRICT_FINI | CSV_APPEND_NULL);
            throw BadCell{"", "expected fields with commas between them, found a stray quote"};
        }
        fields_.resize(count_);
        return fields_;
    }

  private:
    static void field(void* text, std::size_t size, void* self) {
        auto& line = *static_cast<CsvLine*>(self);
        if (line.fields_.size() <= line.count_) line.fields_.emplace_back();
        line.fields_[line.count_++].assign(static_cast<const char*>(text), size);
    }
    static void row(int, void*) {}

    csv_parser parser_{};
    std::vector<std::string> fields_;
    std::size_t count_ = 0;
};

bool is_nothing(std::string_view cell) {
    for (const char* word : {"", "None", "none", "null", "NULL", "NaN", "nan"}) {
        if (cell == word) return true;
    }
    return false;
}

class CsvReader : public TraceFormatReader {
  public:
    explicit CsvReader(Duration time_unit) : time_unit_(time_unit) {}

    char comment() const override { return '#'; }
    void header(std::string_view line) override;
    Line line(std::string_view line, TraceRow& row) override;

  private:
    Duration time(const std::vector<std::string>& cells, std::size_t column) const {
        return number_of(cells[column], columns_[column], time_unit_);
    }
    Duration instant(const std::vector<std::string>& cells, std::size_t column) const {
        const std::string& cell = cells[column];
        return looks_like_time_stamp(cell) ? time_stamp(cell, columns_[column])
                                           : time(cells, column);
    }
    void take_out_wait(const std::vector<std::string>& cells, TraceRow& row) const;

    Duration time_unit_;
    CsvLine fields_;
    std::vector<std::string> columns_;
    std::size_t gpus_ = 0;
    std::size_t submit_ = 0;
    std::size_t duration_ = 0;
    std::optional<std::size_t> id_, user_, partition_, limit_, priority_, start_, end_;
};

void CsvReader::header(std::string_view line) {
    columns_ = fields_.read(line);
    gpus_ = need_column(columns_, "how many GPUs", {"gpus", "num_gpus", "num_gpu", "gpu_num"});
    submit_ = need_column(columns_, "when a job is submitted", {"submit_time", "submit"});
    duration_ = need_column(columns_, "how long a job runs", {"duration", "runtime", "run_time"});
    id_ = find_column(columns_, {"job_id", "id"});
    user_ = find_column(columns_, {"user"});
    partition_ = find_column(columns_, {"vc", "partition"});
    limit_ = find_column(columns_, {"time_limit", "limit"});
    priority_ = find_column(columns_, {"priority"});
    start_ = find_column(columns_, {"start_time", "start"});
    end_ = find_column(columns_, {"end_time", "end"});
}

// Where the duration is from submission to end, as in Acme's trace of Kalos, it ran from start to end.
void CsvReader::take_out_wait(const std::vector<std::string>& cells, TraceRow& row) const {
    if (!start_ || !end_ || is_nothing(cells[*start_])) return;
    StreamJob& job = row.job;
    const Duration start = instant(cells, *start_);
    const Duration end = instant(cells, *end_);
    const auto is_duration = [&](Duration time) {
        const Duration off = time > job.duration ? time - job.duration : job.duration - time;
        return off <= time_unit_;
    };
    if (end < start || is_duration(end - start) || !is_duration(end - job.submit)) return;
    job.duration = end - start;
    row.wait_in_duration = true;
}

Line CsvReader::line(std::string_view line, TraceRow& row) {
    const std::vector<std::string>& cells = fields_.read(line);
    if (cells.size() != columns_.size()) {
        throw BadCell{"",
                      fmt::format("expected {} fields, found {}", columns_.size(), cells.size())};
    }
    StreamJob& job = row.job;
    job.gpus = whole_number(cells[gpus_], columns_[gpus_], 0, job_gpus_max);
    job.submit = instant(cells, submit_);
    if (start_ && is_nothing(cells[*start_]) && is_nothing(cells[duration_])) {
        return Line::never_started;
    }
    if (job.gpus == 0) return Line::without_gpus;
    if (start_ && end_ && !is_nothing(cells[*start_]) && is_nothing(cells[*end_])) {
        return Line::still_running;
    }
    job.duration = time(cells, duration_);
    take_out_wait(cells, row);
    job.id = id_ ? leading_number(cells[*id_]) : 0;
    row.id = id_ ? cells[*id_] : std::string_view();
    if (user_) row.user = cells[*user_];
    if (partition_) row.partition = cells[*partition_];
    if (limit_ && !cells[*limit_].empty()) job.limit = time(cells, *limit_);
    if (priority_) {
        job.priority = whole_number(cells[*priority_], columns_[*priority_], -1'000'000'000'000,
                                    1'000'000'000'000);
    }
    return Line::job;
}

}  // namespace

std::unique_ptr<TraceFormatReader> make_csv_reader(Duration time_unit) {
    return std::make_unique<CsvReader>(time_unit);
}

}  // namespace railyard
