#include "models/scheduler/dedicated.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

namespace railyard {

namespace {

// What says the same of one job as a key that only a [[jobs.kind]] has.
constexpr std::pair<std::string_view, std::string_view> of_one[] = {
    {"gpus", "nodes"},
    {"work", "length"},
    {"steps", "length"},
    {"checkpoint_interval", "checkpoint.interval"},
    {"checkpoint_size", "checkpoint.size"},
    {"restart", "recovery.restart"},
    {"restore", "recovery.restore"},
    {"own_failure_rate_per_gpu", "failures.cause"},
};

// Takes the keys of a table away that `is_refused`, each with an error.
template <class IsRefused>
void refuse(Value& table, const std::string& path, ValueReader& values, IsRefused is_refused) {
    std::erase_if(table.members, [&](const Member& member) {
        std::string_view instead;
        if (!is_refused(member.key, instead)) return false;
        values.error(member.value.at, fmt::format("{}{}", path, member.key),
                     "has no effect: under the scheduler dedicated one job has the cluster",
                     instead.empty() ? std::string() : fmt::format("give {} instead", instead));
        return true;
    });
}

DedicatedJob take_kind(Value& root, Value& kind, ValueReader& values, const JobKeys& keys) {
    refuse(kind, "jobs.kind[0].", values, [&](const std::string& key, std::string_view& instead) {
        if (key == "name" || keys.job.contains(key) || !keys.kind.contains(key)) return false;
        const auto found =
            std::ranges::find(of_one, key, &std::pair<std::string_view, std::string_view>::first);
        if (found != std::end(of_one)) instead = found->second;
        return true;
    });
    DedicatedJob taken{.was_a_kind = true, .name = {}};
    if (const Value* given = kind.find("name"); given && given->kind == Value::Kind::string) {
        taken.name = given->text;
    } else {
        values.error(given ? given->at : kind.at, "jobs.kind[0].name",
                     "is missing: What they are called", "expected text");
    }
    std::erase_if(kind.members, [](const Member& member) { return member.key == "name"; });
    if (const Value* job = root.find("job")) {
        values.error(job->at, "job", "there is a [[jobs.kind]] too: one of them is the job");
        std::erase_if(root.members, [](const Member& member) { return member.key == "job"; });
        taken.was_a_kind = false;  // who is told of both can tell them apart by their lines
    }
    root.members.push_back({"job", std::move(kind)});
    return taken;
}

// "beside job.step.time" becomes "beside jobs.kind.step.time".
std::string with_kind(const std::string& text, const std::set<std::string>& job_keys) {
    constexpr std::string_view job = "job.";
    const auto in_word = [](char c) {
        return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
               c == '_';
    };
    std::string out;
    for (std::size_t at = 0; at < text.size();) {
        const char before = at > 0 ? text[at - 1] : ' ';
        std::size_t end = at + job.size();
        if (text.compare(at, job.size(), job) == 0 && !in_word(before) && before != '.' &&
            before != '/') {
            while (end < text.size() && in_word(text[end])) ++end;
            const std::string key = text.substr(at + job.size(), end - at - job.size());
            if (job_keys.contains(key)) {
                out += "jobs.kind." + key;
                at = end;
                continue;
            }
        }
        out += text[at++];
    }
    return out;
}

}  // namespace

bool is_dedicated(const Value& root) {
    const Value* scheduler = root.find("scheduler");
    const Value* kind = scheduler ? scheduler->find("kind") : nullptr;
    return kind && kind->text == dedicated_scheduler;
}

DedicatedJob take_dedicated_job(Value& root, ValueReader& values, const JobKeys& keys) {
    const auto all_but_kind = [](const std::string& key, std::string_view&) {
        return key != "kind";
    };
    refuse(*root.find("scheduler"), "scheduler.", values, all_but_kind);
    refuse(root, "", values, [](const std::string& key, std::string_view& instead) {
        if (key == "reservation") instead = "maintenance";
        return key == "node_group" || key == "partition" || key == "reservation";
    });
    DedicatedJob job;
    if (Value* jobs = root.find("jobs")) {
        refuse(*jobs, "jobs.", values, all_but_kind);
        if (Value* kinds = jobs->find("kind"); kinds && !kinds->items.empty()) {
            if (kinds->items.size() > 1) {
                values.error(kinds->items[1].at, "jobs.kind[1]",
                             "the scheduler dedicated has one job",
                             "scheduler.kind = \"slurm\" has many");
            }
            job = take_kind(root, kinds->items[0], values, keys);
        }
    }
    std::erase_if(root.members, [](const Member& member) {
        return member.key == "scheduler" || member.key == "jobs";
    });
    return job;
}

Diagnostics said_of_kind(const Diagnostics& of_job, const std::set<std::string>& job_keys) {
    Diagnostics out;
    const auto path = [](const std::string& said) {
        return said == "job" || said.starts_with("job.") ? "jobs.kind[0]" + said.substr(3) : said;
    };
    const auto text = [&](const std::string& said) { return with_kind(said, job_keys); };
    for (const Diagnostic& d : of_job.errors()) {
        out.error(d.file, d.at, path(d.path), text(d.message), text(d.help));
    }
    for (const Diagnostic& d : of_job.warnings()) {
        out.warning(d.file, d.at, path(d.path), text(d.message), text(d.help));
    }
    return out;
}

}  // namespace railyard
