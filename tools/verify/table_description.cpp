#include "tools/verify/table_description.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <cmath>

#include "tools/program/lists.h"
#include "tools/study/axis.h"
#include "tools/study/study.h"

namespace railyard::described {

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

Columns::Columns(const CsvRow& row, const std::vector<std::string>& unsaid,
                 const std::map<std::string, std::string>& otherwise, const std::vector<Same>& same)
    : row_(row) {
    for (auto& [column, field] : row_) {
        if (contains(unsaid, lower_case(field))) field.clear();
    }
    for (const auto& [column, text] : otherwise) {
        std::string& field = row_[column];
        if (field.empty() || field == "-") field = text;
    }
    for (const auto& [column, patterns, as] : same) {
        std::string& field = row_[column];
        for (const std::string& pattern : patterns) {
            const std::string small = lower_case(field);
            if (find_pattern(small, pattern.c_str()).empty()) continue;
            field = with_replaced(small, pattern.c_str(), as);
        }
    }
}

namespace {
bool stands_alone(const std::string& text, std::size_t at, std::size_t size) {
    const auto letter = [&](std::size_t i) {
        return i < text.size() && std::isalpha(text[i]) != 0;
    };
    std::size_t end = at + size;
    if (end < text.size() && text[end] == 's') ++end;
    return (at == 0 || !letter(at - 1)) && !letter(end);
}
}  // namespace

bool has_word(const std::string& text, const std::string& word) {
    const std::string small = lower_case(text);
    const std::string sought = lower_case(word);
    const bool alone = !match_pattern(sought, "[a-z0-9]{1,3}").empty();
    const char* denials[] = {
        "(?:^|[^a-z0-9])(?:no|not|non|none|nothing|without|w/o|except(?: for)?|all but)[ _-]+"
        "(?:any |full[ -](?:[a-z]+ )?)?(?:[a-z0-9_-]+(?:/| n?or ))*[a-z0-9_-]*$",
        "(?:^|[^a-z0-9])(?:compared (?:with|to)|than|vs\\.?|versus|unlike|instead of) "
        "+[a-z0-9_-]*$"};
    const char* after =
        "^[a-z0-9_]*(?: |=|: ?)(?:is |was )?(?:false|off|none|disabled|unused|not "
        "(?:used|enabled|applied))(?![a-z0-9])";
    for (std::size_t at = small.find(sought); at != std::string::npos;
         at = small.find(sought, at + 1)) {
        if (alone && !stands_alone(small, at, sought.size())) continue;
        const std::string before = small.substr(0, at);
        const bool denied = std::ranges::any_of(
            denials, [&](const char* denial) { return !find_pattern(before, denial).empty(); });
        if (!denied && find_pattern(small.substr(at + sought.size()), after).empty()) return true;
    }
    return false;
}

std::optional<Releases::Named> Releases::named(const std::string& text) const {
    const Found found = find_pattern(lower_case(text), pattern.c_str());
    std::string release;
    for (std::size_t group = 1; group < found.size(); ++group) release += found[group];
    if (match_pattern(release, R"(\d{1,9})").empty()) return std::nullopt;
    const std::string* newest = nullptr;
    for (const auto& [first, value] : from) {
        if (std::stod(release) >= first) newest = &value;
    }
    if (newest == nullptr) return std::nullopt;
    return Named{found[0].size(), newest};
}

const std::string* Words::value(const Columns& row) const {
    for (const std::string& column : columns) {
        const std::string& text = row.text(column);
        std::size_t longest = 0;
        const std::string* best = nullptr;
        for (const auto& [word, value] : values) {
            if (word.size() <= longest || !has_word(text, word)) continue;
            longest = word.size();
            best = &value;
        }
        for (const Releases& series : releases) {
            const auto named = series.named(text);
            if (!named || named->length < longest) continue;
            longest = named->length;
            best = named->value;
        }
        if (best != nullptr) return refined(best, row);
    }
    return otherwise ? &*otherwise : nullptr;
}

const std::string* Words::refined(const std::string* word, const Columns& row) const {
    for (const std::string& column : columns) {
        for (const Releases& series : releases) {
            if (!contains(series.refines, *word)) continue;
            if (const auto named = series.named(row.text(column))) return named->value;
        }
    }
    return word;
}

std::string Words::said(const Columns& row) const {
    const std::string* word = value(row);
    return word != nullptr ? *word : "";
}

std::string Words::setting(const Columns& row) const {
    if (key.empty()) return "";
    if (separators.empty()) {
        const std::string* said = value(row);
        if (said == nullptr) {
            throw RowError{columns.at(0), fmt::format("no word of it says what {} is", key)};
        }
        if (said->empty()) return "";
        return key + "=" + toml_text(Value::of(*said));
    }
    Value list;
    list.kind = Value::Kind::array;
    const std::vector<std::string> unread = each_piece(row, [&](const std::string& said) {
        for (const Found& name : find_all(said, "[^, ]+")) list.items.push_back(Value::of(name[0]));
    });
    if (!unread.empty()) {
        throw RowError{columns[0], fmt::format("nothing here reads '{}'", unread[0])};
    }
    return list.items.empty() ? "" : key + "=" + toml_text(list);
}

std::vector<std::string> Words::unread(const Columns& row) const {
    if (separators.empty() || !key.empty()) return {};
    return each_piece(row, [](const std::string&) {});
}

std::vector<std::string> Words::each_piece(
    const Columns& row, const std::function<void(const std::string& said)>& use) const {
    std::vector<std::string> unread;
    const std::string& text = row.text(columns.at(0));
    for (const Found& found : find_all(text, fmt::format("[^{}]+", separators).c_str())) {
        const std::string piece(trimmed(found[0]));
        if (piece.empty()) continue;
        const auto word = std::ranges::find_if(values, [&](const auto& each) {
            return !match_pattern(piece, each.first.c_str()).empty() ||
                   !match_pattern(lower_case(piece), each.first.c_str()).empty();
        });
        if (word == values.end()) {
            unread.push_back(piece);
        } else {
            use(word->second);
        }
    }
    return unread;
}

namespace {

class DescriptionReader {
  public:
    // Describes its keys into `schema` when that is given, of an empty document. `columns`: of the table.
    DescriptionReader(Description& out, const Document& document, std::vector<std::string> columns,
                      std::vector<SchemaRow>* schema = nullptr)
        : out_(out),
          columns_(std::move(columns)),
          values_(diagnostics_, document.name),
          top_(values_, document.root.find("table"), "table", {}, schema) {}

