#include "tools/import/slurm_records.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>

#include "tools/import/text_file.h"
#include "tools/program/pattern.h"

namespace railyard {

namespace {

constexpr std::size_t names_max = 1'000'000;
constexpr int includes_max = 8;

class RecordReader {
  public:
    explicit RecordReader(Diagnostics& diagnostics) : diagnostics_(diagnostics) {}
    void read(const std::string& path, int depth) {
        std::string joined;
        int first = 0;
        for (const FileLine& line : read_lines(path, diagnostics_)) {
            if (joined.empty()) first = line.number;
            joined += line.text.substr(0, line.text.find('#'));
            if (joined.ends_with('\\')) {
                joined.pop_back();
                continue;
            }
            const std::string_view text = trimmed(joined);
            if (lower_case(text.substr(0, 8)) == "include ") {
                include(path, first, trimmed(text.substr(8)), depth);
            } else if (!text.empty()) {
                add(path, first, text);
            }
            joined.clear();
        }
        if (!joined.empty()) {
            diagnostics_.error(path, {first, 1}, "", "a line that goes on (\\), but the file ends",
                               "is the file whole?");
        }
    }

    std::vector<SlurmRecord> records;

  private:
    void include(const std::string& from, int line, std::string_view name, int depth) {
        const std::filesystem::path path = std::filesystem::path(from).parent_path() / name;
        std::error_code ignored;
        if (depth >= includes_max) {
            return diagnostics_.error(from, {line, 1}, "Include", "files that include each other");
        }
        if (!std::filesystem::is_regular_file(path, ignored)) {
            return diagnostics_.error(
                from, {line, 1}, "Include",
                fmt::format("there is no file {}", visible(path.string())),
                "put it beside this one, or write what it holds in its place");
        }
        read(path.string(), depth + 1);
    }

    void add(const std::string& path, int line, std::string_view text) {
        SlurmRecord record{path, line, {}, {}};
        for (std::size_t at = 0; at < text.size();) {
            at = text.find_first_not_of(" \t", at);
            if (at == std::string_view::npos) break;
            const std::size_t equals = text.find('=', at);
            const std::size_t blank = std::min(text.find_first_of(" \t", at), text.size());
            // Blanks beside the sign are allowed.
            if (equals == std::string_view::npos || text.find_first_not_of(" \t", blank) < equals) {
                return diagnostics_.error(
                    path, {line, static_cast<int>(at) + 1}, "",
                    fmt::format("expected Key=Value, found '{}'", text.substr(at, blank - at)),
                    "a value with blanks needs quotes");
            }
            const std::string key = lower_case(trimmed(text.substr(at, equals - at)));
            std::size_t from = std::min(text.find_first_not_of(" \t", equals + 1), text.size());
            std::size_t to = std::min(text.find_first_of(" \t", from), text.size());
            if (from < text.size() && text[from] == '"') {
                to = text.find('"', ++from);
                if (to == std::string_view::npos) {
                    return diagnostics_.error(path, {line, static_cast<int>(from)}, key,
                                              "a quote that is not closed");
                }
            }
            record.keys.emplace_back(key, text.substr(from, to - from));
            at = to + 1;
        }
        records.push_back(std::move(record));
    }

