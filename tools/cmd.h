#pragma once
// The verbs. Each takes its own arguments, without the program's and the verb's name, and returns
// the exit code. User errors leave as ScenarioError or boost::program_options::error.

#include <atomic>
#include <string>
#include <vector>

namespace railyard {

// Exit codes of the program.
enum Exit : int {
    exit_ok = 0,
    exit_user_error = 2,     // the input is wrong; nothing was run
    exit_stuck = 3,          // nothing in the modelled world can advance
    exit_limit = 4,          // a limit was reached or a lossless network lost: the result is marked
    exit_interrupted = 130,  // Ctrl-C: what was finished is kept
};

int cmd_run(const std::vector<std::string>& arguments);
int cmd_compare(const std::vector<std::string>& arguments);
int cmd_sweep(const std::vector<std::string>& arguments);
int cmd_check(const std::vector<std::string>& arguments);
int cmd_list(const std::vector<std::string>& arguments);
int cmd_plan(const std::vector<std::string>& arguments);
int cmd_perf(const std::vector<std::string>& arguments);
int cmd_topo(const std::vector<std::string>& arguments);
int cmd_storage(const std::vector<std::string>& arguments);
int cmd_cost(const std::vector<std::string>& arguments);
int cmd_jobs(const std::vector<std::string>& arguments);
int cmd_report(const std::vector<std::string>& arguments);
int cmd_trace(const std::vector<std::string>& arguments);
int cmd_window(const std::vector<std::string>& arguments);
int cmd_verify(const std::vector<std::string>& arguments);
int cmd_explain(const std::vector<std::string>& arguments);
int cmd_sensitivity(const std::vector<std::string>& arguments);
int cmd_breakeven(const std::vector<std::string>& arguments);
int cmd_calc(const std::vector<std::string>& arguments);

// From here on Ctrl-C sets `interrupted`; a second one ends the program.
void hear_interrupts();
const std::atomic<bool>& interrupted();

std::string version();
// What results are known by in a database: the version and the sources, "0.1.0 sources-3f2a...".
std::string result_version();

}  // namespace railyard
