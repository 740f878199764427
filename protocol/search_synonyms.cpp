// Words that mean about the same where tools are described, for the search of tools. A group holds
// words of which one may stand for another; a word may be in several.

#include <algorithm>
#include <array>
#include <map>
#include <set>

#include "protocol/search_words.hpp"

namespace bulkhead {

namespace {

constexpr auto groups = std::to_array<std::string_view>(
    {// What is done.
     "create add make new insert build generate file",
     "delete remove erase drop destroy discard purge trash wipe clear rid kick",
     "update edit change modify alter set patch adjust", "list enumerate browse all",
     "get read fetch retrieve load view show describe see tell give",
     "search find query look locate discover", "send post deliver submit transmit publish",
     "stop halt pause end quit terminate kill", "cancel abort revoke undo call",
     "start begin launch run execute trigger", "restart reboot rerun retry again",
     "copy duplicate clone", "move transfer relocate drag", "join merge combine unite fold",
     "compare diff differ difference versus", "approve accept confirm acknowledge",
     "reject decline refuse deny", "block ban shut exclude", "invite add bring",
     "assign owner responsible", "silence mute snooze quiet", "hide conceal", "show display render",
     "restore recover revert rollback return back bring", "convert export transform turn",
     "import load ingest", "upload attach put store save", "download fetch pull",
     "extract unpack unzip decompress", "compress zip pack archive", "click press push tap",
     "type enter fill write", "capture screenshot snapshot picture", "lock freeze",
     "let allow permit open grant", "schedule plan queue later", "subscribe follow watch",
     "translate render interpret", "pay charge payment paid", "reimburse refund money",
     "reserve book booking", "sort order rank arrange", "count total sum number",
     "estimate forecast predict expect", "check verify validate test", "notify alert warn inform",
     "free reclaim release", "deploy rollout release ship", "summarize condense shorten",
     "talk speak discuss say", "report flag complain",
     // What it is done to.
     "message text chat note", "mail email inbox letter", "file document doc", "folder directory",
     "picture image photo", "movie video film clip", "song music track audio",
     "bug issue defect error problem fault exception", "meeting appointment event conference",
     "person user people member individual somebody", "colleague employee staff coworker",
     "buyer customer client shopper purchaser", "bill invoice",
     "price cost fee fare expensive cheap", "discount coupon voucher cheaper",
     "income revenue profit earnings sales", "expense spending loss", "salary wage payroll",
     "website site web page", "url link address", "repository repo project", "database db sql",
     "statement query", "machine server host computer vm", "alert alarm notification warning",
     "outage incident downtime", "holiday vacation leave absence",
     "weather forecast rain temperature", "late delay delayed", "plane flight airline",
     "suitcase luggage baggage", "hotel room stay night", "junk spam",
     "comment remark reply feedback", "label tag category", "permission access right role",
     "password secret credential token", "chart graph plot dashboard",
     "status state condition health", "subtitle caption transcript", "similar like related",
     "current now moment today", "last latest recent final newest"});

// Articles, pronouns, auxiliaries, prepositions: what questions are held together by.
constexpr std::string_view fillers =
    " a about after all also am an and any are as at be because been before being between but by "
    "can could did do does doing during each every everybody for from had has have having he her "
    "here hers him his how i if in into is it its itself just me more most my myself no nor not of "
    "off on one only or other our ours out over own please same she should so some somebody "
    "something such than that the their them then there these they this those through to too under "
    "until up us very want was we were what when where which while who whom whose why will with "
    "would you your yours need ";

using synonym_table = std::map<std::string_view, std::set<std::string_view>>;

synonym_table make_table() {
  synonym_table table;
  for (auto group : groups) {
    std::set<std::string_view> words;
    while (!group.empty()) {
      auto end = std::min(group.find(' '), group.size());
      words.insert(group.substr(0, end));
      group.remove_prefix(std::min(end + 1, group.size()));
    }
    for (auto word : words) {
      table[word].insert(words.begin(), words.end());
    }
  }
  return table;
}

} // namespace

bool is_filler(std::string_view word) {
  return fillers.find(" " + std::string{word} + " ") != std::string_view::npos;
}

std::vector<std::string_view> synonyms_of(std::string_view word) {
  static const auto table = make_table();
  // As it stands, or without an ending that grammar gave it.
  auto found = table.find(word);
  for (std::string_view ending : {"s", "es", "d", "ed", "ing"}) {
    if (found == table.end() && word.size() > ending.size() + 2 && word.ends_with(ending)) {
      found = table.find(word.substr(0, word.size() - ending.size()));
    }
  }
  if (found == table.end()) {
    return {};
  }
  std::vector<std::string_view> result(found->second.begin(), found->second.end());
  std::erase(result, word);
  return result;
}

} // namespace bulkhead
