// What is saved, where copies of it are, and which of them a loss leaves: against the hand's count of seconds
// and bytes.

#include "models/training/checkpointer.h"

#include <doctest/doctest.h>
#include <fmt/format.h>

#include "sim/rng.h"
#include "sim/text.h"
#include "tests/models/quantities.h"

using namespace railyard;

namespace {

// 100 GB on eight nodes: 1 s to a host buffer, 10 s to a place on the nodes, 100 s to the store, 1,000 s to
// the object store; reading takes half as long.
struct Site : Checkpointer::Job {
    CampaignEngine engine;
    StoreService stores{engine};
    CheckpointSpec spec;
    std::optional<Checkpointer> checkpointer;
    std::int64_t restores = 0;
    std::int64_t steps = 0;
    double stall_ended = -1;
    double restored_at = -1;
    std::vector<double> safe_at;

    explicit Site(const std::vector<Place>& places, CheckpointMode mode = CheckpointMode::async) {
        stores.add_store("storage", {gb_per_s(2), gb_per_s(1)});
        stores.add_store("object_store", {gb_per_s(0.2), gb_per_s(0.1)});
        spec.mode = mode;
        spec.size = gigabytes(100);
        spec.changed_fraction = 0.1;
        spec.snapshot = std::chrono::seconds(1);
        for (const Place place : places) {
            TierSpec tier;
            tier.place = place;
            tier.write_time = std::chrono::seconds(10);
            tier.read_time = std::chrono::seconds(5);
            tier.write.store = tier.read.store = place == Place::object_store ? 1 : 0;
            tier.read.direction = Direction::read;
            tier.write.cap = tier.read.cap = gb_per_s(1000);
            spec.tiers.push_back(tier);
        }
    }
    void start() {
        const std::size_t client = stores.add_client(gb_per_s(1000), gb_per_s(1000));
        checkpointer.emplace(engine, stores, client, spec, 8, *this);
    }
    double now() const {
        return static_cast<double>(engine.now().time_since_epoch().count()) / 1e9;
    }
    void run_until(double t) { engine.run(Instant(from_seconds(t))); }
    // Saves at t, with ten more steps done than the last time.
    void save_at(double t) {
        run_until(t);
        checkpointer->begin(steps += 10);
    }
    void lose_node(std::int64_t slot) { checkpointer->fail({StateLoss::Scope::node, slot}); }
    void lose_processes() { checkpointer->fail({StateLoss::Scope::processes}); }
    std::int64_t newest() const { return checkpointer->newest().number; }
    TierBytes bytes(std::size_t tier) {
        if (checkpointer->outcome().tiers.empty()) checkpointer->end();
        return checkpointer->outcome().tiers[tier];
    }

    void safe(const SavedStates::State&) override { safe_at.push_back(now()); }
    void stall_over() override { stall_ended = now(); }
    void pace_changed() override {}
    void moved_on() override {}
    void restored() override {
        ++restores;
        restored_at = now();
    }
};

Bytes sum_of(const TierBytes& b) {
    return b.safe + b.expired + b.lost + b.in_flight;
}

}  // namespace

TEST_CASE("each place survives what it should and nothing else") {
    using Scope = StateLoss::Scope;
    struct Case {
        const char* what;
        std::vector<StateLoss> losses;
        std::vector<Place> survivors;
    };
    const std::vector<Place> all = {Place::host_memory, Place::peer_memory, Place::local_nvme,
                                    Place::storage, Place::object_store};
    const std::vector<Case> cases = {
        {"processes", {{Scope::processes}}, all},
        {"one node", {{Scope::node, 3}}, {Place::peer_memory, Place::storage, Place::object_store}},
        {"the same node twice",
         {{Scope::node, 3}, {Scope::node, 3}},
         {Place::peer_memory, Place::storage, Place::object_store}},
        {"two nodes apart",
         {{Scope::node, 3}, {Scope::node, 5}},
         {Place::peer_memory, Place::storage, Place::object_store}},
        {"two neighbours",
         {{Scope::node, 3}, {Scope::node, 4}},
         {Place::storage, Place::object_store}},
        {"the last and the first",
         {{Scope::node, 7}, {Scope::node, 0}},
         {Place::storage, Place::object_store}},
        {"every node rebooted",
         {{Scope::all_memory}},
         {Place::local_nvme, Place::storage, Place::object_store}},
    };
    for (const Case& each : cases) {
        for (const Place place : all) {
            CAPTURE(each.what);
            CAPTURE(word_of(place_names, place));
            Site site({place});
            site.start();
            site.save_at(0);
            site.run_until(2000);
            REQUIRE(site.newest() == 1);
            for (const StateLoss& loss : each.losses) site.checkpointer->fail(loss);
            const bool there = std::find(each.survivors.begin(), each.survivors.end(), place) !=
                               each.survivors.end();
            CHECK(site.newest() == (there ? 1 : 0));
            CHECK(site.bytes(0).safe == gigabytes(there ? 100 : 0));
            CHECK(site.bytes(0).lost == gigabytes(there ? 0 : 100));
        }
    }
}

