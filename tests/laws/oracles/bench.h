#pragma once
// What the readers of arithmetic share: the catalogue without a scenario.

#include <map>
#include <optional>
#include <string>

#include "models/campaign/campaign.h"
#include "models/collective/collective.h"
#include "tools/verify/tables.h"

namespace railyard {

// What every evaluation needs: the catalogue, without a scenario.
class Bench {
  public:
    Node node(const char* name) { return read_node(own_.catalogue, name); }
    ParameterBytes bytes() { return read_parameter_bytes(own_.catalogue); }
    Communicators groups(const Node& n) {
        const auto [found, is_new] = constants_.try_emplace(n.name + n.nic);
        if (is_new) found->second = read_collective_constants(own_.catalogue, n);
        return Communicators(found->second, n);
    }
    void check() const { own_.diagnostics.raise_if_any(); }

  private:
    StandaloneCatalogue own_;
    std::map<std::string, CollectiveConstants> constants_;  // by node and NIC
};

// None: the row can't be expressed.
using RowResult = std::optional<VerifiedRow>;

}  // namespace railyard
