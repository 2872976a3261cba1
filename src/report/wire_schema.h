// The tables of wire.h as people and other programs read them. tools/update_schema writes all three
// into the tree, and a test holds the tree to them.

#pragma once

#include <string>

namespace tensordiff::wire {

// A JSON Schema of -o report: docs/report.schema.json, which is installed.
std::string json_schema();

// A table for each kind of object, for docs/output.md.
std::string field_tables();

// What the page gets from the server, in TypeScript: web/src/net/wire.ts.
std::string page_types();

// The codes of the column `status`, for docs/http-api.md: "0 pending, 1 identical …".
std::string status_codes();

}  // namespace tensordiff::wire
