#include "tools/study/sweep_slurm.h"

#include <fmt/format.h>
#include <sys/wait.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <map>
#include <set>
#include <thread>

#include "tools/program/output_file.h"
#include "tools/study/sweep_task.h"

namespace railyard {

namespace fs = std::filesystem;

namespace {

struct CommandResult {
    int code = -1;
    std::string text;  // standard output and error
};

CommandResult run_command(const std::string& command) {
    CommandResult out;
    std::FILE* pipe = popen((command + " 2>&1").c_str(), "r");
    if (pipe == nullptr) return out;
    std::array<char, 4096> buffer{};
    for (std::size_t n = 0; (n = fread(buffer.data(), 1, buffer.size(), pipe)) > 0;) {
        out.text.append(buffer.data(), n);
    }
    const int status = pclose(pipe);
    out.code = WIFEXITED(status) ? WEXITSTATUS(status) : -1;
    while (!out.text.empty() && out.text.back() == '\n') out.text.pop_back();
    return out;
}

// In single quotes, for a shell.
std::string shell_quoted(const std::string& text) {
    std::string out = "'";
    for (const char c : text) out += c == '\'' ? std::string("'\\''") : std::string(1, c);
    return out + "'";
}

void check_slurm() {
    constexpr int not_found = 127;
    const CommandResult ping = run_command("scontrol ping");
    if (ping.code == not_found) {
        throw ScenarioError("there is no Slurm here: the command scontrol was not found",
                            "install slurm-client, or run the sweep without --on slurm");
    }
    if (ping.code != 0 || ping.text.find("UP") == std::string::npos) {
        throw ScenarioError(fmt::format("Slurm does not answer: {}", ping.text),
                            "'scontrol ping' must say UP; or run the sweep without --on slurm");
    }
}

constexpr const char* job_name = "railyard-sweep";

// Only what a sweep has submitted: a number from a file may have become another job's.
void cancel(const std::string& job) {
    run_command(fmt::format("scancel --me --name={} {}", job_name, job));
}

class Coordinator {
  public:
    Coordinator(const SweepManifest& manifest, const std::string& folder, const SweepOptions& sweep,
                const SlurmOptions& options, ResultsDb& db)
        : manifest_(manifest), folder_(folder), sweep_(sweep), options_(options), db_(db) {
        for (std::size_t i = 0; i < manifest.tasks.size(); ++i) missing_.insert(i);
    }
    ~Coordinator() {
        if (!job_.empty()) cancel(job_);
    }
    Coordinator(const Coordinator&) = delete;

    void run() {
        submit();
        while (!missing_.empty() && !*sweep_.cancelled) {
            std::this_thread::sleep_for(std::chrono::duration<double>(options_.poll_s));
            // First who is still there, then what they left: a task that ends in between is not called dead.
            const bool over = array_is_over();
            harvest();
            if (over && !missing_.empty()) submit();
        }
        if (missing_.empty()) job_.clear();
    }

  private:
    void submit() {
        for (const std::size_t task : missing_) {
            if (++tries_[task] > options_.tries_max) {
                throw ScenarioError(
                    fmt::format("task {} of the sweep has failed {} times", task,
                                options_.tries_max),
                    fmt::format("what it said is in {}/task-{}.log; the same command tries again",
                                folder_, task));
            }
            drop_shard(folder_, task);
        }
        const std::string script = folder_ + "/task.sh";
        write_file(script,
                   fmt::format("#!/bin/sh\nexec {} sweep --task {} --index "
                               "\"$SLURM_ARRAY_TASK_ID\" -j \"${{SLURM_CPUS_PER_TASK:-1}}\"\n",
                               shell_quoted(fs::read_symlink("/proc/self/exe").string()),
                               shell_quoted(folder_)),
                   {});
        const CommandResult sbatch = run_command(fmt::format(
            "sbatch --parsable --job-name={} --array={} --output={} --open-mode=append --chdir={} "
            "{} {}",
            job_name, fmt::join(missing_, ","), shell_quoted(folder_ + "/task-%a.log"),
            shell_quoted(fs::current_path().string()), options_.sbatch, shell_quoted(script)));
        if (sbatch.code != 0) {
            throw ScenarioError(fmt::format("Slurm refuses the sweep's array: {}", sbatch.text),
                                "--sbatch \"--partition=...\" adds options");
        }
        job_ = sbatch.text.substr(0, sbatch.text.find(';'));  // of JOB;CLUSTER
        write_file(folder_ + "/job", job_, {});
    }

