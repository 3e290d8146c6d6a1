// railyard design: which design of a question's space is best, and what would make one regret it.

#include <fmt/format.h>

#include <filesystem>
#include <memory>

#include "sim/check.h"
#include "tools/cli/cmd.h"
#include "tools/cli/design_text.h"
#include "tools/cli/study_arguments.h"
#include "tools/cli/terminal.h"
#include "tools/cli/terminal_observer.h"
#include "tools/program/json_text.h"
#include "tools/program/output_file.h"
#include "tools/study/design_order.h"

namespace railyard {

namespace {

struct DesignArguments : StoredStudy {
    std::string folder;
};

DesignArguments parse_design(const std::vector<std::string>& arguments) {
    CommandLine line(
        "railyard design QUESTION.toml [options]",
        "Finds the best design of a question: a scenario with [design], which says what "
        "is wanted, its\nlimits, and axes through the space. Points go to the database "
        "as they finish; stopped or killed, the\nsame command goes on from there.");
    line.positional("scenario", 1);
    add_study_options(line);
    line.add()("db", a_text(), "The SQLite file; without it QUESTION.sqlite, here");
    line.add()(
        "output,o", a_text(),
        "A folder for the best designs' scenarios and the decision as a page, decision.html");
    add_slurm_options(line);
    const auto values = line.parse(arguments);
    DesignArguments out{stored_study(values, only_scenario(values, "design")), ""};
    for (const std::string& setting : out.settings) {
        if (!setting.starts_with("run.replicas=")) continue;
        throw ScenarioError("--replicas: the race says how many replicas a design takes",
                            "--set design.replicas_most=128");
    }
    if (values.count("output")) {
        out.folder = values["output"].as<std::string>();
        if (out.folder.empty()) throw ScenarioError("--output: expected a folder, found nothing");
    }
    return out;
}

// One line for each thing that is done, one after the other.
class Line {
  public:
    void update(const std::string& what, std::int64_t done, std::int64_t total) {
        if (!progress_ || what != what_) {
            progress_.reset();
            progress_ = std::make_unique<Progress>(visible(what));
            what_ = what;
        }
        progress_->update(done, total);
    }
    void clear() { progress_.reset(); }

  private:
    std::string what_;
    std::unique_ptr<Progress> progress_;
};

void write_folder(const DesignArguments& args, const DesignQuestion& question,
                  const DesignSearch& search, const DesignAnswer& answer,
                  const Decision& decision) {
    namespace fs = std::filesystem;
    fs::create_directories(args.folder);
    for (std::size_t i = 0; i < answer.designs.size(); ++i) {
        const SearchedDesign& design = search.designs[answer.designs[i].design];
        const std::string title = fmt::format("{}: {}", question.title, design.label);
        const std::string text =
            fmt::format("# Design {} of the answer to {}: {}\n{}", i + 1, visible(question.file),
                        visible(design.label), scenario_text(question, design, title));
        write_file(fmt::format("{}/design_{}.toml", args.folder, i + 1), text,
                   {args.study, args.db});
    }
    write_file(args.folder + "/decision.html", decision_page(decision), {args.study, args.db});
}

std::vector<Scenario> scenarios_of(const DesignQuestion& question, const DesignSearch& search,
                                   const DesignAnswer& answer, const SearchOptions& options) {
    std::vector<Scenario> winners;
    for (const AnsweredDesign& each : answer.designs) {
        const ScenarioChanges changes{
            .settings = own_settings(question, search.designs[each.design]),
            .phases = true,
            .windows = options.windows};
        winners.push_back(load_scenario(question.text, question.file, changes));
    }
    return winners;
}

}  // namespace

int cmd_design(const std::vector<std::string>& arguments) {
    const DesignArguments args = parse_design(arguments);
    contain_failed_checks();
    const DesignQuestion question = read_question(args.study, args.settings);
    ResultsDb db(args.db);
    Line line;
    SearchOptions options;
    if (args.slurm) {
        take_over(args.slurm->folder, db);
        options.run = [&](const auto& points, const auto& sweep) {
            run_on_slurm(points, sweep, result_version(), *args.slurm, db);
        };
    }
    options.threads = args.threads;
    options.cancelled = &interrupted();
    options.windows = watched_windows();
    options.figure_text = [&](double value) { return figure_text(question.objective, value); };
    options.progress = [&](const std::string& what, std::int64_t done, std::int64_t total) {
        line.update(what, done, total);
    };
    std::vector<Deadlock> deadlocks;  // of each design the first
    options.deadlocked = [&](const Deadlock& deadlock) {
        const auto known = std::ranges::find(deadlocks, deadlock.design, &Deadlock::design);
        if (known == deadlocks.end()) deadlocks.push_back(deadlock);
    };
    DesignSearch search;
    DesignAnswer answer;
    try {
        search = search_designs(question, options, db);
        if (!search.interrupted) answer = answer_question(question, search, options);
    } catch (const Interrupted&) {  // while a scenario was read
        search.interrupted = true;
    } catch (const DatabaseError& error) {
        return stopped_by(error, "search");
    }
    line.clear();
    warn_of_deadlocks(deadlocks);
    if (search.interrupted || answer.interrupted) {
        fmt::print(stderr,
                   "railyard: interrupted: what was finished is in {}; the same command goes on "
                   "from there\n",
                   visible(args.db));
        return exit_interrupted;
    }
    const std::vector<Scenario> winners = scenarios_of(question, search, answer, options);
    Decision decision = tell_decision(question, search, answer, winners);
    decision.footer = fmt::format("railyard {}, {}", result_version(), question.file);
    if (!args.folder.empty()) write_folder(args, question, search, answer, decision);
    if (args.json) {
        fmt::print("{}\n", one_line(decision_json(question, search, answer, winners)));
    } else {
        print_decision(decision);
    }
    return exit_ok;
}

}  // namespace railyard
