#include "sim/config.h"

#include <doctest/doctest.h>
#include <fmt/format.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "sim/check.h"

using namespace railyard;

namespace {

struct Fixture {
    Diagnostics diagnostics;
    Document document;
    void parse(std::string_view text) { document = parse_document(text, "file.toml", diagnostics); }
    std::string errors() const {
        std::string out;
        for (const Diagnostic& d : diagnostics.errors())
            out += format_diagnostic(d, "error") + "\n";
        return out;
    }
};

}  // namespace

TEST_CASE_FIXTURE(Fixture, "a value knows where it stood") {
    parse("[a]\nb = 1\n\n[a.c]\n  d = \"x\"\n");
    const Value* d = document.root.find("a")->find("c")->find("d");
    CHECK(d->at.line == 5);
    CHECK(d->at.column == 3);
}

TEST_CASE_FIXTURE(Fixture, "a date means the same in quotes and without") {
    parse("quoted = \"2027-03-01\"\nbare = 2027-03-01\n");
    CHECK(document.root.find("bare")->kind == Value::Kind::string);
    CHECK(document.root.find("bare")->text == document.root.find("quoted")->text);
}

TEST_CASE_FIXTURE(Fixture, "a section reads what is there and keeps the defaults of what is not") {
    parse(
        "[job]\nnodes = 4\ninterval = \"10 min\"\nsize = \"2 TB\"\nrate = \"400 Gbit/s\"\nfast = "
        "true\n");
    ValueReader reader(diagnostics, "file.toml");
    Section top(reader, &document.root, "", {});
    Section job = top.section("job");
    std::int64_t nodes = 1, gpus = 8;
    Duration interval{};
    Bytes size;
    Bandwidth rate;
    bool fast = false;
    std::optional<double> share;
    job.read("nodes", nodes, "");
    job.read("gpus", gpus, "");
    job.read("interval", interval, "");
    job.read("size", size, "");
    job.read("rate", rate, "");
    job.read("fast", fast, "");
    job.read("share", share, "");
    job.finish();
    top.finish();
    CHECK(diagnostics.ok());
    CHECK(nodes == 4);
    CHECK(gpus == 8);
    CHECK(interval == std::chrono::minutes(10));
    CHECK(size == Bytes::of(2'000'000'000'000));
    CHECK(rate.bytes_per_second() == 50e9);
    CHECK(fast);
    CHECK_FALSE(share);
}

TEST_CASE_FIXTURE(Fixture, "all that is wrong is said at once, each with its place") {
    parse("[job]\nnods = 4\ninterval = 10\nsize = \"2 GB/s\"\n");
    ValueReader reader(diagnostics, "file.toml");
    Section top(reader, &document.root, "", {});
    Section job = top.section("job");
    std::int64_t nodes = 1;
    Duration interval{};
    Bytes size;
    job.read("nodes", nodes, "");
    job.read("interval", interval, "");
    job.read("size", size, "");
    job.finish();
    CHECK(diagnostics.errors().size() == 3);
    CHECK(errors().find("file.toml:2:1: error: job.nods: unknown key\n    did you mean 'nodes'?") !=
          std::string::npos);
    CHECK(errors().find(
              "file.toml:3:1: error: job.interval: expected a time such as \"30 min\", found the "
              "number 10 without a unit") != std::string::npos);
    CHECK(errors().find("which is a bandwidth") != std::string::npos);
}

TEST_CASE_FIXTURE(Fixture, "a setting is TOML where it can be and a plain string otherwise") {
    parse("[a]\nb = 1\n");
    apply_setting(document, "a.b=2", diagnostics);
    apply_setting(document, "a.c=1 h", diagnostics);
    apply_setting(document, "x.y.z=\"quoted\"", diagnostics);
    CHECK(document.root.find("a")->find("b")->integer == 2);
    CHECK(document.root.find("a")->find("c")->text == "1 h");
    CHECK(document.root.find("x")->find("y")->find("z")->text == "quoted");
    CHECK(diagnostics.ok());
    apply_setting(document, "a.b.c=1", diagnostics);
    apply_setting(document, "nothing", diagnostics);
    apply_setting(document, "a..b=1", diagnostics);
    CHECK(diagnostics.errors().size() == 3);
}

