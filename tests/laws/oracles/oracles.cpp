#include "tests/laws/oracles/oracles.h"

#include "tests/laws/oracles/arithmetic.h"
#include "tests/laws/oracles/networks.h"
#include "tests/laws/oracles/packets.h"
#include "tests/laws/oracles/schedules.h"
#include "tests/laws/oracles/streams.h"

namespace railyard {

std::optional<VerifiedTable> verify_oracle(const CsvTable& table) {
    for (const auto verify :
         {verify_arithmetic, verify_networks, verify_packets, verify_schedules, verify_streams}) {
        if (auto verified = verify(table)) return verified;
    }
    return std::nullopt;
}

}  // namespace railyard