    void read() {
        std::string source;
        std::string row = "row {row}";
        read_tolerance(top_, "");
        top_.read("source", source, "Where the measurements are from", {.otherwise = "not said"});
        top_.read("row", row, "A row's name: text with columns in braces, {row} is its number");
        const Value* otherwise = top_.open_table(
            "otherwise",
            "What a column is where its field is empty, or where there is no such column");
        read_same();
        read_sums();  // of the table's own columns
        read_parts();
        read_keys(top_, "set",
                  "Keys of the scenario, each with text that has columns, or arithmetic over them, "
                  "in braces: \"{gpus / 8}\", \"{rate} GB/s\"",
                  out_.set);
        for (Section& section :
             top_.sections("words", "Keys that words of a row decide, each a [[table.words]]")) {
            read_words(section);
        }
        if (top_.has("memory") || top_.describing()) {
            Section memory = top_.section("memory");
            out_.memory_known = read_test(memory, true);
            memory.finish();
        }
        read_columns();
        read_keys(top_, "base",
                  "Keys by which a row's base differs, whose metrics are base_step_time and so on: "
                  "what a published ratio is over",
                  out_.base);
        read_changes();
        read_open(top_,
                  "Keys that the table does not print, each with values: of these the fastest step "
                  "that is possible",
                  out_.open);
        read_nccl_tests();
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

    void raise_if_any() const { diagnostics_.raise_if_any(); }

  private:
    void read_keys(Section& section, const char* key, const char* doc,
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
                    values_.error(value.at, path,
                                  fmt::format("can't be computed: {}", error.message));
                }
            }
            out.push_back(std::move(each));
        }
    }

