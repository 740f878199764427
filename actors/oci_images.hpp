#pragma once

#include <string>

#include "actors/driver_context.hpp"
#include "actors/runtime_facts.hpp"

/// Images of podman's store, unpacked once each into a folder of our own that all containers share,
/// read-only. Mounting podman's own layers would save the space (the image's size again), but such
/// a mount lives in a process of podman's that may be ended any time, holds the image against
/// removal, and shows its files as nobody's in a container whose root isn't the account. A plain
/// folder needs nobody, starts fastest, and its files are those of the container's root.
///
///   CACHE/bulkhead/rootfs/ID        the root file system of the image with that id
///   CACHE/bulkhead/rootfs/ID.lock   locked, shared, by every process that uses it
///   CACHE/bulkhead/rootfs/.NAME     one that is being unpacked

namespace bulkhead {

/// The folder of all unpacked images of this account.
std::string image_store(const environment& env);

/// Unpacks the image that `facts.report` names unless that was done before, keeps it for as long as
/// this process lives, and removes those that nobody uses or has used within a day (when one was
/// unpacked). Answers the name of its folder. Errors: unavailable, with what tar or podman said.
task<expected<std::string>> unpack_image(driver_context& context, const runtime_facts& facts);

} // namespace bulkhead
