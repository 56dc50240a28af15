// What submissions.h promises.
#include "load/submissions.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <random>

#include "net/client.h"

namespace berth::load {
namespace {

constexpr std::chrono::seconds kPatience{60};

wire::SubmitJob make_submission(const std::vector<std::string>& words) {
  wire::SubmitJob job;
  wire::Asked& asked = *job.mutable_asked();
  asked.set_command("sbatch");
  for (const std::string& word : words) asked.add_words(word);
  asked.set_script("#!/bin/sh\ntrue\n");
  asked.set_directory("/tmp");
  asked.set_submit_line("sbatch load");
  asked.set_host("localhost");
  asked.set_umask(022);
  // As much as a shell has.
  for (int i = 0; i < 20; ++i) {
    wire::Variable& variable = *asked.add_environment();
    variable.set_name(fmt::format("VARIABLE_{}", i));
    variable.set_value("a value of usual length: /usr/local/bin:/usr/bin:/bin");
  }
  return job;
}

}  // namespace

Result<std::vector<double>> time_each(const net::Address& controller, const Submissions& what) {
  wire::SubmitJob job = make_submission(what.words);
  const unsigned run = std::random_device{}();
  std::vector<double> took;
  for (std::size_t i = 0; i < what.count; ++i) {
    job.set_token(fmt::format("time-{}-{}", run, i));
    const auto begin = std::chrono::steady_clock::now();
    auto client = net::Client::connect(controller, kPatience);
    if (!client) return pass(std::move(client.error()));
    client->queue(job);
    if (auto done = client->flush_all(kPatience); !done) return pass(std::move(done.error()));
    auto frame = client->receive(kPatience);
    if (!frame) return pass(std::move(frame.error()));
    auto reply = net::Client::reply_in<wire::SubmitReply>(*frame);
    if (!reply) return pass(std::move(reply.error()));
    const std::chrono::duration<double, std::milli> one = std::chrono::steady_clock::now() - begin;
    took.push_back(one.count());
    ::usleep(10'000);
  }
  std::ranges::sort(took);
  return took;
}

Result<void> submit_all(const net::Address& controller, const Submissions& what) {
  std::vector<net::Client> clients;
  for (std::size_t i = 0; i < what.connections; ++i) {
    auto client = net::Client::connect(controller, kPatience);
    if (!client) return pass(std::move(client.error()));
    clients.push_back(std::move(*client));
  }
  wire::SubmitJob job = make_submission(what.words);
  const unsigned run = std::random_device{}();
  std::size_t sent = 0;
  std::size_t answered = 0;
  std::vector<std::size_t> waiting(clients.size(), 0);
  while (answered < what.count) {
    for (std::size_t i = 0; i < clients.size(); ++i) {
      for (; waiting[i] < what.in_flight && sent < what.count; ++waiting[i]) {
        job.set_token(fmt::format("load-{}-{}", run, sent++));
        clients[i].queue(job);
      }
      if (auto done = clients[i].flush_all(kPatience); !done) return done;
    }
    for (std::size_t i = 0; i < clients.size(); ++i) {
      // All that came in the same read, then the next connection.
      while (waiting[i] > 0) {
        auto frame = clients[i].receive(kPatience);
        if (!frame) return pass(std::move(frame.error()));
        auto reply = net::Client::reply_in<wire::SubmitReply>(*frame);
        if (!reply) return pass(std::move(reply.error()));
        --waiting[i];
        ++answered;
        if (!clients[i].has_frame()) break;
      }
    }
  }
  return {};
}

}  // namespace berth::load
