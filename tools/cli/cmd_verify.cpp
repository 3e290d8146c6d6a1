// railyard verify: published measurements and exact oracles beside what the program says.

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <set>
#include <utility>

#include "sim/error.h"
#include "tools/cli/cmd.h"
#include "tools/cli/options.h"
#include "tools/cli/terminal.h"
#include "tools/program/installation.h"
#include "tools/program/json_text.h"
#include "tools/verify/tables.h"

namespace railyard {

namespace {

using Json = nlohmann::ordered_json;

struct Errors {
    double mean = 0;
    double median = 0;
    double p90 = 0;
    double worst = 0;
};

Errors errors_of(const std::vector<VerifiedRow>& rows) {
    std::vector<double> sizes;
    for (const VerifiedRow& row : rows) sizes.push_back(std::abs(row.error()));
    if (sizes.empty()) return {};
    std::sort(sizes.begin(), sizes.end());
    Errors out;
    for (const double e : sizes) out.mean += e / static_cast<double>(sizes.size());
    const auto quantile = [&](double q) {
        const double rank = std::ceil(q * static_cast<double>(sizes.size()));
        return sizes[static_cast<std::size_t>(rank) - 1];
    };
    out.median = quantile(0.5);
    out.p90 = quantile(0.9);
    out.worst = sizes.back();
    return out;
}

// Of rows with an interval, and how many of these have what is published in it.
struct Inside {
    std::size_t rows = 0;
    std::size_t inside = 0;
};

Inside inside_of(const std::vector<VerifiedRow>& rows) {
    Inside out;
    for (const VerifiedRow& row : rows) {
        out.rows += row.ci95 ? 1 : 0;
        out.inside += row.ci95 && row.ci95->contains(row.published) ? 1 : 0;
    }
    return out;
}

// Of rows that say how far they may be off, how many are no further.
struct Coverage {
    std::size_t rows = 0;
    std::size_t half = 0;
    std::size_t nine_tenths = 0;
};

double off_of(const VerifiedRow& row) {
    return std::abs(std::log(row.simulated / row.published));
}

bool says_width(const VerifiedRow& row) {
    return row.half > 0 && row.simulated > 0 && row.published > 0;
}

Coverage coverage_of(const std::vector<VerifiedRow>& rows) {
    Coverage out;
    for (const VerifiedRow& row : rows) {
        if (!says_width(row)) continue;
        ++out.rows;
        out.half += off_of(row) <= std::log1p(row.half) ? 1 : 0;
        out.nine_tenths += off_of(row) <= std::log1p(row.nine_tenths) ? 1 : 0;
    }
    return out;
}

// All rows that say how far they may be off, each with widths that were learned without its own stack: the
// catalogue's, times what holds the right share of the other stacks' rows.
std::vector<VerifiedRow> with_widths_of_others(const std::vector<VerifiedTable>& tables) {
    std::vector<VerifiedRow> rows;
    std::set<std::string> stacks;
    for (const VerifiedTable& table : tables) {
        for (const VerifiedRow& row : table.expressed) {
            if (!says_width(row)) continue;
            rows.push_back(row);
            stacks.insert(row.software);
        }
    }
    if (stacks.size() < 2) return {};
    std::vector<VerifiedRow> out;
    for (const std::string& stack : stacks) {
        std::vector<double> half;  // of the other stacks' rows, how many of its widths each is off
        std::vector<double> nine_tenths;
        for (const VerifiedRow& row : rows) {
            if (row.software == stack) continue;
            half.push_back(off_of(row) / std::log1p(row.half));
            nine_tenths.push_back(off_of(row) / std::log1p(row.nine_tenths));
        }
        std::sort(half.begin(), half.end());
        std::sort(nine_tenths.begin(), nine_tenths.end());
        for (VerifiedRow row : rows) {
            if (row.software != stack) continue;
            row.half = std::expm1(sorted_quantile(half, 0.5) * std::log1p(row.half));
            row.nine_tenths =
                std::expm1(sorted_quantile(nine_tenths, 0.9) * std::log1p(row.nine_tenths));
            out.push_back(row);
        }
    }
    return out;
}

double median_width(const std::vector<VerifiedRow>& rows) {
    std::vector<double> widths;
    for (const VerifiedRow& row : rows) widths.push_back(row.nine_tenths);
    std::sort(widths.begin(), widths.end());
    return sorted_quantile(widths, 0.5);
}

// Of runs whose memory is known, how many fit: all of them ran.
struct Room {
    std::size_t rows = 0;
    std::size_t fit = 0;
};

Room room_of(const std::vector<VerifiedRow>& rows) {
    Room out;
    for (const VerifiedRow& row : rows) {
        if (row.memory_capacity == 0) continue;
        ++out.rows;
        out.fit += row.fits() ? 1 : 0;
    }
    return out;
}

// The rows of each quantity, in the order of their first.
std::vector<std::vector<VerifiedRow>> by_quantity(const VerifiedTable& table) {
    std::vector<std::vector<VerifiedRow>> out;
    for (const VerifiedRow& row : table.expressed) {
        const auto found = std::find_if(out.begin(), out.end(), [&](const auto& rows) {
            return rows.front().quantity == row.quantity;
        });
        if (found == out.end()) {
            out.push_back({row});
        } else {
            found->push_back(row);
        }
    }
    return out;
}

std::string interval_text(const VerifiedRow& row) {
    if (!row.ci95) return "";
    return fmt::format("{:.6g} to {:.6g}{}", row.ci95->low, row.ci95->high,
                       row.ci95->contains(row.published) ? "" : ", outside");
}

std::string json_text(const std::vector<VerifiedTable>& tables) {
    Json rows = Json::array();
    Json summary = Json::object();
    for (const VerifiedTable& table : tables) {
        for (const VerifiedRow& row : table.expressed) {
            rows.push_back({{"table", table.name},
                            {"row", row.row},
                            {"quantity", row.quantity},
                            {"published", row.published},
                            {"simulated", row.simulated},
                            {"error", row.error()}});
            if (!row.software.empty()) rows.back()["software"] = row.software;
            for (const auto& [part, seconds] : row.parts) {
                rows.back()["parts_s"][part] = seconds;
            }
            for (const auto& [component, bytes] : row.memory_bytes) {
                rows.back()["memory_bytes"][component] = bytes;
            }
            if (row.memory_capacity > 0) rows.back()["fits"] = row.fits();
            if (row.ci95) rows.back()["ci95"] = {row.ci95->low, row.ci95->high};
        }
        const Errors e = errors_of(table.expressed);
        summary[table.name] = {{"rows", table.rows},
                               {"expressed", table.expressed.size()},
                               {"mean_abs_error", e.mean},
                               {"median", e.median},
                               {"p90", e.p90},
                               {"worst", e.worst}};
        const Inside inside = inside_of(table.expressed);
        if (inside.rows > 0) summary[table.name]["inside_ci95"] = inside.inside;
        if (const Coverage c = coverage_of(table.expressed); c.rows > 0) {
            summary[table.name]["inside_50"] = c.half;
            summary[table.name]["inside_90"] = c.nine_tenths;
        }
        if (const Room room = room_of(table.expressed); room.rows > 0) {
            summary[table.name]["fit"] = room.fit;
        }
        for (const std::vector<VerifiedRow>& part : by_quantity(table)) {
            const Errors of = errors_of(part);
            summary[table.name]["by_quantity"][part.front().quantity] = {
                {"expressed", part.size()},
                {"mean_abs_error", of.mean},
                {"median", of.median},
                {"p90", of.p90},
                {"worst", of.worst}};
        }
    }
    Json out = {{"rows", rows}, {"summary", summary}};
    if (const auto others = with_widths_of_others(tables); !others.empty()) {
        const Coverage c = coverage_of(others);
        out["coverage_by_other_stacks"] = {{"rows", c.rows},
                                           {"inside_50", c.half},
                                           {"inside_90", c.nine_tenths},
                                           {"median_width_90", median_width(others)}};
    }
    return one_line(out);
}

struct TableFiles {
    std::string csv;
    std::string description;  // TOML; empty: the one that the table comes with
};

std::vector<TableFiles> shipped_tables() {
    std::vector<TableFiles> out;
    for (const auto& entry :
         std::filesystem::directory_iterator(shipped_file("tests/validation"))) {
        if (entry.path().extension() == ".csv") out.push_back({entry.path().string(), {}});
    }
    std::ranges::sort(out, {}, &TableFiles::csv);
    return out;
}

// A description is of the table that follows it, or of the one with its name beside it.
std::vector<TableFiles> named_tables(const std::vector<std::string>& arguments) {
    std::vector<TableFiles> out;
    std::string description;
    const auto of_its_name = [&] {
        if (description.empty()) return;
        out.push_back({std::filesystem::path(description).replace_extension(".csv").string(),
                       std::exchange(description, {})});
    };
    for (const std::string& path : arguments) {
        if (path.ends_with(".toml")) {
            of_its_name();
            description = path;
        } else {
            out.push_back({path, std::exchange(description, {})});
        }
    }
    of_its_name();
    return out;
}

}  // namespace

int cmd_verify(const std::vector<std::string>& arguments) {
    CommandLine line(
        "railyard verify [[TABLE.toml] TABLE.csv...] [options]",
        "Prints published measurements and exact oracles beside what the program says, with the\n"
        "error, and how many of the rows can be expressed at all. Without tables: those that\n"
        "ship. A table of your own comes with a TOML file that says what its columns are.");
    line.positional("table", -1);
    line.add()("set", po::value<std::vector<std::string>>()->composing(),
               "Another value in the catalogue: --set override.gpu.h100_sxm.hbm_efficiency=0.8");
    line.add()("json", "Print one JSON object on standard output and nothing else");
    line.add()("rows", "Print every row, not only the summary of each table");
    const auto values = line.parse(arguments);
    if (!values) return exit_ok;
    const bool named = values->count("table") > 0;
    const std::vector<TableFiles> paths =
        named ? named_tables((*values)["table"].as<std::vector<std::string>>()) : shipped_tables();

    Diagnostics diagnostics;
    Document settings;
    settings.name = "--set";
    for (const std::string& setting : settings_of(*values)) {
        apply_setting(settings, setting, diagnostics);
    }
    diagnostics.raise_if_any();
    const Value* overrides = settings.root.find("override");

    std::vector<VerifiedTable> tables;
    std::size_t done = 0;
    try {
        for (const auto& [path, description] : paths) {
            const CsvTable table = read_csv_table(path);
            const std::vector<VerifiedTable> verified =
                verify_table(table, {description, settings_of(*values), overrides});
            tables.insert(tables.end(), verified.begin(), verified.end());
            if (verified.empty() && named) {
                fmt::print(stderr, "{}: warning: no model here answers to this table\n", path);
            }
            ++done;
        }
    } catch (const Interrupted&) {
        if (done == 0) throw;
        fmt::print(stderr,
                   "railyard: interrupted: these are the {} of {} tables that were finished\n",
                   done, paths.size());
    }
    const int code = done < paths.size() ? exit_interrupted : exit_ok;
    std::set<std::string> said;  // a row that is of two quantities is refused for both
    for (const VerifiedTable& table : tables) {
        for (Diagnostic row : table.unused) {
            row.help = "this row is not expressed";
            const std::string text = format_diagnostic(row, "warning");
            if (said.insert(text).second) fmt::print(stderr, "{}\n", text);
        }
    }
    if (values->count("json")) {
        fmt::print("{}\n", json_text(tables));
        return code;
    }
    const auto percent = [](double e) { return fmt::format("{:.2f} %", 100 * e); };
    if (values->count("rows")) {
        Table rows({{"table", Table::Align::left},
                    {"row", Table::Align::left},
                    {"quantity", Table::Align::left},
                    {"published", Table::Align::right},
                    {"simulated", Table::Align::right},
                    {"error", Table::Align::right},
                    {"interval, 95 %", Table::Align::left}});
        for (const VerifiedTable& table : tables) {
            for (const VerifiedRow& row : table.expressed) {
                rows.add({table.name.substr(0, 2), row.row, row.quantity,
                          fmt::format("{:.6g}", row.published),
                          fmt::format("{:.6g}", row.simulated),
                          fmt::format("{:+.2f} %", 100 * row.error()), interval_text(row)});
            }
        }
        fmt::print("{}\n", rows.text());
    }
    Table summary({{"table", Table::Align::left},
                   {"", Table::Align::left},
                   {"rows", Table::Align::right},
                   {"expressed", Table::Align::right},
                   {"mean |error|", Table::Align::right},
                   {"median", Table::Align::right},
                   {"p90", Table::Align::right},
                   {"worst", Table::Align::right}});
    for (const VerifiedTable& table : tables) {
        const auto add = [&](const std::string& number, const std::string& what,
                             const std::string& count, const std::vector<VerifiedRow>& expressed) {
            const Errors e = errors_of(expressed);
            summary.add({number, what, count, fmt::format("{}", expressed.size()), percent(e.mean),
                         percent(e.median), percent(e.p90), percent(e.worst)});
        };
        add(table.name.substr(0, 2), table.what, fmt::format("{}", table.rows), table.expressed);
        const auto parts = by_quantity(table);
        for (const auto& part : parts) {
            if (parts.size() > 1) add("", "  " + part.front().quantity, "", part);
        }
    }
    fmt::print("{}", summary.text());
    for (const VerifiedTable& table : tables) {
        const Inside inside = inside_of(table.expressed);
        if (inside.rows == 0) continue;
        fmt::print("{}: {} of {} inside the interval of 95 %\n", table.name.substr(0, 2),
                   inside.inside, inside.rows);
    }
    for (const VerifiedTable& table : tables) {
        const Coverage c = coverage_of(table.expressed);
        if (c.rows == 0) continue;
        fmt::print("{}: {} of {} inside the model error's 50 %, {} inside its 90 %\n",
                   table.name.substr(0, 2), c.half, c.rows, c.nine_tenths);
    }
    if (const auto others = with_widths_of_others(tables); !others.empty()) {
        const Coverage c = coverage_of(others);
        const auto share = [&](std::size_t n) {
            return 100 * static_cast<double>(n) / static_cast<double>(c.rows);
        };
        fmt::print(
            "all {} with widths from the other stacks: {:.1f} % inside their 50 %, {:.1f} % inside "
            "their 90 %, which is half the time within {:.1f} %\n",
            c.rows, share(c.half), share(c.nine_tenths), 100 * median_width(others));
    }
    for (const VerifiedTable& table : tables) {
        const Room room = room_of(table.expressed);
        if (room.rows == 0) continue;
        fmt::print("{}: {} of {} plans fit in memory, and all of them ran\n",
                   table.name.substr(0, 2), room.fit, room.rows);
    }
    return code;
}

}  // namespace railyard
