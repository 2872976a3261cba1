// Runs the HDF5 library over a file that it reads through us, byte range by byte range: there is no
// file that this process could open. Links and data that lie in other files are refused by name,
// and so are filters that we do not undo ourselves.

#include "cli/hdf5_child.h"

#include <hdf5.h>
#include <algorithm>
#include <set>

#include "cli/hdf5_driver.h"
#include "cli/hdf5_type.h"
#include "formats/hdf5_wire.h"

namespace tensordiff::hdf5 {
namespace {

constexpr int kDepthMax = 100;
constexpr hsize_t kGridMax = 1'000'000;  // Places for chunks that are asked for one by one.
constexpr hsize_t kCompactMax = 64 << 10;

Result<void> read_filters(hid_t plist, Dataset& dataset) {
  const int count = H5Pget_nfilters(plist);
  for (int i = 0; i < count; ++i) {
    unsigned flags = 0, config = 0;
    std::size_t values = 0;
    char name[64] = {};
    const H5Z_filter_t filter = H5Pget_filter2(plist, static_cast<unsigned>(i), &flags, &values,
                                               nullptr, sizeof(name), name, &config);
    if (filter < 1 || filter > 3) {
      constexpr std::pair<int, std::string_view> kOthers[] = {
          {4, "szip"},      {5, "nbit"},    {6, "scaleoffset"},    {32000, "lzf"},
          {32001, "blosc"}, {32004, "lz4"}, {32008, "bitshuffle"}, {32015, "zstd"},
      };
      std::string_view called = name;
      for (const auto& [number, known] : kOthers)
        if (number == filter) called = known;
      return Error("packed with the filter {} ({}), which is not supported",
                   static_cast<int>(filter), called);
    }
    dataset.filters.push_back(static_cast<Filter>(filter));
  }
  return {};
}

std::string read_fill(hid_t plist, hid_t type) {
  std::string fill(H5Tget_size(type), '\0');
  H5D_fill_value_t defined = H5D_FILL_VALUE_UNDEFINED;
  if (H5Pfill_value_defined(plist, &defined) >= 0 && defined == H5D_FILL_VALUE_USER_DEFINED)
    H5Pget_fill_value(plist, type, fill.data());
  return fill;
}

std::string read_text_attribute(hid_t object, const char* name) {
  if (H5Aexists(object, name) <= 0) return "";
  const Handle attribute(H5Aopen(object, name, H5P_DEFAULT), H5Aclose);
  const Handle type(H5Aget_type(attribute.id()), H5Tclose);
  const std::size_t size = H5Tget_size(type.id());
  if (H5Tget_class(type.id()) != H5T_STRING || H5Tis_variable_str(type.id()) > 0 || size > 256 ||
      H5Aget_storage_size(attribute.id()) != size)
    return "";
  std::string text(size, '\0');
  if (H5Aread(attribute.id(), type.id(), text.data()) < 0) return "";
  return text.substr(0, text.find('\0'));
}

// A text of any length, of fixed or of variable size; empty where the attribute is none.
std::string read_long_text(hid_t object, const char* name) {
  if (H5Aexists(object, name) <= 0) return "";
  const Handle attribute(H5Aopen(object, name, H5P_DEFAULT), H5Aclose);
  const Handle type(H5Aget_type(attribute.id()), H5Tclose);
  const Handle space(H5Aget_space(attribute.id()), H5Sclose);
  if (H5Tget_class(type.id()) != H5T_STRING || H5Sget_simple_extent_npoints(space.id()) != 1)
    return "";
  if (H5Tis_variable_str(type.id()) > 0) {
    char* text = nullptr;
    if (H5Aread(attribute.id(), type.id(), &text) < 0 || !text) return "";
    std::string copy(text);
    H5free_memory(text);
    return copy;
  }
  const std::size_t size = H5Tget_size(type.id());
  if (size > remote_bytes()) return "";
  std::string text(size, '\0');
  if (H5Aread(attribute.id(), type.id(), text.data()) < 0) return "";
  return text.substr(0, text.find('\0'));
}

// The innermost of the library's own words for what went wrong.
herr_t on_error(unsigned, const H5E_error2_t* error, void* text) {
  if (error->desc) *static_cast<std::string*>(text) = error->desc;
  return 0;
}
std::string library_words() {
  std::string words = "unknown reason";
  H5Ewalk2(H5E_DEFAULT, H5E_WALK_DOWNWARD, on_error, &words);
  return words + fmt::format(" (HDF5 {}.{}.{})", H5_VERS_MAJOR, H5_VERS_MINOR, H5_VERS_RELEASE);
}

class Lister {
 public:
  explicit Lister(hid_t file) : file_(file) {}

  void visit_root() {
    const Handle root(H5Gopen2(file_, "/", H5P_DEFAULT), H5Gclose);
    if (root.ok()) visit_group(root.id(), "", 0);
    // What Keras keeps there says how to build the model, and may hold code.
    for (const char* name : {"model_config", "training_config"})
      if (root.ok()) send_text(name, read_long_text(root.id(), name));
    if (remote_bytes() > remote_end())
      problem("", fmt::format("{} bytes follow the end of it", remote_bytes() - remote_end()));
  }

