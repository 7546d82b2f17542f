#include "watch/stacks/python_opcodes.h"

namespace mprun {
namespace {

using How = PythonOpcode::How;

// Lib/opcode.py and Include/internal/pycore_opcode.h. In memory, an instruction may have the number of one of its
// specialised forms; those of two instructions in one (LOAD_FAST__LOAD_CONST) count as the first of them.
constexpr std::array kRows311 = {
    PythonOpcodeRow{1, 1, kPopTop},                                   // POP_TOP
    PythonOpcodeRow{2, 2, kPushNull},                                 // PUSH_NULL
    PythonOpcodeRow{3, 8, kBinary, 1},                                // BINARY_OP
    PythonOpcodeRow{9, 11, kHarmless},                                // NOP, UNARY_POSITIVE, UNARY_NEGATIVE
    PythonOpcodeRow{12, 12, kNot},                                    // UNARY_NOT
    PythonOpcodeRow{13, 14, kBinary, 1},                              // BINARY_OP
    PythonOpcodeRow{15, 15, kHarmless},                               // UNARY_INVERT
    PythonOpcodeRow{16, 16, kBinary, 1},                              // BINARY_OP
    PythonOpcodeRow{17, 21, kSubscript, 4},                           // BINARY_SUBSCR
    PythonOpcodeRow{22, 24, kCall, 4},                                // CALL
    PythonOpcodeRow{25, 25, kSubscript, 4},                           // BINARY_SUBSCR
    PythonOpcodeRow{26, 29, kCompare, 2},                             // COMPARE_OP
    PythonOpcodeRow{30, 30, kHarmless},                               // GET_LEN
    PythonOpcodeRow{34, 34, kOtherOp, 0, How::kExtendsArgument},      // EXTENDED_ARG
    PythonOpcodeRow{35, 35, kHarmless},                               // PUSH_EXC_INFO
    PythonOpcodeRow{36, 36, kMatchException},                         // CHECK_EXC_MATCH
    PythonOpcodeRow{38, 38, kJump, 0, How::kJumpsBack},               // JUMP_BACKWARD
    PythonOpcodeRow{39, 43, kLoadAttribute, 4},                       // LOAD_ATTR
    PythonOpcodeRow{44, 44, kLoadConst},                              // LOAD_CONST
    PythonOpcodeRow{45, 46, kLoadFast},                               // LOAD_FAST
    PythonOpcodeRow{47, 48, kLoadGlobal, 5},                          // LOAD_GLOBAL
    PythonOpcodeRow{49, 49, kWithException},                          // WITH_EXCEPT_START
    PythonOpcodeRow{53, 53, kHarmless},                               // BEFORE_WITH
    PythonOpcodeRow{55, 55, kLoadGlobal, 5},                          // LOAD_GLOBAL
    PythonOpcodeRow{56, 59, kLoadMethod, 10},                         // LOAD_METHOD
    PythonOpcodeRow{60, 60, kStoreSubscript, 1},                      // STORE_SUBSCR
    PythonOpcodeRow{62, 63, kLoadMethod, 10},                         // LOAD_METHOD
    PythonOpcodeRow{64, 67, kPrecall, 1},                             // PRECALL
    PythonOpcodeRow{68, 68, kHarmless},                               // GET_ITER
    PythonOpcodeRow{72, 73, kPrecall, 1},                             // PRECALL
    PythonOpcodeRow{74, 74, kMakesObject},                            // LOAD_ASSERTION_ERROR
    PythonOpcodeRow{75, 75, kReturnGenerator},                        // RETURN_GENERATOR
    PythonOpcodeRow{76, 81, kPrecall, 1},                             // PRECALL
    PythonOpcodeRow{82, 82, kHarmless},                               // LIST_TO_TUPLE
    PythonOpcodeRow{83, 83, kReturn},                                 // RETURN_VALUE
    PythonOpcodeRow{86, 86, kYield},                                  // YIELD_VALUE
    PythonOpcodeRow{89, 89, kHarmless},                               // POP_EXCEPT
    PythonOpcodeRow{90, 90, kStoreName},                              // STORE_NAME
    PythonOpcodeRow{92, 92, kHarmless, 1},                            // UNPACK_SEQUENCE
    PythonOpcodeRow{93, 93, kForIter},                                // FOR_ITER
    PythonOpcodeRow{94, 94, kMakesObject},                            // UNPACK_EX
    PythonOpcodeRow{95, 95, kStoreAttribute, 4},                      // STORE_ATTR
    PythonOpcodeRow{97, 97, kStoreGlobal},                            // STORE_GLOBAL
    PythonOpcodeRow{99, 99, kSwap},                                   // SWAP
    PythonOpcodeRow{100, 100, kLoadConst},                            // LOAD_CONST
    PythonOpcodeRow{101, 101, kLoadName},                             // LOAD_NAME
    PythonOpcodeRow{102, 103, kHarmless},                             // BUILD_TUPLE, BUILD_LIST
    PythonOpcodeRow{104, 105, kMakesObject},                          // BUILD_SET, BUILD_MAP
    PythonOpcodeRow{106, 106, kLoadAttribute, 4},                     // LOAD_ATTR
    PythonOpcodeRow{107, 107, kCompare, 2},                           // COMPARE_OP
    PythonOpcodeRow{108, 109, kMakesObject},                          // IMPORT_NAME, IMPORT_FROM
    PythonOpcodeRow{110, 110, kJump},                                 // JUMP_FORWARD
    PythonOpcodeRow{111, 111, kJumpIfFalseOrPop},                     // JUMP_IF_FALSE_OR_POP
    PythonOpcodeRow{112, 112, kJumpIfTrueOrPop},                      // JUMP_IF_TRUE_OR_POP
    PythonOpcodeRow{113, 113, kPrecall, 1},                           // PRECALL
    PythonOpcodeRow{114, 114, kJumpIfFalse},                          // POP_JUMP_FORWARD_IF_FALSE
    PythonOpcodeRow{115, 115, kJumpIfTrue},                           // POP_JUMP_FORWARD_IF_TRUE
    PythonOpcodeRow{116, 116, kLoadGlobal, 5},                        // LOAD_GLOBAL
    PythonOpcodeRow{117, 117, kHarmless},                             // IS_OP
    PythonOpcodeRow{118, 118, kContains},                             // CONTAINS_OP
    PythonOpcodeRow{119, 119, kReraise},                              // RERAISE
    PythonOpcodeRow{120, 120, kCopy},                                 // COPY
    PythonOpcodeRow{121, 121, kPrecall, 1},                           // PRECALL
    PythonOpcodeRow{122, 122, kBinary, 1},                            // BINARY_OP
    PythonOpcodeRow{124, 124, kLoadFast},                             // LOAD_FAST
    PythonOpcodeRow{125, 125, kStoreFast},                            // STORE_FAST
    PythonOpcodeRow{126, 126, kHarmless},                             // DELETE_FAST
    PythonOpcodeRow{127, 127, kPrecall, 1},                           // PRECALL
    PythonOpcodeRow{128, 128, kJumpIfNotNone},                        // POP_JUMP_FORWARD_IF_NOT_NONE
    PythonOpcodeRow{129, 129, kJumpIfNone},                           // POP_JUMP_FORWARD_IF_NONE
    PythonOpcodeRow{130, 130, kRaise},                                // RAISE_VARARGS
    PythonOpcodeRow{132, 133, kHarmless},                             // MAKE_FUNCTION, BUILD_SLICE
    PythonOpcodeRow{134, 134, kJumpNoInterrupt, 0, How::kJumpsBack},  // JUMP_BACKWARD_NO_INTERRUPT
    PythonOpcodeRow{135, 135, kMakesObject},                          // MAKE_CELL
    PythonOpcodeRow{136, 136, kLoadClosure},                          // LOAD_CLOSURE
    PythonOpcodeRow{137, 137, kLoadDeref},                            // LOAD_DEREF
    PythonOpcodeRow{138, 138, kStoreDeref},                           // STORE_DEREF
    PythonOpcodeRow{140, 140, kJump, 0, How::kJumpsBack},             // JUMP_BACKWARD
    PythonOpcodeRow{141, 141, kPrecall, 1},                           // PRECALL
    PythonOpcodeRow{143, 143, kPrecall, 1},                           // PRECALL
    PythonOpcodeRow{144, 144, kOtherOp, 0, How::kExtendsArgument},    // EXTENDED_ARG
    PythonOpcodeRow{145, 147, kMakesObject},                          // LIST_APPEND, SET_ADD, MAP_ADD
    PythonOpcodeRow{149, 149, kMakesObject},                          // COPY_FREE_VARS
    PythonOpcodeRow{150, 151, kHarmless},                             // RESUME
    PythonOpcodeRow{153, 154, kStoreAttribute, 4},                    // STORE_ATTR
    PythonOpcodeRow{155, 155, kHarmless},                             // FORMAT_VALUE
    PythonOpcodeRow{156, 156, kMakesObject},                          // BUILD_CONST_KEY_MAP
    PythonOpcodeRow{157, 157, kHarmless},                             // BUILD_STRING
    PythonOpcodeRow{158, 159, kStoreAttribute, 4},                    // STORE_ATTR
    PythonOpcodeRow{160, 160, kLoadMethod, 10},                       // LOAD_METHOD
    PythonOpcodeRow{161, 161, kStoreFast},                            // STORE_FAST
    PythonOpcodeRow{162, 165, kMakesObject},                        // LIST_EXTEND, SET_UPDATE, DICT_MERGE, DICT_UPDATE
    PythonOpcodeRow{166, 166, kPrecall, 1},                         // PRECALL
    PythonOpcodeRow{167, 167, kStoreFast},                          // STORE_FAST
    PythonOpcodeRow{168, 170, kStoreSubscript, 1},                  // STORE_SUBSCR
    PythonOpcodeRow{171, 171, kCall, 4},                            // CALL
    PythonOpcodeRow{172, 172, kHarmless},                           // KW_NAMES
    PythonOpcodeRow{173, 173, kJumpIfNotNone, 0, How::kJumpsBack},  // POP_JUMP_BACKWARD_IF_NOT_NONE
    PythonOpcodeRow{174, 174, kJumpIfNone, 0, How::kJumpsBack},     // POP_JUMP_BACKWARD_IF_NONE
    PythonOpcodeRow{175, 175, kJumpIfFalse, 0, How::kJumpsBack},    // POP_JUMP_BACKWARD_IF_FALSE
    PythonOpcodeRow{176, 176, kJumpIfTrue, 0, How::kJumpsBack},     // POP_JUMP_BACKWARD_IF_TRUE
    PythonOpcodeRow{177, 180, kHarmless, 1},                        // UNPACK_SEQUENCE
};

}  // namespace

const PythonOpcodes kPythonOpcodes311 = make_python_opcodes(kRows311, 0, false);

}  // namespace mprun
