#include "tools/verify/described_table.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <cmath>
#include <filesystem>
#include <set>
#include <thread>
#include <utility>
#include <variant>

#include "sim/cancel.h"
#include "tools/program/expression.h"
#include "tools/program/installation.h"
#include "tools/program/pattern.h"
#include "tools/program/program.h"
#include "tools/study/axis.h"
#include "tools/study/study.h"
#include "tools/study/trials.h"

namespace railyard {

namespace {

// A row's columns, those that the description derives included.
class Columns {
  public:
    Columns(const CsvRow& row, const std::map<std::string, std::string>& otherwise) : row_(row) {
        for (const auto& [column, text] : otherwise) {
            std::string& field = row_[column];
            if (field.empty() || field == "-") field = text;
        }
    }
    bool has(const std::string& column) const { return row_.contains(column); }
    const std::string& text(const std::string& column) const {
        return Fields(row_).text(column.c_str());
    }
    double figure(const std::string& column) const { return Fields(row_).figure(column.c_str()); }
    void add(const std::string& column, std::string text) { row_[column] = std::move(text); }

  private:
    CsvRow row_;
};

double value_of(const Expression& expression, const std::function<double(const std::string&)>& of) {
    const double value = expression.value(of);
    if (!std::isfinite(value)) {
        throw RowError{expression.names().empty() ? "" : expression.names()[0],
                       fmt::format("{} is no finite number", expression.text())};
    }
    return value;
}

std::string number_text(double value) {
    return fmt::format("{:.15g}", value);
}

// "{params_B}B on {gpus / 8} nodes": a column's text, or arithmetic over columns.
class Template {
  public:
    explicit Template(const std::string& text) {  // throws ExpressionError
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
        Value value;
        value.kind = Value::Kind::string;
        value.text = text(row);
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
            return field;
        }
        return number_text(
            value_of(expression, [&](const auto& name) { return row.figure(name); }));
    }

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

// Which rows something is for: all, unless it says more.
struct RowTest {
    std::string column;
    std::vector<std::string> is;
    std::vector<std::string> contains;
    std::optional<Expression> condition;

    bool holds(const Columns& row) const {
        if (!column.empty()) {
            const std::string& field = row.text(column);
            const bool is_one = std::ranges::find(is, field) != is.end();
            const bool has_one = std::ranges::any_of(
                contains, [&](const std::string& word) { return mentions(field, word); });
            if (!is_one && !has_one) return false;
        }
        return !condition ||
               value_of(*condition, [&](const auto& name) { return row.figure(name); }) != 0;
    }
};

// A column that is made of a text's part.
struct Part {
    std::string name;
    std::string column;
    std::string pattern;
    std::string otherwise;
};

struct Change {
    RowTest rows;
    std::vector<KeyTemplate> set;
    bool skip = false;
};

// Of these values the fastest that is possible.
struct Open {
    std::string key;
    std::vector<std::string> values;  // TOML
};

struct Expectation {
    std::string quantity;
    RowTest rows;
    std::optional<Expression> published;
    std::optional<Expression> simulated;
    Published as = Published::figure;
};

struct Description {
    std::string file;
    std::string text;
    std::string title;
    std::optional<Template> row;
    std::map<std::string, std::string> otherwise;
    std::vector<Part> parts;
    std::vector<KeyTemplate> set;
    std::vector<Change> changes;
    std::vector<KeyTemplate> base;
    std::vector<Open> open;
    std::vector<Expectation> expected;
};

// ---- reading [table] ----

class DescriptionReader {
  public:
    // Describes its keys into `schema` when that is given, of an empty document. `columns`: of the table.
    DescriptionReader(Description& out, const Document& document, std::vector<std::string> columns,
                      std::vector<SchemaRow>* schema = nullptr)
        : out_(out),
          columns_(std::move(columns)),
          values_(diagnostics_, document.name),
          top_(values_, document.root.find("table"), "table", {}, schema) {}

    void read();
    void raise_if_any() const { diagnostics_.raise_if_any(); }

  private:
    void read_keys(Section& section, const char* key, const char* doc,
                   std::vector<KeyTemplate>& out);
    void read_values(Section& section, Open& open);
    RowTest read_test(Section& section, bool needed);
    void read_open();
    void read_expectation(Section& section);
    void check_key(const Value& at, const std::string& path, const std::string& key);
    void check_columns(Section& section, const char* key, const std::vector<std::string>& names);
    std::optional<Expression> expression(Section& section, const char* key,
                                         const std::string& text);

