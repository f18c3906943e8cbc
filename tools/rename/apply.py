"""Applies the table of new names to an indexed tree. apply.py ROOT INDEX... CONFIG ; edits in place, for components given by --only (comma list)."""
import sys, re, os, collections, subprocess, argparse, json
ap=argparse.ArgumentParser(); ap.add_argument('root'); ap.add_argument('table'); ap.add_argument('index',nargs='+'); ap.add_argument('--report',action='store_true'); ap.add_argument('--write',action='store_true'); ap.add_argument('--only',default='')
a=ap.parse_args(); root=a.root; only=set(a.only.split(','))-{''}
def chosen(f): p=f.split('/'); return len(p)>1 and p[0] in('braid','tests') and (not only or p[1] in only)
ns_of_folder={}; flat=set(); rename={}; files={}; skip=set()
for line in open(a.table):
    line=line.split('#')[0].strip()
    if not line: continue
    w=line.split()
    if w[0]=='namespace': ns_of_folder[w[1]]='' if w[2]=='-' else w[2]
    elif w[0]=='flat': flat.update(w[1:])
    elif w[0]=='name': rename[w[1]]=w[2]
    elif w[0]=='file': files[w[1]]=w[2]
    else: sys.exit('bad line '+line)
decl={}; occ=collections.defaultdict(lambda: collections.defaultdict(set)); dlocs=collections.defaultdict(list)
for f in a.index:
    for line in open(f,errors='replace'):
        w=line.rstrip('\n').split('\t')
        if w[0]=='X': decl.setdefault(w[1],(w[2],w[3],w[4],int(w[5])))
        else:
            occ[w[0]][int(w[1])].add((w[2],w[3],w[4] if len(w)>4 else ''))
            if w[2] in 'DF': dlocs[w[3]].append((w[0],int(w[1]),w[2]))
text={}
def T(f):
    if f not in text: text[f]=open(os.path.join(root,f),'rb').read()
    return text[f]
def folder_ns(f):
    p=os.path.dirname(f).split('/')
    if p[0]=='tests': p=['tests']+p[1:]
    base=p[1:] if p[0] in('braid','tests') else None
    if base is None: return None
    if base and only and base[0] not in only: return ''
    while base:
        k='/'.join(base)
        if k in ns_of_folder: return ns_of_folder[k]
        base=base[:-1]
    return ''
def stem(f): return os.path.splitext(f)[0][len('braid/'):] if f.startswith('braid/') else None
# home of top-level symbols
top={}
for usr,(qn,kind,f,o) in decl.items():
    m=re.fullmatch(r'braid::(~?[\w]+|operator\W+)',qn)
    if not m or '(anon)' in qn or kind in('Namespace','NamespaceAlias','CXXAccessSpecifier') or 'aN' in usr.split('@braid')[0]: continue
    locs=dlocs[usr]
    if not locs: continue
    isfun=kind in('FunctionDecl','FunctionTemplate')
    heads=[l for l in locs if l[0].endswith('.h') and l[0].startswith('braid/')]
    if isfun or kind=='VarDecl': h=heads or locs
    else: h=[l for l in locs if l[2]=='D'] or heads or locs
    home=h[0][0]
    top[usr]=(m[1],home,kind)
scoped={}
for u,(n,h,k) in list(top.items()):
    if k=='EnumDecl':
        for (f,o,d) in dlocs[u]:
            scoped[decl[u][0]]=re.search(rb'enum (class|struct)\s+(\[\[\w+\]\]\s*)?$',open(os.path.join(root,f),'rb').read()[max(0,o-60):o]) is not None
byq={decl[u][0]:u for u in top}
for usr,(qn,kind,f,o) in decl.items():
    m=re.fullmatch(r'(braid::\w+)::(\w+)',qn)
    if kind=='EnumConstantDecl' and m and m[1] in byq and scoped.get(m[1]) is False and dlocs[usr]:
        top[usr]=(m[2],top[byq[m[1]]][1],'EnumConst')
sources=set(occ)
# a source is flat if it defines a flat top-level entity
def header_ns(f):
    return '' if stem(f) in flat else folder_ns(f)
home_ns={u:header_ns(h) if h.startswith('braid/') else None for u,(n,h,k) in top.items()}
flat_cpp=set()
for u,(n,h,k) in top.items():
    if home_ns[u]=='':
        for (f,o,d) in dlocs[u]:
            if d=='D' and f.endswith('.cpp') and f.startswith('braid/'): flat_cpp.add(f)
