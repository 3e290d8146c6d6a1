#pragma once
// The verbs. Each takes its own arguments, without the program's and the verb's name, and returns
// the exit code. User errors leave as ScenarioError or boost::program_options::error.

#include <string>
#include <vector>

#include "tools/program/program.h"

namespace railyard {

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
int cmd_export(const std::vector<std::string>& arguments);
int cmd_import(const std::vector<std::string>& arguments);
int cmd_design(const std::vector<std::string>& arguments);
int cmd_calibrate(const std::vector<std::string>& arguments);
int cmd_calc(const std::vector<std::string>& arguments);

}  // namespace railyard
