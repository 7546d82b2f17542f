// resolve(): validation messages, merging of layers, and the checks that look at files and devices.
#include "job/resolve.h"
#include "json/json.h"
#include "watch/inspect.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>

namespace mprun {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;

class JobResolve : public ::testing::Test {
 protected:
  JobResolve() {
    std::string pattern = (std::filesystem::temp_directory_path() / "mprun-resolve-XXXXXX").string();
    directory_ = mkdtemp(pattern.data());
    for (const char* name : {"bin", "dev", "cwd", "spec", "spec/data"}) {
      std::filesystem::create_directory(directory_ + "/" + name);
    }
    write("spec/train.py", 0644);
    write("spec/plain.txt", 0644);
    write("spec/program", 0755);
    write("bin/python3", 0755);
    around_.current_directory = directory_ + "/cwd";
    around_.env = {{"PATH", "/none:" + directory_ + "/bin"}};
    around_.usable_cpus = 8;
    around_.device_root = directory_ + "/dev";
  }
  ~JobResolve() override { std::filesystem::remove_all(directory_); }

  void write(const std::string& name, mode_t mode) const {
    std::ofstream(directory_ + "/" + name) << "#!/bin/sh\n";
    chmod((directory_ + "/" + name).c_str(), mode);
  }

  [[nodiscard]] Document file(const std::string& text, const std::string& name = "job.json") const {
    Result<Document> document = parse_document(name, directory_ + "/spec", text);
    EXPECT_TRUE(document) << document.error().message;
    return document ? *document : Document{};
  }
  [[nodiscard]] Document command_line(const std::string& value) const {
    Document document;
    document.name = "the command line";
    document.base_dir = around_.current_directory;
    document.value = Json::parse(value);
    for (const auto& [key, member] : document.value.items()) document.origins.emplace_back("/" + key, "--" + key);
    return document;
  }
  [[nodiscard]] Result<Resolved> resolve_all(std::vector<Document> layers) const {
    layers.insert(layers.begin(), default_layer());
    return resolve(layers, around_);
  }
  [[nodiscard]] Resolved good(const std::string& text) const {
    Result<Resolved> resolved = resolve_all({file(text)});
    EXPECT_TRUE(resolved) << resolved.error().message;
    return resolved ? *resolved : Resolved{};
  }
  [[nodiscard]] std::string refusal(const std::string& text, Fault fault = Fault::kUsage) const {
    Result<Resolved> resolved = resolve_all({file(text)});
    if (resolved) return "accepted";
    EXPECT_EQ(resolved.error().fault, fault) << resolved.error().message;
    return resolved.error().message;
  }
  /// A function job with one more field.
  [[nodiscard]] static std::string with(const std::string& field) {
    return "{\"script\": \"train.py:f\",\n\"inputs\": {\"range\": 3},\n" + field + "}";
  }