# member definitions out of line count too
for usr,(qn,kind,f,o) in decl.items():
    m=re.match(r'braid::(\w+)::',qn)
    if not m or usr=='c:': continue
    for (ff,oo,d) in dlocs[usr]:
        if d=='D' and ff.endswith('.cpp') and ff.startswith('braid/') and f!=ff:
            # outer type's home
            if stem(f) in flat and folder_ns(f)!='' : flat_cpp.add(ff)
TESTNS={'comm_tests':'comm::tests','launch_tests':'launch::tests','server_tests':'sync::server::tests','sync_tests':'sync::tests'}
TESTNS={k:v for k,v in TESTNS.items() if not only or v.split('::')[0] in only}
def opening(f):
    m=re.search(rb'^namespace braid((?:::\w+)*) \{$',T(f),re.M)
    return m[1].decode().lstrip(':') if m else None
def ctx(f):
    """namespace below braid that the file's code is in after the change"""
    if f.startswith('braid/'):
        if f.endswith('.cpp') and f in flat_cpp: return ''
        o=opening(f)
        if o and o.split('::')[0] in ('kernels','on_device'): return 'kernels' if o.startswith('kernels') else ''
        h=header_ns(f)
        return (h+'::' if h else '')+o if o and h else (o or h)
    if f.startswith('tests/'):
        o=opening(f)
        if o is None or o=='': return ''
        p=o.split('::')
        if p[0] in TESTNS: return TESTNS[p[0]]
        if p[0]=='kernels': return 'kernels'
        if f.endswith('.cpp') and len(p)==1 and p[0]==os.path.splitext(os.path.basename(f))[0]: return folder_ns(f)
        return ''
    return ''
names_in=collections.defaultdict(set)
newname={}
for u,(n,h,k) in top.items():
    nn=rename.get(n,n) if chosen(h) else n; newname[u]=nn
    if home_ns[u] is not None: names_in[home_ns[u]].add(nn)
# names in test namespaces etc. ignored
def chain(ns):
    out=[ns]
    while ns:
        ns=ns.rpartition('::')[0]; out.append(ns)
    return out
def spelled(u,c):
    """how symbol u is written in context c"""
    ns=home_ns[u]; nn=newname[u]
    ch=chain(c)
    if ns in ch:
        inner=ch[:ch.index(ns)]
        if any(nn in names_in[i] for i in inner): return ('braid::'+(ns+'::' if ns else '')+nn)
        return nn
    # strip common? write full path below braid
    return ns+'::'+nn
edits=collections.defaultdict(dict); problems=[]; forward=collections.defaultdict(list); stats=collections.Counter()
for f,offs in occ.items():
    t=T(f); c=ctx(f)
    for o,refs in offs.items():
        us={u for k,u,ck in refs if u in top}
        if not us: continue
        kinds={k for k,u,ck in refs if u in top}
        m=re.match(rb'~?\w+',t[o:o+200])
        if not m: continue
        word=m[0].decode()
        us={u for u in us if top[u][0]==word}
        if not us: stats['mismatch']+=1; continue
        nss={(home_ns[u],newname[u]) for u in us}
        if any(home_ns[u] is None for u in us): continue
        if all(top[u][2]=='EnumConst' for u in us) and ('D' in kinds or t[max(0,o-2):o]==b'::'): continue
        if 'D' in kinds or 'F' in kinds:
            u=next(iter(us))
            ns=home_ns[u]
            if 'F' in kinds and top[u][2] in('StructDecl','ClassDecl','ClassTemplate','EnumDecl') and ns!=c:
                line=t.rfind(b'\n',0,o)+1
                if t[line:line+1] in b'sce' : forward[f].append((line,u)); continue
            if ns==c or top[u][2] not in('FunctionDecl','FunctionTemplate','VarDecl'):
                if newname[u]!=word: edits[f][o]=(len(word),newname[u])
            else:
                if f.endswith('.h') or ns not in chain(c)+[ns] : pass
                edits[f][o]=(len(word),(ns[len(c)+2:] if c and ns.startswith(c+'::') else ns)+('::' if ns else '')+newname[u])
            continue
        if len(nss)>1:
            if kinds=={'O'}: stats['adl']+=1; continue
            problems.append(f'{f}:{o}: {word} in {nss}'); continue
        u=next(iter(us))
        if kinds=={'O'}:
            stats['overload']+=1
            pre=t[max(0,o-2):o]
            if pre!=b'::' and newname[u]==word: continue
        q=re.search(rb'((?:::)?\bbraid::)$',t[max(0,o-12):o])
        if q:
            L=len(q[1]); inbraid = c is not None and (f.startswith('braid/') or f.startswith('tests/'))
            new='braid::'+(home_ns[u]+'::' if home_ns[u] else '')+newname[u]
            if new!='braid::'+word: edits[f][o-L]=(L+len(word),new)
            continue
        if t[max(0,o-2):o]==b'::':
            q=re.search(rb'(\w+)::$',t[max(0,o-60):o])
            if newname[u]!=word: edits[f][o]=(len(word),newname[u])
            continue
        new=spelled(u,c if c is not None else '')
        if new!=word: edits[f][o]=(len(word),new)
