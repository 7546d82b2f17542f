// The table of where options have an effect, and the words generated from it.
#include "job/option_places.h"

#include <gtest/gtest.h>

#include "job/schema.h"
#include "json/json.h"

namespace mprun {
namespace {

std::string words(std::string_view option) { return only_valid_with(places_of(option) & ~kKindPlaces); }

TEST(OptionPlaces, NamesThem) {
  EXPECT_EQ(words("--json"), "is only valid with `mprun doctor` or `mprun inspect`");
  EXPECT_EQ(words("--junit"), "is only valid with `mprun run`, `mprun resume` or `mprun report`");
  EXPECT_EQ(words("--retry-failed"), "is only valid with --resume, `mprun resume` or `mprun submit`");
  EXPECT_EQ(words("/processes"),
            "is only valid with a job, `mprun -- COMMAND`, `mprun doctor SCRIPT.py` or `mprun doctor -- COMMAND`");
  EXPECT_EQ(words("/order"), "is only valid with a job");
  EXPECT_EQ(words("/shard"), "is only valid with `mprun run`, `mprun check` or `mprun resume`");
  EXPECT_EQ(only_valid_with(places_of("/on_error") & kKindPlaces), "is only valid with a function or a command");
  EXPECT_EQ(only_valid_with(places_of("/args") & kKindPlaces), "is only valid with a script");
}

TEST(OptionPlaces, KnowsMembersByTheirFields) {
  EXPECT_EQ(places_of("/watch/on_hang"), places_of("/watch"));
  EXPECT_NE(places_of("/limits/join_seconds"), places_of("/limits"));
  EXPECT_NE(places_of("/output/dir"), places_of("/output/directory"));
  EXPECT_EQ(places_of("--no-such-option"), 0U);
}

// A name that is not in the schema would never match.
TEST(OptionPlaces, NamesFieldsThatThereAre) {
  for (const Place kind : {kCommandPlace, kScriptRanksPlace, kProgramRanksPlace}) {
    EXPECT_FALSE(fields_without_effect(kind).empty());
    for (const auto& [field, only_how] : fields_without_effect(kind)) {
      std::vector<std::string> path;
      for (Json::json_pointer at(field); !at.empty(); at.pop_back()) path.insert(path.begin(), at.back());
      EXPECT_NE(job::subschema_at(job::schema_json(), path), nullptr) << field;
    }
  }
  EXPECT_TRUE(fields_without_effect(kFunctionPlace).empty());
}

}  // namespace
}  // namespace mprun
