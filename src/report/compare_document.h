// The result of a comparison as a document, for Markdown and HTML.

#pragma once

#include "report/document.h"
#include "report/renderer.h"

namespace tensordiff {

doc::Look look_of(Status status);
doc::Look look_of(Conclusion verdict);

// Everything: verdict, where the two part, pictures, analyses, all pairs. With options.review only
// what a reviewer has to know, in half a page.
doc::Document compare_document(const Report& report, const RenderOptions& options);

}  // namespace tensordiff
