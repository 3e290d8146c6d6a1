// Numbers that made up measurements, found again.

#include "tools/study/calibration.h"

#include <doctest/doctest.h>

#include <cmath>
#include <random>

#include "sim/error.h"
#include "tools/verify/nccl.h"

using namespace railyard;

namespace {

FreeNumber number(const std::string& path, double spread) {
    return {path, spread, 1e300};
}

double factor_of(const Perturbations& variant, const std::string& path) {
    double product = 1;
    for (const Perturbation& each : variant) {
        if (each.path == path) product *= each.factor;
    }
    return product;
}

// Times of messages: a launch and a rate, as alpha and beta.
Figures alpha_beta(const std::vector<double>& sizes) {
    return [=](const std::vector<Perturbations>& variants) {
        std::vector<std::vector<double>> out;
        for (const Perturbations& variant : variants) {
            std::vector<double>& times = out.emplace_back();
            for (const double size : sizes) {
                times.push_back(factor_of(variant, "launch") + size / factor_of(variant, "rate"));
            }
        }
        return out;
    };
}

// One run of nccl-tests on one node of eight H100.
double nccl_time(NcclTests& tests, double bytes, const std::string& collective) {
    const auto text = [&](const char* name) -> std::string {
        const std::string what = name;
        if (what == "device") return "H100";
        if (what == "network") return "8x NDR400 IB";
        if (what == "collective") return collective;
        if (what == "nodes") return "1";
        if (what == "gpus") return "8";
        return what == "bytes" ? std::to_string(bytes) : "default";
    };
    return tests.figures(text, [](const char* name) { return std::string(name); }).at("time");
}

const std::vector<double> sizes = {1024, 4194304, 268435456};

std::vector<double> nccl_times(const Perturbations& variant) {
    NcclTests tests(nullptr, variant);
    std::vector<double> out;
    for (const double bytes : sizes) {
        for (const char* collective : {"all_reduce", "all_gather"}) {
            out.push_back(nccl_time(tests, bytes, collective));
        }
    }
    return out;
}

// The house's spread for numbers of the catalogue, of 0.7 to 1.3.
std::vector<FreeNumber> numbers_of_hopper() {
    std::vector<FreeNumber> out;
    for (const char* key : {"launch", "hop", "copy_bandwidth", "ll_copy_bandwidth"}) {
        out.push_back(number(std::string("collective.hopper.") + key, 0.19));
    }
    return out;
}

}  // namespace

TEST_CASE("calibration: one number and one measurement are weighed as their spreads say") {
    // A prior of 0.2 and an error of 0.1 in logarithms: four fifths of the way.
    const Figures same = [](const std::vector<Perturbations>& variants) {
        std::vector<std::vector<double>> out;
        for (const Perturbations& variant : variants) out.push_back({factor_of(variant, "x")});
        return out;
    };
    const double measured = std::exp(0.1);
    const Calibrated found = calibrate({number("x", 0.2)}, {{measured, 0.1}}, same);
    CHECK(found.numbers[0].log == doctest::Approx(0.08).epsilon(1e-6));
    CHECK(found.numbers[0].spread == doctest::Approx(0.2 / std::sqrt(5)).epsilon(1e-6));
    CHECK(found.measurements[0].before == doctest::Approx(-0.1).epsilon(1e-9));
    CHECK(found.measurements[0].after == doctest::Approx(-0.02).epsilon(1e-5));
    // Without it there is the prior alone.
    CHECK(found.measurements[0].left_out == doctest::Approx(-0.1).epsilon(1e-5));
    CHECK(found.measurements[0].deviation == doctest::Approx(-0.1 / std::hypot(0.1, 0.2)));
    CHECK(found.variance({1}) == doctest::Approx(0.04 / 5).epsilon(1e-6));
    CHECK(found.variance_with(0, {1}) == doctest::Approx(0.04 / 9).epsilon(1e-6));
}

TEST_CASE("calibration: a number that no measurement reads stays as it is, a fraction below 1") {
    const Figures figures = alpha_beta({0});
    const Calibrated found =
        calibrate({number("launch", 0.3), number("rate", 0.3)}, {{1.2, 0.05}}, figures);
    CHECK(found.numbers[0].read);
    CHECK_FALSE(found.numbers[1].read);
    CHECK(found.numbers[1].untold());
    CHECK(found.numbers[1].log == 0);
    const FreeNumber fraction = free_number({"share", "0.9", "guessed", 0.7, 1.1, true});
    const Calibrated bounded = calibrate({{"launch", 0.3, fraction.most}}, {{1.5, 0.01}}, figures);
    CHECK(std::exp(bounded.numbers[0].log) == doctest::Approx(1 / 0.9));
}

