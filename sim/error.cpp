#include "sim/error.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <numeric>
#include <optional>
#include <utility>

namespace railyard {

Diagnostics::Diagnostics() = default;
Diagnostics::Diagnostics(const Diagnostics&) = default;
Diagnostics::Diagnostics(Diagnostics&&) noexcept = default;
Diagnostics& Diagnostics::operator=(const Diagnostics&) = default;
Diagnostics& Diagnostics::operator=(Diagnostics&&) noexcept = default;
Diagnostics::~Diagnostics() = default;

void Diagnostics::error(std::string file, Position at, std::string path, std::string message,
                        std::string help) {
    // What is read twice is wrong once.
    if (!known_.emplace(path, message, at.line).second) return;
    errors_.push_back({std::move(file), at, std::move(path), std::move(message), std::move(help)});
}

void Diagnostics::warning(std::string file, Position at, std::string path, std::string message,
                          std::string help) {
    // A key of [job.parallel] is read again by each stage.
    const auto key = [](const std::string& whole) { return whole.substr(whole.rfind('.') + 1); };
    const auto said = [&](const Diagnostic& d) {
        return d.file == file && d.at.line == at.line && d.at.column == at.column &&
               d.message == message && key(d.path) == key(path);
    };
    if (std::ranges::any_of(warnings_, said)) return;
    warnings_.push_back(
        {std::move(file), at, std::move(path), std::move(message), std::move(help)});
}

void Diagnostics::raise_if_any() const {
    if (ok()) return;
    // What has no line comes first, then file by file.
    std::vector<std::string> files;
    const auto place = [&](const Diagnostic& d) {
        const auto found = std::ranges::find(files, d.file);
        const auto file = d.at.line == 0 ? 0 : 1 + (found - files.begin());
        return std::tuple(file, d.at.line, d.at.column);
    };
    for (const Diagnostic& d : errors_) {
        if (std::ranges::find(files, d.file) == files.end()) files.push_back(d.file);
    }
    std::vector<Diagnostic> in_file_order = errors_;
    std::ranges::stable_sort(in_file_order, [&](const Diagnostic& a, const Diagnostic& b) {
        return place(a) < place(b);
    });
    throw ScenarioError(std::move(in_file_order));
}

void Diagnostics::apart(const std::function<void()>& read) {
    std::vector<Diagnostic> all = std::exchange(errors_, {});
    try {
        read();
    } catch (const ScenarioError& error) {
        if (all.empty()) throw;
        errors_.insert(errors_.end(), error.diagnostics().begin(), error.diagnostics().end());
    }
    all.insert(all.end(), errors_.begin(), errors_.end());
    errors_ = std::move(all);
}

namespace {

// Bytes of the character that `text` begins with, in UTF-8; 0: it is none, or one that a terminal obeys.
std::size_t shown_character(std::string_view text) {
    const auto byte = [&](std::size_t i) { return static_cast<unsigned char>(text[i]); };
    const unsigned char first = byte(0);
    if (first < 0x80) {
        const bool control = first < 0x20 || first == 0x7f;
        return control && first != '\n' && first != '\t' ? 0 : 1;
    }
    const std::size_t size = first >= 0xf0 ? 4 : first >= 0xe0 ? 3 : 2;
    if (first < 0xc2 || first > 0xf4 || text.size() < size) return 0;
    for (std::size_t i = 1; i < size; ++i) {
        if ((byte(i) & 0xc0) != 0x80) return 0;
    }
    const unsigned char second = byte(1);
    const bool overlong = (first == 0xe0 && second < 0xa0) || (first == 0xf0 && second < 0x90);
    const bool surrogate = first == 0xed && second >= 0xa0;
    const bool beyond = first == 0xf4 && second >= 0x90;
    const bool control =
        first == 0xc2 && second < 0xa0;  // an escape sequence may begin with one byte
    // U+2028 to U+202E and U+2066 to U+2069 end a line, or turn round the order in which text is shown.
    const auto third = static_cast<unsigned char>(text[size - 1]);
    const bool order = first == 0xe2 && ((second == 0x80 && third >= 0xa8 && third <= 0xae) ||
                                         (second == 0x81 && third >= 0xa6 && third <= 0xa9));
    return overlong || surrogate || beyond || control || order ? 0 : size;
}

}  // namespace

std::string visible(std::string_view text) {
    std::string out;
    while (!text.empty()) {
        const std::size_t size = shown_character(text);
        if (size == 0) {
            out += fmt::format("\\x{:02x}", static_cast<unsigned char>(text[0]));
        } else {
            out += text.substr(0, size);
        }
        text.remove_prefix(std::max<std::size_t>(size, 1));
    }
    return out;
}

std::string format_diagnostic(const Diagnostic& diagnostic, std::string_view severity) {
    std::string out = diagnostic.file;
    if (diagnostic.at.line > 0) {
        out += fmt::format(":{}:{}", diagnostic.at.line, diagnostic.at.column);
    }
    if (!out.empty()) out += ": ";
    out += fmt::format("{}: ", severity);
    if (!diagnostic.path.empty()) out += diagnostic.path + ": ";
    out += diagnostic.message;
    if (!diagnostic.help.empty()) out += "\n    " + diagnostic.help;
    return visible(out);
}

ScenarioError::ScenarioError(const ScenarioError&) = default;
ScenarioError& ScenarioError::operator=(const ScenarioError&) = default;
ScenarioError::~ScenarioError() = default;

ScenarioError::ScenarioError(std::vector<Diagnostic> diagnostics)
    : diagnostics_(std::move(diagnostics)) {
    for (const Diagnostic& diagnostic : diagnostics_) {
        text_ += format_diagnostic(diagnostic, "error") + "\n";
    }
    if (!text_.empty()) text_.pop_back();
}

ScenarioError::ScenarioError(std::string message, std::string help)
    : ScenarioError(std::vector<Diagnostic>{
          Diagnostic{"railyard", {}, {}, std::move(message), std::move(help)}}) {}

namespace {

std::size_t edit_distance(std::string_view a, std::string_view b) {
    std::vector<std::size_t> row(b.size() + 1);
    std::iota(row.begin(), row.end(), std::size_t{0});
    for (std::size_t i = 1; i <= a.size(); ++i) {
        std::size_t diagonal = row[0];
        row[0] = i;
        for (std::size_t j = 1; j <= b.size(); ++j) {
            const std::size_t substituted = diagonal + (a[i - 1] == b[j - 1] ? 0 : 1);
            diagonal = row[j];
            row[j] = std::min({row[j] + 1, row[j - 1] + 1, substituted});
        }
    }
    return row[b.size()];
}

// A word that ends in a release, as "nemo_25.11" does: what is before it, and 25 and 11.
struct Release {
    std::string_view stem;
    std::pair<int, int> number;
};

std::optional<Release> release_of(std::string_view word) {
    const auto before_digits = [&](std::size_t end) {
        while (end > 0 && word[end - 1] >= '0' && word[end - 1] <= '9') --end;
        return end;
    };
    const auto number = [&](std::size_t begin, std::size_t end) {
        int value = -1;
        std::from_chars(word.data() + begin, word.data() + end, value);
        return value;
    };
    const std::size_t second = before_digits(word.size());
    if (second == 0 || word[second - 1] != '.') return std::nullopt;
    const std::size_t first = before_digits(second - 1);
    const std::pair<int, int> release = {number(first, second - 1), number(second, word.size())};
    if (first == 0 || release.first < 0 || release.second < 0) return std::nullopt;
    return Release{word.substr(0, first), release};
}

// The newest candidate that is not later than the word, where it is a release of a series that they are of.
std::string release_before(std::string_view word, const std::vector<std::string>& candidates) {
    const std::optional<Release> release = release_of(word);
    if (!release) return {};
    std::string best;
    std::pair<int, int> newest = {-1, -1};
    for (const std::string& candidate : candidates) {
        const std::optional<Release> other = release_of(candidate);
        if (!other || other->stem != release->stem || other->number > release->number) continue;
        if (other->number <= newest) continue;
        newest = other->number;
        best = candidate;
    }
    return best;
}

}  // namespace

std::string nearest_name(std::string_view word, const std::vector<std::string>& candidates) {
    constexpr std::size_t word_length_max = 64;  // longer words are no slip of the finger
    if (word.size() > word_length_max) return {};
    // What begins with the word is what was meant, however much is missing.
    constexpr std::size_t prefix_min = 3;
    for (const std::string& candidate : candidates) {
        if (word.size() >= prefix_min && candidate.starts_with(word)) return candidate;
    }
    std::string best = release_before(word, candidates);
    if (!best.empty()) return best;
    std::size_t best_distance = std::max<std::size_t>(2, word.size() / 3) + 1;
    for (const std::string& candidate : candidates) {
        const std::size_t distance = edit_distance(word, candidate);
        if (distance < best_distance) {
            best_distance = distance;
            best = candidate;
        }
    }
    return best;
}

std::string did_you_mean(std::string_view word, const std::vector<std::string>& candidates) {
    const std::string nearest = nearest_name(word, candidates);
    return nearest.empty() ? "" : fmt::format("did you mean '{}'?", nearest);
}

std::string suggest(std::string_view word, const std::vector<std::string>& candidates) {
    const std::string nearest = did_you_mean(word, candidates);
    if (!nearest.empty()) return nearest;
    constexpr std::size_t listed_max = 32;
    if (candidates.empty()) return {};
    if (candidates.size() > listed_max) {
        return fmt::format("{} names are valid; 'railyard list' prints them", candidates.size());
    }
    return fmt::format("valid: {}", fmt::join(candidates, ", "));
}

}  // namespace railyard
