#pragma once
// Runs of nccl-tests and its kin, in the words that people put beside what it prints.

#include <functional>
#include <map>
#include <string>

#include "models/campaign/campaign.h"

namespace railyard {

class NcclTests {
  public:
    using Texts = std::function<std::string(const char* name)>;

    // `overrides` as a scenario's [override] table, or nullptr.
    explicit NcclTests(const Value* overrides) : own_(ValueChoice::corrected, overrides) {}

    // `text` has a run's device, network, collective, algorithm, nodes, gpus and bytes, `column` where each
    // is from. Returns time in seconds, busbw in bytes/s, and framework_launch, the seconds that a call
    // through PyTorch adds. Throws RowError.
    std::map<std::string, double> figures(const Texts& text, const Texts& column);

  private:
    StandaloneCatalogue own_;
};

}  // namespace railyard
