// Chakra's execution traces, as the step of a scenario's job: models/training reads and schedules them.

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <filesystem>
#include <map>
#include <utility>

#include "models/campaign/campaign.h"
#include "tools/import/importers.h"
#include "tools/import/text_file.h"

namespace railyard {

namespace {

std::string from_here(const std::string& path) {
    return (std::filesystem::current_path() / path).lexically_normal().string();
}

// The folder of the traces, or the only one.
std::string traces_among(const ImportOptions& options, std::string& scenario) {
    std::vector<std::string> traces;
    for (const std::string& file : options.files) {
        if (file.ends_with(".toml")) {
            scenario = file;
        } else if (!file.ends_with("groups.json")) {  // it is read where the traces are
            traces.push_back(file);
        }
    }
    const auto folder = [](const std::string& file) {
        return std::filesystem::path(from_here(file)).parent_path();
    };
    const bool together = std::ranges::all_of(options.files, [&](const auto& file) {
        return file == scenario || traces.empty() || folder(file) == folder(traces[0]);
    });
    if (scenario.empty() || traces.empty() || (options.files.size() > 2 && !together)) {
        throw ScenarioError(
            "expected traces in one folder, and the scenario on whose network they are replayed",
            "railyard import chakra FOLDER mine.toml, or one FILE.et for FOLDER");
    }
    return traces.size() == 1 ? traces[0] : folder(traces[0]).string();
}

// The scenario with the traces as its step.
Scenario replayed(const std::string& traces, const std::string& scenario) {
    const std::string text =
        fmt::format("include = [{}]\njob.trace = {}\n", toml_text(from_here(scenario)),
                    toml_text(from_here(traces)));
    ScenarioChanges changes;
    changes.must_run = false;
    return load_scenario(text, fmt::format("{} with {}", scenario, traces), changes);
}

// What a step of the first rank says to others, by kind and group: bytes as comm_size counts them.
void note_messages(const StepTrace& trace, ImportedPart& part) {
    std::map<std::string, std::pair<std::int64_t, double>> sums;
    for (const TraceTask& task : trace.tasks) {
        const TraceMessage& m = task.message;
        if (task.kind != TraceTask::Kind::message || task.ranks.empty()) continue;
        const bool sends = m.collective == Collective::send_recv;
        if (std::ranges::find(task.ranks, 0U) == task.ranks.end()) continue;
        std::string what = to_text(m.collective);
        std::ranges::transform(what, what.begin(), [](unsigned char c) { return std::toupper(c); });
        what += fmt::format(" of {} ranks, {} apart", m.ranks, m.stride);
        if (sends) what = task.ranks.front() == 0 ? "sends" : "receives";
        auto& [times, bytes] = sums[what];
        ++times;
        const bool gather = m.collective == Collective::all_gather;
        bytes += m.bytes / static_cast<double>(gather ? m.ranks : 1);
    }
    for (const auto& [what, sum] : sums) {
        part.note("{} {}: {:.0f} bytes", sum.first, what, sum.second);
    }
}

void replay_traces(const ImportOptions& options, ImportedPart& part, Diagnostics&) {
    std::string scenario;
    const std::string traces = traces_among(options, scenario);
    const Scenario s = replayed(traces, scenario);
    if (!s.no_path.empty()) throw ScenarioError(fmt::format("{}: {}", scenario, s.no_path));
    const StepTime& step = s.job.step;
    const auto share = [&](Duration part_of) {
        return 100 * seconds(part_of) / seconds(step.duration());
    };
    part.note(
        "Replayed on {} GPUs, {}: a step of {:.12g} ms; compute {:.1f} %, exposed communication "
        "{:.1f} %, waiting for other ranks {:.1f} %.",
        s.job.gpus(), network_text(s), seconds(step.duration()) * 1e3, share(step.compute),
        share(step.exposed_communication), share(step.bubble));
    Communicators groups = communicators(s, s.fidelity, {}, false, usual_draw(s));
    part.note(
        "Traces of {} rank{}; communication takes {:.4g} ms of a rank, hidden or not. The first:",
        s.trace->ranks, s.trace->ranks > 1 ? "s" : "",
        trace_message_seconds(*s.trace, groups) * 1e3);
    note_messages(*s.trace, part);
    if (s.trace->modelled > 0) {
        part.note(
            "{} kernels without a time take what the GPU sustains of their num_ops and "
            "tensor_size.",
            s.trace->modelled);
    }
    part.left_out("the model and its plan");
    const auto folder =
        std::filesystem::path(from_here(options.output.empty() ? "mine.toml" : options.output))
            .parent_path();
    part.section("job");
    part.quoted("trace",
                std::filesystem::path(from_here(traces)).lexically_proximate(folder).string(),
                fmt::format("{}, replayed on {}", traces, scenario));
}

}  // namespace

Import import_chakra = replay_traces;

}  // namespace railyard
