#pragma once
// A job trace while its lines are read, and the cells that several formats have.

#include <initializer_list>
#include <memory>

#include "models/scheduler/job_trace.h"

namespace railyard {

// A cell that is not what it should be.
struct BadCell {
    std::string column;
    std::string message;
};

// A job as a line tells it.
struct TraceRow {
    StreamJob job;
    std::string_view id;
    std::string_view user;
    std::string_view partition;
    std::string_view
        gang;  // whose part it is, which starts with the others; empty: a job by itself
    std::int64_t jobs = 1;          // that have not started, of a line for several
    bool wait_in_duration = false;  // as the file has it; `job` has not
};

enum class Line : std::uint8_t { job, without_gpus, never_started, still_running, step };

// Reads the lines of one format. Throws BadCell.
class TraceFormatReader {
  public:
    virtual ~TraceFormatReader() = default;
    // The line that names the columns. Formats without one say that they have none.
    virtual bool has_header() const { return true; }
    virtual void header(std::string_view /*line*/) {}
    virtual Line line(std::string_view line, TraceRow& row) = 0;
    // Whether the file says which jobs had ended.
    virtual bool tells_ends() const { return true; }
    virtual char comment() const = 0;  // lines that begin so are passed over
};

std::unique_ptr<TraceFormatReader> make_csv_reader(Duration time_unit);
std::unique_ptr<TraceFormatReader> make_sacct_reader();
std::unique_ptr<TraceFormatReader> make_swf_reader();

// Cells. `column` is for the message.
std::int64_t whole_number(std::string_view cell, std::string_view column, std::int64_t least,
                          std::int64_t most);
// The number that an id such as "123_4" begins with; 0 without one.
std::int64_t leading_number(std::string_view id);
// A number >= 0 of `unit`, whole or decimal.
Duration number_of(std::string_view cell, std::string_view column, Duration unit);
// "90", "12:30", "1:02:03" or "4-01:02:03": days, hours, minutes, seconds.
Duration elapsed_time(std::string_view cell, std::string_view column);
// "2024-05-01T12:00:03" or with a blank, with an offset such as +08:00 or without; since 1970.
Duration time_stamp(std::string_view cell, std::string_view column);
bool looks_like_time_stamp(std::string_view cell);

// The place of the first of `names` among the columns, or nothing.
std::optional<std::size_t> find_column(const std::vector<std::string>& columns,
                                       std::initializer_list<std::string_view> names);
// The same, or BadCell that says what it is for.
std::size_t need_column(const std::vector<std::string>& columns, std::string_view what,
                        std::initializer_list<std::string_view> names);

constexpr std::int64_t job_gpus_max = 1'000'000'000;

}  // namespace railyard
