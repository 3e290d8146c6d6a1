#include "tools/program/program.h"

#include <fmt/format.h>

#include <chrono>
#include <csignal>

#include "sim/cancel.h"
#include "tools/program/build_identity.h"

namespace railyard {

namespace {

std::atomic<bool> interrupt_seen{false};

void on_interrupt(int) {
    // A second Ctrl-C does not wait for the replicas that are under way.
    if (interrupt_seen.exchange(true)) std::_Exit(exit_interrupted);
}

}  // namespace

void hear_interrupts() {
    struct sigaction action {};
    action.sa_handler = on_interrupt;
    // Slurm and systemd end a program by SIGTERM, a closed terminal by SIGHUP, unless nohup ignores that.
    for (const int signal : {SIGINT, SIGTERM, SIGHUP}) {
        struct sigaction before {};
        sigaction(signal, nullptr, &before);
        if (before.sa_handler != SIG_IGN) sigaction(signal, &action, nullptr);
    }
    cancel_when(interrupt_seen);
}

const std::atomic<bool>& interrupted() {
    return interrupt_seen;
}

void print_warnings(const std::vector<Diagnostic>& warnings) {
    for (const Diagnostic& warning : warnings) {
        fmt::print(stderr, "{}\n", format_diagnostic(warning, "warning"));
    }
}

double now_seconds() {
    return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch())
        .count();
}

std::string version() {
    return RAILYARD_VERSION;
}
std::string result_version() {
    return fmt::format("{} {}", version(), build_identity());
}

}  // namespace railyard