  std::string directory_;
  Surroundings around_;
};

TEST_F(JobResolve, KeepsSecretsOutOfWhatIsWritten) {
  const Resolved resolved = good(with(R"("env": {"API_TOKEN": "t0k", "my_key": "k3y", "PLAIN": "p"})"));
  EXPECT_EQ(resolved.spec.env.at("API_TOKEN"), "t0k");  // its processes receive it
  EXPECT_EQ(resolved.merged.at("env").dump(), R"({"API_TOKEN":"***","my_key":"***","PLAIN":"p"})");
  const Resolved named = good(with(R"("redact": ["PL?IN"], "env": {"API_TOKEN": "t0k", "PLAIN": "p"})"));
  EXPECT_EQ(named.merged.at("env").dump(), R"({"API_TOKEN":"t0k","PLAIN":"***"})");
  EXPECT_EQ(good(with(R"("redact": [], "env": {"API_TOKEN": "t"})")).merged.at("env").at("API_TOKEN"), "t");
}

TEST_F(JobResolve, TakesWhatWasNotKeptFromTheEnvironment) {
  around_.env["API_TOKEN"] = "anew";
  const Resolved resolved = good(with(R"("env": {"API_TOKEN": "***", "PLAIN": "***"})"));
  EXPECT_EQ(resolved.spec.env.at("API_TOKEN"), "anew");
  EXPECT_EQ(resolved.spec.env.at("PLAIN"), "***");
  EXPECT_EQ(resolved.merged.at("env").at("API_TOKEN"), "***");
  EXPECT_THAT(refusal(with(R"("env": {"OTHER_SECRET": "***"})")),
              AllOf(HasSubstr("job.json:3: /env/OTHER_SECRET: found \"***\""), HasSubstr("set OTHER_SECRET in the")));
}

TEST_F(JobResolve, NamesNoSecretInMessages) {
  EXPECT_THAT(refusal(with("\"env\": {\"API_TOKEN\": 271828}")),
              AllOf(HasSubstr("/env/API_TOKEN: found number, allowed: a text"), Not(HasSubstr("271828"))));
}

TEST_F(JobResolve, ReportsUnknownKeysWithTheNearest) {
  EXPECT_EQ(refusal("{\"script\": \"train.py\",\n\"limits\": {\n\"task_secnds\": 3}}"),
            "job.json:3: /limits/task_secnds: unknown key \"task_secnds\"\n"
            "  allowed: task_seconds, job_seconds, join_seconds, grace_seconds, heartbeat_seconds, "
            "tasks_per_worker, memory_per_worker\n"
            "  did you mean \"task_seconds\"?");
  EXPECT_THAT(refusal("{\"proceses\": 3}"),
              AllOf(StartsWith("job.json:1: /proceses: unknown key"), HasSubstr("did you mean \"processes\"?")));
  EXPECT_THAT(refusal("{\"zzzzzzzz\": 3}"), ::testing::Not(HasSubstr("did you mean")));
  EXPECT_THAT(refusal("{\"gathered\": {}}"), HasSubstr("unknown key \"gathered\""));
  EXPECT_THAT(refusal("{\"inputs\": {\"jsnol\": \"x\"}}"), HasSubstr("did you mean \"jsonl\"?"));
}

TEST_F(JobResolve, DelaysThatGrow) {
  const RetryPolicy plain = good(with("\"seed\": 1")).spec.retries;
  EXPECT_EQ(plain.backoff, 1);
  EXPECT_FALSE(plain.max_delay);
  const RetryPolicy grows =
      good(with("\"retries\": {\"delay\": 2, \"backoff\": 1.5, \"max_delay\": \"1m\"}")).spec.retries;
  EXPECT_EQ(grows.backoff, 1.5);
  EXPECT_EQ(grows.max_delay, 60);
  EXPECT_THAT(refusal(with("\"retries\": {\"delay\": \"2m\", \"max_delay\": \"1m\"}")),
              HasSubstr("/retries/max_delay: found \"1m\", which is less than \"delay\", \"2m\""));
  EXPECT_THAT(refusal(with("\"retries\": {\"backoff\": 0.5}")), HasSubstr("/retries/backoff: found 0.5, allowed"));
}

// As for torchrun, whose --max-restarts is 0 by default: only what is asked for counts.
TEST_F(JobResolve, RanksStartAgainOnlyIfAsked) {
  const auto counts = [this](const std::string& fields) {
    const RetryPolicy retries = good("{\"script\": \"train.py\"" + fields + "}").spec.retries;
    return std::array{retries.on_error, retries.on_death, retries.on_hang};
  };
  EXPECT_THAT(counts(""), ElementsAre(0, 0, 0));
  EXPECT_THAT(counts(R"(, "retries": 2)"), ElementsAre(2, 2, 2));
  EXPECT_THAT(counts(R"(, "retries": {"on_hang": 1})"), ElementsAre(0, 0, 1));
  EXPECT_THAT(counts(R"(, "retries": {"delay": 1})"), ElementsAre(0, 0, 0));
  const Resolved plain = good(R"({"script": "train.py"})");
  EXPECT_EQ(plain.merged.at("retries").at("on_death"), 0) << "a resumed run decides alike";
  const auto shown = std::find_if(plain.decisions.begin(), plain.decisions.end(),
                                  [](const Decision& decision) { return decision.field == "retries.on_death"; });
  ASSERT_NE(shown, plain.decisions.end());
  EXPECT_EQ(shown->value + " " + shown->reason, "0 the default for ranks");
}

TEST_F(JobResolve, SizesOfMemory) {
  const auto limit = [this](const std::string& size) {
    return good(with("\"limits\": {\"memory_per_worker\": " + size + "}")).spec.limits.memory_per_worker;
  };
  EXPECT_EQ(limit("1048576"), std::uint64_t{1} << 20U);
  EXPECT_EQ(limit("\"2GiB\""), std::uint64_t{2} << 30U);
  EXPECT_EQ(limit("\"1.5MiB\""), 1572864U);
  EXPECT_EQ(limit("\"500MB\""), 500'000'000U);
  EXPECT_EQ(limit("\"3TB\""), 3'000'000'000'000U);
  EXPECT_EQ(limit("\"2000000B\""), 2'000'000U);
  EXPECT_FALSE(good(with("\"seed\": 1")).spec.limits.memory_per_worker);
  for (const char* wrong : {"1", "-1", "1.5", "\"2\"", "\"2G\"", "\"GiB\"", "\"-2GiB\"", "\"999999999TiB\"", "\"1kB\"",
                            "\"2gib\"", "\"1e9B\"", "9223372036854775808", "null"}) {
    EXPECT_THAT(refusal(with("\"limits\": {\"memory_per_worker\": " + std::string(wrong) + "}")),
                HasSubstr("/limits/memory_per_worker: found "))
        << wrong;
  }
  around_.memory_bytes = std::uint64_t{1} << 30U;
  around_.memory_source = "a test";
  EXPECT_THAT(refusal(with("\"limits\": {\"memory_per_worker\": \"2GiB\"}")),
              HasSubstr("found \"2GiB\", which is more than there is: 1.0 GiB (a test)"));
}

TEST_F(JobResolve, ReportsWhatWasFoundAndWhatIsAllowed) {
  const std::string processes = ", allowed: a whole number from 1 to 4096, or \"auto\"";
  EXPECT_EQ(refusal(with("\"processes\": -2")), "job.json:3: /processes: found -2" + processes);
  EXPECT_EQ(refusal(with("\"processes\": 4.0")),
            "job.json:3: /processes: found 4.0" + processes + "\n  did you mean 4?");
  EXPECT_EQ(refusal(with("\"processes\": \"4\"")),
            "job.json:3: /processes: found \"4\"" + processes + "\n  did you mean 4 without quotes?");
  EXPECT_EQ(refusal(with("\"processes\": \"atuo\"")),
            "job.json:3: /processes: found \"atuo\"" + processes + "\n  did you mean \"auto\"?");
  EXPECT_THAT(refusal(with("\"processes\": 18446744073709551615")), HasSubstr("found 18446744073709551615, allowed"));
  EXPECT_THAT(refusal(with("\"processes\": 1e300")), HasSubstr("found 1e+300, allowed: a whole"));
  EXPECT_EQ(refusal(with("\"start_method\": \"frok\"")),
            "job.json:3: /start_method: found \"frok\", allowed: \"fork\", \"spawn\" or \"forkserver\"\n"
            "  did you mean \"fork\"?");
  EXPECT_THAT(refusal(with("\"device\": \"gpu\"")), HasSubstr("such as \"cpu\", \"cuda\", \"cuda:0\" or \"ascend\""));
  EXPECT_THAT(refusal(with("\"args\": [\"a\", 3]")),
              HasSubstr("/args/1: found 3, allowed: a text\n  did you mean \"3\"?"));
  EXPECT_THAT(refusal(with("\"env\": {\"A\": 3}")), HasSubstr("/env/A: found 3, allowed: a text"));
  EXPECT_THAT(refusal(with("\"env\": {\"A=B\": \"3\"}")), HasSubstr("found the key \"A=B\", allowed: Variables added"));
  EXPECT_THAT(refusal(with("\"env\": {\"\": \"3\"}")), HasSubstr("found the key \"\", allowed: "));
  EXPECT_THAT(refusal(with("\"version\": 2")), HasSubstr("/version: found 2, allowed: 1"));
  EXPECT_THAT(refusal(with("\"limits\": {\"task_seconds\": 0}")), HasSubstr("found 0, allowed: a number above 0"));
  EXPECT_THAT(refusal(with("\"limits\": {\"task_seconds\": \"5 min\"}")), HasSubstr("such as \"90s\", \"5m\""));
  EXPECT_THAT(refusal(with("\"limits\": {\"task_seconds\": \"0s\"}")), HasSubstr("allowed: a time above 0"));
  EXPECT_THAT(refusal(with("\"retries\": -1")),
              HasSubstr("/retries: found -1, allowed: a whole number from 0 to 1000, or"));
  EXPECT_THAT(refusal("{\"script\": null}"), HasSubstr("/script: found null, allowed: a text that is not empty"));
  EXPECT_THAT(refusal("{\"script\": \"\"}"), HasSubstr("/script: found \"\", allowed: a text that is not empty"));
}

TEST_F(JobResolve, ReportsUpToFiveFindingsInTheOrderOfTheText) {
  EXPECT_THAT(refusal("{\"seed\": -1,\n\"zz\": 1,\n\"call\": 2,\n\"args\": [1, 2, 3, 4, 5]}"),
              AllOf(StartsWith("job.json:1: /seed: found -1"), HasSubstr("\njob.json:2: /zz: unknown"),
                    HasSubstr("\njob.json:3: /call: "), HasSubstr("/args/1: "), ::testing::Not(HasSubstr("/args/2"))));
}

TEST_F(JobResolve, SurvivesHostileValues) {
  const std::string digits(200'000, '1');
  EXPECT_THAT(refusal(with("\"device\": \"cuda:" + digits + "\"")), HasSubstr("/device: found"));
  EXPECT_THAT(refusal(with("\"limits\": {\"task_seconds\": \"" + digits + "s\"}")), HasSubstr("allowed"));
  EXPECT_THAT(refusal(with("\"env\": {\"" + std::string(200'000, 'E') + "\": \"\"}")), HasSubstr("found the key"));
  EXPECT_THAT(refusal(with("\"" + std::string(200'000, 'k') + "\": 1")), HasSubstr("unknown key"));
  EXPECT_THAT(refusal(with("\"args\": [\"a\\u0000b\"]")), HasSubstr("/args/0: contains a NUL character"));
  EXPECT_LT(refusal(with("\"device\": \"" + digits + "\"")).size(), 400U);
}

TEST_F(JobResolve, TakesAnItemsArrayOfAnyLength) {
  std::string items = "0";
  for (int i = 1; i < 50'000; ++i) items += "," + std::to_string(i);
  const Resolved resolved = good("{\"script\": \"train.py:f\", \"inputs\": {\"items\": [" + items + "]}}");
  ASSERT_TRUE(std::holds_alternative<ItemsInput>(resolved.spec.inputs));
  EXPECT_EQ(std::get<ItemsInput>(resolved.spec.inputs).items->size(), 50'000U);
}

TEST_F(JobResolve, FillsTheDefaults) {
  const Resolved resolved = good("{\"script\": \"train.py:f\", \"inputs\": {\"range\": [1, 9, 2]}}");
  const JobSpec& spec = resolved.spec;
  EXPECT_EQ(spec.kind, JobKind::kFunction);
  EXPECT_EQ(spec.name, "job");
  EXPECT_EQ(spec.script, directory_ + "/spec/train.py");
  EXPECT_EQ(spec.function, "f");
  EXPECT_EQ(spec.python, directory_ + "/bin/python3");
  EXPECT_EQ(spec.start_method, StartMethod::kFork);
  EXPECT_EQ(spec.processes, 8);
  EXPECT_EQ(spec.threads_per_worker, 1);
  EXPECT_FALSE(spec.threads_explicit);
  EXPECT_EQ(spec.working_directory, around_.current_directory);
  EXPECT_EQ(std::get<RangeInput>(spec.inputs).step, 2);
  EXPECT_EQ(spec.chunk_size, std::nullopt);
  EXPECT_EQ(spec.retries.on_death, 1);
  EXPECT_EQ(spec.limits.join_seconds, 30);
  EXPECT_EQ(spec.limits.task_seconds, std::nullopt);
  EXPECT_TRUE(spec.output_dir.empty());
}

TEST_F(JobResolve, ReadsEveryPlainField) {
  const Resolved resolved = good(with(
      R"("processes": 2, "threads_per_worker": 3, "args": ["-x"], "env": {"A": "b"}, "setup": "s", "worker_setup": "w",
         "preload": ["json"], "call": "item", "chunk_size": 7, "order": "completion", "on_error": "stop",
         "max_failures": 9, "seed": 42, "progress": "never", "view": "workers", "working_directory": "data", "start_method": "spawn",
         "retries": {"on_error": 2, "delay": "250ms"}, "output": {"dir": "out", "results": "r.jsonl"},
         "limits": {"task_seconds": "1h30m", "job_seconds": 1.5, "join_seconds": "1.5s", "grace_seconds": 1,
                    "tasks_per_worker": 100})"));
  const JobSpec& spec = resolved.spec;
  EXPECT_EQ(spec.processes, 2);
  EXPECT_EQ(spec.threads_per_worker, 3);
  EXPECT_TRUE(spec.threads_explicit);
  EXPECT_THAT(spec.args, ElementsAre("-x"));
  EXPECT_EQ(spec.env.at("A"), "b");
  EXPECT_EQ(spec.setup + spec.worker_setup, "sw");
  EXPECT_THAT(spec.preload, ElementsAre("json"));
  EXPECT_EQ(spec.chunk_size, 7);
  EXPECT_EQ(spec.order, Order::kCompletion);
  EXPECT_TRUE(spec.stop_on_error);
  EXPECT_EQ(spec.max_failures, 9);
  EXPECT_EQ(spec.seed, 42U);
  EXPECT_EQ(spec.progress, ProgressMode::kNever);
  EXPECT_EQ(spec.view, ViewMode::kWorkers);
  EXPECT_EQ(spec.working_directory, directory_ + "/spec/data");
  EXPECT_EQ(spec.start_method, StartMethod::kSpawn);
  EXPECT_EQ(spec.retries.on_error, 2);
  EXPECT_EQ(spec.retries.on_death, 1);
  EXPECT_EQ(spec.retries.delay, 0.25);
  EXPECT_EQ(spec.limits.task_seconds, 5400);
  EXPECT_EQ(spec.limits.job_seconds, 1.5);
  EXPECT_EQ(spec.limits.join_seconds, 1.5);
  EXPECT_EQ(spec.limits.tasks_per_worker, 100);
  EXPECT_EQ(spec.output_dir, around_.current_directory + "/out");
  EXPECT_EQ(spec.results, around_.current_directory + "/r.jsonl");
}

TEST_F(JobResolve, MergesFourLayers) {
  Document config = file(R"({"processes": 2, "seed": 1, "limits": {"task_seconds": 1, "job_seconds": 1},
                             "env": {"A": "config", "B": "config"}, "retries": {"delay": 2}})",
                         "/home/u/.config/mprun/config.json");
  Document spec = file(
      "{\"script\": \"train.py:f\", \"inputs\": {\"items\": [1]}, \"processes\": 3, \"env\": {\"B\": "
      "\"spec\"},\n\"limits\": {\"job_seconds\": 2}, \"retries\": 3}");
  Document line = command_line(R"({"processes": 4, "inputs": {"range": 5}, "limits": {"join_seconds": 9}})");
  Result<Resolved> resolved = resolve_all({config, spec, line});
  ASSERT_TRUE(resolved) << resolved.error().message;
  EXPECT_EQ(resolved->spec.name, "job");
  EXPECT_EQ(resolved->spec.processes, 4);
  EXPECT_EQ(resolved->spec.seed, 1U);
  EXPECT_EQ(resolved->spec.limits.task_seconds, 1);
  EXPECT_EQ(resolved->spec.limits.job_seconds, 2);
  EXPECT_EQ(resolved->spec.limits.join_seconds, 9);
  EXPECT_EQ(resolved->spec.limits.grace_seconds, 5);
  EXPECT_EQ(resolved->spec.env.at("A") + resolved->spec.env.at("B"), "configspec");
  EXPECT_EQ(resolved->spec.retries.on_error, 3);
  EXPECT_EQ(resolved->spec.retries.on_death, 3);
  EXPECT_EQ(resolved->spec.retries.delay, 2);
  EXPECT_EQ(std::get<RangeInput>(resolved->spec.inputs).stop, 5);
  std::map<std::string, std::string> reasons;
  for (const Decision& decision : resolved->decisions) reasons[decision.field] = decision.reason;
  EXPECT_EQ(reasons["processes"], "the command line (--processes)");
  EXPECT_EQ(reasons["limits.job_seconds"], "job.json:2");
  EXPECT_EQ(reasons["start_method"], "the default");
  EXPECT_EQ(reasons["python"], "the default: python3 on PATH");
}

TEST_F(JobResolve, MergesNeedsByMember) {
  const Document spec =
      file(R"({"script": "train.py:f", "inputs": {"range": 9}, "needs": {"memory": "1kB", "cpus": 2}})");
  around_.memory_bytes = 10 << 20;
  const auto resolved = resolve_all({spec, command_line(R"({"needs": {"cpus": 1}})")});
  ASSERT_TRUE(resolved) << resolved.error().message;
  EXPECT_EQ(resolved->merged["needs"], (Json{{"memory", "1kB"}, {"cpus", 1}}));
}

TEST_F(JobResolve, AHigherScriptDropsALowerCommandAndTheReverse) {
  const Document command = file(R"({"command": ["echo", "{}"], "inputs": {"range": 3}})");
  const Document script = file(R"({"script": "train.py:f", "setup": "s", "inputs": {"range": 3}})");
  Result<Resolved> resolved = resolve_all({command, script});
  ASSERT_TRUE(resolved) << resolved.error().message;
  EXPECT_EQ(resolved->spec.kind, JobKind::kFunction);
  resolved = resolve_all({script, command});
  ASSERT_TRUE(resolved) << resolved.error().message;
  EXPECT_EQ(resolved->spec.kind, JobKind::kCommand);
  EXPECT_THAT(resolved->spec.command, ElementsAre("echo", "{}"));
  EXPECT_FALSE(resolved->merged.contains("script"));
  EXPECT_FALSE(resolved->merged.contains("setup"));
  EXPECT_THAT(refusal(R"({"command": ["a"], "script": "train.py"})"), HasSubstr("exclude each other"));
}

TEST_F(JobResolve, CountsCoresWithoutHyperThreads) {
  around_.read_topology = [] {
    Topology server;
    for (int core = 0; core < 4; ++core) server.cores.push_back({core / 2, core / 2, {2 * core, 2 * core + 1}});
    return server;
  };
  EXPECT_EQ(good(with(R"("hyperthreads": "off")")).spec.processes, 4);
  const JobSpec two = good(with(R"("hyperthreads": "off", "processes": 2, "binding": "numa")")).spec;
  EXPECT_EQ(two.threads_per_worker, 2);
  EXPECT_EQ(two.worker_cpus, (std::vector<CpuList>{{0, 2}, {4, 6}}));
  around_.read_topology = [] { return usage_error("no hwloc"); };
  EXPECT_THAT(refusal(with(R"("hyperthreads": "off")")), HasSubstr("/hyperthreads: found \"off\", but no hwloc"));
  EXPECT_EQ(good(with(R"("hyperthreads": "on")")).spec.processes, 8);
}

TEST_F(JobResolve, PlacesFewerWorkersAgain) {
  around_.one_memory_node = false;
  around_.read_topology = [] {
    Topology server;
    for (int core = 0; core < 8; ++core) server.cores.push_back({core / 4, core / 4, {core}});
    return server;
  };
  Resolved job = good(with(R"("seed": 1)"));
  EXPECT_EQ(job.spec.processes, 8);
  job.placing.query.workers = 2;
  ASSERT_TRUE(place(job.placing, &job.spec));
  EXPECT_EQ(job.spec.threads_per_worker, 4);
  EXPECT_EQ(job.spec.worker_cpus, (std::vector<CpuList>{{0, 1, 2, 3}, {4, 5, 6, 7}}));
}

TEST_F(JobResolve, RunsNoMoreWorkersThanNeedsAllow) {
  around_.memory_bytes = 10 << 20;
  around_.memory_source = "memory of the machine";
  const JobSpec three = good(with(R"("needs": {"cpus": 3})")).spec;
  EXPECT_EQ(three.processes, 2);
  EXPECT_EQ(three.threads_per_worker, 3);
  EXPECT_FALSE(three.threads_explicit);
  EXPECT_EQ(good(with(R"("needs": {"cpus": 3, "memory": "6MiB"})")).spec.processes, 1);
  EXPECT_EQ(good(with(R"("needs": {"cpus": 3, "memory": 1}, "threads_per_worker": 2)")).spec.threads_per_worker, 2);
  EXPECT_EQ(good(with(R"("needs": {"cpus": 1}, "processes": 3)")).spec.processes, 3);
  EXPECT_EQ(good(with(R"("needs": {})")).spec.processes, 8);

  const Resolved lowered = good(with(R"("needs": {"cpus": 4}, "processes": 3)"));
  EXPECT_EQ(lowered.spec.processes, 2);
  EXPECT_THAT(lowered.decisions, testing::Contains(testing::AllOf(
                                     testing::Field(&Decision::field, "processes"),
                                     testing::Field(&Decision::reason, HasSubstr("usable CPUs / needs.cpus")))));
  EXPECT_THAT(refusal(R"({"script": "train.py", "needs": {"cpus": 4}, "processes": 3})"),
              HasSubstr("/processes: found 3, but there is room for 2 (usable CPUs / needs.cpus)"));
  EXPECT_THAT(refusal(with(R"("needs": {"cpus": 9})")), HasSubstr("/needs/cpus: found 9, but there are only 8"));
  EXPECT_THAT(refusal(with(R"("needs": {"memory": "11MiB"})")),
              HasSubstr("/needs/memory: found \"11MiB\", but there is only 10.0 MiB (memory of the machine)"));
  EXPECT_THAT(refusal(with(R"("needs": {"memory": "0B"})")), HasSubstr("/needs/memory: found \"0B\", allowed"));
}

TEST_F(JobResolve, NamesTheMemoryNodesOfWorkers) {
  const std::string all = R"("processes": 2, "membind": "on", "interleave": "on")";
  const JobSpec small = good(with(all)).spec;
  EXPECT_THAT(small.worker_nodes, testing::IsEmpty());
  EXPECT_THAT(small.interleave_nodes, testing::IsEmpty());
  around_.one_memory_node = false;
  around_.read_topology = [] {
    Topology server;
    for (int core = 0; core < 4; ++core) server.cores.push_back({core / 2, 3 * (core / 2), {core}});
    return server;
  };
  const JobSpec server = good(with(all)).spec;
  EXPECT_EQ(server.worker_nodes, (std::vector<std::vector<int>>{{0}, {3}}));
  EXPECT_THAT(server.interleave_nodes, ElementsAre(0, 3));
  const JobSpec unbound = good(with(all + R"(, "binding": "none")")).spec;
  EXPECT_THAT(unbound.worker_nodes, testing::IsEmpty());
  EXPECT_THAT(unbound.interleave_nodes, ElementsAre(0, 3));
  EXPECT_THAT(good(with(R"("processes": 2)")).spec.worker_nodes, testing::IsEmpty());
  around_.read_topology = [] { return usage_error("no hwloc"); };
  EXPECT_THAT(refusal(with(all)), HasSubstr("/interleave: found \"on\", but no hwloc"));
}

TEST_F(JobResolve, FindsTheAllocator) {
  EXPECT_EQ(good(with(R"("allocator": "system")")).spec.allocator_library, "");
  EXPECT_THAT(refusal(with(R"("allocator": "jemalloc")")),
              AllOf(HasSubstr("/allocator: found \"jemalloc\", but the dynamic linker does not find libjemalloc.so.2"),
                    HasSubstr("install libjemalloc2")));
  around_.find_libraries = [](const std::vector<std::string>&) {
    return std::map<std::string, std::string>{{"libtcmalloc.so.4", "/lib/all"}, {"libmimalloc.so.2", "/a b/lib"}};
  };
  EXPECT_EQ(good(with(R"("allocator": "tcmalloc")")).spec.allocator_library, "/lib/all");
  EXPECT_THAT(refusal(with(R"("allocator": "mimalloc")")), HasSubstr("cannot hold the path of its library: /a b/lib"));
}

TEST_F(JobResolve, TakesHugePagesFromAPoolThatHasEnough) {
  const std::string all = R"("huge_pages": "hugetlb", "shared": {"a": {"shape": [1048577], "dtype": "int16"}})";
  EXPECT_THAT(refusal(with(all)), HasSubstr("/huge_pages: found \"hugetlb\", but this kernel has no pool"));
  around_.huge_page_bytes = 2 << 20;
  around_.free_huge_pages = 1;
  EXPECT_THAT(refusal(with(all)),
              AllOf(HasSubstr("/huge_pages: found \"hugetlb\", but the shared tensors take 2 pages of 2.0 MiB, and the "
                              "pool has 1 free"),
                    HasSubstr("sysctl vm.nr_hugepages=N")));
  around_.free_huge_pages = 2;
  around_.memory_bytes = 1;  // what is not in the pool
  const Resolved resolved = good(with(all));
  EXPECT_TRUE(resolved.spec.hugetlb);
  EXPECT_THAT(resolved.decisions,
              testing::Contains(testing::AllOf(testing::Field(&Decision::field, "huge_pages"),
                                               testing::Field(&Decision::value, "hugetlb, pages of 2.0 MiB"))));
  around_.free_huge_pages = 0;
  EXPECT_FALSE(good(with(R"("huge_pages": "hugetlb")")).spec.hugetlb);  // nothing is shared
}

TEST_F(JobResolve, WarnsOfThreadsPinnedBeforeAFork) {
  around_.env["OMP_PROC_BIND"] = "true";
  EXPECT_THAT(good(with(R"("seed": 1)")).warnings, ElementsAre(HasSubstr("OMP_PROC_BIND is set")));
  EXPECT_THAT(good(with(R"("start_method": "spawn")")).warnings, testing::IsEmpty());
  EXPECT_THAT(good(with(R"("env": {"OMP_PROC_BIND": "false"})")).warnings, testing::IsEmpty());
}

TEST_F(JobResolve, TheMergedSpecReproducesTheJob) {
  std::ofstream(directory_ + "/spec/data/lines") << "a\n";
  const Resolved first =
      good(R"({"$schema": "x", "script": "train.py:f", "inputs": {"lines": "data/lines"}, "retries": 2,
                                  "output": {"dir": "out"}})");
  Result<Document> again = parse_document("elsewhere/job.json", "/", first.merged.dump(2));
  ASSERT_TRUE(again) << again.error().message;
  Surroundings other = around_;
  other.current_directory = "/";
  other.env.clear();
  other.usable_cpus = 1;
  Result<Resolved> second = resolve({default_layer(), *again}, other);
  ASSERT_TRUE(second) << second.error().message;
  EXPECT_EQ(second->merged, first.merged);
  EXPECT_EQ(second->spec.python, first.spec.python);
  EXPECT_EQ(second->spec.processes, 8);
  EXPECT_EQ(std::get<LinesInput>(second->spec.inputs).path, directory_ + "/spec/data/lines");
}

TEST_F(JobResolve, ChecksTheScript) {
  EXPECT_THAT(refusal("{}"), AllOf(StartsWith("job.json: neither script nor command"), HasSubstr("\"script\": ")));
  EXPECT_EQ(refusal("{\"script\": \"tarin.py\"}"),
            "job.json:1: /script: no such file: " + directory_ + "/spec/tarin.py\n  did you mean \"train.py\"?");
  EXPECT_THAT(refusal("{\"script\": \"none/train.py\"}"), HasSubstr("/none does not exist"));
  EXPECT_THAT(refusal("{\"script\": \"data\"}"), HasSubstr("is a directory"));
  EXPECT_THAT(refusal("{\"script\": \"plain.txt\"}"), HasSubstr("chmod +x"));
  EXPECT_THAT(refusal("{\"script\": \"train.py:f\", \"function\": \"g\"}"), HasSubstr("but script says \"f\""));
  EXPECT_THAT(refusal("{\"script\": \"train.py:a-b\"}"), HasSubstr("the name of a function"));
  EXPECT_THAT(refusal("{\"script\": \"program\", \"function\": \"g\"}"), HasSubstr("no .py file"));
  EXPECT_THAT(refusal(with("\"setup\": \"m.f\"")), HasSubstr("without dots"));
}

TEST_F(JobResolve, ChecksWhatFitsTheKindOfJob) {
  const Resolved ranks = good("{\"script\": \"train.py\", \"processes\": 2}");
  EXPECT_EQ(ranks.spec.kind, JobKind::kRanks);
  EXPECT_TRUE(ranks.spec.script_is_python);
  const Resolved program = good("{\"script\": \"program\"}");
  EXPECT_EQ(program.spec.kind, JobKind::kRanks);
  EXPECT_TRUE(program.spec.python.empty());
  EXPECT_THAT(refusal("{\"script\": \"train.py\",\n\"inputs\": {\"range\": 3}}"),
              AllOf(StartsWith("job.json:2: /inputs: "), HasSubstr("\"function\": \"...\"")));
  EXPECT_THAT(refusal("{\"script\": \"train.py:f\"}"), HasSubstr("needs inputs"));
  EXPECT_THAT(refusal("{\"command\": [\"a\"]}"), HasSubstr("needs inputs"));
  EXPECT_THAT(refusal("{\"command\": []}"), HasSubstr("found [], allowed: a list of at least 1"));
}

// Fields by the kinds of jobs on which they have an effect, some with the value they have anyway. Those that only
// say how to run tasks,
const std::vector<std::string> kHowOfTasks = {R"("on_error": "continue")", R"("max_failures": 1)"};
const std::vector<std::string> kHowOfPython = {R"("start_method": "fork")", R"("limits": {"join_seconds": 30})",
                                               R"("output": {"pad": {"x": [3]}})", R"("output": {"tensors": "npy"})"};
const std::vector<std::string> kHowOfFunctions = {R"("chunk_size": 2)", R"("limits": {"tasks_per_worker": 1})"};
// and those that say what to run.
const std::vector<std::string> kWhatOfTasks = {R"("balance": "static")"};
const std::vector<std::string> kWhatOfPython = {R"("preload": ["m"])", R"("python": "python3")"};
const std::vector<std::string> kWhatOfFunctions = {R"("setup": "s")", R"("worker_setup": "s")", R"("call": "item")"};
const std::string kCommandJob = R"("command": ["a"], "inputs": {"range": 3})";
const std::string kScriptRanksJob = R"("script": "train.py")";
const std::string kProgramRanksJob = R"("script": "program")";

using Groups = std::vector<std::vector<std::string>>;

// The field is on the second line.
std::string job_with(const std::string& job, const std::string& field) {
  return std::string("{").append(job).append(",\n").append(field).append("}");
}

TEST_F(JobResolve, RefusesWhatIsNotRunByTheKindOfJob) {
  const std::pair<std::string, Groups> kJobs[] = {
      {kCommandJob, {kWhatOfPython, kWhatOfFunctions, {R"("args": ["x"])", R"("function": "f")"}}},
      {kScriptRanksJob, {kWhatOfTasks, kWhatOfFunctions, {R"("inputs": {"range": 3})"}}},
      {kProgramRanksJob, {kWhatOfTasks, kWhatOfPython, kWhatOfFunctions, {R"("inputs": {"range": 3})"}}},
  };
  for (const auto& [job, groups] : kJobs) {
    for (const auto& group : groups) {
      for (const std::string& field : group) {
        EXPECT_THAT(refusal(job_with(job, field)),
                    AllOf(StartsWith("job.json:2: /"), HasSubstr(": is only valid with a ")));
      }
    }
  }
  EXPECT_THAT(refusal(R"({"command": ["a"], "inputs": {"range": 3}, "args": ["x"]})"),
              HasSubstr("a script; this job is a command\n  write the arguments into the command"));
}

// Also if it has the default value: a user who sets it expects an effect.
TEST_F(JobResolve, WarnsOfFieldsThatOnlySayHowAndHaveNoEffect) {
  const std::pair<std::string, Groups> kJobs[] = {
      {kCommandJob, {kHowOfPython, kHowOfFunctions}},
      {kScriptRanksJob, {kHowOfTasks, kHowOfFunctions}},
      {kProgramRanksJob, {kHowOfTasks, kHowOfPython, kHowOfFunctions}},
  };
  for (const auto& [job, groups] : kJobs) {
    EXPECT_THAT(good("{" + job + "}").warnings, testing::IsEmpty());
    for (const auto& group : groups) {
      for (const std::string& field : group) {
        EXPECT_THAT(good(job_with(job, field)).warnings,
                    ElementsAre(AllOf(StartsWith("job.json:2: /"), HasSubstr(": is only valid with a "))));
      }
    }
  }
  EXPECT_THAT(
      good("{\"script\": \"train.py\",\n\"max_failures\": 1}").warnings,
      ElementsAre("job.json:2: /max_failures: is only valid with a function or a command; this script is without a "
                  "function: every process runs it once (ranks); it is left out"));
}

TEST_F(JobResolve, TakesAllFieldsForFunctions) {
  for (const auto& group :
       {kHowOfTasks, kHowOfPython, kHowOfFunctions, kWhatOfTasks, kWhatOfPython, kWhatOfFunctions}) {
    for (const std::string& field : group) EXPECT_THAT(good(with(field)).warnings, testing::IsEmpty()) << field;
  }
}

// The configuration serves jobs of all kinds, and any mprun may have made a record.
TEST_F(JobResolve, LeavesOutLenientFieldsWithoutAnEffect) {
  Document config = file(R"({"max_failures": 3, "setup": "s", "limits": {"tasks_per_worker": 1, "job_seconds": 9}})");
  config.lenient = true;
  const auto ranks = resolve_all({config, file("{" + kScriptRanksJob + "}")});
  ASSERT_TRUE(ranks) << ranks.error().message;
  EXPECT_FALSE(ranks->merged.contains("max_failures"));
  EXPECT_FALSE(ranks->merged.contains("setup"));
  EXPECT_EQ(ranks->merged.at("limits").value("job_seconds", 0), 9);
  EXPECT_FALSE(ranks->merged.at("limits").contains("tasks_per_worker"));
  for (const Decision& decision : ranks->decisions) EXPECT_THAT(decision.field, Not(StartsWith("max_failures")));
  Document record = file("{" + kScriptRanksJob + R"(, "max_failures": 3})");
  record.lenient = true;
  const auto silent = resolve_all({record}), warned = resolve_all({record, command_line(R"({"max_failures": 2})")});
  ASSERT_TRUE(silent && warned);
  EXPECT_THAT(silent->warnings, testing::IsEmpty());
  EXPECT_THAT(warned->warnings, ElementsAre(HasSubstr("/max_failures: is only valid with a function or a command")));
  EXPECT_FALSE(resolve_all({record, command_line(R"({"setup": "s"})")}));
}

TEST_F(JobResolve, ChecksInputs) {
  const auto inputs = [&](const std::string& text) {
    return refusal("{\"script\": \"train.py:f\",\n\"inputs\": {" + text + "}}");
  };
  EXPECT_THAT(inputs(""), HasSubstr("/inputs: found {}, allowed: an object of items"));
  EXPECT_THAT(inputs("\"batch\": 2"), HasSubstr("found no inputs, allowed: exactly one of"));
  EXPECT_THAT(inputs("\"range\": 2, \"items\": []"), HasSubstr("found \"items\" and \"range\""));
  EXPECT_THAT(inputs("\"range\": 2, \"batch\": 2"), HasSubstr("fits \"npy\" and \"safetensors\" only"));
  EXPECT_THAT(inputs("\"npy\": \"x.npy\", \"tensors\": [\"a\"]"), HasSubstr("fits \"safetensors\" only"));
  EXPECT_THAT(inputs("\"range\": [0, 4, 0]"), HasSubstr("job.json:2: /inputs/range/2: found 0"));
  EXPECT_THAT(inputs("\"range\": [0]"), HasSubstr("a list of 2 to 3"));
  EXPECT_THAT(inputs("\"range\": [0, 1.5]"), HasSubstr("/inputs/range/1: found 1.5"));
  EXPECT_THAT(inputs("\"range\": -1"), HasSubstr("found -1"));
  EXPECT_THAT(inputs("\"grid\": {}"), HasSubstr("/inputs/grid: found {}"));
  EXPECT_THAT(inputs("\"grid\": {\"a\": []}"), HasSubstr("/inputs/grid/a: found []"));
  EXPECT_THAT(inputs("\"grid\": {\"a\": 3}"), HasSubstr("/inputs/grid/a: found 3, allowed: a list"));
  EXPECT_THAT(refusal(with("\"call\": \"args\"")), HasSubstr("did you mean \"item\""));
  EXPECT_THAT(refusal("{\"script\": \"train.py:f\", \"call\": \"args\", \"inputs\": {\"items\": [[1],\n2]}}"),
              StartsWith("job.json:2: /inputs/items/1: found 2"));
  const Resolved glob = good("{\"script\": \"train.py:f\", \"inputs\": {\"glob\": \"data/*.txt\"}}");
  EXPECT_EQ(std::get<GlobInput>(glob.spec.inputs).pattern, directory_ + "/spec/data/*.txt");
}

TEST_F(JobResolve, StandardInputHasOneReaderAndNoPrompt) {
  const std::string text = "{\"script\": \"train.py:f\", \"inputs\": {\"lines\": \"-\"}}";
  EXPECT_EQ(std::get<LinesInput>(good(text).spec.inputs).path, "-");
  Result<Resolved> twice = resolve_all({file(text, kStdinName)});
  ASSERT_FALSE(twice);
  EXPECT_THAT(twice.error().message, HasSubstr("read for the job spec already"));
  around_.stdin_is_terminal = true;
  EXPECT_THAT(refusal(text), HasSubstr("pipe the lines in"));
}

TEST_F(JobResolve, FindsTheInterpreter) {
  const auto python = [&](const std::string& name) { return good(with("\"python\": \"" + name + "\"")).spec.python; };
  EXPECT_EQ(python("python3"), directory_ + "/bin/python3");
  EXPECT_EQ(python("../bin/python3"), directory_ + "/spec/../bin/python3");
  EXPECT_THAT(refusal(with("\"python\": \"python9\""), Fault::kLaunch),
              AllOf(StartsWith("job.json:3: /python: there is no \"python9\" on PATH"), HasSubstr("--python")));
  EXPECT_THAT(refusal(with("\"python\": \"./none\""), Fault::kLaunch), HasSubstr("no executable file"));
  std::filesystem::create_directories(directory_ + "/venv/bin");
  std::filesystem::create_symlink(directory_ + "/bin/python3", directory_ + "/venv/bin/python");
  around_.env["VIRTUAL_ENV"] = directory_ + "/venv";
  EXPECT_EQ(good(with("\"seed\": 1")).spec.python, directory_ + "/venv/bin/python");
  around_.env["VIRTUAL_ENV"] = directory_ + "/gone";
  EXPECT_THAT(refusal(with("\"seed\": 1"), Fault::kLaunch), HasSubstr("VIRTUAL_ENV is set"));
  around_.env = {{"PATH", "/none"}};
  EXPECT_THAT(refusal(with("\"seed\": 1"), Fault::kLaunch), HasSubstr("there is no \"python3\" on PATH"));
  EXPECT_THAT(good("{\"command\": [\"a\"], \"inputs\": {\"range\": 1}}").spec.python, "");
}

TEST_F(JobResolve, FindsTheDevices) {
  const auto device = [&](const std::string& name) {
    return with("\"start_method\": \"spawn\", \"device\": \"" + name + "\"");
  };
  EXPECT_THAT(refusal(device("cuda")), AllOf(HasSubstr("no CUDA device is usable"), HasSubstr("\"device\": \"cpu\"")));
  for (const char* name :
       {"nvidia0", "nvidia2", "nvidia10", "nvidiactl", "nvidia-uvm", "davinci1", "davinci_manager"}) {
    write(std::string("dev/") + name, 0644);
  }
  EXPECT_THAT(good(device("cuda")).spec.device.names, ElementsAre("0", "2", "10"));
  EXPECT_THAT(good(device("cuda:2")).spec.device.names, ElementsAre("2"));
  EXPECT_THAT(good(device("ascend")).spec.device.names, ElementsAre("1"));
  EXPECT_EQ(good(device("ascend")).spec.device.kind, DeviceKind::kAscend);
  EXPECT_THAT(refusal(device("cuda:1")), HasSubstr("the usable devices are 0, 2, 10"));
  EXPECT_THAT(refusal(with("\"device\": \"cuda\"")),
              AllOf(HasSubstr("--start-method spawn"), HasSubstr("cannot be re-initialised in a forked child")));
  around_.env["CUDA_VISIBLE_DEVICES"] = "10, 7,0,-1,2";
  EXPECT_THAT(good(device("cuda")).spec.device.names, ElementsAre("10", "0"));
  EXPECT_THAT(refusal(device("cuda:2")), HasSubstr("CUDA_VISIBLE_DEVICES=10, 7,0,-1,2"));
  around_.env["CUDA_VISIBLE_DEVICES"] = "GPU-1234, MIG-99,none,2";
  EXPECT_THAT(good(device("cuda")).spec.device.names, ElementsAre("GPU-1234", "MIG-99")) << "what the user may use";
  EXPECT_THAT(refusal(device("cuda:2")), HasSubstr("the usable devices are GPU-1234, MIG-99"));
  around_.env["CUDA_VISIBLE_DEVICES"] = "";
  EXPECT_THAT(refusal(device("cuda")), HasSubstr("no CUDA device is usable"));
}

TEST_F(JobResolve, RunsNoMoreWorkersThanDevicesAllow) {
  const auto needs = [&](const std::string& more) { return with("\"start_method\": \"spawn\", " + more); };
  EXPECT_THAT(refusal(needs(R"("needs": {"gpus": 1})")),
              AllOf(HasSubstr("/needs/gpus: found 1, but no CUDA device is usable"), HasSubstr("leave it out")));
  for (const char* name : {"nvidia0", "nvidia2", "nvidia3", "nvidia10", "nvidia11", "davinci1"}) {
    write(std::string("dev/") + name, 0644);
  }
  const JobSpec pairs = good(needs(R"("needs": {"gpus": 2})")).spec;
  EXPECT_EQ(pairs.device.kind, DeviceKind::kCuda);
  EXPECT_EQ(pairs.processes, 2);
  EXPECT_EQ(pairs.device.each, 2);
  EXPECT_EQ(good(needs(R"("needs": {"gpus": 1})")).spec.processes, 5);
  EXPECT_EQ(good(needs(R"("needs": {"gpus": 1, "cpus": 4})")).spec.processes, 2);
  EXPECT_EQ(good(needs(R"("needs": {"gpus": 1}, "device": "cuda:2", "processes": 9)")).spec.processes, 1);
  EXPECT_EQ(good(needs(R"("needs": {"gpus": 1}, "device": "ascend")")).spec.device.kind, DeviceKind::kAscend);
  EXPECT_THAT(refusal(needs(R"("needs": {"gpus": 6})")), HasSubstr("found 6, but there are only 5 (cuda): no task"));
  EXPECT_THAT(refusal(needs(R"("needs": {"gpus": 1}, "device": "cpu")")), HasSubstr("leave \"device\" out"));
  EXPECT_THAT(refusal(with(R"("needs": {"gpus": 1})")),
              AllOf(HasSubstr("/needs/gpus: found 1"), HasSubstr("--start-method spawn")));
  const Resolved job = good(needs(R"("needs": {"gpus": 2})"));
  EXPECT_EQ(job.merged.at("device"), "cuda");
}

TEST_F(JobResolve, ChecksDirectories) {
  EXPECT_THAT(refusal(with("\"working_directory\": \"none\"")),
              HasSubstr("no such directory: " + directory_ + "/spec/none"));
  EXPECT_THAT(refusal(with("\"working_directory\": \"train.py\"")), HasSubstr("not a directory"));
  EXPECT_THAT(refusal(with("\"output\": {\"results\": \"none/r\"}")), HasSubstr("no such directory"));
  EXPECT_THAT(refusal(with("\"output\": {\"results\": \".\"}")), HasSubstr("is a directory"));
  EXPECT_THAT(refusal(with("\"output\": {\"metrics\": \"none/m.prom\"}")), HasSubstr("no such directory"));
  EXPECT_EQ(good(with("\"output\": {\"metrics\": \"m.prom\"}")).spec.metrics, around_.current_directory + "/m.prom");
  EXPECT_THAT(refusal(with("\"output\": {\"dir\": \"../spec/train.py\"}")), HasSubstr("not a directory"));
  EXPECT_EQ(good(with("\"output\": {\"results\": \"-\"}")).spec.results, "-");
}

TEST_F(JobResolve, PathsOfTheCommandLineStartInTheCurrentDirectory) {
  write("cwd/my job.py", 0644);
  Result<Resolved> resolved = resolve_all({command_line(R"({"script": "my job.py"})")});
  ASSERT_TRUE(resolved) << resolved.error().message;
  EXPECT_EQ(resolved->spec.script, around_.current_directory + "/my job.py");
  EXPECT_EQ(resolved->spec.name, "my-job");
  resolved = resolve_all({command_line(R"({"script": "none.py", "procesess": 3})")});
  ASSERT_FALSE(resolved);
  EXPECT_THAT(resolved.error().message, StartsWith("the command line (--procesess): /procesess: unknown key"));
}

TEST_F(JobResolve, TensorsAreGatheredByDefault) {
  Result<Resolved> resolved = resolve_all({file(with("\"seed\": 1"))});
  ASSERT_TRUE(resolved) << resolved.error().message;
  EXPECT_EQ(resolved->spec.tensors, TensorFormat::kNpy);
  resolved = resolve_all({file(with(R"("output": {"tensors": "safetensors"})"))});
  ASSERT_TRUE(resolved) << resolved.error().message;
  EXPECT_EQ(resolved->spec.tensors, TensorFormat::kSafetensors);
  resolved = resolve_all({file(with(R"("output": {"tensors": "hdf5"})"))});
  ASSERT_FALSE(resolved);
  EXPECT_THAT(resolved.error().message, AllOf(HasSubstr("/output/tensors"), HasSubstr("\"safetensors\"")));
}

TEST_F(JobResolve, AShardHasAFolderBelowTheRun) {
  around_.allocation.shard = Shard{2, 3};
  around_.allocation.shard_source = "SLURM_PROCID";
  around_.allocation.run_name = "slurm-7";
  const Resolved found = good(with("\"seed\": 1"));
  EXPECT_EQ(found.merged["shard"], "3/3");
  EXPECT_EQ(found.spec.output_dir, around_.current_directory + "/runs/job/slurm-7/shards/3");
  EXPECT_EQ(found.merged["output"]["dir"], around_.current_directory + "/runs/job/slurm-7");
  const Resolved from_spec = good(with(R"("shard": "1/2", "output": {"dir": "out"})"));
  EXPECT_EQ(from_spec.spec.output_dir, around_.current_directory + "/out/shards/1");
  EXPECT_THAT(from_spec.spec.allocation.shard_source, testing::IsEmpty());
  EXPECT_THAT(refusal(with(R"("shard": "1/9999999", "output": {"dir": "out"})")),
              HasSubstr("with I from 1 to N and N at most 1000000, such as"));
  around_.allocation = {};
  EXPECT_FALSE(good(with("\"seed\": 1")).spec.shard);
  EXPECT_THAT(refusal(with(R"("shard": "3/2")")), HasSubstr("/shard"));
}

// It is the job.json of the run directory, from which the job can be rerun.
TEST_F(JobResolve, WhatWasResolvedIsAGoodSpec) {
  write("spec/in.txt", 0644);
  for (const std::string& text : {
           with("\"processes\": 2"),
           std::string(R"({"script": "train.py", "processes": 3})"),
           std::string(R"({"script": "program"})"),
           std::string(R"({"command": ["echo", "{}"], "inputs": {"range": 2}})"),
           std::string(R"({"command": ["echo", "{}"], "inputs": {"lines": "in.txt"}})"),
       }) {
    const Resolved once = good(text);
    const Result<Resolved> again = resolve_all({file(once.merged.dump())});
    ASSERT_TRUE(again) << text << "\n" << again.error().message;
    EXPECT_EQ(again->merged, once.merged) << text;
  }
}

TEST_F(JobResolve, WhatCannotBeBalancedIsRefused) {
  EXPECT_EQ(good(with(R"("seed": 1)")).spec.balance, Balance::kStatic);
  EXPECT_EQ(good(with(R"("balance": "dynamic")")).spec.balance, Balance::kDynamic);
  EXPECT_THAT(refusal(R"({"script": "train.py", "balance": "dynamic"})"),
              HasSubstr("/balance: is only valid with a function or a command"));
  for (const char* stops : {R"("on_error": "stop")", R"("max_failures": 3)"}) {
    EXPECT_THAT(refusal(with(R"("balance": "dynamic", )" + std::string(stops))),
                HasSubstr("what a shard that stops at failures"));
  }
}

TEST_F(JobResolve, TheDefaultsAreThoseOfTheSchema) {
  const Json expected = Json::parse(R"({"version": 1, "start_method": "fork", "processes": "auto", "device": "cpu",
    "redact": ["*TOKEN*", "*SECRET*", "*PASSWORD*", "*PASSWD*", "*PASSPHRASE*", "*CREDENTIAL*", "*KEY*"], "call": "item", "chunk_size": "auto", "order": "input", "durability": "batch", "on_error": "continue", "balance": "static",
    "retries": {"on_error": 0, "on_death": 1, "on_hang": 1, "delay": 0, "backoff": 1}, "limits": {"join_seconds": 30, "grace_seconds": 5, "heartbeat_seconds": 60},
    "threads_per_worker": "auto", "hyperthreads": "on", "binding": "auto", "membind": "off", "interleave": "off", "allocator": "system", "huge_pages": "transparent", "watch": {"stall_seconds": 300}, "output": {"tensors": "npy"}, "progress": "auto", "view": "summary"})");
  EXPECT_EQ(default_layer().value, expected);
  Result<Resolved> without = resolve({file(with("\"seed\": 1"))}, around_);
  ASSERT_TRUE(without) << without.error().message;
  EXPECT_EQ(without->spec.limits.join_seconds, 30);
}

TEST(Defaults, CountAsAStallWhatInspectDoes) { EXPECT_EQ(from_seconds(WatchPolicy().stall_seconds), kInspectedStall); }

}  // namespace
}  // namespace mprun
