// Code in the configuration of a Keras model, which is JSON that says how to build it: config.json
// in a .keras archive, the attribute model_config of an HDF5 file. Building the model runs Lambda
// layers from marshalled Python, imports any module that an object names, and reads files that a
// layer names. Here it is text, and what would act is told.

#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "tensor/catalog.h"

namespace tensordiff {

std::vector<Problem> code_in_keras(std::string_view json, const std::string& where);

}  // namespace tensordiff
