// railyard window: the scenario's traffic and faults, packet by packet.

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <memory>
#include <set>

#include "models/campaign/campaign.h"
#include "sim/parallel.h"
#include "tools/cli/cmd.h"
#include "tools/cli/options.h"
#include "tools/cli/terminal.h"
#include "tools/cli/terminal_observer.h"
#include "tools/cli/window_text.h"
#include "tools/program/json_text.h"
#include "tools/study/arms.h"

namespace railyard {

namespace {

// A loaded scenario, and what its networks' windows need to run.
struct Loaded {
    Loaded(const std::string& path, std::vector<std::string> settings,
           const std::string& progress_label = "flows")
        : observer(terminal_observer(progress_label)),
          scenario(load_scenario_file(path, changes(std::move(settings)))),
          own(scenario.open_catalogue()) {}
    static ScenarioChanges changes(std::vector<std::string> settings) {
        ScenarioChanges out;
        out.must_run = false;
        out.overrides_read = std::make_shared<OverridesRead>();
        out.packets = true;
        out.run_windows = false;  // but the one that is asked for
        out.settings = std::move(settings);
        return out;
    }
    WindowResult run(const NetworkWindow& window) {
        return run_window(own.catalogue, window.network->topology, window.network->packets,
                          window.window, observer);
    }