 private:
  struct Link {
    std::string name;
    H5L_type_t type;
  };

  static herr_t on_link(hid_t, const char* name, const H5L_info_t* info, void* links) {
    static_cast<std::vector<Link>*>(links)->push_back({name, info->type});
    return 0;
  }

  static void send_text(const std::string& name, std::string_view text) {
    for (; !text.empty(); text.remove_prefix(std::min<std::size_t>(text.size(), kReadBytesMax / 2)))
      send(Message::attribute,
           Payload().text(name).text(text.substr(0, kReadBytesMax / 2)).bytes());
  }

  static void problem(const std::string& where, std::string_view message) {
    send(Message::problem, Payload().text(where).text(message).bytes());
  }

  void visit_group(hid_t group, const std::string& path, int depth) {
    H5O_info_t info;
    if (H5Oget_info2(group, &info, H5O_INFO_BASIC) < 0) return problem(path, "cannot be read");
    if (!groups_.insert(info.addr).second) return;  // Met before: links may go round.
    if (depth > kDepthMax) return problem(path, "nested deeper than 100; not looked at");
    std::vector<Link> links;
    hsize_t at = 0;
    if (H5Literate(group, H5_INDEX_NAME, H5_ITER_INC, &at, on_link, &links) < 0)
      problem(path, "its list of members is damaged");
    for (const Link& link : links)
      visit_link(group, link, path.empty() ? link.name : path + "/" + link.name, depth);
  }

  void visit_link(hid_t group, const Link& link, const std::string& path, int depth) {
    if (link.type == H5L_TYPE_EXTERNAL)
      return problem(path, "an external link, which is not followed");
    if (link.type != H5L_TYPE_HARD && link.type != H5L_TYPE_SOFT)
      return problem(path, "a link of an unknown type, which is not followed");
    const Handle object(H5Oopen(group, link.name.c_str(), access_.id()), H5Oclose);
    if (!object.ok())
      return problem(path, link.type == H5L_TYPE_SOFT ? "a link that leads nowhere"
                                                      : "cannot be read: " + library_words());
    const H5I_type_t type = H5Iget_type(object.id());
    if (type == H5I_GROUP && link.type == H5L_TYPE_HARD)
      return visit_group(object.id(), path, depth + 1);
    if (type == H5I_DATASET) visit_dataset(object.id(), path);
  }

  void visit_dataset(hid_t id, const std::string& path) {
    Dataset dataset;
    dataset.name = path;
    const Result<bool> read = describe(id, dataset);
    if (!read.ok()) {
      dataset = {};
      dataset.name = path;
      dataset.fault = read.error().message();
    } else if (!read.value()) {
      return;  // Text, or nothing at all.
    }
    std::vector<Chunk> chunks = std::move(dataset.chunks);
    send(Message::dataset, encode(dataset));
    send_chunks(chunks);
  }

  static void send_chunks(const std::vector<Chunk>& chunks) {
    Payload batch;
    for (const Chunk& chunk : chunks) {
      for (const uint64_t place : chunk.origin) batch.number(place);
      batch.number(chunk.address).number(chunk.bytes).number(chunk.skipped);
      if (batch.bytes().size() < kMessageBytesMax / 2) continue;
      send(Message::chunks, batch.bytes());
      batch = {};
    }
    if (!batch.bytes().empty()) send(Message::chunks, batch.bytes());
  }

  // False where there is nothing to compare.
  Result<bool> describe(hid_t id, Dataset& dataset) {
    const Handle plist(H5Dget_create_plist(id), H5Pclose);
    const Handle type(H5Dget_type(id), H5Tclose), space(H5Dget_space(id), H5Sclose);
    if (!plist.ok() || !type.ok() || !space.ok()) return Error("its description is damaged");
    if (H5Pget_external_count(plist.id()) > 0)
      return Error("its data lies in other files, which are not read");
    const H5D_layout_t layout = H5Pget_layout(plist.id());
    if (layout == H5D_VIRTUAL) return Error("a virtual dataset, whose data lies in other files");
    if (H5Sget_simple_extent_type(space.id()) == H5S_NULL) return false;
    const Element element = TRY(element_of(type.id()));
    if (element.text) return false;
    dataset.dtype = element.dtype;
    dataset.swapped = element.swapped;
    dataset.matlab_class = read_text_attribute(id, "MATLAB_class");
    dataset.matlab_empty = H5Aexists(id, "MATLAB_empty") > 0;

    hsize_t sizes[H5S_MAX_RANK] = {};
    const int rank = H5Sget_simple_extent_dims(space.id(), sizes, nullptr);
    if (rank < 0) return Error("its shape is damaged");
    dataset.shape.assign(sizes, sizes + rank);
    dataset.shape.insert(dataset.shape.end(), element.inner.begin(), element.inner.end());
    const Handle base(element.inner.empty() ? H5Tcopy(type.id()) : H5Tget_super(type.id()),
                      H5Tclose);
    dataset.fill = read_fill(plist.id(), base.id());
    if (layout == H5D_CHUNKED) {
      TRY(describe_chunks(id, plist.id(), {sizes, sizes + rank}, dataset));
      dataset.chunk_shape.insert(dataset.chunk_shape.end(), element.inner.begin(),
                                 element.inner.end());
      for (Chunk& chunk : dataset.chunks) chunk.origin.resize(dataset.shape.size(), 0);
    } else if (layout == H5D_COMPACT) {
      TRY(read_compact(id, type.id(), dataset));
    } else {
      describe_contiguous(id, dataset);
    }
    return true;
  }