# constructors and destructors of renamed classes
for usr,(qn,kind,f,o) in decl.items():
    if kind not in('CXXConstructor','CXXDestructor','FunctionTemplate'): continue
    m=re.match(r'(braid::\w+)::~?\w+',qn)
    if not m or m[1] not in byq: continue
    u=byq[m[1]]; n=top[u][0]
    if newname[u]==n or not re.fullmatch(re.escape(m[1])+r'::~?'+n+r'(<.*>)?',qn): continue
    for (ff,oo,d) in dlocs[usr]:
        t=T(ff)
        at=oo+1 if t[oo:oo+1]==b'~' else oo
        while t[at:at+1]==b' ': at+=1
        if t[at:at+len(n)]==n.encode(): edits[ff][at]=(len(n),newname[u])
        else: stats['ctor?']+=1
print(len(top),'top-level symbols', sum(len(e) for e in edits.values()),'edits in',len(edits),'files', dict(stats), len(problems),'problems', sum(map(len,forward.values())),'forwards', len(flat_cpp),'flat cpp')
for p in problems[:10]: print(p)
cnt=collections.Counter(home_ns[u] for u in top if top[u][1].endswith('.h') and top[u][2] in('StructDecl','ClassDecl','ClassTemplate','EnumDecl','TypeAliasDecl','TypeAliasTemplateDecl'))
print(cnt)
dup=collections.defaultdict(set)
for u,(n,h,k) in top.items():
    if k in('StructDecl','ClassDecl','ClassTemplate','EnumDecl','TypeAliasDecl') and h.endswith('.h'): dup[(home_ns[u],newname[u])].add(n)
for k,v in dup.items():
    if len(v)>1: print('DUP',k,v)
if a.write:
    changed=set()
    for f in sorted(set(edits)|set(forward)|{f for f in occ}):
        t=T(f); e=dict(edits.get(f,{}))
        for line,u in forward.get(f,[]):
            end=t.index(b'\n',line)+1
            e[line]=(end-line,'')
        b=bytearray(); pos=0
        for o in sorted(e):
            L,new=e[o]
            if o<pos: print('overlap',f,o); continue
            b+=t[pos:o]+new.encode(); pos=o+L
        b+=t[pos:]
        s=b.decode()
        fw=collections.defaultdict(list)
        for line,u in forward.get(f,[]):
            l=t[line:t.index(b'\n',line)].decode(); n=top[u][0]
            fw[home_ns[u]].append(re.sub(rf'\b{n}\b',newname[u],l))
        c=ctx(f)
        if f.startswith(('tests/','bench/')):
            o=opening(f); p=(o or '').split('::')
            if f.endswith('.cpp') and c and len(p)==1 and p[0] and p[0]==os.path.splitext(os.path.basename(f))[0]:
                s=re.sub(r'^(namespace|\}  // namespace) braid::(\w+)( \{)?$',lambda m:f'{m[1]} braid::{c}::{m[2]}{m[3] or ""}',s,flags=re.M)
            for k,v in TESTNS.items(): s=re.sub(rf'\b{k}\b',v,s)
        elif f.startswith('braid/') and c and c!='kernels':
            s=re.sub(r'^namespace braid \{$',f'namespace braid::{c} {{',s,flags=re.M)
            s=re.sub(r'^\}  // namespace braid$',f'}}  // namespace braid::{c}',s,flags=re.M)
            o=opening(f)
            if o: s=s.replace(f'namespace braid::{o}',f'namespace braid::{c}')
        for ns,ls in fw.items():
            block=f'namespace braid{"::" if ns else ""}{ns} {{\n'+'\n'.join(ls)+f'\n}}  // namespace braid{"::" if ns else ""}{ns}\n\n'
            i=s.index('namespace braid'); s=s[:i]+block+s[i:]
        if s.encode()!=t:
            open(os.path.join(root,f),'w').write(s); changed.add(f)
    
    print('wrote',len(changed))
