#include "node.h"

#include <csignal>
#include <ctime>

#include <algorithm>
#include <cstdio>
#include <deque>
#include <filesystem>
#include <fstream>
#include <memory>
#include <queue>
#include <random>
#include <utility>
#include <variant>
#include <vector>

#include "json/json.h"
#include "record/joblog_writer.h"
#include "record/journal.h"
#include "record/results_writer.h"
#include "record/run_directory.h"
#include "record/summary.h"
#include "record/usage_writer.h"
#include "supervise/pace.h"
#include "supervise/scheduler.h"
#include "supervise/supervisor.h"

namespace mprun::simulation {
namespace {

constexpr Nanos kStart = kNanosPerSecond, kEnd = 10 * kNanosPerMilli;  // of a worker
constexpr Nanos kUsageEvery = kNanosPerSecond;
constexpr double kDeaths = 1e-5, kErrors = 1e-4;  // of the attempts at tasks

/// A counter of /proc/self/io, or a size of /proc/self/status in kB.
std::uint64_t own_figure(const char* file, const std::string& name) {
  std::ifstream lines(file);
  for (std::string line; std::getline(lines, line);) {
    if (line.rfind(name + ":", 0) == 0) return std::stoull(line.substr(name.size() + 1));
  }
  return 0;
}

std::uint64_t io(const char* name) { return own_figure("/proc/self/io", name); }

JobSpec spec_of(const NodeLoad& load) {
  JobSpec spec;
  spec.name = "large";
  spec.script = "/large.py";
  spec.function = "run";
  spec.processes = load.workers;
  spec.order = load.order;
  spec.shard = load.shard;
  spec.retries.on_error = 1;
  spec.output_dir = load.run_dir + "/shards/" + folder_of(load.shard);
  return spec;
}

struct Records {
  std::unique_ptr<ResultsWriter> results;
  std::unique_ptr<JoblogWriter> joblog;
  std::unique_ptr<Journal> journal;
  std::unique_ptr<UsageWriter> usage;
  std::unique_ptr<Summary> summary;

  void report(const JobEvent& event) const {
    for (Sink* sink :
         std::initializer_list<Sink*>{joblog.get(), results.get(), journal.get(), usage.get(), summary.get()}) {
      sink->on_event(event);
    }
  }
};

Result<Records> open_records(const JobSpec& spec, const RunDirectory& directory, const ShardTasks& tasks, Nanos wall) {
  Records records;
  auto joblog = JoblogWriter::open(directory.file("joblog.tsv"), function_command_text(spec));
  if (!joblog) return joblog.error();
  records.joblog = std::move(*joblog);
  ResultsOptions options{directory.file("results.jsonl"), spec.order, "", Durability::kNone};
  options.tasks = tasks;
  options.before_writing = [log = records.joblog.get()] { log->flush(); };
  auto results = ResultsWriter::open(options);
  if (!results) return results.error();
  records.results = std::move(*results);
  auto journal = Journal::create(directory.file(kJournalName), Provenance{});
  if (!journal) return journal.error();
  records.journal = std::move(*journal);
  records.journal->record_place("node" + folder_of(*spec.shard), "1");
  records.usage = std::make_unique<UsageWriter>(directory.file("usage.jsonl"));
  records.summary = std::make_unique<Summary>(spec, wall);
  return records;
}

class Node {
 public:
  Node(const NodeLoad& load, const JobSpec& spec, const ShardTasks& tasks, Records records)
      : load_(load),
        mine_(tasks),
        records_(std::move(records)),
        choices_(load.shard.index),
        policy_(policy_of(spec, load.counted ? tasks.size() : std::nullopt)),
        scheduler_(policy_),
        workers_(static_cast<std::size_t>(load.workers)),
        next_(tasks.begin) {
    views_.resize(workers_.size());
  }

  NodeFigures run() {
    const std::uint64_t memory = own_figure("/proc/self/status", "VmRSS");
    const std::uint64_t writes = io("syscw"), bytes = io("wchar");
    const Nanos began = read_clock(CLOCK_THREAD_CPUTIME_ID);
    post(event::Begin{});
    while (!scheduler_.over()) advance();
    pulse();
    figures_.processor_seconds = to_seconds(read_clock(CLOCK_THREAD_CPUTIME_ID) - began);
    figures_.seconds = to_seconds(now_);
    figures_.writes = io("syscw") - writes;
    figures_.bytes = io("wchar") - bytes;
    figures_.retried = scheduler_.counts().retried;
    figures_.tasks = scheduler_.counts().done();
    finish();
    figures_.memory = (own_figure("/proc/self/status", "VmHWM") - memory) * 1024;
    return figures_;
  }

