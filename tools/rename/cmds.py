import json,shlex,sys
root,db,out,pch=sys.argv[1:5]
res=[];L=[]
for e in json.load(open(db+'/compile_commands.json')):
    if e['file'].endswith('.cu') or 'cmake_pch' in e['file']: continue
    args=[];it=iter(shlex.split(e['command'])[1:])
    torch=False
    for a in it:
        if a=='-o': next(it); continue
        if a in('-c','-Winvalid-pch','-fopenmp',e['file']): continue
        if a=='-include':
            h=next(it)
            if pch!='-' and 'torch' in h: torch=True; continue
            args+=['-include',h]; continue
        args.append(a)
    args=[a for a in args if not a.startswith('-D__AVX')]
    if torch: args=['-include-pch',pch]+args
    args+=['-xc++','-resource-dir','/usr/lib/llvm-19/lib/clang/19','-Wno-everything','-ferror-limit=0','-Wno-invalid-pch'] if 0 else ['-resource-dir','/usr/lib/llvm-19/lib/clang/19','-Wno-everything','-ferror-limit=0']
    L.append('\t'.join([e['directory'],e['file']]+args))
h=len(L)
for i in (0,1):
    open(f'{out}.{i}','w').write('\n'.join(L[i::2])+'\n')
print(h)
