// The command line: finds the verb in the program's table and runs it; errors become words and exit codes.

#include <fmt/format.h>

#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstring>
#include <exception>
#include <filesystem>
#include <new>
#include <system_error>

#include "models/collective/collective.h"
#include "sim/error.h"
#include "tools/cli/cmd.h"
#include "tools/cli/options.h"
#include "tools/program/installation.h"

namespace railyard {

namespace {

std::string help(std::span<const Verb> verbs) {
    std::string out =
        "usage: railyard VERB [arguments]\n\nTries a GPU training cluster in simulation.\n\n";
    for (const Verb& verb : verbs) out += fmt::format("  {:11} {}\n", verb.name, verb.doc);
    const std::string first = shipped_file("scenarios/hello/first.toml");
    return out +
           fmt::format(
               "  bench       speed against rivals (through tools/railyard, which builds it)\n"
               "\n'railyard VERB --help' says more. 'railyard --version' prints the version.\n"
               "To begin: railyard run {}; studies are in {}\n",
               first, shipped_file("scenarios/studies"));
}

int dispatch(std::span<const Verb> verbs, const std::vector<std::string>& arguments) {
    if (arguments.empty() || arguments[0] == "--help" || arguments[0] == "-h" ||
        arguments[0] == "help") {
        fmt::print("{}", help(verbs));
        return arguments.empty() ? exit_user_error : exit_ok;
    }
    if (arguments[0] == "--version") {
        fmt::print("railyard {}\n", result_version());
        return exit_ok;
    }
    if (arguments[0] == "bench") {
        throw ScenarioError(
            "'bench' is not in this program: it measures speed against rivals, and "
            "is built when it is first run",
            "tools/railyard bench, in the folder of railyard's sources");
    }
    const Verb& verb = named(verbs, arguments[0], fmt::format("unknown verb '{}'", arguments[0]));
    try {
        return verb.run({arguments.begin() + 1, arguments.end()});
    } catch (const HelpPrinted&) {
        return exit_ok;
    }
}

}  // namespace

int command_line(std::span<const Verb> verbs, int argc, char** argv) {
    hear_interrupts();
    std::signal(SIGPIPE, SIG_DFL);
    std::signal(SIGXFSZ, SIG_IGN);  // a file that may not grow is a full disk, not a crash
    try {
        const int code = dispatch(verbs, {argv + 1, argv + argc});
        if (std::fflush(stdout) != 0 || std::ferror(stdout)) {
            throw ScenarioError(
                fmt::format("can't write to standard output: {}", std::strerror(errno)));
        }
        return code;
    } catch (const NoPath& stuck) {
        fmt::print(stderr, "railyard: stuck: {}\n", stuck.what());
        return exit_stuck;
    } catch (const Interrupted& interrupt) {
        fmt::print(stderr, "railyard: {}\n", interrupt.what());
        return exit_interrupted;
    } catch (const ScenarioError& error) {
        fmt::print(stderr, "{}\n", error.what());
    } catch (const po::error& error) {
        fmt::print(stderr, "railyard: error: {}\n    --help lists the options\n",
                   visible(error.what()));
    } catch (const std::bad_alloc&) {
        std::fputs("railyard: error: out of memory\n    what was written to files stays there\n",
                   stderr);
        return exit_limit;
    } catch (const std::filesystem::filesystem_error& error) {
        fmt::print(stderr, "railyard: error: can't use {}: {}\n", visible(error.path1().string()),
                   error.code().message());
    } catch (const std::system_error& error) {  // of fmt::print, and of threads
        fmt::print(stderr, "railyard: error: {}: {}\n",
                   std::ferror(stdout) != 0 ? "can't write to standard output"
                                            : "the system refuses a thread or a file",
                   error.code().message());
    } catch (const std::exception& error) {
        fmt::print(stderr, "railyard: error: {}\n", visible(error.what()));
    }
    return exit_user_error;
}

}  // namespace railyard
