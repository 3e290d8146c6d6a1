// railyard: all verbs.

#include "tools/cli/cmd.h"

namespace railyard {

std::span<const Verb> verbs() {
#define RAILYARD_VERB(name, doc) {#name, cmd_##name, doc},
    static constexpr Verb all[] = {RAILYARD_VERBS(RAILYARD_VERB)};
#undef RAILYARD_VERB
    return all;
}

}  // namespace railyard
