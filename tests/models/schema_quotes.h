#pragma once
// The keys of quotes, rent and tariffs: as schema_many_jobs.h.

#include "tests/models/schema_many_jobs.h"
#include "tests/scenario_text.h"

namespace railyard {

// Four nodes by a quote without steps.
inline const std::string plainly_quoted_scenario = cluster_text(4, "5 day", 2) + R"(
[job]
step.time = "2 s"
checkpoint.mode = "none"
[cost]
draws = 200
[[quote]]
name = "first"
of = "h100_8gpu_node"
price = "300 kUSD"
low = "290 kUSD"
high = "320 kUSD"
)";

// Eight nodes by a quote with steps and years.
inline const std::string quoted_scenario = cluster_text(8, "5 day", 2) + R"(
[fabric.compute]
topology = "fat_tree"
[job]
step.time = "2 s"
checkpoint.mode = "none"
[cost]
purchase_date = "2027-03-01"
needed_by = "2027-06-01"
draws = 200
years = "3 years"
quotes = ["first"]
discount = 0.08
utilisation = 0.8
[[cost.tariff]]
from = 22
until = 6
factor = 0.5
[[quote]]
name = "first"
of = "h100_8gpu_node"
price = "300 kUSD"
low = "290 kUSD"
high = "320 kUSD"
moves_with = "dollar"
valid_from = "2027-01-01"
valid_until = "2027-06-30"
delivery = "2027-05-01"
available = 8
[[quote.step]]
from = 8
price = "280 kUSD"
low = "275 kUSD"
high = "284 kUSD"
[[quote.year]]
support = "10 kUSD"
licence = "2 kUSD"
[[quote.year]]
support = "20 kUSD"
[[quote]]
name = "second"
of = "h100_8gpu_node"
price = "330 kUSD"
)";

inline const std::string reserved_scenario = cluster_text(8, "5 day", 2) + R"(
[fabric.compute]
topology = "fat_tree"
[job]
step.time = "2 s"
checkpoint.mode = "none"
[cost]
draws = 200
years = "3 years"
tenure = "reserved"
term = "1 year"
price.gpu_hour_reserved = "2.1 USD/h"
)";

inline const std::map<std::string, WorldKnob> quote_knobs = {
    {"cost.purchase_date",
     {"purchase_date = \"2027-03-01\"", "purchase_date = \"2026-03-01\"", quoted_scenario}},
    {"cost.needed_by",
     {"needed_by = \"2027-06-01\"", "needed_by = \"2027-04-01\"", quoted_scenario}},
    {"cost.quotes", {"quotes = [\"first\"]", "quotes = [\"second\"]", quoted_scenario}},
    {"cost.discount", {"discount = 0.08", "discount = 0.1", quoted_scenario}},
    {"cost.tenure",
     {"tenure = \"reserved\"\nterm = \"1 year\"", "tenure = \"buy\"", reserved_scenario}},
    {"cost.term", {"term = \"1 year\"", "term = \"2 years\"", reserved_scenario}},
    {"cost.resale",
     {"purchase_date = \"2027-03-01\"",
      "purchase_date = \"2027-03-01\"\nresale.h100_8gpu_node = 0.3", quoted_scenario}},
    {"cost.early_end",
     {"term = \"1 year\"", "term = \"2 years\"\nearly_end = 0.5", reserved_scenario}},
    {"cost.tariff",
     {"[[cost.tariff]]", "[[cost.tariff]]\nfrom = 8\nuntil = 9\nfactor = 3\n[[cost.tariff]]",
      quoted_scenario}},
    {"cost.tariff.from", {"from = 22", "from = 20", quoted_scenario}},
    {"cost.tariff.until", {"until = 6", "until = 7", quoted_scenario}},
    {"cost.tariff.factor", {"factor = 0.5", "factor = 0.6", quoted_scenario}},
    {"quote",
     {"[[quote]]\nname = \"second\"",
      "[[quote]]\nname = \"first\"\nof = \"sw_ndr64\"\nprice = \"1 kUSD\"\n[[quote]]\nname = "
      "\"second\"",
      quoted_scenario}},
    {"quote.name", {"name = \"first\"", "name = \"other\"", quoted_scenario}},
    {"quote.of", {"of = \"h100_8gpu_node\"", "of = \"h200_8gpu_node\"", quoted_scenario}},
    {"quote.price", {"price = \"300 kUSD\"", "price = \"301 kUSD\"", plainly_quoted_scenario}},
    {"quote.low", {"low = \"290 kUSD\"", "low = \"280 kUSD\"", plainly_quoted_scenario}},
    {"quote.high", {"high = \"320 kUSD\"", "high = \"330 kUSD\"", plainly_quoted_scenario}},
    {"quote.moves_with", {"moves_with = \"dollar\"", "moves_with = \"euro\"", quoted_scenario}},
    {"quote.valid_from", {"2027-01-01", "2027-04-01", quoted_scenario}},
    {"quote.valid_until", {"2027-06-30", "2027-02-01", quoted_scenario}},
    {"quote.delivery", {"2027-05-01", "2027-07-01", quoted_scenario}},
    {"quote.available", {"available = 8", "available = 7", quoted_scenario}},
    {"quote.step",
     {"[[quote.step]]\nfrom = 8\nprice = \"280 kUSD\"\nlow = \"275 kUSD\"\nhigh = \"284 kUSD\"", "",
      quoted_scenario}},
    {"quote.step.from", {"from = 8\nprice", "from = 9\nprice", quoted_scenario}},
    {"quote.step.price", {"price = \"280 kUSD\"", "price = \"279 kUSD\"", quoted_scenario}},
    {"quote.step.low", {"low = \"275 kUSD\"", "low = \"270 kUSD\"", quoted_scenario}},
    {"quote.step.high", {"high = \"284 kUSD\"", "high = \"290 kUSD\"", quoted_scenario}},
    {"quote.year", {"[[quote.year]]\nsupport = \"20 kUSD\"", "", quoted_scenario}},
    {"quote.year.support", {"support = \"20 kUSD\"", "support = \"30 kUSD\"", quoted_scenario}},
    {"quote.year.licence", {"licence = \"2 kUSD\"", "licence = \"3 kUSD\"", quoted_scenario}},
};

}  // namespace railyard
