#pragma once
// The verbs. Each takes its own arguments, without the program's and the verb's name, and returns
// the exit code. User errors leave as ScenarioError or boost::program_options::error.

#include <span>
#include <string>
#include <vector>

#include "tools/program/program.h"

namespace railyard {

using VerbRun = int(const std::vector<std::string>& arguments);
VerbRun cmd_run, cmd_compare, cmd_sweep, cmd_check, cmd_list, cmd_plan, cmd_perf, cmd_topo,
    cmd_storage, cmd_cost, cmd_jobs, cmd_report, cmd_trace, cmd_window, cmd_verify, cmd_explain,
    cmd_sensitivity, cmd_breakeven, cmd_export, cmd_import, cmd_design, cmd_calibrate, cmd_calc;

struct Verb {
    const char* name;
    VerbRun* run;
    const char* doc;  // one line, for --help
};
// Those of this program, in the order in which --help prints them.
std::span<const Verb> verbs();

}  // namespace railyard
