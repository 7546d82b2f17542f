#include "watch/stacks/python_opcodes.h"

namespace mprun {
namespace {

using How = PythonOpcode::How;

// Lib/_opcode_metadata.py and Include/internal/pycore_opcode_metadata.h of 3.15.2.
constexpr std::array kRows315 = {
    PythonOpcodeRow{1, 1, kSubscript},                                   // BINARY_SLICE
    PythonOpcodeRow{3, 3, kBinary, 5},                                   // BINARY_OP
    PythonOpcodeRow{4, 4, kOtherOp, 1},                                  // CALL_FUNCTION_EX
    PythonOpcodeRow{6, 6, kMatchException},                              // CHECK_EXC_MATCH
    PythonOpcodeRow{9, 9, kHarmless},                                    // END_FOR
    PythonOpcodeRow{12, 13, kHarmless},                                  // FORMAT_SIMPLE, FORMAT_WITH_SPEC
    PythonOpcodeRow{16, 16, kHarmless},                                  // GET_LEN
    PythonOpcodeRow{21, 21, kHarmless},                                  // MAKE_FUNCTION
    PythonOpcodeRow{25, 25, kHarmless},                                  // NOP
    PythonOpcodeRow{26, 26, kOtherOp, 0, How::kDropped},                 // NOT_TAKEN
    PythonOpcodeRow{27, 28, kHarmless},                                  // POP_EXCEPT, POP_ITER
    PythonOpcodeRow{29, 29, kPopTop},                                    // POP_TOP
    PythonOpcodeRow{30, 30, kHarmless},                                  // PUSH_EXC_INFO
    PythonOpcodeRow{31, 31, kPushNull},                                  // PUSH_NULL
    PythonOpcodeRow{32, 32, kReturnGenerator},                           // RETURN_GENERATOR
    PythonOpcodeRow{33, 33, kReturn},                                    // RETURN_VALUE
    PythonOpcodeRow{35, 35, kStoreSubscript},                            // STORE_SLICE
    PythonOpcodeRow{36, 36, kStoreSubscript, 1},                         // STORE_SUBSCR
    PythonOpcodeRow{37, 37, kOtherOp, 3, How::kDropped},                 // TO_BOOL
    PythonOpcodeRow{38, 39, kHarmless},                                  // UNARY_INVERT, UNARY_NEGATIVE
    PythonOpcodeRow{40, 40, kNot},                                       // UNARY_NOT
    PythonOpcodeRow{41, 41, kWithException},                             // WITH_EXCEPT_START
    PythonOpcodeRow{42, 42, kBinary, 5},                                 // BINARY_OP
    PythonOpcodeRow{44, 44, kHarmless},                                  // BUILD_LIST
    PythonOpcodeRow{45, 46, kMakesObject},                               // BUILD_MAP, BUILD_SET
    PythonOpcodeRow{47, 49, kHarmless},                                  // BUILD_SLICE, BUILD_STRING, BUILD_TUPLE
    PythonOpcodeRow{50, 50, kCall, 3, How::kCalls},                      // CALL
    PythonOpcodeRow{51, 51, kOtherOp, 0, How::kIntrinsic},               // CALL_INTRINSIC_1
    PythonOpcodeRow{53, 53, kCall, 3, How::kCalls},                      // CALL_KW
    PythonOpcodeRow{54, 54, kCompare, 1},                                // COMPARE_OP
    PythonOpcodeRow{55, 55, kContains, 1},                               // CONTAINS_OP
    PythonOpcodeRow{56, 56, kHarmless},                                  // CONVERT_VALUE
    PythonOpcodeRow{57, 57, kCopy},                                      // COPY
    PythonOpcodeRow{58, 58, kMakesObject},                               // COPY_FREE_VARS
    PythonOpcodeRow{61, 61, kHarmless},                                  // DELETE_FAST
    PythonOpcodeRow{64, 65, kMakesObject},                               // DICT_MERGE, DICT_UPDATE
    PythonOpcodeRow{67, 67, kOtherOp, 0, How::kExtendsArgument},         // EXTENDED_ARG
    PythonOpcodeRow{68, 68, kForIter, 1},                                // FOR_ITER
    PythonOpcodeRow{70, 70, kHarmless, 1},                               // GET_ITER
    PythonOpcodeRow{71, 72, kMakesObject},                               // IMPORT_FROM, IMPORT_NAME
    PythonOpcodeRow{73, 73, kHarmless},                                  // IS_OP
    PythonOpcodeRow{74, 74, kJump, 1, How::kJumpsBack},                  // JUMP_BACKWARD
    PythonOpcodeRow{75, 75, kJumpNoInterrupt, 0, How::kJumpsBack},       // JUMP_BACKWARD_NO_INTERRUPT
    PythonOpcodeRow{76, 76, kJump},                                      // JUMP_FORWARD
    PythonOpcodeRow{77, 78, kMakesObject},                               // LIST_APPEND, LIST_EXTEND
    PythonOpcodeRow{79, 79, kLoadAttribute, 9, How::kLoadsAttribute},    // LOAD_ATTR
    PythonOpcodeRow{80, 80, kHarmless},                                  // LOAD_COMMON_CONSTANT
    PythonOpcodeRow{81, 81, kLoadConst},                                 // LOAD_CONST
    PythonOpcodeRow{82, 82, kLoadDeref},                                 // LOAD_DEREF
    PythonOpcodeRow{83, 83, kLoadFast},                                  // LOAD_FAST
    PythonOpcodeRow{84, 84, kHarmless},                                  // LOAD_FAST_AND_CLEAR
    PythonOpcodeRow{85, 85, kLoadFast},                                  // LOAD_FAST_BORROW
    PythonOpcodeRow{86, 86, kLoadFast, 0, How::kLoadsTwo},               // LOAD_FAST_BORROW_LOAD_FAST_BORROW
    PythonOpcodeRow{87, 87, kLoadFast},                                  // LOAD_FAST_CHECK
    PythonOpcodeRow{88, 88, kLoadFast, 0, How::kLoadsTwo},               // LOAD_FAST_LOAD_FAST
    PythonOpcodeRow{91, 91, kLoadGlobal, 4},                             // LOAD_GLOBAL
    PythonOpcodeRow{92, 92, kLoadName},                                  // LOAD_NAME
    PythonOpcodeRow{93, 93, kLoadSmallInt},                              // LOAD_SMALL_INT
    PythonOpcodeRow{94, 94, kHarmless},                                  // LOAD_SPECIAL
    PythonOpcodeRow{95, 95, kOtherOp, 1},                                // LOAD_SUPER_ATTR
    PythonOpcodeRow{96, 97, kMakesObject},                               // MAKE_CELL, MAP_ADD
    PythonOpcodeRow{99, 99, kJumpIfFalse, 1},                            // POP_JUMP_IF_FALSE
    PythonOpcodeRow{100, 100, kJumpIfNone, 1},                           // POP_JUMP_IF_NONE
    PythonOpcodeRow{101, 101, kJumpIfNotNone, 1},                        // POP_JUMP_IF_NOT_NONE
    PythonOpcodeRow{102, 102, kJumpIfTrue, 1},                           // POP_JUMP_IF_TRUE
    PythonOpcodeRow{103, 103, kRaise},                                   // RAISE_VARARGS
    PythonOpcodeRow{104, 104, kReraise},                                 // RERAISE
    PythonOpcodeRow{105, 105, kOtherOp, 1},                              // SEND
    PythonOpcodeRow{106, 106, kMakesObject},                             // SET_ADD
    PythonOpcodeRow{107, 107, kHarmless},                                // SET_FUNCTION_ATTRIBUTE
    PythonOpcodeRow{108, 108, kMakesObject},                             // SET_UPDATE
    PythonOpcodeRow{109, 109, kStoreAttribute, 4},                       // STORE_ATTR
    PythonOpcodeRow{110, 110, kStoreDeref},                              // STORE_DEREF
    PythonOpcodeRow{111, 111, kStoreFast},                               // STORE_FAST
    PythonOpcodeRow{112, 112, kStoreFast, 0, How::kStoresAndLoads},      // STORE_FAST_LOAD_FAST
    PythonOpcodeRow{113, 113, kStoreFast, 0, How::kStoresTwo},           // STORE_FAST_STORE_FAST
    PythonOpcodeRow{114, 114, kStoreGlobal},                             // STORE_GLOBAL
    PythonOpcodeRow{115, 115, kStoreName},                               // STORE_NAME
    PythonOpcodeRow{116, 116, kSwap},                                    // SWAP
    PythonOpcodeRow{117, 117, kMakesObject},                             // UNPACK_EX
    PythonOpcodeRow{118, 118, kHarmless, 1},                             // UNPACK_SEQUENCE
    PythonOpcodeRow{119, 119, kYield},                                   // YIELD_VALUE
    PythonOpcodeRow{128, 128, kHarmless, 1},                             // RESUME
    PythonOpcodeRow{129, 143, kBinary, 5},                               // BINARY_OP
    PythonOpcodeRow{144, 150, kCall, 3, How::kCalls},                    // CALL
    PythonOpcodeRow{151, 152, kOtherOp, 1},                              // CALL_FUNCTION_EX
    PythonOpcodeRow{153, 168, kCall, 3, How::kCalls},                    // CALL, CALL_KW
    PythonOpcodeRow{169, 171, kCompare, 1},                              // COMPARE_OP
    PythonOpcodeRow{172, 173, kContains, 1},                             // CONTAINS_OP
    PythonOpcodeRow{174, 178, kForIter, 1},                              // FOR_ITER
    PythonOpcodeRow{179, 180, kHarmless, 1},                             // GET_ITER
    PythonOpcodeRow{181, 182, kJump, 1, How::kJumpsBack},                // JUMP_BACKWARD
    PythonOpcodeRow{183, 195, kLoadAttribute, 9, How::kLoadsAttribute},  // LOAD_ATTR
    PythonOpcodeRow{196, 197, kLoadGlobal, 4},                           // LOAD_GLOBAL
    PythonOpcodeRow{198, 199, kOtherOp, 1},                              // LOAD_SUPER_ATTR
    PythonOpcodeRow{200, 201, kHarmless, 1},                             // RESUME
    PythonOpcodeRow{202, 204, kOtherOp, 1},                              // SEND
    PythonOpcodeRow{205, 207, kStoreAttribute, 4},                       // STORE_ATTR
    PythonOpcodeRow{208, 209, kStoreSubscript, 1},                       // STORE_SUBSCR
    PythonOpcodeRow{210, 215, kOtherOp, 3, How::kDropped},               // TO_BOOL
    PythonOpcodeRow{216, 218, kHarmless, 1},                             // UNPACK_SEQUENCE
    PythonOpcodeRow{233, 255, kOtherOp, 0, How::kIsReplaced},  // INSTRUMENTED_, ENTER_EXECUTOR and TRACE_RECORD
};

}  // namespace

const PythonOpcodes kPythonOpcodes315 = make_python_opcodes(kRows315, 5, true);

}  // namespace mprun