 private:
  enum class What { kReady, kDone, kDeath, kGone };
  struct Moment {
    Nanos at = 0;
    int slot = 0;
    std::uint32_t life = 0;
    What what = What::kReady;
    bool operator>(const Moment& other) const { return at > other.at; }
  };
  struct Worker {
    std::deque<TaskAttempt> queue;  ///< the first one runs
    std::uint32_t life = 0;         ///< events planned for an earlier one do not happen
    Nanos began = 0;
    bool ending = false;
  };

  Worker& at(int slot) { return workers_[static_cast<std::size_t>(slot)]; }
  [[nodiscard]] Nanos wall() const { return started_ + now_; }

  void happens(Nanos in, int slot, What what) { moments_.push({now_ + in, slot, at(slot).life, what}); }

  /// Advances to the next event, or to a tick before it.
  void advance() {
    const Nanos next = moments_.empty() ? INT64_MAX : moments_.top().at;
    if (next >= next_tick_) {
      now_ = next_tick_;
      next_tick_ += kTickEvery;
      post(event::Tick{});
      if (now_ - last_usage_ >= kUsageEvery) tell_usage();
      if (now_ - last_pulse_ >= kPulseEvery) pulse();
      return;
    }
    const Moment moment = moments_.top();
    moments_.pop();
    now_ = moment.at;
    if (moment.life != at(moment.slot).life) return;
    happen(moment.slot, moment.what);
    if (has_results_ && now_ - last_pulse_ >= fresh_results_every(load_.shard.count)) pulse();
  }

  void happen(int slot, What what) {
    Worker& worker = at(slot);
    switch (what) {
      case What::kReady:
        return post(event::WorkerReady{slot});
      case What::kDone: {
        const Nanos took = now_ - worker.began;
        const bool failed = std::bernoulli_distribution(kErrors)(choices_);
        worker.queue.pop_front();
        if (!worker.queue.empty()) begin(slot);
        return post(event::TaskDone{slot, failed, took, false});
      }
      case What::kDeath:
      case What::kGone: {
        const bool died = what == What::kDeath;
        records_.report(WorkerEnded{slot, 1000 + slot, "worker", {died ? -1 : 0, died ? SIGSEGV : 0}, !died});
        const bool started = !worker.queue.empty();
        worker = Worker{{}, worker.life + 1, 0, false};
        return post(event::WorkerGone{slot, started, false});
      }
    }
  }

  void begin(int slot) {
    at(slot).began = now_;
    // Exponential: many short, some long ones.
    const double seconds = std::exponential_distribution(1 / load_.task_seconds)(choices_);
    happens(from_seconds(seconds), slot, std::bernoulli_distribution(kDeaths)(choices_) ? What::kDeath : What::kDone);
  }

  void post(const Event& event) {
    posted_.push_back(event);
    if (stepping_) return;
    stepping_ = true;
    std::vector<Action> actions;
    while (!posted_.empty()) {
      const Event next = posted_.front();
      posted_.pop_front();
      actions.clear();
      scheduler_.step(next, now_, &actions);
      ++figures_.events;
      for (const Action& action : actions) {
        ++figures_.actions[action.index()];
        std::visit([this](const auto& wanted) { perform(wanted); }, action);
      }
      std::uint64_t held = scheduler_.waiting();
      for (int slot = 0; slot < load_.workers; ++slot) held += scheduler_.in_flight(slot);
      figures_.most_held = std::max(figures_.most_held, held);
    }
    stepping_ = false;
  }