TEST_CASE("the stall is over long before the state is safe, and both are known to the second") {
    Site async({Place::local_nvme, Place::storage});
    async.start();
    async.save_at(5);
    async.run_until(1000);
    CHECK(async.stall_ended == 6.0);  // the snapshot
    CHECK(async.safe_at ==
          std::vector<double>{5 + 1 + 10 + 100});  // the store: drives go with a node
    CHECK(async.checkpointer->outcome().to_safe == std::chrono::seconds(111));
    CHECK(async.checkpointer->outcome().stall.total() == std::chrono::seconds(1));
    CHECK(async.checkpointer->outcome().stall.largest() == Wall::snapshot);

    Site sync({Place::storage}, CheckpointMode::sync);
    sync.start();
    sync.save_at(5);
    sync.run_until(1000);
    CHECK(sync.stall_ended == 105.0);  // 100 GB at 1 GB/s
    CHECK(sync.safe_at == std::vector<double>{105});
    CHECK(sync.checkpointer->outcome().stall[Wall::store] == std::chrono::seconds(100));

    Site peers({Place::peer_memory, Place::storage});
    peers.start();
    peers.save_at(5);
    peers.run_until(1000);
    CHECK(peers.safe_at == std::vector<double>{5 + 1 + 10});
}

TEST_CASE("a node lost inside the upload window takes that checkpoint with it") {
    Site site({Place::local_nvme, Place::storage});
    site.start();
    site.save_at(0);
    site.save_at(200);
    site.run_until(250);
    // The processes' end leaves the drives: the newest is there, and goes on to the store.
    site.lose_processes();
    CHECK(site.newest() == 2);
    CHECK(site.checkpointer->newest().tier == 0);
    site.checkpointer->restore();
    site.run_until(400);
    CHECK(site.restored_at == 255.0);
    CHECK(site.safe_at == std::vector<double>{111, 311});
    // 39 s into the third's upload a node is lost: two are in the store.
    site.save_at(400);
    site.run_until(450);
    CHECK(site.newest() == 3);
    site.lose_node(2);
    const SavedStates::Choice choice = site.checkpointer->newest();
    CHECK(choice.number == 2);
    CHECK(choice.tier == 1);
    CHECK(choice.steps == 20);
    site.checkpointer->restore();
    site.run_until(2000);
    CHECK(site.restored_at == 500.0);             // 100 GB at 2 GB/s
    CHECK(site.bytes(0).lost == gigabytes(200));  // the newest two: the first had expired
    CHECK(site.bytes(1).lost == gigabytes(39));
    CHECK(site.bytes(1).written == gigabytes(239));
    const CheckpointOutcome& outcome = site.checkpointer->outcome();
    CHECK(outcome.made_safe == 2);
    CHECK(outcome.lost == 1);
    CHECK(outcome.restored_from == std::vector<std::int64_t>{1, 1});
}

TEST_CASE("a snapshot that is still in the host buffers is gone with the processes") {
    Site site({Place::storage});
    site.spec.buffers = 2;
    site.start();
    site.save_at(0);
    site.save_at(150);
    site.save_at(160);
    site.run_until(170);
    CHECK_FALSE(site.checkpointer->can_begin());
    site.lose_processes();
    CHECK(site.checkpointer->can_begin());
    CHECK(site.newest() == 1);
    CHECK(site.checkpointer->outcome().lost == 2);
    CHECK(site.bytes(0).lost == gigabytes(19));  // of the second, from 151 s on
}

TEST_CASE("a state is read back from the hottest tier that has it") {
    Site site({Place::peer_memory, Place::local_nvme, Place::storage});
    site.start();
    site.save_at(0);
    site.run_until(1000);
    CHECK(site.checkpointer->newest().tier == 0);
    site.checkpointer->fail({StateLoss::Scope::all_memory});
    CHECK(site.checkpointer->newest().tier == 1);
    site.lose_node(1);
    CHECK(site.checkpointer->newest().tier == 2);
    CHECK(site.newest() == 1);
    site.checkpointer->lose_store(0);
    CHECK(site.newest() == 0);
}

