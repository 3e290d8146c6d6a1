#include "models/catalogue/catalogue.h"

#include <doctest/doctest.h>

using namespace railyard;

namespace {

// Calls visit(path, value) for every value with a source.
template <class Visit>
int for_each_value(const Visit& visit) {
    int count = 0;
    for (const std::string& kind : Catalogue::kinds()) {
        for (const std::string& name : Catalogue::names(kind)) {
            for (const auto& [key, value] : Catalogue::entry(kind, name)->members) {
                if (value.find("value") == nullptr) continue;
                visit(kind, kind + "." + name + "." + key, value);
                ++count;
            }
        }
    }
    return count;
}

}  // namespace

TEST_CASE("every catalogue value has a known class and a source that is cited in full") {
    const int count =
        for_each_value([](const std::string& kind, const std::string& path, const Value& v) {
            CAPTURE(path);
            const Value* type = v.find("class");
            const Value* source = v.find("source");
            REQUIRE(type);
            REQUIRE(source);
            const bool known = type->text == "datasheet" || type->text == "paper" ||
                               type->text == "seed" || type->text == "estimate";
            CHECK(known);
            CHECK(Catalogue::citation(kind, source->text) != source->text);
            if (v.find("seed")) CHECK(v.find("seed_source"));
        });
    CHECK(count >= 1520);
}

TEST_CASE("a catalogue flag is read with its source beside it, or plain") {
    Diagnostics diagnostics;
    ValueReader reader(diagnostics, "catalogue");
    Catalogue catalogue(reader, ValueChoice::corrected, nullptr);
    CHECK(catalogue.flag("loader", "pytorch", "batch_per_worker"));  // value = true, source = ...
    CHECK_FALSE(catalogue.flag("loader", "tensorflow", "batch_per_worker"));
    CHECK(catalogue.flag("gpu", "h100_sxm", "nvls"));
}

TEST_CASE("every catalogue quantity parses, in its value and in its alternatives") {
    for_each_value([](const std::string&, const std::string& path, const Value& v) {
        for (const char* member : {"value", "low", "high", "seed"}) {
            const Value* found = v.find(member);
            if (found == nullptr) continue;
            CAPTURE(path);
            std::vector<const Value*> parts{found};
            if (found->kind == Value::Kind::array) {
                parts.clear();
                for (const Value& item : found->items) parts.push_back(&item);
            }
            for (const Value* part : parts) {
                if (part->kind != Value::Kind::string) continue;
                std::string why;
                const auto quantity = parse_quantity(part->text, why);
                CHECK_MESSAGE(quantity, part->text << " " << why);
            }
        }
    });
}

TEST_CASE("ranges hold their value") {
    for_each_value([](const std::string&, const std::string& path, const Value& v) {
        const Value* low = v.find("low");
        const Value* high = v.find("high");
        if (!low || !high || low->kind != Value::Kind::string) return;
        CAPTURE(path);
        std::string why;
        const double value = parse_quantity(v.find("value")->text, why)->value;
        CHECK(parse_quantity(low->text, why)->value <= value);
        CHECK(parse_quantity(high->text, why)->value >= value);
    });
}

TEST_CASE("the seed's number and the corrected one can both be chosen") {
    StandaloneCatalogue corrected_values;
    StandaloneCatalogue seed_values(ValueChoice::seed);
    Catalogue& corrected = corrected_values.catalogue;
    Catalogue& seed = seed_values.catalogue;
    CHECK(corrected.bandwidth("gpu", "h100_sxm", "nvlink_bandwidth").bytes_per_second() == 450e9);
    CHECK(seed.bandwidth("gpu", "h100_sxm", "nvlink_bandwidth").bytes_per_second() == 900e9);
    CHECK(seed.number("checkpoint", "", "persisted_bytes_per_param") == 16);
    CHECK(corrected.number("checkpoint", "", "persisted_bytes_per_param") == 14);
}

TEST_CASE("bits in one file and bytes in another come out right") {
    StandaloneCatalogue own;
    Catalogue& c = own.catalogue;
    CHECK(c.bandwidth("nic", "cx7_ndr400", "bandwidth").bytes_per_second() == 50e9);
    CHECK(c.bandwidth("gpu", "h100_sxm", "hbm_bandwidth").bytes_per_second() == 3.35e12);
    CHECK(c.bandwidth("storage", "weka", "server_read_bandwidth").bytes_per_second() == 45e9);
}

namespace {

// What is wrong with overriding one value of the catalogue; empty: nothing.
std::string complaint(const std::string& kind, const std::string& name, const std::string& key,
                      const std::string& value) {
    Diagnostics problems;
    const std::string heading = name.empty() ? kind : kind + "." + name;
    const Document overrides =
        parse_document("[" + heading + "]\n" + key + " = " + value, "overrides", problems);
    problems.raise_if_any();
    StandaloneCatalogue own(ValueChoice::corrected, &overrides.root);
    std::string out;
    for (const Diagnostic& each : own.diagnostics.errors()) out += each.path + ": " + each.message;
    return out;
}

// As TOML has it; empty for a list.
std::string written(const Value& value) {
    switch (value.kind) {
        case Value::Kind::string:
            return '"' + value.text + '"';
        case Value::Kind::integer:
            return std::to_string(value.integer);
        case Value::Kind::real:
            return std::to_string(value.real);
        case Value::Kind::boolean:
            return value.integer ? "true" : "false";
        default:
            return "";
    }
}

}  // namespace