    RowTest read_test(Section& section, bool needed) {
        RowTest test;
        section.read("column", test.column, "A column, whose text decides",
                     {.otherwise = "not looked at"});
        section.read("is", test.is, "It is one of these", {.otherwise = "none"});
        section.read("contains", test.contains, "Or it has one of these in it",
                     {.otherwise = "none"});
        section.read("lacks", test.lacks, "And it has none of these in it", {.otherwise = "none"});
        std::string condition;
        section.read("if", condition, "Arithmetic over columns that is not 0: \"gpus > 64\"",
                     {.otherwise = "not looked at"});
        if (!condition.empty()) test.condition = expression(section, "if", condition);
        const bool words = !test.is.empty() || !test.contains.empty() || !test.lacks.empty();
        if (words == test.column.empty() && section.ok()) {
            section.error("column", words ? "is missing: whose text is it?"
                                          : "needs is = [...], contains = [...] or lacks = [...]");
        }
        if (!test.column.empty()) check_columns(section, "column", {test.column});
        if (needed && test.column.empty() && !test.condition && section.ok()) {
            section.error("column", "is missing: which rows?", "column and is, or if");
        }
        return test;
    }

    static void check_pattern(Section& section, const char* key, const std::string& pattern) {
        if (const auto problem = problem_of_pattern(pattern)) {
            section.error(key, fmt::format("'{}' is no regular expression: {}", pattern, *problem));
        }
    }

    void read_same() {
        top_.read("unsaid", out_.unsaid, "Texts, in small letters, that are as an empty field",
                  {.otherwise = "none"});
        for (Section& section : top_.sections(
                 "same", "Ways to write the same, one after the other, each a [[table.same]]")) {
            Same same;
            section.read("column", same.column, "Whose text is written so", {.required = true});
            section.read("patterns", same.patterns,
                         "Regular expressions over its small letters: all that they find",
                         {.required = true});
            section.read("as", same.as, "Is written as this; $1 is the first group",
                         {.required = true});
            section.finish();
            if (section.describing()) continue;
            for (const std::string& pattern : same.patterns) {
                check_pattern(section, "patterns", pattern);
            }
            check_columns(section, "column", {same.column});
            out_.same.push_back(std::move(same));
        }
    }

    void read_parts() {
        for (Section& section : top_.sections(
                 "part", "Columns made of a part of another's text, each a [[table.part]]")) {
            Part part;
            section.read("name", part.name, "The new column", {.required = true});
            section.read("column", part.column, "Of whose text it is a part", {.required = true});
            section.read("pattern", part.pattern,
                         "A regular expression whose first group is the part",
                         {.otherwise = "words decide"});
            section.read("otherwise", part.otherwise, "What it is where nothing is found",
                         {.otherwise = "empty"});
            part.words.columns = {part.column};
            part.words.values = read_word_values(section, "values", "What the column is, by word");
            section.finish();
            if (section.describing()) continue;
            if (part.pattern.empty() == part.words.values.empty()) {
                section.error("pattern", "expected a pattern or values by word, one of the two");
            }
            check_pattern(section, "pattern", part.pattern);
            check_columns(section, "column", {part.column});
            columns_.push_back(part.name);
            out_.parts.push_back(std::move(part));
        }
    }

