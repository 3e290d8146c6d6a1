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
