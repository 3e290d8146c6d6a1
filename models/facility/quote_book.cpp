#include "models/facility/quote_book.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "sim/text.h"

namespace railyard {

namespace {

void read_range(Section& section, QuotedPrice& price) {
    Money typical;
    section.read("price", typical, "What one costs, as lines of 'railyard cost' count it",
                 {.bound = Bound::non_negative, .required = true});
    std::optional<Money> low;
    std::optional<Money> high;
    section.read("low", low, "What it may come down to", {Bound::non_negative, "price"});
    section.read("high", high, "What it may go up to", {Bound::non_negative, "price"});
    price.typical = typical.usd;
    price.low = low ? low->usd : typical.usd;
    price.high = high ? high->usd : typical.usd;
    if (price.low > price.typical || price.typical > price.high) {
        section.error("price",
                      fmt::format("expected low <= price <= high, found {:g}, {:g} and {:g} USD",
                                  price.low, price.typical, price.high));
    }
}

void read_steps(Section& section, Quote& quote) {
    for (Section& each : section.sections("step", "Another price of each, from so many on")) {
        std::optional<std::int64_t> from;
        QuotedPrice price;
        each.read("from", from, "From this many on", {.bound = Bound::count, .required = true});
        read_range(each, price);
        each.finish();
        if (!from) continue;
        price.from = real(*from);
        if (price.from <= quote.steps.back().from) {
            each.error("from",
                       fmt::format("volume steps out of order: {} comes after {:g}", *from,
                                   quote.steps.back().from),
                       "from must grow from step to step, the first above 1");
        }
        quote.steps.push_back(price);
    }
}

void read_years(Section& section, Quote& quote) {
    bool supported = false;
    for (Section& each : section.sections("year",
                                          "What each costs to keep in the first year, the second, "
                                          "...; later as in the last that is given")) {
        std::optional<Money> support;
        std::optional<Money> licence;
        each.read("support", support,
                  "Support, in place of the share of the hardware that others pay",
                  {Bound::non_negative, "0 USD"});
        each.read("licence", licence, "Licences", {Bound::non_negative, "0 USD"});
        each.finish();
        supported |= support.has_value();
        quote.support.push_back(support ? support->usd : 0);
        quote.licence.push_back(licence ? licence->usd : 0);
    }
    if (!supported) quote.support.clear();
}

Quote read_quote(Section& section) {
    Quote quote;
    quote.at = section.at();
    section.read("name", quote.name, "What it is called: the vendor and its number, say",
                 {.required = true});
    section.read("of", quote.of,
                 "The price that it replaces, by the name that 'railyard cost' prints",
                 {.required = true});
    quote.steps.emplace_back();
    read_range(section, quote.steps[0]);
    section.read("moves_with", quote.luck,
                 "Quotes with the same word here are cheap together and dear together",
                 {.otherwise = "drawn apart from all others"});
    quote.valid_from = read_day(section, "valid_from", "The first day on which it can be taken");
    quote.valid_until = read_day(section, "valid_until", "The last one");
    quote.delivery = read_day(section, "delivery", "When what is bought is there");
    section.read("available", quote.available, "How many can be had, and no more",
                 {Bound::count, "as many as are wanted"});
    read_steps(section, quote);
    read_years(section, quote);
    section.finish();
    if (!section.describing() && section.ok() && quote.valid_from && quote.valid_until &&
        *quote.valid_until < *quote.valid_from) {
        section.error("valid_until",
                      fmt::format("ends on {}, before it begins on {}",
                                  day_text(*quote.valid_until), day_text(*quote.valid_from)));
    }
    return quote;
}

void take_price(Price& out, const Quote& quote, double quantity) {
    const QuotedPrice& price = quote.price_of(quantity);
    out.low = price.low;
    out.typical = price.typical;
    out.high = price.high;
    out.origin = "quote " + visible(quote.name);
    out.luck = quote.luck.empty() ? "quote/" + quote.name : "quotes/" + quote.luck;
}

bool is_rent_elsewhere(const CostPlan& plan, const Quote& quote) {
    return plan.rental && plan.prices[*plan.rental].name == quote.of;
}

}  // namespace

bool another_may_pay(const Catalogue& catalogue, const std::string& price) {
    if (price == "gpu_hour_rental" || price == "gpu_hour_reserved") return true;
    if (catalogue.find_entry("price", price) != nullptr) return true;
    return std::ranges::any_of(catalogue.all_names("storage"), [&](const std::string& store) {
        return price == store + "_per_server" || price == store + "_per_tb_year";
    });
}

std::optional<Day> read_day(Section& section, const char* key, const char* doc) {
    std::optional<std::string> text;
    section.read(key, text, doc);
    return day_of(section, key, text.value_or(""));
}

std::optional<Day> day_of(Section& section, const char* key, const std::string& text) {
    if (text.empty() && !section.has(key)) return std::nullopt;
    const std::optional<Day> day = day_value(text);
    if (!day || text.size() != std::string_view("2027-03-01").size()) {
        section.error(key,
                      fmt::format("expected a day such as \"2027-03-01\", found \"{}\"", text));
        return std::nullopt;
    }
    return day;
}

std::string day_text(Day day) {
    const std::chrono::year_month_day date(day);
    return fmt::format("{:04}-{:02}-{:02}", static_cast<int>(date.year()),
                       static_cast<unsigned>(date.month()), static_cast<unsigned>(date.day()));
}

const QuotedPrice& Quote::price_of(double quantity) const {
    const auto dearer = std::find_if(steps.begin() + 1, steps.end(),
                                     [&](const QuotedPrice& step) { return step.from > quantity; });
    return *(dearer - 1);
}

QuoteBook::QuoteBook(Section& top, Section& cost) : cost_(cost) {
    for (Section& section : top.sections("quote", "What a vendor asks for, in writing")) {
        all_.push_back(read_quote(section));
        sections_.push_back(section);
    }
    const char* purchase = "When is bought: quotes must be valid on this day";
    purchase_ = read_day(cost, "purchase_date", purchase);
    needed_by_ = read_day(cost, "needed_by", "When all that quotes deliver must be there");
    std::optional<std::vector<std::string>> asked;
    cost.read("quotes", asked, "Names of the quotes that are asked for",
              {.otherwise = "all of [[quote]]"});
    if (cost.describing() || !cost.ok()) return;
    for (std::size_t i = 0; i < all_.size(); ++i) {
        const auto same = [&](const Quote& other) { return other.name == all_[i].name; };
        if (std::count_if(all_.begin(), all_.begin() + i, same) > 0) {
            sections_[i].error("name", fmt::format("there are two quotes '{}'", all_[i].name));
        }
        asked_.push_back(all_[i].name);
    }
    if (asked) {
        for (const std::string& name : *asked) {
            if (std::ranges::find(asked_, name) != asked_.end()) continue;
            cost.error("quotes", fmt::format("no quote is called '{}'", name),
                       suggest(name, asked_));
        }
        asked_ = *asked;
    }
    if (cost.ok()) choose();
}

bool QuoteBook::buyable(const Quote& quote) const {
    return !purchase_ || ((!quote.valid_from || *quote.valid_from <= *purchase_) &&
                          (!quote.valid_until || *purchase_ <= *quote.valid_until));
}

void QuoteBook::refuse(const Quote& quote) {
    Section& section = section_of(quote);
    const bool over = quote.valid_until && *quote.valid_until < *purchase_;
    section.error(over ? "valid_until" : "valid_from",
                  fmt::format("the quote is {} on the day of purchase, {}",
                              over ? "no longer valid" : "not yet valid", day_text(*purchase_)),
                  over ? fmt::format("buy until {}: {}", day_text(*quote.valid_until),
                                     cost_.path("purchase_date"))
                       : fmt::format("buy from {} on: {}", day_text(*quote.valid_from),
                                     cost_.path("purchase_date")));
}

// One quote of each price: the one that is valid on the day.
void QuoteBook::choose() {
    const auto is_asked = [&](const Quote& quote) {
        return std::ranges::find(asked_, quote.name) != asked_.end();
    };
    for (const Quote& quote : all_) {
        if (!is_asked(quote)) continue;
        const bool dated = quote.valid_from || quote.valid_until;
        const auto i = static_cast<std::size_t>(&quote - all_.data());
        if (dated && !purchase_) {
            cost_.error("purchase_date",
                        fmt::format("is missing: the quote '{}' is not always valid", quote.name));
            continue;
        }
        if (!buyable(quote)) {
            const bool another = std::ranges::any_of(all_, [&](const Quote& other) {
                return is_asked(other) && other.of == quote.of && buyable(other);
            });
            if (!another) refuse(quote);
            continue;
        }
        if (const Quote* other = find(quote.of)) {
            sections_[i].error(
                "of",
                fmt::format("{} has two quotes on the day of purchase, '{}' and '{}'", quote.of,
                            other->name, quote.name),
                fmt::format("name the one that is taken in {}", cost_.path("quotes")));
            continue;
        }
        if (needed_by_ && quote.delivery && *quote.delivery > *needed_by_) {
            sections_[i].error("delivery",
                               fmt::format("is {}, and all must be there by {}",
                                           day_text(*quote.delivery), day_text(*needed_by_)),
                               "another quote, or a later " + cost_.path("needed_by"));
        }
        chosen_.push_back(i);
    }
    const bool delivers =
        std::ranges::any_of(all_, [](const Quote& q) { return q.delivery.has_value(); });
    if (needed_by_ && !delivers) {
        cost_.warning("needed_by", "has no effect: no quote says when it delivers");
    }
    const bool dated =
        std::ranges::any_of(all_, [](const Quote& q) { return q.valid_from || q.valid_until; });
    if (purchase_ && !dated) {
        cost_.warning("purchase_date", "has no effect: no quote says when it is valid");
    }
}

const Quote* QuoteBook::find(const std::string& price) const {
    for (const std::size_t i : chosen_) {
        if (all_[i].of == price) return &all_[i];
    }
    return nullptr;
}

// The same every year, what is paid at the end of each; with a discount, an early year counts for more.
void QuoteBook::keep(CostPlan& plan, const Quote& quote, const std::vector<double>& by_year,
                     const char* what, double quantity, bool of_tenants) const {
    if (by_year.empty()) return;
    double paid = 0;
    double weights = 0;
    const auto years = static_cast<std::size_t>(std::ceil(plan.years));
    for (std::size_t k = 0; k < years; ++k) {
        const double begun = real(k);
        const double part = std::min(1.0, plan.years - begun);
        const double weight = part * worth_of_year(plan, begun + part);
        paid += weight * by_year[std::min(k, by_year.size() - 1)];
        weights += weight;
    }
    const double usd = paid / weights;
    constexpr double least = 1e-6;  // what rounding leaves of a year that is not there
    if (usd < least) return;
    plan.prices.push_back({fmt::format("{} of {}", what, visible(quote.name)), "USD", usd, usd, usd,
                           "quote " + visible(quote.name)});
    plan.yearly.push_back({fmt::format("{} of {}", what, visible(quote.of)), quantity, "piece",
                           plan.prices.size() - 1, false});
    plan.yearly.back().of_tenants = of_tenants;
}

void QuoteBook::replace(Price& price, const Quote& quote, double quantity,
                        const std::vector<std::string>& set_by_hand) {
    if (std::ranges::find(set_by_hand, quote.of) == set_by_hand.end()) {
        return take_price(price, quote, quantity);
    }
    section_of(quote).warning(
        "price", fmt::format("has no effect: {} is given", cost_.path("price." + quote.of)));
}

// What the same GPUs would cost elsewhere, for the hours that they are used: nothing of it is bought here.
void QuoteBook::take_rent(CostPlan& plan, const Quote& quote,
                          const std::vector<std::string>& set_by_hand) {
    const double hours = static_cast<double>(plan.gpus) * hours_per_year * plan.utilisation;
    replace(plan.prices[*plan.rental], quote, hours, set_by_hand);
    Section& section = section_of(quote);
    const char* problem = "has no effect: nothing is rented here, it is only compared with";
    if (!quote.support.empty() || !quote.licence.empty()) section.warning("year", problem);
    if (quote.available) section.warning("available", problem);
}

void QuoteBook::apply(CostPlan& plan, const std::vector<std::string>& set_by_hand,
                      const Catalogue& catalogue) {
    for (const std::size_t i : chosen_) {
        const Quote& quote = all_[i];
        double quantity = 0;
        bool of_tenants = false;
        std::size_t index = 0;
        std::vector<std::string> bought;
        for (auto* lines : {&plan.capital, &plan.yearly}) {
            for (CostLine& line : *lines) {
                if (line.of_hardware) continue;
                bought.push_back(plan.prices[line.price].name);
                if (bought.back() != quote.of) continue;
                quantity += line.quantity;
                index = line.price;
                line.own_support = !quote.support.empty();
                of_tenants |= line.of_tenants;
            }
        }
        if (quantity <= 0 && is_rent_elsewhere(plan, quote)) {
            take_rent(plan, quote, set_by_hand);
            continue;
        }
        if (quantity <= 0) {
            const std::string problem =
                fmt::format("nothing here is bought at the price {}", quote.of);
            if (another_may_pay(catalogue, quote.of)) {
                sections_[i].warning("of", "has no effect: " + problem);
            } else {
                sections_[i].error("of", problem, suggest(quote.of, bought));
            }
            continue;
        }
        if (quote.available && quantity > real(*quote.available)) {
            sections_[i].error("available",
                               fmt::format("{} can be had at the price {}, and {:g} are needed",
                                           *quote.available, quote.of, quantity),
                               "fewer of them, or another quote");
        }
        replace(plan.prices[index], quote, quantity, set_by_hand);
        keep(plan, quote, quote.support, "support", quantity, of_tenants);
        keep(plan, quote, quote.licence, "licences", quantity, of_tenants);
    }
}

}  // namespace railyard