    Description& out_;
    std::vector<std::string> columns_;
    Diagnostics diagnostics_;
    ValueReader values_;
    Section top_;
};

void DescriptionReader::check_columns(Section& section, const char* key,
                                      const std::vector<std::string>& names) {
    for (const std::string& name : names) {
        if (std::ranges::find(columns_, name) != columns_.end()) continue;
        section.error(key, fmt::format("the table has no column {}", name),
                      did_you_mean(name, columns_));
    }
}

std::optional<Expression> DescriptionReader::expression(Section& section, const char* key,
                                                        const std::string& text) {
    try {
        return Expression(text);
    } catch (const ExpressionError& error) {
        section.error(key, fmt::format("can't be computed: {}", error.message));
        return std::nullopt;
    }
}

void DescriptionReader::check_key(const Value& at, const std::string& path,
                                  const std::string& key) {
    if (const auto help = help_for_unknown_key(key)) {
        values_.error(at.at, path, fmt::format("no scenario has the key {}", key), *help);
    }
}

void DescriptionReader::read_keys(Section& section, const char* key, const char* doc,
                                  std::vector<KeyTemplate>& out) {
    const Value* table = section.open_table(key, doc);
    if (table == nullptr) return;
    for (const auto& [name, value] : table->members) {
        const std::string path = section.path(key) + "." + name;
        check_key(value, path, name);
        KeyTemplate each{name, {}, {}};
        if (value.kind != Value::Kind::string) {
            each.literal = toml_text(value);
        } else {
            try {
                each.value = Template(value.text);
            } catch (const ExpressionError& error) {
                values_.error(value.at, path, fmt::format("can't be computed: {}", error.message));
            }
        }
        out.push_back(std::move(each));
    }
}

RowTest DescriptionReader::read_test(Section& section, bool needed) {
    RowTest test;
    section.read("column", test.column, "A column, whose text decides",
                 {.otherwise = "not looked at"});
    section.read("is", test.is, "It is one of these", {.otherwise = "none"});
    section.read("contains", test.contains, "Or it has one of these in it", {.otherwise = "none"});
    std::string condition;
    section.read("if", condition, "Arithmetic over columns that is not 0: \"gpus > 64\"",
                 {.otherwise = "not looked at"});
    if (!condition.empty()) test.condition = expression(section, "if", condition);
    const bool words = !test.is.empty() || !test.contains.empty();
    if (words == test.column.empty() && section.ok()) {
        section.error("column", words ? "is missing: whose text is it?"
                                      : "needs is = [...] or contains = [...]");
    }
    if (!test.column.empty()) check_columns(section, "column", {test.column});
    if (needed && test.column.empty() && !test.condition && section.ok()) {
        section.error("column", "is missing: which rows?", "column and is, or if");
    }
    return test;
}

void DescriptionReader::read_expectation(Section& section) {
    Expectation e;
    std::string published;
    std::string simulated;
    section.read("quantity", e.quantity, "What it is, with its unit", {.required = true});
    section.read("published", published, "What the table has, as arithmetic over its columns",
                 {.required = true});
    section.read("simulated", simulated,
                 "What it is held to, as arithmetic over the metrics of 'run' and the columns",
                 {.required = true});
    int as = 0;
    section.choose("as", as, {"figure", "at_most", "at_least"},
                   "Whether the table has the figure, or only that it is at most or at least that");
    e.as = static_cast<Published>(as);
    e.rows = read_test(section, false);
    section.finish();
    if (section.describing()) return;
    e.published = expression(section, "published", published);
    e.simulated = expression(section, "simulated", simulated);
    if (e.published) check_columns(section, "published", e.published->names());
    out_.expected.push_back(std::move(e));
}

// A list of any values, which no read() of a section takes.
void DescriptionReader::read_open() {
    const Value* open = top_.open_table("open",
                                        "Keys that the table does not print, each with values: of "
                                        "these the fastest step that is possible");
    if (open == nullptr) return;
    for (const auto& [key, value] : open->members) {
        const std::string path = top_.path("open") + "." + key;
        check_key(value, path, key);
        Open each{key, {}};
        for (const Value& item : value.items) each.values.push_back(toml_text(item));
        if (each.values.empty()) {
            values_.error(value.at, path,
                          fmt::format("expected a list of values, found {}", value.describe()));
        }
        out_.open.push_back(std::move(each));
    }
}

void DescriptionReader::read() {
    std::string source;
    std::string row = "row {row}";
    top_.read("source", source, "Where the measurements are from", {.otherwise = "not said"});
    top_.read("row", row, "A row's name: text with columns in braces, {row} is its number");
    const Value* otherwise = top_.open_table(
        "otherwise", "What a column is where its field is empty, or where there is no such column");
    for (Section& section :
         top_.sections("part", "Columns made of a part of another's text, each a [[table.part]]")) {
        Part part;
        section.read("name", part.name, "The new column", {.required = true});
        section.read("column", part.column, "Of whose text it is a part", {.required = true});
        section.read("pattern", part.pattern, "A regular expression whose first group is the part",
                     {.required = true});
        section.read("otherwise", part.otherwise, "What it is where the pattern finds nothing",
                     {.otherwise = "empty"});
        section.finish();
        if (section.describing()) continue;
        check_columns(section, "column", {part.column});
        columns_.push_back(part.name);
        out_.parts.push_back(std::move(part));
    }
    read_keys(top_, "set",
              "Keys of the scenario, each with text that has columns, or arithmetic over "
              "them, in braces: \"{gpus / 8}\", \"{rate} GB/s\"",
              out_.set);
    read_keys(
        top_, "base",
        "Keys by which a row's base differs, whose metrics are base_step_time and so on: what "
        "a published ratio is over",
        out_.base);
    for (Section& section :
         top_.sections("when", "What holds for some rows only, each a [[table.when]]")) {
        Change change;
        change.rows = read_test(section, true);
        read_keys(section, "set", "As table.set, and instead of it", change.set);
        section.read("skip", change.skip, "Nothing here can say what these rows say");
        section.finish();
        out_.changes.push_back(std::move(change));
    }
    read_open();
    for (Section& section :
         top_.sections("expect", "What the program is held to, each a [[table.expect]]")) {
        read_expectation(section);
    }
    if (!top_.has("expect") && !top_.describing()) {
        top_.error("expect", "is missing: what is the program held to?",
                   "[[table.expect]] quantity = \"s per step\", published = \"seconds\", "
                   "simulated = \"step_time\"");
    }
    top_.finish();
    if (top_.describing()) return;
    if (otherwise != nullptr) {
        for (const auto& [column, value] : otherwise->members) {
            out_.otherwise[column] =
                value.kind == Value::Kind::string ? value.text : toml_text(value);
        }
    }
    try {
        out_.row = Template(row);
    } catch (const ExpressionError& error) {
        top_.error("row", fmt::format("can't be computed: {}", error.message));
    }
}

Description read_description(const std::string& file, const CsvTable& table) {
    Description out;
    out.file = file;
    out.text = read_file(file);
    Diagnostics diagnostics;
    const Document document = parse_document(out.text, file, diagnostics);
    diagnostics.raise_if_any();
    if (document.root.find("table") == nullptr) {
        throw ScenarioError(fmt::format("{} has no [table]: it describes no measurements", file),
                            "tests/validation/README.md has the language");
    }
    const Value* title = document.root.find("title");
    out.title = title != nullptr ? title->text : file;
    std::vector<std::string> columns = table.columns;
    columns.emplace_back("row");
    if (const Value* section = document.root.find("table")) {
        const Value* otherwise = section->find("otherwise");
        for (const Member& m : otherwise != nullptr ? otherwise->members : std::vector<Member>()) {
            columns.push_back(m.key);
        }
    }
    DescriptionReader reader(out, document, std::move(columns));
    reader.read();
    reader.raise_if_any();
    return out;
}

// ---- running rows ----

// "memory_optimizer_state", as expressions have it.
std::string memory_name(const std::string& component) {
    std::string out = "memory_" + component;
    std::ranges::replace(out, ' ', '_');
    std::ranges::transform(out, out.begin(), [](unsigned char c) { return std::tolower(c); });
    return out;
}

// In bytes of a GPU; nothing for a name that is none of memory's.
std::optional<double> memory_of(const Trial& trial, const std::string& name) {
    if (name == "memory_per_gpu") return total_bytes(trial.memory);
    for (const MemoryUse& use : trial.memory) {
        if (memory_name(use.component) == name) return use.bytes;
    }
    return std::nullopt;
}

constexpr std::string_view of_base = "base_";

// A row that can be said: what it is, and its variants, one for each choice of what is left open. With a
// base the last variant is that.
struct RowRun {
    std::size_t row = 0;
    Columns columns;
    std::string name;
    std::vector<const Expectation*> expected;
    std::size_t first = 0;  // of its variants
    std::size_t count = 0;
};

class TableRuns {
  public:
    TableRuns(const CsvTable& table, const Description& description,
              const std::vector<std::string>& settings, VerifiedTable& out)
        : table_(table), d_(description), settings_(settings), out_(out) {}

