#pragma once
// What people look at: colour, tables that line up, bars, a progress line. None of it in a pipe.

#include <condition_variable>
#include <cstdint>
#include <functional>
#include <mutex>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

namespace railyard {

// Colour and progress are for terminals. NO_COLOR turns colour off.
bool stdout_is_terminal();
bool stderr_is_terminal();

enum class Colour : std::uint8_t { plain, bold, dim, green, yellow, red, blue };
// `text` in a colour when stdout shows colours.
std::string coloured(std::string_view text, Colour colour);
// A dim line, for what explains.
void print_note(std::string_view text);

// Rows of cells under a header, columns padded to their widest cell. In a terminal that is narrower the last
// columns stand below.
class Table {
  public:
    enum class Align : std::uint8_t { left, right };
    struct Column {
        // A title of the program's own; one that begins with ">" is of numbers, which stand on the right.
        Column(const char* marked)
            : title(marked + (*marked == '>')),
              align(*marked == '>' ? Align::right : Align::left) {}
        Column(std::string given, Align side = Align::left)
            : title(std::move(given)), align(side) {}
        std::string title;
        Align align;
    };
    explicit Table(std::vector<Column> columns) : columns_(std::move(columns)) {}
    void add(std::vector<std::string> cells) { rows_.push_back(std::move(cells)); }
    bool empty() const { return rows_.empty(); }
    std::string text(std::string_view indent = "  ") const;

  private:
    std::vector<Column> columns_;
    std::vector<std::vector<std::string>> rows_;
};

std::string percent(double fraction);  // "12.34 %"
std::string grouped(double value);     // 1234567 as "1,234,567"; value >= 0
std::string counted(std::size_t count, std::string_view noun);  // "1 replica", "20 replicas"
std::string time_text(double seconds);  // "2.53 s"; "-" for what is not a number

// `fraction` of `width` columns, to an eighth of a column.
std::string bar(double fraction, int width);

// One line on stderr that is rewritten: "label [####    ] 12/30, 3 s left"; while nothing is done, how many
// seconds are gone. Shows nothing in a pipe, nor while another line is shown.
class Progress {
  public:
    explicit Progress(std::string label);
    ~Progress();
    Progress(const Progress&) = delete;
    Progress& operator=(const Progress&) = delete;
    void update(std::int64_t done, std::int64_t total);
    // The same, for whoever counts.
    std::function<void(std::int64_t, std::int64_t)> updates() {
        return [this](std::int64_t done, std::int64_t total) { update(done, total); };
    }

  private:
    void draw();  // with the lock

    std::string label_;
    double began_;
    double drawn_ = 0;
    std::int64_t done_ = 0;
    std::int64_t total_ = 0;
    bool visible_;
    std::mutex lock_;
    std::condition_variable_any over_;
    std::jthread ticker_;  // draws it each second
};

}  // namespace railyard
