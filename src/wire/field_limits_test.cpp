// Every text and every list that a user can send has a limit, and what is above it is refused.
#include "wire/field_limits.h"

#include <gtest/gtest.h>

#include <fstream>
#include <map>
#include <regex>
#include <set>
#include <sstream>

namespace berth::wire {
namespace {

struct Field {
  std::string type;
  std::string name;
  int number = 0;
  bool repeated = false;
};

/// Message → its fields, as the .proto files have them.
std::map<std::string, std::vector<Field>> written_messages() {
  std::map<std::string, std::vector<Field>> out;
  const std::regex message(R"(^\s*message (\w+) \{(.*))");
  const std::regex field(R"((repeated |optional )?([\w.]+) (\w+) = (\d+);)");
  for (const char* file : {"agent", "basic", "identity", "info", "record", "step", "submit"}) {
    std::ifstream in(std::string(BERTH_SOURCE_DIR) + "/src/wire/" + file + ".proto");
    EXPECT_TRUE(in) << file;
    std::vector<std::string> inside;
    for (std::string line; std::getline(in, line);) {
      line = line.substr(0, line.find("//"));
      std::smatch found;
      if (std::regex_search(line, found, message)) {
        inside.push_back(found[1]);
        out[inside.back()];
      }
      for (std::sregex_iterator at(line.begin(), line.end(), field), end;
           at != end && !inside.empty(); ++at) {
        out[inside.back()].push_back(
            {(*at)[2], (*at)[3], std::stoi((*at)[4]), (*at)[1] == "repeated "});
      }
      if (line.find('}') != line.npos && !inside.empty()) inside.pop_back();
    }
  }
  return out;
}

/// Of tests/hosts/matrix.txt: all that a daemon takes of somebody.
std::set<std::string> sent_by_somebody() {
  std::set<std::string> out;
  std::ifstream file(std::string(BERTH_SOURCE_DIR) + "/tests/hosts/matrix.txt");
  const std::set<std::string> senders = {"anybody",    "users",  "administrators", "clients",
                                         "new-agents", "agents", "nodes",          "local"};
  for (std::string line; std::getline(file, line);) {
    std::istringstream words(line);
    std::string name;
    std::string controller;
    std::string agent;
    if (!(words >> name >> controller >> agent) || name == "#") continue;
    if (senders.contains(controller) || senders.contains(agent)) out.insert(name);
  }
  return out;
}

TEST(FieldLimits, EveryFieldOfWhatUsersAndNodesSendHasARow) {
  const auto messages = written_messages();
  std::set<std::pair<std::string, int>> rows;
  std::set<std::string> known;
  for (const LimitedField& row : limited_fields()) {
    known.insert(std::string(row.message));
    if (!row.name.empty()) rows.insert({std::string(row.message), static_cast<int>(row.number)});
  }
  std::set<std::string> wanted = sent_by_somebody();
  EXPECT_GT(wanted.size(), 40U);
  const std::set<std::string> seen_scalars = {"uint32", "uint64", "int32",  "int64",
                                              "bool",   "double", "sint32", "sint64"};
  std::set<std::string> done;
  while (!wanted.empty()) {
    const std::string name = wanted.extract(wanted.begin()).value();
    if (!done.insert(name).second) continue;
    ASSERT_TRUE(messages.contains(name)) << name;
    EXPECT_TRUE(known.contains(name)) << name << " is not in field_limits.def";
    for (const Field& field : messages.at(name)) {
      const bool scalar = seen_scalars.contains(field.type);
      if (scalar && !field.repeated) continue;
      EXPECT_TRUE(rows.contains({name, field.number}))
          << name << "." << field.name << " has no limit in field_limits.def";
      if (!scalar && field.type != "bytes" && field.type != "string") wanted.insert(field.type);
    }
  }
}

std::string refused(const auto& message, std::size_t script = kUsualScript) {
  const auto good = check_fields(KindOf<std::decay_t<decltype(message)>>::value,
                                 message.SerializeAsString(), script);
  return good ? "" : good.error().hint;
}

TEST(FieldLimits, TheFieldItsSizeAndTheLimitAreNamed) {
  SubmitJob job;
  Asked& asked = *job.mutable_asked();
  asked.set_command("sbatch");
  asked.set_script(std::string(kUsualScript, 'x'));
  asked.add_words(std::string(128 * 1024, 'x'));
  EXPECT_EQ(refused(job), "");
  asked.mutable_script()->push_back('x');
  EXPECT_EQ(refused(job),
            "script (Asked): 4194305 bytes, at most 4194304 are taken; docs/limits.md");
  EXPECT_EQ(refused(job, kMostScript), "");
  asked.clear_script();
  asked.mutable_words(0)->push_back('x');
  EXPECT_EQ(refused(job), "words (Asked): 131073 bytes, at most 131072 are taken; docs/limits.md");
  asked.clear_words();
  asked.set_submit_line(std::string(2 << 20, 'x'));
  EXPECT_EQ(refused(job),
            "submit line (Asked): 2097152 bytes, at most 1048576 are taken; docs/limits.md");
  asked.clear_submit_line();
  for (int i = 0; i < 60; ++i) asked.add_environment()->set_value(std::string(120 << 10, 'x'));
  EXPECT_EQ(refused(job), "environment (Asked): more than 6291456 bytes in all; docs/limits.md");
}

TEST(FieldLimits, ListsAreCountedHoweverTheyAreWritten) {
  ListJobs ask;
  for (int i = 0; i < 10000; ++i) ask.add_users(70000);
  EXPECT_EQ(refused(ask), "");
  ask.add_users(1);
  EXPECT_EQ(refused(ask), "users (ListJobs): more than 10000 of them; docs/limits.md");
  // One by one instead of packed.
  std::string single;
  for (int i = 0; i < 10001; ++i) single += "\x10\x01";
  EXPECT_FALSE(check_fields(Kind::ListJobs, single));
  ask.clear_users();
  for (int i = 0; i < 10001; ++i) ask.add_ids()->set_id(1);
  EXPECT_EQ(refused(ask), "ids (ListJobs): more than 10000 of them; docs/limits.md");
}

TEST(FieldLimits, AKeyIsNoOtherFieldHereThanForProtobuf) {
  ListJobs ask;
  ask.add_ids()->set_id(1);
  const std::string part = ask.SerializeAsString();
  ASSERT_EQ(part[0], '\x0a');
  // The same field with bit 32 of its key set, which protobuf drops.
  const std::string hidden = "\x8a\x80\x80\x80\x10" + part.substr(1);
  const auto read = decode<ListJobs>(hidden);
  EXPECT_TRUE(!read || read->ids_size() == 1);
  EXPECT_FALSE(check_fields(Kind::ListJobs, hidden));
  // Its longest form that is one number for both.
  const std::string long_form = std::string("\x8a\x80\x80\x80\x00", 5) + part.substr(1);
  EXPECT_TRUE(check_fields(Kind::ListJobs, long_form));
  EXPECT_EQ(decode<ListJobs>(long_form)->ids_size(), 1);
  EXPECT_FALSE(
      check_fields(Kind::ListJobs, std::string("\x8a\x80\x80\x80\x80\x00", 6) + part.substr(1)));
  EXPECT_FALSE(check_fields(Kind::ListJobs, std::string("\x02\x00", 2)));  // field 0
}

TEST(FieldLimits, FieldsThatAreNotKnownAreMeasuredWithTheirKeys) {
  std::string texts;
  std::string numbers;
  std::string fixed;
  for (int i = 0; i < 30000; ++i) {
    texts += std::string("\xfa\x07\x00", 3);  // field 127, empty
    numbers += "\xf8\x07\x01";
    fixed += std::string("\xfd\x07\x00\x00\x00\x00", 6);
  }
  for (const std::string& many : {texts, numbers, fixed}) {
    EXPECT_FALSE(check_fields(Kind::ListJobs, many));
    EXPECT_TRUE(check_fields(Kind::ListJobs, many.substr(0, 600)));
  }
}

TEST(FieldLimits, NodesSayNoMoreThanIsKeptOfThem) {
  NodeTrouble trouble;
  trouble.set_reason(std::string(17 << 10, 'x'));
  EXPECT_EQ(refused(trouble),
            "reason (NodeTrouble): 17408 bytes, at most 16384 are taken; docs/limits.md");
  JobGpus gpus;
  for (int i = 0; i < 1025; ++i) gpus.add_gpus();
  EXPECT_EQ(refused(gpus), "gpus (JobGpus): more than 1024 of them; docs/limits.md");
  RegisterNodes nodes;
  nodes.add_nodes()->set_os(std::string(2 << 10, 'x'));
  EXPECT_EQ(refused(nodes), "os (NodeReport): 2048 bytes, at most 1024 are taken; docs/limits.md");
  nodes.clear_nodes();
  for (int i = 0; i < 131073; ++i) nodes.add_nodes();
  EXPECT_EQ(refused(nodes), "nodes (RegisterNodes): more than 131072 of them; docs/limits.md");
}

TEST(FieldLimits, WhatIsNoMessageIsRefused) {
  const std::string once = [] {
    SubmitJob job;
    job.mutable_asked()->set_command("sbatch");
    return job.SerializeAsString();
  }();
  EXPECT_TRUE(check_fields(Kind::SubmitJob, once));
  EXPECT_FALSE(check_fields(Kind::SubmitJob, once + once)) << "parts of a part are not added up";
  EXPECT_FALSE(check_fields(Kind::SubmitJob, "\x0a\xff\xff\xff\xff\x0f"));
  EXPECT_FALSE(check_fields(Kind::SubmitJob, "\x0b"));  // a group
  EXPECT_FALSE(check_fields(Kind::SubmitJob, "\xff"));
  std::string unknown = "\xfa\x07";  // field 127
  unknown += "\x80\x80\x08" + std::string(1 << 17, 'x');
  EXPECT_FALSE(check_fields(Kind::SubmitJob, unknown));
  EXPECT_TRUE(check_fields(Kind::SubmitJob, "\xfa\x07\x01x"));
  EXPECT_TRUE(check_fields(Kind::BeginJob, "\xff")) << "of a controller";
}

}  // namespace
}  // namespace berth::wire
