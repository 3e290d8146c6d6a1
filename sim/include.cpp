// One document made of several files.

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>

#include "sim/config.h"

namespace railyard {

namespace {

constexpr const char* key = "include";

class Includes {
  public:
    Includes(Diagnostics& diagnostics, Document& whole)
        : diagnostics_(diagnostics), whole_(whole) {}

    // The document's tree, with what it includes.
    Value load(std::string_view text, const std::string& name);

  private:
    void add_part(Value& parts, const Value& named, const std::string& by);
    void join(Value& into, const Value& from, const std::string& path);
    bool is_list_of_files(const Value& value);
    std::string place(const Value& value) const;
    void error(const Value& at, const std::string& path, std::string message,
               std::string help = {});

    Diagnostics& diagnostics_;
    Document& whole_;
    std::vector<std::filesystem::path> open_;  // each includes the next
    std::vector<std::filesystem::path> read_;
};

void stamp(Value& value, const std::shared_ptr<const std::string>& file) {
    value.at.file = file;
    for (auto& [name, member] : value.members) stamp(member, file);
    for (Value& item : value.items) stamp(item, file);
}

// What the including file says itself holds.
void lay_over(Value& parts, Value&& own) {
    if (parts.kind != Value::Kind::table || own.kind != Value::Kind::table) {
        parts = std::move(own);
        return;
    }
    parts.at = own.at;
    for (auto& [name, value] : own.members) {
        if (Value* there = parts.find(name)) {
            lay_over(*there, std::move(value));
        } else {
            parts.members.push_back({name, std::move(value)});
        }
    }
}

Value Includes::load(std::string_view text, const std::string& name) {
    Value own = parse_document(text, name, diagnostics_).root;
    if (!open_.empty()) stamp(own, std::make_shared<const std::string>(name));
    const Value* list = own.find(key);
    if (list == nullptr || !is_list_of_files(*list)) return own;
    open_.push_back(std::filesystem::weakly_canonical(name));
    Value parts;
    for (const Value& part : list->items) add_part(parts, part, name);
    open_.pop_back();
    lay_over(parts, std::move(own));
    return parts;
}

bool Includes::is_list_of_files(const Value& value) {
    const bool files =
        value.kind == Value::Kind::array && std::ranges::all_of(value.items, [](const Value& item) {
            return item.kind == Value::Kind::string && !item.text.empty();
        });
    if (!files) error(value, key, "expected a list of files", "include = [\"cluster.toml\"]");
    return files;
}

void Includes::add_part(Value& parts, const Value& named, const std::string& by) {
    const std::string file = file_beside(named, by);
    const std::filesystem::path whole = std::filesystem::weakly_canonical(file);
    if (std::ranges::find(open_, whole) != open_.end()) {
        return error(named, key, fmt::format("{} includes itself in the end", file),
                     "what two files need goes into a third");
    }
    // What several parts need is there once.
    if (std::ranges::find(read_, whole) != read_.end()) return;
    read_.push_back(whole);
    try {
        const std::string text = read_file(file);
        whole_.included.push_back(file);
        Value part = load(text, file);
        std::erase_if(part.members, [](const Member& m) { return m.key == key; });
        join(parts, part, "");
    } catch (const ScenarioError& unreadable) {
        error(named, key, unreadable.diagnostics()[0].message);
    }
}

void Includes::join(Value& into, const Value& from, const std::string& path) {
    for (const auto& [name, value] : from.members) {
        const std::string at = path.empty() ? name : path + "." + name;
        Value* there = into.find(name);
        if (there == nullptr) {
            into.members.push_back({name, value});
        } else if (there->kind == Value::Kind::table && value.kind == Value::Kind::table) {
            join(*there, value, at);
        } else {
            error(value, at, fmt::format("is also given by {}", place(*there)),
                  "leave it out of one of them, or say it in the file that includes both");
        }
    }
}

std::string Includes::place(const Value& value) const {
    return fmt::format("{}:{}:{}", value.at.file ? *value.at.file : whole_.name, value.at.line,
                       value.at.column);
}

void Includes::error(const Value& at, const std::string& path, std::string message,
                     std::string help) {
    diagnostics_.error(at.at.file ? *at.at.file : whole_.name, at.at, path, std::move(message),
                       std::move(help));
}

}  // namespace

Document parse_with_includes(std::string_view text, std::string name, Diagnostics& diagnostics) {
    Document out;
    out.name = std::move(name);
    Value root = Includes(diagnostics, out).load(text, out.name);
    out.root = std::move(root);
    return out;
}

}  // namespace railyard