  void perform(const action::ReadInputs& wanted) {
    event::InputsRead read;
    while (read.count < wanted.count && next_ < mine_.end && next_ < load_.tasks) {
      if (!mine_.has(next_)) {
        if (read.count > 0) break;  // one answer holds consecutive inputs
      } else if (read.count++ == 0) {
        read.first = next_;
      }
      ++next_;
    }
    read.ended = inputs_ended_ = next_ >= std::min(mine_.end, load_.tasks);
    post(read);
  }
  void perform(const action::StartWorker& wanted) { happens(kStart, wanted.slot, What::kReady); }
  void perform(const action::Assign& wanted) {
    Worker& worker = at(wanted.slot);
    const bool idle = worker.queue.empty();
    worker.queue.insert(worker.queue.end(), wanted.tasks.begin(), wanted.tasks.end());
    if (idle) begin(wanted.slot);
  }
  void perform(const action::TakeBack& wanted) {
    Worker& worker = at(wanted.slot);
    const std::size_t count = worker.queue.empty() ? 0 : worker.queue.size() - 1;
    worker.queue.resize(worker.queue.size() - count);
    post(event::TakenBack{wanted.slot, static_cast<std::uint32_t>(count)});
  }
  void perform(const action::Retire& wanted) { happens(kEnd, wanted.slot, What::kGone); }
  void perform(const action::Signal& wanted) {
    ++at(wanted.slot).life;
    happens(kEnd, wanted.slot, What::kGone);
  }
  void perform(const action::EndTask& wanted) {
    static const std::string kError = R"({"type":"ValueError","message":"out of luck"})";
    const std::string input = std::to_string(wanted.task.task);
    TaskEnded ended;
    ended.task = wanted.task.task;
    ended.status = wanted.status;
    ended.input = input;
    ended.result = wanted.status == TaskStatus::kOk ? input : kError;
    ended.worker = wanted.slot;
    ended.attempt = wanted.task.attempt;
    ended.start = wall() - wanted.running;
    ended.duration = wanted.running;
    records_.report(ended);
    has_results_ = true;
    if (++unsynced_ >= ResultsWriter::kMostUnsynced) sync();
  }
  void perform(const action::HoldResult& /*wanted*/) {}  // of ranks only
  void perform(const action::RetryTask& wanted) {
    records_.report(TaskRetried{wanted.task.task, wanted.task.attempt, wanted.slot, "ValueError: out of luck",
                                wall() - wanted.running, wanted.running});
  }

  void pulse() {
    has_results_ = false;
    last_pulse_ = now_;
    Pulse pulse;
    pulse.done = scheduler_.counts().done();
    pulse.total = inputs_ended_ ? std::optional(scheduler_.counts().read) : policy_.total;
    records_.report(pulse);
    if (now_ - synced_ >= ResultsWriter::kSyncEvery) sync();
  }

  /// Like ResultsWriter, which uses the real clock.
  void sync() {
    if (unsynced_ == 0) return;
    ++figures_.syncs;
    unsynced_ = 0;
    synced_ = now_;
  }

  void tell_usage() {
    last_usage_ = now_;
    for (std::size_t slot = 0; slot < views_.size(); ++slot) {
      views_[slot].worker = static_cast<int>(slot);
      views_[slot].pid = 1;
      views_[slot].cpu = to_seconds(now_);
      views_[slot].memory = std::uint64_t{100} << 20U;
    }
    records_.report(WorkersSeen{views_, wall()});
  }

  /// Like close_records() of core/run/job_run.cc.
  void finish() {
    const std::uint64_t reads = io("syscr"), writes = io("syscw");
    records_.results->finish();
    figures_.end_reads = io("syscr") - reads;
    figures_.end_writes = io("syscw") - writes;
    records_.joblog->flush();
    const int code = scheduler_.counts().failed > 0 ? 1 : 0;
    records_.journal->end(code, to_seconds(now_), OnDisk::kLater);
    (void)records_.summary->write(load_.run_dir + "/shards/" + folder_of(load_.shard) + "/summary.json", code,
                                  to_seconds(now_), OnDisk::kLater);
  }

  NodeLoad load_;
  ShardTasks mine_;
  Records records_;
  std::mt19937_64 choices_;
  Policy policy_;
  Scheduler scheduler_;
  std::vector<Worker> workers_;
  std::vector<WorkerView> views_;
  std::priority_queue<Moment, std::vector<Moment>, std::greater<>> moments_;
  std::deque<Event> posted_;
  NodeFigures figures_;
  TaskId next_ = 0;  ///< the next input to read
  Nanos now_ = 0, next_tick_ = kTickEvery, last_pulse_ = 0, last_usage_ = 0, synced_ = 0;
  Nanos started_ = wall_now();
  std::uint64_t unsynced_ = 0;
  bool stepping_ = false, has_results_ = false, inputs_ended_ = false;
};

}  // namespace

Result<NodeFigures> simulate_node(const NodeLoad& load) {
  const JobSpec spec = spec_of(load);
  const ShardTasks tasks = tasks_of(load.shard, load.counted ? std::optional(load.tasks) : std::nullopt);
  const Json merged = {
      {"version", 1}, {"script", "large.py:run"}, {"processes", load.workers}, {"shard", to_string(load.shard)}};
  std::error_code error;
  std::filesystem::create_directories(load.run_dir, error);
  const auto directory = RunDirectory::create(spec, merged);
  if (!directory) return directory.error();
  auto records = open_records(spec, *directory, tasks, wall_now());
  if (!records) return records.error();
  return Node(load, spec, tasks, std::move(*records)).run();
}

}  // namespace mprun::simulation