TEST_CASE_FIXTURE(Fixture, "a setting names a table of a list by its number") {
    parse("[[a]]\nb = 1\n[[a]]\nb = 2\n");
    apply_setting(document, "a.1.b=5", diagnostics);
    CHECK(document.root.find("a")->items[0].find("b")->integer == 1);
    CHECK(document.root.find("a")->items[1].find("b")->integer == 5);
    CHECK(diagnostics.ok());
    for (const char* wrong : {"a.2.b=1", "a.b=1", "a.-1.b=1"}) {
        apply_setting(document, wrong, diagnostics);
    }
    CHECK(errors().find("the list has 2 entries, counted from 0") != std::string::npos);
    CHECK(diagnostics.errors().size() == 3);
}

TEST_CASE_FIXTURE(Fixture, "a value may carry its source, and an estimate is remembered") {
    parse(
        "t = { value = \"10 min\", class = \"estimate\", source = \"us\", low = \"5 min\", high = "
        "\"20 min\" }\n");
    ValueReader reader(diagnostics, "file.toml", {{"t", 2.0}});
    Section top(reader, &document.root, "", {});
    Duration t{};
    top.read("t", t, "");
    top.finish();
    CHECK(diagnostics.ok());
    CHECK(t == std::chrono::minutes(20));  // scaled by the perturbation
    REQUIRE(reader.estimates().size() == 1);
    CHECK(reader.estimates()[0].low_factor == 0.5);
    CHECK(reader.estimates()[0].high_factor == 2.0);
    CHECK(reader.estimates()[0].range_given);
}

TEST_CASE("the nearest name is near") {
    const std::vector<std::string> names = {"interval", "clock", "mode"};
    CHECK(nearest_name("intervall", names) == "interval");
    CHECK(nearest_name("clok", names) == "clock");
    const std::vector<std::string> releases = {"a_24.07", "a_25.02", "b_25.9", "a_25.09"};
    CHECK(nearest_name("a_25.11", releases) == "a_25.09");
    CHECK(nearest_name("a_25.08", releases) == "a_25.02");
    CHECK(nearest_name("a_23.01", releases) == "a_24.07");  // before all: by its letters
    CHECK(nearest_name("bandwidth", names).empty());
}

