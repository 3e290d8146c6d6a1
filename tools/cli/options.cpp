#include "tools/cli/options.h"

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

}  // namespace railyard