    void read_sums() {
        for (Section& section : top_.sections(
                 "sum", "Columns made of another's sum over rows, each a [[table.sum]]")) {
            Sum sum;
            section.read("name", sum.name, "The new column", {.required = true});
            section.read("of", sum.column, "The column that is summed", {.required = true});
            section.read("among", sum.among, "Over the rows that have the same text in this column",
                         {.otherwise = "over all rows"});
            sum.rows = read_test(section, false);
            section.finish();
            if (section.describing()) continue;
            check_columns(section, "of", {sum.column});
            if (!sum.among.empty()) check_columns(section, "among", {sum.among});
            columns_.push_back(sum.name);
            out_.sums.push_back(std::move(sum));
        }
    }

    void read_columns() {
        top_.read("read", out_.read, "The columns that are read: another one is warned of",
                  {.otherwise = "nothing is said of others"});
        top_.read("every_row", out_.every_row, "A row that no expect is for is named, too");
        std::vector<std::string> header;
        top_.read("columns", header,
                  "Of files that ship: it is of every table with all of these columns that has no "
                  "file of its own",
                  {.otherwise = "of one table"});
    }

    void read_changes() {
        for (Section& section :
             top_.sections("when", "What holds for some rows only, each a [[table.when]]")) {
            Change change;
            change.rows = read_test(section, true);
            read_keys(section, "set", "As table.set, and instead of it", change.set);
            read_open(section,
                      "Keys that these rows leave open, each with values: of these the fastest "
                      "step that fits, or where none does the fastest, since the run did",
                      change.open);
            section.read("skip", change.skip, "Nothing here can say what these rows say");
            section.read("refuse", change.refuse,
                         "These rows are not expressed, and named with this reason",
                         {.otherwise = "they are"});
            section.read("remark", change.remark,
                         "These rows are expressed, and named with what is wrong with them",
                         {.otherwise = "nothing is"});
            section.finish();
            out_.changes.push_back(std::move(change));
        }
    }

    // A list of any values, which no read() of a section takes.
    void read_open(Section& section, const char* doc, std::vector<Open>& out) {
        const Value* open = section.open_table("open", doc);
        if (open == nullptr) return;
        for (const auto& [key, value] : open->members) {
            const std::string path = section.path("open") + "." + key;
            check_key(value, path, key);
            Open each{key, {}};
            for (const Value& item : value.items) each.values.push_back(toml_text(item));
            if (each.values.empty()) {
                values_.error(value.at, path,
                              fmt::format("expected a list of values, found {}", value.describe()));
            }
            out.push_back(std::move(each));
        }
    }

    // Rows that are runs of nccl-tests and no scenarios.
    void read_nccl_tests() {
        if (!top_.has("nccl_tests") && !top_.describing()) return;
        Section section = top_.section("nccl_tests");
        struct Field {
            const char* name;
            const char* otherwise;
            const char* doc;
        };
        const Field fields[] = {
            {"device", nullptr, "A text that names the GPU, as the catalogue does: \"{gpu}\""},
            {"collective", nullptr,
             "all_reduce, all_gather, reduce_scatter, alltoall and the like"},
            {"gpus", nullptr, "GPUs of all nodes"},
            {"bytes", nullptr, "What nccl-tests calls size"},
            {"nodes", "1", "Nodes"},
            {"network", "", "The NICs of a node, as in \"8x NDR400 IB\""},
            {"racks", "",
             "Of racks that are one NVLink domain, a text that counts them: \"2 racks\""},
            {"algorithm", "default",
             "The algorithm that was forced and its protocol: \"Ring LL\""}};
        for (const Field& field : fields) {
            std::string text = field.otherwise != nullptr ? field.otherwise : "";
            section.read(field.name, text, field.doc, {.required = field.otherwise == nullptr});
            try {
                out_.nccl_tests.insert_or_assign(field.name, Template(text));
            } catch (const ExpressionError& error) {
                section.error(field.name, fmt::format("can't be computed: {}", error.message));
            }
        }
        section.finish();
    }

