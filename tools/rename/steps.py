"""Applies the renames component by component, each as one commit. steps.py ROOT TABLE INDEX...
Every step starts from the text that was indexed (tag rename-base) and applies all components up to this one."""
import subprocess, sys, os, re
root, table, *index = sys.argv[1:]
here = os.path.dirname(os.path.abspath(__file__))
STEPS = [('schedule', ['schedule', 'sim']), ('spec', ['spec']), ('mesh', ['mesh']), ('plan', ['cut', 'cluster', 'predict', 'search']),
         ('report', ['report']), ('data', ['data']), ('tokenize', ['tokenize']), ('device', ['device']), ('control', ['control']),
         ('comm', ['comm']), ('launch', ['launch']), ('param', ['param']), ('optim', ['optim']), ('nn', ['nn', 'recompute']),
         ('sync', ['sync']), ('pipe', ['pipe']), ('ckpt', ['ckpt']), ('weights', ['weights']), ('module', ['module']),
         ('train', ['train']), ('cli', ['cli'])]
git = lambda *a: subprocess.run(['git', '-C', root, *a], check=True, capture_output=True, text=True).stdout
def edit(path, *pairs):
    path = os.path.join(root, path); s = open(path).read()
    for old, new in pairs:
        assert re.search(old, s, re.M), (path, old)
        s = re.sub(old, new, s, flags=re.M)
    open(path, 'w').write(s)
def by_hand(only):
    """Build files, and CUDA sources, which the index does not have."""
    if 'sim' in only:
        edit('CMakeLists.txt', (r'^braid_room\(sim .*\n', ''), )
        edit('braid/cli/CMakeLists.txt', ('braid_sim ', 'braid_schedule '))
        edit('bench/CMakeLists.txt', ('braid_sim ', 'braid_schedule '))
        edit('tests/CMakeLists.txt', ('(target_link_libraries\(pipe_test PRIVATE) braid_sim', r'\1 braid_schedule'))
        if 'cut' not in only: edit('CMakeLists.txt', ('mesh sim cut cluster', 'mesh cut cluster'))
    if 'cut' in only:
        edit('CMakeLists.txt', (r'^braid_room\((cut|cluster|predict) .*\n', ''), (r'^braid_room\(search .*', 'braid_room(plan     ROOMS base schedule spec mesh)'),
             ('schedule cut mesh cluster predict data', 'schedule mesh plan data'))
        edit('braid/cli/CMakeLists.txt', ('braid_search ', 'braid_plan '))
        edit('tests/CMakeLists.txt', ('spec schedule cluster data', 'spec schedule plan data'), ('braid_cluster', 'braid_plan'))
    if 'recompute' in only:
        edit('CMakeLists.txt', (r'^braid_room\(recompute .*\n', ''), ('nn recompute sync', 'nn sync'))
    if 'device' in only:
        for f in ('braid/device/cuda/launch.cuh', 'braid/device/cuda/code.cu'):
            edit(f, ('^namespace braid \{', 'namespace braid::device {'), ('^\}  // namespace braid$', '}  // namespace braid::device'))
    if 'optim' in only:
        edit('braid/optim/cuda/update.cu', ('^namespace braid \{', 'namespace braid::optim {'), ('^\}  // namespace braid$', '}  // namespace braid::optim'))
git('tag', '-f', 'rename-base')
only = []
for name, parts in STEPS:
    only += parts
    for f in git('ls-files').split('\n')[:-1]:
        os.remove(os.path.join(root, f))
    git('read-tree', 'rename-base'); git('checkout-index', '-f', '-a')
    print(subprocess.run([sys.executable, here + '/apply.py', root, table, *index, '--write', '--only', ','.join(only)], check=True, capture_output=True, text=True).stdout[-400:])
    print(subprocess.run([sys.executable, here + '/moves.py', root, table, ','.join(only)], check=True, capture_output=True, text=True).stdout)
    by_hand(only)
    git('add', '-u'); git('commit', '-q', '-m', f'New names in {name}: its namespace, its files, the words of the field')
    print(name, git('show', '--stat', '--format=').strip().split('\n')[-1])
