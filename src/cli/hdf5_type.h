// What the element type of a dataset is to us. Only for the process that runs the HDF5 library.

#pragma once

#include <hdf5.h>

#include "formats/hdf5_wire.h"

namespace tensordiff::hdf5 {

// Closes an identifier of the library when it goes.
class Handle {
 public:
  Handle(hid_t id, herr_t (*close)(hid_t)) : id_(id), close_(close) {}
  Handle(const Handle&) = delete;
  Handle& operator=(const Handle&) = delete;
  ~Handle() {
    if (id_ >= 0) close_(id_);
  }
  hid_t id() const { return id_; }
  bool ok() const { return id_ >= 0; }

 private:
  hid_t id_;
  herr_t (*close_)(hid_t);
};

struct Element {
  DType dtype = DType::f32;
  bool swapped = false;
  Shape inner;  // The axes of an array type: they follow those of the dataset.
  bool text = false;
};

// Says by name what cannot be read.
Result<Element> element_of(hid_t type);

}  // namespace tensordiff::hdf5
