#include "watch/stacks/python_opcodes.h"

namespace mprun {

const PythonOpcodes* python_opcodes(unsigned minor) {
  switch (minor) {
    case 11:
      return &kPythonOpcodes311;
    case 12:
      return &kPythonOpcodes312;
    case 13:
      return &kPythonOpcodes313;
    case 14:
      return &kPythonOpcodes314;
    case 15:
      return &kPythonOpcodes315;
    default:
      return nullptr;
  }
}

}  // namespace mprun
