#pragma once
// One step of a job, node by node, as each rank does it: what step.h adds up, in the order of Megatron's
// schedule (one forward, one backward; interleaved with virtual stages).
//
// What may not hide behind other work stands in one chain with it. What may begins with what it may hide
// behind and is waited for at that work's end: tensor-parallel collectives with a layer's products,
// context-parallel ones with its attention, expert-parallel ones with the layer, gradients with the last
// backward pass and weights with the first forward pass (of ZeRO-3 with the layer before), a message between
// stages with the pass before. What a hidden collective takes from the kernels beside it makes these longer,
// as in the step model: a layer's own on every stage, gradients and weights on the slowest, whose time is
// the step's. Of a tensor-parallel collective a share can't hide: so many of its bytes follow the products.
// Ignored: such shares of ZeRO-3's, gathers over one channel, jitter.

#include <map>
#include <string>
#include <tuple>
#include <vector>

#include "models/training/training.h"
#include "tools/export/chakra_trace.h"

namespace railyard {

// Process groups, numbered from 1 in the order in which ranks ask for them.
class ProcessGroups {
  public:
    // The group of `rank` with `ranks` members that are `stride` apart.
    std::int64_t of(std::int64_t rank, std::int64_t stride, std::int64_t ranks);
    // ASTRA-sim's --comm-group-configuration: {"1": [0, 1], ...}.
    std::string json() const;

  private:
    using Key = std::tuple<std::int64_t, std::int64_t, std::int64_t>;  // first rank, stride, ranks
    std::map<Key, std::int64_t> numbers_;
    std::vector<Key> keys_;  // by number - 1
};

// The outline with what the layers' hidden collectives take from their kernels.
StepOutline slowed_by_hidden(StepOutline outline, const ParallelPlan& plan, Communicators& network);

// The trace of one rank, of such an outline.
std::string step_trace(const TransformerModel& model, const ParallelPlan& plan,
                       const StepOutline& outline, std::int64_t rank, ProcessGroups& groups,
                       Communicators& network);

}  // namespace railyard
