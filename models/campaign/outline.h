#pragma once
// What a scenario has, for sections that are read before the one that says it.

#include <algorithm>
#include <cstdint>
#include <initializer_list>
#include <optional>

#include "sim/config.h"

namespace railyard {

class Outline {
  public:
    // Null: nothing, to describe the language.
    explicit Outline(const Value* root) : root_(root) {}

    const Value* root() const { return root_; }

    // Null: it is not there.
    const Value* find(std::initializer_list<const char*> path) const {
        const Value* value = root_;
        for (const char* key : path) value = value ? value->find(key) : nullptr;
        return value;
    }

    std::optional<std::int64_t> job_nodes() const {
        const Value* nodes = find({"job", "nodes"});
        return nodes && nodes->integer > 0 ? std::optional(nodes->integer) : std::nullopt;
    }

    // A window sends to storage servers, or they to the nodes.
    bool storage_traffic() const {
        return any_of({"window", "traffic"}, [](const Value& each) {
            const Value* kind = each.find("kind");
            return kind && (kind->text == "checkpoint" || kind->text == "restore");
        });
    }

    bool many_jobs() const { return find({"scheduler"}); }

    // Whether anything has steps: of many jobs only those with a model do, or that say what they send.
    bool any_steps() const {
        return !many_jobs() || any_of({"jobs", "kind"}, [](const Value& kind) {
            return kind.find("model") || kind.find("fabric_share");
        });
    }
    const char* without_steps() const {
        return any_steps() ? "" : "on jobs without a model: no [[jobs.kind]] has one";
    }

    // Some of many jobs ask for GPUs that NVLink joins.
    bool nvlink_domains() const {
        return many_jobs() && any_of({"jobs", "kind"}, [](const Value& kind) {
                   const Value* what = kind.find("requires");
                   return what && what->find("nvlink_domain");
               });
    }

  private:
    template <class Is>
    bool any_of(std::initializer_list<const char*> list, Is is) const {
        const Value* values = find(list);
        return values && std::ranges::any_of(values->items, is);
    }

    const Value* root_;
};

}  // namespace railyard
