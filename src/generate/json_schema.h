// A JSON schema as a grammar (grammar/grammar.h): each text of the grammar is JSON that the schema takes. Not each JSON
// that it takes is a text: members come in the schema's order, white space is sparing, numbers have at most 16 digits.
//
//   {"type": "array", "items": {"type": "boolean"}}    ->   root ::= "[" ws ( item ("," ws item)* )? ws "]" ..
#pragma once

#include <string>
#include <string_view>

#include "base/status.h"

namespace quern::json_schema {

// {} for the whole schema is any object. Errors, with the place as a JSON pointer: kInvalidArgument, no JSON, a keyword
// of the wrong type, a schema that nothing fulfils; kUnimplemented, a keyword that would restrict and is not known here
// (docs/text.md has those that are); kResourceExhausted, a schema or its grammar too large.
StatusOr<std::string> Grammar(std::string_view schema);

}  // namespace quern::json_schema
