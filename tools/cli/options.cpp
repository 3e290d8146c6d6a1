#include "tools/cli/options.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <sstream>
#include <thread>

namespace railyard {

void CommandLine::add_threads(const char* about) {
    const std::int64_t cores = std::max(1U, std::thread::hardware_concurrency());
    add()("jobs,j", a_count(cores), about);
}

namespace {

// All of them at once, each with the nearest that there is.
void refuse_unknown(const std::vector<std::string>& arguments,
                    const po::options_description& known) {
    std::vector<std::string> names;
    for (const auto& option : known.options()) names.push_back("--" + option->long_name());
    Diagnostics diagnostics;
    for (const std::string& argument : arguments) {
        if (argument == "--") break;
        const std::string name = argument.substr(0, argument.find('='));
        if (!name.starts_with("--") || std::ranges::find(names, name) != names.end()) continue;
        const std::string near = did_you_mean(name, names);
        diagnostics.error("railyard", {}, "",
                          fmt::format("unrecognised option '{}'", visible(name)),
                          near.empty() ? "--help lists the options" : near);
    }
    diagnostics.raise_if_any();
}

}  // namespace

po::variables_map CommandLine::parse(const std::vector<std::string>& arguments) {
    options_.add_options()("help,h", "Print this and exit");
    po::options_description all;
    all.add(options_).add(hidden_);
    po::variables_map values;
    constexpr int style =
        po::command_line_style::default_style & ~po::command_line_style::allow_guessing;
    try {
        po::store(po::command_line_parser(arguments)
                      .options(all)
                      .positional(positions_)
                      .style(style)
                      .run(),
                  values);
    } catch (const po::unknown_option&) {
        refuse_unknown(arguments, options_);
        throw;
    }
    po::notify(values);
    if (!values.count("help")) return values;
    std::ostringstream text;
    text << "usage: " << usage_ << "\n\n" << about_ << "\n\n" << options_;
    std::fputs(text.str().c_str(), stdout);
    throw HelpPrinted();
}

std::vector<std::string> luck_settings_of(const po::variables_map& values) {
    std::vector<std::string> out;
    for (const char* key : {"seed", "replicas"}) {
        if (values.count(key)) out.push_back(fmt::format("run.{}={}", key, text_of(values, key)));
    }
    return out;
}

std::vector<std::string> all_settings_of(const po::variables_map& values) {
    std::vector<std::string> out = settings_of(values);
    for (std::string& setting : luck_settings_of(values)) out.push_back(std::move(setting));
    return out;
}

std::string only_scenario(const po::variables_map& values, const std::string& verb) {
    const std::string help =
        fmt::format("railyard {} SCENARIO.toml; '{} --help' says more", verb, verb);
    if (!values.count("scenario")) throw ScenarioError(verb + " needs a scenario file", help);
    const auto& paths = values["scenario"].as<std::vector<std::string>>();
    if (paths.size() > 1) {
        throw ScenarioError(fmt::format("{} takes one scenario file, found {}", verb, paths.size()),
                            help);
    }
    return paths[0];
}

std::string word_given(const po::variables_map& values, const char* argument,
                       const std::string& message, const std::string& help) {
    if (!values.count(argument)) throw ScenarioError(message, help);
    return all_of(values, argument)[0];
}

std::int64_t count_option(const po::variables_map& values, const char* option, std::int64_t least) {
    const std::int64_t n = values[option].as<std::int64_t>();
    if (n >= least) return n;
    throw ScenarioError(fmt::format("--{}: expected {} or more, found {}", option, least, n));
}

void check_replica(std::int64_t replica, std::int64_t replicas) {
    if (replica >= 0 && replica < replicas) return;
    throw ScenarioError(
        fmt::format("--replica: expected one from 0 to {}, found {}", replicas - 1, replica),
        "run.replicas says how many there are");
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
