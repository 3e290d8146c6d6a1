#include "tools/report/decision_page.h"

#include <fmt/format.h>

#include <string_view>

#include "sim/error.h"

namespace railyard {

namespace {

constexpr const char* page_style = R"(
body{font:10.5pt/1.45 system-ui,sans-serif;color:#1a1a1a;background:#fff}
body{max-width:46rem;margin:2rem auto;padding:0 1rem}
h1{font-size:1.5em;line-height:1.2;margin:0 0 .4em}
h2{font-size:1.05em;margin:1.4em 0 .3em;border-bottom:1px solid #bbb}
.verdict{font-size:1.1em;border-left:.3em solid #1f6f54;padding:.2em .8em;margin:.8em 0}
table{border-collapse:collapse;width:100%;margin:.4em 0;font-variant-numeric:tabular-nums}
th{text-align:left;font-weight:600;border-bottom:1px solid #888;vertical-align:bottom}
td,th{padding:.15em .7em .15em 0;vertical-align:top}
tr+tr td{border-top:1px solid #e4e4e4}
.n{text-align:right}
p{margin:.3em 0}
.note,footer{color:#555;font-size:.9em}
footer{margin-top:2em}
@media print{body{max-width:none;margin:0;font-size:9pt}section{break-inside:avoid}@page{size:A4;margin:14mm}}
)";

std::string html_text(std::string_view text) {
    std::string out;
    for (const char c : visible(text)) {
        switch (c) {
            case '&':
                out += "&amp;";
                break;
            case '<':
                out += "&lt;";
                break;
            case '>':
                out += "&gt;";
                break;
            case '"':
                out += "&quot;";
                break;
            default:
                out += c;
        }
    }
    return out;
}

std::string table_row(const DecisionTable& table, const std::vector<std::string>& row,
                      const char* tag) {
    std::string out = "<tr>";
    for (std::size_t i = 0; i < row.size(); ++i) {
        const bool number = i < table.columns.size() && table.columns[i].starts_with('>');
        const std::string_view text =
            std::string_view(row[i]).substr(&row == &table.columns && number ? 1 : 0);
        out +=
            fmt::format("<{}{}>{}</{}>", tag, number ? " class=\"n\"" : "", html_text(text), tag);
    }
    return out + "</tr>\n";
}

std::string section_of(const DecisionSection& section) {
    std::string out = fmt::format("<section>\n<h2>{}</h2>\n", html_text(section.title));
    for (const std::string& text : section.sentences) {
        out += fmt::format("<p>{}</p>\n", html_text(text));
    }
    const DecisionTable& table = section.table;
    if (!table.rows.empty()) {
        out += "<table>\n<thead>" + table_row(table, table.columns, "th") + "</thead>\n<tbody>\n";
        for (const auto& row : table.rows) out += table_row(table, row, "td");
        out += "</tbody>\n</table>\n";
    }
    for (const std::string& text : section.notes) {
        out += fmt::format("<p class=\"note\">{}</p>\n", html_text(text));
    }
    return out + "</section>\n";
}

}  // namespace

std::string decision_page(const Decision& decision) {
    std::string out = fmt::format(
        "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n"
        "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src "
        "'unsafe-inline'\">\n"
        "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n"
        "<title>{0}</title>\n<style>{1}</style>\n</head>\n<body>\n<h1>{0}</h1>\n"
        "<p class=\"verdict\">{2}</p>\n",
        html_text(decision.title), page_style, html_text(decision.verdict));
    for (const DecisionSection& section : decision.sections) out += section_of(section);
    return out + fmt::format("<footer>{}</footer>\n</body>\n</html>\n", html_text(decision.footer));
}

}  // namespace railyard
