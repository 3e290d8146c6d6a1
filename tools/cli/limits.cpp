#include "tools/cli/limits.h"

#include <fmt/format.h>

#include "tools/program/program.h"

namespace railyard {

int complain_of_limits(const std::vector<LimitReached>& limits) {
    for (const LimitReached& limit : limits) {
        fmt::print(stderr, "railyard: limit: {}: this result is partial\n    {}\n", limit.what,
                   limit.help);
    }
    return limits.empty() ? exit_ok : exit_limit;
}

}  // namespace railyard
