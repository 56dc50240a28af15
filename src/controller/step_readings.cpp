#include "controller/step_readings.h"

#include <algorithm>
#include <set>

#include "wire/step_figures.h"

namespace berth::controller {

bool StepReadings::ask(Question question, Moment now) {
  std::size_t nodes = 0;
  for (const Step& step : question.steps) nodes += step.nodes.size();
  if (awaited_ + nodes > kMostAsked) return false;
  const std::uint64_t name = ++last_number_;
  Waiting& waiting = questions_[name];
  waiting.peer = question.peer;
  waiting.answer = std::move(question.answer);
  std::size_t next = 0;
  std::vector<Key> keys;
  for (int asked = 0; asked < waiting.answer.asked_size(); ++asked) {
    const wire::AskedSteps& entry = waiting.answer.asked(asked);
    for (int i = 0; i < entry.steps_size(); ++i) {
      if (entry.steps(i).denied() || next >= question.steps.size()) continue;
      const Step& step = question.steps[next++];
      const Key key{.job = entry.steps(i).step().job_id(),
                    .attempt = step.attempt,
                    .step = entry.steps(i).step().step_id(),
                    .with_pids = question.with_pids};
      begin(key, step, now).places.push_back({name, asked, i});
      keys.push_back(key);
      ++waiting.open;
    }
  }
  if (keys.empty()) send_if_complete(name);
  for (const Key& key : keys) {
    const auto at = readings_.find(key);
    if (at != readings_.end() && at->second.open.empty()) finish(at);  // nobody can answer
  }
  return true;
}

StepReadings::Reading& StepReadings::begin(const Key& key, const Step& step, Moment now) {
  const auto [entry, fresh] = readings_.try_emplace(key);
  Reading& reading = entry->second;
  if (!fresh) return reading;
  reading.number = ++last_number_;
  reading.figures = step.ended;
  by_number_.emplace(reading.number, key);
  deadlines_.emplace_back(now + kPatience, reading.number);
  std::map<Peer, wire::MeasureOnNodes> asks;
  for (const Node& node : step.nodes) {
    reading.nodes.push_back(node.name);
    if (node.ended) continue;
    if (!node.agent) {
      reading.missing.push_back(node.name);
      continue;
    }
    if (!reading.open.emplace(node.name, *node.agent).second) continue;
    ++awaited_;
    asks[*node.agent].add_nodes(node.name);
  }
  for (auto& [agent, ask] : asks) {
    ask.set_number(reading.number);
    ask.set_job_id(key.job);
    ask.set_attempt(key.attempt);
    ask.set_step_id(key.step);
    ask.set_with_pids(key.with_pids);
    acts_.push_back({.peer = agent, .bytes = wire::framed(ask)});
  }
  return reading;
}

void StepReadings::answered(Peer agent, const wire::MeasuredOnNode& message) {
  const auto number = by_number_.find(message.number());
  if (number == by_number_.end()) return;  // it comes too late
  const auto at = readings_.find(number->second);
  Reading& reading = at->second;
  const auto open = reading.open.find(message.node());
  if (open == reading.open.end() || open->second != agent) return;
  reading.open.erase(open);
  --awaited_;
  const bool alone = reading.nodes.size() == 1;
  if (message.unable()) reading.missing.push_back(message.node());
  wire::add_figures(reading.figures, message.figures(), alone ? "" : message.node());
  if (at->first.with_pids) {
    reading.pids[message.node()].assign(message.pids().begin(), message.pids().end());
  }
  if (reading.open.empty()) finish(at);
}

void StepReadings::lost(Peer agent) {
  for (auto at = readings_.begin(); at != readings_.end();) {
    const auto reading = at++;
    const std::size_t gone = std::erase_if(reading->second.open, [&](const auto& open) {
      if (open.second != agent) return false;
      reading->second.missing.push_back(open.first);
      return true;
    });
    awaited_ -= gone;
    if (gone > 0 && reading->second.open.empty()) finish(reading);
  }
}

void StepReadings::pass_time(Moment now) {
  while (!deadlines_.empty() && deadlines_.front().first <= now) {
    const auto number = by_number_.find(deadlines_.front().second);
    deadlines_.pop_front();
    if (number == by_number_.end()) continue;
    const auto at = readings_.find(number->second);
    for (const auto& [node, agent] : at->second.open) at->second.missing.push_back(node);
    awaited_ -= at->second.open.size();
    at->second.open.clear();
    finish(at);
  }
}

std::optional<StepReadings::Moment> StepReadings::next_deadline() const {
  if (readings_.empty() || deadlines_.empty()) return std::nullopt;
  return deadlines_.front().first;
}

void StepReadings::finish(std::map<Key, Reading>::iterator at) {
  const Reading reading = std::move(at->second);
  by_number_.erase(reading.number);
  readings_.erase(at);
  if (readings_.empty()) deadlines_.clear();
  for (const Place& place : reading.places) give(place, reading);
}

void StepReadings::give(const Place& place, const Reading& reading) {
  Waiting& waiting = questions_.at(place.question);
  wire::MeasuredStep& step = *waiting.answer.mutable_asked(place.asked)->mutable_steps(place.step);
  *step.mutable_figures() = reading.figures;
  const std::set<std::string> missing(reading.missing.begin(), reading.missing.end());
  for (const std::string& node : reading.nodes) {
    if (missing.contains(node)) step.add_missing(node);
    const auto pids = reading.pids.find(node);
    if (pids == reading.pids.end()) continue;
    wire::NodePids& list = *step.add_pids();
    list.set_node(node);
    for (const std::uint32_t pid : pids->second) list.add_pids(pid);
  }
  --waiting.open;
  send_if_complete(place.question);
}

void StepReadings::send_if_complete(std::uint64_t question) {
  const auto at = questions_.find(question);
  if (at->second.open > 0) return;
  acts_.push_back(
      {.peer = at->second.peer, .bytes = wire::framed(at->second.answer), .answered = true});
  questions_.erase(at);
}

}  // namespace berth::controller
