// railyard trace: one replica, one step or one packet window, to be looked at in ui.perfetto.dev.

#include <fmt/format.h>

#include "models/campaign/campaign.h"
#include "tools/cli/cmd.h"
#include "tools/cli/options.h"
#include "tools/cli/terminal.h"
#include "tools/cli/terminal_observer.h"
#include "tools/cli/window_text.h"
#include "tools/language/scenario_files.h"
#include "tools/program/output_file.h"
#include "tools/study/trials.h"
#include "tools/trace/perfetto_trace.h"
#include "tools/trace/trace_tracks.h"

namespace railyard {

namespace {

struct TraceArguments {
    std::string scenario;
    std::string output;
    std::int64_t replica = 0;
    bool step = false;
    bool window = false;
    ScenarioChanges changes;
};

TraceArguments parse_trace(const std::vector<std::string>& arguments) {
    TraceArguments out;
    CommandLine line("railyard trace SCENARIO.toml -o FILE.pftrace [options]",
                     "Writes one replica as a Perfetto trace, which ui.perfetto.dev opens: phases "
                     "of the job, checkpoints,\n"
                     "interruptions, nodes out of service, what the stores move; of many jobs "
                     "their runs, queues and failures.\nOr one step, or the packet window.");
    line.positional("scenario", 1);
    line.add_settings();
    line.add()("output,o", po::value(&out.output), "The file to write");
    line.add()("replica", po::value(&out.replica)->default_value(0),
               "Which replica, counted from 0");
    line.add()("step", po::bool_switch(&out.step),
               "One training step instead: where its time goes");
    line.add()("window", po::bool_switch(&out.window),
               "The scenario's packet window instead: flows, pauses, queues");
    const auto values = line.parse(arguments);
    out.scenario = word_given(values, "scenario", "trace needs a scenario file",
                              "railyard trace SCENARIO.toml -o FILE");
    if (out.output.empty()) {
        throw ScenarioError("trace needs a file to write",
                            fmt::format("railyard trace {} -o run.pftrace", out.scenario));
    }
    if (out.step && out.window) {
        throw ScenarioError("--step and --window: one trace shows one of them", "choose one");
    }
    out.changes.settings = settings_of(values);
    out.changes.packets = out.window;
    out.changes.must_run = !out.window && !out.step;
    if (!out.changes.must_run) out.changes.overrides_read = std::make_shared<OverridesRead>();
    out.changes.run_windows = !out.window;
    out.changes.windows = watched_windows();
    return out;
}

// The length of what was traced.
Duration trace_one_replica(PerfettoTrace& trace, const Scenario& s, std::int64_t replica) {
    check_replica(replica, s.replicas);
    if (s.world) {
        const ReplicaResult result = run_replica(s, replica, true);
        const std::size_t left_out = trace_world(trace, s, result);
        if (left_out > 0) {
            fmt::print(stderr,
                       "railyard: {} runs of jobs with less GPU time are left out; the counters "
                       "have all\n",
                       left_out);
        }
        return result.simulated;
    }
    ReplicaTrace record;
    const ReplicaResult result = run_replica(s, replica, true, &record);
    trace_replica(trace, s, result, record);
    return result.simulated;
}

Duration trace_windows(PerfettoTrace& trace, const Scenario& s) {
    const std::vector<NetworkWindow> networks = windows_of(s);
    StandaloneCatalogue own = s.open_catalogue();
    Picoseconds longest{};
    for (const NetworkWindow& window : networks) {
        WindowRecord record;
        const WindowResult r =
            run_window(own.catalogue, window.network->topology, window.network->packets,
                       window.window, terminal_observer(), &record);
        if (r.ending == WindowEnding::cancelled) throw Interrupted();
        longest = std::max(longest, r.end);
        const std::size_t left_out = trace_window(trace, s, window, r, record);
        if (left_out > 0) {
            fmt::print(
                stderr,
                "railyard: of the {} network, {} with shorter pauses and queues were left out\n",
                window.network->name, counted(left_out, "link"));
        }
    }
    return std::chrono::duration_cast<Duration>(longest);
}

}  // namespace

int cmd_trace(const std::vector<std::string>& arguments) {
    const TraceArguments args = parse_trace(arguments);
    const Scenario s = load_scenario_file(args.scenario, args.changes);
    if (args.step || args.window) need_one_job(s, args.step ? "trace --step" : "trace --window");
    print_warnings(s.warnings);
    if (!args.window && !takes_first_step(s)) return exit_stuck;
    OutputFile output(args.output, files_of(args.scenario, args.changes.settings));
    PerfettoTrace trace;
    Duration length = s.job.step.duration();
    if (args.window) {
        length = trace_windows(trace, s);
    } else if (args.step) {
        trace_step(trace, s);
    } else {
        length = trace_one_replica(trace, s, args.replica);
    }
    if (args.changes.overrides_read) print_warnings(unread_overrides(s));
    trace.write(output);
    output.keep();
    fmt::print("{}: {} of simulated time, {} events on {} tracks; open it in ui.perfetto.dev\n",
               args.output, to_text(length), trace.events(), trace.tracks());
    return exit_ok;
}

}  // namespace railyard
