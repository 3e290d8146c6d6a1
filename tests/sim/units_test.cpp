#include "sim/units.h"

#include <doctest/doctest.h>

#include <algorithm>

using namespace railyard;

namespace {

Quantity parsed(const std::string& text) {
    std::string why;
    const auto q = parse_quantity(text, why);
    REQUIRE_MESSAGE(q, text << " " << why);
    return *q;
}

std::string refused(const char* text) {
    std::string why;
    REQUIRE_FALSE(parse_quantity(text, why));
    return why;
}

}  // namespace

TEST_CASE("every spelling of a bandwidth is the same whole number") {
    for (const char* text : {"400 Gbit/s", "400Gbps", "400 Gb/s", "50 GB/s", "0.4 Tbit/s",
                             "4e2 Gbit/s", "400_000 Mbit/s"}) {
        CAPTURE(text);
        CHECK(parsed(text).dimension == Dimension::bandwidth);
        CHECK(parsed(text).integer == 400'000'000'000);
    }
}

TEST_CASE("bits and bytes, decimal and binary are never confused") {
    CHECK(parsed("1 GB").integer == 1'000'000'000);
    CHECK(parsed("1 GiB").integer == 1'073'741'824);
    CHECK(parsed("1 GB/s").integer == 8'000'000'000);
    CHECK(parsed("1 Gbit/s").integer == 1'000'000'000);
    CHECK(parsed("1 GiB/s").integer == 8'589'934'592);
}

TEST_CASE("decimal fractions are exact, not nearly") {
    CHECK(parsed("0.1 s").integer == 100'000'000);
    CHECK(parsed("0.3 us").integer == 300);
    CHECK(parsed("134.164079 s").integer == 134'164'079'000);
    CHECK(parsed("1.1 ns").integer == 1);
    CHECK(parsed("54 day").integer == 54LL * 86400 * 1'000'000'000);
}

TEST_CASE("a quantity keeps the number and the unit that were written") {
    const Quantity day = parsed("1_440 min");
    CHECK(day.number == 1440);
    CHECK(day.unit == "min");
    CHECK(day.in_unit_of(parsed("2 h")) == 24);
    CHECK(parsed("0.3 GB/s").in_unit_of(parsed("7 GB/s")) == 0.3);  // to the bit
}

TEST_CASE("money is counted in thousands and millions, whatever it is paid for") {
    CHECK(parsed("12 kUSD/year").value == 12e3);
    CHECK(parsed("3 MUSD/year").value == 3e6);
    const std::vector<std::string> all = unit_symbols({});
    for (const std::string& unit : all) {
        if (!unit.starts_with("USD")) continue;
        CAPTURE(unit);
        CHECK(std::ranges::count(all, "k" + unit) == 1);
        CHECK(std::ranges::count(all, "M" + unit) == 1);
        CHECK(parsed("2 k" + unit).in_unit_of(parsed("1 " + unit)) == 2000);
    }
}

TEST_CASE("what does not fit has no integer") {
    CHECK_FALSE(parsed("300 year").integer);
    CHECK_FALSE(parsed("1e30 day").integer);
    CHECK(parsed("290 year").integer);
    CHECK(parsed("1e-30 s").integer == 0);
}

TEST_CASE("a bad quantity says why") {
    CHECK(refused("5000") == "has no unit");
    CHECK(refused("fast") == "does not begin with a number");
    CHECK(refused("50 GB/ss").find("did you mean 'GB/s'?") != std::string::npos);
    CHECK(refused("1,5 GB") == "has a comma: a decimal point is a point");
}

TEST_CASE("a transfer never ends early and its product does not overflow") {
    CHECK(transfer_time(Bytes::of(2'800'000'000'000), Bandwidth::bits_per_second(32'000'000'000)) ==
          std::chrono::seconds(700));
    CHECK(transfer_time(Bytes::of(1), Bandwidth::bits_per_second(3)).count() == 2'666'666'667);
    CHECK(transfer_time(Bytes::of(0), Bandwidth::bits_per_second(3)).count() == 0);
    CHECK(transfer_time(Bytes::of(INT64_MAX), Bandwidth::bits_per_second(1)) == Duration::max());
}

TEST_CASE("a bandwidth saturates instead of wrapping") {
    const Bandwidth most = Bandwidth::bits_per_second(INT64_MAX);
    CHECK(most * std::int64_t{1000} == most);
    CHECK(most * 2.0 == most);
    CHECK((Bandwidth::bits_per_second(100) * 0.5).bits_per_second() == 50);
}

TEST_CASE("text of quantities is short") {
    CHECK(to_text(Duration(std::chrono::minutes(117))) == "1.95 h");
    CHECK(to_text(Duration{}) == "0 s");
    CHECK(to_text(Bytes::of(2'800'000'000'000)) == "2.8 TB");
    CHECK(to_text(Bandwidth::bits_per_second(32'000'000'000)) == "4 GB/s");
}
