#pragma once
// Groups of nodes that fail together because they share a part.

#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace railyard {

enum class DomainKind : std::uint8_t { node, nvlink, leaf, rail, rack, pdu, cdu, wave, breaker };
extern const std::vector<std::string> domain_kind_names;  // in the order of DomainKind

class FailureDomains {
  public:
    FailureDomains() = default;
    explicit FailureDomains(std::vector<std::vector<std::int64_t>> members)
        : members_(std::move(members)) {}
    // Runs of so many nodes in order of their number; the last may be shorter.
    static FailureDomains runs(std::int64_t nodes, std::int64_t nodes_per_domain);

    std::int64_t count() const { return static_cast<std::int64_t>(members_.size()); }
    std::span<const std::int64_t> nodes(std::int64_t domain) const { return members_[domain]; }

  private:
    std::vector<std::vector<std::int64_t>> members_;
};

}  // namespace railyard
