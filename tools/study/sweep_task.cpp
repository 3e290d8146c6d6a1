#include "tools/study/sweep_task.h"

#include <fmt/format.h>

#include <filesystem>

#include "tools/program/output_file.h"
#include "tools/study/sweep_tasks.pb.h"
#include "tools/study/sweep_work.h"

namespace railyard {

namespace fs = std::filesystem;

std::string manifest_path(const std::string& folder) {
    return folder + "/manifest.pb";
}
std::string shard_path(const std::string& folder, std::size_t task) {
    return fmt::format("{}/shard-{:05}.sqlite", folder, task);
}
std::string report_path(const std::string& folder, std::size_t task) {
    return fmt::format("{}/task-{:05}.pb", folder, task);
}

// Says whose the folder is, whatever becomes of the other files: the first to come and the last to go.
std::string mark_path(const std::string& folder) {
    return folder + "/made-by-railyard-sweep";
}

void write_manifest(const std::string& folder, const SweepManifest& manifest) {
    tasks::Manifest out;
    out.set_version(manifest.version);
    out.set_scenario_file(manifest.scenario_file);
    out.set_scenario_text(manifest.scenario_text);
    out.set_replicas_min(manifest.rule.replicas_min);
    out.set_replicas_max(manifest.rule.replicas_max);
    out.set_metric(manifest.rule.metric);
    out.set_half_width(manifest.rule.half_width);
    for (const std::vector<PointSpec>& task : manifest.tasks) {
        tasks::Task* to = out.add_tasks();
        for (const PointSpec& point : task) {
            tasks::Point* p = to->add_points();
            p->set_key(point.key.text);
            for (const std::string& setting : point.settings) p->add_settings(setting);
        }
    }
    write_file(mark_path(folder), "A sweep on Slurm keeps its work here.\n", {});
    write_file(manifest_path(folder), out.SerializeAsString(), {});
}

bool is_sweep_folder(const std::string& folder) {
    std::error_code none;
    if (fs::is_empty(folder, none)) return true;
    return fs::is_regular_file(mark_path(folder), none);
}

SweepManifest read_manifest(const std::string& folder, const std::string& version) {
    const std::string path = manifest_path(folder);
    tasks::Manifest in;
    if (!in.ParseFromString(read_file(path))) {
        throw ScenarioError(fmt::format("{} is no manifest of a sweep, or a damaged one", path),
                            "start the sweep again: it goes on from what is in its database");
    }
    if (in.version() != version) {
        throw ScenarioError(
            fmt::format("{} is railyard {}'s, and this is {}", path, in.version(), version),
            "coordinator and tasks must be the same program");
    }
    SweepManifest out;
    out.version = in.version();
    out.scenario_file = in.scenario_file();
    out.scenario_text = in.scenario_text();
    out.rule = {in.replicas_min(), in.replicas_max(), in.metric(), in.half_width()};
    for (const tasks::Task& task : in.tasks()) {
        out.tasks.emplace_back();
        for (const tasks::Point& p : task.points()) {
            PointSpec spec;
            spec.settings.assign(p.settings().begin(), p.settings().end());
            spec.key.text = p.key();
            spec.version = version;
            out.tasks.back().push_back(std::move(spec));
        }
    }
    return out;
}

void run_task(const std::string& folder, std::size_t task, const std::string& version,
              unsigned threads, const std::atomic<bool>& cancelled) {
    const SweepManifest manifest = read_manifest(folder, version);
    if (task >= manifest.tasks.size()) {
        throw ScenarioError(fmt::format("the sweep in {} has {} tasks, and this is task {}", folder,
                                        manifest.tasks.size(), task));
    }
    drop_shard(folder, task);
    const std::string shard = shard_path(folder, task);
    const double cpu_before = process_cpu_seconds();
    SweepWorkDone work;
    {
        ResultsDb db(shard);
        std::vector<SweepPoint> points;
        for (PointSpec spec : manifest.tasks[task]) {
            spec.file = manifest.scenario_file;
            spec.toml = manifest.scenario_text;
            points.push_back({db.point(spec), spec.key.text, spec.settings, false});
        }
        db.commit();
        work = run_points(std::move(points),
                          {manifest.scenario_text,
                           manifest.scenario_file,
                           manifest.rule,
                           threads,
                           &cancelled,
                           {}},
                          db);
    }
    if (cancelled) throw Interrupted();
    tasks::Report report;
    report.set_shard_digest(digest_of(read_file(shard)));
    report.set_points(work.points);
    report.set_cpu_s(process_cpu_seconds() - cpu_before);
    write_file(report_path(folder, task), report.SerializeAsString(), {});
}

bool shard_is_whole(const std::string& folder, std::size_t task) {
    const std::string path = report_path(folder, task);
    if (!fs::exists(path) || !fs::exists(shard_path(folder, task))) return false;
    tasks::Report report;
    return report.ParseFromString(read_file(path)) &&
           report.shard_digest() == digest_of(read_file(shard_path(folder, task)));
}

void drop_shard(const std::string& folder, std::size_t task) {
    const std::string shard = shard_path(folder, task);
    std::error_code ignored;
    fs::remove(report_path(folder, task), ignored);
    for (const char* suffix : {"", "-wal", "-shm", "-journal", "-writer"}) {
        fs::remove(shard + suffix, ignored);
    }
}

void drop_folder(const std::string& folder) {
    const auto ours = [](std::string name) {
        name = name.substr(0, name.find(".part-"));  // half of it, of an OutputFile
        return name == "manifest.pb" || name == "task.sh" || name == "job" ||
               name.starts_with("task-") || name.starts_with("shard-");
    };
    std::error_code ignored;
    std::vector<fs::path> files;
    for (const auto& entry : fs::directory_iterator(folder, ignored)) {
        if (entry.is_regular_file(ignored) && ours(entry.path().filename().string())) {
            files.push_back(entry.path());
        }
    }
    for (const fs::path& file : files) fs::remove(file, ignored);
    fs::remove(mark_path(folder), ignored);
    fs::remove(folder, ignored);
}

}  // namespace railyard
