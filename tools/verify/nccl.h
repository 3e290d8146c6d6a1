#pragma once
// Runs of nccl-tests and its kin, in the words that people put beside what it prints.

#include <functional>
#include <map>
#include <string>
#include <vector>

#include "models/campaign/campaign.h"
#include "models/collective/collective.h"

namespace railyard {

class NcclTests {
  public:
    using Texts = std::function<std::string(const char* name)>;

    // `overrides` as a scenario's [override] table, or nullptr.
    explicit NcclTests(const Value* overrides, Perturbations perturbations = {})
        : own_(ValueChoice::corrected, overrides, "catalogue", std::move(perturbations)) {}

    const std::vector<Estimate>& estimates() const { return own_.reader.estimates(); }

    // `text` has a run's device, network, racks, collective, algorithm, nodes, gpus and bytes, `column` where
    // each is from. Returns time in seconds, busbw in bytes/s, framework_launch, the seconds that a call
    // through PyTorch adds, and model_error_half and model_error, the shares that half of such times and nine
    // in ten are within. Throws RowError.
    std::map<std::string, double> figures(const Texts& text, const Texts& column);
    // Words of the last run's network that nothing reads.
    const std::vector<std::string>& unread() const { return unread_; }

  private:
    struct Run;
    struct Known {
        Communicator communicator;
        std::vector<std::string> unread;
    };
    std::map<std::string, double> figures_of(const Texts& text, const Texts& column);
    const Known& known_of(const Run& run, const Texts& column);

    StandaloneCatalogue own_;
    // Rows of one system differ by their sizes only.
    std::map<std::string, Known> known_;
    std::vector<std::string> unread_;
};

}  // namespace railyard