    // No task of the array waits, runs or ends. A controller that does not answer has said nothing.
    bool array_is_over() const {
        const CommandResult queue = run_command("squeue --noheader --format=%i --jobs=" + job_);
        return queue.code == 0 ? queue.text.empty()
                               : queue.text.find("Invalid job id") != std::string::npos;
    }

    void harvest() {
        for (auto task = missing_.begin(); task != missing_.end();) {
            if (!shard_is_whole(folder_, *task)) {
                ++task;
                continue;
            }
            db_.merge(shard_path(folder_, *task));
            drop_shard(folder_, *task);
            points_done_ += std::ssize(manifest_.tasks[*task]);
            if (sweep_.progress) sweep_.progress(points_done_);
            task = missing_.erase(task);
        }
    }

    const SweepManifest& manifest_;
    const std::string& folder_;
    const SweepOptions& sweep_;
    const SlurmOptions& options_;
    ResultsDb& db_;
    std::set<std::size_t> missing_;
    std::map<std::size_t, std::int64_t> tries_;
    std::string job_;
    std::int64_t points_done_ = 0;
};

SweepManifest manifest_of(const std::vector<SweepPoint>& points, const SweepOptions& sweep,
                          const std::string& version, std::int64_t tasks_max) {
    SweepManifest out;
    out.version = version;
    out.scenario_file = fs::absolute(sweep.scenario_file).string();
    out.scenario_text = sweep.scenario_text;
    out.rule = sweep.rule;
    const std::size_t all = points.size();
    const std::size_t tasks =
        std::min(all, static_cast<std::size_t>(std::max<std::int64_t>(1, tasks_max)));
    for (std::size_t t = 0; t < tasks; ++t) {
        out.tasks.emplace_back();
        for (std::size_t i = all * t / tasks; i < all * (t + 1) / tasks; ++i) {
            const SweepPoint& p = points[i];
            PointSpec spec;
            spec.settings = p.settings;
            spec.key.text = p.key;
            out.tasks.back().push_back(std::move(spec));
        }
    }
    return out;
}

}  // namespace

void run_on_slurm(const std::vector<SweepPoint>& points, const SweepOptions& sweep,
                  const std::string& version, const SlurmOptions& options, ResultsDb& db) {
    check_slurm();
    if (points.empty()) return;
    const std::string absolute = fs::absolute(options.folder).lexically_normal().string();
    std::error_code failure;
    fs::create_directories(absolute, failure);
    if (failure)
        throw ScenarioError(
            fmt::format("can't make the folder {}: {}", absolute, failure.message()));
    const SweepManifest manifest = manifest_of(points, sweep, version, options.tasks);
    write_manifest(absolute, manifest);
    Coordinator(manifest, absolute, sweep, options, db).run();
    if (!*sweep.cancelled) drop_folder(absolute);
}

void take_over(const std::string& given, ResultsDb& db) {
    if (!fs::exists(given)) return;
    const std::string folder = fs::absolute(given).lexically_normal().string();
    if (!is_sweep_folder(folder)) {
        throw ScenarioError(
            fmt::format("{} is in the way: a sweep did not make it", given),
            "move it, or write to another database: a sweep on Slurm needs DB.slurm");
    }
    std::ifstream in(folder + "/job");
    std::string job;
    if (in >> job && job.find_first_not_of("0123456789") == std::string::npos) cancel(job);
    for (const auto& entry : fs::directory_iterator(folder)) {
        const std::string name = entry.path().filename().string();
        std::size_t task = 0;
        if (std::sscanf(name.c_str(), "task-%zu.pb", &task) == 1 && shard_is_whole(folder, task)) {
            db.merge(shard_path(folder, task));
        }
    }
    drop_folder(folder);
}

}  // namespace railyard
