#include "watch/stacks/python_opcodes.h"

namespace mprun {
namespace {

using How = PythonOpcode::How;

// Lib/opcode.py and Include/opcode.h of 3.12.5. Those of two instructions in one (LOAD_FAST__LOAD_CONST) count as the
// first of them.
constexpr std::array kRows312 = {
    PythonOpcodeRow{1, 1, kPopTop},                                      // POP_TOP
    PythonOpcodeRow{2, 2, kPushNull},                                    // PUSH_NULL
    PythonOpcodeRow{4, 4, kHarmless},                                    // END_FOR
    PythonOpcodeRow{6, 8, kBinary, 1},                                   // BINARY_OP
    PythonOpcodeRow{9, 9, kHarmless},                                    // NOP
    PythonOpcodeRow{10, 10, kBinary, 1},                                 // BINARY_OP
    PythonOpcodeRow{11, 11, kHarmless},                                  // UNARY_NEGATIVE
    PythonOpcodeRow{12, 12, kNot},                                       // UNARY_NOT
    PythonOpcodeRow{13, 14, kBinary, 1},                                 // BINARY_OP
    PythonOpcodeRow{15, 15, kHarmless},                                  // UNARY_INVERT
    PythonOpcodeRow{16, 16, kBinary, 1},                                 // BINARY_OP
    PythonOpcodeRow{18, 18, kBinary, 1},                                 // BINARY_OP
    PythonOpcodeRow{19, 22, kSubscript, 1},                              // BINARY_SUBSCR
    PythonOpcodeRow{23, 24, kCall, 3, How::kCalls},                      // CALL
    PythonOpcodeRow{25, 25, kSubscript, 1},                              // BINARY_SUBSCR
    PythonOpcodeRow{26, 26, kSubscript},                                 // BINARY_SLICE
    PythonOpcodeRow{27, 27, kStoreSubscript},                            // STORE_SLICE
    PythonOpcodeRow{28, 29, kCall, 3, How::kCalls},                      // CALL
    PythonOpcodeRow{30, 30, kHarmless},                                  // GET_LEN
    PythonOpcodeRow{34, 34, kCall, 3, How::kCalls},                      // CALL
    PythonOpcodeRow{35, 35, kHarmless},                                  // PUSH_EXC_INFO
    PythonOpcodeRow{36, 36, kMatchException},                            // CHECK_EXC_MATCH
    PythonOpcodeRow{38, 48, kCall, 3, How::kCalls},                      // CALL
    PythonOpcodeRow{49, 49, kWithException},                             // WITH_EXCEPT_START
    PythonOpcodeRow{53, 53, kHarmless},                                  // BEFORE_WITH
    PythonOpcodeRow{56, 56, kCall, 3, How::kCalls},                      // CALL
    PythonOpcodeRow{57, 59, kCompare, 1},                                // COMPARE_OP
    PythonOpcodeRow{60, 60, kStoreSubscript, 1},                         // STORE_SUBSCR
    PythonOpcodeRow{62, 65, kForIter, 1},                                // FOR_ITER
    PythonOpcodeRow{66, 67, kOtherOp, 1},                                // LOAD_SUPER_ATTR
    PythonOpcodeRow{68, 68, kHarmless},                                  // GET_ITER
    PythonOpcodeRow{70, 70, kLoadAttribute, 9, How::kLoadsAttribute},    // LOAD_ATTR
    PythonOpcodeRow{72, 73, kLoadAttribute, 9, How::kLoadsAttribute},    // LOAD_ATTR
    PythonOpcodeRow{74, 74, kMakesObject},                               // LOAD_ASSERTION_ERROR
    PythonOpcodeRow{75, 75, kReturnGenerator},                           // RETURN_GENERATOR
    PythonOpcodeRow{76, 82, kLoadAttribute, 9, How::kLoadsAttribute},    // LOAD_ATTR
    PythonOpcodeRow{83, 83, kReturn},                                    // RETURN_VALUE
    PythonOpcodeRow{84, 84, kLoadConst},                                 // LOAD_CONST
    PythonOpcodeRow{86, 86, kLoadFast},                                  // LOAD_FAST
    PythonOpcodeRow{88, 88, kLoadFast},                                  // LOAD_FAST
    PythonOpcodeRow{89, 89, kHarmless},                                  // POP_EXCEPT
    PythonOpcodeRow{90, 90, kStoreName},                                 // STORE_NAME
    PythonOpcodeRow{92, 92, kHarmless, 1},                               // UNPACK_SEQUENCE
    PythonOpcodeRow{93, 93, kForIter, 1},                                // FOR_ITER
    PythonOpcodeRow{94, 94, kMakesObject},                               // UNPACK_EX
    PythonOpcodeRow{95, 95, kStoreAttribute, 4},                         // STORE_ATTR
    PythonOpcodeRow{97, 97, kStoreGlobal},                               // STORE_GLOBAL
    PythonOpcodeRow{99, 99, kSwap},                                      // SWAP
    PythonOpcodeRow{100, 100, kLoadConst},                               // LOAD_CONST
    PythonOpcodeRow{101, 101, kLoadName},                                // LOAD_NAME
    PythonOpcodeRow{102, 103, kHarmless},                                // BUILD_TUPLE, BUILD_LIST
    PythonOpcodeRow{104, 105, kMakesObject},                             // BUILD_SET, BUILD_MAP
    PythonOpcodeRow{106, 106, kLoadAttribute, 9, How::kLoadsAttribute},  // LOAD_ATTR
    PythonOpcodeRow{107, 107, kCompare, 1},                              // COMPARE_OP
    PythonOpcodeRow{108, 109, kMakesObject},                             // IMPORT_NAME, IMPORT_FROM
    PythonOpcodeRow{110, 110, kJump},                                    // JUMP_FORWARD
    PythonOpcodeRow{111, 112, kLoadGlobal, 4},                           // LOAD_GLOBAL
    PythonOpcodeRow{113, 113, kStoreAttribute, 4},                       // STORE_ATTR
    PythonOpcodeRow{114, 114, kJumpIfFalse},                             // POP_JUMP_IF_FALSE
    PythonOpcodeRow{115, 115, kJumpIfTrue},                              // POP_JUMP_IF_TRUE
    PythonOpcodeRow{116, 116, kLoadGlobal, 4},                           // LOAD_GLOBAL
    PythonOpcodeRow{117, 117, kHarmless},                                // IS_OP
    PythonOpcodeRow{118, 118, kContains},                                // CONTAINS_OP
    PythonOpcodeRow{119, 119, kReraise},                                 // RERAISE
    PythonOpcodeRow{120, 120, kCopy},                                    // COPY
    PythonOpcodeRow{121, 121, kLoadConst, 0, How::kReturnsConst},        // RETURN_CONST
    PythonOpcodeRow{122, 122, kBinary, 1},                               // BINARY_OP
    PythonOpcodeRow{123, 123, kOtherOp, 1},                              // SEND
    PythonOpcodeRow{124, 124, kLoadFast},                                // LOAD_FAST
    PythonOpcodeRow{125, 125, kStoreFast},                               // STORE_FAST
    PythonOpcodeRow{126, 126, kHarmless},                                // DELETE_FAST
    PythonOpcodeRow{127, 127, kLoadFast},                                // LOAD_FAST_CHECK
    PythonOpcodeRow{128, 128, kJumpIfNotNone},                           // POP_JUMP_IF_NOT_NONE
    PythonOpcodeRow{129, 129, kJumpIfNone},                              // POP_JUMP_IF_NONE
    PythonOpcodeRow{130, 130, kRaise},                                   // RAISE_VARARGS
    PythonOpcodeRow{132, 133, kHarmless},                                // MAKE_FUNCTION, BUILD_SLICE
    PythonOpcodeRow{134, 134, kJumpNoInterrupt, 0, How::kJumpsBack},     // JUMP_BACKWARD_NO_INTERRUPT
    PythonOpcodeRow{135, 135, kMakesObject},                             // MAKE_CELL
    PythonOpcodeRow{136, 136, kLoadClosure},                             // LOAD_CLOSURE
    PythonOpcodeRow{137, 137, kLoadDeref},                               // LOAD_DEREF
    PythonOpcodeRow{138, 138, kStoreDeref},                              // STORE_DEREF
    PythonOpcodeRow{140, 140, kJump, 0, How::kJumpsBack},                // JUMP_BACKWARD
    PythonOpcodeRow{141, 141, kOtherOp, 1},                              // LOAD_SUPER_ATTR
    PythonOpcodeRow{143, 143, kHarmless},                                // LOAD_FAST_AND_CLEAR
    PythonOpcodeRow{144, 144, kOtherOp, 0, How::kExtendsArgument},       // EXTENDED_ARG
    PythonOpcodeRow{145, 147, kMakesObject},                             // LIST_APPEND, SET_ADD, MAP_ADD
    PythonOpcodeRow{148, 148, kStoreAttribute, 4},                       // STORE_ATTR
    PythonOpcodeRow{149, 149, kMakesObject},                             // COPY_FREE_VARS
    PythonOpcodeRow{150, 150, kYield},                                   // YIELD_VALUE
    PythonOpcodeRow{151, 151, kHarmless},                                // RESUME
    PythonOpcodeRow{153, 153, kStoreAttribute, 4},                       // STORE_ATTR
    PythonOpcodeRow{154, 154, kStoreFast},                               // STORE_FAST
    PythonOpcodeRow{155, 155, kHarmless},                                // FORMAT_VALUE
    PythonOpcodeRow{156, 156, kMakesObject},                             // BUILD_CONST_KEY_MAP
    PythonOpcodeRow{157, 157, kHarmless},                                // BUILD_STRING
    PythonOpcodeRow{158, 158, kStoreFast},                               // STORE_FAST
    PythonOpcodeRow{159, 160, kStoreSubscript, 1},                       // STORE_SUBSCR
    PythonOpcodeRow{161, 161, kHarmless, 1},                             // UNPACK_SEQUENCE
    PythonOpcodeRow{162, 165, kMakesObject},                   // LIST_EXTEND, SET_UPDATE, DICT_MERGE, DICT_UPDATE
    PythonOpcodeRow{166, 167, kHarmless, 1},                   // UNPACK_SEQUENCE
    PythonOpcodeRow{168, 168, kOtherOp, 1},                    // SEND
    PythonOpcodeRow{171, 171, kCall, 3, How::kCalls},          // CALL
    PythonOpcodeRow{172, 172, kHarmless},                      // KW_NAMES
    PythonOpcodeRow{173, 173, kOtherOp, 0, How::kIntrinsic},   // CALL_INTRINSIC_1
    PythonOpcodeRow{237, 254, kOtherOp, 0, How::kIsReplaced},  // INSTRUMENTED_
};

}  // namespace

const PythonOpcodes kPythonOpcodes312 = make_python_opcodes(kRows312, 4, false);

}  // namespace mprun