TEST_CASE("calibration: a measurement that is far off is named, and hardly heeded") {
    const Figures figures = alpha_beta({0, 1, 2, 4, 8, 16});
    std::vector<Measured> measured;
    const std::vector<std::vector<double>> times = figures(std::vector<Perturbations>(1));
    for (const double time : times[0]) measured.push_back({time, 0.02});
    measured[3].value *= 1.5;
    const Calibrated found =
        calibrate({number("launch", 0.3), number("rate", 0.3)}, measured, figures);
    for (std::size_t i = 0; i < measured.size(); ++i) {
        CHECK(found.measurements[i].outlier() == (i == 3));
    }
    for (const FittedNumber& each : found.numbers) CHECK(std::abs(each.log) < 0.04);
}

TEST_CASE("calibration: what could be measured next is worth what it then tells") {
    const Figures figures = alpha_beta({0, 1e3, 1});
    const std::vector<FreeNumber> numbers = {number("launch", 0.2), number("rate", 0.2)};
    const Calibrated first = calibrate(numbers, {{1, 0.05}, {0, 0.05}, {0, 0.05}}, figures);
    const std::vector<double> answer = {0, -1};  // hangs on the rate alone
    CHECK(first.variance_with(1, answer) < first.variance_with(2, answer));
    CHECK(first.variance_with(2, answer) < first.variance(answer));
    const Calibrated then = calibrate(numbers, {{1, 0.05}, {1001, 0.05}, {0, 0.05}}, figures);
    CHECK(then.variance(answer) == doctest::Approx(first.variance_with(1, answer)).epsilon(0.01));
}

TEST_CASE("calibration: figures that can't be had as the numbers are are refused") {
    const Figures none = [](const std::vector<Perturbations>& variants) {
        return std::vector<std::vector<double>>(variants.size());
    };
    CHECK_THROWS_AS(calibrate({number("x", 0.2)}, {{1, 0.1}}, none), ScenarioError);
}

namespace {

struct Coverage {
    double inside = 0;  // shares of all numbers: their 90 % intervals hold them
    double told = 0;
};

// Draws clusters from the prior, and measurements off by `error`; counts intervals that hold the truth.
Coverage coverage(const std::vector<FreeNumber>& numbers, const Figures& figures, int clusters) {
    constexpr double error = 0.03;
    std::mt19937_64 random(20);
    // Sums of twelve: the same normal numbers by any library.
    const auto normal = [&] {
        double sum = -6;
        for (int i = 0; i < 12; ++i) sum += static_cast<double>(random() >> 11) * 0x1p-53;
        return sum;
    };
    Coverage out;
    const double all = clusters * static_cast<double>(numbers.size());
    for (int cluster = 0; cluster < clusters; ++cluster) {
        std::vector<double> truth;
        for (const FreeNumber& each : numbers) truth.push_back(each.spread * normal());
        const std::vector<std::vector<double>> times = figures({1, scaled(numbers, truth)});
        std::vector<Measured> measured;
        for (const double time : times[0]) {
            measured.push_back({time * std::exp(error * normal()), error});
        }
        const Calibrated found = calibrate(numbers, measured, figures);
        for (std::size_t i = 0; i < numbers.size(); ++i) {
            if (found.numbers[i].factor90().contains(std::exp(truth[i]))) out.inside += 1 / all;
            if (!found.numbers[i].untold()) out.told += 1 / all;
        }
    }
    return out;
}

}  // namespace

TEST_CASE("calibration: of 200 links drawn from the prior nine in ten numbers are inside") {
    const Coverage found = coverage({number("launch", 0.19), number("rate", 0.3)},
                                    alpha_beta({0, 0.5, 1, 2, 4, 20}), 200);
    CHECK(found.inside > 0.85);
    CHECK(found.inside < 0.95);
    CHECK(found.told == doctest::Approx(1));
}

TEST_CASE("calibration: of 200 clusters drawn from the prior nine in ten numbers are inside") {
    const Figures figures = [](const std::vector<Perturbations>& variants) {
        std::vector<std::vector<double>> out;
        for (const Perturbations& variant : variants) out.push_back(nccl_times(variant));
        return out;
    };
    const Coverage found = coverage(numbers_of_hopper(), figures, 200);
    CHECK(found.inside > 0.85);
    CHECK(found.inside < 0.95);
    CHECK(found.told > 0.5);
}
