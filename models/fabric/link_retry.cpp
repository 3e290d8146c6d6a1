#include "models/fabric/link_retry.h"

#include "models/catalogue/catalogue.h"

namespace railyard {

LinkRetrySpec read_link_retry(Catalogue& catalogue) {
    return {true, catalogue.integer("link_level_retry", "", "replays")};
}

}  // namespace railyard
