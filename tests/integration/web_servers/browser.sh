#!/bin/sh
# In the place of a browser: says that it was started, and does nothing as long as its parent lives.
echo started >>"$STARTS"
while kill -0 "$PPID" 2>/dev/null; do sleep 0.2; done
