#include "tools/cli/verified_report.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <set>
#include <span>

#include "sim/error.h"
#include "tools/cli/terminal.h"
#include "tools/program/json_text.h"
#include "tools/program/pattern.h"

namespace railyard {

namespace {

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
    std::ranges::sort(sizes);
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

// Rows with an interval of runs, and how many of them contain the published value.
struct Inside {
    std::size_t rows = 0;
    std::size_t inside = 0;
};

Inside inside_of(const std::vector<VerifiedRow>& rows) {
    Inside out;
    for (const VerifiedRow& row : rows) {
        out.rows += row.of_run ? 1 : 0;
        out.inside += row.of_run && row.of_run->contains(row.published) ? 1 : 0;
    }
    return out;
}

// Rows with a tolerance, and how many keep it.
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

// All rows that say how far they may be off. Each has widths that were learned without its own stack: the
// catalogue's, times the factor with which they hold the right share of the other stacks' rows.
std::vector<VerifiedRow> with_widths_of_others(const std::vector<VerifiedTable>& tables) {
    std::vector<VerifiedRow> rows;
    std::set<std::string> stacks;
    for (const VerifiedTable& table : tables) {
        for (const VerifiedRow& row : table.expressed) {
            if (!says_width(row) || row.software.empty()) continue;
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
        std::ranges::sort(half);
        std::ranges::sort(nine_tenths);
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
    std::ranges::sort(widths);
    return sorted_quantile(widths, 0.5);
}

// Runs whose memory is known, and how many fit by the model: in fact all of them ran.
struct Room {
    std::size_t rows = 0;
    std::vector<std::string> too_large;  // their names

    std::string text() const {
        constexpr std::size_t shown = 3;
        std::string out = fmt::format("{} of {} plans fit in memory, and all of them ran",
                                      rows - too_large.size(), rows);
        if (too_large.empty()) return out;
        const auto first = std::span(too_large).first(std::min(shown, too_large.size()));
        out += fmt::format("; not {}", fmt::join(first, ", "));
        if (too_large.size() > shown) out += fmt::format(" and {} more", too_large.size() - shown);
        return out;
    }
};

Room room_of(const std::vector<VerifiedRow>& rows) {
    Room out;
    for (const VerifiedRow& row : rows) {
        if (row.memory_capacity == 0) continue;
        ++out.rows;
        if (!row.fits()) out.too_large.push_back(row.row);
    }
    return out;
}

// The rows of each quantity, in the order of their first.
std::vector<std::vector<VerifiedRow>> by_quantity(const VerifiedTable& table) {
    std::vector<std::vector<VerifiedRow>> out;
    for (const VerifiedRow& row : table.expressed) {
        const auto found = std::ranges::find_if(
            out, [&](const auto& rows) { return rows.front().quantity == row.quantity; });
        if (found == out.end()) {
            out.push_back({row});
        } else {
            found->push_back(row);
        }
    }
    return out;
}

std::string interval_text(const VerifiedRow& row) {
    if (!row.of_run) return "";
    return fmt::format("{:.6g} to {:.6g}{}", row.of_run->low, row.of_run->high,
                       row.of_run->contains(row.published) ? "" : ", outside");
}

// What a table is called in few words: the number that its name begins with, else all of it.
std::string short_name(const VerifiedTable& table) {
    const Found number = match_pattern(table.name, R"((\d{2,3})\D.*)");
    return number.empty() ? table.name : number[1];
}

std::string rows_text(const std::vector<VerifiedTable>& tables) {
    Table rows({"table", "row", "quantity", ">published", ">simulated", ">error", "95 % of runs"});
    for (const VerifiedTable& table : tables) {
        for (const VerifiedRow& row : table.expressed) {
            rows.add({short_name(table), row.row, row.quantity,
                      fmt::format("{:.6g}", row.published), fmt::format("{:.6g}", row.simulated),
                      fmt::format("{:+.2f} %", 100 * row.error()), interval_text(row)});
        }
    }
    return rows.text() + "\n";
}

std::string summary_text(const std::vector<VerifiedTable>& tables) {
    Table summary(
        {"table", "", ">rows", ">expressed", ">mean |error|", ">median", ">p90", ">worst"});
    for (const VerifiedTable& table : tables) {
        const auto add = [&](const std::string& number, const std::string& what,
                             const std::string& count, const std::vector<VerifiedRow>& expressed) {
            const Errors e = errors_of(expressed);
            summary.add({number, what, count, fmt::format("{}", expressed.size()), percent(e.mean),
                         percent(e.median), percent(e.p90), percent(e.worst)});
        };
        add(short_name(table), table.what, fmt::format("{}", table.rows), table.expressed);
        const auto parts = by_quantity(table);
        for (const auto& part : parts) {
            if (parts.size() > 1) add("", "  " + part.front().quantity, "", part);
        }
    }
    return summary.text();
}

// How many rows are inside what is said of how far they may be off, and how many plans fit.
std::string coverage_text(const std::vector<VerifiedTable>& tables) {
    std::string out;
    for (const VerifiedTable& table : tables) {
        const Inside inside = inside_of(table.expressed);
        if (inside.rows == 0) continue;
        out += fmt::format("{}: {} of {} inside where 95 % of runs are\n", short_name(table),
                           inside.inside, inside.rows);
    }
    for (const VerifiedTable& table : tables) {
        const Coverage c = coverage_of(table.expressed);
        if (c.rows == 0) continue;
        out += fmt::format("{}: {} of {} inside the model error's 50 %, {} inside its 90 %\n",
                           short_name(table), c.half, c.rows, c.nine_tenths);
    }
    if (const auto others = with_widths_of_others(tables); !others.empty()) {
        const Coverage c = coverage_of(others);
        const auto share = [&](std::size_t n) {
            return 100 * static_cast<double>(n) / static_cast<double>(c.rows);
        };
        out += fmt::format(
            "all {} with widths from the other stacks: {:.1f} % inside their 50 %, {:.1f} % inside "
            "their 90 %, which is half the time within {:.1f} %\n",
            c.rows, share(c.half), share(c.nine_tenths), 100 * median_width(others));
    }
    for (const VerifiedTable& table : tables) {
        const Room room = room_of(table.expressed);
        if (room.rows > 0) out += fmt::format("{}: {}\n", short_name(table), room.text());
    }
    return out;
}

}  // namespace

std::string verified_json(const std::vector<VerifiedTable>& tables) {
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
            if (row.half > 0) rows.back()["model_error"] = {row.half, row.nine_tenths};
            for (const auto& [part, seconds] : row.parts) rows.back()["parts_s"][part] = seconds;
            for (const auto& [component, bytes] : row.memory_bytes) {
                rows.back()["memory_bytes"][component] = bytes;
            }
            if (row.memory_capacity > 0) rows.back()["fits"] = row.fits();
            if (row.ci95) rows.back()["ci95"] = {row.ci95->low, row.ci95->high};
            if (row.of_run) rows.back()["runs_95"] = {row.of_run->low, row.of_run->high};
            if (!row.settings.empty()) rows.back()["settings"] = row.settings;
        }
        const Errors e = errors_of(table.expressed);
        summary[table.name] = {{"rows", table.rows},
                               {"expressed", table.expressed.size()},
                               {"mean_abs_error", e.mean},
                               {"median", e.median},
                               {"p90", e.p90},
                               {"worst", e.worst}};
        if (!table.tolerances.empty()) summary[table.name]["outside"] = table.outside();
        const Inside inside = inside_of(table.expressed);
        if (inside.rows > 0) summary[table.name]["inside_runs_95"] = inside.inside;
        if (const Coverage c = coverage_of(table.expressed); c.rows > 0) {
            summary[table.name]["inside_50"] = c.half;
            summary[table.name]["inside_90"] = c.nine_tenths;
        }
        if (const Room room = room_of(table.expressed); room.rows > 0) {
            summary[table.name]["fit"] = room.rows - room.too_large.size();
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

std::string verified_text(const std::vector<VerifiedTable>& tables, bool rows) {
    return visible((rows ? rows_text(tables) : "") + summary_text(tables) + coverage_text(tables));
}

}  // namespace railyard
