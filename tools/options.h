#pragma once
// Command lines, by Boost.Program_options, with one look for all verbs.

#include <boost/program_options.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "models/collective/collective.h"

namespace railyard {

namespace po = boost::program_options;

// A verb's command line: options, positional arguments, and the text of --help.
class CommandLine {
  public:
    // `usage` is the first line of the help, `about` a few more.
    CommandLine(std::string usage, std::string about)
        : usage_(std::move(usage)), about_(std::move(about)), options_("Options") {}

    po::options_description_easy_init add() { return options_.add_options(); }
    // A positional argument, stored under `name`; `count` -1 for any number.
    void positional(const char* name, int count) {
        hidden_.add_options()(name, po::value<std::vector<std::string>>());
        positions_.add(name, count);
    }

    // The option --set, which every verb on scenarios has.
    void add_settings() {
        add()("set", po::value<std::vector<std::string>>()->composing(),
              "Change a key: --set job.checkpoint.interval=\"1 h\"");
    }

    // Parses; nullopt when --help was asked for and has been printed.
    std::optional<po::variables_map> parse(const std::vector<std::string>& arguments);

  private:
    std::string usage_;
    std::string about_;
    po::options_description options_;
    po::options_description hidden_;
    po::positional_options_description positions_;
};

// The place of a name in `names`, with underscores or without (alltoall, NVLSTree), in any case.
std::optional<std::size_t> find_name(std::string_view name, const std::vector<std::string>& names);
// A collective by its name, as find_name reads it.
std::optional<Collective> parse_collective(std::string_view name);

// What --set was given, in order.
inline std::vector<std::string> settings_of(const po::variables_map& values) {
    return values.count("set") ? values["set"].as<std::vector<std::string>>()
                               : std::vector<std::string>();
}

}  // namespace railyard