  static void describe_contiguous(hid_t id, Dataset& dataset) {
    const haddr_t address = H5Dget_offset(id);
    if (address == HADDR_UNDEF) return;
    dataset.layout = Layout::contiguous;
    dataset.address = address;
  }

  static Result<void> read_compact(hid_t id, hid_t type, Dataset& dataset) {
    const hsize_t stored = H5Dget_storage_size(id);
    const std::optional<uint64_t> count = element_count(dataset.shape);
    if (!count || stored > kCompactMax || *count * item_bytes(dataset.dtype) != stored)
      return Error("its data is not as large as its shape");
    dataset.layout = Layout::compact;
    dataset.data.resize(stored);
    if (stored > 0 && H5Dread(id, type, H5S_ALL, H5S_ALL, H5P_DEFAULT, dataset.data.data()) < 0)
      return Error("its data cannot be read");
    return {};
  }

  static Result<void> describe_chunks(hid_t id, hid_t plist, const std::vector<hsize_t>& sizes,
                                      Dataset& dataset) {
    dataset.layout = Layout::chunked;
    TRY(read_filters(plist, dataset));
    hsize_t chunk[H5S_MAX_RANK] = {};
    const int rank = H5Pget_chunk(plist, H5S_MAX_RANK, chunk);
    if (rank != static_cast<int>(sizes.size()) || rank == 0) return Error("chunks of another rank");
    dataset.chunk_shape.assign(chunk, chunk + rank);
    hsize_t grid = 1;
    for (int axis = 0; axis < rank; ++axis) {
      if (chunk[axis] == 0) return Error("chunks of no size");
      const hsize_t steps = sizes[static_cast<std::size_t>(axis)] / chunk[axis] +
                            (sizes[static_cast<std::size_t>(axis)] % chunk[axis] != 0);
      if (steps > 0 && grid > kGridMax / steps) return Error("more than {} chunks", kGridMax);
      grid *= steps;
    }
    if (H5Dget_storage_size(id) == 0) return {};
    return find_chunks(id, sizes, grid, dataset);
  }

  // Asks for the chunk of each place in turn. The library says how large a chunk is, but where it
  // lies only by going through all of them; so it is asked to read the chunk, and our driver sees
  // from where.
  static Result<void> find_chunks(hid_t id, const std::vector<hsize_t>& sizes, hsize_t grid,
                                  Dataset& dataset) {
    const Error damaged("the index of its chunks is damaged");
    std::vector<hsize_t> origin(sizes.size(), 0);
    std::string unused;
    for (hsize_t i = 0; i < grid; ++i) {
      hsize_t bytes = 0;
      if (H5Dget_chunk_storage_size(id, origin.data(), &bytes) < 0) bytes = 0;
      if (bytes > remote_bytes()) return damaged;
      if (bytes > 0) {
        uint32_t skipped = 0;
        unused.resize(bytes);
        watch_for(bytes);
        const herr_t read = H5Dread_chunk(id, H5P_DEFAULT, origin.data(), &skipped, unused.data());
        const haddr_t address = watched();
        if (read < 0 || address == HADDR_UNDEF) return damaged;
        dataset.chunks.push_back({{origin.begin(), origin.end()}, address, bytes, skipped});
      }
      for (std::size_t axis = sizes.size(); axis-- > 0;) {
        origin[axis] += dataset.chunk_shape[axis];
        if (origin[axis] < sizes[axis]) break;
        origin[axis] = 0;
      }
    }
    return {};
  }

  static herr_t refuse_external(const char*, const char*, const char*, const char*, unsigned*,
                                hid_t, void*) {
    return -1;
  }
  static hid_t make_access() {
    const hid_t access = H5Pcreate(H5P_LINK_ACCESS);
    H5Pset_nlinks(access, 16);
    H5Pset_elink_cb(access, refuse_external, nullptr);
    return access;
  }

  hid_t file_;
  Handle access_{make_access(), H5Pclose};
  std::set<haddr_t> groups_;
};

}  // namespace

int list_datasets(const SandboxLimits& limits) {
  if (const Result<void> entered = enter_sandbox(limits); !entered.ok()) {
    send(Message::no_sandbox, Payload().text(entered.error().message()).bytes());
    return 1;
  }
  H5open();
  H5Eset_auto2(H5E_DEFAULT, nullptr, nullptr);
  H5PLset_loading_state(0);
  const hid_t file = open_remote();
  if (file < 0) {
    send(Message::failed, Payload().text(library_words()).bytes());
  } else {
    Lister(file).visit_root();
    send(Message::done, "");
  }
  end_process(0);
}

}  // namespace tensordiff::hdf5