    void run() {
        std::size_t number = 0;
        each_row(table_, out_.unused, [&](const Fields&) { add(number++); });
        run_variants();
        out_.rows = table_.rows.size();
        for (const RowRun& row : rows_) {
            finish(row);
            out_.rows += row.expected.size() - 1;
        }
    }

  private:
    void add(std::size_t number);
    void add_variants(std::vector<std::string> chosen, std::size_t open);
    void run_variants();
    void finish(const RowRun& row);
    const Template* source_of(const RowRun& row, const std::string& key) const;
    void refuse(const RowRun& row, const std::string& column, const std::string& why);
    void refuse(const RowRun& row, const Trial& impossible);
    ScenarioError no_such_value(const std::string& name) const;

    const CsvTable& table_;
    const Description& d_;
    const std::vector<std::string>& settings_;
    VerifiedTable& out_;
    std::vector<RowRun> rows_;
    std::vector<ScenarioChanges> variants_;
    std::vector<std::string> metrics_;
    std::vector<std::optional<Trial>> trials_;
};

void TableRuns::add(std::size_t number) {
    RowRun run{number, Columns(table_.rows[number], d_.otherwise), {}, {}, variants_.size(), 0};
    Columns& columns = run.columns;
    columns.add("row", fmt::format("{}", number + 1));
    for (const Part& part : d_.parts) {
        const Found found = find_pattern(columns.text(part.column), part.pattern.c_str());
        columns.add(part.name, found.size() > 1 && !found[1].empty() ? found[1] : part.otherwise);
    }
    for (const Expectation& e : d_.expected) {
        if (e.rows.holds(columns)) run.expected.push_back(&e);
    }
    std::vector<const Change*> changes;
    for (const Change& change : d_.changes) {
        if (change.rows.holds(columns)) changes.push_back(&change);
    }
    // Neither run nor complained of: nobody holds these rows to anything.
    if (run.expected.empty() || std::ranges::any_of(changes, &Change::skip)) return;
    for (const Expectation* e : run.expected) {
        value_of(*e->published, [&](const auto& name) { return columns.figure(name); });
    }
    run.name = d_.row->text(columns);
    std::vector<std::string> settings = settings_;
    for (const KeyTemplate& key : d_.set) settings.push_back(key.setting(columns));
    for (const Change* change : changes) {
        for (const KeyTemplate& key : change->set) settings.push_back(key.setting(columns));
    }
    add_variants(settings, 0);
    run.count = variants_.size() - run.first;
    if (!d_.base.empty()) {
        for (const KeyTemplate& key : d_.base) settings.push_back(key.setting(columns));
        variants_.push_back({.settings = std::move(settings), .must_run = false});
    }
    rows_.push_back(std::move(run));
}

void TableRuns::add_variants(std::vector<std::string> chosen, std::size_t open) {
    if (open == d_.open.size()) {
        variants_.push_back({.settings = std::move(chosen)});
        // What a table leaves open was chosen so that it fits; what it prints did run.
        variants_.back().must_run = !d_.open.empty();
        return;
    }
    for (const std::string& value : d_.open[open].values) {
        std::vector<std::string> with = chosen;
        with.push_back(d_.open[open].key + "=" + value);
        add_variants(std::move(with), open + 1);
    }
}

void TableRuns::run_variants() {
    if (variants_.empty()) return;
    std::set<std::string> names;
    if (!d_.open.empty()) names.insert("step_time");
    for (const Expectation& e : d_.expected) {
        for (std::string name : e.simulated->names()) {
            if (rows_[0].columns.has(name)) continue;
            if (!d_.base.empty() && name.starts_with(of_base)) name.erase(0, of_base.size());
            if (!name.starts_with("memory_")) names.insert(name);
        }
    }
    metrics_.assign(names.begin(), names.end());
    TrialOptions options;
    options.text = d_.text;
    options.file = d_.file;
    options.metrics = metrics_;
    options.threads = std::max(1U, std::thread::hardware_concurrency());
    options.cancelled = &interrupted();
    trials_ = run_trials(options, variants_);
    heed_cancel();
}

// What this row makes the key of; nullptr when it is the description's own.
const Template* TableRuns::source_of(const RowRun& row, const std::string& key) const {
    const Template* source = nullptr;
    const auto look = [&](const std::vector<KeyTemplate>& set) {
        for (const KeyTemplate& each : set) {
            if (each.key == key && each.value) source = &*each.value;
        }
    };
    look(d_.set);
    for (const Change& change : d_.changes) {
        if (change.rows.holds(row.columns)) look(change.set);
    }
    return source;
}

void TableRuns::refuse(const RowRun& row, const std::string& column, const std::string& why) {
    const auto found = std::ranges::find(table_.columns, column);
    const std::size_t place = found != table_.columns.end()
                                  ? static_cast<std::size_t>(found - table_.columns.begin())
                                  : 0;
    out_.unused.push_back({table_.path, table_.places[row.row][place],
                           column.empty() ? table_.columns[0] : column, why, ""});
}

void TableRuns::refuse(const RowRun& row, const Trial& impossible) {
    if (impossible.problems.empty()) return refuse(row, "", impossible.problem);
    const Diagnostic& problem = impossible.problems[0];
    const Template* source = source_of(row, problem.path);
    const std::string column = source != nullptr ? source->column() : "";
    const bool plain = source != nullptr && source->text(row.columns) == row.columns.text(column);
    refuse(row, column,
           plain ? problem.message : fmt::format("{}: {}", problem.path, problem.message));
}

ScenarioError TableRuns::no_such_value(const std::string& name) const {
    return ScenarioError(fmt::format("{}: table.expect: there is no {}", d_.file, name),
                         "columns, metrics of 'railyard run --json', and memory_per_gpu, "
                         "memory_weights and the like of a model");
}

void TableRuns::finish(const RowRun& row) {
    const auto metric = [&](const std::string& name) {
        const auto found = std::ranges::find(metrics_, name);
        if (found == metrics_.end()) throw no_such_value(name);
        return static_cast<std::size_t>(found - metrics_.begin());
    };
    const Trial* const base = d_.base.empty() ? nullptr : &*trials_[row.first + row.count];
    if (base != nullptr && !base->possible()) return refuse(row, *base);
    const Trial* best = nullptr;
    for (std::size_t i = row.first; i < row.first + row.count; ++i) {
        const Trial& trial = *trials_[i];
        if (!trial.possible()) continue;
        const auto step = [&](const Trial& t) { return t.summary(metric("step_time")).mean; };
        if (best == nullptr || step(trial) < step(*best)) best = &trial;
    }
    if (best == nullptr) return refuse(row, *trials_[row.first]);
    for (const Expectation* e : row.expected) {
        VerifiedRow out;
        out.row = row.name;
        out.quantity = e->quantity;
        out.as = e->as;
        out.published = e->published->value([&](const auto& n) { return row.columns.figure(n); });
        const auto value = [&](const Trial& trial, const std::string& name) {
            const std::optional<double> memory = memory_of(trial, name);
            return memory ? *memory : trial.summary(metric(name)).mean;
        };
        out.simulated = e->simulated->value([&](const std::string& name) {
            if (row.columns.has(name)) return row.columns.figure(name);
            if (base != nullptr && name.starts_with(of_base)) {
                return value(*base, name.substr(of_base.size()));
            }
            return value(*best, name);
        });
        // A mean of replicas by itself has an interval.
        const bool alone =
            e->simulated->names().size() == 1 && e->simulated->names()[0] == e->simulated->text();
        if (alone && !row.columns.has(e->simulated->text())) {
            const Summary summary = best->summary(metric(e->simulated->text()));
            if (summary.ci95.half_width() > 0) out.ci95 = summary.ci95;
        }
        if (!std::isfinite(out.simulated)) {
            refuse(row, "", fmt::format("{} is no finite number", e->simulated->text()));
            continue;
        }
        out_.expressed.push_back(std::move(out));
    }
}

}  // namespace

std::optional<std::string> description_of(const CsvTable& table) {
    namespace fs = std::filesystem;
    const fs::path beside = fs::path(table.path).replace_extension(".toml");
    if (fs::exists(beside)) return beside.string();
    constexpr std::size_t digits = 2;
    if (match_pattern(table.name, R"(\d\d\D.*)").empty()) return std::nullopt;
    for (const auto& entry : fs::directory_iterator(shipped_file("tests/validation"))) {
        const fs::path& path = entry.path();
        if (path.extension() == ".toml" &&
            path.stem().string().starts_with(table.name.substr(0, digits) + "_")) {
            return path.string();
        }
    }
    return std::nullopt;
}

VerifiedTable verify_described(const CsvTable& table, const std::string& description,
                               const std::vector<std::string>& settings) {
    const Description d = read_description(description, table);
    VerifiedTable out{table.name, d.title};
    TableRuns(table, d, settings, out).run();
    std::ranges::stable_sort(out.unused, {}, [](const Diagnostic& row) {
        return std::pair(row.at.line, row.at.column);
    });
    return out;
}

std::vector<SchemaRow> table_schema() {
    std::vector<SchemaRow> rows;
    Description none;
    const Document empty;
    DescriptionReader(none, empty, {}, &rows).read();
    return rows;
}

}  // namespace railyard
