// `-o report`: everything the Report holds, as one JSON object. Its fields are in wire.h.
//
// Every pair has every key, so that a script never has to ask whether one is there: what does not
// apply is null. Keys may be added, and are never renamed or moved.

#include "report/renderer.h"
#include "report/wire.h"

namespace tensordiff {
namespace {

std::string render(const Report& report, const RenderOptions&) {
  JsonWriter json(JsonWriter::Style::indented);
  wire::write_object(json, report, wire::report_fields());
  return json.take() + "\n";
}

}  // namespace

constinit const Renderer renderers::report = {
    .name = "report",
    .summary = "the full result as one JSON object",
    .unpaired_stats = false,
    .render = render,
};

}  // namespace tensordiff
