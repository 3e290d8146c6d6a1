#include "tools/import/json_tree.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

namespace railyard {

namespace {

// What the parser has taken so far; it reads a string to its closing quote and no further.
struct Cursor {
    int line = 1;
    int column = 1;
};

class CountingIterator {
  public:
    using difference_type = std::ptrdiff_t;
    using value_type = char;
    using pointer = const char*;
    using reference = const char&;
    using iterator_category = std::input_iterator_tag;

    CountingIterator(const char* at, Cursor& cursor) : at_(at), cursor_(&cursor) {}
    const char& operator*() const { return *at_; }
    CountingIterator& operator++() {
        if (*at_ == '\n') {
            ++cursor_->line;
            cursor_->column = 1;
        } else {
            ++cursor_->column;
        }
        ++at_;
        return *this;
    }
    bool operator==(const CountingIterator& other) const { return at_ == other.at_; }
    bool operator!=(const CountingIterator& other) const { return at_ != other.at_; }

  private:
    const char* at_;
    Cursor* cursor_;
};

constexpr std::size_t depth_max = 100;

// Builds the tree as the parser goes. A value stands where its key does.
class TreeBuilder : public nlohmann::json::json_sax_t {
  public:
    TreeBuilder(Document& document, const Cursor& cursor, Diagnostics& diagnostics,
                RepeatedKeys repeated)
        : document_(document), cursor_(cursor), diagnostics_(diagnostics), repeated_(repeated) {}

    bool null() override { return add(Value::Kind::other, {}, 0, 0); }
    bool boolean(bool v) override { return add(Value::Kind::boolean, {}, v ? 1 : 0, 0); }
    bool number_integer(number_integer_t v) override {
        return add(Value::Kind::integer, {}, v, static_cast<double>(v));
    }
    bool number_unsigned(number_unsigned_t v) override {
        if (v > static_cast<number_unsigned_t>(INT64_MAX)) return number_float(double(v), {});
        return number_integer(static_cast<number_integer_t>(v));
    }
    bool number_float(number_float_t v, const string_t& /*text*/) override {
        return add(Value::Kind::real, {}, 0, v);
    }
    bool string(string_t& v) override { return add(Value::Kind::string, v, 0, 0); }
    bool binary(binary_t& /*v*/) override { return false; }
    bool start_object(std::size_t /*size*/) override { return open(Value::Kind::table); }
    bool start_array(std::size_t /*size*/) override { return open(Value::Kind::array); }
    bool end_object() override { return close(); }
    bool end_array() override { return close(); }
    bool key(string_t& name) override {
        key_ = name;
        key_at_ = {cursor_.line, std::max(1, cursor_.column - static_cast<int>(name.size()) - 2)};
        if (repeated_ == RepeatedKeys::refused && open_.back()->find(name) != nullptr) {
            diagnostics_.error(document_.name, key_at_, name, "is there twice");
            return false;
        }
        return true;
    }
    bool parse_error(std::size_t /*position*/, const std::string& token,
                     const nlohmann::json::exception& /*why*/) override {
        const bool is_template = token.find("{{") != std::string::npos;
        diagnostics_.error(
            document_.name, {cursor_.line, cursor_.column}, "", "not JSON here",
            is_template ? "a template: fill in what {{ }} stands for first" : "is the file whole?");
        return false;
    }

  private:
    Value* place(Value::Kind kind) {
        Value* out = &document_.root;
        if (!open_.empty() && open_.back()->kind == Value::Kind::array) {
            open_.back()->items.emplace_back();
            out = &open_.back()->items.back();
        } else if (!open_.empty()) {
            open_.back()->members.push_back({key_, Value{}});
            out = &open_.back()->members.back().value;
        }
        out->kind = kind;
        out->at = key_at_;
        return out;
    }
    bool add(Value::Kind kind, std::string text, std::int64_t integer, double real) {
        Value* out = place(kind);
        out->text = std::move(text);
        out->integer = integer;
        out->real = real;
        return true;
    }
    bool open(Value::Kind kind) {
        if (open_.size() >= depth_max) {
            diagnostics_.error(document_.name, {cursor_.line, cursor_.column}, "",
                               fmt::format("nested more than {} deep", depth_max));
            return false;
        }
        open_.push_back(place(kind));
        return true;
    }
    bool close() {
        open_.pop_back();
        return true;
    }

    Document& document_;
    const Cursor& cursor_;
    Diagnostics& diagnostics_;
    RepeatedKeys repeated_;
    std::string key_;
    Position key_at_;
    std::vector<Value*> open_;  // each in the one before; only the last grows
};

}  // namespace

Document parse_json(std::string_view text, std::string name, Diagnostics& diagnostics,
                    RepeatedKeys repeated) {
    Document out;
    out.name = std::move(name);
    Cursor cursor;
    TreeBuilder builder(out, cursor, diagnostics, repeated);
    nlohmann::json::sax_parse(CountingIterator(text.data(), cursor),
                              CountingIterator(text.data() + text.size(), cursor), &builder);
    return out;
}

const Value* at_path(const Value* from, std::initializer_list<const char*> path) {
    for (const char* key : path) from = from == nullptr ? nullptr : from->find(key);
    return from;
}

std::string text_in(const Value& table, const char* key) {
    const Value* found = table.find(key);
    return found != nullptr ? found->text : std::string();
}

}  // namespace railyard