    WindowObserver observer;
    Scenario scenario;
    StandaloneCatalogue own;
};

// Prints it and returns its exit code.
int complained(const Complaint& complaint) {
    fmt::print(stderr, "{}", complaint.text);
    return complaint.code;
}

// Those that have not been printed yet.
void print_new_warnings(const std::vector<Diagnostic>& warnings, std::set<std::string>& printed) {
    for (const Diagnostic& warning : warnings) {
        if (printed.insert(format_diagnostic(warning, "warning")).second) print_warnings({warning});
    }
}

// Faults that began when nothing was under way any more, or that the window did not last to.
std::vector<Diagnostic> late_faults(const Scenario& s, const NetworkWindow& window,
                                    const WindowResult& r) {
    const bool cut_off = std::ranges::find(r.ends, PacketEngine::never) != r.ends.end();
    const Picoseconds over = cut_off || r.ends.empty() ? r.end : *std::ranges::max_element(r.ends);
    const std::string network = window.network->name;
    const std::string after = to_text(std::chrono::duration_cast<Duration>(over));
    const std::string when =
        cut_off ? fmt::format("the window of the {} network ended before, after {}", network, after)
                : fmt::format("all traffic on the {} network was over after {}", network, after);
    std::vector<Diagnostic> out;
    for (std::size_t i = 0; i < s.window.faults.size(); ++i) {
        const FaultSpec& fault = s.window.faults[i];
        const bool always = fault.fault.kind == WindowFault::Kind::bit_errors;
        if (always || fault.network != network || fault.fault.start < over) continue;
        out.push_back(
            {s.file, {}, fmt::format("window.fault[{}].start", i), "has no effect: " + when, {}});
    }
    return out;
}

int run_single(const std::string& path, const std::vector<std::string>& settings, bool json) {
    Loaded loaded(path, settings);
    const Scenario& s = loaded.scenario;
    print_warnings(s.warnings);
    const std::vector<NetworkWindow> networks = windows_of(s);
    if (!json) fmt::print("{}\n\n", s.title);
    Json windows = Json::array();
    int code = exit_ok;
    for (const NetworkWindow& window : networks) {
        const WindowResult r = loaded.run(window);
        if (json) {
            windows.push_back(window_json(s, window, r));
        } else {
            print_window(s, window, r);
        }
        if (r.ending == WindowEnding::cancelled) {
            code = exit_interrupted;
            break;
        }
        print_warnings(late_faults(s, window, r));
        code = std::max(code, complained(complaint(s, window, r)));
    }
    if (code != exit_interrupted) print_warnings(unread_overrides(s));
    if (json) {
        fmt::print(
            "{}\n",
            one_line(Json{{"scenario", s.file}, {"version", version()}, {"windows", windows}}));
    }
    return code;
}

// What an arm comes to; nothing else of it is kept.
struct ArmResult {
    bool complete = false;  // not one that Ctrl-C left out, or ended early
    std::string title;
    std::vector<Diagnostic> warnings;
    std::vector<Complaint> complaints;
    std::vector<std::vector<std::string>> rows;  // of the table
    Json json;
};

ArmResult run_arm(const std::string& path, std::vector<std::string> settings, const Arm& arm,
                  const std::string& label, bool json) {
    settings.insert(settings.end(), arm.settings.begin(), arm.settings.end());
    Loaded loaded(path, settings, label);
    const Scenario& s = loaded.scenario;
    ArmResult out;
    out.title = s.title;
    out.warnings = s.warnings;
    Json windows = Json::array();
    for (const NetworkWindow& window : windows_of(s)) {
        const WindowResult r = loaded.run(window);
        if (r.ending == WindowEnding::cancelled) return out;
        out.complaints.push_back(complaint(s, window, r));
        std::ranges::move(late_faults(s, window, r), std::back_inserter(out.warnings));
        std::ranges::move(arm_rows(arm.name, s, window, r), std::back_inserter(out.rows));
        if (json) windows.push_back(window_json(s, window, r));
    }
    std::ranges::move(unread_overrides(s), std::back_inserter(out.warnings));
    out.json = {{"arm", arm.name}, {"settings", arm.settings}, {"windows", std::move(windows)}};
    if (const auto capital = capital_of(s)) out.json["capital_usd"] = *capital;
    out.complete = true;
    return out;
}

int run_arms(const std::string& path, const std::vector<std::string>& settings,
             const std::vector<Arm>& arms, unsigned threads, bool json) {
    std::vector<ArmResult> results(arms.size());
    parallel_for(arms.size(), threads, &interrupted(), [&](std::size_t i) {
        results[i] = run_arm(path, settings, arms[i],
                             fmt::format("arm {} of {}: flows", i + 1, arms.size()), json);
    });
    Table table = arms_table();
    Json rows = Json::array();
    std::set<std::string> printed;
    std::string title;
    int code = exit_ok;
    for (ArmResult& arm : results) {
        if (!arm.complete) {
            code = exit_interrupted;
            continue;
        }
        title = arm.title;
        print_new_warnings(arm.warnings, printed);
        for (const Complaint& each : arm.complaints) code = std::max(code, complained(each));
        for (std::vector<std::string>& row : arm.rows) table.add(std::move(row));
        rows.push_back(std::move(arm.json));
    }
    if (json) {
        fmt::print("{}\n",
                   one_line(Json{{"scenario", path}, {"version", version()}, {"arms", rows}}));
    } else {
        fmt::print("{}\n\n{}", title, table.text());
    }
    return code;
}

}  // namespace

int cmd_window(const std::vector<std::string>& arguments) {
    CommandLine line("railyard window SCENARIO.toml [options]",
                     "Runs the scenario's [window] packet by packet: its traffic and its faults on "
                     "the networks,\n"
                     "until every flow has ended or failed. Without [window.traffic], a ring over "
                     "the job's nodes.");
    line.positional("scenario", 1);
    line.add_settings();
    line.add()("vary", po::value<std::vector<std::string>>()->composing(),
               "One table instead, a row for each value (combination of values, if given more than "
               "once): --vary \"fabric.compute.queue_pairs=1,4,16\"");
    line.add()("arm", po::value<std::vector<std::string>>()->composing(),
               "Likewise a row with settings of its own: --arm \"NAME: KEY=VALUE; KEY=VALUE\"");
    line.add_threads("Threads, each for an arm at a time; the result does not depend on it");
    line.add_json();
    const auto values = line.parse(arguments);
    const std::string path = only_scenario(values, "window");
    const bool json = values.count("json") > 0;
    const std::vector<Arm> arms = arms_of(all_of(values, "vary"), all_of(values, "arm"));
    if (arms.empty()) return run_single(path, settings_of(values), json);
    return run_arms(path, settings_of(values), arms, threads_of(values), json);
}

}  // namespace railyard
