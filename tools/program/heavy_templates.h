#pragma once
// The templates of JSON and of command lines that every verb uses: compiled once, in heavy_templates.cpp.

#include <boost/program_options.hpp>
#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>

extern template class nlohmann::basic_json<nlohmann::ordered_map>;
extern template class nlohmann::detail::serializer<nlohmann::ordered_json>;
extern template class boost::program_options::typed_value<std::string>;
extern template class boost::program_options::typed_value<std::int64_t>;
