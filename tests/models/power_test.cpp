// Power under campaigns: energy against the ledger and the clock, caps, heat, and the guides' numbers.

#include <doctest/doctest.h>
#include <fmt/format.h>

#include <cmath>

#include "models/campaign/bill_of_materials.h"
#include "models/campaign/campaign.h"
#include "tests/scenario_text.h"

using namespace railyard;

namespace {

const std::string measured_step = cluster_text(10, "10 day") + R"(
[job]
nodes = 8
step.time = "5 s"
checkpoint.mode = "none"
)";

const std::string modelled_step = cluster_text(8, "1 day") + R"(
[job]
model = "llama2_13b"
checkpoint.mode = "none"
)" + parallel_text("job");

double step_s(const Scenario& s) {
    return seconds(s.job.step.duration());
}

std::string warnings(const Scenario& s) {
    std::string out;
    for (const Diagnostic& d : s.warnings) out += d.message + "\n";
    return out;
}

}  // namespace

TEST_CASE("energy is node time by category times what nodes then draw, exactly") {
    const Scenario s = scenario(measured_step);
    const ReplicaResult r = run_replica(s, 0, false);
    const Picojoules day = Picojoules{86'400} * 1'000'000'000;
    const auto draws = [&](Activity a) { return milliwatts(s.power.node.at(a)); };
    CHECK(r.energy.nodes[std::size_t(Category::productive)] ==
          8 * 10 * day * draws(Activity::compute));
    CHECK(r.energy.nodes[std::size_t(Category::spare)] == 2 * 10 * day * draws(Activity::idle));
    // 75 W a GPU for a network that was not built.
    CHECK(r.energy.network == 10 * day * 75 * 80 * 1000);
    Picojoules sum = r.energy.network + r.energy.storage;
    for (const Picojoules e : r.energy.nodes) sum += e;
    CHECK(r.energy.total() == sum);
}

TEST_CASE("the energy booked is the integral of the power over the campaign's clock") {
    const Scenario s = scenario(
        measured_step, {"failures.cause=[{name=\"crash\", mtbf_job=\"5 h\", detection=\"10 min\"}]",
                        "job.recovery.recompute=false", "job.recovery.restart=7 min"});
    const ReplicaResult r = run_replica(s, 0, true);
    double running = 0, spinning = 0, idle = 0;  // seconds of the job
    double since = 0;
    bool up = true;
    for (const CampaignEvent& e : r.log) {
        const double at = seconds(e.at.time_since_epoch());
        const double span = at - since;
        if (up) {
            running += span;
        } else {
            spinning += std::min(span, 600.0);
            idle += span - std::min(span, 600.0);
        }
        since = at;
        up = std::string(e.kind) != "interruption";
    }
    REQUIRE(r.job.interruptions[0] > 20);
    const auto draws = [&](Activity a) { return s.power.node.at(a).value; };
    const double job = running * draws(Activity::compute) +
                       spinning * draws(Activity::communication) + idle * draws(Activity::idle);
    const double spares = 2 * seconds(r.simulated) * draws(Activity::idle);
    const double others = seconds(r.simulated) * (s.power.network.value + s.power.storage.value);
    CHECK(joules(r.energy.total()) == doctest::Approx(8 * job + spares + others).epsilon(1e-6));
}

TEST_CASE("a step's energy is the integral of its levels") {
    const Scenario s = scenario(modelled_step, {"run.replicas=1"});
    const StepTime& t = s.job.step;
    double parts = seconds(t.compute) * s.power.of(Category::productive).value;
    for (const Duration wait : {t.exposed_communication, t.bubble, t.straggler_wait}) {
        parts += seconds(wait) * s.power.of(Category::exposed_communication).value;
    }
    CHECK(joules(s.power.node_step.energy()) == doctest::Approx(parts).epsilon(1e-6));
    CHECK(s.power.node_step.cycle() == t.duration());
    CHECK(s.power.of(Category::lost_work).value ==
          doctest::Approx(parts / seconds(t.duration())).epsilon(1e-6));
}

TEST_CASE("published: training draws 76 % of a DGX H100's rating, in compute-heavy runs") {
    const Scenario s =
        scenario(modelled_step, {"cluster.nodes=1", "job.model=llama2_7b", "job.parallel.tensor=1",
                                 "job.parallel.pipeline=1", "job.parallel.interleave=1",
                                 "job.parallel.sequence_length=4096", "job.parallel.zero=3"});
    CHECK(s.power.node_step.mean().value / s.power.node.rated.value ==
          doctest::Approx(0.76).epsilon(0.1));
}

TEST_CASE("1,024 H100 need some 1.9 MW, not the guide's 2.8") {
    const Scenario s = scenario(measured_step, {"cluster.nodes=128", "run.duration=1 h"});
    const CampaignResult r = run_campaign(s, {});
    const double megawatts = r.metric("power_design").summary.mean * 1e-6;
    CHECK(megawatts > 1.7);
    CHECK(megawatts < 2.0);
    CHECK(r.metric("power_mean").summary.mean < r.metric("power_peak").summary.mean + 1);
    CHECK(r.metric("power_peak").summary.mean < r.metric("power_design").summary.mean);
}

TEST_CASE("a cap costs a computing job its whole law, a communicating one less") {
    const std::string cap = "power.gpu_cap=500 W";
    const double law = std::pow(700.0 / 500, 0.45);
    CHECK(step_s(scenario(measured_step, {cap})) / step_s(scenario(measured_step)) ==
          doctest::Approx(law).epsilon(1e-6));
    const std::string software = "job.software=megatron_lm";  // sends its gradients in one piece
    const Scenario sound = scenario(modelled_step, {software});
    const Scenario capped = scenario(modelled_step, {software, cap});
    const double slower = step_s(capped) / step_s(sound);
    CHECK(slower > 1.02);
    CHECK(slower < law);
    CHECK(capped.job.step.exposed_communication <= sound.job.step.exposed_communication);
    CHECK(capped.power.node_step.peak() < sound.power.node_step.peak());
    // Fewer joules a step: power falls more than speed.
    CHECK(joules(capped.power.node_step.energy()) < joules(sound.power.node_step.energy()));
}

TEST_CASE("a room that is cool enough changes nothing, a hot one throttles and says so") {
    const CampaignResult plain = run_campaign(scenario(modelled_step), {});
    const Scenario cool = scenario(modelled_step, {"facility.cooling=air"});
    CHECK(cool.power.heat.speed == 1);
    CHECK(run_campaign(cool, {}).digest == plain.digest);

    const Scenario hot = scenario(modelled_step, {"facility.inlet_temperature=45 degC"});
    CHECK(hot.power.heat.speed < 1);
    CHECK(hot.job.step.throttled > Duration{});
    CHECK(warnings(hot).find("of their clocks") != std::string::npos);
    const CampaignResult r = run_campaign(hot, {});
    CHECK(r.digest != plain.digest);
    CHECK(r.ledger[std::size_t(Category::throttled)] ==
          doctest::Approx(seconds(hot.job.step.throttled) / step_s(hot)).epsilon(1e-3));
    // What is lost is what the step model says of all GPUs at these clocks; one holds up only its stage.
    const Scenario slow =
        scenario(modelled_step,
                 {fmt::format("cluster.fault=[{{part=\"gpu\", speed={}}}]", hot.power.heat.speed)});
    CHECK(slow.job.step.degraded < hot.job.step.throttled);
    CHECK(slow.job.step.degraded > 0.9 * hot.job.step.throttled);
    // A measured step is slower by its clocks.
    const Scenario measured = scenario(measured_step, {"facility.inlet_temperature=45 degC"});
    CHECK(step_s(measured) == doctest::Approx(5 / measured.power.heat.speed).epsilon(1e-6));
}

TEST_CASE("memory that grows too hot is slow without the clocks showing it") {
    const std::string pads = "override.thermal.hbm_resistance_ratio=1.6";
    const Scenario s = scenario(modelled_step, {"facility.cooling=air", pads});
    CHECK(s.power.heat.speed == 1);
    CHECK(s.power.heat.hbm_speed < 1);
    CHECK(s.job.step.throttled > Duration{});
}

TEST_CASE("the guide's two supplies of 2 kW are caught, and the DGX's six are not") {
    const std::string message =
        refused(measured_step,
                {"cluster.node=seed_h100_node", "power.supplies=2", "power.supply_rating=2 kW"});
    CHECK(message.find("8 GPUs of 700 W 5.6 kW") != std::string::npos);
    CHECK(message.find("2 supplies of 2 kW give 2 kW when 1 of them is lost, 4 kW together") !=
          std::string::npos);
    CHECK(warnings(scenario(measured_step, {"cluster.node=seed_h100_node"}))
              .find("2 supplies of 2 kW") != std::string::npos);
    CHECK(warnings(scenario(measured_step)).empty());
    // 4 of its 6 carry it; with three to lose they don't, and a cap helps.
    CHECK(refused(measured_step, {"power.redundancy=n+1"}).empty());
    CHECK(!refused(measured_step, {"power.redundancy=2n"}).empty());
    CHECK(refused(measured_step, {"power.redundancy=2n", "power.gpu_cap=600 W"}).empty());
}

TEST_CASE("one 32 A breaker at 230 V trips under two of the guide's nodes") {
    const Scenario s =
        scenario(measured_step, {"facility.rack_power_max=60 kW", "facility.breaker.rating=7.4 kW",
                                 "facility.breaker.nodes=2"});
    CHECK(warnings(s).find("it trips after") != std::string::npos);
    // Three phases at 400 V carry them, with less to spare than the code wants.
    CHECK(warnings(scenario(measured_step,
                            {"facility.rack_power_max=60 kW", "facility.breaker.rating=22.2 kW",
                             "facility.breaker.nodes=2"}))
              .find("more than the 80 % of 22.2 kW") != std::string::npos);
}

TEST_CASE("carbon is reported when somebody says how much there is in a kilowatt-hour") {
    const CampaignResult r =
        run_campaign(scenario(measured_step, {"facility.carbon_intensity=400 gCO2/kWh"}), {});
    CHECK(r.metric("carbon").summary.mean ==
          doctest::Approx(400 * r.metric("energy").summary.mean / 3.6e6));
    for (const MetricSummary& m : run_campaign(scenario(measured_step), {}).metrics) {
        CHECK(m.name != "carbon");
    }
}

TEST_CASE("a switch without a rating counts with its typical power, or that of a common one") {
    StandaloneCatalogue own;
    Catalogue& c = own.catalogue;
    CHECK(switch_power("sn5600_spectrum4", c).typical.value == 940);
    CHECK(switch_power("sn5600_spectrum4", c).most.value == 2170);
    CHECK(switch_power("sn4700_spectrum3", c).most.value == 630);
    CHECK(switch_power("th3_32x400", c).most.value == switch_power("qm9700_ndr", c).most.value);
    CHECK(switch_power("mgmt_48x1g", c).most.value < 200);
    // What the site is built for has the network in it.
    for (const char* leaf : {"th3_32x400", "sn4700_spectrum3"}) {
        const Scenario s =
            scenario(measured_step, {"fabric.compute.kind=roce", "fabric.compute.topology=fat_tree",
                                     fmt::format("fabric.compute.leaf={}", leaf)});
        StandaloneCatalogue of_run = s.open_catalogue();
        BillOfMaterials bill = bill_of_materials(s, of_run.catalogue);
        double switches = 0;
        for (const NetworkBill& network : bill.networks) {
            for (const SwitchOrder& order : network.materials.switches) {
                switches +=
                    static_cast<double>(order.count) * switch_power(order.model, c).most.value;
            }
        }
        const double all = rated_watts(bill, of_run.catalogue);
        bill.networks.clear();
        CHECK(switches > 0);
        CHECK(all - rated_watts(bill, of_run.catalogue) == doctest::Approx(switches));
    }
}
