#pragma once
// Command lines, by Boost.Program_options, with one look for all verbs.

#include <boost/program_options.hpp>
#include <cstdint>
#include <string>
#include <vector>

#include "sim/error.h"
#include "sim/text.h"

namespace railyard {

namespace po = boost::program_options;

// What an option takes, and what it is where it is not given: a text or a whole number.
inline auto* a_text() {
    return po::value<std::string>();
}
inline auto* a_text(const char* otherwise) {
    return a_text()->default_value(otherwise);
}
inline auto* a_count() {
    return po::value<std::int64_t>();
}
inline auto* a_count(std::int64_t otherwise) {
    return a_count()->default_value(otherwise);
}

// The help is on standard output, and the verb has nothing else to do.
struct HelpPrinted {};

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

    // The options --jobs and --json.
    void add_threads(const char* about = "Threads; the result does not depend on it");
    void add_json() { add()("json", "Print one JSON object on standard output and nothing else"); }

    // Throws HelpPrinted when --help was asked for.
    po::variables_map parse(const std::vector<std::string>& arguments);

  private:
    std::string usage_;
    std::string about_;
    po::options_description options_;
    po::options_description hidden_;
    po::positional_options_description positions_;
};

// What an option that may be given several times was given, in order.
inline std::vector<std::string> all_of(const po::variables_map& values, const char* option) {
    return values.count(option) ? values[option].as<std::vector<std::string>>()
                                : std::vector<std::string>();
}
// What an option of one text was given; empty where it was not.
inline std::string text_of(const po::variables_map& values, const char* option) {
    return values.count(option) ? values[option].as<std::string>() : std::string();
}
// The one of `kinds` that has this name. Throws ScenarioError with `message` and the nearest name.
template <class Kinds>
const auto& named(const Kinds& kinds, const std::string& name, const std::string& message) {
    if (const auto* kind = find_named(kinds, name)) return *kind;
    throw ScenarioError(message, suggest(name, names_of(kinds)));
}
inline std::vector<std::string> settings_of(const po::variables_map& values) {
    return all_of(values, "set");
}

// What --seed and --replicas set, as --set would.
std::vector<std::string> luck_settings_of(const po::variables_map& values);
// What --set, --seed and --replicas set.
std::vector<std::string> all_settings_of(const po::variables_map& values);

// The only scenario of the command line. Throws ScenarioError when there is none, or more.
std::string only_scenario(const po::variables_map& values, const std::string& verb);
// The one word of a positional argument. Throws ScenarioError, with this message and help, without it.
std::string word_given(const po::variables_map& values, const char* argument,
                       const std::string& message, const std::string& help);
// An option that counts something. Throws ScenarioError when it is less than `least`.
std::int64_t count_option(const po::variables_map& values, const char* option, std::int64_t least);
// Throws ScenarioError when --replica is none of so many.
void check_replica(std::int64_t replica, std::int64_t replicas);
// What --jobs says, at most 1,024.
unsigned threads_of(const po::variables_map& values);
// The name of a file to write; empty: the option was not given. Throws ScenarioError for an empty name.
std::string file_option(const po::variables_map& values, const char* option);

}  // namespace railyard
