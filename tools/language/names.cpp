#include "tools/language/names.h"

#include <algorithm>
#include <cctype>

namespace railyard {

std::optional<std::size_t> find_name(std::string_view name, const std::vector<std::string>& names) {
    const auto plain = [](std::string_view text) {
        std::string out;
        for (const char c : text) {
            if (c != '_') out += static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
        }
        return out;
    };
    const auto found = std::ranges::find_if(
        names, [&](const std::string& each) { return plain(each) == plain(name); });
    if (found == names.end()) return std::nullopt;
    return static_cast<std::size_t>(found - names.begin());
}

std::optional<Collective> parse_collective(std::string_view name) {
    // As MPI calls it, too.
    const std::string_view full = find_name(name, {"bcast"}) ? "broadcast" : name;
    const std::optional<std::size_t> found = find_name(full, collective_names);
    if (!found) return std::nullopt;
    return static_cast<Collective>(*found);
}

}  // namespace railyard
