#pragma once
// What the row readers of the tables share: the catalogue without a scenario, and a GPT by its dimensions.

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "models/campaign/campaign.h"
#include "models/collective/collective.h"
#include "tools/program/csv_table.h"
#include "tools/verify/queueing.h"
#include "tools/verify/tables.h"

namespace railyard {

// The most that each dimension of a plan may be, as in a scenario: products of three still fit.
constexpr std::int64_t plan_size_max = 1'000'000;

// What every evaluation needs: the catalogue, without a scenario.
class Bench {
  public:
    explicit Bench(const Value* overrides) : overrides_(overrides) {}
    Node node(const char* name) { return read_node(own_.catalogue, name); }
    ParameterBytes bytes() { return read_parameter_bytes(own_.catalogue); }
    // With the jitter of the catalogue: measured runs have it.
    CriticalPath path(const TransformerModel& m, ParallelPlan p, const Node& n) {
        p.jitter = own_.catalogue.number("jitter", "", "step_sigma");
        Communicators all = groups(n);
        return critical_path(
            m, p, all, bytes(),
            own_.catalogue.number("bytes_per_param", "", "optimizer_step_traffic"));
    }
    Communicators groups(const Node& n) {
        const auto [found, is_new] = constants_.try_emplace(n.name + n.nic);
        if (is_new) found->second = read_collective_constants(own_.catalogue, n);
        return Communicators(found->second, n);
    }
    TransformerModel model(const std::string& name) { return read_model(own_.catalogue, name); }
    Catalogue& catalogue() { return own_.catalogue; }
    QueueRuns& queues() { return queues_; }
    void check() const { own_.diagnostics.raise_if_any(); }

  private:
    const Value* overrides_;
    StandaloneCatalogue own_{ValueChoice::corrected, overrides_};
    std::map<std::string, CollectiveConstants> constants_;  // by node and NIC
    QueueRuns queues_;
};

// None: the row can't be expressed.
using RowResult = std::optional<VerifiedRow>;

// How rows of a table become figures. A table may have several, each of another quantity.
struct TableFormat {
    const char* number;  // the first two digits of the table's name
    const char* what;    // one line
    RowResult (*row)(Bench&, const Fields&);
};

// Of a plan that leaves them open: what its other dimensions leave of `gpus`. Throws RowError.
std::int64_t data_ranks(const ParallelPlan& p, std::int64_t gpus);

// A GPT by its dimensions; parameters as Megatron's formula counts them (arXiv:2104.04473, eq. 2).
TransformerModel gpt(std::int64_t layers, std::int64_t hidden, std::int64_t heads,
                     std::int64_t vocab, std::int64_t sequence);
// Of one step.
double model_flops(const TransformerModel& m, const ParallelPlan& p);
// Megatron counts the recomputed forward pass as work too: its "96 B s l h^2".
double hardware_flops(const TransformerModel& m, const ParallelPlan& p);

}  // namespace railyard
