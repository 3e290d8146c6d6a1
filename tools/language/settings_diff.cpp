#include "tools/language/settings_diff.h"

#include <fmt/format.h>

#include <algorithm>

namespace railyard {

std::string value_text(const Value& value, std::string (*quote)(const std::string&)) {
    switch (value.kind) {
        case Value::Kind::string:
            return quote != nullptr ? quote(value.text) : value.text;
        case Value::Kind::integer:
            return fmt::format("{}", value.integer);
        case Value::Kind::real:
            return fmt::format("{}", value.real);
        case Value::Kind::boolean:
            return value.integer != 0 ? "true" : "false";
        case Value::Kind::array: {
            std::vector<std::string> items;
            for (const Value& item : value.items) items.push_back(value_text(item, quote));
            return fmt::format("[{}]", fmt::join(items, ", "));
        }
        case Value::Kind::table: {
            std::vector<std::string> members;
            for (const auto& [key, member] : value.members) {
                members.push_back((quote != nullptr ? quote(key) : key) + " = " +
                                  value_text(member, quote));
            }
            return fmt::format(fmt::runtime(quote != nullptr ? "{{{}}}" : "{{ {} }}"),
                               fmt::join(members, ", "));
        }
        case Value::Kind::other:
            break;
    }
    return "a date or time";
}

namespace {

using Leaves = std::vector<std::pair<std::string, std::string>>;

bool is_list_of_tables(const Value& value) {
    return value.kind == Value::Kind::array && !value.items.empty() &&
           std::ranges::all_of(value.items,
                               [](const Value& item) { return item.kind == Value::Kind::table; });
}

void add_leaves(const Value& value, const std::string& path, Leaves& out) {
    const auto below = [&](const std::string& key) {
        return path.empty() ? key : path + "." + key;
    };
    if (value.kind == Value::Kind::table && value.find("value") == nullptr) {
        for (const auto& [key, member] : value.members) add_leaves(member, below(key), out);
    } else if (is_list_of_tables(value)) {
        for (std::size_t i = 0; i < value.items.size(); ++i) {
            add_leaves(value.items[i], below(std::to_string(i)), out);
        }
    } else {
        out.emplace_back(path, value_text(value));
    }
}

const std::string* find(const Leaves& leaves, const std::string& path) {
    const auto found =
        std::ranges::find_if(leaves, [&](const auto& leaf) { return leaf.first == path; });
    return found == leaves.end() ? nullptr : &found->second;
}

}  // namespace

std::vector<DifferingKey> differing_keys(const std::vector<const Document*>& documents) {
    std::vector<Leaves> all;
    std::vector<std::string> paths;
    for (const Document* document : documents) {
        all.emplace_back();
        add_leaves(document->root, "", all.back());
        for (const auto& [path, text] : all.back()) {
            if (std::ranges::find(paths, path) == paths.end()) paths.push_back(path);
        }
    }
    std::vector<DifferingKey> out;
    for (const std::string& path : paths) {
        if (path == "title" || path == "run.seed" || path == "run.replicas") continue;
        DifferingKey key{path, {}};
        for (const Leaves& leaves : all) {
            const std::string* text = find(leaves, path);
            key.values.push_back(text ? *text : "");
        }
        const auto differs = [&](const std::string& v) { return v != key.values[0]; };
        if (std::ranges::any_of(key.values, differs)) out.push_back(key);
    }
    return out;
}

}  // namespace railyard
