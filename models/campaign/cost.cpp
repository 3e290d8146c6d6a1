#include "models/campaign/cost.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "models/campaign/campaign.h"
#include "models/campaign/power_reader.h"
#include "models/fabric/fabric.h"

namespace railyard {

namespace {

// What the meter shows of a cluster that nobody uses for a year: idle nodes, and what draws always.
double idle_kwh_per_year(const Scenario& s, const BillOfMaterials& bill, Catalogue& catalogue) {
    double watts = s.power.network.value + s.power.storage.value;
    for (const auto& [node, count] : bill.nodes) {
        const NodePower plug = read_node_power(catalogue, node_power_spec(*node), 0);
        watts += real(count) * plug.at(Activity::idle).value;
    }
    return s.power.cooling.pue * watts * hours_per_year * 1e-3;
}

// What the kind of a cable is paid by, and its transceivers; the slowest row that is fast enough.
struct CablePrices {
    double gbit_per_s;
    const char* dac;
    const char* aoc;
    const char* transceiver;
    const char* long_transceiver;      // to 10 km
    const char* coherent_transceiver;  // beyond
};
constexpr CablePrices cable_prices[] = {
    {10, "copper_1g", "copper_1g", "optic_1g", "optic_1g", "optic_1g"},
    {200, "dac_200g", "aoc_hdr", "optic_200g", "optic_lr", "optic_zr"},
    {400, "dac_400g", "aoc_400g", "optic_400g", "optic_lr", "optic_zr"},
    {INFINITY, "dac_800g", "aoc_800g", "optic_800g_dr8", "optic_800g_lr", "optic_800g_zr"},
};

const CablePrices& prices_of(const CableOrder& cable) {
    const double rate = real(cable.bandwidth.bits_per_second()) * 1e-9;
    return *std::find_if(std::begin(cable_prices), std::end(cable_prices),
                         [&](const CablePrices& row) { return rate <= row.gbit_per_s; });
}

// Builds the lines of a plan from what the scenario's cluster is made of.
class CostLines {
  public:
    CostLines(Section& cost, const Scenario& s, Catalogue& catalogue, PriceBook& book,
              CostPlan& plan)
        : cost_(cost), s_(s), catalogue_(catalogue), book_(book), plan_(plan) {}

    void buy(const BillOfMaterials& bill, std::int64_t nodes_per_rack);
    void keep(const BillOfMaterials& bill, bool colocated);
    void rent(const BillOfMaterials& bill, const Tenancy& tenancy);
    void use(bool rented, double tariff);
    // The price of an hour of one GPU elsewhere.
    std::optional<std::size_t> rental(bool one_kind);

  private:
    void keep_people();
    void buy_nodes(const NodeOrder& order, std::int64_t nodes_per_rack);
    void buy_network(const NetworkBill& bill);
    void buy_plumbing(const BillOfMaterials& bill);
    void buy_long_cables(const CableOrder& cable, const std::string& what,
                         const CablePrices& prices);
    void buy_stores();
    void buy_store(const StoreSetup& store, const std::string& section);
    void add(std::vector<CostLine>& lines, std::string what, double quantity, const char* per,
             std::size_t price, bool of_hardware = false) {
        if (quantity > 0) lines.push_back({std::move(what), quantity, per, price, of_hardware});
    }
    // The lines that `build` adds are paid by who rents GPUs as well.
    template <class Build>
    void of_tenants(const Build& build) {
        std::vector<CostLine>* const all[] = {&plan_.capital, &plan_.yearly, &plan_.used};
        std::size_t before[3];
        for (std::size_t i = 0; i < 3; ++i) before[i] = all[i]->size();
        build();
        for (std::size_t i = 0; i < 3; ++i) {
            for (std::size_t k = before[i]; k < all[i]->size(); ++k) (*all[i])[k].of_tenants = true;
        }
    }
    // The catalogue's price of a thing, or the scenario's under the thing's own name.
    std::optional<std::size_t> price_of(const char* kind, const std::string& name);

