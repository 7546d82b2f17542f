#include "watch/stacks/python_opcodes.h"

namespace mprun {
namespace {

using How = PythonOpcode::How;

// Lib/_opcode_metadata.py and Include/internal/pycore_opcode_metadata.h of 3.13.5.
constexpr std::array kRows313 = {
    PythonOpcodeRow{2, 2, kHarmless},                                    // BEFORE_WITH
    PythonOpcodeRow{3, 3, kBinary, 1},                                   // BINARY_OP
    PythonOpcodeRow{4, 4, kSubscript},                                   // BINARY_SLICE
    PythonOpcodeRow{5, 5, kSubscript, 1},                                // BINARY_SUBSCR
    PythonOpcodeRow{7, 7, kMatchException},                              // CHECK_EXC_MATCH
    PythonOpcodeRow{11, 11, kHarmless},                                  // END_FOR
    PythonOpcodeRow{14, 15, kHarmless},                                  // FORMAT_SIMPLE, FORMAT_WITH_SPEC
    PythonOpcodeRow{19, 20, kHarmless},                                  // GET_ITER, GET_LEN
    PythonOpcodeRow{23, 23, kMakesObject},                               // LOAD_ASSERTION_ERROR
    PythonOpcodeRow{26, 26, kHarmless},                                  // MAKE_FUNCTION
    PythonOpcodeRow{30, 31, kHarmless},                                  // NOP, POP_EXCEPT
    PythonOpcodeRow{32, 32, kPopTop},                                    // POP_TOP
    PythonOpcodeRow{33, 33, kHarmless},                                  // PUSH_EXC_INFO
    PythonOpcodeRow{34, 34, kPushNull},                                  // PUSH_NULL
    PythonOpcodeRow{35, 35, kReturnGenerator},                           // RETURN_GENERATOR
    PythonOpcodeRow{36, 36, kReturn},                                    // RETURN_VALUE
    PythonOpcodeRow{38, 38, kStoreSubscript},                            // STORE_SLICE
    PythonOpcodeRow{39, 39, kStoreSubscript, 1},                         // STORE_SUBSCR
    PythonOpcodeRow{40, 40, kOtherOp, 3, How::kDropped},                 // TO_BOOL
    PythonOpcodeRow{41, 42, kHarmless},                                  // UNARY_INVERT, UNARY_NEGATIVE
    PythonOpcodeRow{43, 43, kNot},                                       // UNARY_NOT
    PythonOpcodeRow{44, 44, kWithException},                             // WITH_EXCEPT_START
    PythonOpcodeRow{45, 45, kBinary, 1},                                 // BINARY_OP
    PythonOpcodeRow{46, 46, kMakesObject},                               // BUILD_CONST_KEY_MAP
    PythonOpcodeRow{47, 47, kHarmless},                                  // BUILD_LIST
    PythonOpcodeRow{48, 49, kMakesObject},                               // BUILD_MAP, BUILD_SET
    PythonOpcodeRow{50, 52, kHarmless},                                  // BUILD_SLICE, BUILD_STRING, BUILD_TUPLE
    PythonOpcodeRow{53, 53, kCall, 3, How::kCalls},                      // CALL
    PythonOpcodeRow{55, 55, kOtherOp, 0, How::kIntrinsic},               // CALL_INTRINSIC_1
    PythonOpcodeRow{57, 57, kCall, 0, How::kCalls},                      // CALL_KW
    PythonOpcodeRow{58, 58, kCompare, 1},                                // COMPARE_OP
    PythonOpcodeRow{59, 59, kContains, 1},                               // CONTAINS_OP
    PythonOpcodeRow{60, 60, kHarmless},                                  // CONVERT_VALUE
    PythonOpcodeRow{61, 61, kCopy},                                      // COPY
    PythonOpcodeRow{62, 62, kMakesObject},                               // COPY_FREE_VARS
    PythonOpcodeRow{65, 65, kHarmless},                                  // DELETE_FAST
    PythonOpcodeRow{68, 69, kMakesObject},                               // DICT_MERGE, DICT_UPDATE
    PythonOpcodeRow{70, 70, kOtherOp, 0, How::kIsReplaced},              // INSTRUMENTED_ and ENTER_EXECUTOR
    PythonOpcodeRow{71, 71, kOtherOp, 0, How::kExtendsArgument},         // EXTENDED_ARG
    PythonOpcodeRow{72, 72, kForIter, 1},                                // FOR_ITER
    PythonOpcodeRow{74, 75, kMakesObject},                               // IMPORT_FROM, IMPORT_NAME
    PythonOpcodeRow{76, 76, kHarmless},                                  // IS_OP
    PythonOpcodeRow{77, 77, kJump, 1, How::kJumpsBack},                  // JUMP_BACKWARD
    PythonOpcodeRow{78, 78, kJumpNoInterrupt, 0, How::kJumpsBack},       // JUMP_BACKWARD_NO_INTERRUPT
    PythonOpcodeRow{79, 79, kJump},                                      // JUMP_FORWARD
    PythonOpcodeRow{80, 81, kMakesObject},                               // LIST_APPEND, LIST_EXTEND
    PythonOpcodeRow{82, 82, kLoadAttribute, 9, How::kLoadsAttribute},    // LOAD_ATTR
    PythonOpcodeRow{83, 83, kLoadConst},                                 // LOAD_CONST
    PythonOpcodeRow{84, 84, kLoadDeref},                                 // LOAD_DEREF
    PythonOpcodeRow{85, 85, kLoadFast},                                  // LOAD_FAST
    PythonOpcodeRow{86, 86, kHarmless},                                  // LOAD_FAST_AND_CLEAR
    PythonOpcodeRow{87, 87, kLoadFast},                                  // LOAD_FAST_CHECK
    PythonOpcodeRow{88, 88, kLoadFast, 0, How::kLoadsTwo},               // LOAD_FAST_LOAD_FAST
    PythonOpcodeRow{91, 91, kLoadGlobal, 4},                             // LOAD_GLOBAL
    PythonOpcodeRow{92, 92, kLoadName},                                  // LOAD_NAME
    PythonOpcodeRow{93, 93, kOtherOp, 1},                                // LOAD_SUPER_ATTR
    PythonOpcodeRow{94, 95, kMakesObject},                               // MAKE_CELL, MAP_ADD
    PythonOpcodeRow{97, 97, kJumpIfFalse, 1},                            // POP_JUMP_IF_FALSE
    PythonOpcodeRow{98, 98, kJumpIfNone, 1},                             // POP_JUMP_IF_NONE
    PythonOpcodeRow{99, 99, kJumpIfNotNone, 1},                          // POP_JUMP_IF_NOT_NONE
    PythonOpcodeRow{100, 100, kJumpIfTrue, 1},                           // POP_JUMP_IF_TRUE
    PythonOpcodeRow{101, 101, kRaise},                                   // RAISE_VARARGS
    PythonOpcodeRow{102, 102, kReraise},                                 // RERAISE
    PythonOpcodeRow{103, 103, kLoadConst, 0, How::kReturnsConst},        // RETURN_CONST
    PythonOpcodeRow{104, 104, kOtherOp, 1},                              // SEND
    PythonOpcodeRow{105, 105, kMakesObject},                             // SET_ADD
    PythonOpcodeRow{106, 106, kHarmless},                                // SET_FUNCTION_ATTRIBUTE
    PythonOpcodeRow{107, 107, kMakesObject},                             // SET_UPDATE
    PythonOpcodeRow{108, 108, kStoreAttribute, 4},                       // STORE_ATTR
    PythonOpcodeRow{109, 109, kStoreDeref},                              // STORE_DEREF
    PythonOpcodeRow{110, 110, kStoreFast},                               // STORE_FAST
    PythonOpcodeRow{111, 111, kStoreFast, 0, How::kStoresAndLoads},      // STORE_FAST_LOAD_FAST
    PythonOpcodeRow{112, 112, kStoreFast, 0, How::kStoresTwo},           // STORE_FAST_STORE_FAST
    PythonOpcodeRow{113, 113, kStoreGlobal},                             // STORE_GLOBAL
    PythonOpcodeRow{114, 114, kStoreName},                               // STORE_NAME
    PythonOpcodeRow{115, 115, kSwap},                                    // SWAP
    PythonOpcodeRow{116, 116, kMakesObject},                             // UNPACK_EX
    PythonOpcodeRow{117, 117, kHarmless, 1},                             // UNPACK_SEQUENCE
    PythonOpcodeRow{118, 118, kYield},                                   // YIELD_VALUE
    PythonOpcodeRow{149, 149, kHarmless},                                // RESUME
    PythonOpcodeRow{150, 156, kBinary, 1},                               // BINARY_OP
    PythonOpcodeRow{157, 161, kSubscript, 1},                            // BINARY_SUBSCR
    PythonOpcodeRow{162, 181, kCall, 3, How::kCalls},                    // CALL
    PythonOpcodeRow{182, 184, kCompare, 1},                              // COMPARE_OP
    PythonOpcodeRow{185, 186, kContains, 1},                             // CONTAINS_OP
    PythonOpcodeRow{187, 190, kForIter, 1},                              // FOR_ITER
    PythonOpcodeRow{191, 202, kLoadAttribute, 9, How::kLoadsAttribute},  // LOAD_ATTR
    PythonOpcodeRow{203, 204, kLoadGlobal, 4},                           // LOAD_GLOBAL
    PythonOpcodeRow{205, 206, kOtherOp, 1},                              // LOAD_SUPER_ATTR
    PythonOpcodeRow{207, 207, kHarmless},                                // RESUME
    PythonOpcodeRow{208, 208, kOtherOp, 1},                              // SEND
    PythonOpcodeRow{209, 211, kStoreAttribute, 4},                       // STORE_ATTR
    PythonOpcodeRow{212, 213, kStoreSubscript, 1},                       // STORE_SUBSCR
    PythonOpcodeRow{214, 219, kOtherOp, 3, How::kDropped},               // TO_BOOL
    PythonOpcodeRow{220, 222, kHarmless, 1},                             // UNPACK_SEQUENCE
    PythonOpcodeRow{236, 254, kOtherOp, 0, How::kIsReplaced},            // INSTRUMENTED_ and ENTER_EXECUTOR
};

}  // namespace

const PythonOpcodes kPythonOpcodes313 = make_python_opcodes(kRows313, 5, true);

}  // namespace mprun
