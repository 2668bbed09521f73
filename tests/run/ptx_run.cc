// Runs one entry of a PTX file on the interpreter of tests/support/ptx_machine.h.
//
//   ptx_run FILE ENTRY CHUNKS ARGUMENT...
//
// An argument is a number, or @PATH: the address of that file's bytes, which are written back. Exit status 1 and one
// sentence for what cannot run.
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <iostream>
#include <iterator>
#include <string>
#include <vector>

#include "support/ptx_machine.h"

namespace {

bool Read(const std::string& path, std::string& bytes) {
  std::ifstream file(path, std::ios::binary);
  bytes.assign(std::istreambuf_iterator<char>(file), {});
  return file.good() || file.eof();
}

int Failed(const std::string& what) {
  std::cerr << "ptx_run: " << what << "\n";
  return 1;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 4) return Failed("FILE ENTRY CHUNKS ARGUMENT...");
  std::string text;
  if (!Read(argv[1], text)) return Failed(std::string("cannot read ") + argv[1]);
  const auto module = quern::ptx::PtxModule::Parse(text);
  if (!module.ok()) return Failed(std::string(module.status().message()));
  const quern::ptx::PtxEntry* entry = module->Find(argv[2]);
  if (entry == nullptr) return Failed(std::string("no entry ") + argv[2]);
  std::vector<std::string> paths(argv + 4, argv + argc), memory(paths.size());
  std::vector<uint64_t> arguments;
  std::vector<quern::ptx::Piece> pieces;
  for (size_t i = 0; i < paths.size(); ++i) {
    if (paths[i][0] != '@') {
      arguments.push_back(static_cast<uint64_t>(std::strtoll(paths[i].c_str(), nullptr, 10)));
      continue;
    }
    if (!Read(paths[i].substr(1), memory[i])) return Failed("cannot read " + paths[i].substr(1));
    arguments.push_back(reinterpret_cast<uint64_t>(memory[i].data()));
    pieces.push_back({reinterpret_cast<uint8_t*>(memory[i].data()), memory[i].size()});
  }
  if (arguments.size() != entry->params())
    return Failed("the entry has " + std::to_string(entry->params()) + " parameters");
  const quern::Status ran = entry->Run({0, std::atoll(argv[3])}, arguments, pieces);
  if (!ran.ok()) return Failed(std::string(ran.message()));
  for (size_t i = 0; i < paths.size(); ++i) {
    if (paths[i][0] == '@') std::ofstream(paths[i].substr(1), std::ios::binary) << memory[i];
  }
  return 0;
}
