#pragma once
// What `railyard window` says of a packet window.

#include <optional>
#include <string>
#include <vector>

#include "models/campaign/campaign.h"
#include "tools/cli/terminal.h"
#include "tools/program/json_text.h"

namespace railyard {

// The windows of a scenario. Throws ScenarioError when it sends nothing.
std::vector<NetworkWindow> windows_of(const Scenario& s);

Json window_json(const Scenario& s, const NetworkWindow& window, const WindowResult& r);
void print_window(const Scenario& s, const NetworkWindow& window, const WindowResult& r);

// Why a result is not to be relied on, for standard error, and the exit code; of one that is, nothing and
// exit_ok.
struct Complaint {
    int code = 0;
    std::string text;
};
Complaint complaint(const Scenario& s, const NetworkWindow& window, const WindowResult& r);

// A table of several windows, and the rows of one: a row for each of a network's traffics; what is the
// network's stands in the first.
Table arms_table();
std::vector<std::vector<std::string>> arm_rows(const std::string& arm, const Scenario& s,
                                               const NetworkWindow& window, const WindowResult& r);
// What the arm's cluster costs to buy, at typical prices; none without [cost].
std::optional<double> capital_of(const Scenario& s);

}  // namespace railyard
