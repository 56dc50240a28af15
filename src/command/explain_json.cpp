// The stable JSON of `berth explain --json`.
#include "command/explain_json.h"

#include <nlohmann/json.hpp>

namespace berth::command {
namespace {

using Json = nlohmann::ordered_json;
using explain::Explanation;

Json optional_text(const std::string& text) {
  return text.empty() ? Json(nullptr) : Json(text);
}

Json optional_line(int line) {
  return line > 0 ? Json(line) : Json(nullptr);
}

Json json_of(const Bits& bits) {
  Json out = Json::array();
  bits.each([&](std::size_t i) { out.push_back(i); });
  return out;
}

Json json_of(const request::Environment& env) {
  Json out = Json::object();
  for (const auto& [name, value] : env) out[name] = value;
  return out;
}

Json json_of(const explain::Refusal& error) {
  Json out;
  out["text"] = error.text;
  out["exit_code"] = error.exit_code;
  out["hint"] = error.hint;
  out["lines"] = error.lines;
  out["nearest_miss"] = optional_text(error.nearest_miss);
  return out;
}

Json json_of(const explain::Task& task) {
  Json out;
  out["rank"] = task.rank;
  out["node"] = task.node;
  out["local_id"] = task.local_id;
  out["cpu_mask"] = task.cpus.hex();
  out["bound"] = task.bound;
  out["gpus"] = json_of(task.gpus);
  out["cuda_visible_devices"] =
      task.cuda_visible_devices ? Json(*task.cuda_visible_devices) : Json(nullptr);
  out["env"] = json_of(task.env);
  if (!task.messages.empty()) out["messages"] = task.messages;
  return out;
}

Json json_of(const explain::JobNode& node) {
  Json out;
  out["name"] = node.name;
  out["cpus"] = node.cpus;
  out["cpu_mask"] = node.cpu_mask.hex();
  out["mem_mb"] = node.memory_mb;
  Json gpus = Json::array();
  Json types = Json::array();
  for (const explain::Gpu& gpu : node.gpus) {
    gpus.push_back(gpu.index);
    types.push_back(optional_text(gpu.type));
  }
  out["gpus"] = std::move(gpus);
  out["gpu_types"] = std::move(types);
  out["shards"] = node.shards;
  out["gpu_memory_mb"] = node.gpu_memory_mb;
  out["component"] = node.component;
  return out;
}

const char* kind_name(explain::StepKind kind) {
  switch (kind) {
    case explain::StepKind::step:
      return "step";
    case explain::StepKind::mpirun:
      return "mpirun";
    case explain::StepKind::local:
      return "local";
  }
  return "step";
}

const char* start_name(explain::StepStart start) {
  switch (start) {
    case explain::StepStart::at_once:
      return "at_once";
    case explain::StepStart::waits:
      return "waits";
    case explain::StepStart::refused:
      return "refused";
    case explain::StepStart::never:
      return "never";
    case explain::StepStart::unknown:
      return "unknown";
  }
  return "unknown";
}

Json json_of(const explain::Step& step) {
  Json out;
  out["id"] = step.id ? Json(*step.id) : Json(nullptr);
  out["line"] = optional_line(step.line);
  out["command"] = step.command;
  out["kind"] = kind_name(step.kind);
  out["background"] = step.background;
  out["start"] = start_name(step.start);
  out["waits_for"] = step.waits_for;
  out["waits_why"] = optional_text(step.waits_why);
  out["beside"] = step.beside;
  out["uncertain"] = step.uncertain;
  out["why_uncertain"] = optional_text(step.why_uncertain);
  out["error"] = step.error ? json_of(*step.error) : Json(nullptr);
  out["messages"] = step.messages;
  out["notes"] = step.notes;
  out["processes"] = step.processes ? Json(*step.processes) : Json(nullptr);
  Json tasks = Json::array();
  for (const explain::Task& task : step.tasks) tasks.push_back(json_of(task));
  out["tasks"] = std::move(tasks);
  out["tasks_not_listed"] = step.tasks_not_listed;
  return out;
}

const char* verdict_name(place::Verdict verdict) {
  switch (verdict) {
    case place::Verdict::now:
      return "now";
    case place::Verdict::later:
      return "later";
    case place::Verdict::pending:
      return "pending";
    case place::Verdict::never:
      return "never";
  }
  return "never";
}

Json json_of(const explain::Element& element) {
  Json out;
  out["index"] = element.index;
  out["starts"] = element.starts;
  Json nodes = Json::array();
  for (const explain::JobNode& node : element.nodes) nodes.push_back(json_of(node));
  out["nodes"] = std::move(nodes);
  out["batch"] = element.batch ? json_of(*element.batch) : Json(nullptr);
  return out;
}

Json job_json(const Explanation& explanation) {
  Json job;
  Json nodes = Json::array();
  for (const explain::JobNode& node : explanation.nodes) nodes.push_back(json_of(node));
  job["nodes"] = std::move(nodes);
  job["env"] = json_of(explanation.env);
  job["assumes_idle"] = explanation.assumes_idle;
  job["array_size"] = explanation.array_size ? Json(*explanation.array_size) : Json(nullptr);
  Json elements = Json::array();
  for (const explain::Element& element : explanation.elements) {
    elements.push_back(json_of(element));
  }
  job["elements"] = std::move(elements);
  job["batch"] = explanation.batch ? json_of(*explanation.batch) : Json(nullptr);
  return job;
}

Json json_of(const lint::Finding& finding) {
  Json out;
  out["code"] = finding.code;
  out["level"] = lint::level_name(finding.level);
  out["line"] = optional_line(finding.line);
  out["lines"] = finding.lines;
  out["text"] = finding.text;
  out["hint"] = finding.hint;
  return out;
}

}  // namespace

std::string render_json(const Explanation& explanation) {
  Json out;
  out["accepted"] = explanation.accepted;
  out["verdict"] = verdict_name(explanation.verdict);
  out["pending_reason"] = optional_text(explanation.pending_reason);
  out["error"] = explanation.error ? json_of(*explanation.error) : Json(nullptr);
  out["request"] = explanation.asks;
  out["job"] = job_json(explanation);
  Json steps = Json::array();
  for (const explain::Step& step : explanation.steps) steps.push_back(json_of(step));
  out["steps"] = std::move(steps);
  Json warnings = Json::array();
  for (const lint::Finding& finding : explanation.findings) warnings.push_back(json_of(finding));
  out["warnings"] = std::move(warnings);
  out["messages"] = explanation.messages;
  out["notes"] = explanation.notes;
  return out.dump(2, ' ', false, Json::error_handler_t::replace) + "\n";
}

}  // namespace berth::command
