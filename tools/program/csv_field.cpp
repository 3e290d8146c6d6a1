#include "tools/program/csv_field.h"

#include "sim/error.h"

namespace railyard {

std::string csv_field(std::string_view text) {
    std::string shown = visible(text);
    if (shown.find_first_of(",\"\r\n") == std::string::npos) return shown;
    std::string out = "\"";
    for (const char c : shown) {
        if (c == '"') out += '"';
        out += c == '\n' || c == '\r' ? ' ' : c;  // readers go line by line
    }
    return out + '"';
}

}  // namespace railyard
