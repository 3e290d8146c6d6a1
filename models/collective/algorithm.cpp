#include "models/collective/algorithm.h"

namespace railyard {

const std::vector<std::string> collective_names = {
    "all_reduce", "all_gather", "reduce_scatter", "all_to_all", "broadcast", "reduce", "send_recv"};

const std::vector<std::string> algorithm_names = {"ring",           "tree", "nvls",    "nvls_tree",
                                                  "collnet_direct", "pat",  "pairwise"};

const std::vector<std::string> protocol_names = {"ll", "ll128", "simple"};

double bus_factor(Collective collective, std::int64_t ranks) {
    const double n = static_cast<double>(ranks);
    switch (collective) {
        case Collective::all_reduce:
            return 2 * (n - 1) / n;
        case Collective::all_gather:
        case Collective::reduce_scatter:
        case Collective::all_to_all:
            return (n - 1) / n;
        case Collective::broadcast:
        case Collective::reduce:
        case Collective::send_recv:
            break;
    }
    return 1;
}

}  // namespace railyard
