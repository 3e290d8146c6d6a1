#pragma once
// What a TOML file says of a table of measurements, in [table]: which column is which key of a scenario,
// which rows differ, and which of a table's figures the program is held to. tests/validation/README.md has
// the language.

#include <functional>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "sim/config.h"
#include "sim/text.h"
#include "tools/program/csv_table.h"
#include "tools/program/expression.h"
#include "tools/program/pattern.h"
#include "tools/study/axis.h"
#include "tools/verify/tables.h"

namespace railyard::described {

// Ways to write the same: what a pattern finds in a column's text, which is then in small letters, is written
// as `as`.
struct Same {
    std::string column;
    std::vector<std::string> patterns;
    std::string as;
};

// A row's columns, those that the description derives included.
class Columns {
  public:
    // `unsaid`: texts, in small letters, that are as an empty field.
    Columns(const CsvRow& row, const std::vector<std::string>& unsaid,
            const std::map<std::string, std::string>& otherwise, const std::vector<Same>& same);
    bool has(const std::string& column) const { return row_.contains(column); }
    const std::string& text(const std::string& column) const {
        return Fields(row_).text(column.c_str());
    }
    double figure(const std::string& column) const { return Fields(row_).figure(column.c_str()); }
    void add(const std::string& column, std::string text) { row_[column] = std::move(text); }

  private:
    CsvRow row_;
};

// The value of an expression over columns; throws RowError for what is no finite number.
double value_of(const Expression& expression, const std::function<double(const std::string&)>& of);

std::string number_text(double value);

// "{params_B}B on {gpus / 8} nodes": a column's text, or arithmetic over columns.
class Template {
  public:
    explicit Template(const std::string& text) : written_(text) {  // throws ExpressionError
        std::size_t at = 0;
        while (at < text.size()) {
            const std::size_t open = std::min(text.find('{', at), text.size());
            if (open > at) parts_.emplace_back(text.substr(at, open - at));
            if (open == text.size()) break;
            const std::size_t close = text.find('}', open);
            if (close == std::string::npos) throw ExpressionError{"a { has no }"};
            parts_.emplace_back(Expression(text.substr(open + 1, close - open - 1)));
            at = close + 1;
        }
    }

    // The first column that it asks for; "" without one.
    std::string column() const {
        for (const auto& part : parts_) {
            const auto* expression = std::get_if<Expression>(&part);
            if (expression != nullptr && !expression->names().empty())
                return expression->names()[0];
        }
        return {};
    }
    const std::string& written() const { return written_; }
    // All that its braces ask for.
    std::vector<std::string> columns() const {
        std::vector<std::string> out;
        for (const auto& part : parts_) {
            const auto* expression = std::get_if<Expression>(&part);
            if (expression == nullptr) continue;
            out.push_back(expression->text());  // a column may have any name
            out.insert(out.end(), expression->names().begin(), expression->names().end());
        }
        return out;
    }
    std::string text(const Columns& row) const {
        std::string out;
        for (const auto& part : parts_) {
            const auto* literal = std::get_if<std::string>(&part);
            out += literal != nullptr ? *literal : filled(std::get<Expression>(part), row);
        }
        return out;
    }
    // As TOML: a number or a truth value as such, everything else as a text.
    std::string toml(const Columns& row) const {
        const Value value = Value::of(text(row));
        const bool alone = parts_.size() == 1 && std::holds_alternative<Expression>(parts_[0]);
        const char* plain = R"([+-]?\d+(\.\d+)?([eE][+-]?\d+)?|true|false)";
        return alone && !match_pattern(value.text, plain).empty() ? value.text : toml_text(value);
    }

  private:
    static std::string filled(const Expression& expression, const Columns& row) {
        if (row.has(expression.text())) {
            const std::string& field = row.text(expression.text());
            if (field.empty() || field == "-") {
                throw RowError{expression.text(), "expected a value, found none"};
            }
            const bool whole = !match_pattern(field, R"(\d{1,3}(,\d{3})+|\d+\.0+)").empty();
            return whole ? number_text(row.figure(expression.text())) : field;  // 8,192 and 8192.0
        }
        return number_text(
            value_of(expression, [&](const auto& name) { return row.figure(name); }));
    }

    std::string written_;
    std::vector<std::variant<std::string, Expression>> parts_;
};

// A key of the scenario, and what a row makes of it.
struct KeyTemplate {
    std::string key;
    std::string literal;  // TOML, of a value that is no text
    std::optional<Template> value;

    std::string setting(const Columns& row) const {
        return key + "=" + (value ? value->toml(row) : literal);
    }
};

// Whether a text has the word somewhere, in small or capital letters, and does not deny it there: "no word",
// "without that or word", "word=false", "words off", "compared with word", "all but word". One of up to three
// letters stands alone: overlapped has no pp.
bool has_word(const std::string& text, const std::string& word);

// Which rows something is for: all, unless it says more.
struct RowTest {
    std::string column;
    std::vector<std::string> is;
    std::vector<std::string> contains;
    std::vector<std::string> lacks;
    std::optional<Expression> condition;

