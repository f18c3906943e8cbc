import json,shlex,sys
for e in json.load(open(sys.argv[1]+'/compile_commands.json')):
    if 'cmake_pch' in e['file'] and 'torch' in e['file']:
        args=[];it=iter(shlex.split(e['command'])[1:])
        for a in it:
            if a in('-o','-include'): next(it); continue
            if a in('-c','-Winvalid-pch','-fopenmp',e['file'],'-x','c++-header','-emit-pch','-Xclang'): continue
            args.append(a)
        f=e['file'].replace('.hxx.cxx','.hxx')
        args=['-x','c++-header']+args+['-resource-dir','/usr/lib/llvm-19/lib/clang/19','-Wno-everything']
        open(sys.argv[2],'w').write('\t'.join([e['directory'],f]+args)+'\n')
