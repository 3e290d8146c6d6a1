#include "models/campaign/dedicated.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

namespace railyard {

namespace {

// A key of a [[jobs.kind]] that one job has no use for, and the one that says the same of it.
constexpr std::pair<std::string_view, std::string_view> of_many[] = {
    {"gpus", "nodes"},
    {"work", "length"},
    {"steps", "length"},
    {"checkpoint_interval", "checkpoint.interval"},
    {"checkpoint_size", "checkpoint.size"},
    {"checkpoint_stall", ""},
    {"restart", "recovery.restart"},
    {"restore", "recovery.restore"},
    {"own_failure_rate_per_gpu", "failures.cause"},
    {"requires", ""},
    {"at", ""},
    {"rate", ""},
    {"count", ""},
    {"size", ""},
    {"stream", ""},
    {"gpus_per_pod", ""},
    {"work_median", ""},
    {"limit", ""},
    {"limit_factor", ""},
    {"partition", ""},
    {"qos", ""},
    {"account", ""},
    {"queue", ""},
    {"min_member", ""},
    {"topology", ""},
    {"topology_level", ""},
    {"switches", ""},
    {"switches_wait", ""},
    {"requeue", ""},
    {"resubmit", ""},
    {"restarts_max", ""},
};

class DedicatedJob {
  public:
    DedicatedJob(Value& root, ValueReader& values) : root_(root), values_(values) {}

    std::string take();

  private:
    // Takes the keys of a table away that `is_refused`, each with an error.
    template <class IsRefused>
    void refuse(Value& table, const std::string& path, IsRefused is_refused);
    std::string take_kind(Value& kind);

    Value& root_;
    ValueReader& values_;
};

template <class IsRefused>
void DedicatedJob::refuse(Value& table, const std::string& path, IsRefused is_refused) {
    std::erase_if(table.members, [&](const Member& member) {
        std::string_view instead;
        if (!is_refused(member.key, instead)) return false;
        values_.error(member.value.at, fmt::format("{}{}", path, member.key),
                      "has no effect: under the scheduler dedicated one job has the cluster",
                      instead.empty() ? std::string() : fmt::format("give {} instead", instead));
        return true;
    });
}

std::string DedicatedJob::take() {
    Value* scheduler = root_.find("scheduler");
    if (scheduler == nullptr) return {};
    const Value* kind = scheduler->find("kind");
    if (kind == nullptr || kind->text != dedicated_scheduler) return {};
    const auto all_but_kind = [](const std::string& key, std::string_view&) {
        return key != "kind";
    };
    refuse(*scheduler, "scheduler.", all_but_kind);
    refuse(root_, "", [](const std::string& key, std::string_view& instead) {
        if (key == "reservation") instead = "maintenance";
        return key == "node_group" || key == "partition" || key == "reservation";
    });
    std::string name;
    if (Value* jobs = root_.find("jobs")) {
        refuse(*jobs, "jobs.", all_but_kind);
        if (Value* kinds = jobs->find("kind"); kinds && !kinds->items.empty()) {
            if (kinds->items.size() > 1) {
                values_.error(kinds->items[1].at, "jobs.kind[1]",
                              "the scheduler dedicated has one job",
                              "scheduler.kind = \"slurm\" has many");
            }
            name = take_kind(kinds->items[0]);
        }
    }
    std::erase_if(root_.members, [](const Member& member) {
        return member.key == "scheduler" || member.key == "jobs";
    });
    return name;
}

std::string DedicatedJob::take_kind(Value& kind) {
    refuse(kind, "jobs.kind[0].", [](const std::string& key, std::string_view& instead) {
        const auto found =
            std::ranges::find(of_many, key, &std::pair<std::string_view, std::string_view>::first);
        if (found == std::end(of_many)) return false;
        instead = found->second;
        return true;
    });
    std::string name;
    if (const Value* given = kind.find("name"); given && given->kind == Value::Kind::string) {
        name = given->text;
    } else {
        values_.error(given ? given->at : kind.at, "jobs.kind[0].name",
                      "is missing: What they are called", "expected text");
    }
    std::erase_if(kind.members, [](const Member& member) { return member.key == "name"; });
    if (const Value* job = root_.find("job")) {
        values_.error(job->at, "job", "there is a [[jobs.kind]] too: one of them is the job");
        std::erase_if(root_.members, [](const Member& member) { return member.key == "job"; });
    }
    root_.members.push_back({"job", std::move(kind)});
    return name;
}

}  // namespace

std::string take_dedicated_job(Value& root, ValueReader& values) {
    return DedicatedJob(root, values).take();
}

}  // namespace railyard
