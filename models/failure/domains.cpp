#include "models/failure/domains.h"

#include <algorithm>
#include <numeric>

#include "sim/check.h"

namespace railyard {

const std::vector<std::string> domain_kind_names = {"node", "nvlink", "leaf", "rail",   "rack",
                                                    "pdu",  "cdu",    "wave", "breaker"};

FailureDomains FailureDomains::runs(std::int64_t nodes, std::int64_t nodes_per_domain) {
    RY_CHECK(nodes_per_domain > 0);
    std::vector<std::vector<std::int64_t>> members;
    for (std::int64_t first = 0; first < nodes; first += nodes_per_domain) {
        auto& run = members.emplace_back(
            static_cast<std::size_t>(std::min(nodes_per_domain, nodes - first)));
        std::iota(run.begin(), run.end(), first);
    }
    return FailureDomains(std::move(members));
}

}  // namespace railyard