TEST_CASE("changes are read with the whole state before them, and are nothing without it") {
    Site site({Place::storage});
    site.spec.full_every = 4;
    site.start();
    site.save_at(0);    // whole: 100 s
    site.save_at(200);  // changes: 10 s each
    site.save_at(300);
    site.run_until(400);
    CHECK(site.newest() == 3);
    CHECK(site.checkpointer->newest().bytes == gigabytes(120));
    site.lose_processes();
    site.checkpointer->restore();
    site.run_until(1000);
    CHECK(site.restored_at == 460.0);  // 120 GB at 2 GB/s
    // The store loses all; the job runs on, and what it saves are changes to what is gone.
    site.checkpointer->lose_store(0);
    site.save_at(1000);
    site.run_until(1100);
    CHECK(site.newest() == 0);
    CHECK(site.safe_at.size() == 3);
    // The next is whole again, and the one after holds changes to it.
    site.save_at(1200);
    site.save_at(1400);
    site.run_until(1500);
    CHECK(site.newest() == 6);
    CHECK(site.checkpointer->newest().bytes == gigabytes(110));
    CHECK(site.bytes(0).written == gigabytes(100 + 10 + 10 + 10 + 100 + 10));
}

TEST_CASE("what stays is the newest few, with what they need to be read") {
    Site whole({Place::storage});
    whole.spec.tiers[0].keep = 2;
    whole.start();
    for (int i = 0; i < 5; ++i) whole.save_at(200 * i);
    whole.run_until(2000);
    CHECK(whole.bytes(0).written == gigabytes(500));
    CHECK(whole.bytes(0).safe == gigabytes(200));
    CHECK(whole.bytes(0).expired == gigabytes(300));

    Site changes({Place::storage});
    changes.spec.tiers[0].keep = 1;
    changes.spec.full_every = 3;
    changes.start();
    for (int i = 0; i < 3; ++i) changes.save_at(200 * i);
    changes.run_until(600);
    CHECK(changes.checkpointer->newest().bytes == gigabytes(120));
    changes.save_at(600);  // whole: the chain before it may go
    changes.run_until(1000);
    CHECK(changes.bytes(0).safe == gigabytes(100));
    CHECK(changes.bytes(0).expired == gigabytes(120));
}

TEST_CASE("a copy that cannot be read back takes no other's place") {
    // The second is passed over on its way to the store, so the third's changes are of no use there.
    Site site({Place::local_nvme, Place::storage});
    site.spec.full_every = 10;
    site.spec.changed_fraction = 0.5;
    site.spec.tiers[1].keep = 1;
    site.start();
    site.save_at(0);
    site.save_at(30);
    site.save_at(60);
    site.run_until(500);
    CHECK(site.checkpointer->outcome().passed_over == 1);
    site.lose_node(0);
    CHECK(site.newest() == 1);
    CHECK(site.checkpointer->outcome().made_safe == 1);
}

TEST_CASE("of those that wait for a tier the newest goes next and the others are passed over") {
    Site site({Place::local_nvme, Place::storage});
    site.spec.tiers[0].keep = 1;
    site.start();
    for (int i = 0; i < 5; ++i) site.save_at(30 * i);
    // On the drives at 11, 41, 71, 101 and 131 s; the store takes the first at 11, the fourth at 111 s and
    // the fifth at 211 s.
    site.run_until(1000);
    CHECK(site.safe_at == std::vector<double>{111, 211, 311});
    CHECK(site.checkpointer->outcome().passed_over == 2);
    CHECK(site.bytes(0).safe == gigabytes(100));
    CHECK(site.bytes(1).written == gigabytes(300));
}

TEST_CASE("what waits for a colder tier stays until that has read it") {
    Site site({Place::local_nvme, Place::storage, Place::object_store});
    site.spec.tiers[0].keep = 1;
    site.spec.tiers[1].every = 2;
    site.start();
    for (int i = 0; i < 5; ++i) site.save_at(30 * i);
    // The store takes the second at 41 s; the fourth waits from 101 to 141 s, and at 131 s the fifth is
    // on the drives, which keep one. A node lost at 135 s takes what waits; what the drives had shows
    // in the bytes.
    site.run_until(135);
    site.lose_node(0);
    CHECK(site.bytes(0).lost ==
          gigabytes(300));  // the second is being read, the fourth waits, the fifth
    CHECK(site.bytes(0).expired == gigabytes(200));
}

