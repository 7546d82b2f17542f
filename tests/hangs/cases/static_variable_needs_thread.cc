// The constructor of a static variable starts a thread that uses the variable, and joins it.
#include <thread>

namespace {

struct Settings {
  Settings();
  int level = 1;
};

Settings& settings() {
  static Settings the_settings;
  return the_settings;
}

Settings::Settings() {
  std::thread reads([] { settings().level = 2; });  // blocks here
  reads.join();                                     // hangs here
}

}  // namespace

int main() { return settings().level - 2; }
