#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "json/json.h"
#include "report/doctor_report.h"

namespace mprun {
namespace {

using ::testing::ElementsAre;
using ::testing::EndsWith;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using ::testing::SizeIs;

const std::string kProcess = "process\t7\tfork\t3\t1\t/usr/bin/p\tp --x";

[[nodiscard]] std::string runtime(const std::string& what, const std::string& path = "/lib/x.so") {
  return "runtime\t7\tfork\t" + what + "\t" + path;
}

// The findings after these notes; every note must have been accepted.
[[nodiscard]] DoctorFindings findings_of(const std::vector<std::string>& texts) {
  DoctorFindings findings;
  for (const std::string& text : texts) EXPECT_TRUE(findings.take({7, "doctor", text})) << text;
  return findings;
}

// The verdict for the first runtime in a process with 3 threads that holds all of these.
[[nodiscard]] ForkVerdict verdict_with(const std::vector<std::string>& runtimes) {
  std::vector<std::string> texts{kProcess};
  for (const std::string& what : runtimes) texts.push_back(runtime(what));
  const DoctorFindings findings = findings_of(texts);
  const ExaminedProcess& process = findings.processes().at(0);
  return verdict_of(process.runtimes.at(0), process);
}

TEST(DoctorFindings, TakesWhatAProcessReports) {
  const auto findings = findings_of({"start\t/usr/bin/p", "start\t/usr/bin/p", kProcess,
                                     runtime("libgomp\tlibgomp\toff\tcan-pause\tteam", "/a\tb.so")});
  EXPECT_THAT(findings.programs(), ElementsAre("/usr/bin/p"));
  ASSERT_THAT(findings.processes(), SizeIs(1));
  const ExaminedProcess& process = findings.processes()[0];
  EXPECT_EQ(process.pid, 7);
  EXPECT_EQ(process.threads, 3U);
  EXPECT_TRUE(process.forked);
  EXPECT_EQ(process.command, "p --x");
  ASSERT_THAT(process.runtimes, SizeIs(1));
  const RuntimeCopy& copy = process.runtimes[0];
  EXPECT_EQ(copy.path, "/a\tb.so");
  EXPECT_EQ(copy.adapter_state, AdapterState::kOff);
  EXPECT_TRUE(copy.can_pause);
  EXPECT_TRUE(copy.team);
}

TEST(DoctorFindings, MergesWhatAProcessRepeats) {
  const auto findings =
      findings_of({"process\t7\tfork\t1\t1\t/usr/bin/p\tp", runtime("libgomp\tlibgomp\ton\tcan-pause\tno-team"),
                   "process\t7\texit\t4\t2\t/usr/bin/p\tp", runtime("libgomp\tlibgomp\ton\tcan-pause\tteam"),
                   runtime("libomp\t\ton\tcan-pause\tno-team", "/lib/y.so")});
  ASSERT_THAT(findings.processes(), SizeIs(1));
  const ExaminedProcess& process = findings.processes()[0];
  EXPECT_TRUE(process.forked);
  EXPECT_EQ(process.threads, 4U);
  ASSERT_THAT(process.runtimes, SizeIs(2));
  EXPECT_TRUE(process.runtimes[0].team);
}

TEST(DoctorFindings, AProgramExecutedByAnotherIsAProcessOfItsOwn) {
  const auto findings =
      findings_of({kProcess, "process\t7\texit\t1\t1\t/usr/bin/q\tq", runtime("libomp\t\ton\tcan-pause\tno-team")});
  ASSERT_THAT(findings.processes(), SizeIs(2));
  EXPECT_THAT(findings.processes()[0].runtimes, IsEmpty());
  EXPECT_THAT(findings.processes()[1].runtimes, SizeIs(1));
}

TEST(DoctorFindings, LeavesOtherNotesAlone) {
  DoctorFindings findings;
  EXPECT_FALSE(findings.take({7, "libgomp", "start\t/usr/bin/p"}));
  for (const char* text :
       {"", "start", "process\t7", "process\tx\tfork\t3\t1\tp\tp", "process\t7\tfork\t-\t1\tp\tp",
        "runtime\t7\tfork\tlibgomp", "runtime\t8\tfork\tlibgomp\tlibgomp\ton\tcan-pause\tteam\t/x"}) {
    EXPECT_FALSE(findings.take({7, "doctor", text})) << text;
  }
  EXPECT_THAT(findings.processes(), IsEmpty());
}

struct Expected {
  const char* name;
  std::vector<std::string> runtimes;
  AtFork at_fork;
  const char* words;
};

class Verdicts : public testing::TestWithParam<Expected> {};

TEST_P(Verdicts, SaysWhatHappensAtFork) {
  const ForkVerdict verdict = verdict_with(GetParam().runtimes);
  EXPECT_EQ(verdict.at_fork, GetParam().at_fork) << verdict.explanation;
  EXPECT_THAT(verdict.explanation, HasSubstr(GetParam().words));
}

const std::string kGoodGomp = "libgomp\tlibgomp\ton\tcan-pause\tteam";
const std::string kOldGomp = "libgomp\tlibgomp\ton\tcannot-pause\tteam";
const std::string kOmp = "libomp\t\ton\tcan-pause\tno-team";
const std::string kNothing = "\t\ton\tcannot-pause\tno-team";

INSTANTIATE_TEST_SUITE_P(
    Doctor, Verdicts,
    testing::Values(
        Expected{"gomp", {kGoodGomp}, AtFork::kMadeSafe, "ended before fork()"},
        Expected{"gomp_idle", {"libgomp\tlibgomp\ton\tcan-pause\tno-team"}, AtFork::kMadeSafe, "it had none"},
        Expected{"gomp_off", {"libgomp\tlibgomp\toff\tcan-pause\tteam"}, AtFork::kAtRisk, "switched off"},
        Expected{"gomp_off_idle", {"libgomp\tlibgomp\toff\tcan-pause\tno-team"}, AtFork::kSafe, "switched off"},
        Expected{"gomp_old", {kOldGomp}, AtFork::kMadeSafe, "too old"},
        Expected{
            "gomp_old_idle", {"libgomp\tlibgomp\ton\tcannot-pause\tno-team"}, AtFork::kMadeSafe, "reset in the child"},
        Expected{"omp", {kOmp}, AtFork::kSafe, "of its own"},
        Expected{"blas_pthread", {"openblas-pthread" + kNothing}, AtFork::kSafe, "of its own"},
        Expected{"blas_serial", {"openblas-serial" + kNothing}, AtFork::kSafe, "no threads"},
        Expected{"blas_gomp", {"openblas-openmp" + kNothing, kGoodGomp}, AtFork::kMadeSafe, "of libgomp"},
        Expected{"blas_old_gomp", {"openblas-openmp" + kNothing, kOldGomp}, AtFork::kMadeSafe, "too old"},
        Expected{"blas_omp", {"openblas-openmp" + kNothing, kOmp}, AtFork::kSafe, "of libomp"},
        Expected{"mkl", {"mkl" + kNothing}, AtFork::kUnclear, "MKL_NUM_THREADS=1"},
        Expected{"mkl_omp", {"mkl" + kNothing, kOmp}, AtFork::kSafe, "of libomp"},
        Expected{"mkl_layer", {"mkl" + kNothing, "mkl-sequential" + kNothing}, AtFork::kSafe, "mkl-sequential"},
        Expected{"mkl_gnu", {"mkl-gnu-thread" + kNothing, kGoodGomp}, AtFork::kMadeSafe, "of libgomp"},
        Expected{"mkl_tbb", {"mkl-tbb-thread\ttbb\ton\tcannot-pause\tno-team"}, AtFork::kMadeSafe, "tbb::finalize"},
        Expected{"tbb", {"tbb\ttbb\ton\tcannot-pause\tno-team"}, AtFork::kMadeSafe, "tbb::finalize"},
        Expected{"tbb_off", {"tbb\ttbb\toff\tcannot-pause\tno-team"}, AtFork::kAtRisk, "switched off"},
        Expected{"tbb_classic", {"tbb-classic" + kNothing}, AtFork::kUnclear, "tbb::finalize"},
        Expected{"opencv", {"opencv" + kNothing}, AtFork::kUnclear, "cv::setNumThreads(0)"},
        Expected{"opencv_by_cv2",
                 {"opencv" + kNothing, "opencv-python\topencv\ton\tcannot-pause\tno-team"},
                 AtFork::kMadeSafe,
                 "ended before fork()"},
        Expected{"torch", {"torch\ttorch\ton\tcannot-pause\tno-team"}, AtFork::kMadeSafe, "CUDA"},
        Expected{"torch_off", {"torch\ttorch\toff\tcannot-pause\tno-team"}, AtFork::kAtRisk, "switched off"},
        Expected{"mindspore", {"mindspore\tmindspore\ton\tcannot-pause\tno-team"}, AtFork::kMadeSafe, "its own"},
        Expected{"python", {"python\tpython\ton\tcannot-pause\tno-team"}, AtFork::kMadeSafe, "GIL"},
        Expected{"unknown", {"openblas" + kNothing}, AtFork::kUnclear, "not known"}),
    [](const auto& test) { return std::string(test.param.name); });

TEST(DoctorVerdict, OneThreadLosesNone) {
  const auto findings = findings_of({"process\t7\tfork\t1\t1\t/usr/bin/p\tp", runtime("tbb-classic" + kNothing)});
  const ExaminedProcess& process = findings.processes()[0];
  EXPECT_EQ(verdict_of(process.runtimes[0], process).at_fork, AtFork::kSafe);
}

TEST(DoctorText, NamesProcessRuntimeVerdictAndSum) {
  Examination examination;
  examination.subject = "p --x";
  examination.exit_code = 5;
  examination.findings =
      findings_of({"start\t/bin/sh", "start\t/usr/bin/p", kProcess, runtime(kGoodGomp, "/lib/g\x1b.so"),
                   runtime("tbb-classic" + kNothing, "/lib/t.so")});
  const std::string text = examination_text(examination);
  EXPECT_THAT(text, HasSubstr("p --x: exit code 5\n"));
  EXPECT_THAT(text, HasSubstr("pid 7: p --x\n  forked with 3 threads\n"));
  EXPECT_THAT(text, HasSubstr("made safe  libgomp  /lib/g?.so\n"));
  EXPECT_THAT(text, HasSubstr("adapter libgomp: "));
  EXPECT_THAT(text, HasSubstr("reported by /bin/sh\n"));
  EXPECT_THAT(text, EndsWith("2 runtimes: 1 made safe, 1 unclear\n"));
}

TEST(DoctorText, SaysWhenNothingWasReported) {
  Examination examination;
  EXPECT_THAT(examination_text(examination), HasSubstr("statically linked"));
  examination.findings =
      findings_of({"start\t/usr/bin/p", "process\t7\tfork\t3\t9\t/usr/bin/p\tp", runtime(kGoodGomp)});
  EXPECT_THAT(examination_text(examination), HasSubstr("8 more are missing"));
  examination.findings = findings_of({"start\t/usr/bin/p"});
  EXPECT_THAT(examination_text(examination), EndsWith("nothing that fork() could harm was found\n"));
}

TEST(DoctorJson, HasTheVerdicts) {
  Examination examination;
  examination.findings =
      findings_of({"start\t/usr/bin/p", kProcess, runtime(kGoodGomp), runtime("tbb-classic" + kNothing)});
  const Json json = examination_json(examination);
  const Json& runtimes = json["processes"][0]["runtimes"];
  EXPECT_EQ(json["version"], 1);
  EXPECT_EQ(runtimes[0]["at_fork"], "made safe");
  EXPECT_EQ(runtimes[0]["team"], true);
  EXPECT_EQ(runtimes[1]["adapter"], nullptr);
  EXPECT_FALSE(runtimes[1].contains("team"));
}

TEST(DoctorMachine, IsFitWithoutWhatItDoesNotNeed) {
  std::vector<MachineFeature> features{{"kernel", true, true, "6.1", ""},
                                       {"libomp", false, false, "not installed", "x"}};
  EXPECT_TRUE(is_fit(features));
  EXPECT_THAT(machine_text(features, ""), EndsWith("mprun can work here\n"));
  features.push_back({"pidfd_open", false, true, "no", "y"});
  EXPECT_FALSE(is_fit(features));
  EXPECT_THAT(machine_text(features, "package 0\n"), HasSubstr("\n\npackage 0\n\nmprun cannot"));
  EXPECT_EQ(machine_json(features, "package 0\n")["processors"], "package 0\n");
  EXPECT_THAT(machine_text(features, ""), EndsWith(": pidfd_open\n"));
  EXPECT_THAT(machine_text(features, ""), Not(HasSubstr(" \n")));
  EXPECT_EQ(machine_json(features, "")["machine"]["pidfd_open"]["ok"], false);
  EXPECT_EQ(machine_json(features, "")["machine"]["pidfd_open"]["limit"], nullptr);
}

TEST(DoctorMachine, SaysInWordsWhatLimitsJobs) {
  const std::vector<MachineFeature> features{{"CPUs", true, false, "2", "x", "2 CPUs: no more"},
                                             {"kernel", true, true, "6.1", ""},
                                             {"files", true, false, "9", "y", "few files"}};
  EXPECT_THAT(machine_text(features, ""),
              EndsWith("mprun can work here; what limits it:\n  * 2 CPUs: no more\n  * few files\n"));
  EXPECT_EQ(machine_json(features, "")["machine"]["CPUs"]["limit"], "2 CPUs: no more");
}

}  // namespace
}  // namespace mprun