    std::vector<std::pair<std::string, std::string>> read_word_values(Section& section,
                                                                      const char* key,
                                                                      const char* doc) {
        std::vector<std::pair<std::string, std::string>> out;
        const Value* values = section.open_table(key, doc);
        for (const Member& m : values != nullptr ? values->members : std::vector<Member>()) {
            out.emplace_back(m.key, m.value.text);
            if (m.value.kind == Value::Kind::string) continue;
            values_.error(m.value.at, section.path(key) + "." + m.key,
                          fmt::format("expected text, found {}", m.value.describe()));
        }
        return out;
    }

    void read_words(Section& section) {
        Words out;
        section.read("key", out.key, "The key of the scenario",
                     {.otherwise = "with separators: a piece that is no word is warned of; else "
                                   "name is what they say"});
        section.read("name", out.name, "A new column that has what they say, for when",
                     {.otherwise = "none"});
        section.read("columns", out.columns,
                     "Columns whose texts are looked through: the first that has a word decides, "
                     "by its longest",
                     {.required = true});
        section.read("otherwise", out.otherwise,
                     "What the key is where no column has a word; empty: the key is left out",
                     {.otherwise = "a row without a word can't be expressed"});
        section.read(
            "separators", out.separators,
            "The first column's text is cut at these, each piece is a word (a regular expression), "
            "and the key is a list of what they say, with commas between them",
            {.otherwise = "one word decides"});
        out.values = read_word_values(section, "values", "What the key is, by word");
        out.releases = read_releases(section);
        section.finish();
        if (section.describing()) return;
        check_columns(section, "columns", out.columns);
        if (!out.separators.empty()) {
            for (const auto& [word, said] : out.values) check_pattern(section, "values", word);
        }
        if (out.key.empty()) {
            if (out.separators.empty() && out.name.empty())
                section.error("key", "is missing: what do the words decide?");
        } else if (const auto help = help_for_unknown_key(out.key); help && section.ok()) {
            section.error("key", fmt::format("no scenario has the key {}", out.key), *help);
        }
        if (!out.name.empty()) {
            if (!out.separators.empty())
                section.error("name", "is of one word, and these are several");
            columns_.push_back(out.name);
        }
        out_.words.push_back(std::move(out));
    }

    std::vector<Releases> read_releases(Section& words) {
        std::vector<Releases> out;
        for (Section& section : words.sections(
                 "release",
                 "Words that are releases of a series, each a [[table.words.release]]")) {
            Releases series;
            section.read("pattern", series.pattern,
                         "A regular expression over small letters, whose groups, one after the "
                         "other, are the release: a number",
                         {.required = true});
            section.read("refines", series.refines,
                         "What words say that leave the release open: one that any column names "
                         "stands for it",
                         {.otherwise = "none"});
            for (const auto& [first, value] : read_word_values(
                     section, "from", "What the key is from a release on, by release")) {
                try {
                    series.from.emplace_back(std::stod(first), value);
                } catch (const std::exception&) {
                    section.error("from", fmt::format("expected releases, found '{}'", first));
                }
            }
            section.finish();
            if (section.describing()) continue;
            check_pattern(section, "pattern", series.pattern);
            std::ranges::sort(series.from);
            out.push_back(std::move(series));
        }
        return out;
    }

    void read_expectation(Section& section) {
        Expectation e;
        std::string published;
        std::string simulated;
        section.read("quantity", e.quantity, "What it is, with its unit", {.required = true});
        section.read("published", published, "What the table has, as arithmetic over its columns",
                     {.required = true});
        section.read("simulated", simulated,
                     "What it is held to, as arithmetic over the metrics of 'run' and the columns",
                     {.required = true});
        section.choose(
            "as", e.as, {"figure", "at_most", "at_least"},
            "Whether the table has the figure, or only that it is at most or at least that");
        e.rows = read_test(section, false);
        read_tolerance(section, e.quantity);
        section.finish();
        if (section.describing()) return;
        e.published = expression(section, "published", published);
        const bool filled = simulated.find('{') != std::string::npos;
        std::optional<Expression> plain;
        if (!filled) plain = expression(section, "simulated", simulated);
        try {
            e.simulated = Template(simulated);
        } catch (const ExpressionError& error) {
            section.error("simulated", fmt::format("can't be computed: {}", error.message));
        }
        if (e.published) check_columns(section, "published", e.published->names());
        const auto is_column = [&](const std::string& name) { return contains(columns_, name); };
        if (plain && std::ranges::all_of(plain->names(), is_column)) {
            section.error("simulated", "names columns only, so that nothing is simulated",
                          "a column hides the metric of its name: call the column something else");
        }
        out_.expected.push_back(std::move(e));
    }

