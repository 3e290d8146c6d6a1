#pragma once
// Files that say what somebody owns or runs, made into scenarios or parts of them. Each value has a comment
// that says from which file and line it came; what the files don't say is listed, not guessed.

#include <fmt/format.h>

#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "sim/config.h"

namespace railyard {

struct ImportOptions {
    std::vector<std::string> files;
    std::string name;  // of the entry that is made
    std::optional<std::int64_t> sequence_length;
    std::optional<std::int64_t> image_patches;
    std::vector<std::string>
        nodes;           // what is which node of the catalogue: "dgx_h100", "h100=dgx_h100"
    std::string output;  // the file that the part goes to; empty: to nobody's knowledge
    std::optional<double> node_days;    // that a history of failures watched
    std::vector<std::string> causes;    // "gpu=xid|ecc": a cause, and the pattern of its reasons
    std::vector<std::string> columns;   // "submit=creation_time": what a column is called
    std::string collective;             // that a log of nccl-tests is of
    std::string network;                // that it ran over: "8x400G"
    std::string nic;                    // of the catalogue, that a benchmark is of
    std::optional<std::int64_t> hosts;  // that a benchmark ran on
    bool skip_bad = false;              // malformed lines are counted, not refused
};

// A file that an importer makes besides its part, with the part's name and an ending of its own.
struct FileBeside {
    std::string ending;  // ".csv"
    std::string text;
};

// As it may stand in a comment of TOML, which ends with its line, whatever names the input holds.
std::string comment_text(std::string_view text);

struct Imported {
    std::string text;
    std::vector<FileBeside> beside;
};

// What an importer makes: lines of TOML, in the order added.
class ImportedPart {
  public:
    // Begins a table: "model.mine".
    void section(const std::string& path);
    // Begins one of an array of tables: "partition".
    void entry(const std::string& path);
    // A value as TOML has it, and where it came from.
    void value(const std::string& key, const std::string& toml, const std::string& origin);
    void whole(const std::string& key, std::int64_t number, const std::string& origin);
    // A text, which gets its quotes here.
    void quoted(const std::string& key, std::string_view text, const std::string& origin);
    // A line of a table of measurements: such a part has nothing else.
    void row(const std::string& line);
    bool is_table() const { return is_table_; }
    // What the files don't say and the catalogue or a default then does.
    template <typename... Values>
    void left_out(fmt::format_string<Values...> what, Values&&... values) {
        left_out_.push_back(fmt::format(what, std::forward<Values>(values)...));
    }
    // What a reader should know beside the values.
    template <typename... Values>
    void note(fmt::format_string<Values...> what, Values&&... values) {
        notes_.push_back(fmt::format(what, std::forward<Values>(values)...));
    }

    void beside(std::string ending, std::string text) {
        beside_.push_back({std::move(ending), std::move(text)});
    }

    const std::vector<FileBeside>& files_beside() const { return beside_; }
    const std::vector<std::string>& notes() const { return notes_; }
    const std::vector<std::string>& left_out() const { return left_out_; }
    // The file: a head of comments that says what was imported, then the tables.
    std::string text(const std::string& title) const;

  private:
    std::string body_;
    bool is_table_ = false;
    std::vector<std::string> notes_;
    std::vector<std::string> left_out_;
    std::vector<FileBeside> beside_;
};

struct ImportKind {
    const char* name;
    const char* files;    // what it takes
    const char* options;  // of the command line that it heeds, with blanks between them
    const char* doc;
    // Throws ScenarioError; warnings go to `diagnostics`.
    void (*run)(const ImportOptions& options, ImportedPart& part, Diagnostics& diagnostics);
};
const std::vector<ImportKind>& import_kinds();

// Runs one, and reads what it has made as a scenario's part would be read. Throws ScenarioError.
Imported import_files(const ImportKind& kind, const ImportOptions& options,
                      Diagnostics& diagnostics);

// The name of a file beside `output`, which must be given.
std::string path_beside(const std::string& output, const std::string& ending);

}  // namespace railyard
