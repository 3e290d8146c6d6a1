#include "sim/check.h"

#include <fmt/format.h>

#include <atomic>
#include <cstdio>
#include <cstdlib>

namespace railyard {

namespace {

std::atomic<bool> contained{false};

}  // namespace

CheckContext& check_context() {
    thread_local CheckContext context;
    return context;
}

void contain_failed_checks() {
    contained = true;
}

void check_failed(const char* expression, const char* file, int line) {
    const CheckContext& at = check_context();
    std::string text =
        fmt::format("internal error: check failed: {} ({}:{})", expression, file, line);
    if (at.time_ticks >= 0) text += fmt::format(" at tick {} in {}", at.time_ticks, at.component);
    if (contained) {
        check_context() = {};  // the engine that set it goes with this
        throw CheckFailed(text);
    }
    std::fprintf(stderr, "railyard: %s\n", text.c_str());
    std::abort();
}

}  // namespace railyard
