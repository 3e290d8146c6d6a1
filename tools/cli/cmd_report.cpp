// railyard report: a results database as one page of HTML that needs nothing else.

#include <fmt/format.h>

#include <filesystem>

#include "models/campaign/campaign.h"
#include "tools/cli/cmd.h"
#include "tools/cli/options.h"
#include "tools/cli/terminal.h"
#include "tools/cli/terminal_observer.h"
#include "tools/cli/verdict_table.h"
#include "tools/program/installation.h"
#include "tools/program/json_text.h"
#include "tools/program/output_file.h"
#include "tools/report/results.h"
#include "tools/report/timeline.h"
#include "tools/results/results_schema.h"
#include "tools/study/run_verdict.h"

namespace railyard {

namespace {

// The page without its data; npm is needed to build it, and nothing else needs npm.
std::string page_template() {
    if (!std::filesystem::exists(report_page_file())) {
        throw ScenarioError(
            fmt::format("the report's page is missing: {} was not built", report_page_file()),
            "it is bundled from npm packages (Apache ECharts, esbuild): install nodejs and npm, "
            "then build again:\n    cmake -S . -B build -DRAILYARD_REPORT=ON && ninja -C build "
            "report_page");
    }
    return read_file(report_page_file());
}

void replace(std::string& text, std::string_view mark, std::string_view by) {
    const std::size_t at = text.find(mark);
    if (at == std::string::npos) {
        throw ScenarioError(
            fmt::format("{} is not the report's page: {} is not in it", report_page_file(), mark),
            "build it again: ninja -C build report_page");
    }
    text.replace(at, mark.size(), by);
}

// JSON in an HTML script element: nothing in it may end the element.
std::string for_script(std::string text) {
    for (std::size_t at = 0; (at = text.find('<', at)) != std::string::npos; at += 6) {
        text.replace(at, 1, "\\u003c");
    }
    return text;
}

struct ReportArguments {
    std::string db;
    std::string output;
    bool estimates = true;
    unsigned threads = 1;
};

ReportArguments parse_report(const std::vector<std::string>& arguments) {
    ReportArguments out;
    CommandLine line("railyard report DATABASE -o FILE.html [options]",
                     "Writes a results database as one HTML file that opens anywhere, without a "
                     "network: verdicts first, then\n"
                     "ledgers, interruptions, a replica's timeline, the sweep's explorer, the "
                     "networks, tables.");
    line.positional("database", 1);
    line.add()("output,o", po::value(&out.output), "The file to write");
    line.add()("no-estimates", "Don't look for the estimates that answers and verdicts hang on");
    line.add_threads("Threads that look for them");
    const auto values = line.parse(arguments);
    out.db = word_given(values, "database", "report needs a database",
                        "railyard run SCENARIO.toml --db out.sqlite, then railyard report "
                        "out.sqlite -o report.html");
    if (out.output.empty()) {
        throw ScenarioError("report needs a file to write",
                            fmt::format("railyard report {} -o report.html", out.db));
    }
    out.estimates = values.count("no-estimates") == 0;
    out.threads = threads_of(values);
    return out;
}

// The estimates that the newest run's verdict hangs on; null: it has none.
Json verdict_json(Database& db, const std::shared_ptr<WindowCache>& windows, unsigned threads) {
    const auto run = db.integer("SELECT max(run) FROM runs");
    const auto by = run ? deciding_metric(*run, db) : std::nullopt;
    const auto verdict = by ? stored_verdict(*run, *by, db) : std::nullopt;
    if (!verdict || verdict->difference.pairs.verdict == Verdict::equal) return nullptr;
    TrialOptions like;
    like.threads = threads;
    like.cancelled = &interrupted();
    const VerdictEstimates found = estimates_of(*verdict, like, windows);
    Json out = verdict_estimates_json(found, verdict->best.label, verdict->second.label);
    out["run"] = *run;
    out["best"] = verdict->best.position;
    out["second"] = verdict->second.position;
    return out;
}

}  // namespace

int cmd_report(const std::vector<std::string>& arguments) {
    const ReportArguments args = parse_report(arguments);
    constexpr std::size_t featured_max = 4;
    constexpr std::size_t column_bytes_max = 2'600'000;  // leaves room for the rest below 5 MB
    const auto db = open_results(args.db);
    OutputFile output(args.output, {args.db});
    std::string page = page_template();
    ReportResults results = report_results(*db, featured_max, column_bytes_max);
    Json data = {{"database", std::filesystem::path(args.db).filename().string()},
                 {"schema", results_schema_version},
                 {"version", result_version()}};
    data.update(results.data);
    const auto windows = watched_windows();
    data["timelines"] = Json::array();
    for (const FeaturedPoint& point : results.featured) {
        data["timelines"].push_back(report_timeline(point, windows));
    }
    data["topologies"] = Json::array();
    if (!results.featured.empty()) {
        data["topologies"] = report_topologies(results.featured[0], windows);
        if (args.estimates) {
            data["estimates"] = report_estimates(results.featured[0], windows, args.threads);
            data["verdict_estimates"] = verdict_json(*db, windows, args.threads);
        }
    }
    replace(page, "__RAILYARD_DATA__", for_script(one_line(data)));
    output.write(page);
    output.keep();
    fmt::print("{}: the report of {}, {}\n", visible(args.output), visible(args.db),
               to_text(Bytes::of(std::ssize(page))));
    return exit_ok;
}

}  // namespace railyard
