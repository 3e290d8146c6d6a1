#include "tools/import/dcgm_samples.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <vector>

#include "tools/import/json_tree.h"
#include "tools/import/text_file.h"

namespace railyard {

namespace {

constexpr std::int64_t year_2000_s = 946'684'800;
constexpr std::int64_t year_2100_s = 4'102'444'800;
constexpr std::size_t errors_max = 20;

using Labels = std::map<std::string, std::string>;

// Reads {name="value",...} from `at`, which is left behind it.
bool read_labels(std::string_view text, std::size_t& at, Labels& out) {
    const auto blanks = [&] {
        while (at < text.size() && (text[at] == ' ' || text[at] == ',')) ++at;
    };
    for (++at, blanks(); at < text.size() && text[at] != '}'; blanks()) {
        const std::size_t equals = text.find("=\"", at);
        if (equals == std::string_view::npos) return false;
        const std::string name(trimmed(text.substr(at, equals - at)));
        std::string value;
        for (at = equals + 2; at < text.size() && text[at] != '"'; ++at) {
            if (text[at] == '\\' && at + 1 < text.size()) ++at;
            value += text[at];
        }
        if (at >= text.size() || name.empty()) return false;
        out[name] = std::move(value);
        ++at;
    }
    return at < text.size() && text[at++] == '}';
}

std::string first_label(const Labels& labels, std::initializer_list<const char*> names) {
    for (const char* name : names) {
        if (const auto found = labels.find(name); found != labels.end()) return found->second;
    }
    return {};
}

// What 'dcgmi diag -j' says of GPUs: "GPU 3: memory". A GPU is entity_id, before DCGM 3 gpu_id.
std::vector<std::string> failed_tests(const Value& root) {
    std::vector<std::string> out;
    const auto items = [](const Value& from, const char* key) {
        const Value* list = from.find(key);
        return list == nullptr ? std::vector<Value>{} : list->items;
    };
    const Value* diagnostic = root.find("DCGM Diagnostic");
    if (diagnostic == nullptr) return out;
    for (const Value& category : items(*diagnostic, "test_categories")) {
        for (const Value& test : items(category, "tests")) {
            for (const Value& result : items(test, "results")) {
                const Value* gpu = result.find("entity_id");
                if (gpu == nullptr) gpu = result.find("gpu_id");
                if (gpu == nullptr || lower_case(text_in(result, "status")) != "fail") continue;
                out.push_back(
                    fmt::format("GPU {}: {}", gpu->integer, visible(text_in(test, "name"))));
            }
        }
    }
    return out;
}

class DcgmReader {
  public:
    DcgmReader(const std::string& file, bool skip_bad, Diagnostics& diagnostics,
               const std::function<void(const DcgmSample&)>& take)
        : file_(file), skip_bad_(skip_bad), diagnostics_(diagnostics), take_(take) {}

    DcgmFile read() {
        host_ = file_.substr(file_.rfind('/') + 1);
        const std::vector<FileLine> lines = read_lines(file_, diagnostics_);
        const auto first = std::ranges::find_if(
            lines, [](const FileLine& line) { return !trimmed(line.text).empty(); });
        if (first == lines.end()) return out_;
        const std::string_view head = trimmed(first->text);
        if (head.starts_with('{') && !head.starts_with("{__name__")) {
            refuse_snapshot(first->number);
        } else if (head.starts_with('#') && head.find("Entity") != std::string_view::npos) {
            read_dmon(lines);
        } else {
            read_exposition(lines);
        }
        return out_;
    }

  private:
    void read_exposition(const std::vector<FileLine>& lines) {
        for (const FileLine& line : lines) {
            if (trimmed(line.text) == "# EOF") open_metrics_ = true;
        }
        for (const FileLine& line : lines) {
            const std::string_view text = trimmed(line.text);
            if (text.empty() || text.starts_with('#')) continue;
            read_sample(line);
            if (diagnostics_.errors().size() > errors_max) return;
        }
        if (!lines.empty() && !read_input(file_).ends_with('\n')) {
            bad(lines.back().number, "the last line has no end: the file is cut off",
                "give the whole file; --skip-bad takes what is there");
        }
    }

    // "#Entity  XIDER  POWER", "ID  W", "GPU 0  0  412.3"; the head comes again every so many rows.
    void read_dmon(const std::vector<FileLine>& lines) {
        out_.dmon = true;
        std::vector<std::string> columns;
        for (const FileLine& line : lines) {
            std::vector<std::string> words = split_text(line.text, ' ');
            if (words.empty()) continue;
            if (words[0] == "#") words.erase(words.begin());
            if (!words.empty() && (words[0] == "#Entity" || words[0] == "Entity")) {
                columns.assign(words.begin() + 1, words.end());
            } else if (words[0] == "GPU") {
                read_dmon_row(line, columns);
            } else if (lower_case(words[0]) != "id") {
                bad(line.number, "expected a head of dmon, or GPU NUMBER and its values",
                    "--skip-bad leaves such lines out");
            }
            if (diagnostics_.errors().size() > errors_max) return;
        }
    }

