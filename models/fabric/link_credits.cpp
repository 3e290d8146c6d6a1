#include "models/fabric/link_credits.h"

namespace railyard {

CreditSpec read_credits(Catalogue& catalogue) {
    const auto lifetime = [&](const char* exponent) {
        return Picoseconds(4'096'000) *
               (std::int64_t{1} << catalogue.integer("infiniband", "", exponent));
    };
    return {catalogue.data("infiniband", "", "credit_block").count(), lifetime("hoq_life_exponent"),
            lifetime("leaf_hoq_life_exponent")};
}

}  // namespace railyard
