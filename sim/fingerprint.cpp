#include "sim/fingerprint.h"

#include <fmt/format.h>

namespace railyard {

std::string Fingerprint::hex() const {
    return fmt::format("{:016x}", state_);
}

}  // namespace railyard
