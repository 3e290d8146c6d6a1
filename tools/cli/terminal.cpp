#include "tools/cli/terminal.h"

#include <fmt/format.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>

#include "sim/units.h"
#include "tools/program/program.h"

namespace railyard {

bool stdout_is_terminal() {
    return isatty(STDOUT_FILENO) == 1;
}
bool stderr_is_terminal() {
    return isatty(STDERR_FILENO) == 1;
}

std::string coloured(std::string_view text, Colour colour) {
    static const bool on = stdout_is_terminal() && std::getenv("NO_COLOR") == nullptr;
    if (!on || colour == Colour::plain) return std::string(text);
    static constexpr const char* codes[] = {"0", "1", "2", "32", "33", "31", "34"};
    return fmt::format("\033[{}m{}\033[0m", codes[static_cast<int>(colour)], text);
}

void print_note(std::string_view text) {
    fmt::print("  {}\n", coloured(text, Colour::dim));
}

namespace {

// Columns that the text takes: escape sequences take none, a UTF-8 character one.
std::size_t display_width(std::string_view text) {
    std::size_t width = 0;
    for (std::size_t i = 0; i < text.size(); ++i) {
        if (text[i] == '\033') {
            while (i < text.size() && text[i] != 'm') ++i;
        } else if ((static_cast<unsigned char>(text[i]) & 0xc0) != 0x80) {
            ++width;
        }
    }
    return width;
}

// How wide the terminal is; a pipe has no end.
std::size_t stdout_columns() {
    winsize size{};
    const bool known = stdout_is_terminal() && ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0;
    return known && size.ws_col > 0 ? size.ws_col : SIZE_MAX;
}

std::atomic<bool> shown{false};  // some Progress

// "40 s left", "12 min left", "3 h 20 min left"; before something is done, "5 s gone".
std::string left_text(double seconds_gone, double fraction) {
    if (fraction <= 0) return fmt::format(", {:.0f} s gone", seconds_gone);
    constexpr double minute = 60;
    constexpr double shown_in_seconds = 100;
    const double left = seconds_gone * (1 - fraction) / fraction;
    if (left < shown_in_seconds) return fmt::format(", {:.0f} s left", left);
    const auto minutes = static_cast<std::int64_t>(std::ceil(left / minute));
    if (minutes < 60) return fmt::format(", {} min left", minutes);
    return fmt::format(", {} h {} min left", minutes / 60, minutes % 60);
}

}  // namespace

std::string Table::text(std::string_view indent) const {
    std::vector<std::size_t> widths;
    for (std::size_t c = 0; c < columns_.size(); ++c) {
        std::size_t width = display_width(columns_[c].title);
        for (const auto& row : rows_) width = std::max(width, display_width(row[c]));
        widths.push_back(width);
    }
    // What a terminal has no room for goes below, beside the first column again.
    static const std::size_t room = stdout_columns();
    std::vector<std::vector<std::size_t>> blocks = {{0}};
    std::size_t used = indent.size() + widths[0];
    for (std::size_t c = 1; c < widths.size(); ++c) {
        if (used + 2 + widths[c] > room && blocks.back().size() > 1) {
            blocks.push_back({0});
            used = indent.size() + widths[0];
        }
        used += 2 + widths[c];
        blocks.back().push_back(c);
    }
    std::vector<std::string> titles;
    for (const Column& column : columns_) titles.push_back(column.title);
    const bool titled = std::ranges::any_of(titles, [](const auto& t) { return !t.empty(); });
    std::string out;
    for (const std::vector<std::size_t>& block : blocks) {
        const auto put = [&](const std::vector<std::string>& cells, Colour colour) {
            std::string line(indent);
            for (const std::size_t c : block) {
                const std::string padding(widths[c] - display_width(cells[c]), ' ');
                const std::string cell = coloured(cells[c], colour);
                if (c > 0) line += "  ";
                line += columns_[c].align == Align::right ? padding + cell : cell + padding;
            }
            line.erase(line.find_last_not_of(' ') + 1);
            out += line + "\n";
        };
        if (!out.empty()) out += "\n";
        if (titled) put(titles, Colour::dim);
        for (const auto& row : rows_) put(row, Colour::plain);
    }
    return out;
}

std::string percent(double fraction) {
    return fmt::format("{:.2f} %", fraction * 100);
}

std::string grouped(double value) {
    const std::string digits = fmt::format("{:.0f}", value);
    std::string out;
    for (std::size_t i = 0; i < digits.size(); ++i) {
        if (i > 0 && (digits.size() - i) % 3 == 0) out += ',';
        out += digits[i];
    }
    return out;
}

std::string counted(std::size_t count, std::string_view noun) {
    return fmt::format("{} {}{}", count, noun, count == 1 ? "" : "s");
}

std::string time_text(double s) {
    return std::isfinite(s) ? to_text(from_seconds(s)) : "-";
}

std::string bar(double fraction, int width) {
    static constexpr const char* eighths[] = {"", "▏", "▎", "▍", "▌", "▋", "▊", "▉"};
    const int filled = static_cast<int>(std::lround(std::clamp(fraction, 0.0, 1.0) * width * 8));
    std::string out;
    for (int i = 0; i < filled / 8; ++i) out += "█";
    return out + eighths[filled % 8];
}

Progress::Progress(std::string label)
    : label_(std::move(label)),
      began_(now_seconds()),
      visible_(stderr_is_terminal() && !shown.exchange(true)) {
    if (!visible_) return;
    ticker_ = std::jthread([this](const std::stop_token& over) {
        std::unique_lock lock(lock_);
        while (!over_.wait_for(lock, over, std::chrono::seconds(1), [] { return false; }) &&
               !over.stop_requested()) {
            draw();
        }
    });
}

Progress::~Progress() {
    if (!visible_) return;
    ticker_ = {};  // stops it
    if (drawn_ > 0) std::fputs("\r\033[K", stderr);
    shown = false;
}

void Progress::update(std::int64_t done, std::int64_t total) {
    constexpr double seconds_between_drawings = 0.1;
    if (!visible_ || total <= 0) return;
    const std::scoped_lock lock(lock_);
    done_ = done;
    total_ = total;
    if (now_seconds() - drawn_ >= seconds_between_drawings) draw();
}

void Progress::draw() {
    drawn_ = now_seconds();
    const double fraction =
        total_ > 0 ? static_cast<double>(done_) / static_cast<double>(total_) : 0;
    constexpr int width = 30;
    const int filled = static_cast<int>(fraction * width);
    fmt::print(stderr, "\r\033[K{} [{:{}}] {}{}", label_,
               std::string(static_cast<std::size_t>(filled), '#'), width,
               total_ > 0 ? fmt::format("{}/{}", done_, total_) : std::string("0"),
               left_text(drawn_ - began_, fraction));
    std::fflush(stderr);
}

}  // namespace railyard
