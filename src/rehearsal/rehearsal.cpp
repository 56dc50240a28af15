// What rehearsal.h promises.
#include "rehearsal/rehearsal.h"

#include <fmt/format.h>

#include <array>
#include <memory>
#include <vector>

#include "rehearsal/clients.h"
#include "rehearsal/machine.h"

namespace berth::rehearsal {
namespace {

using std::chrono::minutes;
using std::chrono::seconds;

constexpr Host kNodes = 3;
/// So long things go wrong.
constexpr minutes kTrouble{8};
/// After that all is whole, and what there is has to come to its end within this.
constexpr minutes kAfterwards{180};
constexpr seconds kBetweenLooks{10};
/// A hundred times what is usual.
constexpr std::uint64_t kMostEvents = 150'000;

class Rehearsal {
 public:
  Rehearsal(Site& site, std::uint64_t seed, bool schedule)
      : random_(seed),
        clock_(agenda_),
        network_(agenda_, random_),
        witness_(agenda_, schedule),
        here_{agenda_, clock_, network_, random_, witness_},
        controller_(site, agenda_, network_, random_, witness_),
        clients_(here_) {
    for (Host host = 1; host <= kNodes; ++host) {
      machines_.push_back(std::make_unique<Machine>(here_, host, fmt::format("n{}", host)));
    }
  }

  Outcome run() {
    controller_.start();
    for (const auto& machine : machines_) {
      agenda_.after(random_.up_to(seconds(2)), [&machine] { machine->start_agent(); });
    }
    const Moment trouble_over = agenda_.now() + kTrouble;
    plan_work();
    plan_trouble();
    play(trouble_over);
    make_whole();
    const Moment limit = agenda_.now() + kAfterwards;
    while (agenda_.now() < limit && !witness_.fault()) {
      play(agenda_.now() + kBetweenLooks);
      if (witness_.fault() || over()) break;
      release_all();
    }
    if (!witness_.fault()) {
      play(agenda_.now() + kBetweenLooks);
      witness_.look_at_the_end(controller_.state());
    }
    witness_.counts.events = agenda_.done();
    return {witness_.fault(), witness_.counts, witness_.digest()};
  }

 private:
  void play(Moment until) {
    while (!witness_.fault() && agenda_.step(until)) {
      if (agenda_.done() == kMostEvents) witness_.broken("never rests: something goes round");
    }
  }
  Moment some_time() { return agenda_.now() + random_.up_to(kTrouble - minutes(1)); }
  Machine& any_machine() { return *machines_[random_.below(machines_.size())]; }

  void plan_work() {
    const std::uint64_t submissions = 3 + random_.below(8);
    for (std::uint64_t i = 0; i < submissions; ++i) {
      agenda_.at(some_time(), [this] { clients_.submit(words()); });
    }
    const std::uint64_t acts = random_.below(10);
    for (std::uint64_t i = 0; i < acts; ++i) {
      agenda_.at(some_time(), [this] { act(); });
    }
    const std::uint64_t steps = random_.below(16);
    for (std::uint64_t i = 0; i < steps; ++i) {
      agenda_.at(some_time(), [this] { step(); });
    }
    const std::uint64_t replays = random_.below(12);
    for (std::uint64_t i = 0; i < replays; ++i) {
      agenda_.at(some_time(), [this] { clients_.replay(); });
    }
  }

  std::vector<std::string> words() {
    std::vector<std::string> out;
    switch (random_.below(4)) {
      case 0:
        out.emplace_back("--no-requeue");
        break;
      case 1:
        break;
      default:
        out.emplace_back("--requeue");
    }
    out.push_back(random_.one_in(3) ? "-N2" : "-n1");
    if (random_.one_in(6)) out.emplace_back("--array=0-2");
    if (random_.one_in(8)) out.emplace_back("--hold");
    return out;
  }

  /// In a job that runs, if there is one.
  void step() {
    if (!controller_.runs()) return;
    std::vector<Clients::Known> running;
    for (const auto& [id, job] : controller_.state().jobs()) {
      if (job.running && !job::ended(job.base)) running.push_back({id, job.uid});
    }
    if (running.empty()) return;
    clients_.step(running[random_.below(running.size())],
                  1 + static_cast<std::uint32_t>(random_.below(2)));
  }

  void act() {
    const auto* job = clients_.any_job();
    if (job == nullptr) return;
    switch (random_.below(5)) {
      case 0:
        return clients_.cancel(*job);
      case 1:
        return clients_.act("hold", *job);
      case 2:
        return clients_.act("release", *job);
      default:
        return clients_.act("requeue", *job);
    }
  }