    void read_dmon_row(const FileLine& line, const std::vector<std::string>& columns) {
        const std::vector<std::string> words = split_text(line.text, ' ');
        if (words.size() != columns.size() + 2 || !whole_value(words[1])) {
            return bad(line.number,
                       fmt::format("expected GPU NUMBER and {} values, found {} words: cut off?",
                                   columns.size(), words.size()),
                       "--skip-bad leaves such lines out");
        }
        DcgmSample sample;
        sample.host = host_;
        sample.gpu = words[1];
        sample.card = fmt::format("{} {}", host_, sample.gpu);
        sample.line = line.number;
        sample.tick = ticks_[sample.gpu]++;
        for (std::size_t i = 0; i < columns.size(); ++i) {
            const std::string& word = words[i + 2];
            if (word == "N/A" || word == "-") continue;
            const auto value = real_value(word);
            if (!value) {
                return bad(line.number,
                           fmt::format("{}: '{}' is no number", columns[i], visible(word)),
                           "--skip-bad leaves such lines out");
            }
            sample.field = columns[i];
            sample.value = *value;
            ++out_.samples;
            take_(sample);
        }
    }

    void read_sample(const FileLine& line) {
        const std::string_view text = trimmed(line.text);
        std::size_t at = std::min(text.find_first_of("{ "), text.size());
        DcgmSample sample;
        sample.field = text.substr(0, at);
        sample.line = line.number;
        if (!sample.field.empty() && !sample.field.starts_with("DCGM_")) return;
        Labels labels;
        if (at < text.size() && text[at] == '{' && !read_labels(text, at, labels)) {
            return bad(line.number, "labels without an end: cut off?",
                       "--skip-bad leaves such lines out");
        }
        if (sample.field.empty()) sample.field = first_label(labels, {"__name__"});
        if (!sample.field.starts_with("DCGM_")) return;
        const std::vector<std::string> words = split_text(text.substr(at), ' ');
        const auto value = words.empty() ? std::nullopt : real_value(words[0]);
        if (!value && !words.empty() && words[0] == "NaN") return;
        const bool more = words.size() > 2 && !words[2].starts_with('#');
        if (!value || more) {
            return bad(line.number, "expected NAME{LABELS} NUMBER, and a time or none: cut off?",
                       "--skip-bad leaves such lines out");
        }
        if (words.size() > 1 && !words[1].starts_with('#') && !set_time(words[1], line, sample))
            return;
        if (sample.field.ends_with("_TOTAL_total")) {  // OpenMetrics' ending of counters
            sample.field.resize(sample.field.size() - std::string_view("_total").size());
        }
        sample.gpu = first_label(labels, {"gpu"});
        sample.host = first_label(labels, {"Hostname", "hostname", "instance"});
        if (sample.host.empty()) sample.host = host_;
        sample.card = first_label(labels, {"UUID", "uuid"});
        if (sample.gpu.empty() && sample.card.empty()) return;  // a switch's, or a processor's
        if (sample.card.empty()) sample.card = fmt::format("{} {}", sample.host, sample.gpu);
        sample.xid = first_label(labels, {"xid"});
        sample.value = *value;
        ++out_.samples;
        take_(sample);
    }

    bool set_time(const std::string& word, const FileLine& line, DcgmSample& sample) {
        const auto time = real_value(word);
        const double s = time ? *time / (open_metrics_ ? 1 : 1000) : -1;
        if (s >= static_cast<double>(year_2000_s) && s < static_cast<double>(year_2100_s)) {
            sample.at_s = static_cast<std::int64_t>(s);
            return true;
        }
        const bool cut = time && !open_metrics_ && *time >= static_cast<double>(year_2000_s) &&
                         *time < static_cast<double>(year_2100_s);
        bad(line.number, fmt::format("the time '{}' is not between 2000 and 2100", visible(word)),
            cut             ? "seconds are OpenMetrics', whose file ends with # EOF: is it cut off?"
            : open_metrics_ ? "a file that ends with # EOF has seconds since 1970"
                            : "milliseconds since 1970, as Prometheus has them");
        return false;
    }

    void refuse_snapshot(int line) {
        Diagnostics unread;  // it is refused in any case
        const std::vector<std::string> failed =
            failed_tests(parse_json(read_input(file_), file_, unread).root);
        diagnostics_.error(file_, {line, 1}, "",
                           fmt::format("JSON, as of dcgmi diag and health: a snapshot, which says "
                                       "what fails now{} and no rate",
                                       failed.empty() ? "" : fmt::format(" ({})", some_of(failed))),
                           "give what dcgm-exporter exports, several times, or rows of dcgmi dmon");
    }

    void bad(int line, std::string message, std::string help) {
        ++out_.bad;
        if (!skip_bad_)
            diagnostics_.error(file_, {line, 1}, "", std::move(message), std::move(help));
    }

    const std::string& file_;
    bool skip_bad_;
    Diagnostics& diagnostics_;
    const std::function<void(const DcgmSample&)>& take_;
    DcgmFile out_;
    bool open_metrics_ = false;  // its times are seconds, Prometheus' milliseconds
    std::string host_;           // of the file's name
    std::map<std::string, std::int64_t> ticks_;
};

}  // namespace

DcgmFile read_dcgm(const std::string& file, bool skip_bad, Diagnostics& diagnostics,
                   const std::function<void(const DcgmSample&)>& take) {
    return DcgmReader(file, skip_bad, diagnostics, take).read();
}

}  // namespace railyard
