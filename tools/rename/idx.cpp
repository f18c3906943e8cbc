// idx ROOT cmdfile out [pch] : cmdfile: lines "dir\tfile\targs..."
#include <clang-c/Index.h>
#include <unistd.h>

#include <climits>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <iostream>
#include <map>
#include <set>
#include <sstream>
#include <string>
#include <unordered_map>
#include <unordered_set>
#include <vector>
using namespace std;
static string root;
static ofstream out;
static string S(CXString s) {
  const char* c = clang_getCString(s);
  string r = c ? c : "";
  clang_disposeString(s);
  return r;
}
static unordered_map<void*, int> fileid;
static vector<string> files;  // "" not in root
static unordered_set<string> done_files, cur_files;
static int fid(CXFile f) {
  if (!f) return -1;
  auto it = fileid.find(f);
  if (it != fileid.end()) return it->second;
  string n = S(clang_getFileName(f));
  char b[PATH_MAX];
  if (realpath(n.c_str(), b)) n = b;
  int id = -1;
  if (n.rfind(root + "/", 0) == 0 && n.find("/.venv/") == string::npos) {
    id = files.size();
    files.push_back(n.substr(root.size() + 1));
  }
  fileid[f] = id;
  return id;
}
static int loc(CXSourceLocation l, unsigned& o) {
  CXFile f;
  unsigned a, b;
  clang_getFileLocation(l, &f, &a, &b, &o);
  return fid(f);
}
static unordered_set<string> emitted;
static unordered_map<string, bool> known;
static string qn(CXCursor c) {
  vector<string> p;
  while (!clang_Cursor_isNull(c) && clang_getCursorKind(c) != CXCursor_TranslationUnit &&
         !clang_isInvalid(clang_getCursorKind(c))) {
    string s = S(clang_getCursorSpelling(c));
    if (clang_getCursorKind(c) == CXCursor_Namespace && (s.empty() || clang_Cursor_isAnonymous(c))) s = "(anon)";
    if (!s.empty()) p.push_back(s);
    c = clang_getCursorSemanticParent(c);
  }
  string r;
  for (int i = p.size() - 1; i >= 0; i--) {
    r += p[i];
    if (i) r += "::";
  }
  return r;
}
static bool note(CXCursor c, string& usr) {
  usr = S(clang_getCursorUSR(c));
  if (usr.empty()) return false;
  auto it = known.find(usr);
  if (it != known.end()) return it->second;
  unsigned o;
  int f = loc(clang_getCursorLocation(c), o);
  bool in = f >= 0;
  known[usr] = in;
  if (in)
    out << "X\t" << usr << "\t" << qn(c) << "\t" << S(clang_getCursorKindSpelling(clang_getCursorKind(c))) << "\t"
        << files[f] << "\t" << o << "\n";
  return in;
}
static void emit(const string& f, unsigned o, char k, const string& usr, CXCursorKind ck) {
  string key = f + "\t" + to_string(o) + "\t" + k + "\t" + usr;
  if (emitted.insert(key).second) out << key << "\t" << S(clang_getCursorKindSpelling(ck)) << "\n";
}
static CXChildVisitResult visit(CXCursor ch, CXCursor, CXClientData d) {
  bool infile = d != nullptr;
  unsigned o;
  int f = loc(clang_getCursorLocation(ch), o);
  CXCursorKind k = clang_getCursorKind(ch);
  if (!infile) {
    if (f < 0) return CXChildVisit_Continue;
    if (k == CXCursor_Namespace) {
      clang_visitChildren(ch, visit, nullptr);
      return CXChildVisit_Continue;
    }
    if (done_files.count(files[f]) && !cur_files.count(files[f])) return CXChildVisit_Continue;
    cur_files.insert(files[f]);
  }
  if (f >= 0) {
    string usr;
    if (clang_isDeclaration(k)) {
      if (note(ch, usr)) emit(files[f], o, clang_isCursorDefinition(ch) ? 'D' : 'F', usr, k);
    }
    if (k == CXCursor_OverloadedDeclRef) {
      unsigned n = clang_getNumOverloadedDecls(ch);
      for (unsigned j = 0; j < n; j++)
        if (note(clang_getOverloadedDecl(ch, j), usr)) emit(files[f], o, 'O', usr, k);
    } else if (!clang_isDeclaration(k) && k != CXCursor_CallExpr) {
      CXCursor r = clang_getCursorReferenced(ch);
      if (!clang_Cursor_isNull(r) && !clang_isInvalid(clang_getCursorKind(r))) {
        CXCursor t = clang_getSpecializedCursorTemplate(r);
        if (!clang_Cursor_isNull(t) && !clang_isInvalid(clang_getCursorKind(t))) r = t;
        if (note(r, usr)) emit(files[f], o, 'R', usr, k);
      }
    }
  }
  clang_visitChildren(ch, visit, (void*)1);
  return CXChildVisit_Continue;
}
int main(int argc, char** argv) {
  root = argv[1];
  ifstream in(argv[2]);
  out.open(argv[3]);
  string line;
  CXIndex ix = clang_createIndex(1, 0);
  string save = argc > 4 ? argv[4] : "";
  while (getline(in, line)) {
    vector<string> p;
    stringstream ss(line);
    string x;
    while (getline(ss, x, '\t')) p.push_back(x);
    if (chdir(p[0].c_str())) return 1;
    vector<const char*> a;
    for (size_t i = 2; i < p.size(); i++) a.push_back(p[i].c_str());
    CXTranslationUnit tu;
    unsigned opt =
        save.empty()
            ? CXTranslationUnit_KeepGoing
            : (CXTranslationUnit_ForSerialization | CXTranslationUnit_Incomplete | CXTranslationUnit_KeepGoing);
    if (clang_parseTranslationUnit2(ix, p[1].c_str(), a.data(), a.size(), nullptr, 0, opt, &tu)) {
      fprintf(stderr, "fail %s\n", p[1].c_str());
      continue;
    }
    int errs = 0;
    for (unsigned i = 0; i < clang_getNumDiagnostics(tu); i++) {
      CXDiagnostic d = clang_getDiagnostic(tu, i);
      if (clang_getDiagnosticSeverity(d) >= CXDiagnostic_Error && errs++ < 3)
        fprintf(stderr, "  %s\n", S(clang_formatDiagnostic(d, clang_defaultDiagnosticDisplayOptions())).c_str());
    }
    fprintf(stderr, "%s %d\n", p[1].c_str(), errs);
    if (!save.empty()) {
      printf("save %d\n", clang_saveTranslationUnit(tu, save.c_str(), 0));
      return 0;
    }
    fileid.clear();
    cur_files.clear();
    clang_visitChildren(clang_getTranslationUnitCursor(tu), visit, nullptr);
    for (auto& f : cur_files) done_files.insert(f);
    clang_disposeTranslationUnit(tu);
  }
}