    // The tolerance of a quantity's rows; "": of all rows.
    void read_tolerance(Section& section, const std::string& quantity) {
        Tolerance out{quantity};
        Section tolerance = section.section("tolerance");
        tolerance.read("row", out.row,
                       "How far off each row may be, as a share of what is published",
                       {.bound = Bound::non_negative, .otherwise = "any"});
        tolerance.read("mean", out.mean,
                       "How far off rows may be in the mean of their errors' sizes",
                       {.bound = Bound::non_negative, .otherwise = "any"});
        tolerance.finish();
        if (out.row || out.mean) out_.tolerances.push_back(std::move(out));
    }

    void check_key(const Value& at, const std::string& path, const std::string& key) {
        if (const auto help = help_for_unknown_key(key)) {
            values_.error(at.at, path, fmt::format("no scenario has the key {}", key), *help);
        }
    }

    void check_columns(Section& section, const char* key, const std::vector<std::string>& names) {
        for (const std::string& name : names) {
            if (contains(columns_, name)) continue;
            section.error(key, fmt::format("the table has no column {}", name),
                          did_you_mean(name, columns_));
        }
    }

    std::optional<Expression> expression(Section& section, const char* key,
                                         const std::string& text) {
        try {
            return Expression(text);
        } catch (const ExpressionError& error) {
            section.error(key, fmt::format("can't be computed: {}", error.message));
            return std::nullopt;
        }
    }

    Description& out_;
    std::vector<std::string> columns_;
    Diagnostics diagnostics_;
    ValueReader values_;
    Section top_;
};

}  // namespace

std::vector<std::string> Description::columns_read() const {
    std::vector<std::string> out = read;
    const auto add = [&](const std::vector<std::string>& columns) {
        out.insert(out.end(), columns.begin(), columns.end());
    };
    const auto add_test = [&](const RowTest& test) {
        out.push_back(test.column);
        if (test.condition) add(test.condition->names());
    };
    const auto add_keys = [&](const std::vector<KeyTemplate>& keys) {
        for (const KeyTemplate& key : keys) {
            if (key.value) add(key.value->columns());
        }
    };
    if (row) add(row->columns());
    add_keys(set);
    add_keys(base);
    for (const Part& part : parts) {
        out.push_back(part.column);
        add(part.words.columns);
    }
    for (const Sum& sum : sums) {
        add({sum.column, sum.among});
        add_test(sum.rows);
    }
    for (const Words& each : words) add(each.columns);
    for (const Change& change : changes) {
        add_test(change.rows);
        add_keys(change.set);
    }
    for (const Expectation& e : expected) {
        add_test(e.rows);
        add(e.published->names());
        add(e.simulated->columns());
        // What is beside braces is arithmetic, too.
        for (const Found& name : find_all(e.simulated->written(), R"([A-Za-z_]\w*)")) add(name);
    }
    for (const auto& [name, text] : nccl_tests) add(text.columns());
    if (memory_known) add_test(*memory_known);
    return out;
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
    columns.emplace_back("about");
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

std::vector<SchemaRow> schema() {
    std::vector<SchemaRow> rows;
    Description none;
    const Document empty;
    DescriptionReader(none, empty, {}, &rows).read();
    return rows;
}

}  // namespace railyard::described
