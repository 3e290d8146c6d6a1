#include "models/fabric/link_credits.h"

namespace railyard {

CreditSpec read_credits(Catalogue& catalogue) {
    const auto lifetime = [&](const char* key) {
        const std::int64_t exponent = catalogue.integer("infiniband", "", key);
        constexpr std::int64_t exponent_max = 19;  // above: for ever
        return exponent > exponent_max ? Picoseconds{}
                                       : Picoseconds(4'096'000) * (std::int64_t{1} << exponent);
    };
    return {catalogue.data("infiniband", "", "credit_block").count(), lifetime("hoq_life_exponent"),
            lifetime("leaf_hoq_life_exponent"),
            catalogue.integer("infiniband", "", "vl_stall_count"),
            catalogue.integer("infiniband", "", "leaf_vl_stall_count")};
}

}  // namespace railyard
