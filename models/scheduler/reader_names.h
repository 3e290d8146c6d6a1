#pragma once
// Names that a scenario gives itself: of its queues, partitions, kinds of jobs. And who looks at what it
// gives.

#include <fmt/format.h>

#include <algorithm>
#include <initializer_list>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "models/scheduler/world_spec.h"
#include "sim/config.h"
#include "sim/text.h"

namespace railyard {

// There is no list of them to describe.
inline std::vector<std::string> own_names(const Section& section, std::vector<std::string> names) {
    return section.describing() ? std::vector<std::string>{} : std::move(names);
}

// Tables are told apart by their names. `before`: those of the tables before this one.
inline void refuse_same_name(Section& section, const std::string& name,
                             const std::vector<std::string>& before, const char* what) {
    const bool known = std::ranges::find(before, name) != before.end();
    if (known && !name.empty()) {
        section.error("name", fmt::format("another {} is called '{}'", what, name));
    }
}

// The index of a name that the section has let pass; the first for one that it has not.
inline std::uint32_t index_of(const std::vector<std::string>& names, const std::string& name) {
    const auto found = std::ranges::find(names, name);
    return found == names.end() ? 0 : static_cast<std::uint32_t>(found - names.begin());
}

// For Section::no_effect(): empty where the scheduler is one of those that look at a key.
inline std::string unless_under(std::initializer_list<std::string_view> users,
                                const WorldSpec& spec) {
    const bool used = std::ranges::find(users, spec.scheduler) != users.end();
    return used ? "" : "under " + spec.scheduler;
}

// Warns of keys that only a factor of Slurm's priority looks at, where its weight is 0.
inline void warn_without_weight(Section& section, std::initializer_list<const char*> keys,
                                const WorldSpec& spec, std::int64_t weight, const char* factors) {
    if (spec.scheduler != "slurm" || weight > 0) return;
    warn_of_keys(section, keys,
                 fmt::format("has no effect without scheduler.priority.{}", factors));
}

}  // namespace railyard
