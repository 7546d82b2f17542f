#include "watch/stacks/python_opcodes.h"

namespace mprun {
namespace {

using How = PythonOpcode::How;

struct Row {
  unsigned char first, last;
  PythonOp op;
  unsigned char caches = 0;
  How how = How::kSame;
};

// Lib/opcode.py and Include/internal/pycore_opcode.h. In memory, an instruction may have the number of one of its
// specialised forms; those of two instructions in one (LOAD_FAST__LOAD_CONST) count as the first of them.
constexpr std::array kRows311 = {
    Row{1, 1, kPopTop},                                 // POP_TOP
    Row{2, 2, kPushNull},                               // PUSH_NULL
    Row{3, 8, kBinary, 1},                              // BINARY_OP
    Row{9, 11, kHarmless},                              // NOP, UNARY_POSITIVE, UNARY_NEGATIVE
    Row{12, 12, kNot},                                  // UNARY_NOT
    Row{13, 14, kBinary, 1},                            // BINARY_OP
    Row{15, 15, kHarmless},                             // UNARY_INVERT
    Row{16, 16, kBinary, 1},                            // BINARY_OP
    Row{17, 21, kSubscript, 4},                         // BINARY_SUBSCR
    Row{22, 24, kCall, 4},                              // CALL
    Row{25, 25, kSubscript, 4},                         // BINARY_SUBSCR
    Row{26, 29, kCompare, 2},                           // COMPARE_OP
    Row{30, 30, kHarmless},                             // GET_LEN
    Row{34, 34, kOtherOp, 0, How::kExtendsArgument},    // EXTENDED_ARG
    Row{35, 35, kHarmless},                             // PUSH_EXC_INFO
    Row{36, 36, kMatchException},                       // CHECK_EXC_MATCH
    Row{38, 38, kJump, 0, How::kJumpsBack},             // JUMP_BACKWARD
    Row{39, 43, kLoadAttribute, 4},                     // LOAD_ATTR
    Row{44, 44, kLoadConst},                            // LOAD_CONST
    Row{45, 46, kLoadFast},                             // LOAD_FAST
    Row{47, 48, kLoadGlobal, 5},                        // LOAD_GLOBAL
    Row{49, 49, kWithException},                        // WITH_EXCEPT_START
    Row{53, 53, kHarmless},                             // BEFORE_WITH
    Row{55, 55, kLoadGlobal, 5},                        // LOAD_GLOBAL
    Row{56, 59, kLoadMethod, 10},                       // LOAD_METHOD
    Row{60, 60, kStoreSubscript, 1},                    // STORE_SUBSCR
    Row{62, 63, kLoadMethod, 10},                       // LOAD_METHOD
    Row{64, 67, kPrecall, 1},                           // PRECALL
    Row{68, 68, kHarmless},                             // GET_ITER
    Row{72, 73, kPrecall, 1},                           // PRECALL
    Row{74, 74, kMakesObject},                          // LOAD_ASSERTION_ERROR
    Row{75, 75, kReturnGenerator},                      // RETURN_GENERATOR
    Row{76, 81, kPrecall, 1},                           // PRECALL
    Row{82, 82, kHarmless},                             // LIST_TO_TUPLE
    Row{83, 83, kReturn},                               // RETURN_VALUE
    Row{86, 86, kYield},                                // YIELD_VALUE
    Row{89, 89, kHarmless},                             // POP_EXCEPT
    Row{90, 90, kStoreName},                            // STORE_NAME
    Row{92, 92, kHarmless, 1},                          // UNPACK_SEQUENCE
    Row{93, 93, kForIter},                              // FOR_ITER
    Row{94, 94, kMakesObject},                          // UNPACK_EX
    Row{95, 95, kStoreAttribute, 4},                    // STORE_ATTR
    Row{97, 97, kStoreGlobal},                          // STORE_GLOBAL
    Row{99, 99, kSwap},                                 // SWAP
    Row{100, 100, kLoadConst},                          // LOAD_CONST
    Row{101, 101, kLoadName},                           // LOAD_NAME
    Row{102, 103, kHarmless},                           // BUILD_TUPLE, BUILD_LIST
    Row{104, 105, kMakesObject},                        // BUILD_SET, BUILD_MAP
    Row{106, 106, kLoadAttribute, 4},                   // LOAD_ATTR
    Row{107, 107, kCompare, 2},                         // COMPARE_OP
    Row{108, 109, kMakesObject},                        // IMPORT_NAME, IMPORT_FROM
    Row{110, 110, kJump},                               // JUMP_FORWARD
    Row{111, 111, kJumpIfFalseOrPop},                   // JUMP_IF_FALSE_OR_POP
    Row{112, 112, kJumpIfTrueOrPop},                    // JUMP_IF_TRUE_OR_POP
    Row{113, 113, kPrecall, 1},                         // PRECALL
    Row{114, 114, kJumpIfFalse},                        // POP_JUMP_FORWARD_IF_FALSE
    Row{115, 115, kJumpIfTrue},                         // POP_JUMP_FORWARD_IF_TRUE
    Row{116, 116, kLoadGlobal, 5},                      // LOAD_GLOBAL
    Row{117, 117, kHarmless},                           // IS_OP
    Row{118, 118, kContains},                           // CONTAINS_OP
    Row{119, 119, kReraise},                            // RERAISE
    Row{120, 120, kCopy},                               // COPY
    Row{121, 121, kPrecall, 1},                         // PRECALL
    Row{122, 122, kBinary, 1},                          // BINARY_OP
    Row{124, 124, kLoadFast},                           // LOAD_FAST
    Row{125, 125, kStoreFast},                          // STORE_FAST
    Row{126, 126, kHarmless},                           // DELETE_FAST
    Row{127, 127, kPrecall, 1},                         // PRECALL
    Row{128, 128, kJumpIfNotNone},                      // POP_JUMP_FORWARD_IF_NOT_NONE
    Row{129, 129, kJumpIfNone},                         // POP_JUMP_FORWARD_IF_NONE
    Row{130, 130, kRaise},                              // RAISE_VARARGS
    Row{132, 133, kHarmless},                           // MAKE_FUNCTION, BUILD_SLICE
    Row{134, 134, kJump, 0, How::kJumpsBack},           // JUMP_BACKWARD_NO_INTERRUPT
    Row{135, 135, kMakesObject},                        // MAKE_CELL
    Row{136, 136, kLoadClosure},                        // LOAD_CLOSURE
    Row{137, 137, kLoadDeref},                          // LOAD_DEREF
    Row{138, 138, kStoreDeref},                         // STORE_DEREF
    Row{140, 140, kJump, 0, How::kJumpsBack},           // JUMP_BACKWARD
    Row{141, 141, kPrecall, 1},                         // PRECALL
    Row{143, 143, kPrecall, 1},                         // PRECALL
    Row{144, 144, kOtherOp, 0, How::kExtendsArgument},  // EXTENDED_ARG
    Row{145, 147, kMakesObject},                        // LIST_APPEND, SET_ADD, MAP_ADD
    Row{149, 149, kMakesObject},                        // COPY_FREE_VARS
    Row{150, 151, kHarmless},                           // RESUME
    Row{153, 154, kStoreAttribute, 4},                  // STORE_ATTR
    Row{155, 155, kHarmless},                           // FORMAT_VALUE
    Row{156, 156, kMakesObject},                        // BUILD_CONST_KEY_MAP
    Row{157, 157, kHarmless},                           // BUILD_STRING
    Row{158, 159, kStoreAttribute, 4},                  // STORE_ATTR
    Row{160, 160, kLoadMethod, 10},                     // LOAD_METHOD
    Row{161, 161, kStoreFast},                          // STORE_FAST
    Row{162, 165, kMakesObject},                        // LIST_EXTEND, SET_UPDATE, DICT_MERGE, DICT_UPDATE
    Row{166, 166, kPrecall, 1},                         // PRECALL
    Row{167, 167, kStoreFast},                          // STORE_FAST
    Row{168, 170, kStoreSubscript, 1},                  // STORE_SUBSCR
    Row{171, 171, kCall, 4},                            // CALL
    Row{172, 172, kHarmless},                           // KW_NAMES
    Row{173, 173, kJumpIfNotNone, 0, How::kJumpsBack},  // POP_JUMP_BACKWARD_IF_NOT_NONE
    Row{174, 174, kJumpIfNone, 0, How::kJumpsBack},     // POP_JUMP_BACKWARD_IF_NONE
    Row{175, 175, kJumpIfFalse, 0, How::kJumpsBack},    // POP_JUMP_BACKWARD_IF_FALSE
    Row{176, 176, kJumpIfTrue, 0, How::kJumpsBack},     // POP_JUMP_BACKWARD_IF_TRUE
    Row{177, 180, kHarmless, 1},                        // UNPACK_SEQUENCE
};

// Lib/_opcode_metadata.py and Include/internal/pycore_opcode_metadata.h of 3.13.5.
constexpr std::array kRows313 = {
    Row{2, 2, kHarmless},                                    // BEFORE_WITH
    Row{3, 3, kBinary, 1},                                   // BINARY_OP
    Row{4, 4, kSubscript},                                   // BINARY_SLICE
    Row{5, 5, kSubscript, 1},                                // BINARY_SUBSCR
    Row{7, 7, kMatchException},                              // CHECK_EXC_MATCH
    Row{11, 11, kHarmless},                                  // END_FOR
    Row{14, 15, kHarmless},                                  // FORMAT_SIMPLE, FORMAT_WITH_SPEC
    Row{19, 20, kHarmless},                                  // GET_ITER, GET_LEN
    Row{23, 23, kMakesObject},                               // LOAD_ASSERTION_ERROR
    Row{26, 26, kHarmless},                                  // MAKE_FUNCTION
    Row{30, 31, kHarmless},                                  // NOP, POP_EXCEPT
    Row{32, 32, kPopTop},                                    // POP_TOP
    Row{33, 33, kHarmless},                                  // PUSH_EXC_INFO
    Row{34, 34, kPushNull},                                  // PUSH_NULL
    Row{35, 35, kReturnGenerator},                           // RETURN_GENERATOR
    Row{36, 36, kReturn},                                    // RETURN_VALUE
    Row{38, 38, kStoreSubscript},                            // STORE_SLICE
    Row{39, 39, kStoreSubscript, 1},                         // STORE_SUBSCR
    Row{40, 40, kOtherOp, 3, How::kDropped},                 // TO_BOOL
    Row{41, 42, kHarmless},                                  // UNARY_INVERT, UNARY_NEGATIVE
    Row{43, 43, kNot},                                       // UNARY_NOT
    Row{44, 44, kWithException},                             // WITH_EXCEPT_START
    Row{45, 45, kBinary, 1},                                 // BINARY_OP
    Row{46, 46, kMakesObject},                               // BUILD_CONST_KEY_MAP
    Row{47, 47, kHarmless},                                  // BUILD_LIST
    Row{48, 49, kMakesObject},                               // BUILD_MAP, BUILD_SET
    Row{50, 52, kHarmless},                                  // BUILD_SLICE, BUILD_STRING, BUILD_TUPLE
    Row{53, 53, kCall, 3, How::kCalls},                      // CALL
    Row{55, 55, kOtherOp, 0, How::kIntrinsic},               // CALL_INTRINSIC_1
    Row{57, 57, kCall, 0, How::kCalls},                      // CALL_KW
    Row{58, 58, kCompare, 1},                                // COMPARE_OP
    Row{59, 59, kContains, 1},                               // CONTAINS_OP
    Row{60, 60, kHarmless},                                  // CONVERT_VALUE
    Row{61, 61, kCopy},                                      // COPY
    Row{62, 62, kMakesObject},                               // COPY_FREE_VARS
    Row{65, 65, kHarmless},                                  // DELETE_FAST
    Row{68, 69, kMakesObject},                               // DICT_MERGE, DICT_UPDATE
    Row{70, 70, kOtherOp, 0, How::kIsReplaced},              // INSTRUMENTED_ and ENTER_EXECUTOR
    Row{71, 71, kOtherOp, 0, How::kExtendsArgument},         // EXTENDED_ARG
    Row{72, 72, kForIter, 1},                                // FOR_ITER
    Row{74, 75, kMakesObject},                               // IMPORT_FROM, IMPORT_NAME
    Row{76, 76, kHarmless},                                  // IS_OP
    Row{77, 77, kJump, 1, How::kJumpsBack},                  // JUMP_BACKWARD
    Row{78, 78, kJump, 0, How::kJumpsBack},                  // JUMP_BACKWARD_NO_INTERRUPT
    Row{79, 79, kJump},                                      // JUMP_FORWARD
    Row{80, 81, kMakesObject},                               // LIST_APPEND, LIST_EXTEND
    Row{82, 82, kLoadAttribute, 9, How::kLoadsAttribute},    // LOAD_ATTR
    Row{83, 83, kLoadConst},                                 // LOAD_CONST
    Row{84, 84, kLoadDeref},                                 // LOAD_DEREF
    Row{85, 85, kLoadFast},                                  // LOAD_FAST
    Row{86, 86, kHarmless},                                  // LOAD_FAST_AND_CLEAR
    Row{87, 87, kLoadFast},                                  // LOAD_FAST_CHECK
    Row{88, 88, kLoadFast, 0, How::kLoadsTwo},               // LOAD_FAST_LOAD_FAST
    Row{91, 91, kLoadGlobal, 4},                             // LOAD_GLOBAL
    Row{92, 92, kLoadName},                                  // LOAD_NAME
    Row{93, 93, kOtherOp, 1},                                // LOAD_SUPER_ATTR
    Row{94, 95, kMakesObject},                               // MAKE_CELL, MAP_ADD
    Row{97, 97, kJumpIfFalse, 1},                            // POP_JUMP_IF_FALSE
    Row{98, 98, kJumpIfNone, 1},                             // POP_JUMP_IF_NONE
    Row{99, 99, kJumpIfNotNone, 1},                          // POP_JUMP_IF_NOT_NONE
    Row{100, 100, kJumpIfTrue, 1},                           // POP_JUMP_IF_TRUE
    Row{101, 101, kRaise},                                   // RAISE_VARARGS
    Row{102, 102, kReraise},                                 // RERAISE
    Row{103, 103, kLoadConst, 0, How::kReturnsConst},        // RETURN_CONST
    Row{104, 104, kOtherOp, 1},                              // SEND
    Row{105, 105, kMakesObject},                             // SET_ADD
    Row{106, 106, kHarmless},                                // SET_FUNCTION_ATTRIBUTE
    Row{107, 107, kMakesObject},                             // SET_UPDATE
    Row{108, 108, kStoreAttribute, 4},                       // STORE_ATTR
    Row{109, 109, kStoreDeref},                              // STORE_DEREF
    Row{110, 110, kStoreFast},                               // STORE_FAST
    Row{111, 111, kStoreFast, 0, How::kStoresAndLoads},      // STORE_FAST_LOAD_FAST
    Row{112, 112, kStoreFast, 0, How::kStoresTwo},           // STORE_FAST_STORE_FAST
    Row{113, 113, kStoreGlobal},                             // STORE_GLOBAL
    Row{114, 114, kStoreName},                               // STORE_NAME
    Row{115, 115, kSwap},                                    // SWAP
    Row{116, 116, kMakesObject},                             // UNPACK_EX
    Row{117, 117, kHarmless, 1},                             // UNPACK_SEQUENCE
    Row{118, 118, kYield},                                   // YIELD_VALUE
    Row{149, 149, kHarmless},                                // RESUME
    Row{150, 156, kBinary, 1},                               // BINARY_OP
    Row{157, 161, kSubscript, 1},                            // BINARY_SUBSCR
    Row{162, 181, kCall, 3, How::kCalls},                    // CALL
    Row{182, 184, kCompare, 1},                              // COMPARE_OP
    Row{185, 186, kContains, 1},                             // CONTAINS_OP
    Row{187, 190, kForIter, 1},                              // FOR_ITER
    Row{191, 202, kLoadAttribute, 9, How::kLoadsAttribute},  // LOAD_ATTR
    Row{203, 204, kLoadGlobal, 4},                           // LOAD_GLOBAL
    Row{205, 206, kOtherOp, 1},                              // LOAD_SUPER_ATTR
    Row{207, 207, kHarmless},                                // RESUME
    Row{208, 208, kOtherOp, 1},                              // SEND
    Row{209, 211, kStoreAttribute, 4},                       // STORE_ATTR
    Row{212, 213, kStoreSubscript, 1},                       // STORE_SUBSCR
    Row{214, 219, kOtherOp, 3, How::kDropped},               // TO_BOOL
    Row{220, 222, kHarmless, 1},                             // UNPACK_SEQUENCE
    Row{236, 254, kOtherOp, 0, How::kIsReplaced},            // INSTRUMENTED_ and ENTER_EXECUTOR
};

// The same of 3.14.7.
constexpr std::array kRows314 = {
    Row{1, 1, kSubscript},                                   // BINARY_SLICE
    Row{3, 3, kBinary, 5},                                   // BINARY_OP
    Row{6, 6, kMatchException},                              // CHECK_EXC_MATCH
    Row{9, 9, kHarmless},                                    // END_FOR
    Row{12, 13, kHarmless},                                  // FORMAT_SIMPLE, FORMAT_WITH_SPEC
    Row{16, 16, kHarmless},                                  // GET_ITER
    Row{18, 18, kHarmless},                                  // GET_LEN
    Row{23, 23, kHarmless},                                  // MAKE_FUNCTION
    Row{27, 27, kHarmless},                                  // NOP
    Row{28, 28, kOtherOp, 0, How::kDropped},                 // NOT_TAKEN
    Row{29, 30, kHarmless},                                  // POP_EXCEPT, POP_ITER
    Row{31, 31, kPopTop},                                    // POP_TOP
    Row{32, 32, kHarmless},                                  // PUSH_EXC_INFO
    Row{33, 33, kPushNull},                                  // PUSH_NULL
    Row{34, 34, kReturnGenerator},                           // RETURN_GENERATOR
    Row{35, 35, kReturn},                                    // RETURN_VALUE
    Row{37, 37, kStoreSubscript},                            // STORE_SLICE
    Row{38, 38, kStoreSubscript, 1},                         // STORE_SUBSCR
    Row{39, 39, kOtherOp, 3, How::kDropped},                 // TO_BOOL
    Row{40, 41, kHarmless},                                  // UNARY_INVERT, UNARY_NEGATIVE
    Row{42, 42, kNot},                                       // UNARY_NOT
    Row{43, 43, kWithException},                             // WITH_EXCEPT_START
    Row{44, 44, kBinary, 5},                                 // BINARY_OP
    Row{46, 46, kHarmless},                                  // BUILD_LIST
    Row{47, 48, kMakesObject},                               // BUILD_MAP, BUILD_SET
    Row{49, 51, kHarmless},                                  // BUILD_SLICE, BUILD_STRING, BUILD_TUPLE
    Row{52, 52, kCall, 3, How::kCalls},                      // CALL
    Row{53, 53, kOtherOp, 0, How::kIntrinsic},               // CALL_INTRINSIC_1
    Row{55, 55, kCall, 3, How::kCalls},                      // CALL_KW
    Row{56, 56, kCompare, 1},                                // COMPARE_OP
    Row{57, 57, kContains, 1},                               // CONTAINS_OP
    Row{58, 58, kHarmless},                                  // CONVERT_VALUE
    Row{59, 59, kCopy},                                      // COPY
    Row{60, 60, kMakesObject},                               // COPY_FREE_VARS
    Row{63, 63, kHarmless},                                  // DELETE_FAST
    Row{66, 67, kMakesObject},                               // DICT_MERGE, DICT_UPDATE
    Row{69, 69, kOtherOp, 0, How::kExtendsArgument},         // EXTENDED_ARG
    Row{70, 70, kForIter, 1},                                // FOR_ITER
    Row{72, 73, kMakesObject},                               // IMPORT_FROM, IMPORT_NAME
    Row{74, 74, kHarmless},                                  // IS_OP
    Row{75, 75, kJump, 1, How::kJumpsBack},                  // JUMP_BACKWARD
    Row{76, 76, kJump, 0, How::kJumpsBack},                  // JUMP_BACKWARD_NO_INTERRUPT
    Row{77, 77, kJump},                                      // JUMP_FORWARD
    Row{78, 79, kMakesObject},                               // LIST_APPEND, LIST_EXTEND
    Row{80, 80, kLoadAttribute, 9, How::kLoadsAttribute},    // LOAD_ATTR
    Row{81, 81, kHarmless},                                  // LOAD_COMMON_CONSTANT
    Row{82, 82, kLoadConst},                                 // LOAD_CONST
    Row{83, 83, kLoadDeref},                                 // LOAD_DEREF
    Row{84, 84, kLoadFast},                                  // LOAD_FAST
    Row{85, 85, kHarmless},                                  // LOAD_FAST_AND_CLEAR
    Row{86, 86, kLoadFast},                                  // LOAD_FAST_BORROW
    Row{87, 87, kLoadFast, 0, How::kLoadsTwo},               // LOAD_FAST_BORROW_LOAD_FAST_BORROW
    Row{88, 88, kLoadFast},                                  // LOAD_FAST_CHECK
    Row{89, 89, kLoadFast, 0, How::kLoadsTwo},               // LOAD_FAST_LOAD_FAST
    Row{92, 92, kLoadGlobal, 4},                             // LOAD_GLOBAL
    Row{93, 93, kLoadName},                                  // LOAD_NAME
    Row{94, 94, kLoadSmallInt},                              // LOAD_SMALL_INT
    Row{95, 95, kHarmless},                                  // LOAD_SPECIAL
    Row{96, 96, kOtherOp, 1},                                // LOAD_SUPER_ATTR
    Row{97, 98, kMakesObject},                               // MAKE_CELL, MAP_ADD
    Row{100, 100, kJumpIfFalse, 1},                          // POP_JUMP_IF_FALSE
    Row{101, 101, kJumpIfNone, 1},                           // POP_JUMP_IF_NONE
    Row{102, 102, kJumpIfNotNone, 1},                        // POP_JUMP_IF_NOT_NONE
    Row{103, 103, kJumpIfTrue, 1},                           // POP_JUMP_IF_TRUE
    Row{104, 104, kRaise},                                   // RAISE_VARARGS
    Row{105, 105, kReraise},                                 // RERAISE
    Row{106, 106, kOtherOp, 1},                              // SEND
    Row{107, 107, kMakesObject},                             // SET_ADD
    Row{108, 108, kHarmless},                                // SET_FUNCTION_ATTRIBUTE
    Row{109, 109, kMakesObject},                             // SET_UPDATE
    Row{110, 110, kStoreAttribute, 4},                       // STORE_ATTR
    Row{111, 111, kStoreDeref},                              // STORE_DEREF
    Row{112, 112, kStoreFast},                               // STORE_FAST
    Row{113, 113, kStoreFast, 0, How::kStoresAndLoads},      // STORE_FAST_LOAD_FAST
    Row{114, 114, kStoreFast, 0, How::kStoresTwo},           // STORE_FAST_STORE_FAST
    Row{115, 115, kStoreGlobal},                             // STORE_GLOBAL
    Row{116, 116, kStoreName},                               // STORE_NAME
    Row{117, 117, kSwap},                                    // SWAP
    Row{118, 118, kMakesObject},                             // UNPACK_EX
    Row{119, 119, kHarmless, 1},                             // UNPACK_SEQUENCE
    Row{120, 120, kYield},                                   // YIELD_VALUE
    Row{128, 128, kHarmless},                                // RESUME
    Row{129, 142, kBinary, 5},                               // BINARY_OP
    Row{143, 165, kCall, 3, How::kCalls},                    // CALL, CALL_KW
    Row{166, 168, kCompare, 1},                              // COMPARE_OP
    Row{169, 170, kContains, 1},                             // CONTAINS_OP
    Row{171, 174, kForIter, 1},                              // FOR_ITER
    Row{175, 176, kJump, 1, How::kJumpsBack},                // JUMP_BACKWARD
    Row{177, 189, kLoadAttribute, 9, How::kLoadsAttribute},  // LOAD_ATTR
    Row{190, 191, kLoadConst},                               // LOAD_CONST
    Row{192, 193, kLoadGlobal, 4},                           // LOAD_GLOBAL
    Row{194, 195, kOtherOp, 1},                              // LOAD_SUPER_ATTR
    Row{196, 196, kHarmless},                                // RESUME
    Row{197, 197, kOtherOp, 1},                              // SEND
    Row{198, 200, kStoreAttribute, 4},                       // STORE_ATTR
    Row{201, 202, kStoreSubscript, 1},                       // STORE_SUBSCR
    Row{203, 208, kOtherOp, 3, How::kDropped},               // TO_BOOL
    Row{209, 211, kHarmless, 1},                             // UNPACK_SEQUENCE
    Row{234, 255, kOtherOp, 0, How::kIsReplaced},            // INSTRUMENTED_ and ENTER_EXECUTOR
};

template <std::size_t kCount>
constexpr PythonOpcodes make_opcodes(const std::array<Row, kCount>& rows, unsigned comparison_shift, bool null_last) {
  PythonOpcodes opcodes{{}, comparison_shift, null_last};
  for (const Row& row : rows) {
    for (unsigned number = row.first; number <= row.last; ++number) {
      opcodes.by_number.at(number) = {row.op, row.how, row.caches};
    }
  }
  return opcodes;
}

constexpr PythonOpcodes kOpcodes311 = make_opcodes(kRows311, 0, false);
constexpr PythonOpcodes kOpcodes313 = make_opcodes(kRows313, 5, true);
constexpr PythonOpcodes kOpcodes314 = make_opcodes(kRows314, 5, true);

}  // namespace

const PythonOpcodes* python_opcodes(unsigned minor) {
  switch (minor) {
    case 11:
      return &kOpcodes311;
    case 13:
      return &kOpcodes313;
    case 14:
      return &kOpcodes314;
    default:
      return nullptr;
  }
}

}  // namespace mprun
