"""'Room' and 'house' become component and architecture. words.py ROOT"""
import sys,os,re,subprocess
os.chdir(sys.argv[1])
git=lambda *a: subprocess.run(['git',*a],check=True,capture_output=True,text=True).stdout
for o,n in (('tools/check_rooms','tools/check_components'),('cmake/Rooms.cmake','cmake/Components.cmake'),('tests/cli/check_rooms_test.py','tests/cli/check_components_test.py')):
    git('mv',o,n)
whole=['CMakeLists.txt','cmake/Components.cmake','cmake/CudaLibrary.cmake','cmake/Toolchain.cmake','tests/CMakeLists.txt','tools/check_components','tools/check_stages','tools/check_pages','tests/cli/check_components_test.py','scripts/sanitize','scripts/build','scripts/test','scripts/check_cuda','CONTRIBUTING.md','ARCHITECTURE.md','docs/cuda.md','tests/fuzz/no_edges.cpp','tests/fuzz/main.cpp','tests/fuzz/edges.cpp','.ci/run','examples/CMakeLists.txt','bench/CMakeLists.txt','braid/cli/CMakeLists.txt','braid/device/cuda/tables.cpp','braid/device/cuda/tables.h','braid/device/cuda_tables.h','braid/device/cuda_tables.cpp']
lines={'braid/optim/cuda_table.h':"This room's",'braid/nn/kernels/table_call.h':"this room's",'braid/nn/kernels/cuda_table.h':"This room's",'braid/spec/replicas_apart.h':'several rooms','braid/ckpt/checkpoint.h':'this room knows','braid/train/run_data.cpp':'the rooms data','braid/module/batch_norm_state.h':'this room','braid/device/cuda_services.h':'this room','README.md':'shows the house'}
def conv(t):
    t=re.sub(r'\bbraid_room\b','braid_component',t); t=re.sub(r'\bbraid_room_test\b','braid_component_test',t)
    t=re.sub(r'\bcheck_rooms\b','check_components',t); t=re.sub(r'\bcheck_rooms_test\b','check_components_test',t)
    t=re.sub(r'\broom_(TORCH|SHARDS|ROOMS)\b',lambda m:'component_'+m[1].replace('ROOMS','COMPONENTS'),t)
    t=re.sub(r'\b(tsan|asan)_rooms\b',r'\1_components',t); t=re.sub(r'\b(torch_rooms)\b','torch_components',t)
    t=re.sub(r'\brooms_alarm\b','components_alarm',t)
    t=re.sub(r'\bROOMS\b','COMPONENTS',t); t=re.sub(r'\bRooms\b','Components',t); t=re.sub(r'\brooms\b','components',t); t=re.sub(r'\broom\b','component',t); t=re.sub(r'\bRoom\b','Component',t)
    t=t.replace('# The house\n','# Architecture\n').replace('the house rules','the architecture rules').replace('a small house','a small tree').replace('with the house','with the project').replace('shows the house','shows the architecture')
    t=re.sub(r'\bhouse\b','folder',t)
    return t
for f in whole:
    if not os.path.exists(f): continue
    s=open(f).read(); t=conv(s)
    if t!=s: open(f,'w').write(t)
for f,k in lines.items():
    s=open(f).read()
    t='\n'.join(conv(l) if k in l else l for l in s.split('\n'))
    if t!=s: open(f,'w').write(t)
