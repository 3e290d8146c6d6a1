#include "tools/program/csv_table.h"

#include <csv.h>
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <sstream>
#include <stdexcept>

#include "sim/cancel.h"
#include "sim/config.h"
#include "sim/text.h"
#include "tools/program/pattern.h"

namespace railyard {

namespace {

constexpr double whole_max = 9e15;  // a double counts by ones up to here

struct Collector {
    struct Field {
        std::string text;
        Position at;
    };
    std::vector<std::vector<Field>> rows{1};
    Position next;  // where the field that is being read begins

    static void field(void* text, std::size_t size, void* self) {
        auto& c = *static_cast<Collector*>(self);
        // Visible, because people read it.
        c.rows.back().push_back({visible({static_cast<const char*>(text), size}), c.next});
    }
    static void row(int, void* self) { static_cast<Collector*>(self)->rows.emplace_back(); }
};

// A comma, or what spreadsheets write in its place: by what the header has outside quotes.
unsigned char separator_of(std::string_view header) {
    const auto times = [&](char separator) {
        bool quoted = false;
        std::int64_t count = 0;
        for (const char c : header) {
            if (c == '"') quoted = !quoted;
            count += c == separator && !quoted ? 1 : 0;
        }
        return count;
    };
    return times(',') > 0 ? ',' : times(';') > 0 ? ';' : times('\t') > 0 ? '\t' : ',';
}

// The fields of each line, and into the table its '#' lines. Returns what separates fields.
unsigned char collect(std::istream& lines, CsvTable& table, Collector& collected) {
    csv_parser parser;
    csv_init(&parser, 0);
    int number = 0;
    unsigned char separator = 0;
    for (std::string line; std::getline(lines, line);) {
        ++number;
        if (line.starts_with('#')) {
            table.about += line + '\n';
            continue;
        }
        if (separator == 0) {
            if (trimmed(line).empty() || line == "\r") continue;
            csv_set_delim(&parser, separator = separator_of(line));
        }
        line += '\n';
        collected.next = {number, 1};
        // By the character: what is handed over with one, the field that it ends, began before it.
        for (std::size_t i = 0; i < line.size(); ++i) {
            const std::size_t had = collected.rows.back().size();
            csv_parse(&parser, &line[i], 1, Collector::field, Collector::row, &collected);
            if (collected.rows.back().size() > had) {
                collected.next = {number, static_cast<int>(i) + 2};
            }
        }
    }
    csv_fini(&parser, Collector::field, Collector::row, &collected);
    csv_free(&parser);
    return separator;
}

void add_header(const std::vector<Collector::Field>& fields, CsvTable& table) {
    for (const Collector::Field& field : fields) {
        const bool known = std::ranges::find(table.columns, field.text) != table.columns.end();
        if (known && !field.text.empty()) {
            throw ScenarioError(fmt::format("{}:{}:{}: another column is called {}", table.path,
                                            field.at.line, field.at.column, field.text));
        }
        table.columns.push_back(field.text);
    }
}

}  // namespace

const std::string& Fields::text(const char* column) const {
    static const std::string empty;
    const auto found = row_.find(column);
    return found == row_.end() ? empty : found->second;
}

double Fields::number(const char* column) const {
    const std::string& field = text(column);
    if (field.empty() || field == "-") return 0;
    // As people print them: 473,600; 57 %.
    std::string digits = field;
    if (!match_pattern(field, R"([+-]?\d{1,3}(,\d{3})+(\.\d*)?)").empty()) std::erase(digits, ',');
    char* end = nullptr;
    const double value = std::strtod(digits.c_str(), &end);
    const std::string_view rest = trimmed(std::string_view(end));
    if (end == digits.c_str() || (!rest.empty() && rest != "%") || !std::isfinite(value)) {
        throw RowError{column, fmt::format("expected a number, found '{}'", field)};
    }
    return value;
}

double Fields::figure(const char* column) const {
    if (text(column).empty() || text(column) == "-") {
        throw RowError{column, "expected a number, found none"};
    }
    return number(column);
}

std::int64_t Fields::integer(const char* column) const {
    const double value = number(column);
    if (std::abs(value) > whole_max) {
        throw RowError{column, fmt::format("expected a count, found '{}'", text(column))};
    }
    return std::llround(value);
}

std::vector<std::string> Fields::groups(const char* column, const char* pattern,
                                        const char* like) const {
    const std::string& field = text(column);
    const Found found = match_pattern(field, pattern);
    if (found.empty()) {
        throw RowError{column, fmt::format("expected a text like '{}', found '{}'", like, field)};
    }
    return {found.begin() + 1, found.end()};
}

CsvTable read_csv_table(const std::string& path) {
    CsvTable table;
    table.path = path;
    table.name = std::filesystem::path(path).stem().string();
    table.folder = std::filesystem::path(path).parent_path().string();
    Collector collected;
    std::istringstream lines(without_byte_order_mark(read_file(path)));
    const unsigned char separator = collect(lines, table, collected);
    for (const std::vector<Collector::Field>& fields : collected.rows) {
        if (fields.empty()) continue;
        if (table.columns.empty()) {
            add_header(fields, table);
            continue;
        }
        if (fields.size() > table.columns.size()) {
            throw ScenarioError(fmt::format("{}: row {} has {} fields under {} columns", path,
                                            table.rows.size() + 1, fields.size(),
                                            table.columns.size()));
        }
        CsvRow row;
        std::vector<Position> places;
        for (std::size_t i = 0; i < table.columns.size(); ++i) {
            std::string& cell = row[table.columns[i]] = i < fields.size() ? fields[i].text : "";
            // Spreadsheets write these where the comma is the decimal point.
            const bool decimal_comma =
                separator == ';' && !match_pattern(cell, R"([+-]?\d+,\d+)").empty();
            if (decimal_comma) std::ranges::replace(cell, ',', '.');
            places.push_back(i < fields.size() ? fields[i].at : fields.front().at);
        }
        table.rows.push_back(std::move(row));
        table.places.push_back(std::move(places));
    }
    return table;
}

void each_row(const CsvTable& table, std::vector<Diagnostic>& unused,
              const std::function<void(const Fields&)>& use) {
    for (std::size_t i = 0; i < table.rows.size(); ++i) {
        heed_cancel();
        try {
            use(Fields(table.rows[i]));
        } catch (const RowError& e) {
            const auto column = std::ranges::find(table.columns, e.column);
            const bool known = column != table.columns.end();
            const std::size_t place = known ? column - table.columns.begin() : 0;
            unused.push_back({table.path, table.places[i][place], e.column, e.message, ""});
        } catch (const std::out_of_range&) {  // of digits within a text
            unused.push_back({table.path, table.places[i][0], table.columns[0],
                              "a number in this row is larger than any can be", ""});
        }
    }
}

}  // namespace railyard
