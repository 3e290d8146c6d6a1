// railyard_run: the verb that gives the first answer, in a program that is built long before all verbs are.

#include "tools/cli/cmd.h"

namespace railyard {

std::span<const Verb> verbs() {
    static constexpr Verb run[] = {{"run", cmd_run, "simulate a scenario"}};
    return run;
}

}  // namespace railyard
