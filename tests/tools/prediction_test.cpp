// Intervals of prediction where each part has a closed form.

#include "tools/study/prediction.h"

#include <doctest/doctest.h>

using namespace railyard;

namespace {

Estimate estimate(const std::string& path, double low, double high,
                  const std::string& source = "guessed") {
    return {path, "1", source, low, high, true};
}

// The answer is `from` times all factors that it is drawn with.
Answers product(double from) {
    return [=](const std::vector<Perturbations>& variants) {
        std::vector<std::vector<double>> out;
        for (const Perturbations& variant : variants) {
            double value = from;
            for (const Perturbation& each : variant) value *= each.factor;
            out.push_back({value});
        }
        return out;
    };
}

Predicted only(const Question& question, const std::vector<Estimate>& estimates = {}) {
    const Prediction found = predict({question}, estimates, 400, 1, product(question.value));
    REQUIRE(found.answers.size() == 1);
    return found.answers[0];
}

Question asked(double value) {
    return {"answer", value, {}, {}, "a test", false};
}

}  // namespace

TEST_CASE("what the models alone leave open is their error, to both sides") {
    Question q = asked(10);
    q.error = {0.05, 0.2};
    const Predicted p = only(q);
    CHECK(p.half.low == doctest::Approx(10 / 1.05).epsilon(1e-3));
    CHECK(p.half.high == doctest::Approx(10 * 1.05).epsilon(1e-3));
    CHECK(p.nine_tenths.low == doctest::Approx(10 / 1.2).epsilon(1e-3));
    CHECK(p.nine_tenths.high == doctest::Approx(10 * 1.2).epsilon(1e-3));
    CHECK(p.width[2] == doctest::Approx((1.2 - 1 / 1.2) / 2).epsilon(1e-3));
    CHECK(p.widest == Doubt::model);
    CHECK(p.measure == "a test");
}

TEST_CASE("what one estimate leaves open is its own range") {
    const Predicted p = only(asked(100), {estimate("the.rate", 0.5, 1.5)});
    CHECK(p.nine_tenths.low == doctest::Approx(55).epsilon(0.01));
    CHECK(p.nine_tenths.high == doctest::Approx(145).epsilon(0.01));
    CHECK(p.half.low == doctest::Approx(75).epsilon(0.01));
    CHECK(p.widest == Doubt::estimates);
    CHECK(p.measure == "the.rate");
}

TEST_CASE("of several estimates the one that decides is named, and they are drawn together") {
    const Predicted p =
        only(asked(1), {estimate("small", 0.99, 1.01), estimate("large", 0.6, 1.4)});
    CHECK(p.measure == "large");
    // Two of one width that go with the answer alike add up as independent ones do: less than both at an end.
    const Predicted two = only(asked(1), {estimate("a", 0.8, 1.2), estimate("b", 0.8, 1.2)});
    CHECK(two.nine_tenths.high < 1.18 * 1.18);
    CHECK(two.nine_tenths.high > 1.18);
}

TEST_CASE("estimates that were fitted on published figures are in the models' error already") {
    const Prediction found =
        predict({asked(1)}, {estimate("fit", 0.5, 2, "fitted_step")}, 100, 1, product(1));
    CHECK(found.estimates == 0);
    CHECK(found.answers[0].width[1] == 0);
}

TEST_CASE("luck is what replicas differ by") {
    Question q = asked(50);
    for (int i = 0; i <= 100; ++i) q.luck.push_back(45 + 0.1 * i);
    const Predicted p = only(q);
    CHECK(p.nine_tenths.low == doctest::Approx(45.5).epsilon(2e-3));
    CHECK(p.nine_tenths.high == doctest::Approx(54.5).epsilon(2e-3));
    CHECK(p.widest == Doubt::luck);
}

TEST_CASE("replicas that come to nothing are luck like the rest") {
    Question q = asked(2.0 / 3);
    q.share = true;
    q.luck = {0, 1, 1};
    const Predicted p = only(q);
    CHECK(p.nine_tenths.low == doctest::Approx(0).epsilon(1e-6));
    CHECK(p.nine_tenths.high == doctest::Approx(1));
    CHECK(p.widest == Doubt::luck);
}

TEST_CASE("independent doubts together are wider than each and narrower than their sum") {
    Question q = asked(10);
    q.error = {0.05, 0.2};
    const Predicted model = only(q);
    const Predicted both = only(q, {estimate("the.rate", 0.75, 1.25)});
    const double alone = model.nine_tenths.half_width();
    CHECK(both.nine_tenths.half_width() > alone);
    CHECK(both.nine_tenths.half_width() < alone + 10 * both.width[1]);
}

TEST_CASE("a share is never more than the whole") {
    Question q = asked(0.95);
    q.share = true;
    q.error = {0.05, 0.2};
    CHECK(only(q).nine_tenths.high == 1);
}

TEST_CASE("draws that make no design are counted and left out") {
    const Answers half = [](const std::vector<Perturbations>& variants) {
        std::vector<std::vector<double>> out;
        for (const Perturbations& variant : variants) {
            const double factor = variant.empty() ? 1 : variant[0].factor;
            out.push_back(factor > 1 ? std::vector<double>{} : std::vector<double>{factor});
        }
        return out;
    };
    const Prediction found = predict({asked(1)}, {estimate("x", 0.5, 1.5)}, 100, 1, half);
    CHECK(found.tried == 100);
    CHECK(found.draws == 50);
    CHECK(found.answers[0].nine_tenths.high <= 1);
}
