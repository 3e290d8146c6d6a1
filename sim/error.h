#pragma once
// Errors for people: everything wrong with an input, all at once, each with its place.

#include <exception>
#include <functional>
#include <memory>
#include <set>
#include <string>
#include <string_view>
#include <tuple>
#include <vector>

namespace railyard {

// Where a value stands in a file. Line and column count from 1; 0 means that there is none (a whole
// file, or a value given on the command line).
struct Position {
    int line = 0;
    int column = 0;
    std::shared_ptr<const std::string> file{};  // that a document includes; none: its own
};

struct Diagnostic {
    std::string file;
    Position at;
    std::string path;     // key path, such as job.checkpoint.interval; empty for a syntax error
    std::string message;  // what was found and what was expected
    std::string help;     // what to do, or the nearest valid name; may be empty
};

class Diagnostics {
  public:
    // The compiler's own, made once, in error.cpp: each source that uses one would make them again.
    Diagnostics();
    Diagnostics(const Diagnostics&);
    Diagnostics(Diagnostics&&) noexcept;
    Diagnostics& operator=(const Diagnostics&);
    Diagnostics& operator=(Diagnostics&&) noexcept;
    ~Diagnostics();

    void error(std::string file, Position at, std::string path, std::string message,
               std::string help = {});
    void warning(std::string file, Position at, std::string path, std::string message,
                 std::string help = {});

    bool ok() const { return errors_.empty(); }
    const std::vector<Diagnostic>& errors() const { return errors_; }
    const std::vector<Diagnostic>& warnings() const { return warnings_; }

    // Throws ScenarioError when there is an error.
    void raise_if_any() const;
    // Reads something as if nothing had been wrong before it; its errors are added to those that there are.
    void apart(const std::function<void()>& read);

  private:
    std::vector<Diagnostic> errors_;
    std::set<std::tuple<std::string, std::string, int>> known_;  // of errors: path, message, line
    std::vector<Diagnostic> warnings_;
};

// `text` as a terminal may show it: control characters, those that change the direction of text and what is
// not UTF-8 as \x1b, but for tabs and ends of lines. Text without them stays as it is.
std::string visible(std::string_view text);

// "file:line:column: error: path: message" and an indented line of help where there is one, visible.
std::string format_diagnostic(const Diagnostic& diagnostic, std::string_view severity);

// The user's input is wrong. The program prints all of it and exits with 2.
class ScenarioError : public std::exception {
  public:
    explicit ScenarioError(std::vector<Diagnostic> diagnostics);
    explicit ScenarioError(std::string message, std::string help = {});
    ScenarioError(const ScenarioError&);
    ScenarioError& operator=(const ScenarioError&);
    ~ScenarioError() override;

    const char* what() const noexcept override { return text_.c_str(); }
    const std::vector<Diagnostic>& diagnostics() const { return diagnostics_; }

  private:
    std::vector<Diagnostic> diagnostics_;
    std::string text_;
};

// Ctrl-C before there was any result. The program exits with 130.
class Interrupted : public std::exception {
  public:
    const char* what() const noexcept override { return "interrupted before there was a result"; }
};

// The candidate that `word` most likely stands for, or "" when none is near. Ties go to the first.
std::string nearest_name(std::string_view word, const std::vector<std::string>& candidates);

// "did you mean 'x'?", or "" when none is near.
std::string did_you_mean(std::string_view word, const std::vector<std::string>& candidates);

// The same or, with few candidates and none near, "valid: a, b, c".
std::string suggest(std::string_view word, const std::vector<std::string>& candidates);

}  // namespace railyard
