#include "tools/program/heavy_templates.h"

template class nlohmann::basic_json<nlohmann::ordered_map>;
template class nlohmann::detail::serializer<nlohmann::ordered_json>;
template class boost::program_options::typed_value<std::string>;
template class boost::program_options::typed_value<std::int64_t>;
