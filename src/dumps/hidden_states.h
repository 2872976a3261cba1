// Hidden states of all layers, and what only the other dump tells about them.

#pragma once

#include "tensor/catalog.h"

namespace tensordiff {

// {layer: its output} and a tuple of hidden states have the same names. Where the other dump has as
// many layers as there are states, they are the outputs of the layers, and none is the embedding.
void take_as_layers(Catalog& states, const Catalog& other);

}  // namespace tensordiff
