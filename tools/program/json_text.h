#pragma once
// JSON as text.

#include <nlohmann/json.hpp>
#include <string>

namespace railyard {

// On one line. What is not UTF-8, such as a file's name may be, becomes replacement characters; the library
// would throw.
template <class Json>
std::string one_line(const Json& json) {
    return json.dump(-1, ' ', false, Json::error_handler_t::replace);
}

}  // namespace railyard