TEST_CASE_FIXTURE(Fixture, "tables as deep as the file is long are refused") {
    std::string key = "a";
    for (const int depth : {101, 5'000, 5'000'000}) {
        while (key.size() < 2 * static_cast<std::size_t>(depth) - 1) key += ".a";
        parse(key + " = 1\n");
        CHECK(errors().find(fmt::format("nested {} deep, and 100 is the most", depth)) !=
              std::string::npos);
        CHECK(document.root.members.empty());
    }
    apply_setting(document, key + "=1", diagnostics);
    CHECK(errors().find("the key has 4999999 dots") != std::string::npos);
}

TEST_CASE_FIXTURE(Fixture, "what a terminal would obey is refused, and shown in words") {
    parse("[a]\nb = \"\\u001b[31mred\"\n");
    CHECK(errors() ==
          "file.toml:2:5: error: control characters in a name or a text: \"\\x1b[31mred\"\n");
    diagnostics = {};
    parse("\"k\\u009bey\" = 1\n");
    CHECK(errors().find("\"k\\xc2\\x9bey\"") != std::string::npos);
    diagnostics = {};
    parse("note = \"tabs\\t and\\n lines, \\u00e9 and \\U0001F600\"\n");
    CHECK(errors().empty());
    apply_setting(document, "a=\xff", diagnostics);
    CHECK(errors() == "--set a=\\xff: error: control characters, or bytes that are not UTF-8\n");
}

TEST_CASE("a text is visible, and the same where it was") {
    CHECK(visible("plain, caf\u00e9 \U0001F600\n\t") == "plain, caf\u00e9 \U0001F600\n\t");
    CHECK(visible("\x1b]0;title\x07") == "\\x1b]0;title\\x07");
    CHECK(visible("\xc2\x9b") == "\\xc2\\x9b");
    CHECK(visible("\xe2\x82") == "\\xe2\\x82");           // cut off
    CHECK(visible("\xc0\xaf") == "\\xc0\\xaf");           // overlong
    CHECK(visible("\xed\xa0\x80") == "\\xed\\xa0\\x80");  // half of a pair
    CHECK(visible("\u202e \u2066 \u2028") == "\\xe2\\x80\\xae \\xe2\\x81\\xa6 \\xe2\\x80\\xa8");
    CHECK(visible("\u05d0 \u200f \u2024 \u2065") == "\u05d0 \u200f \u2024 \u2065");
    CHECK(visible("\xf4\x90\x80\x80") == "\\xf4\\x90\\x80\\x80");
}

TEST_CASE_FIXTURE(Fixture, "what is read twice is wrong once, among a hundred thousand") {
    for (int i = 0; i < 100'000; ++i) diagnostics.error("f", {i, 1}, "k", "unknown key");
    for (int i = 0; i < 100'000; ++i) diagnostics.error("f", {i, 1}, "k", "unknown key");
    CHECK(diagnostics.errors().size() == 100'000);
}

TEST_CASE("a file is named as seen from the document that names it") {
    Diagnostics diagnostics;
    const Document document = parse_document("near = \"a.csv\"\nfar = \"/b.csv\"\nnone = \"\"\n",
                                             "x/y.toml", diagnostics);
    ValueReader reader(diagnostics, document.name);
    Section top(reader, &document.root, "", {});
    CHECK(top.file("near", "") == "x/a.csv");
    CHECK(top.file("far", "") == "/b.csv");
    CHECK(top.file("absent", "") == "");
    CHECK(diagnostics.ok());
    CHECK(top.file("none", "") == "");
    CHECK(!diagnostics.ok());
}

TEST_CASE("a document is its own tables over those that it includes, and values know their file") {
    const std::filesystem::path folder =
        std::filesystem::temp_directory_path() / fmt::format("railyard_include_{}", getpid());
    std::filesystem::create_directories(folder / "deep");
    std::ofstream(folder / "a.toml") << "include = [\"deep/b.toml\"]\n[t]\nx = 1\ny = 1\n";
    std::ofstream(folder / "deep/b.toml") << "[t]\ny = 2\nz = 2\nfile = \"c.csv\"\n";
    Diagnostics diagnostics;
    const Document document =
        parse_with_includes("include = [\"a.toml\", \"deep/b.toml\"]\n[t]\nx = 0\n",
                            (folder / "main.toml").string(), diagnostics);
    REQUIRE(diagnostics.ok());
    const Value* table = document.root.find("t");
    CHECK(table->find("x")->integer == 0);  // the file's own
    CHECK(table->find("y")->integer == 1);  // a.toml's over what it includes
    CHECK(table->find("z")->integer == 2);
    CHECK_FALSE(table->find("x")->at.file);
    CHECK(*table->find("z")->at.file == (folder / "deep/b.toml").string());
    CHECK(file_beside(*table->find("file"), document.name) == (folder / "deep/c.csv").string());
    CHECK(document.included.size() == 2);  // b.toml once
    std::filesystem::remove_all(folder);
}

TEST_CASE("a tree that is written as TOML is read back as it was") {
    Diagnostics diagnostics;
    const std::string text =
        "a = 0.1\nb = [1, 2]\nc = true\n[d.e]\nf = \"\\\"q\\\" \\\\ tab\\t\"\n[[g]]\nh = 1e-300\n";
    const Document first = parse_document(text, "a", diagnostics);
    const Document second = parse_document(to_toml(first.root), "b", diagnostics);
    REQUIRE(diagnostics.ok());
    CHECK(to_toml(second.root) == to_toml(first.root));
    CHECK(second.root.find("a")->real == 0.1);
    CHECK(second.root.find("d")->find("e")->find("f")->text == "\"q\" \\ tab\t");
    CHECK(second.root.find("g")->items[0].find("h")->real == 1e-300);
}

TEST_CASE("a failed check that is contained is an exception") {
    contain_failed_checks();
    CHECK_THROWS_AS(RY_CHECK(1 == 2), CheckFailed);
}