TEST_CASE("a scenario may say again what the catalogue says") {
    int said = 0;
    for (const std::string& kind : Catalogue::kinds()) {
        for (const std::string& name : Catalogue::names(kind)) {
            for (const auto& [key, value] : Catalogue::entry(kind, name)->members) {
                const Value* inner = value.find("value");
                if (inner == nullptr || written(*inner).empty()) continue;
                std::string why;
                if (inner->kind == Value::Kind::string && !parse_quantity(inner->text, why))
                    continue;
                CAPTURE(kind + "." + name + "." + key);
                // The GPU hours of a whole fleet are more than a clock of nanoseconds holds.
                if (key == "gpu_hours") continue;
                CHECK(complaint(kind, name, key, written(*inner)) == "");
                ++said;
            }
        }
    }
    CHECK(said > 1000);
}

TEST_CASE("no efficiency, share or probability of the catalogue can be overridden to more than 1") {
    int shares = 0;
    for_each_value([&](const std::string& kind, const std::string& path, const Value& v) {
        const Value* value = v.find("value");
        const std::string key = path.substr(path.rfind('.') + 1);
        const auto ends_with_word = [&](const std::string& word) {
            return key == word || key.ends_with("_" + word);
        };
        const bool share = ends_with_word("efficiency") || ends_with_word("fraction") ||
                           ends_with_word("share") || ends_with_word("probability");
        const bool overhead = key.find("overhead") != std::string::npos;
        if (!share || overhead || value->kind == Value::Kind::array) return;
        CAPTURE(path);
        const std::string name =
            path.substr(kind.size() + 1, path.size() - key.size() - kind.size() - 2);
        CHECK(value->real <= 1);
        CHECK(complaint(kind, name, key, "1.01").find("from 0 to 1") != std::string::npos);
        ++shares;
    });
    CHECK(shares > 50);
}

TEST_CASE("what is achieved can't be overridden to more than the peak, nor what it does not follow to less") {
    struct Pair {
        const char* kind;
        const char* achieved;
        const char* peak;
        const char* much;    // more than any peak
        const char* little;  // less than anything achieved
        bool follows;        // a measurement that is not given, too, is scaled with it
    };
    const Pair pairs[] = {
        {"gpu", "bf16_achievable", "bf16_dense", "\"9000 TFLOP/s\"", "\"9 TFLOP/s\"", true},
        {"gpu", "fp8_achievable", "fp8_dense", "\"9000 TFLOP/s\"", "\"9 TFLOP/s\"", true},
        {"gpu", "p2p_bandwidth_measured", "nvlink_bandwidth", "\"9 TB/s\"", "\"1 GB/s\"", true},
        {"gpu", "h2d_bandwidth_measured", "pcie_bandwidth", "\"9 TB/s\"", "\"1 GB/s\"", true},
        {"gpu", "idle_power", "max_power", "\"90 kW\"", "\"1 W\"", false},
        {"gpu", "throttle_temperature", "shutdown_temperature", "\"200 degC\"", "\"1 degC\"",
         false},
        {"node", "idle_power", "max_power", "\"900 kW\"", "\"1 W\"", false},
        {"model", "active_params", "params", "9000000000000", "1000", false},
    };
    for (const Pair& pair : pairs) {
        int tried = 0;
        for (const std::string& name : Catalogue::names(pair.kind)) {
            const Value* entry = Catalogue::entry(pair.kind, name);
            if (!entry->find(pair.achieved) || !entry->find(pair.peak)) continue;
            CAPTURE(name);
            CAPTURE(pair.achieved);
            const std::string high = complaint(pair.kind, name, pair.achieved, pair.much);
            CHECK(high.find("is more than " + std::string(pair.peak)) != std::string::npos);
            const std::string low = complaint(pair.kind, name, pair.peak, pair.little);
            const bool told =
                low.find("is more than " + std::string(pair.peak)) != std::string::npos;
            CHECK(told != pair.follows);
            ++tried;
        }
        CHECK_MESSAGE(tried > 0, pair.achieved);
    }
}

TEST_CASE("what was measured of a GPU follows a datasheet's figure that is given anew") {
    const auto rates = [](const std::string& text) {
        Diagnostics diagnostics;
        const Document document = parse_document(text, "test", diagnostics);
        ValueReader reader(diagnostics, "test");
        const auto own = std::make_shared<const OwnEntries>(reader, document.root);
        Catalogue catalogue(reader, ValueChoice::corrected, document.root.find("override"), nullptr,
                            own);
        const std::string name = own->empty() ? "h100_sxm" : "mine";
        std::vector<double> out = {
            catalogue.compute("gpu", name, "bf16_achievable").per_second,
            catalogue.compute("gpu", name, "fp8_achievable").per_second,
            catalogue.bandwidth("gpu", name, "nccl_nvlink_bandwidth_per_link").bytes_per_second()};
        diagnostics.raise_if_any();
        return out;
    };
    const std::vector<double> as_is = rates("");
    for (const std::string where :
         {"[override.gpu.h100_sxm]\n", "[gpu.mine]\nlike = \"h100_sxm\"\n"}) {
        INFO(where);
        const std::vector<double> twice =
            rates(where + "bf16_dense = \"1978.8 TFLOP/s\"\nnvlink_bandwidth = \"900 GB/s\"\n");
        CHECK(twice[0] == doctest::Approx(2 * as_is[0]));
        CHECK(twice[1] == doctest::Approx(as_is[1]));  // the peak of 8 bits is as it was
        CHECK(twice[2] == doctest::Approx(2 * as_is[2]));
        const std::vector<double> more_links =
            rates(where + "nvlink_bandwidth = \"900 GB/s\"\nnvlink_links = 36\n");
        CHECK(more_links[2] == doctest::Approx(as_is[2]));
        const std::vector<double> both =
            rates(where + "bf16_dense = \"1978.8 TFLOP/s\"\nbf16_achievable = \"900 TFLOP/s\"\n");
        CHECK(both[0] == doctest::Approx(900e12));
    }
}