    Section& cost_;
    const Scenario& s_;
    Catalogue& catalogue_;
    PriceBook& book_;
    CostPlan& plan_;
};

std::optional<std::size_t> CostLines::price_of(const char* kind, const std::string& name) {
    if (catalogue_.has(kind, name, "price_ref")) {
        return book_.price(catalogue_.text(kind, name, "price_ref"));
    }
    if (const auto own = book_.given(name, "USD")) return own;
    cost_.error("price", fmt::format("no price is known of the {} {}", kind, name),
                fmt::format("give {} in USD", cost_.path("price." + name)));
    return std::nullopt;
}

void CostLines::buy_nodes(const NodeOrder& order, std::int64_t nodes_per_rack) {
    const Node& node = *order.node;
    const auto nodes = real(order.count);
    std::int64_t nics_included = node.nics;
    bool rack_included = false;
    std::optional<std::size_t> price;
    if (catalogue_.integer("node", node.name, "gpus") != node.gpus) {
        // Another box than the one that the catalogue's price is of.
        const std::string name = fmt::format("{}_{}_gpus", node.name, node.gpus);
        price = book_.given(name, "USD");
        if (!price) {
            cost_.error(
                "price",
                fmt::format("no price is known of a {} with {} GPUs", node.name, node.gpus),
                fmt::format("give {} in USD, its NICs included", cost_.path("price." + name)));
        }
    } else {
        price = price_of("node", node.name);
        if (catalogue_.has("node", node.name, "price_ref")) {
            const std::string entry = catalogue_.text("node", node.name, "price_ref");
            nics_included = catalogue_.integer("price", entry, "nics_included");
            rack_included = catalogue_.has("price", entry, "rack_included");
        }
    }
    if (!price) return;
    add(plan_.capital, node.name + " nodes", nodes, "node", *price);
    const std::int64_t extra = node.nics - nics_included;
    if (extra > 0) {
        if (const auto nic = price_of("nic", node.nic)) {
            add(plan_.capital, fmt::format("{} beyond {} a node", node.nic, nics_included),
                nodes * real(extra), "NIC", *nic);
        }
    }
    if (!rack_included) {
        const std::int64_t racks = (order.count + nodes_per_rack - 1) / nodes_per_rack;
        add(plan_.capital, "racks", real(racks), "rack", book_.price("rack"));
    }
}

// Between buildings. Coherent ones are wavelengths: so many share a pair of fibres.
void CostLines::buy_long_cables(const CableOrder& cable, const std::string& what,
                                const CablePrices& prices) {
    const bool coherent = cable.coherent();
    add(plan_.capital, what + (coherent ? " coherent transceivers" : " long transceivers"),
        real(cable.transceivers), "transceiver",
        book_.price(coherent ? prices.coherent_transceiver : prices.long_transceiver));
    const std::int64_t shared =
        coherent ? catalogue_.integer("cable", "optic_zr", "wavelengths") : 1;
    const auto pairs = real((cable.count + shared - 1) / shared);
    add(plan_.capital, what + " dark fibre", pairs * cable.length.value, "m",
        book_.price("long_fibre_metre"));
}

void CostLines::buy_network(const NetworkBill& bill) {
    for (const SwitchOrder& order : bill.materials.switches) {
        const auto price = price_of("switch", order.model);
        if (!price) continue;
        add(plan_.capital, fmt::format("{} {} {}", bill.network->name, order.tier, order.model),
            real(order.count), "switch", *price);
    }
    for (const CableOrder& cable : bill.materials.cables) {
        const CablePrices& prices = prices_of(cable);
        const auto count = real(cable.count);
        const std::string what = fmt::format("{} {}", bill.network->name, cable.where);
        if (cable.between_buildings()) {
            buy_long_cables(cable, what, prices);
            continue;
        }
        if (!cable.optics.empty()) {
            const char* of = prices.gbit_per_s > 400 ? "price_ref_800g" : "price_ref";
            const std::size_t price = book_.price(catalogue_.text("optics", cable.optics, of));
            const bool apart = cable.transceivers > 0;
            add(plan_.capital, fmt::format("{} {}", what, cable.medium),
                apart ? real(cable.transceivers) : count, apart ? "transceiver" : "cable", price);
            if (!apart) continue;
        } else if (cable.transceivers == 0) {
            add(plan_.capital, fmt::format("{} {}", what, cable.medium), count, "cable",
                book_.price(cable.kind == "dac" ? prices.dac : prices.aoc));
            continue;
        } else {
            add(plan_.capital, what + " transceivers", real(cable.transceivers), "transceiver",
                book_.price(prices.transceiver));
        }
        add(plan_.capital, what + " fibres", count, "cable", book_.price("fibre_cable"));
        add(plan_.capital, what + " fibre", count * cable.length.value, "m",
            book_.price("fibre_metre"));
    }
}

// Pipes, manifolds and the units that move the heat to the building's water.
void CostLines::buy_plumbing(const BillOfMaterials& bill) {
    if (s_.power.cooling.kind != CoolingKind::direct_liquid) return;
    add(plan_.capital, "plumbing of the liquid", rated_node_watts(bill, catalogue_) * 1e-3, "kW",
        book_.price("plumbing_cdu_per_kw"));
}

void CostLines::buy_stores() {
    buy_store(s_.stores[shared_store], "storage");
    if (s_.stores.size() <= object_store_index) return;
    const StoreSetup& objects = s_.stores[object_store_index];
    if (objects.servers > 0) buy_store(objects, "object_store");
}

void CostLines::buy_store(const StoreSetup& store, const std::string& section) {
    const double usable_tb = real(store.capacity.count()) * 1e-12;
    auto per_tb = book_.given(store.name + "_per_usable_tb", "USD/TB");
    const auto per_server = book_.given(store.name + "_per_server", "USD");
    const auto managed = book_.given(store.name + "_per_tb_year", "USD/TB/year");
    if (!per_tb && !per_server && !managed && usable_tb > 0 &&
        catalogue_.has("storage", store.name, "price_ref")) {
        per_tb = book_.price(store.disks ? "storage_hdd_per_tb"
                                         : catalogue_.text("storage", store.name, "price_ref"));
    }
    const bool alone = section == "storage" || store.name != s_.stores[shared_store].name;
    const std::string name = store.name + (alone ? " storage" : " object store");
    if ((per_tb || managed) && usable_tb <= 0) {
        cost_.error("price",
                    fmt::format("a price per TB, and the capacity of {} is not known", name),
                    fmt::format("give {}.drive_capacity, or {}", section,
                                cost_.path("price." + store.name + "_per_server")));
    }
    // A price per TB has the servers in it, unless they have one of their own.
    if (per_tb) {
        add(plan_.capital, name + (per_server ? "" : " with its servers"), usable_tb, "usable TB",
            *per_tb);
    }
    if (per_server) {
        add(plan_.capital, name + " servers", real(store.system->protection().servers), "server",
            *per_server);
    }
    if (managed) add(plan_.yearly, name + ", managed", usable_tb, "usable TB", *managed);
    const bool by_use = store.system && store.system->prices().any();
    if (!per_tb && !per_server && !managed && !by_use) {
        plan_.left_out.emplace_back(section == "storage" ? "storage" : "the object store");
    }
}

void CostLines::buy(const BillOfMaterials& bill, std::int64_t nodes_per_rack) {
    for (const NodeOrder& order : bill.nodes) buy_nodes(order, nodes_per_rack);
    buy_plumbing(bill);
    for (const NetworkBill& network : bill.networks) buy_network(network);
    of_tenants([&] { buy_stores(); });
    add(plan_.capital, "spare parts", 1, "of the hardware", book_.price("spare_parts"), true);
}

void CostLines::keep(const BillOfMaterials& bill, bool colocated) {
    constexpr double months_per_year = 12;
    of_tenants([&] {
        add(plan_.yearly, "support", 1, "of the hardware", book_.price("support_fraction_per_year"),
            true);
    });
    if (colocated) {
        add(plan_.yearly, "colocation", rated_watts(bill, catalogue_) * 1e-3 * months_per_year,
            "kW-month", book_.price("colo_kw_month"));
    } else {
        plan_.left_out.emplace_back("the building with its cooling");
    }
    of_tenants([&] { keep_people(); });
}

void CostLines::keep_people() {
    if (const auto licence = book_.given("licence_per_gpu_year", "USD/year")) {
        add(plan_.yearly, "licences", real(plan_.gpus), "GPU", *licence);
    } else {
        plan_.left_out.emplace_back("licences");
    }
    if (const auto staff = book_.given("staff_per_year", "USD/year")) {
        add(plan_.yearly, "staff", 1, "", *staff);
    } else {
        plan_.left_out.emplace_back("staff");
    }
}

std::optional<std::size_t> CostLines::rental(bool one_kind) {
    if (const auto own = book_.given("gpu_hour_rental", "USD/h")) return own;
    const std::string& gpu = s_.node.gpu.id;
    if (one_kind && catalogue_.has("gpu", gpu, "rental_ref")) {
        return book_.price(catalogue_.text("gpu", gpu, "rental_ref"));
    }
    return std::nullopt;
}

// Nodes with all that keeps them running, for whole years or for the hours that they are used.
void CostLines::rent(const BillOfMaterials& bill, const Tenancy& tenancy) {
    const bool reserves = tenancy.tenure == Tenure::reserved;
    const auto price =
        reserves ? book_.given("gpu_hour_reserved", "USD/h") : rental(bill.nodes.size() == 1);
    if (!price) {
        const char* name = reserves ? "gpu_hour_reserved" : "gpu_hour_rental";
        cost_.error("price", "no price is known of an hour of a rented GPU",
                    fmt::format("give {} in USD/h", cost_.path(std::string("price.") + name)));
        return;
    }
    double gpus = 0;
    for (const NodeOrder& order : bill.nodes) gpus += real(order.count * order.node->gpus);
    double share = plan_.utilisation;
    if (reserves) {
        const double term = seconds(tenancy.term) / seconds_per_year;
        const double whole = std::ceil(plan_.years / term * (1 - 1e-12)) * term;
        share = (plan_.years + tenancy.early_end * (whole - plan_.years)) / plan_.years;
    }
    add(plan_.yearly, reserves ? "reserved GPUs" : "GPUs on demand", gpus * hours_per_year * share,
        "GPU-hour", *price);
    buy_stores();
    if (std::ranges::any_of(plan_.capital, [](const CostLine& l) { return l.quantity > 0; })) {
        add(plan_.yearly, "support", 1, "of the hardware", book_.price("support_fraction_per_year"),
            true);
    }
    keep_people();
}

void CostLines::use(bool rented, double tariff) {
    const auto line = [&](const char* what, const char* per, std::size_t price) {
        plan_.used.push_back({what, 0, per, price, false});
    };
    std::optional<std::size_t> nothing;
    if (rented) nothing = book_.add({"in_the_rent", "USD", 0, 0, 0, "the rent"});
    const auto price = [&](const char* name) { return nothing ? *nothing : book_.price(name); };
    const auto part = [&](const char* kind, const std::string& name) {
        if (nothing || !catalogue_.has(kind, name, "price_ref")) return price("repair_part");
        return book_.price(catalogue_.text(kind, name, "price_ref"));
    };
    line(rented || tariff == 1 ? "energy at the meter" : "energy at the meter, times its tariff",
         "kWh", price("electricity_kwh"));
    line("repairs", "visit", price("repair_visit"));
    line("GPUs replaced", "part", part("gpu", s_.node.gpu.id));
    line("NICs replaced", "part", part("nic", s_.node.nic));
    line("other parts replaced", "part", price("repair_part"));
    of_tenants([&] {
        line("object store, egress", "USD",
             book_.add({"paid_by_use", "USD", 1, 1, 1, "the campaign"}));
    });
}

}  // namespace

namespace {

// Products that are sold for another share of their price than the rest.
void resell(const Value* table, ValueReader& values, const std::string& path, CostPlan& plan) {
    if (table == nullptr) return;
    std::vector<std::string> bought;
    for (const CostLine& line : plan.capital) {
        if (!line.of_hardware) bought.push_back(plan.prices[line.price].name);
    }
    for (const Member& member : table->members) {
        const std::string key = path + "." + member.key;
        const auto share = values.number(member.value, key, Bound::fraction);
        if (std::ranges::find(bought, member.key) == bought.end()) {
            values.warning(member.value.at, key,
                           "has no effect: nothing here is bought at this price",
                           suggest(member.key, bought));
        }
        for (CostLine& line : plan.capital) {
            if (line.of_hardware || plan.prices[line.price].name != member.key) continue;
            line.resale = share;
        }
    }
}

// Keys and prices that nothing of this plan is paid by.
void warn_of_idle_prices(Section& cost, PriceBook& book, const CostSetup& setup,
                         const Tenancy& tenancy) {
    const CostPlan& plan = setup.plan;
    if (setup.parts_covered && !setup.rented) {
        for (const CostLine& line : plan.used) {
            const auto pays = [&](const CostLine& other) { return other.price == line.price; };
            if (line.per != "part" || std::ranges::any_of(plan.capital, pays)) continue;
            book.has_no_effect(book.prices()[line.price].name,
                               "support replaces broken parts (cost.parts_covered)");
        }
    }
    if (!plan.capital.empty()) return;
    warn_of_keys(cost, {"residual"}, "has no effect: nothing is bought");
    if (tenancy.tenure == Tenure::on_demand) {
        warn_of_keys(cost, {"years"}, "has no effect: nothing is bought, nor rented for a term");
    }
}

// Its keys, and a plan with a line for all that the bill of materials lists.
CostSetup read_cost_plan(Section& top, Section& cost, ValueReader& values, const Scenario& s) {
    StandaloneCatalogue own = s.open_catalogue();
    const CostKeys keys = read_cost_keys(cost, own.catalogue);
    const Tenancy& tenancy = keys.tenancy;
    CostSetup setup;
    setup.plan = keys.plan;
    setup.rented = tenancy.rented();
    setup.parts_covered = keys.parts_covered;
    setup.tariff = keys.tariff;
    CostPlan& plan = setup.plan;
    QuoteBook quotes(top, cost);
    const Value* resale =
        cost.open_table("resale",
                        "What is left of a product at the end of cost.years, in place of "
                        "cost.residual, by the name of its price: { h100_8gpu_node = 0.2 }, each a "
                        "share or { value, low, high, source }");
    PriceBook book(cost, values, own.catalogue, quotes);
    if (cost.describing()) return setup;
    if (!cost.ok()) {
        book.check();
        return setup;
    }

    plan.gpus = s.gpus();
    plan.seed = s.seed;
    const BillOfMaterials bill = bill_of_materials(s, own.catalogue);
    CostLines lines(cost, s, own.catalogue, book, plan);
    if (tenancy.rented()) {
        lines.rent(bill, tenancy);
    } else {
        lines.buy(bill, s.layout.nodes_per_rack);
        lines.keep(bill, keys.colocated);
    }
    lines.use(tenancy.rented(), setup.tariff);
    setup.idle_kwh_per_year = idle_kwh_per_year(s, bill, own.catalogue);
    plan.used[static_cast<std::size_t>(UsedLine::energy)].quantity =
        setup.idle_kwh_per_year * setup.tariff;
    const bool one_kind = bill.nodes.size() == 1;
    if (!one_kind && !setup.parts_covered) {
        cost.error("parts_covered",
                   "a broken part has one price here, and the nodes are of several kinds");
    }
    if (!tenancy.rented()) plan.rental = lines.rental(one_kind);
    book.finish();
    plan.prices = book.prices();
    quotes.apply(plan, book.set_by_hand(), own.catalogue);
    warn_of_idle_prices(cost, book, setup, tenancy);
    resell(resale, values, cost.path("resale"), plan);
    return setup;
}

// Capital with each price at the same end of its range.
double capital_at(const CostPlan& plan, double Price::*end) {
    std::vector<double> prices;
    for (const Price& price : plan.prices) prices.push_back(price.*end);
    return usd(capital_sum(plan, prices));
}

void warn_of_budget(Section& cost, const CostPlan& plan) {
    if (!plan.budget) return;
    const double typical = capital_at(plan, &Price::typical);
    const double low = capital_at(plan, &Price::low);
    if (typical <= *plan.budget) return;
    cost.warning("budget",
                 fmt::format("over budget: the cluster costs {} ({} to {}), {} more than {}{}",
                             money_text(typical), money_text(low),
                             money_text(capital_at(plan, &Price::high)),
                             money_text(typical - *plan.budget), money_text(*plan.budget),
                             low > *plan.budget ? ", and more even at the lowest prices" : ""),
                 "railyard cost says what each line of it costs");
}

}  // namespace

std::optional<CostSetup> read_cost(Section& top, ValueReader& values, const Scenario& s) {
    Section cost = top.section("cost");
    if (!cost.present() && !cost.describing()) {
        top.no_effect("without [cost]");
        top.sections("quote", "What a vendor asks for, in writing");
        top.no_effect({});
        return std::nullopt;
    }
    CostSetup setup = read_cost_plan(top, cost, values, s);
    cost.finish();
    if (!cost.ok() || cost.describing()) return std::nullopt;
    warn_of_budget(cost, setup.plan);
    return setup;
}

std::string money_text(double amount) {
    if (!std::isfinite(amount)) return "-";
    const double size = std::abs(amount);
    if (size >= 999.5e3) return fmt::format("{:.3g} MUSD", amount * 1e-6);
    if (size >= 9.995e3) return fmt::format("{:.3g} kUSD", amount * 1e-3);
    return size >= 100 ? fmt::format("{:.0f} USD", amount) : fmt::format("{:.2f} USD", amount);
}

}  // namespace railyard
