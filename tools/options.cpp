#include "tools/options.h"

#include <cstdio>
#include <sstream>

namespace railyard {

std::optional<po::variables_map> CommandLine::parse(const std::vector<std::string>& arguments) {
    options_.add_options()("help,h", "Print this and exit");
    po::options_description all;
    all.add(options_).add(hidden_);
    po::variables_map values;
    constexpr int style =
        po::command_line_style::default_style & ~po::command_line_style::allow_guessing;
    po::store(
        po::command_line_parser(arguments).options(all).positional(positions_).style(style).run(),
        values);
    po::notify(values);
    if (!values.count("help")) return values;
    std::ostringstream text;
    text << "usage: " << usage_ << "\n\n" << about_ << "\n\n" << options_;
    std::fputs(text.str().c_str(), stdout);
    return std::nullopt;
}

std::optional<std::size_t> find_name(std::string_view name, const std::vector<std::string>& names) {
    const auto plain = [](std::string_view text) {
        std::string out;
        for (const char c : text) {
            if (c != '_') out += static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
        }
        return out;
    };
    const auto found = std::find_if(names.begin(), names.end(), [&](const std::string& each) {
        return plain(each) == plain(name);
    });
    if (found == names.end()) return std::nullopt;
    return static_cast<std::size_t>(found - names.begin());
}

std::optional<Collective> parse_collective(std::string_view name) {
    const std::optional<std::size_t> found = find_name(name, collective_names());
    if (!found) return std::nullopt;
    return static_cast<Collective>(*found);
}

}  // namespace railyard
