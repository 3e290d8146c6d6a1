// railyard_run: the verb that gives the first answer, in a program that is built long before all verbs are.

#include "tools/cli/cmd.h"

int main(int argc, char** argv) {
    static constexpr railyard::Verb run[] = {{"run", railyard::cmd_run, "simulate a scenario"}};
    return railyard::command_line(run, argc, argv);
}
