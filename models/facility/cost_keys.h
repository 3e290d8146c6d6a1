#pragma once
// [cost] as it stands, apart from its prices.

#include "models/catalogue/catalogue.h"
#include "models/facility/cost.h"
#include "sim/config.h"

namespace railyard {

enum class Tenure : std::uint8_t { buy, on_demand, reserved };

// How the nodes with their network are had.
struct Tenancy {
    Tenure tenure = Tenure::buy;
    Duration term{};       // reserved: each time for so long
    double early_end = 1;  // and so much of the rest of the last term is paid that is not used
    bool rented() const { return tenure != Tenure::buy; }
};

struct CostKeys {
    CostPlan plan;  // its years, budget and draws; no lines yet
    bool colocated = true;
    bool parts_covered = true;  // by support: what is replaced costs nothing more
    Tenancy tenancy;
    double tariff = 1;  // what a kWh costs over a day, in prices of one, for an even draw
};
CostKeys read_cost_keys(Section& cost, Catalogue& catalogue);

}  // namespace railyard
