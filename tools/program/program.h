#pragma once
// The program as a process: its exit codes, its version, and Ctrl-C.

#include <atomic>
#include <string>
#include <vector>

#include "sim/error.h"

namespace railyard {

// Exit codes of the program.
enum Exit : int {
    exit_ok = 0,
    exit_user_error = 2,     // the input is wrong; nothing was run
    exit_stuck = 3,          // nothing in the modelled world can advance
    exit_limit = 4,          // a limit was reached or a lossless network lost: the result is marked
    exit_interrupted = 130,  // Ctrl-C: what was finished is kept
};

// From here on Ctrl-C sets `interrupted`; a second one ends the program.
void hear_interrupts();
const std::atomic<bool>& interrupted();

// On standard error.
void print_warnings(const std::vector<Diagnostic>& warnings);

// By a clock that is never set.
double now_seconds();

std::string version();
// What results are known by in a database: the version and the sources, "0.1.0 sources-3f2a...".
std::string result_version();

}  // namespace railyard
