#!/usr/bin/env bash
# One GPU. Wanted: kron-24's layout 0.4 s (0.76 before, with the edges' way to the GPU). The tree has tiles-layout.patch,
# which goes on top of tiles-ranks.patch; "before" is the same tree without the former.
here=$(cd "$(dirname "$0")" && pwd); export PYTHONPATH=$PWD:$PWD/tests/support
timeout 70 python -m pytest -v -rf -p no:cacheprovider -m gpu tests/engine/gpu/test_tiles.py 2>&1 | tail -15
timeout 90 python $here/layout.py after 22 24 2>&1
rm -rf /tmp/before && mkdir /tmp/before && cp -r sigps scripts pyproject.toml /tmp/before/ 2>/dev/null; cp -r apps /tmp/before/ 2>/dev/null
(cd /tmp/before && { git apply -R --include='sigps/*' $here/on-top-of-ranks.patch || patch -R -p1 -s -f < $here/on-top-of-ranks.patch >/dev/null; }
 grep -q number_by_degree sigps/engine/gpu/tiles.py && echo "the tree before was not made"
 PYTHONPATH=/tmp/before timeout 85 python $here/layout.py before 22 24 2>&1)
