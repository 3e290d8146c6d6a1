#include "tools/cli/options.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <sstream>
#include <thread>

namespace railyard {

void CommandLine::add_threads(const char* about) {
    const std::int64_t cores = std::max(1U, std::thread::hardware_concurrency());
    add()("jobs,j", po::value<std::int64_t>()->default_value(cores), about);
}

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

std::string scenario_option(const po::variables_map& values, const std::string& verb) {
    if (values.count("scenario")) return values["scenario"].as<std::vector<std::string>>()[0];
    throw ScenarioError(verb + " needs a scenario file", "railyard " + verb + " SCENARIO.toml");
}

std::int64_t count_option(const po::variables_map& values, const char* option, std::int64_t least) {
    const std::int64_t n = values[option].as<std::int64_t>();
    if (n >= least) return n;
    throw ScenarioError(fmt::format("--{}: expected {} or more, found {}", option, least, n));
}

unsigned threads_of(const po::variables_map& values) {
    constexpr std::int64_t threads_max = 1024;
    return static_cast<unsigned>(std::min(count_option(values, "jobs", 1), threads_max));
}

std::string file_option(const po::variables_map& values, const char* option) {
    if (!values.count(option)) return {};
    std::string name = values[option].as<std::string>();
    if (name.empty()) {
        throw ScenarioError(fmt::format("--{}: expected a file name, found nothing", option));
    }
    return name;
}

}  // namespace railyard
