#include "watch/stacks/python_opcodes.h"

namespace mprun {
namespace {

using How = PythonOpcode::How;

// Lib/_opcode_metadata.py and Include/internal/pycore_opcode_metadata.h of 3.14.7.
constexpr std::array kRows314 = {
    PythonOpcodeRow{1, 1, kSubscript},                                   // BINARY_SLICE
    PythonOpcodeRow{3, 3, kBinary, 5},                                   // BINARY_OP
    PythonOpcodeRow{6, 6, kMatchException},                              // CHECK_EXC_MATCH
    PythonOpcodeRow{9, 9, kHarmless},                                    // END_FOR
    PythonOpcodeRow{12, 13, kHarmless},                                  // FORMAT_SIMPLE, FORMAT_WITH_SPEC
    PythonOpcodeRow{16, 16, kHarmless},                                  // GET_ITER
    PythonOpcodeRow{18, 18, kHarmless},                                  // GET_LEN
    PythonOpcodeRow{23, 23, kHarmless},                                  // MAKE_FUNCTION
    PythonOpcodeRow{27, 27, kHarmless},                                  // NOP
    PythonOpcodeRow{28, 28, kOtherOp, 0, How::kDropped},                 // NOT_TAKEN
    PythonOpcodeRow{29, 30, kHarmless},                                  // POP_EXCEPT, POP_ITER
    PythonOpcodeRow{31, 31, kPopTop},                                    // POP_TOP
    PythonOpcodeRow{32, 32, kHarmless},                                  // PUSH_EXC_INFO
    PythonOpcodeRow{33, 33, kPushNull},                                  // PUSH_NULL
    PythonOpcodeRow{34, 34, kReturnGenerator},                           // RETURN_GENERATOR
    PythonOpcodeRow{35, 35, kReturn},                                    // RETURN_VALUE
    PythonOpcodeRow{37, 37, kStoreSubscript},                            // STORE_SLICE
    PythonOpcodeRow{38, 38, kStoreSubscript, 1},                         // STORE_SUBSCR
    PythonOpcodeRow{39, 39, kOtherOp, 3, How::kDropped},                 // TO_BOOL
    PythonOpcodeRow{40, 41, kHarmless},                                  // UNARY_INVERT, UNARY_NEGATIVE
    PythonOpcodeRow{42, 42, kNot},                                       // UNARY_NOT
    PythonOpcodeRow{43, 43, kWithException},                             // WITH_EXCEPT_START
    PythonOpcodeRow{44, 44, kBinary, 5},                                 // BINARY_OP
    PythonOpcodeRow{46, 46, kHarmless},                                  // BUILD_LIST
    PythonOpcodeRow{47, 48, kMakesObject},                               // BUILD_MAP, BUILD_SET
    PythonOpcodeRow{49, 51, kHarmless},                                  // BUILD_SLICE, BUILD_STRING, BUILD_TUPLE
    PythonOpcodeRow{52, 52, kCall, 3, How::kCalls},                      // CALL
    PythonOpcodeRow{53, 53, kOtherOp, 0, How::kIntrinsic},               // CALL_INTRINSIC_1
    PythonOpcodeRow{55, 55, kCall, 3, How::kCalls},                      // CALL_KW
    PythonOpcodeRow{56, 56, kCompare, 1},                                // COMPARE_OP
    PythonOpcodeRow{57, 57, kContains, 1},                               // CONTAINS_OP
    PythonOpcodeRow{58, 58, kHarmless},                                  // CONVERT_VALUE
    PythonOpcodeRow{59, 59, kCopy},                                      // COPY
    PythonOpcodeRow{60, 60, kMakesObject},                               // COPY_FREE_VARS
    PythonOpcodeRow{63, 63, kHarmless},                                  // DELETE_FAST
    PythonOpcodeRow{66, 67, kMakesObject},                               // DICT_MERGE, DICT_UPDATE
    PythonOpcodeRow{69, 69, kOtherOp, 0, How::kExtendsArgument},         // EXTENDED_ARG
    PythonOpcodeRow{70, 70, kForIter, 1},                                // FOR_ITER
    PythonOpcodeRow{72, 73, kMakesObject},                               // IMPORT_FROM, IMPORT_NAME
    PythonOpcodeRow{74, 74, kHarmless},                                  // IS_OP
    PythonOpcodeRow{75, 75, kJump, 1, How::kJumpsBack},                  // JUMP_BACKWARD
    PythonOpcodeRow{76, 76, kJumpNoInterrupt, 0, How::kJumpsBack},       // JUMP_BACKWARD_NO_INTERRUPT
    PythonOpcodeRow{77, 77, kJump},                                      // JUMP_FORWARD
    PythonOpcodeRow{78, 79, kMakesObject},                               // LIST_APPEND, LIST_EXTEND
    PythonOpcodeRow{80, 80, kLoadAttribute, 9, How::kLoadsAttribute},    // LOAD_ATTR
    PythonOpcodeRow{81, 81, kHarmless},                                  // LOAD_COMMON_CONSTANT
    PythonOpcodeRow{82, 82, kLoadConst},                                 // LOAD_CONST
    PythonOpcodeRow{83, 83, kLoadDeref},                                 // LOAD_DEREF
    PythonOpcodeRow{84, 84, kLoadFast},                                  // LOAD_FAST
    PythonOpcodeRow{85, 85, kHarmless},                                  // LOAD_FAST_AND_CLEAR
    PythonOpcodeRow{86, 86, kLoadFast},                                  // LOAD_FAST_BORROW
    PythonOpcodeRow{87, 87, kLoadFast, 0, How::kLoadsTwo},               // LOAD_FAST_BORROW_LOAD_FAST_BORROW
    PythonOpcodeRow{88, 88, kLoadFast},                                  // LOAD_FAST_CHECK
    PythonOpcodeRow{89, 89, kLoadFast, 0, How::kLoadsTwo},               // LOAD_FAST_LOAD_FAST
    PythonOpcodeRow{92, 92, kLoadGlobal, 4},                             // LOAD_GLOBAL
    PythonOpcodeRow{93, 93, kLoadName},                                  // LOAD_NAME
    PythonOpcodeRow{94, 94, kLoadSmallInt},                              // LOAD_SMALL_INT
    PythonOpcodeRow{95, 95, kHarmless},                                  // LOAD_SPECIAL
    PythonOpcodeRow{96, 96, kOtherOp, 1},                                // LOAD_SUPER_ATTR
    PythonOpcodeRow{97, 98, kMakesObject},                               // MAKE_CELL, MAP_ADD
    PythonOpcodeRow{100, 100, kJumpIfFalse, 1},                          // POP_JUMP_IF_FALSE
    PythonOpcodeRow{101, 101, kJumpIfNone, 1},                           // POP_JUMP_IF_NONE
    PythonOpcodeRow{102, 102, kJumpIfNotNone, 1},                        // POP_JUMP_IF_NOT_NONE
    PythonOpcodeRow{103, 103, kJumpIfTrue, 1},                           // POP_JUMP_IF_TRUE
    PythonOpcodeRow{104, 104, kRaise},                                   // RAISE_VARARGS
    PythonOpcodeRow{105, 105, kReraise},                                 // RERAISE
    PythonOpcodeRow{106, 106, kOtherOp, 1},                              // SEND
    PythonOpcodeRow{107, 107, kMakesObject},                             // SET_ADD
    PythonOpcodeRow{108, 108, kHarmless},                                // SET_FUNCTION_ATTRIBUTE
    PythonOpcodeRow{109, 109, kMakesObject},                             // SET_UPDATE
    PythonOpcodeRow{110, 110, kStoreAttribute, 4},                       // STORE_ATTR
    PythonOpcodeRow{111, 111, kStoreDeref},                              // STORE_DEREF
    PythonOpcodeRow{112, 112, kStoreFast},                               // STORE_FAST
    PythonOpcodeRow{113, 113, kStoreFast, 0, How::kStoresAndLoads},      // STORE_FAST_LOAD_FAST
    PythonOpcodeRow{114, 114, kStoreFast, 0, How::kStoresTwo},           // STORE_FAST_STORE_FAST
    PythonOpcodeRow{115, 115, kStoreGlobal},                             // STORE_GLOBAL
    PythonOpcodeRow{116, 116, kStoreName},                               // STORE_NAME
    PythonOpcodeRow{117, 117, kSwap},                                    // SWAP
    PythonOpcodeRow{118, 118, kMakesObject},                             // UNPACK_EX
    PythonOpcodeRow{119, 119, kHarmless, 1},                             // UNPACK_SEQUENCE
    PythonOpcodeRow{120, 120, kYield},                                   // YIELD_VALUE
    PythonOpcodeRow{128, 128, kHarmless},                                // RESUME
    PythonOpcodeRow{129, 142, kBinary, 5},                               // BINARY_OP
    PythonOpcodeRow{143, 165, kCall, 3, How::kCalls},                    // CALL, CALL_KW
    PythonOpcodeRow{166, 168, kCompare, 1},                              // COMPARE_OP
    PythonOpcodeRow{169, 170, kContains, 1},                             // CONTAINS_OP
    PythonOpcodeRow{171, 174, kForIter, 1},                              // FOR_ITER
    PythonOpcodeRow{175, 176, kJump, 1, How::kJumpsBack},                // JUMP_BACKWARD
    PythonOpcodeRow{177, 189, kLoadAttribute, 9, How::kLoadsAttribute},  // LOAD_ATTR
    PythonOpcodeRow{190, 191, kLoadConst},                               // LOAD_CONST
    PythonOpcodeRow{192, 193, kLoadGlobal, 4},                           // LOAD_GLOBAL
    PythonOpcodeRow{194, 195, kOtherOp, 1},                              // LOAD_SUPER_ATTR
    PythonOpcodeRow{196, 196, kHarmless},                                // RESUME
    PythonOpcodeRow{197, 197, kOtherOp, 1},                              // SEND
    PythonOpcodeRow{198, 200, kStoreAttribute, 4},                       // STORE_ATTR
    PythonOpcodeRow{201, 202, kStoreSubscript, 1},                       // STORE_SUBSCR
    PythonOpcodeRow{203, 208, kOtherOp, 3, How::kDropped},               // TO_BOOL
    PythonOpcodeRow{209, 211, kHarmless, 1},                             // UNPACK_SEQUENCE
    PythonOpcodeRow{234, 255, kOtherOp, 0, How::kIsReplaced},            // INSTRUMENTED_ and ENTER_EXECUTOR
};

}  // namespace

const PythonOpcodes kPythonOpcodes314 = make_python_opcodes(kRows314, 5, true);

}  // namespace mprun