    bool holds(const Columns& row) const {
        if (!column.empty()) {
            const std::string& field = row.text(column);
            const auto has = [&](const std::string& word) { return has_word(field, word); };
            const bool found =
                std::ranges::find(is, field) != is.end() || std::ranges::any_of(contains, has);
            const bool any = is.empty() && contains.empty();
            if ((!any && !found) || std::ranges::any_of(lacks, has)) return false;
        }
        return !condition ||
               value_of(*condition, [&](const auto& name) { return row.figure(name); }) != 0;
    }
};

// Releases of a series, of which a text names one: "nemo_25.09" is 2509.
struct Releases {
    std::vector<std::string> refines;  // values of words that leave the release open
    std::string pattern;  // its groups, one after the other, are the release; over small letters
    std::vector<std::pair<double, std::string>> from;  // what the key is from each on

    struct Named {
        std::size_t length = 0;  // of what the pattern found
        const std::string* value;
    };
    // The newest that is not later; nothing where the text names none, or one before all.
    std::optional<Named> named(const std::string& text) const;
};

// What the words of a row's texts decide, a key or a column: of the first of the columns that has any, the
// longest; a release is as long as what the text has of it, and stands for a word that leaves it open,
// whatever the column. With separators each piece of the first column's text is a word, as a regular
// expression, and the key is a list of what they say; what says nothing of it is an empty text.
struct Words {
    std::string key;
    std::string name;  // of a column that has what they say; empty: none
    std::vector<std::string> columns;
    std::optional<std::string> otherwise;
    std::string separators;
    std::vector<std::pair<std::string, std::string>> values;  // by word
    std::vector<Releases> releases;

    // What the column `name` has.
    std::string said(const Columns& row) const;
    // Key and value; "" where nothing is said or there is no key. RowError for a word that isn't known.
    std::string setting(const Columns& row) const;
    // Without a key: pieces that are no word.
    std::vector<std::string> unread(const Columns& row) const;

    // Nothing where there is neither a word nor what to take otherwise.
    const std::string* value(const Columns& row) const;

  private:
    // What a release says that a column names and that makes `word` exact; else `word`.
    const std::string* refined(const std::string* word, const Columns& row) const;
    // Hands what each piece says to `use`, and gives those that are no word.
    std::vector<std::string> each_piece(
        const Columns& row, const std::function<void(const std::string& said)>& use) const;
};

// A column that is made of a text's part, or of the words in it.
struct Part {
    std::string name;
    std::string column;
    std::string pattern;
    Words words;
    std::string otherwise;

    std::string text(const Columns& row) const {
        if (pattern.empty()) {
            const std::string* value = words.value(row);
            return value != nullptr ? *value : otherwise;
        }
        const Found found = find_pattern(row.text(column), pattern.c_str());
        return found.size() > 1 && !found[1].empty() ? found[1] : otherwise;
    }
};

// A column with the sum of another over rows that have the same text in a third: of all, without one.
struct Sum {
    std::string name;
    std::string column;
    std::string among;
    RowTest rows;
};

// The fastest of these values that is possible.
struct Open {
    std::string key;
    std::vector<std::string> values;  // TOML
};

struct Change {
    RowTest rows;
    std::vector<KeyTemplate> set;
    std::vector<Open> open;
    bool skip = false;
    std::string refuse;  // why such rows are not expressed
    std::string remark;  // what is wrong with such rows, which run all the same
};

struct Expectation {
    std::string quantity;
    RowTest rows;
    std::optional<Expression> published;
    std::optional<Template> simulated;  // braces have a row's text before it is arithmetic
    Published as = Published::figure;

    Expression simulated_of(const Columns& row) const {
        try {
            return Expression(simulated->text(row));
        } catch (const ExpressionError& error) {
            throw RowError{simulated->column(), "can't be computed: " + error.message};
        }
    }
};

struct Description {
    Columns columns_of(const CsvRow& row) const { return {row, unsaid, otherwise, same}; }
    // Those that `read` names, and all that something here asks for.
    std::vector<std::string> columns_read() const;

    std::string file;
    std::string text;
    std::string title;
    std::optional<Template> row;
    std::map<std::string, std::string> otherwise;
    std::vector<std::string> unsaid;
    std::vector<Same> same;
    std::vector<Part> parts;
    std::vector<Sum> sums;
    std::vector<KeyTemplate> set;
    std::vector<Words> words;
    std::vector<Change> changes;
    std::vector<KeyTemplate> base;
    std::vector<Open> open;
    std::vector<Expectation> expected;
    std::vector<Tolerance> tolerances;
    std::map<std::string, Template>
        nccl_tests;  // what says a run of nccl-tests, by name; empty: rows are scenarios
    std::optional<RowTest> memory_known;  // of rows of a stack; none: all
    bool every_row = false;               // is to be held to something
    std::vector<std::string> read;        // columns; empty: others are no slip
};

// Throws ScenarioError with all that is wrong of the file for this table.
Description read_description(const std::string& file, const CsvTable& table);

// What may stand in [table], as it is read.
std::vector<SchemaRow> schema();

}  // namespace railyard::described