  void plan_trouble() {
    // Some rehearsals are quiet, some are not.
    const std::uint64_t events = random_.below(16);
    for (std::uint64_t i = 0; i < events; ++i) {
      agenda_.at(some_time(), [this] { trouble(); });
    }
  }

  /// Short and long ones.
  Moment for_a_while() {
    constexpr std::array<seconds, 5> kMost{seconds(1), seconds(10), seconds(30), seconds(60),
                                           seconds(150)};
    return random_.up_to(kMost.at(random_.below(kMost.size())));
  }

  void trouble() {
    if (whole_) return;
    // It seldom comes alone.
    if (random_.one_in(3)) agenda_.after(random_.up_to(seconds(10)), [this] { trouble(); });
    switch (random_.below(11)) {
      case 0:
        if (random_.one_in(2)) {
          controller_.kill();
        } else {
          controller_.lose_power();
        }
        return controller_later();
      case 1:
      case 2:
        controller_.kill_after(random_.below(12));
        return controller_later();
      case 3:
        controller_.stop_in_order();
        return controller_later();
      case 4: {
        Machine& machine = any_machine();
        machine.kill_agent();
        return agent_later(machine);
      }
      case 5: {
        Machine& machine = any_machine();
        machine.kill_agent_at(random_.below(16));
        return agent_later(machine);
      }
      case 6: {
        Machine& machine = any_machine();
        machine.lose_power();
        agenda_.after(for_a_while(), [this, &machine] {
          machine.power_on();
          agent_later(machine);
        });
        return;
      }
      case 7:
        controller_.fill_disk(true);
        agenda_.after(for_a_while(), [this] { controller_.fill_disk(false); });
        return;
      case 8:
        return any_machine().kill_a_supervisor();
      default:
        return cut(any_machine().host());
    }
  }

  void controller_later() {
    agenda_.after(for_a_while(), [this] {
      if (whole_) return;
      controller_.kill();  // it may have survived what was planned for it
      controller_.start();
    });
  }

  void agent_later(Machine& machine) {
    agenda_.after(for_a_while(), [&machine] { machine.start_agent(); });
  }

  void cut(Host host) {
    ++witness_.counts.cuts;
    const std::uint64_t which = random_.below(4);
    const Moment length = for_a_while();
    const auto one_way = [&](Host from, Host to) {
      network_.cut(from, to);
      agenda_.after(length, [this, from, to] { network_.heal(from, to); });
    };
    constexpr std::array<const char*, 4> kHow{"both ways", "both ways, from clients too",
                                              "towards the controller", "from the controller"};
    witness_.say(fmt::format("n{} is cut off {} for {:.3f} s", host, kHow.at(which),
                             std::chrono::duration<double>(length).count()));
    if (which != 3) one_way(host, kController);
    if (which != 2) one_way(kController, host);
    if (which != 1) return;
    one_way(host, kLogin);
    one_way(kLogin, host);
  }

  void make_whole() {
    if (witness_.fault()) return;
    witness_.say("from now on nothing goes wrong");
    whole_ = true;
    network_.heal_all();
    controller_.kill();
    controller_.start();
    for (const auto& machine : machines_) {
      machine->power_on();
      machine->kill_agent();
      machine->start_agent();
    }
  }

  /// An administrator, who wants to see all jobs through.
  void release_all() {
    for (const auto& [id, job] : controller_.state().jobs()) {
      if (job.held) clients_.act("release", {id, 0});
    }
  }

  bool over() {
    for (const auto& [id, job] : controller_.state().jobs()) {
      if (!job::ended(job.base) || job.running) return false;
    }
    return true;
  }

  Random random_;
  Agenda agenda_;
  AgendaClock clock_;
  Network network_;
  Witness witness_;
  Surroundings here_;
  ControllerHost controller_;
  Clients clients_;
  std::vector<std::unique_ptr<Machine>> machines_;
  bool whole_ = false;
};

}  // namespace

std::string slurm_conf() {
  return R"(ClusterName=rehearsal
SlurmctldHost=localhost
SlurmUser=root
SelectType=select/cons_tres
SelectTypeParameters=CR_Core
MinJobAge=1000000
SlurmdTimeout=30
SlurmctldParameters=requeue_lease=60
KillWait=2
ReturnToService=2
MaxBatchRequeue=1000
NodeName=n[1-3] CPUs=2 CoresPerSocket=2 RealMemory=4000
PartitionName=main Nodes=ALL Default=YES MaxTime=10
)";
}

Outcome rehearse(Site& site, std::uint64_t seed, bool schedule) {
  Rehearsal rehearsal(site, seed, schedule);
  return rehearsal.run();
}

}  // namespace berth::rehearsal