TEST_CASE("a store that loses its data loses what was to go on from there") {
    Site site({Place::storage, Place::object_store});
    site.start();
    site.save_at(0);
    site.save_at(300);
    site.run_until(601);
    // The first is on its way to the object store since 101 s, the second waits for that.
    site.checkpointer->lose_store(0);
    CHECK(site.newest() == 0);
    site.run_until(5000);
    CHECK(site.newest() == 0);
    CHECK(site.bytes(1).safe == Bytes{});
    CHECK(site.bytes(1).lost == gigabytes(50));
    CHECK(site.bytes(0).lost == gigabytes(200));
}

namespace {

// Any tiers, kept as long and filled as often as may be.
Site any_site(RandomStream& random) {
    static const std::vector<std::vector<Place>> layouts = {
        {Place::storage},
        {Place::local_nvme, Place::storage},
        {Place::host_memory, Place::storage, Place::object_store},
        {Place::peer_memory, Place::local_nvme, Place::storage, Place::object_store},
    };
    Site site(layouts[random.below(layouts.size())],
              random.chance(0.3) ? CheckpointMode::sync : CheckpointMode::async);
    site.spec.full_every = 1 + static_cast<std::int64_t>(random.below(4));
    site.spec.buffers = 1 + static_cast<std::int64_t>(random.below(3));
    for (TierSpec& tier : site.spec.tiers) {
        tier.keep = 1 + static_cast<std::int64_t>(random.below(4));
        if (&tier != site.spec.tiers.data() && site.spec.full_every == 1) {
            tier.every = 1 + static_cast<std::int64_t>(random.below(3));
        }
    }
    return site;
}

}  // namespace

TEST_CASE("every byte written is safe, expired, lost or on its way, whatever happens") {
    std::int64_t restores = 0;
    std::int64_t passed_over = 0;
    double lost = 0;
    for (std::uint64_t seed = 0; seed < 400; ++seed) {
        CAPTURE(seed);
        RandomStream random(seed, 0, "checkpointer");
        Site site = any_site(random);
        site.start();
        Checkpointer& c = *site.checkpointer;
        std::int64_t begun = 0;
        bool restoring = false;
        for (int act = 0; act < 60; ++act) {
            const double longest = random.chance(0.3) ? 1000 : 20;
            site.run_until(site.now() + random.uniform() * longest);
            restoring = restoring && site.restored_at < 0;
            const bool stalled = begun > 0 && site.stall_ended < 0;
            const std::int64_t before = site.newest();
            const double dice = random.uniform();
            if (dice < 0.7) {
                if (restoring || stalled || !c.can_begin()) continue;
                ++begun;
                site.stall_ended = -1;
                c.begin(site.steps += 10);
                continue;
            }
            if (dice < 0.75) {
                c.lose_store(random.below(2));
            } else {
                const auto scope = static_cast<StateLoss::Scope>(random.below(3));
                c.fail({scope, static_cast<std::int64_t>(random.below(8))});
                site.stall_ended = 0;
                site.steps = c.newest().steps;
                site.restored_at = -1;
                restoring = true;
                c.restore();
                CHECK(c.newest().steps == site.steps);
            }
            // A loss brings nothing back, and time alone takes nothing.
            CHECK(site.newest() <= before);
            const std::int64_t left = site.newest();
            site.run_until(site.now() + 1);
            CHECK(site.newest() >= left);
            if (restoring && dice < 0.75) break;  // what it was reading is gone: the job's to see
        }
        const CheckpointOutcome& outcome = c.outcome();
        for (std::size_t tier = 0; tier < site.spec.tiers.size(); ++tier) {
            CHECK(site.bytes(tier).written == sum_of(site.bytes(tier)));
            lost += static_cast<double>(site.bytes(tier).lost.count());
        }
        CHECK(outcome.made_safe + outcome.lost <= begun);
        CHECK(static_cast<std::int64_t>(site.safe_at.size()) == outcome.made_safe);
        restores += site.restores;
        passed_over += outcome.passed_over;
    }
    // And all of it has happened.
    CHECK(restores > 1000);
    CHECK(passed_over > 100);
    CHECK(lost > 0);
}
