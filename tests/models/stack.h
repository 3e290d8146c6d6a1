#pragma once
// The catalogue, and a step's and a GPU's memory's parts by name.

#include <string_view>

#include "models/training/training.h"

namespace railyard {

struct Stack : StandaloneCatalogue {
    ParameterBytes bytes = read_parameter_bytes(catalogue);

    Node node(const char* name, const char* software = nullptr) {
        Node out = read_node(catalogue, name);
        if (software != nullptr) run_software(read_software(catalogue, software, out.gpu), out);
        return out;
    }
    double part(const TransformerModel& m, const ParallelPlan& p, const Node& n,
                std::string_view name) {
        const CollectiveConstants constants = read_collective_constants(catalogue, n);
        Communicators groups(constants, n);
        double sum = 0;
        for (const PathPart& each : critical_path(m, p, groups, bytes, 30)) {
            if (name.empty() || each.name == name) sum += each.seconds;
        }
        return sum;
    }
    double memory(const TransformerModel& m, const ParallelPlan& p, const Node& n,
                  std::string_view name) {
        for (const MemoryUse& use : memory_per_gpu(m, p, bytes, n.gpu)) {
            if (use.component == name) return use.bytes;
        }
        return -1;
    }
};

}  // namespace railyard
