#include "sim/check.h"

#include <cstdio>
#include <cstdlib>

namespace railyard {

CheckContext& check_context() {
    thread_local CheckContext context;
    return context;
}

void check_failed(const char* expression, const char* file, int line) {
    const CheckContext& at = check_context();
    std::fprintf(stderr, "railyard: internal error: check failed: %s (%s:%d)", expression, file,
                 line);
    if (at.time_ticks >= 0) {
        std::fprintf(stderr, " at tick %lld in %s", static_cast<long long>(at.time_ticks),
                     at.component);
    }
    std::fputc('\n', stderr);
    std::abort();
}

}  // namespace railyard