    Diagnostics& diagnostics_;
};

// The numbers of "0-3,7,010-012", as wide as they are written.
bool add_range(std::string_view range, std::vector<std::string>& out) {
    const std::size_t dash = std::min(range.find('-'), range.size());
    const std::string_view low = range.substr(0, dash);
    const auto first = whole_value(low);
    const auto last = dash == range.size() ? first : whole_value(range.substr(dash + 1));
    if (!first || !last || *first < 0 || *last < *first ||
        static_cast<std::size_t>(*last - *first) >= names_max - out.size()) {
        return false;
    }
    const int width = low.size() > 1 && low[0] == '0' ? static_cast<int>(low.size()) : 0;
    if (width > 18) return false;
    for (std::int64_t i = *first; i <= *last; ++i) out.push_back(fmt::format("{:0{}}", i, width));
    return true;
}

// One name with its brackets.
bool expand_name(std::string_view name, std::vector<std::string>& out) {
    std::vector<std::string> parts = {""};
    while (!name.empty()) {
        const std::size_t open = std::min(name.find('['), name.size());
        for (std::string& part : parts) part += name.substr(0, open);
        if (open == name.size()) break;
        const std::size_t close = name.find(']', open);
        if (close == std::string_view::npos) return false;
        std::vector<std::string> numbers;
        for (const std::string& range : split_text(name.substr(open + 1, close - open - 1), ',')) {
            if (!add_range(range, numbers)) return false;
        }
        if (numbers.size() * parts.size() > names_max) return false;
        std::vector<std::string> longer;
        for (const std::string& part : parts) {
            for (const std::string& number : numbers) longer.push_back(part + number);
        }
        parts = std::move(longer);
        name = name.substr(close + 1);
    }
    if (out.size() + parts.size() > names_max) return false;
    out.insert(out.end(), parts.begin(), parts.end());
    return true;
}

}  // namespace

const std::string* SlurmRecord::find(std::string_view key) const {
    for (const auto& [name, value] : keys) {
        if (name == key) return &value;
    }
    return nullptr;
}

std::string SlurmRecord::place() const {
    return fmt::format("{}:{}", file, line);
}

std::string SlurmRecord::origin(std::string_view key) const {
    const std::string lower = lower_case(key);
    const std::string* value = find(lower);
    std::string at = place();
    for (const auto& [name, where] : given) {
        if (name == lower) at = where;
    }
    return fmt::format("{}: {}={}", at, key, value != nullptr ? *value : "");
}

std::vector<SlurmRecord> read_slurm_records(const std::string& path, Diagnostics& diagnostics) {
    RecordReader reader(diagnostics);
    reader.read(path, 0);
    return std::move(reader.records);
}

std::vector<std::string> split_hostlist(std::string_view list) {
    std::vector<std::string> out;
    std::string name;
    int depth = 0;
    for (const char c : list) {
        if (c == '[') ++depth;
        if (c == ']') --depth;
        if (c == ',' && depth == 0) {
            out.push_back(std::exchange(name, {}));
        } else {
            name += c;
        }
    }
    out.push_back(name);
    return out;
}

std::vector<std::string> expand_hostlist(std::string_view list, std::string& problem) {
    std::vector<std::string> out;
    for (const std::string& name : split_hostlist(list)) {
        if (name.empty() || !expand_name(name, out)) {
            problem = fmt::format("'{}' is no list of nodes such as a[0-3,7],b[001-010]", name);
            return {};
        }
    }
    return out;
}

SlurmTime slurm_time(std::string_view text) {
    const std::string word = lower_case(text);
    if (word == "infinite" || word == "unlimited" || word == "-1") return {true, std::nullopt};
    std::int64_t days = 0;
    std::string_view rest = text;
    const std::size_t dash = text.find('-');
    if (dash != std::string_view::npos) {
        const auto found = whole_value(text.substr(0, dash));
        if (!found || *found < 0 || *found > 36'500) return {};
        days = *found;
        rest = text.substr(dash + 1);
    }
    std::vector<std::int64_t> parts;
    for (const std::string& part : split_text(rest, ':')) {
        const auto found = whole_value(part);
        if (!found || *found < 0 || *found > 1'000'000'000) return {};
        parts.push_back(*found);
    }
    if (parts.size() > 3) return {};
    parts.resize(3, 0);
    std::int64_t seconds = parts[0] * 3600 + parts[1] * 60 + parts[2];
    if (dash == std::string_view::npos && std::ranges::count(rest, ':') < 2) {
        seconds = parts[0] * 60 + parts[1];  // minutes, or minutes and seconds
    }
    return {true, days * 86'400 + seconds};
}

std::vector<SlurmGres> slurm_gpus(std::string_view gres, std::string& problem) {
    std::vector<SlurmGres> out;
    std::string text;
    int depth = 0;  // "(S:0-1)" says sockets
    for (const char c : gres) {
        if (c == '(') ++depth;
        if (depth == 0) text += c;
        if (c == ')') --depth;
    }
    for (const std::string& one : split_text(text, ',')) {
        std::vector<std::string> parts = split_text(one, ':');
        if (lower_case(parts[0]) != "gpu") continue;
        std::erase(parts, "no_consume");
        SlurmGres found{"", 1, false};
        const auto count = whole_value(parts.back());
        if (parts.size() == 3 || (parts.size() == 2 && !count)) found.type = lower_case(parts[1]);
        if (parts.size() == 3 || (parts.size() == 2 && count)) {
            constexpr std::int64_t most = 1024;
            if (!count || *count < 0 || *count > most) {
                problem = fmt::format("'{}' has no number of GPUs that a node can have", one);
                return {};
            }
            found.count = *count;
        }
        if (parts.size() > 3) {
            problem = fmt::format("expected gpu:TYPE:COUNT, found '{}'", one);
            return {};
        }
        found.slices = !find_pattern(found.type, "[0-9]g\\.[0-9]+gb").empty();
        if (found.count > 0) out.push_back(std::move(found));
    }
    return out;
}

}  // namespace railyard
