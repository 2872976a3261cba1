// The answers of analyses as blocks of a document: fields, what is missing, evidence as tables and
// pictures. No renderer knows which analysis made them.

#pragma once

#include <vector>

#include "analyze/answer.h"
#include "report/document.h"

namespace tensordiff {

void add_answers(const std::vector<Answer>& answers, doc::Document& document);

}  // namespace tensordiff
