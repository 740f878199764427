#pragma once

#include <cerrno>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "actors/cgroup_v1.hpp"

namespace bulkhead::testing {

/// cgroup v1 in memory: a folder with processes or folders in it can't be removed.
class fake_cgroups : public cgroup_files {
public:
  int make_folder(const std::string& path) override {
    if (refused.contains(path)) {
      return EACCES;
    }
    return folders.insert(path).second ? 0 : EEXIST;
  }
  int remove_folder(const std::string& path) override {
    if (!folders.contains(path)) {
      return ENOENT;
    }
    if (!processes[path].empty() || !folders_in(path).empty()) {
      return EBUSY;
    }
    folders.erase(path);
    return 0;
  }
  int write(const std::string& path, std::string_view text) override {
    if (refused.contains(path)) {
      return EACCES;
    }
    auto folder = path.substr(0, path.rfind('/'));
    if (!folders.contains(folder)) {
      return ENOENT;
    }
    files[path] = text;
    return 0;
  }
  std::optional<std::string> read(const std::string& path) override {
    auto folder = path.substr(0, path.rfind('/'));
    if (!path.ends_with("/cgroup.procs")) {
      auto found = files.find(path);
      return found == files.end() ? std::nullopt : std::optional{found->second};
    }
    std::string result;
    for (auto pid : processes[folder]) {
      result += std::to_string(pid) + "\n";
    }
    return result;
  }
  std::vector<std::string> folders_in(const std::string& path) override {
    std::vector<std::string> result;
    for (const auto& folder : folders) {
      if (folder.starts_with(path + "/") &&
          folder.find('/', path.size() + 1) == std::string::npos) {
        result.push_back(folder.substr(path.size() + 1));
      }
    }
    return result;
  }
  bool delegated(const std::string& path) override { return folders.contains(path); }

  std::set<std::string> folders;
  std::map<std::string, std::string> files;
  std::map<std::string, std::set<pid_t>> processes; ///< by folder
  std::set<std::string> refused;                    ///< paths that can't be made or written
};

} // namespace bulkhead::testing
