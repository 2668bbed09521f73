// The tables of blocks and ops, for programs: what can be added to a Graph by name, with which operands and attributes.
// OpReference (quern/quern.h) is the same for people.
//
//   for (const quern::OpInfo& op : quern::OpTable()) std::puts(op.name.c_str());
#pragma once

#include <string>
#include <vector>

namespace quern {

struct OperandInfo {
  std::string name;
  std::string kind;       // "number", "float", "i32 or i64"; empty: any scalar dtype
  std::string shape;      // "[.., K, N]", where the op has a rule; empty: none
  bool optional = false;  // may be absent
  bool variadic = false;  // the last operand only: one or more
};

struct AttributeInfo {
  std::string name;
  std::string kind;  // "bool", "int", "float", "string", "dtype", "ints", "extents"
  bool required = false;
  std::string default_value;         // where it is not required, as text of graphs has it: 1e-05, "none", [1, 1]
  std::string doc;                   // empty: the name says it
  std::vector<std::string> choices;  // the allowed strings, if limited
};

struct OpInfo {
  std::string name;
  std::string doc;      // what it computes, in a phrase
  std::string section;  // "elementwise", "views and index maps", "composites"; "blocks"
  std::vector<OperandInfo> operands;
  std::vector<AttributeInfo> attributes;
  std::vector<std::string> bodies;  // names of the graphs that it takes: If has "then" and "else"
};

// Every op, and every block, but those that are added by functions of their own; sorted by name.
std::vector<OpInfo> OpTable();
std::vector<OpInfo> BlockTable();

}  // namespace quern
