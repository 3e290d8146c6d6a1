// railyard: all verbs.

#include "tools/cli/cmd.h"

int main(int argc, char** argv) {
#define RAILYARD_VERB(name, doc) {#name, railyard::cmd_##name, doc},
    static constexpr railyard::Verb all[] = {RAILYARD_VERBS(RAILYARD_VERB)};
#undef RAILYARD_VERB
    return railyard::command_line(all, argc, argv);
}
