#include "tools/import/slurm_accounts.h"

#include <fmt/format.h>

#include <algorithm>

namespace railyard {

namespace {

std::size_t place_of(const std::vector<std::string>& header, const char* name) {
    return static_cast<std::size_t>(std::ranges::find(header, name) - header.begin());
}

struct AccountTable {
    const std::string& file;
    const std::vector<std::string>& header;
    int first = 0;  // line
    std::int64_t users = 0;
    std::int64_t nested = 0;
};

void say_what_is_lost(const AccountTable& t, Diagnostics& diagnostics) {
    if (place_of(t.header, "ParentName") >= t.header.size() &&
        place_of(t.header, "Par Name") >= t.header.size()) {
        diagnostics.warning(
            t.file, {t.first, 1}, "Account",
            "no column says which accounts are within others: all are taken for one level",
            "sacctmgr -P show assoc format=Account,ParentName,User,Share");
    }
    if (t.nested > 0) {
        diagnostics.warning(t.file, {t.first, 1}, "Account",
                            fmt::format("{} accounts are within others: shares here have one "
                                        "level, and only those below the root are taken",
                                        t.nested));
    }
    if (t.users > 0) {
        diagnostics.warning(
            t.file, {t.first, 1}, "User",
            fmt::format("shares of {} users within accounts can't be expressed", t.users));
    }
}

}  // namespace

bool is_slurm_account_table(std::string_view header) {
    const std::vector<std::string> cells = split_text(header, '|');
    return place_of(cells, "Account") < cells.size() && place_of(cells, "Share") < cells.size();
}

std::vector<SlurmAccount> read_slurm_accounts(const std::string& file,
                                              const std::vector<FileLine>& lines,
                                              Diagnostics& diagnostics) {
    std::vector<SlurmAccount> out;
    std::vector<std::string> header;
    std::int64_t users = 0;
    std::int64_t nested = 0;
    int first = 0;
    for (const FileLine& line : lines) {
        if (trimmed(line.text).empty()) continue;
        const std::vector<std::string> cells = split_text(line.text, '|');
        if (header.empty()) {
            header = cells;
            first = line.number;
            continue;
        }
        if (cells.size() != header.size()) {
            diagnostics.error(
                file, {line.number, 1}, "",
                fmt::format("{} fields where the header has {}", cells.size(), header.size()),
                "is the file whole?");
            return out;
        }
        const auto cell = [&](const char* name) {
            const std::size_t at = place_of(header, name);
            return at < cells.size() ? std::string(trimmed(cells[at])) : std::string();
        };
        const std::string name = cell("Account");
        const std::string parent = cell("ParentName") + cell("Par Name");
        if (!cell("User").empty()) {
            ++users;
        } else if (name == "root" || name.empty()) {
            continue;
        } else if (!parent.empty() && parent != "root") {
            ++nested;
        } else {
            if (find_named(out, name) != nullptr) {
                diagnostics.error(
                    file, {line.number, 1}, "Account",
                    fmt::format("{} is there twice: of two clusters?", name),
                    "sacctmgr -P show assoc Clusters=... format=Account,ParentName,User,Share");
                return out;
            }
            const auto shares = whole_value(cell("Share"));
            if (!shares || *shares < 1 || *shares > 1'000'000'000) {
                diagnostics.error(file, {line.number, 1}, "Share",
                                  fmt::format("expected 1 or more, found '{}'", cell("Share")));
                return out;
            }
            out.push_back(
                {name, *shares, fmt::format("{}:{}: Share={}", file, line.number, *shares)});
        }
    }
    say_what_is_lost({file, header, first, users, nested}, diagnostics);
    return out;
}

}  // namespace railyard
