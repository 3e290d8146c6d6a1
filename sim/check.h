#pragma once
// Invariants. A broken one is a programmer's error: it stops the program, in every build.

#include <cstdint>
#include <stdexcept>

namespace railyard {

// What the running engine was doing, so that a failed check can say when and where. Set by the
// engine's loop; one per thread.
struct CheckContext {
    std::int64_t time_ticks = -1;  // -1: no event is being handled
    const char* component = "";
};
CheckContext& check_context();

// A broken invariant in a program that contains them.
class CheckFailed : public std::logic_error {
  public:
    using std::logic_error::logic_error;
};
// From here on a failed check throws CheckFailed, in every thread, so that one failed point of a sweep does
// not end the others.
void contain_failed_checks();

[[noreturn]] void check_failed(const char* expression, const char* file, int line);

}  // namespace railyard

#define RY_CHECK(expression) \
    ((expression) ? (void)0 : ::railyard::check_failed(#expression, __FILE__, __LINE__))

// A place that no run reaches; `what` says why.
#define RY_UNREACHABLE(what) ::railyard::check_failed("unreachable: " what, __FILE__, __LINE__)
