#pragma once
// What the command lines of verbs that run many variants of a scenario have in common.

#include <string>

#include "tools/cli/options.h"
#include "tools/cli/terminal.h"
#include "tools/study/sweep_slurm.h"
#include "tools/study/trials.h"

namespace railyard {

struct StudyArguments {
    ScenarioChanges changes;
    TrialOptions trials;
    bool json = false;
};

// --set, --seed, --replicas, --jobs and --json.
void add_study_options(CommandLine& line);
// Reads them, and the scenario's text. Throws ScenarioError.
StudyArguments study_arguments(const po::variables_map& values, const std::string& path);
// For trials of a verb that reads its options by itself.
TrialOptions trial_options(unsigned threads, Progress& progress);
// --on, --tasks, --sbatch and --poll.
void add_slurm_options(CommandLine& line);

// A study whose points go to a database, and what is said of it.
struct StoredStudy {
    std::string study;
    std::vector<std::string> settings;
    std::string db;  // what --db says; without it the study's name, here
    unsigned threads = 1;
    bool json = false;
    std::optional<SlurmOptions> slurm{};  // none: here. The folder lies beside the database
};
StoredStudy stored_study(const po::variables_map& values, const std::string& study);
// The exit code when the database fails, which is said.
int stopped_by(const DatabaseError& error, const char* what);

}  // namespace railyard
