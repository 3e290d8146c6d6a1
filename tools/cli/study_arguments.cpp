#include "tools/cli/study_arguments.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>

#include "tools/cli/terminal_observer.h"
#include "tools/program/program.h"

namespace railyard {

void add_study_options(CommandLine& line) {
    line.add_settings();
    line.add()("seed", a_text(), "Seed of all random streams (run.seed)");
    line.add()("replicas", a_text(), "Number of replicas (run.replicas)");
    line.add_threads();
    line.add_json();
}

void add_slurm_options(CommandLine& line) {
    line.add()("on", a_text(), "slurm: run as Slurm job arrays, from and on shared folders");
    line.add()("tasks", a_count(16), "Tasks of an array, at most");
    line.add()("sbatch", a_text(""),
               "Further options for sbatch: --sbatch \"--partition=cpu --cpus-per-task=4\"");
    line.add()("poll", po::value<double>()->default_value(2), "Seconds between looks at the array");
}

namespace {

std::optional<SlurmOptions> slurm_options(const po::variables_map& values, const std::string& db) {
    SlurmOptions out;
    out.folder = db + ".slurm";
    out.tasks = count_option(values, "tasks", 1);
    out.sbatch = values["sbatch"].as<std::string>();
    constexpr double poll_least_s = 0.05;
    out.poll_s = std::max(poll_least_s, values["poll"].as<double>());
    if (!values.count("on")) return std::nullopt;
    const std::string on = values["on"].as<std::string>();
    if (on != "slurm") throw ScenarioError(fmt::format("--on: expected slurm, found {}", on));
    return out;
}

}  // namespace

StoredStudy stored_study(const po::variables_map& values, const std::string& study) {
    StoredStudy out{study, all_settings_of(values), file_option(values, "db")};
    if (out.db.empty()) out.db = std::filesystem::path(study).stem().string() + ".sqlite";
    out.threads = threads_of(values);
    out.json = values.count("json") > 0;
    out.slurm = slurm_options(values, out.db);
    return out;
}

int stopped_by(const DatabaseError& error, const char* what) {
    fmt::print(stderr,
               "{}\n    the {} has stopped: mend that, and the same command goes on from there\n",
               error.what(), what);
    return exit_limit;
}

TrialOptions trial_options(unsigned threads, Progress& progress) {
    TrialOptions out;
    out.threads = threads;
    out.cancelled = &interrupted();
    out.progress = progress.updates();
    return out;
}

StudyArguments study_arguments(const po::variables_map& values, const std::string& path) {
    StudyArguments out;
    out.changes.settings = all_settings_of(values);
    // One for all that is tried: most of it has the same windows.
    out.changes.windows = watched_windows();
    out.trials.text = read_file(path);
    out.trials.file = path;
    out.trials.threads = threads_of(values);
    out.trials.cancelled = &interrupted();
    out.json = values.count("json") > 0;
    return out;
}

}  // namespace railyard
