// railyard storage: what the scenario's store gives, what it holds, and what it loses with its parts.

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "tools/cli/cmd.h"
#include "tools/cli/options.h"
#include "tools/cli/prediction_text.h"
#include "tools/cli/store_text.h"
#include "tools/cli/terminal.h"

namespace railyard {

namespace {

Prediction store_prediction(const Scenario& s, const std::string& path,
                            const ScenarioChanges& changes) {
    StandaloneCatalogue own = s.open_catalogue();
    const ModelError error = read_model_error(own.catalogue, "store");
    const std::vector<double> answers = store_answers(s);
    constexpr const char* names[] = {"read", "write", "checkpoint"};
    std::vector<Question> questions;
    for (std::size_t i = 0; i < answers.size(); ++i) {
        questions.push_back({names[i], answers[i], {}, error, "a run on this store", false});
    }
    return predict(questions, s.estimates, draws_of(s), s.seed,
                   read_again(path, changes, store_answers));
}

}  // namespace

int cmd_storage(const std::vector<std::string>& arguments) {
    CommandLine line(
        "railyard storage SCENARIO.toml [options]",
        "Prints what the scenario's store gives and which part bounds it, what it holds, what it\n"
        "loses with a drive, a server or a box, and the walls that a checkpoint meets.");
    line.positional("scenario", 1);
    line.add_settings();
    line.add()("files", a_count(100'000), "Small files that are written and read");
    line.add()("file-size", a_text("100 kB"), "Each of them");
    line.add()("threads", a_count(1), "Threads that do it, one on a node while there are nodes");
    line.add_json();
    const auto values = line.parse(arguments);
    ScenarioChanges changes;
    changes.settings = settings_of(values);
    changes.must_run = false;  // the job need not fit into memory here
    changes.overrides_read = std::make_shared<OverridesRead>();
    const std::string path = only_scenario(values, "storage");
    const Scenario s = load_scenario_file(path, changes);
    print_warnings(s.warnings);
    need_one_job(s, "storage");
    SmallFiles files;
    files.files = values["files"].as<std::int64_t>();
    files.threads = values["threads"].as<std::int64_t>();
    std::string why;
    const auto size = parse_quantity(values["file-size"].as<std::string>(), why, Dimension::data);
    if (!size || size->dimension != Dimension::data || !size->integer) {
        throw ScenarioError(fmt::format("--file-size: expected an amount of data{}{}",
                                        why.empty() ? "" : ": ", why),
                            "--file-size \"100 kB\"");
    }
    constexpr std::int64_t most = 1'000'000'000;
    if (files.files < 1 || files.threads < 1 || files.files > most || files.threads > most ||
        *size->integer < 0 || *size->integer > INT64_MAX / files.files) {
        throw ScenarioError("--files and --threads: expected 1 to a billion, of files that add up");
    }
    files.bytes = Bytes::of(*size->integer) * files.files;
    files.clients = std::min(files.threads, s.job.nodes);
    const Prediction prediction = store_prediction(s, path, changes);
    if (values.count("json")) {
        Json out = store_json(s, files);
        out["prediction"] = prediction_json(prediction);
        fmt::print("{}\n", one_line(out));
    } else {
        print_store(s, files);
        print_bursts(s);
        const ShowNumber rate = [](double v) {
            return to_text(Bandwidth::bits_per_second(std::llround(8 * v)));
        };
        print_prediction(prediction, {rate, rate, time_text});
    }
    print_warnings(unread_overrides(s));
    return exit_ok;
}

}  // namespace railyard
