#include "tools/import/yaml_tree.h"

#include <fmt/format.h>
#include <yaml.h>

#include "sim/text.h"

namespace railyard {

namespace {

// libyaml's events, made a tree as they come.
class YamlReader {
  public:
    YamlReader(std::string_view text, Document& document, Diagnostics& diagnostics)
        : document_(document), diagnostics_(diagnostics) {
        yaml_parser_initialize(&parser_);
        yaml_parser_set_input_string(&parser_, reinterpret_cast<const unsigned char*>(text.data()),
                                     text.size());
    }
    ~YamlReader() { yaml_parser_delete(&parser_); }
    YamlReader(const YamlReader&) = delete;

    void read() {
        for (bool more = true; more;) {
            yaml_event_t event;
            if (yaml_parser_parse(&parser_, &event) == 0) {
                const std::string why = parser_.problem != nullptr ? parser_.problem : "";
                refuse(position(parser_.problem_mark), "", fmt::format("not YAML here: {}", why),
                       "is the file whole?");
                return;
            }
            more = take(event);
            yaml_event_delete(&event);
        }
    }

  private:
    static constexpr std::size_t depth_max = 100;

    // False: no more of it is wanted.
    bool take(const yaml_event_t& event) {
        switch (event.type) {
            case YAML_SCALAR_EVENT:
                return scalar(event);
            case YAML_MAPPING_START_EVENT:
                return open(event, Value::Kind::table);
            case YAML_SEQUENCE_START_EVENT:
                return open(event, Value::Kind::array);
            case YAML_MAPPING_END_EVENT:
            case YAML_SEQUENCE_END_EVENT:
                open_.pop_back();
                return true;
            case YAML_ALIAS_EVENT:
                return refuse(position(event.start_mark), "", "repeats another part (*name)",
                              "write it out");
            case YAML_DOCUMENT_START_EVENT:
                if (whole_)
                    return refuse(position(event.start_mark), "", "a second document (---)");
                whole_ = true;
                return true;
            default:
                return event.type != YAML_STREAM_END_EVENT;
        }
    }

    bool scalar(const yaml_event_t& event) {
        const std::string text(reinterpret_cast<const char*>(event.data.scalar.value),
                               event.data.scalar.length);
        const Position at = position(event.start_mark);
        if (!open_.empty() && open_.back().wants_key) {
            if (open_.back().value->find(text) != nullptr)
                return refuse(at, text, "is there twice");
            key_ = text;
            key_at_ = at;
            open_.back().wants_key = false;
            return true;
        }
        Value* out = place(at);
        out->kind = Value::Kind::string;
        out->text = text;
        if (event.data.scalar.style != YAML_PLAIN_SCALAR_STYLE) return true;
        const std::string word = lower_case(text);
        if (word.empty() || word == "null" || word == "~") {
            out->kind = Value::Kind::other;
        } else if (word == "true" || word == "false") {
            out->kind = Value::Kind::boolean;
            out->integer = word == "true" ? 1 : 0;
        } else if (const auto whole = whole_value(text)) {
            out->kind = Value::Kind::integer;
            out->integer = *whole;
            out->real = static_cast<double>(*whole);
        } else if (const auto real = real_value(text)) {
            out->kind = Value::Kind::real;
            out->real = *real;
        }
        return true;
    }

    bool open(const yaml_event_t& event, Value::Kind kind) {
        const Position at = position(event.start_mark);
        if (open_.size() >= depth_max) {
            return refuse(at, "", fmt::format("nested more than {} deep", depth_max));
        }
        if (!open_.empty() && open_.back().wants_key)
            return refuse(at, "", "a key that is not a word");
        Value* out = place(at);
        out->kind = kind;
        open_.push_back({out, kind == Value::Kind::table});
        return true;
    }

    Value* place(Position at) {
        Value* out = &document_.root;
        if (!open_.empty() && open_.back().value->kind == Value::Kind::array) {
            open_.back().value->items.emplace_back();
            out = &open_.back().value->items.back();
        } else if (!open_.empty()) {
            open_.back().value->members.push_back({key_, Value{}});
            out = &open_.back().value->members.back().value;
            open_.back().wants_key = true;
            at = key_at_;
        }
        out->at = at;
        return out;
    }

    bool refuse(Position at, std::string path, std::string message, std::string help = {}) {
        diagnostics_.error(document_.name, at, std::move(path), std::move(message),
                           std::move(help));
        return false;
    }

    static Position position(const yaml_mark_t& mark) {
        return {static_cast<int>(mark.line) + 1, static_cast<int>(mark.column) + 1};
    }

    Document& document_;
    Diagnostics& diagnostics_;
    yaml_parser_t parser_{};
    struct Open {
        Value* value;
        bool wants_key;
    };
    std::vector<Open> open_;  // each in the one before; only the last grows
    std::string key_;
    Position key_at_;
    bool whole_ = false;
};

}  // namespace

Document parse_yaml(std::string_view text, std::string name, Diagnostics& diagnostics) {
    Document out;
    out.name = std::move(name);
    YamlReader(text, out, diagnostics).read();
    return out;
}

}  // namespace railyard
