"""Moves files as the table says and edits includes and mentions. moves.py ROOT TABLE"""
import sys,os,re,subprocess
root,table,only=sys.argv[1:4]; os.chdir(root); only=set(only.split(","))
git=lambda *a: subprocess.run(['git',*a],check=True,capture_output=True,text=True).stdout
folders={'sim':'schedule','cut':'plan','cluster':'plan','predict':'plan','search':'plan','recompute':'nn'}
folders={k:v for k,v in folders.items() if k in only}
files={}; names={}; section=''
for l in open(table):
    if l.startswith('# --- '): section=l[6:].strip()
    w=l.split('#')[0].split()
    if w[:1]==['file'] and w[1].split('/')[0] in only: files[w[1]]=w[2]
    if w[:1]==['name'] and section in only|({'plan'} if 'search' in only else set()): names[w[1]]=w[2]
tracked=git('ls-files').split('\n')[:-1]
moves={}   # old path without extension (braid/x/y) -> new
def new_of(path):
    top,rest=path.split('/',1)
    stem,ext=os.path.splitext(rest)
    if top=='braid': stem=files.get(stem,stem)
    f=stem.split('/')[0]
    if f in folders: stem=folders[f]+stem[len(f):]
    if top=='tests':
        # tests mirror sources: tests/comm/gloo_lane_test -> its source's new name
        d,b=os.path.split(stem); 
        m=re.fullmatch(r'(\w+)_test',b)
        if m:
            for old,new in files.items():
                od,ob=os.path.split(old)
                if ob==m[1] and od.split('/')[0]==rest.split('/')[0]:
                    nb=os.path.basename(new); sub=od.split('/')[-1]
                    if '/' in od and not nb.startswith(sub): nb=sub+'_'+nb
                    stem=os.path.join(d,nb+'_test')
    return top+'/'+stem+ext
ren={}
for p in tracked:
    if p.startswith(('braid/','tests/')) and os.path.splitext(p)[1] in('.h','.cpp','.cu','.cuh','.json','.txt','.csv') or p.startswith(('tests/sim/','tests/cut/','tests/cluster/','tests/predict/','tests/search/','tests/recompute/')):
        n=new_of(p)
        if n!=p: ren[p]=n
targets=list(ren.values()); assert len(set(targets))==len(targets)
for o,n in ren.items():
    assert not os.path.exists(n) or n in ren,(o,n)
    os.makedirs(os.path.dirname(n),exist_ok=True); git('mv',o,n)
# mentions
tracked=git('ls-files').split('\n')[:-1]
base={}
for o,n in ren.items():
    if o.endswith('.h') or o.endswith('_test.cpp'):
        base.setdefault(os.path.splitext(o)[0],os.path.splitext(n)[0])
pairs=[]
for o,n in ren.items(): pairs.append((o,n)); 
for o,n in base.items(): pairs.append((o,n))
full={o:n for o,n in pairs}
rx=re.compile(r'(?<![\w/])('+'|'.join(sorted(map(re.escape,full),key=len,reverse=True))+r')(?![\w])')
short={os.path.splitext(o)[0].split('/',1)[1]+'.h':os.path.splitext(n)[0].split('/',1)[1]+'.h' for o,n in ren.items() if o.startswith('braid/') and o.endswith('.h')}
rs=re.compile(r'(?<![\w/])('+'|'.join(sorted(map(re.escape,short),key=len,reverse=True))+r')(?!\w)')
bn={os.path.basename(o):os.path.basename(n) for o,n in ren.items() if o.endswith('.h') and os.path.basename(o)!=os.path.basename(n)}
rb=re.compile(r'(?<![\w/])('+'|'.join(sorted(map(re.escape,bn),key=len,reverse=True))+r')(?!\w)')
ts={os.path.splitext(os.path.basename(o))[0]:os.path.splitext(os.path.basename(n))[0] for o,n in ren.items() if o.endswith('_test.cpp') and os.path.basename(o)!=os.path.basename(n)}
rt=re.compile(r'\b('+'|'.join(ts)+r')\b') if ts else None
amb={'Kind','Gate','Bell','Held','Ink','Wish','Said','Given','Moved','Greed','Trials','Starter','Awaited','Sleeper','Promise'}
plain=[k for k in names if k not in amb and k[0].isupper()]
rn=re.compile(r'\b('+'|'.join(sorted((k for k in names if k not in amb and k[0].isupper()),key=len,reverse=True))+r')\b')
for p in tracked:
    if p.startswith('tools/rename') or p=='tools/renamed': continue
    try: s=open(p).read()
    except UnicodeDecodeError: continue
    t=rx.sub(lambda m:full[m[1]],s) if full else s; t=rs.sub(lambda m:short[m[1]],t) if short else t; t=rb.sub(lambda m:bn[m[1]],t) if bn else t
    if rt: t=rt.sub(lambda m:ts[m[1]],t)
    if plain and p.endswith(('.md','.h','.cpp','.cu','.cuh')):
        # names in comments and pages
        if p.endswith('.md'): t=rn.sub(lambda m:names[m[1]],t)
        else: t='\n'.join(l if '//' not in l else l[:l.index('//')]+rn.sub(lambda m:names[m[1]],l[l.index('//'):]) for l in t.split('\n'))
    if t!=s: open(p,'w').write(t)
print(len(ren),'files moved')
